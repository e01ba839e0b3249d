"""Runs the sounds of a session's trials through an offline engine."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.base.places import SessionFolder
from harness.base.ports import OfflineEngine, Renders, ScoresSound, SpotsPhrases
from harness.devices.active_play import to_pcm
from harness.model.errors import EngineError, HarnessError, InputError, LogError
from harness.model.numbers import fixed
from harness.model.observation import LogLine, StimulusHeard
from harness.model.offline import OfflineSpot, ScoreTrack
from harness.model.record import AttemptFinished, AttemptStarted, Clip, Observed, SessionStarted, StimulusStored
from harness.model.scenario import TrialKind
from harness.model.stimulus import Waveform
from harness.model.trial import Outcome
from harness.offline.figures.session_comparison import OfflineDetections
from harness.offline.one_file import detect_spots
from harness.session.log.reader import LogReader, read_clip
from harness.sound.stimuli.renderer import renderer
from harness.wake.wake import WakeFigures
from harness.wake.wake_plays import Play

MIN_CORRELATION = 0.3
"""Below this correlation, the stimulus is hardly present in the microphone's recording."""
_MAX_NOTES = 6
"""Most remarks for a trial."""
StimulusProgress = Callable[[int, int], None]
"""Called with the number of stimuli that are done, and the number of all."""


@dataclass(slots=True)
class SessionStimuli:
    """What a session played, from its log.

    - clips: recorded stimuli, by the sha256 of the stimulus.
    - start_rows: play_id → number of the row at which its attempt began.
    - notes: trial → remarks that may explain its result, such as an interrupted attempt.
    """

    folder: SessionFolder
    started: SessionStarted
    figures: WakeFigures
    clips: dict[str, Clip] = field(default_factory=dict)
    start_rows: dict[str, int] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(device.device for device in self.figures.snapshot().devices)

    def plays(self, devices: Sequence[str]) -> tuple[Play, ...]:
        """The plays that count for trials of these devices, each stimulus once, in the order in which they were
        played. Probes are left out."""
        play_by_id = {
            play.row.play_id: play
            for device in devices
            for play in self.figures.plays(device)
            if play.kind is not TrialKind.PROBE
        }
        return tuple(sorted(play_by_id.values(), key=lambda play: self.start_rows[play.row.play_id]))

    def sound(self, play: Play, renders: Renders) -> Waveform:
        """The sound that was played: rendered again sample for sample, or else its clip (16 bits).

        Raises LogError if there is neither.
        """
        reason = "the result differs: a voice or a recording has changed"
        try:
            stimulus = renders.render(play.trial.recipe)
            if stimulus.sha256 == play.row.stimulus_sha256:
                return stimulus.waveform
        except HarnessError as error:
            reason = error.what
        clip = self.clips.get(play.row.stimulus_sha256)
        if clip is None:
            raise LogError(
                f"its sound cannot be rendered again ({reason}), and no clip is stored",
                remedy="Run the command where the session ran, with its voices and recordings",
            )
        return read_clip(self.folder.clips, clip)


def read_stimuli(folder: Path) -> SessionStimuli:
    """Reads a session from its folder, also while it runs.

    Raises LogError if the log cannot be read. Raises InputError if it has no listening trials.
    """
    stimuli: SessionStimuli | None = None
    figures = WakeFigures()
    with LogReader(folder) as reader:
        for entry in reader.entries():
            figures.add(entry)
            if isinstance(entry.record, SessionStarted):
                stimuli = SessionStimuli(SessionFolder(folder), entry.record, figures)
            if stimuli is None:
                continue
            match entry.record:
                case StimulusStored(sha256=sha256, clip=clip):
                    stimuli.clips[sha256] = clip
                case AttemptStarted() as row:
                    stimuli.start_rows[row.play_id] = entry.seq
                case _:
                    for trial_id, text in _notes_in(entry.record):
                        trial_notes = stimuli.notes.setdefault(trial_id, [])
                        if text not in trial_notes and len(trial_notes) < _MAX_NOTES:
                            trial_notes.append(text)
    if stimuli is None or not stimuli.devices:
        raise InputError(
            "the session has no wake, command or ambient trials",
            remedy="There is nothing to compare. To see the session: harness report show",
        )
    return stimuli


