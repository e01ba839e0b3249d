"""Checks whether the loudspeakers of a bench can play the levels and the noise of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import NamedTuple

from harness.base.findings import Findings, KeyPath
from harness.base.foreign import shell_word
from harness.model.bench import Bench, Equipment
from harness.model.errors import nearest
from harness.model.numbers import exact, fixed
from harness.model.scenario import (
    PLACING_AXES,
    AxisName,
    AxisValue,
    Defaults,
    Scenario,
    TrialKind,
    TrialTemplate,
    axes_of,
    placement_of,
    requested_level,
)
from harness.model.stimulus import NoiseSpec, Opening
from harness.scenario.matrix import cells
from harness.scenario.trial_playback import addressed_devices, cells_of, is_injected, listening_devices, talker_of
from harness.sound.calibration import level_problem, why_unknown
from harness.sound.level import active_speech_level
from harness.sound.recordings import read as read_recording

_LEVEL_AXES: frozenset[AxisName] = PLACING_AXES | {"level_spl", "level_dbfs", "position", "noise", "opening", "gain_db"}
"""The axes that decide how loud a loudspeaker plays."""


class _PlayedLevel(NamedTuple):
    """A level at which a trial plays something.

    - key_path: where the level is written.
    - level: in dB SPL if in_spl, else in dBFS.
    - cell: values of axes such as position, noise and gain_db.
    - nearness_db: by how much it is louder at the device, since the talker of a simulated room is nearer than 1 m.
    """

    key_path: KeyPath
    level: float
    in_spl: bool
    cell: Mapping[AxisName, AxisValue]
    nearness_db: float = 0.0


def check_noise(scenario: Scenario, bench: Bench, findings: Findings) -> None:
    """Notes problems of noise with positions of its own.

    The loudspeakers there may be unable to play it, or the noise may have an unknown level at the device.
    """
    today = datetime.now().astimezone().date()
    for number, trial in enumerate(scenario.trials):
        if "noise" not in axes_of(trial):
            continue
        problems: dict[tuple[str, str], None] = {}
        for cell in cells_of(scenario, trial):
            noise = cell.get("noise", scenario.defaults.noise)
            if isinstance(noise, NoiseSpec) and noise.positions:
                problems |= dict.fromkeys(_noise_problems(bench, trial, noise, cell, today))
        for problem, remedy in problems:
            findings.add(("trials", number), problem, remedy)


def _noise_problems(
    bench: Bench, trial: TrialTemplate, noise: NoiseSpec, cell: Mapping[AxisName, AxisValue], today: date
) -> Iterator[tuple[str, str]]:
    """Pairs (problem, remedy) for noise with positions in one cell of the matrix."""
    premise = f"the noise of {trial.id!r} has positions"
    if trial.kind not in (TrialKind.WAKE, TrialKind.COMMAND):
        yield (
            f"{premise}, which apply only to wake and command trials",
            "Remove `positions`, or use a scenario for this trial alone",
        )
        return
    if any(is_injected(device, trial) for device in listening_devices(trial, bench)):
        yield f"{premise}, but a device gets the sound over its connection", "Write `route: loudspeaker`"
    # If several loudspeakers have the same position, the first one counts, as for the speech.
    speakers = {speaker.position: speaker for speaker in reversed(bench.loudspeakers)}
    for position in noise.positions:
        if position not in speakers:
            remedy = nearest(
                position, sorted(known_position for known_position in speakers if known_position), listed="Positions"
            )
            yield f"{premise}, but the bench {bench.id!r} has no loudspeaker at {position!r}", remedy
    speech = _speaker_of(bench, cell)
    if speech is None or any(position not in speakers for position in noise.positions):
        return
    noise_speakers = [speakers[position] for position in noise.positions]
    if speech in noise_speakers:
        yield f"{premise}, but {speech.id!r} also plays the speech", "Choose other positions, or remove `positions`"
    if noise.level_dbfs is None:
        for speaker in (speech, *noise_speakers):
            if reason := why_unknown(speaker, today):
                remedy = f"Run: {_calibration(bench, speaker)}. Or set `level_dbfs` of the noise"
                yield f"{premise}, but the level of {speaker.id!r} at the device is not known: {reason}", remedy
        places = {speaker.calibration.at for speaker in (speech, *noise_speakers) if speaker.calibration}
        if len(places) > 1:
            yield (
                f"{premise}, but the loudspeakers of speech and noise were calibrated at different places",
                "Calibrate all of them at the device",
            )


def _calibration(bench: Bench, speaker: Equipment) -> str:
    """The command that calibrates a loudspeaker."""
    return f"harness admin calibrate {shell_word(bench.path)} {shell_word(speaker.id)}"


def check_levels(scenario: Scenario, bench: Bench, findings: Findings) -> None:
    """Notes each level that a loudspeaker is to play but cannot. Does nothing if problems were found before."""
    if findings.problems:  # The scenario may name a device that the bench lacks.
        return
    today = datetime.now().astimezone().date()
    noted: set[tuple[KeyPath, str]] = set()
    has_calibration = any(loudspeaker.calibration for loudspeaker in bench.loudspeakers)
    for number, trial in enumerate(scenario.trials):
        if all(talker_of(scenario, trial, cell) for cell in cells_of(scenario, trial)):
            continue
        through_air = any(not is_injected(device, trial) for device in addressed_devices(trial, bench))
        for played in _levels(scenario, number, with_recordings=has_calibration):
            key_path, noise = played.key_path, played.cell.get("noise")
            noise_spl = noise.level_spl if isinstance(noise, NoiseSpec) else None
            if not through_air and (played.in_spl or noise_spl is not None):
                findings.add(
                    key_path,
                    f"{trial.id!r} goes to the device over its connection, where dB SPL does not apply",
                    "Use `level_dbfs`",
                )
            if not through_air or not bench.loudspeakers:
                continue
            speaker = _speaker_of(bench, played.cell)
            assert speaker is not None, bench.id
            for unplayable, problem in _playback_problems(bench, speaker, played, today):
                remedy = f"Run: {_calibration(bench, speaker)}"
                if "above" in problem:
                    remedy = (
                        "Lower the level of the stimulus or of the noise" if "noise" in problem else "Lower the level"
                    )
                    remedy += ", or `gain_db`" if "gain" in problem else ""
                if (key_path, unplayable) not in noted:
                    findings.add(key_path, f"{unplayable}: {problem}", remedy)
                noted.add((key_path, unplayable))


def _playback_problems(
    bench: Bench, speaker: Equipment, played: _PlayedLevel, today: date
) -> Iterator[tuple[str, str]]:
    """Pairs (what cannot be played, why) for one level, and the noise and the gain with it; none if all can be."""
    _, level, in_spl, cell, nearness_db = played
    calibration, noise, gain_db = speaker.calibration, cell.get("noise"), cell.get("gain_db", 0.0)
    assert isinstance(gain_db, int | float), gain_db
    noise_dbfs = None
    dbfs = level
    if in_spl:  # without a calibration, `level_problem` refuses the level
        dbfs = calibration.dbfs(level) if calibration else 0.0
    dbfs += nearness_db
    if isinstance(noise, NoiseSpec) and (spl := noise.level_spl) is not None:
        noise_dbfs = calibration.dbfs(spl) if calibration else 0.0
        if not noise.positions and (problem := level_problem(speaker, spl, noise_dbfs, today)):
            yield f"the loudspeaker {speaker.id!r} cannot play noise at {exact(spl)} dB SPL", problem
            return
    elif isinstance(noise, NoiseSpec):
        noise_dbfs = noise.dbfs(dbfs)
    # The level at the device of noise that others play is not known if it is in dBFS.
    plays_elsewhere = isinstance(noise, NoiseSpec) and noise.positions and noise.level_dbfs is not None
    own_noise_dbfs = None if plays_elsewhere else noise_dbfs
    if problem := level_problem(
        speaker, round(level + nearness_db, 1) if in_spl else None, dbfs, today, own_noise_dbfs, gain_db
    ):
        level_text = f"{exact(round(level, 1))} {'dB SPL' if in_spl else 'dBFS'}"
        level_text += " from a talker this close" if nearness_db else ""
        yield f"the loudspeaker {speaker.id!r} cannot play {level_text}", problem
    if not isinstance(noise, NoiseSpec) or noise_dbfs is None:
        return
    for noise_speaker in bench.loudspeakers:
        if noise_speaker.position in noise.positions and (noise_calibration := noise_speaker.calibration) is not None:
            own_dbfs = noise_dbfs + noise.gain_db(calibration or noise_calibration, noise_calibration)
            own_dbfs += gain_db if noise.snr_db is not None else 0.0
            if problem := level_problem(noise_speaker, None, own_dbfs, today):
                yield f"the loudspeaker {noise_speaker.id!r} cannot play noise at {fixed(own_dbfs, 1)} dBFS", problem


def _levels(scenario: Scenario, number: int, *, with_recordings: bool) -> Iterator[_PlayedLevel]:
    """Each level at which a trial plays something; openings come without noise.

    - number: index of the trial in the scenario.
    - with_recordings: whether to measure recordings that keep their own level, and to include them.
    """
    trial, defaults = scenario.trials[number], scenario.defaults
    trial_path: KeyPath = ("trials", number)
    default_path: KeyPath = trial_path if defaults.level_spl is None else ("defaults", "level_spl")
    axes = {axis.name: axis for axis in scenario.matrix.axes if axis.name in _LEVEL_AXES & axes_of(trial)}
    own_level_sounds = (
        [read_recording(path) for path in trial.recordings] if trial.as_recorded and with_recordings else []
    )
    quiet: dict[AxisName, AxisValue] = {"noise": defaults.noise} if "noise" in axes_of(trial) else {}
    for cell in dict.fromkeys(tuple(pair for pair in cell if pair[0] in axes) for cell in cells(scenario.matrix)):
        indices = {name: axes[name].labels.index(text) for name, text in cell}
        values = quiet | {name: axes[name].values[index] for name, index in indices.items()}
        if not trial.as_recorded or trial.kind is TrialKind.COMMAND:
            level, in_spl = requested_level(defaults, trial, values)
            level_path = default_path if in_spl else trial_path
            for name, index in indices.items():
                if name.startswith("level_"):
                    level_path = ("matrix", "axes", name, index)
            # Ambient sound has no room.
            nearness_db = 0.0 if trial.kind is TrialKind.AMBIENT else _nearness_db(defaults, values)
            yield _PlayedLevel(level_path, level, in_spl, values, nearness_db)
        opening, opening_index = values.get("opening", trial.opening), indices.get("opening")
        if isinstance(opening, Opening):
            opening_path: KeyPath = (*trial_path, "opening")
            if opening_index is not None:
                opening_path = ("matrix", "axes", "opening", opening_index)
            level = opening.level_dbfs if opening.level_spl is None else opening.level_spl
            nearness_db = _nearness_db(defaults, values)
            in_spl = opening.level_spl is not None
            yield _PlayedLevel(opening_path, level, in_spl, values | {"noise": None}, nearness_db)
        for sound in own_level_sounds:
            active = active_speech_level(sound)
            if active is not None:
                path = (*trial_path, "recordings")
                yield _PlayedLevel(path, active.level_dbfs, False, values, _nearness_db(defaults, values))
    if trial.ambient is not None and trial.ambient.probe is not None:
        level, in_spl = requested_level(defaults, replace(trial, level_dbfs=trial.ambient.probe.level_dbfs), {})
        probe_path = default_path if in_spl else (*trial_path, "probe")
        yield _PlayedLevel(probe_path, level, in_spl, {}, _nearness_db(defaults, {}))


def _nearness_db(defaults: Defaults, cell: Mapping[AxisName, AxisValue]) -> float:
    """By how much a stimulus is louder at the device than its level, since its talker is nearer than 1 m; else 0."""
    placement = placement_of(defaults, cell)
    return 0.0 if placement is None else max(0.0, placement.direct_gain_db)


def _speaker_of(bench: Bench, cell: Mapping[AxisName, AxisValue]) -> Equipment | None:
    """The loudspeaker that plays the speech of a cell: the one at its position, else the first; None without any."""
    speakers = (speaker for speaker in bench.loudspeakers if speaker.position == cell.get("position"))
    return next(speakers, bench.loudspeakers[0] if bench.loudspeakers else None)
