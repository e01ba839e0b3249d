"""A session's wake statistics from the rows of its log, live or replayed.

How they are counted: docs/explanation/wake-statistics.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from itertools import combinations

from harness.base.grouping import group_by
from harness.model import observation as observations
from harness.model import record as rows
from harness.model.frozen import frozen
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.time import MeasuredDuration
from harness.model.trial import Outcome, Trial
from harness.statistics.intervals import LatencyFigures, latency_figures
from harness.statistics.significance import Difference, Discordance
from harness.statistics.word_intervals import unpaired_rate_difference
from harness.wake.unmatched import UnmatchedEvents
from harness.wake.utterances import Utterances
from harness.wake.wake_device import DeviceFigures
from harness.wake.wake_plays import HeardWake, Play, PlayState
from harness.wake.wake_progress import DeviceWake, Rate, UnmatchedWake, WakeProgress

AttemptKey = tuple[str, int, int]
"""Id of the trial, take, attempt."""


@frozen
class _TakePlays:
    """The plays of a trial that count: those of one take, by the name of the device."""

    take: int
    plays: dict[str, Play]


class WakeFigures:
    """Computes wake statistics from a log's rows, which must be added in their order; not thread-safe.

    It ignores rows that it has seen (seq not above the last), so a client may request rows again.
    """

    def __init__(self) -> None:
        self._seq = 0
        self._boot = ""
        self._trials: dict[str, Trial] = {}
        self._device_by_source: dict[str, str] = {}
        self._devices: dict[str, DeviceFigures] = {}
        self._events = UnmatchedEvents()
        self._utterances = Utterances()
        self._running_plays: dict[AttemptKey, dict[str, Play]] = {}
        """Attempt → name of a device → play."""
        self._last_plays: dict[AttemptKey, dict[str, Play]] = {}
        """The plays of the attempt that ended last."""
        self._counting_takes: dict[str, _TakePlays] = {}
        """Id of a trial → its plays that count."""

    @property
    def settings(self) -> WakeSettings:
        """The settings that all trials of a session share; the defaults without trials in which devices listen."""
        listening = next((trial.listening for trial in self._trials.values() if trial.listening), None)
        return listening.settings if listening else WakeSettings()

    def add(self, entry: rows.Entry) -> None:
        """Adds a row of the log."""
        if entry.seq <= self._seq:
            return
        self._seq = entry.seq
        match entry.record:
            case rows.Observed() as row if self._devices:  # most rows
                self._observe(row, entry)
            case rows.SessionStarted() as started:
                self._add_plan(started)
            case rows.EngineStarted(boot_id=boot):
                same_time, self._boot = boot == self._boot, boot
                for attempt in list(self._running_plays):
                    self._end_attempt(attempt, is_counted=False, wall_s=entry.wall_s)
                self._utterances = Utterances()  # the clock of another run may begin at 0
                for device in self._devices.values():
                    device.begin_run(entry.seq, self._utterances, same_time=same_time)
            case rows.AttemptStarted() as row if row.trial_id in self._trials:
                self._begin_attempt(row)
            case rows.StimulusSpoken() as stimulus:
                for play in self._running_plays.get((stimulus.trial_id, stimulus.take, stimulus.attempt), {}).values():
                    play.row = stimulus.with_measured_times(play.row)
            case rows.AttemptFinished() as row:
                is_counted = row.outcome is Outcome.COUNTED or self._is_missed_probe(row)
                attempt = row.trial_id, row.take, row.attempt
                self._end_attempt(attempt, is_counted=is_counted, wall_s=entry.wall_s)
            case rows.TrialFinished() as row:
                if row.outcome is Outcome.NO_WAKE:
                    self._add_missed_probe(row)
                elif row.outcome is not Outcome.COUNTED:
                    self._exclude_earlier_take(row.trial_id, row.take)
            case rows.EventReviewed(event_seq=seq, word=word, by=reviewer):
                self._mark_changed(self._events.set_review(seq, word, reviewer))
            case rows.EventClipped(event_seq=seq, clip=clip):
                self._mark_changed(self._events.set_clip(seq, clip))
            case rows.DecisionReached(device=name, figure=figure, passed=passed):
                if name in self._devices:
                    self._devices[name].decisions[figure] = passed
                    self._mark_changed(name)
            case _:
                pass  # Other rows do not change wake statistics.

    def snapshot(self) -> WakeProgress:
        """All statistics so far."""
        if not self._devices:
            return WakeProgress()
        return WakeProgress(
            devices=tuple(device.snapshot() for device in self._devices.values()),
            unmatched=self._events.latest(),
            planned=len(self._trials),
            counted=sum(not _has_missed_probe(counting.plays) for counting in self._counting_takes.values()),
        )

    def sequential_snapshot(self) -> WakeProgress:
        """The part of `snapshot` that sequential tests need. It is fast, since each trial calls it twice."""
        return WakeProgress(devices=tuple(device.sequential_snapshot() for device in self._devices.values()))

    def plays(self, device: str) -> tuple[Play, ...]:
        """The plays of a device that count, one for each trial, in the order of the plan."""
        takes = [self._counting_takes[trial_id] for trial_id in self._trials if trial_id in self._counting_takes]
        return tuple(counting.plays[device] for counting in takes if device in counting.plays)

    def plays_by_trial(self) -> Mapping[str, list[Play]]:
        """Id of a trial → its plays that count, one for each device."""
        devices = [device.device for device in self.snapshot().devices]
        return group_by((play.trial.id, play) for device in devices for play in self.plays(device))

    def hits(self, device: str) -> Mapping[str, bool]:
        """Id of a wake trial that counts → whether the device woke."""
        plays = self.plays(device)
        return {play.trial.id: play.reading.hit is not None for play in plays if play.kind is TrialKind.WAKE}

    def is_explained(self, seq: int) -> bool | None:
        """Whether a stimulus or an earlier event explains the wake event of that row; None while its attempt runs."""
        for device in self._devices.values():
            is_explained = device.is_explained(seq)
            if is_explained is not False:  # None is for an event of this device too
                return is_explained
        return False

    def unmatched(self, device: str) -> tuple[UnmatchedWake, ...]:
        """All events of a device that matched no stimulus, in their order."""
        return self._events.of_device(device)

    def unaccounted(self) -> dict[str, int]:
        """Devices whose numbers of events do not add up → number of events that are in no result; {} if all is right.

        Results are hits, parts of other events, events of openings, and unmatched ones.
        """
        counts = {name: device.unaccounted() for name, device in self._devices.items()}
        return {name: count for name, count in counts.items() if count}

    def is_false_accept(self, event: UnmatchedWake, *, use_reviews: bool) -> bool:
        """Whether an event counts as a false accept, by the rules alone or also by the reviews."""
        return self._events.is_false_accept(event, use_reviews=use_reviews)

    def _add_plan(self, row: rows.SessionStarted) -> None:
        """Creates the devices of the plan, and notes what they should report."""
        for trial in row.trials:
            if trial.listening is None:
                continue
            self._trials[trial.id] = trial
            settings = trial.listening.settings
            self._events.count_in_vocabulary = settings.count_in_vocabulary
            for target in trial.listening.targets:
                self._device_by_source.update(dict.fromkeys(target.sources, target.device))
                if target.device not in self._devices:
                    figures = DeviceFigures(target, settings, self._events, self._utterances)
                    self._devices[target.device] = figures
                self._devices[target.device].listening_states.update(target.listening_states)
                if trial.kind is TrialKind.WAKE:
                    self._devices[target.device].planned_speakers.add(trial.speaker)
                if trial.listening.probe_every_s:
                    self._devices[target.device].proofs.expect_probes(trial.listening.probe_every_s)

    def _begin_attempt(self, row: rows.AttemptStarted) -> None:
        trial = self._trials[row.trial_id]
        if (listening := trial.listening) is None:
            return
        plays: dict[str, Play] = {}
        for target in listening.targets:
            plays[target.device] = play = Play(trial, target, row, listening.settings, listening.kind)
            self._devices[target.device].begin_attempt(play)
        self._running_plays[row.trial_id, row.take, row.attempt] = plays

    def _end_attempt(self, attempt: AttemptKey, *, is_counted: bool, wall_s: float) -> None:
        """Ends the plays of an attempt. If they count, they replace those of an earlier take of the trial."""
        plays = self._running_plays.pop(attempt, None)
        if plays is None:
            return
        self._last_plays = {attempt: plays}
        trial_id, take, _ = attempt
        if is_counted:
            self._exclude_earlier_take(trial_id, take)
            if trial_id in self._counting_takes:  # an earlier attempt of this take: a probe that was repeated
                self._exclude_plays(trial_id)
            self._counting_takes[trial_id] = _TakePlays(take, plays)
        for device, play in plays.items():
            self._devices[device].finish_attempt(play, is_counted=is_counted, wall_s=wall_s)

    def _exclude_earlier_take(self, trial_id: str, take: int) -> None:
        """Removes the plays of the earlier take of a trial, which this take replaces."""
        counting = self._counting_takes.get(trial_id)
        if counting is not None and counting.take < take:
            self._exclude_plays(trial_id)

    def _exclude_plays(self, trial_id: str) -> None:
        """Removes the plays of a trial that count."""
        for device, play in self._counting_takes.pop(trial_id).plays.items():
            self._devices[device].exclude(play)

    def _is_missed_probe(self, row: rows.AttemptFinished) -> bool:
        """Whether an attempt was a probe that some device missed although it was played completely."""
        trial = self._trials.get(row.trial_id)
        is_probe = trial is not None and trial.listening is not None and trial.listening.kind is TrialKind.PROBE
        return is_probe and row.outcome is Outcome.NO_WAKE

    def _add_missed_probe(self, row: rows.TrialFinished) -> None:
        """Records for each device that missed a probe in all attempts that nothing proves that it listened."""
        counting = self._counting_takes.get(row.trial_id)
        if counting is None:
            return
        for name, play in counting.plays.items():
            if play.kind is TrialKind.PROBE and play.reading.hit is None:
                self._devices[name].proofs.add_missed_probe(play.started.at_s if play.started else 0.0)

    def _observe(self, row: rows.Observed, entry: rows.Entry) -> None:
        """Applies an observation: to one device if a device reported it, else to all that it may concern."""
        observation = row.observation
        name = self._device_by_source.get(observation.source)
        device = self._devices.get(name) if name is not None else None
        match observation:
            case observations.Wake() if name is not None and device is not None:  # most observations
                plays_only = row.trial_id is not None and row.trial_id not in self._trials
                event = HeardWake(
                    seq=entry.seq,
                    at=observation.at,
                    wall_s=entry.wall_s,
                    phrase=observation.phrase,
                    score=observation.score,
                    audio_s=observation.audio_s,
                    source=observation.source,
                    reports=(),
                    inferred=observation.inferred,
                    plays_only=plays_only,
                )
                self._utterances.add_wake(name, observation.at.at_s)
                device.add_report(event)
            case observations.StimulusStarted() | observations.StimulusEnded():
                self._update_sound(observation, self._plays_of(row))
            case observations.StimulusHeard():
                for device in self._devices.values():
                    device.set_found_start(observation)
            case observations.HostStalled():
                for device in self._devices.values():
                    device.add_stall(observation)
            case observations.SpeechStarted() | observations.Earcon():
                if isinstance(observation, observations.SpeechStarted):
                    self._utterances.begin_speech(observation.source, observation.at.at_s)
                for device in self._devices.values():
                    device.add_sound(observation.source, observation.at, row.trial_id)
            case observations.SpeechEnded():
                self._utterances.end_speech(observation.source, observation.at.at_s)
            case _ if name is not None and device is not None:
                self._observe_device(device, observation, self._plays_of(row).get(name))
            case _:
                pass  # It concerns no device that listens.

    def _observe_device(self, device: DeviceFigures, observation: observations.Observation, play: Play | None) -> None:
        """Applies an observation of one device. play: its play in the attempt to which the observation is credited."""
        match observation:
            case observations.Transcript(final=True) | observations.Intent():
                if play is not None and play.state is PlayState.RUNNING:
                    play.words.append(observation)
            case observations.ListeningProved():
                device.absences.pop(observation.source, None)
                device.proofs.own.add(observation)
                device.apply_proofs()
            case observations.Status(state=state):
                self._utterances.add_status(device.device, observation)
                if state in (observations.DeviceState.STARTED, observations.DeviceState.GONE):
                    device.add_cut(observation.at.at_s)
                elif state in device.listening_states:
                    device.proofs.own.add(
                        observations.ListeningProved(observation.source, observation.at, observations.Proof.STATUS)
                    )
                    device.apply_proofs()
                if state is observations.DeviceState.GONE:
                    device.absences[observation.source] = observation.detail or "the device is gone"
                else:
                    device.absences.pop(observation.source, None)
                    device.lost_links.pop(observation.source, None)
                device.changed = True
            case observations.LinkLost(what=problem):
                self._utterances.end_speech(device.device, observation.at.at_s)
                device.add_cut(observation.at.at_s)
                device.lost_links[observation.source], device.changed = problem, True
            case observations.LinkBack():
                device.lost_links.pop(observation.source, None)
                device.changed = True
            case observations.ClockFitted(error_s=error_s):
                device.clock_error_s, device.changed = error_s, True
            case _:
                pass  # Log lines, responses and meters do not change wake statistics.

    def _plays_of(self, row: rows.Observed) -> Mapping[str, Play]:
        """The plays of the attempt that an observation is credited to, by device; also just after its end."""
        attempt = row.trial_id or "", row.take or 0, row.attempt or 0
        return self._running_plays.get(attempt) or self._last_plays.get(attempt) or {}

    def _update_sound(
        self, observation: observations.StimulusStarted | observations.StimulusEnded, plays: Mapping[str, Play]
    ) -> None:
        """Sets the start or the end of the running plays whose sound this player plays."""
        for name, play in plays.items():
            if play.target.player != observation.source or play.state is not PlayState.RUNNING:
                continue
            if isinstance(observation, observations.StimulusStarted):
                self._devices[name].begin_sound(play, observation)
            else:
                play.ended, play.audio_end_s = observation.at, observation.audio_s
            self._mark_changed(name)

    def _mark_changed(self, name: str | None) -> None:
        device = None if name is None else self._devices.get(name)
        if device is not None:
            device.changed = True


def _has_missed_probe(plays: Mapping[str, Play]) -> bool:
    """Whether some device missed a probe, so that the attempt did not end as COUNTED."""
    return any(play.kind is TrialKind.PROBE and play.reading.hit is None for play in plays.values())


MAX_DEVICES_IN_PAIRS = 3
"""Up to this number of devices, all pairs are compared. With more, each is compared with the first."""


@frozen
class DevicePair:
    """Two devices, compared on the wake trials that count for both.

    - only_first, only_second: ids of the trials in which only that device woke.
    - accepts: false accepts of each, after review.
    - lag: how much later the second device woke, in the trials in which both did.
    """

    first: str
    second: str
    counts: Discordance
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    accepts: tuple[Rate, Rate] = (Rate(), Rate())
    lag: LatencyFigures = field(default_factory=LatencyFigures)

    @property
    def rates(self) -> Difference | None:
        """False accepts per hour of the first device minus those of the second; None unless both have exposure."""
        first, second = self.accepts
        return unpaired_rate_difference(first.count, first.hours, second.count, second.hours)


def comparisons(figures: WakeFigures, *, every_pair: bool = False) -> tuple[DevicePair, ...]:
    """Comparisons of a session's devices, in the order of the plan; none with fewer than two."""
    devices = figures.snapshot().devices
    if every_pair or len(devices) <= MAX_DEVICES_IN_PAIRS:
        pairs = list(combinations(devices, 2))
    else:
        pairs = [(devices[0], device) for device in devices[1:]]
    return tuple(_compare(figures, first, second) for first, second in pairs)