def detect_in_session(
    engine: OfflineEngine,
    stimuli: SessionStimuli,
    devices: Sequence[str],
    *,
    continuous: bool = False,
    progress: StimulusProgress = lambda done, total: None,
) -> tuple[dict[str, OfflineDetections], dict[str, str]]:
    """What an engine detects in each stimulus, by play_id; and why other stimuli were left out, by play_id.

    continuous: one engine state over all stimuli in playing order, as for a device. Raises InputError for an engine
    without wake phrases. Raises EngineError if a continuous run fails.
    """
    if not isinstance(engine, ScoresSound | SpotsPhrases):
        raise InputError(
            "this engine is a recogniser and does not detect wake phrases",
            remedy="Choose a wake engine: harness evaluate engines",
        )
    plays = stimuli.plays(devices)
    renders = renderer()
    left_out: dict[str, str] = {}
    if continuous:
        return _detect_continuously(engine, stimuli, plays, renders, progress, left_out), left_out
    detections: dict[str, OfflineDetections] = {}
    rate_hz = engine.facts.rate_hz
    for done, play in enumerate(plays):
        progress(done, len(plays))
        try:
            samples = to_pcm(stimuli.sound(play, renders), rate_hz)
            spots, tracks = _play_with_retries(engine, samples)
        except (EngineError, LogError) as error:
            left_out[play.row.play_id] = str(error)
            continue
        detections[play.row.play_id] = OfflineDetections(
            spots, rate_hz, _peak_score(tracks, play, 0, len(samples), rate_hz)
        )
    progress(len(plays), len(plays))
    return detections, left_out


def _detect_continuously(
    engine: OfflineEngine,
    stimuli: SessionStimuli,
    plays: Sequence[Play],
    renders: Renders,
    progress: StimulusProgress,
    left_out: dict[str, str],
) -> dict[str, OfflineDetections]:
    """The detections in all stimuli as one sound. Adds the stimuli without a sound to `left_out`, with the reason."""
    rate_hz = engine.facts.rate_hz
    spans: list[tuple[Play, int, int]] = []  # where each stimulus lies in the whole sound, in samples

    def sounds() -> Iterator[npt.NDArray[np.int16]]:
        offset = 0
        for done, play in enumerate(plays):
            progress(done, len(plays))
            try:
                samples = to_pcm(stimuli.sound(play, renders), rate_hz)
            except LogError as error:
                left_out[play.row.play_id] = str(error)
                continue
            spans.append((play, offset, offset + len(samples)))
            offset += len(samples)
            yield samples
        progress(len(plays), len(plays))

    spots, tracks = detect_spots(engine, sounds())
    detections: dict[str, OfflineDetections] = {}
    _, _, sound_end = spans[-1] if spans else (None, 0, 0)
    for play, start, end in spans:
        earlier_ends = [spot.end for spot in spots if spot.end <= start]
        # A spot that the engine reports beyond the end of the sound belongs to the last stimulus.
        last_end = math.inf if end == sound_end else end
        inside = [spot for spot in spots if start < spot.end <= last_end]
        detections[play.row.play_id] = OfflineDetections(
            spots=tuple(
                OfflineSpot(spot.phrase, max(0, spot.start - start), spot.end - start, spot.score) for spot in inside
            ),
            rate_hz=rate_hz,
            peak=_peak_score(tracks, play, start, end, rate_hz),
            before_s=(earlier_ends[-1] - start) / rate_hz if earlier_ends else None,
        )
    return detections


def _play_with_retries(
    engine: OfflineEngine, samples: npt.NDArray[np.int16]
) -> tuple[tuple[OfflineSpot, ...], tuple[ScoreTrack, ...]]:
    """Plays one stimulus. Repeats it after an EngineError if the engine declares `more_tries`, as a device does whose
    link may be lost."""
    for _ in range(getattr(engine, "more_tries", 0)):
        with contextlib.suppress(EngineError):
            return detect_spots(engine, [samples])
    return detect_spots(engine, [samples])


def _peak_score(tracks: Sequence[ScoreTrack], play: Play, start: int, end: int, rate_hz: int) -> float | None:
    """The highest score in the window of the phrase, from `window_before_s` before it to `window_after_s` after it. Of
    ambient sound, the highest in all of it. start, end: place of the stimulus, in samples. None without scores."""
    low, high = start, end
    if play.kind is not TrialKind.AMBIENT:
        low = start + round((play.row.query_start_s - play.settings.window_before_s) * rate_hz)
        high = min(end, start + round((play.row.query_end_s + play.settings.window_after_s) * rate_hz))
    peaks: list[float] = []
    for track in tracks:
        first = max(0, -(-(low - track.first_end) // track.step))  # rounded up
        last = (high - track.first_end) // track.step + 1
        inside = track.scores[first : max(first, last)]
        if len(inside):
            peaks.append(float(inside.max()))
    return max(peaks, default=None)


def _notes_in(record: object) -> Iterator[tuple[str, str]]:
    """Remarks in a record of the log that may explain the result of a trial, with the trial."""
    match record:
        case AttemptFinished(outcome=Outcome.INTERRUPTED) as row:
            yield row.trial_id, f"a previous attempt was interrupted ({row.cause or 'no cause reported'})"
        case Observed(observation=StimulusHeard(correlation=correlation), trial_id=str(trial_id)) if (
            correlation < MIN_CORRELATION
        ):
            yield trial_id, f"the microphone barely recorded it (correlation {fixed(correlation, 2)})"
        case Observed(observation=LogLine(source=source, text=text), trial_id=str(trial_id)) if "missing" in text:
            yield trial_id, f"{source}: {text}"
        case _:
            return
