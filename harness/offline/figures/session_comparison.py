"""A session's stimuli, live against offline: what a device did, and what an engine finds in the same sound.

The same functions count both sides (docs/explanation/wake-statistics.md), the offline side as for injected sound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from harness.model.frozen import frozen
from harness.model.numbers import counted, fixed, signed
from harness.model.offline import OfflineSpot
from harness.model.record import ReviewVerdict
from harness.model.scenario import TrialKind
from harness.model.time import MeasuredDuration, Stamp
from harness.statistics.intervals import LatencyFigures, is_exact_enough, latency_figures
from harness.statistics.significance import Discordance
from harness.wake.counting import Window, match_events
from harness.wake.wake import WakeFigures
from harness.wake.wake_plays import HeardWake, Play, PlayReading, PlayState, assign_events, reading_of

SAME_EVENT_S = 1.0
"""A live and an offline event in ambient sound are the same event if they lie within this distance."""


@frozen
class OfflineDetections:
    """What an engine detected in one stimulus.

    - spots: their places are samples at rate_hz from its start.
    - peak: highest score within the window in which the event of the phrase must lie; None without scores.
    - before_s: place of the last spot in earlier stimuli, in seconds from the start of this one (negative). None
      without one, and if the engine began each stimulus with fresh state.
    """

    spots: tuple[OfflineSpot, ...]
    rate_hz: int
    peak: float | None = None
    before_s: float | None = None


@frozen
class Side:
    """One side of a trial, live or offline.

    - woke: whether it detected the phrase.
    - delay: from the end of the phrase to the event.
    - score: score of that event; without an event, the engine's highest score in its window.
    - extra: number of further events.
    """

    woke: bool
    delay: MeasuredDuration | None = None
    score: float | None = None
    extra: int = 0


@frozen
class ComparedTrial:
    """A wake or command trial on both sides.

    - clip: file name of the recorded stimulus; "" if there is none.
    - notes: possible explanations of a difference.
    """

    trial_id: str
    kind: TrialKind
    conditions: tuple[tuple[str, str], ...]
    live: Side
    offline: Side
    clip: str = ""
    notes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        return self.live.woke is not self.offline.woke


@frozen
class AmbientEvent:
    """A false accept in ambient sound.

    - offset_s: its place in the segment, in seconds from the start.
    - live, offline: whether it occurred on that side; at least one is True.
    """

    trial_id: str
    offset_s: float
    live: bool
    offline: bool
    score: float | None = None


@frozen
class AmbientCounts:
    """False accepts on the same segments of ambient sound.

    - segments: number of segments.
    - live_s: time in which the device demonstrably listened.
    - offline_s: length of the sound.
    """

    segments: int = 0
    live_s: float = 0.0
    offline_s: float = 0.0
    events: tuple[AmbientEvent, ...] = ()

    @property
    def counts(self) -> Discordance:
        """How many events occurred on both sides, and how many on one only. `neither` is 0: it counts events."""
        return Discordance.of([event.live for event in self.events], [event.offline for event in self.events])


@frozen
class DeviceComparison:
    """One device against the engine.

    - ambient: false accepts in ambient sound.
    - live_delays, offline_delays: over trials whose delays on both sides are known well enough.
    - delay_differences: live minus offline, over the same trials.
    - through_air: whether a stimulus was played by a loudspeaker.
    - noise: whether a stimulus had added noise.
    - left_out: (trial, reason) for each stimulus that the engine did not process.
    - conditions: the counts of wake trials in each condition.
    """

    device: str
    trials: tuple[ComparedTrial, ...]
    ambient: AmbientCounts
    live_delays: LatencyFigures
    offline_delays: LatencyFigures
    delay_differences: LatencyFigures
    through_air: bool
    noise: bool
    left_out: tuple[tuple[str, str], ...] = ()
    conditions: tuple[tuple[str, Discordance], ...] = field(default=())

    def counts(self, kind: TrialKind) -> Discordance:
        """Numbers of trials of a kind by the side that woke. In the Discordance, live is the first side."""
        return _discordance(trial for trial in self.trials if trial.kind is kind)


def compare_device(
    figures: WakeFigures,
    device: str,
    detections_by_play: Mapping[str, OfflineDetections],
    *,
    clips: Mapping[str, str],
    notes: Mapping[str, Sequence[str]],
    reasons_left_out: Mapping[str, str],
    threshold: float | None = None,
) -> DeviceComparison:
    """Compares a device with an engine, trial by trial.

    - detections_by_play: the engine's detections, by play_id.
    - clips: file names of recorded stimuli, by the sha256 of the stimulus.
    - notes: remarks from the session, by trial.
    - reasons_left_out: why the engine did not process a stimulus, by play_id.
    - threshold: the engine's; None without scores.
    """
    trials: list[ComparedTrial] = []
    segments: list[tuple[Play, PlayReading]] = []
    left_out: list[tuple[str, str]] = []
    plays = [play for play in figures.plays(device) if play.kind is not TrialKind.PROBE]
    for play in plays:
        detections = detections_by_play.get(play.row.play_id)
        if detections is None:
            left_out.append((play.trial.id, reasons_left_out.get(play.row.play_id, "the engine did not process it")))
            continue
        offline = read_offline(play, detections)
        if play.kind is TrialKind.AMBIENT:
            segments.append((play, offline))
            continue
        trials.append(_compare_trial(play, offline, detections, clips, notes.get(play.trial.id, ()), threshold))
    delays = [
        (trial.live.delay, trial.offline.delay)
        for trial in trials
        if trial.live.delay is not None and trial.offline.delay is not None and is_exact_enough(trial.live.delay)
    ]
    differences = [MeasuredDuration(live.value_s - offline.value_s, live.error_s) for live, offline in delays]
    return DeviceComparison(
        device=device,
        trials=tuple(trials),
        ambient=_ambient_counts(figures, device, segments),
        live_delays=latency_figures([live for live, _ in delays]),
        offline_delays=latency_figures([offline for _, offline in delays]),
        delay_differences=latency_figures(differences),
        through_air=any(not play.target.injected for play in plays),
        noise=any(play.trial.recipe.noise is not None for play in plays),
        left_out=tuple(left_out),
        conditions=_by_condition(trial for trial in trials if trial.kind is TrialKind.WAKE),
    )


def read_offline(play: Play, detections: OfflineDetections) -> PlayReading:
    """Counts the engine's spots in a stimulus, by the rules for sound that is injected into a device."""
    duration_s = play.row.duration_s
    # The same play, as if the device had been given the sound directly, from second 0 of its audio line.
    injected_play = Play(
        play.trial,
        replace(play.target, player=play.target.connection),
        play.row,
        play.settings,
        play.kind,
        started=Stamp(0.0),
        ended=Stamp(duration_s),
        audio_start_s=0.0,
        audio_end_s=duration_s,
        state=PlayState.COUNTED,
    )
    for number, spot in enumerate(detections.spots):
        at_s = spot.end / detections.rate_hz
        injected_play.add(HeardWake(number, Stamp(at_s), 0.0, spot.phrase, spot.score, at_s))
    before_s = -math.inf if detections.before_s is None else detections.before_s
    injected_play.assignment = assign_events([injected_play], (), before_s)[injected_play]
    return reading_of(injected_play, [(0.0, duration_s)])