def _compare(figures: WakeFigures, first: DeviceWake, second: DeviceWake) -> DevicePair:
    """The comparison of two devices on the trials that count for both."""
    first_woke, second_woke = figures.hits(first.device), figures.hits(second.device)
    first_plays = {play.trial.id: play for play in figures.plays(first.device)}
    second_plays = {play.trial.id: play for play in figures.plays(second.device)}
    shared = [trial for trial in first_woke if trial in second_woke]
    lags = [_wake_lag(first_plays[trial], second_plays[trial]) for trial in shared]
    return DevicePair(
        first=first.device,
        second=second.device,
        counts=Discordance.of([first_woke[trial] for trial in shared], [second_woke[trial] for trial in shared]),
        only_first=tuple(trial for trial in shared if first_woke[trial] and not second_woke[trial]),
        only_second=tuple(trial for trial in shared if second_woke[trial] and not first_woke[trial]),
        accepts=(first.after_review, second.after_review),
        lag=latency_figures([lag for lag in lags if lag is not None]),
    )


def _wake_lag(first: Play, second: Play) -> MeasuredDuration | None:
    """How much later the second device woke than the first at one stimulus; None unless both woke.

    Sound from one player begins at the same time for both, so the error of its start does not count.
    """
    hit, other = first.reading.hit, second.reading.hit
    if hit is None or other is None:
        return None
    if first.on_audio_line or second.on_audio_line or first.target.player != second.target.player:
        first_delay, second_delay = first.reading.delay, second.reading.delay
        if first_delay is None or second_delay is None:
            return None
        return MeasuredDuration(second_delay.value_s - first_delay.value_s, first_delay.error_s + second_delay.error_s)
    from_s, to_s = sorted((hit.at.at_s, other.at.at_s))
    error_s = hit.at.error_s + other.at.error_s + observations.stalled_s(first.stalls, from_s, to_s)
    return MeasuredDuration(other.at.at_s - hit.at.at_s, error_s)
