"""Checks whether the loudspeakers of a bench can play the levels and the noise of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime

from harness.base.findings import Findings, KeyPath
from harness.model.bench import Bench, Equipment
from harness.model.errors import nearest
from harness.model.numbers import exact, fixed
from harness.model.scenario import AxisName, AxisValue, Scenario, TrialKind, TrialTemplate, axes_of, requested_level
from harness.model.stimulus import NoiseSpec, Opening
from harness.scenario.matrix import cells
from harness.scenario.trial_playback import addressed_devices, cells_of, is_injected, listening_devices, talker
from harness.sound.calibration import problem_of
from harness.sound.level import active_speech_level
from harness.sound.recordings import read as read_recording

_LOUD: frozenset[AxisName] = frozenset(("level_spl", "level_dbfs", "position", "noise", "opening"))
"""The axes that decide how loud a loudspeaker plays."""


def check_noise(scenario: Scenario, bench: Bench, findings: Findings) -> None:
    """Notes problems of noise with positions of its own.

    The loudspeakers there may be unable to play it, or the noise may have an unknown level at the device.
    """
    for number, trial in enumerate(scenario.trials):
        cells_with_noise = [
            (axis, noise)
            for axis in (cells_of(scenario, trial) if "noise" in axes_of(trial) else ())
            if isinstance(noise := axis.get("noise", scenario.defaults.noise), NoiseSpec) and noise.positions
        ]
        problems = (
            problem for axis, noise in cells_with_noise for problem in _problems_of_noise(bench, trial, noise, axis)
        )
        for problem in dict.fromkeys(problems):
            findings.add(("trials", number), *problem)


def _problems_of_noise(
    bench: Bench, trial: TrialTemplate, noise: NoiseSpec, axis: Mapping[AxisName, AxisValue]
) -> Iterator[tuple[str, str]]:
    premise = f"the noise of {trial.id!r} has positions"
    if trial.kind not in (TrialKind.WAKE, TrialKind.COMMAND):
        yield f"{premise}, which apply to wake trials and commands", "Exclude it for this trial, or remove positions"
        return
    if any(is_injected(device, trial) for device in listening_devices(trial, bench)):
        yield f"{premise}, but a device gets the sound over its connection", "Write `route: loudspeaker`"
    # If several loudspeakers have the same position, the first one counts, as for the speech.
    speakers = {speaker.position: speaker for speaker in reversed(bench.loudspeakers)}
    for position in noise.positions:
        if position not in speakers:
            hint = nearest(
                position, sorted(known_position for known_position in speakers if known_position), listed="Positions"
            )
            yield f"{premise}, but the bench {bench.id!r} has no loudspeaker at {position!r}", hint
    speech = _speaker_of(bench, axis)
    if speech is None or any(position not in speakers for position in noise.positions):
        return
    used = [speakers[position] for position in noise.positions]
    if speech in used:
        yield f"{premise}, but {speech.id!r} also plays the speech", "Name other positions, or remove positions"
    if noise.level_dbfs is None:
        for speaker in (speech, *used):
            if speaker.calibration is None:
                remedy = f"Run: harness admin calibrate {bench.path} {speaker.id}. Or write level_dbfs in the noise"
                yield f"{premise}, but the level of {speaker.id!r} at the device is not known", remedy
        places = {speaker.calibration.at for speaker in (speech, *used) if speaker.calibration}
        if len(places) > 1:
            yield (
                f"{premise}, but their loudspeakers were calibrated at different places",
                "Calibrate them at the device",
            )


def check_levels(scenario: Scenario, bench: Bench, findings: Findings) -> None:
    """Notes each level that a loudspeaker is to play but cannot. Does nothing if problems were found before."""
    if findings.problems:  # The scenario may name a device that the bench lacks.
        return
    today = datetime.now().astimezone().date()
    notes: set[tuple[KeyPath, str]] = set()
    for number, trial in enumerate(scenario.trials):
        if all(talker(scenario, trial, axis) for axis in cells_of(scenario, trial)):
            continue
        through_air = any(not is_injected(device, trial) for device in addressed_devices(trial, bench))
        for key_path, level, in_spl, axis in _levels(
            scenario, number, any(loudspeaker.calibration for loudspeaker in bench.loudspeakers)
        ):
            noise = axis.get("noise")
            noise_spl = noise.level_spl if isinstance(noise, NoiseSpec) else None
            if not through_air and (in_spl or noise_spl is not None):
                findings.add(
                    key_path, f"{trial.id!r} is played over a wire, where dB SPL does not apply", "Use level_dbfs"
                )
            if not through_air or not bench.loudspeakers:
                continue
            speaker = _speaker_of(bench, axis)
            assert speaker is not None, bench.id
            for summary, problem in _unplayable(bench, speaker, level, in_spl, noise, today):
                lower = "Lower the level, or that of the noise" if "noise" in problem else "Lower the level"
                remedy = lower if "above" in problem else f"Run: harness admin calibrate {bench.path} {speaker.id}"
                if (key_path, summary) not in notes:
                    findings.add(key_path, f"{summary}: {problem}", remedy)
                notes.add((key_path, summary))


def _unplayable(
    bench: Bench, speaker: Equipment, level: float, in_spl: bool, noise: AxisValue, today: date
) -> Iterator[tuple[str, str]]:
    """Pairs of what cannot be played and why, for one level and the noise with it; none if all can be played.

    level: of the speech, in dB SPL if `in_spl`, else in dBFS. noise: a NoiseSpec, or anything else for no noise.
    """
    calibration, noise_dbfs = speaker.calibration, None
    dbfs = level
    if in_spl:
        dbfs = calibration.dbfs(level) if calibration else 0.0
    if isinstance(noise, NoiseSpec) and (spl := noise.level_spl) is not None:
        noise_dbfs = calibration.dbfs(spl) if calibration else 0.0
        if problem := problem_of(speaker, spl, noise_dbfs, today):
            yield f"the loudspeaker {speaker.id!r} cannot play noise at {exact(spl)} dB SPL", problem
            return
    elif isinstance(noise, NoiseSpec):
        noise_dbfs = noise.dbfs(dbfs)
    if problem := problem_of(speaker, level if in_spl else None, dbfs, today, noise_dbfs):
        stated = f"{exact(round(level, 1))} {'dB SPL' if in_spl else 'dBFS'}"
        yield f"the loudspeaker {speaker.id!r} cannot play {stated}", problem
    if not isinstance(noise, NoiseSpec) or noise_dbfs is None:
        return
    for noise_speaker in bench.loudspeakers:
        if noise_speaker.position in noise.positions and (noise_calibration := noise_speaker.calibration) is not None:
            own_dbfs = noise_dbfs + noise.gain_db(calibration or noise_calibration, noise_calibration)
            if problem := problem_of(noise_speaker, None, own_dbfs, today):
                yield f"the loudspeaker {noise_speaker.id!r} cannot play noise at {fixed(own_dbfs, 1)} dBFS", problem


def _levels(
    scenario: Scenario, number: int, measured: bool
) -> Iterator[tuple[KeyPath, float, bool, Mapping[AxisName, AxisValue]]]:
    """Each level at which a trial plays something.

    Yields where the level is written, the level, whether it is in dB SPL, and the values of axes such as position and
    noise. Openings come too, without noise. number: of the trial in the scenario. measured: whether to include
    recordings that keep their own level.
    """
    trial, defaults = scenario.trials[number], scenario.defaults
    trial_path: KeyPath = ("trials", number)
    by_default: KeyPath = trial_path if defaults.level_spl is None else ("defaults", "level_spl")
    axes = {axis.name: axis for axis in scenario.matrix.axes if axis.name in _LOUD & axes_of(trial)}
    recorded = [read_recording(path) for path in trial.recordings if trial.as_recorded and measured]
    quiet: dict[AxisName, AxisValue] = {"noise": defaults.noise} if "noise" in axes_of(trial) else {}
    for cell in dict.fromkeys(tuple(pair for pair in cell if pair[0] in axes) for cell in cells(scenario.matrix)):
        numbers = {name: axes[name].labels.index(text) for name, text in cell}
        values = quiet | {name: axes[name].values[nth] for name, nth in numbers.items()}
        if not trial.as_recorded or trial.kind is TrialKind.COMMAND:
            level, in_spl = requested_level(defaults, trial, values)
            by_axis = [("matrix", "axes", name, nth) for name, nth in numbers.items() if name.startswith("level_")]
            declared_in = by_default if in_spl else trial_path
            yield by_axis[0] if by_axis else declared_in, level, in_spl, values
        opening, nth = values.get("opening", trial.opening), numbers.get("opening")
        if isinstance(opening, Opening):
            place: KeyPath = (*trial_path, "opening") if nth is None else ("matrix", "axes", "opening", nth)
            level = opening.level_dbfs if opening.level_spl is None else opening.level_spl
            yield place, level, opening.level_spl is not None, values | {"noise": None}
        for sound in recorded:
            if (active := active_speech_level(sound)) is not None:
                yield (*trial_path, "recordings"), active.level_dbfs, False, values
    if trial.ambient is not None and trial.ambient.probe is not None:
        level, in_spl = requested_level(defaults, replace(trial, level_dbfs=trial.ambient.probe.level_dbfs), {})
        yield by_default if in_spl else (*trial_path, "probe"), level, in_spl, {}


def _speaker_of(bench: Bench, axis: Mapping[AxisName, AxisValue]) -> Equipment | None:
    """The loudspeaker that plays the speech of a cell: the one at its position, else the first; None without any."""
    speakers = (speaker for speaker in bench.loudspeakers if speaker.position == axis.get("position"))
    return next(speakers, bench.loudspeakers[0] if bench.loudspeakers else None)