def _compare_trial(
    play: Play,
    offline: PlayReading,
    detections: OfflineDetections,
    clips: Mapping[str, str],
    trial_notes: Sequence[str],
    threshold: float | None,
) -> ComparedTrial:
    """The trial of a play on both sides. Its notes are filled in only if the sides differ."""
    live = play.reading
    trial = ComparedTrial(
        trial_id=play.trial.id,
        kind=play.kind,
        conditions=play.trial.conditions,
        live=_side(live),
        offline=_side(offline, detections.peak),
        clip=clips.get(play.row.stimulus_sha256, ""),
    )
    if not trial.differs:
        return trial
    notes = [
        *trial_notes,
        *_notes_on_unmatched("live", play, live),
        *_notes_on_unmatched("offline", play, offline, is_live=False),
    ]
    score = trial.offline.score
    if score is not None and threshold is not None:
        side = "above" if score > threshold else "below"
        notes.append(f"offline: score {fixed(score, 3)}, {fixed(abs(score - threshold), 3)} {side} the threshold")
    return replace(trial, notes=tuple(notes))


def _side(reading: PlayReading, peak: float | None = None) -> Side:
    hit = reading.hit
    score = peak if hit is None else hit.score
    return Side(woke=hit is not None, delay=reading.delay, score=score, extra=len(reading.unmatched))


