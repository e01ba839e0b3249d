"""Condition files: in which noise, rooms and channels recordings are evaluated. Their axes are those of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from harness.base.findings import Id, Keys, Text, optional, preset, read_content
from harness.model.choices import FileKind
from harness.model.scenario import AxisName, AxisValue, Defaults, channel_of, placement_of
from harness.model.stimulus import NoiseSpec, SoundCondition
from harness.scenario.keys import NoiseKeys, Seed
from harness.scenario.matrix import cells, refuse_placement
from harness.scenario.scenario import ScenarioReader, allows_null
from harness.scenario.sound_keys import AngleDeg, ChannelAxesKeys, ChannelExcludeKeys, DistanceM, RoomKeys
from harness.sound.recordings import content_sha256


class ConditionAxesKeys(ChannelAxesKeys):
    """The dimensions of the conditions."""

    noise: list[NoiseKeys | None] | None = optional("Noises; null means none.", min_length=1)
    room: list[Id | None] | None = optional("Simulated rooms, from `rooms`; null means none.", min_length=1)
    distance_m: list[DistanceM] | None = optional(
        "Distances of the talker from the device in the rooms, m.", min_length=1
    )
    angle_deg: list[AngleDeg] | None = optional(
        "Angles of the talker relative to the device's front, degrees.", min_length=1
    )


class ConditionExcludeKeys(ChannelExcludeKeys):
    """Combinations to leave out: all that match every key given here."""

    noise: NoiseKeys | None = optional("One of the axis's noises; null means none.")
    room: Id | None = optional("One of the axis's rooms; null means none.")
    distance_m: DistanceM | None = optional("One of the axis's distances.")
    angle_deg: AngleDeg | None = optional("One of the axis's angles.")


class ConditionMatrixKeys(Keys):
    """Every recording is evaluated in each combination of the axes that is not excluded."""

    axes: ConditionAxesKeys = Field(description="Values of each axis.")
    exclude: list[ConditionExcludeKeys] = Field(default_factory=list, description="Combinations to leave out.")


class ConditionsKeys(Keys):
    """Conditions in which recordings are evaluated: noise, rooms, codecs."""

    conditions: Id = Field(description="Name of the conditions.")
    seed: Seed = preset(0, "Seed for the noise; a different seed gives different noise.")
    assets: dict[Id, Text] = Field(default_factory=dict, description="Asset roots, name: folder, relative to the file.")
    rooms: dict[Id, RoomKeys] = Field(default_factory=dict, description="Simulated rooms by name.")
    matrix: ConditionMatrixKeys = Field(description="The conditions, as axes whose values are combined.")


def load_conditions(path: Path | str) -> tuple[SoundCondition, ...]:
    """The conditions of a file, in the order of its axes, each once.

    Raises InputProblems with every mistake. Raises InputError if the file is not YAML.
    """
    path = Path(path)
    _, content, findings = read_content(path, FileKind.CONDITIONS, ConditionsKeys, allows_null)
    matrix = ScenarioReader(path, content, findings, {}).matrix()
    values = {axis.name: dict(zip(axis.labels, axis.values, strict=True)) for axis in matrix.axes}
    seed = content.get("seed")
    for axis in matrix.axes:
        if axis.name in ("distance_m", "angle_deg") and not values.get("room"):
            findings.add(
                ("matrix", "axes", axis.name), "this axis has no effect without a room", "Add the axis `room`", key=True
            )
        for number, value in enumerate(axis.values):
            key_path = ("matrix", "axes", axis.name, number)
            if isinstance(value, NoiseSpec) and value.level_spl is not None:
                findings.add(key_path, "`level_spl` needs a calibrated loudspeaker", "Use `snr_db` or `level_dbfs`")
            if isinstance(value, NoiseSpec) and value.positions:
                findings.add(
                    (*key_path, "positions"),
                    "`positions` needs loudspeakers, and none plays here",
                    "Remove `positions`",
                    key=True,
                )
    conditions: dict[SoundCondition, None] = {}
    refused: set[str] = set()
    for cell in cells(matrix):
        cell_condition = _condition(dict(cell), {name: values[name][text] for name, text in cell}, seed)
        if cell_condition.placement is not None:
            refuse_placement(cell_condition.placement, refused, findings)
        conditions[cell_condition] = None
    findings.refuse()
    return tuple(
        replace(condition, files_sha256=tuple(map(content_sha256, _files(condition)))) for condition in conditions
    )


def _files(condition: SoundCondition) -> Iterator[str]:
    if condition.noise is not None and condition.noise.path:
        yield condition.noise.path
    if condition.placement is not None:
        yield from (response.path for response in condition.placement.room.recorded)


def _condition(labels: Mapping[AxisName, str], cell: Mapping[AxisName, AxisValue], seed: object) -> SoundCondition:
    noise, placement = cell.get("noise"), placement_of(Defaults(), cell)
    unused_axes = {"distance_m", "angle_deg"} if placement is None else set()  # They have no effect without a room.
    return SoundCondition(
        tuple((name, "none" if name in unused_axes else text) for name, text in labels.items()),
        noise if isinstance(noise, NoiseSpec) else None,
        placement,
        channel_of(cell),
        seed if isinstance(seed, int) else 0,
    )