def _notes_on_unmatched(side: str, play: Play, reading: PlayReading, *, is_live: bool = True) -> list[str]:
    """Remarks on a missed phrase: where events lie that do not match it. side: "live" or "offline"."""
    if reading.hit is not None:
        return []
    notes = []
    for event in reading.unmatched:
        # The offline sound begins at second 0 of its audio line.
        event_s = play.place(event) - play.start_s if is_live else event.audio_s or 0.0
        offset = signed(event_s - play.row.query_end_s, 2)
        notes.append(f"{side}: an event {offset} s from the end of the phrase is outside its window")
    if reading.suppressed:
        events = counted(reading.suppressed, "event")
        notes.append(f"{side}: {events} within the refractory time of another event")
    return notes


def _ambient_counts(figures: WakeFigures, device: str, segments: Sequence[tuple[Play, PlayReading]]) -> AmbientCounts:
    """Counts the false accepts of both sides in the same segments, and pairs those that are the same event."""
    live_events: dict[str, list[tuple[float, float | None]]] = {}  # (offset_s, score) by trial
    faults: dict[str, list[float]] = {}  # offset_s of phrases that reviewers heard in the recording, by trial
    for event in figures.unmatched(device):
        if event.trial_id is None or event.offset_s is None:
            continue
        if figures.is_false_accept(event, use_reviews=True):
            live_events.setdefault(event.trial_id, []).append((event.offset_s, event.score))
        elif event.verdict is ReviewVerdict.STIMULUS_FAULT:
            faults.setdefault(event.trial_id, []).append(event.offset_s)
    events: list[AmbientEvent] = []
    for play, offline in segments:
        live = sorted(live_events.get(play.trial.id, []), key=lambda wake: wake[0])
        # The phrase that was heard in the recording is in the recording offline, too.
        fault_times = faults.get(play.trial.id, ())
        detected = sorted(((wake.audio_s or 0.0, wake.score) for wake in offline.unmatched), key=lambda wake: wake[0])
        spots = [
            (at_s, score)
            for at_s, score in detected
            if not any(abs(at_s - fault_s) <= SAME_EVENT_S for fault_s in fault_times)
        ]
        windows = [Window(at_s - SAME_EVENT_S, at_s + SAME_EVENT_S, at_s) for at_s, _ in live]
        pairs = dict(match_events(windows, [at_s for at_s, _ in spots], 0.0).pairs)
        paired_spots = set(pairs.values())
        for index, (at_s, score) in enumerate(live):
            events.append(AmbientEvent(play.trial.id, at_s, live=True, offline=index in pairs, score=score))
        for index, (at_s, score) in enumerate(spots):
            if index not in paired_spots:
                events.append(AmbientEvent(play.trial.id, at_s, live=False, offline=True, score=score))
    return AmbientCounts(
        segments=len(segments),
        live_s=sum(play.reading.exposure_s for play, _ in segments),
        offline_s=sum(play.row.duration_s for play, _ in segments),
        events=tuple(events),
    )


def _by_condition(trials: Iterable[ComparedTrial]) -> tuple[tuple[str, Discordance], ...]:
    """The counts in each condition, in the order in which axes and labels first occur."""
    cells: dict[str, dict[str, list[ComparedTrial]]] = {}
    for trial in trials:
        for axis, label in trial.conditions:
            cells.setdefault(axis, {}).setdefault(label, []).append(trial)
    return tuple(
        (f"{axis}={label}", _discordance(trials_of_label))
        for axis, labels in cells.items()
        for label, trials_of_label in labels.items()
    )


def _discordance(trials: Iterable[ComparedTrial]) -> Discordance:
    sides = [(trial.live.woke, trial.offline.woke) for trial in trials]
    return Discordance.of([live for live, _ in sides], [offline for _, offline in sides])
