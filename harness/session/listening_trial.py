"""The wake, command or ambient trial: a machine without I/O and without a clock, driven by observations and times.

`READY → WAITING → PLAYING → LISTENING → DONE`. An interruption leads back to WAITING, and from there to LINK_LOST while
a link is missing. The machine only ensures that connected devices got the whole sound. `harness.wake` counts their
events from the log. See docs/how-to/test-wake-words.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Unpack

from harness.model.bench import ObservationKind
from harness.model.numbers import seconds
from harness.model.observation import (
    DeviceState,
    HostStalled,
    Intent,
    LinkBack,
    LinkLost,
    ListeningProved,
    Observation,
    Overrun,
    Proof,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Unread,
    Wake,
)
from harness.model.record import AttemptFinished, FaultMet
from harness.model.scenario import TrialKind
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, ListeningSpec, Outcome, Recognition, Target, Trial
from harness.session.disturbance import Disturbance
from harness.session.take import (
    SOUND_GUARD_S,
    UNDER_WAY,
    Action,
    BenchState,
    Phase,
    StimulusTiming,
    StopStimulus,
    Take,
    TakeOptions,
    Verdict,
)
from harness.session.wording import cause_in_words

ARRIVAL_S = 0.3
"""How long after its timestamp an event may arrive, in seconds."""
STALL_S = 0.1
"""A stimulus had a gap if playing it took this much longer than its length, beyond the clocks' errors."""
INJECTION_GUARD_S = 60.0
"""An injection has no fixed speed. It counts as lost after this time without an acknowledgement."""


@dataclass(slots=True)
class ListeningAttempt:
    """The progress of one attempt: a stimulus is played once. Only the machine of its trial changes it."""

    trial: Trial
    listening: ListeningSpec
    timing: StimulusTiming
    play_id: str
    begun_s: float
    starts: dict[str, Stamp] = field(default_factory=dict)
    """Player → when its first sample left."""
    ends: dict[str, Stamp] = field(default_factory=dict)
    """Player → when its last sample left."""
    audio_s: dict[str, float] = field(default_factory=dict)
    """Player → position of its first sample in the audio sent to the device."""
    progress_s: dict[str, float] = field(default_factory=dict)
    """Player → when it last made progress."""
    recorded: Stamp | None = None
    """When the first sample was found in the microphone's recording."""
    understood: set[str] = field(default_factory=set)
    """Connections whose devices have reported what they understood: words, or an intent if they report no words."""
    woken: set[str] = field(default_factory=set)
    """Connections whose devices have woken to the phrase."""
    opened: set[str] = field(default_factory=set)
    """Connections whose devices have woken to the phrase of the opening."""
    unread: dict[str, str] = field(default_factory=dict)
    """Connection → why a report of its device was lost."""
    host: Disturbance = field(default_factory=Disturbance)
    players: tuple[str, ...] = field(init=False)
    """Everything that plays the stimulus."""
    through_air: tuple[str, ...] = field(init=False)
    """Players other than a device's own connection."""

    def __post_init__(self) -> None:
        injected = {target.player for target in self.listening.targets if target.injected}
        self.players = self.listening.players
        self.through_air = tuple(player for player in self.players if player not in injected)

    def stalled_s(self, player: str) -> float:
        """How much longer than its length a finished stimulus took, at least; 0 if the clocks' errors explain it."""
        start, ended = self.starts.get(player), self.ends.get(player)
        if start is None or ended is None or player not in self.through_air:
            return 0.0
        over_s = ended.at_s - start.at_s - self.timing.duration_s - start.error_s - ended.error_s
        return over_s if over_s > STALL_S else 0.0

    def offset_s(self, target: Target, stamp: Stamp, audio_s: float | None) -> float:
        """Position of a device's report in the stimulus, in seconds from its first sample.

        - stamp: time of the report.
        - audio_s: its position in the audio sent to the device; None if unknown.
        """
        player = target.player
        if target.injected and audio_s is not None:
            return audio_s - self.audio_s.get(player, 0.0)
        origin = self.starts.get(player)
        if self.recorded is not None and not target.injected:
            origin = self.recorded
        return stamp.at_s - (origin.at_s if origin else self.begun_s)

    def note_wake(self, target: Target, wake: Wake) -> None:
        """Records that a device woke to the phrase, or to that of the opening, if the event lies within its window."""
        timing, settings = self.timing, self.listening.settings
        offset_s = self.offset_s(target, wake.at, wake.audio_s)
        # At the latest half-way through the phrase of the trial, whose event is not one of the opening.
        for start_s, end_s in timing.other_phrases[:1]:
            last_s = min(end_s + settings.window_after_s, (timing.query_start_s + timing.query_end_s) / 2)
            if start_s - settings.window_before_s <= offset_s <= last_s:
                self.opened.add(target.connection)
        if timing.query_start_s - settings.window_before_s <= offset_s <= timing.query_end_s + settings.window_after_s:
            self.woken.add(target.connection)

    def note_understood(self, target: Target, report: Transcript | Intent) -> None:
        """Records what a device understood, unless that was said in the opening, or its transcript is still to come."""
        offset_s = self.offset_s(target, report.at, report.audio_s)
        is_of_opening = bool(self.timing.other_phrases) and offset_s < self.timing.query_start_s
        is_last = report.final if isinstance(report, Transcript) else ObservationKind.TRANSCRIPT not in target.reports
        if is_last and not is_of_opening:
            self.understood.add(target.connection)

    def owes_words(self, target: Target) -> bool:
        """Whether a device reports what it understood of a command, and has not done so yet."""
        reports_words = ObservationKind.TRANSCRIPT in target.reports or ObservationKind.INTENT in target.reports
        return self.listening.kind is TrialKind.COMMAND and reports_words and target.connection not in self.understood

    def lacks_report(self, target: Target) -> bool:
        """Whether the report has not come that decides the result of a device: of a command, what it understood."""
        if self.listening.kind is TrialKind.COMMAND and target.connection in self.understood:
            return False
        return self.owes_words(target) or target.connection not in self.woken

    def unheard_chime(self, target: Target) -> str:
        """The cause that the microphone may have lost the chime of a device from its window on; "" if not."""
        if not self.lacks_report(target):
            return ""
        origin = self.recorded or self.starts.get(target.player) or Stamp(self.begun_s)
        window_s = self.timing.query_start_s - self.listening.settings.window_before_s
        return self.host.unheard_chime(target, origin.at_s + window_s)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Players that have not finished."""
        return tuple(player for player in self.players if player not in self.ends)

    def lost_at_s(self) -> float:
        """When the sound of the first unfinished player counts as lost."""
        air_s = self.begun_s + self.timing.duration_s + SOUND_GUARD_S
        limits_s = [
            air_s if player in self.through_air else self.progress_s.get(player, self.begun_s) + INJECTION_GUARD_S
            for player in self.unfinished
        ]
        return min(limits_s, default=air_s)

    def listens_until_s(self) -> float:
        """Until when an event of this attempt may arrive. For injected sound, this is the end of the sound."""
        until_s = max((stamp.at_s for stamp in self.ends.values()), default=self.begun_s)
        settings = self.listening.settings
        for player in self._real_time_players:
            origin_s = (self.recorded or self.starts.get(player) or Stamp(self.begun_s)).at_s
            last_s = origin_s + self.timing.query_end_s
            wait_s = settings.window_after_s
            if any(target.player == player and self.owes_words(target) for target in self.listening.targets):
                wait_s = max(wait_s, self.trial.reprompt.evidence_wait_s)
            until_s = max(until_s, last_s + wait_s + ARRIVAL_S)
        return until_s

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to wait for."""
        return not self.unfinished and not self._real_time_players

    @property
    def _real_time_players(self) -> list[str]:
        """Players after whose sound an event may still come: those through the air, and wires without positions."""
        return [player for player in self.players if player not in self.audio_s]


RETRY_S = 2.0
"""Wait between an interruption and the next attempt, in seconds."""
ENDING_S = 10.0
"""How long the trial waits until a player that it stopped reports its end, in seconds."""
_BUSY = (DeviceState.LISTENING, DeviceState.THINKING, DeviceState.SPEAKING, DeviceState.DIALOGUE_OPEN)


class ListeningMachine(Take):
    """One take of a trial with `listening`, from its first sound to COUNTED, or until it was interrupted too often.

    Every method takes the time at which it is called (session seconds, never going back) and returns what to do, in
    order.
    """

    def __init__(self, trial: Trial, take_number: int, timing: StimulusTiming, **options: Unpack[TakeOptions]) -> None:
        if trial.listening is None:
            raise ValueError(f"{trial.id} is a query trial")
        super().__init__(trial, take_number, timing, **options)
        self._listening = trial.listening
        self._current: ListeningAttempt | None = None
        self._bench_state = BenchState()
        self._sounding: set[str] = set()
        self._last_sound_s: float | None = None

    # Requests to the machine

    def begin(
        self, now_s: float, *, not_before_s: float | None = None, bench_state: BenchState | None = None
    ) -> list[Action]:
        """Begins the take; no sound before `not_before_s`. bench_state: devices and links at this moment."""
        self._set_time(now_s)
        self._earliest_sound_s = now_s if not_before_s is None else not_before_s
        if bench_state is not None:
            self._bench_state = bench_state.copy()
        self._enter(Phase.WAITING, "")
        return self._advance()

    def play_refused(self, now_s: float, play_id: str, why: str, sounding: Iterable[str] = ()) -> list[Action]:
        """Handles a player that cannot play the stimulus. sounding: the other players, which are stopped."""
        self._set_time(now_s)
        self._sounding = set(sounding)
        if self._current is not None and self._current.play_id == play_id:
            self._interrupt(f"sound_refused: {why}")
        return self._advance()

    def set_spoken_timing(self, timing: StimulusTiming) -> None:
        super().set_spoken_timing(timing)
        if self._current is not None:
            self._current.timing = timing

    @property
    def last_sound_s(self) -> float | None:
        """When the last sound through the air ended; None without one."""
        return self._last_sound_s

    # Observations

    def _attempt_of(self, observation: Observation, target: Target | None) -> int | None:
        """The attempt that an observation belongs to: by play_id for the harness's own sounds, else by time."""
        match observation:
            case StimulusStarted(play_id=play_id) | StimulusEnded(play_id=play_id) | StimulusHeard(play_id=play_id):
                is_current = self._current is not None and self._current.play_id == play_id
                return self._last_number if is_current else None
            case LinkLost() | LinkBack():
                return None
            case Wake() | Transcript() | Status() | Unread() if target is None:
                return None
            case _:
                return self._last_number if self._phase in UNDER_WAY else None

    def _apply(self, observation: Observation) -> None:
        target = next(
            (candidate for candidate in self._listening.targets if observation.source in candidate.sources), None
        )
        self._credit(observation, self._attempt_of(observation, target))
        self._bench_state.observe(observation)
        # What any source of a device reports counts as a report over its connection, except the state of the link.
        is_of_source = isinstance(observation, LinkLost | LinkBack | StimulusStarted | StimulusEnded)
        if target is not None and observation.source != target.connection and not is_of_source:
            observation = replace(observation, source=target.connection)
        attempt = self._current
        if attempt is not None and self._phase in UNDER_WAY:
            self._note_disturbance(attempt, observation)
        match observation:
            case StimulusStarted() | StimulusEnded() | StimulusHeard():
                self._apply_own_sound(observation)
            case Overrun(source=source) if attempt is not None and self._expects_wake:
                # A missed phrase with a gap tests nothing, and which samples were late is unknown.
                if self._phase is Phase.PLAYING and source in (*attempt.through_air, *self.trial.noise_players):
                    self._interrupt(f"stimulus_flawed: {source} played late blocks")
            case ListeningProved(source=source, proof=Proof.ACKNOWLEDGED) if attempt is not None:
                attempt.progress_s[source] = self._now_s
            case Transcript() | Intent() if target is not None and attempt is not None and self._phase in UNDER_WAY:
                attempt.note_understood(target, observation)
            case Wake() if target is not None and attempt is not None and self._phase in UNDER_WAY:
                attempt.note_wake(target, observation)
            case Wake() if target is not None and self._phase is Phase.WAITING and not self._absent_sources():
                if not target.injected:
                    self._reason = f"{target.device} has just woken; waiting until it is quiet"
            case Unread(source=source, what=problem) if attempt is not None and self._phase in UNDER_WAY:
                attempt.unread[source] = problem
            case LinkLost(source=source, what=problem) if source in self._absent_sources():
                self._sounding.discard(source)
                self._interrupt(f"link_lost: {source}: {problem}")
            case Status(state=DeviceState.GONE, detail=detail) if target is not None:
                self._interrupt(f"device_gone: {target.device}{': ' if detail else ''}{detail}")
            case Status(state=DeviceState.STARTED) if target is not None:
                self._interrupt(f"device_restarted: {target.device}")
            case _:
                pass

    def _note_disturbance(self, attempt: ListeningAttempt, observation: Observation) -> None:
        match observation:
            case HostStalled() if attempt.through_air:  # over a wire, samples are counted
                attempt.host.stalls.append(observation)
            case Overrun(source=self.trial.microphone):
                attempt.host.gaps.append(observation)
            case Overrun(source=source) if (
                source in (*attempt.through_air, *self.trial.noise_players) and source not in attempt.ends
            ):
                attempt.host.late_sound.append(observation)
            case _:
                pass

    @property
    def _expects_wake(self) -> bool:
        return self._listening.kind is not TrialKind.AMBIENT

    def _apply_own_sound(self, observation: StimulusStarted | StimulusEnded | StimulusHeard) -> None:
        attempt = self._current
        if attempt is None or observation.play_id != attempt.play_id:
            return
        match observation:
            case StimulusStarted(source=source, at=at, audio_s=audio_s):
                attempt.starts[source], attempt.progress_s[source] = at, self._now_s
                if audio_s is not None:
                    attempt.audio_s[source] = audio_s
            case StimulusHeard(at=at):
                attempt.recorded = at
            case StimulusEnded(source=source, at=at, complete=complete, why=why):
                self._sounding.discard(source)
                if source in attempt.through_air:
                    self._last_sound_s = at.at_s
                if not complete:
                    self._interrupt(f"stimulus_cut: {source}: {why or 'it was stopped'}")
                    return
                attempt.ends[source] = at
                stalled_s = attempt.stalled_s(source)
                if stalled_s and self._expects_wake:
                    self._interrupt(f"stimulus_flawed: {source} took {seconds(stalled_s)} too long")

    # Time

    def _phase_end_s(self) -> float | None:
        attempt = self._current
        match self._phase:
            case Phase.WAITING:
                return self._waiting_until_s()
            case Phase.PLAYING if attempt:
                return self._limit_once_spoken(attempt.lost_at_s())
            case Phase.LISTENING if attempt:
                return max(attempt.listens_until_s(), self._since_s)
            case Phase.LINK_LOST:
                return self._since_s + self._link_wait_s
            case _:
                return None

    def _expected_end(self) -> float | None:
        # A stopped player ends within milliseconds, so its timeout would mislead.
        return self._earliest_sound_s if self._phase is Phase.WAITING and self._sounding else self._phase_end_s()

    def _waiting_until_s(self) -> float:
        """When the next attempt may begin if nothing more happens. The wait for busy devices is limited."""
        until_s = self._earliest_sound_s
        if self._sounding:
            until_s = max(until_s, self._since_s + ENDING_S)
        longest_s = self._since_s + self._rule.response_max_s
        for target in self._room_targets():
            until_s = max(until_s, min(self._awake_until_s(target), longest_s))
            until_s = max(until_s, self._busy_wait(target)[0])
        return until_s

    def _busy_wait(self, target: Target) -> tuple[float, str]:
        """Until when a device counts as busy, by its reports and by what the microphone hears; and why."""
        longest_s, quiet_s = self._since_s + self._rule.response_max_s, self._rule.context_wait_s
        activities = self._bench_state.activities
        waits = (
            (activity.until_s(quiet_s, longest_s), activity.in_words(target.device))
            for source in target.sources
            if (activity := activities.get(source)) is not None and activity.state in _BUSY
        )
        return max(waits, default=(0.0, ""))

    def _display_reason(self) -> str:
        if self._phase is not Phase.WAITING:
            return self._reason
        until_s, why = max((self._busy_wait(target) for target in self._room_targets()), default=(0.0, ""))
        return why if until_s > self._now_s and until_s == self._waiting_until_s() else self._reason

    def _room_targets(self) -> list[Target]:
        """Devices that hear through the air. The others hear nothing while no sound is injected."""
        return [target for target in self._listening.targets if not target.injected]

    def _awake_until_s(self, target: Target) -> float:
        """The time until which a further wake event of a device would count as part of its last one."""
        last_wake_s = self._bench_state.last_wake_s
        woke_s = max((last_wake_s.get(source, -math.inf) for source in target.sources), default=-math.inf)
        return woke_s + self._listening.settings.refractory_s

    # Steps

    def _step(self) -> None:
        until_s = self._phase_end_s()
        due = until_s is not None and self._now_s >= until_s
        attempt = self._current
        match self._phase:
            case Phase.WAITING if due and not self._paused:
                self._end_wait()
            case Phase.PLAYING if attempt:
                if not attempt.unfinished:
                    self._enter(Phase.LISTENING, "")
                elif due:
                    self._interrupt(f"sound_lost: {', '.join(attempt.unfinished)} did not finish playing the stimulus")
            case Phase.LISTENING if attempt and (due or attempt.complete):
                self._conclude(attempt)
            case Phase.LINK_LOST:
                if not self._absent_sources():
                    self._enter(Phase.WAITING, self._reason)
                elif due:
                    missing = ", ".join(self._absent_sources())
                    self._finish(Verdict(Outcome.INTERRUPTED, None, f"link_lost: {missing} did not come back"))
            case _:
                pass

    def _end_wait(self) -> None:
        """Ends the wait: ends the trial, waits for what is lost, or begins the next attempt."""
        verdict = self._verdict()
        missing = self._absent_sources()
        if verdict is not None:
            self._finish(verdict)
        elif missing:
            loss_reasons = self._bench_state.loss_reasons
            reasons = (f"{name}: {loss_reasons[name]}" if name in loss_reasons else name for name in missing)
            self._enter(Phase.LINK_LOST, f"waiting for {'; '.join(reasons)}")
        else:
            self._start()

    def _start(self) -> None:
        for target in self._room_targets():
            if self._awake_until_s(target) > self._now_s:
                waited = seconds(self._now_s - self._since_s)
                problem = f"{target.device} keeps waking: still not quiet after {waited}; the trial starts anyway"
                self._actions.append(FaultMet(target.connection, problem))
        self._next_attempt()
        play_id = self._play_id(self._last_number)
        self._current = ListeningAttempt(self.trial, self._listening, self._timing, play_id, self._now_s)
        self._sounding = set(self._listening.players)
        self._enter(Phase.PLAYING, "")
        self._start_attempt(self._last_sound_s)

    def _conclude(self, attempt: ListeningAttempt) -> None:
        """Ends an attempt whose sound was played whole: with the verdict, or with a repetition of a probe."""
        targets = self._listening.targets
        unopened = [target.device for target in targets if target.connection not in attempt.opened]
        if unopened and attempt.timing.other_phrases and self.trial.recipe.opening is not None:
            self._interrupt(f"opening_missed: {unopened[0]} did not wake to the phrase of the opening")
            return
        unheard_chimes = [cause for target in targets if (cause := attempt.unheard_chime(target))]
        if unheard_chimes and self._expects_wake:
            self._interrupt(unheard_chimes[0])
            return
        unread = [
            f"unread: {target.device}: {problem}"
            for target in targets
            if attempt.lacks_report(target) and (problem := attempt.unread.get(target.connection))
        ]
        if unread and self._expects_wake:  # what is missing may be among the reports that were lost
            self._write_verdict(Outcome.INCONCLUSIVE, unread[0])
            self._finish(Verdict(Outcome.INCONCLUSIVE, self._last_number, unread[0]))
            return
        # Of other trials than probes, the session does not use wake events.
        unheard = [target.device for target in targets if target.connection not in attempt.woken]
        if unheard and self._listening.kind is TrialKind.PROBE:
            self._write_verdict(Outcome.NO_WAKE, f"probe_unheard: {', '.join(unheard)}")
        else:
            self._write_verdict(Outcome.COUNTED, "")
        verdict = self._verdict()
        if verdict is not None:
            self._finish(verdict)
            return
        self._earliest_sound_s = self._now_s + RETRY_S
        self._enter(Phase.WAITING, f"{', '.join(unheard)} did not wake to the probe: repeating it")

    def _write_verdict(self, outcome: Outcome, cause: str) -> None:
        """Writes the verdict on the current attempt."""
        is_command = self._listening.kind is TrialKind.COMMAND
        recognition = Recognition.UNKNOWN if is_command else Recognition.NOT_ASSESSED
        source = EvidenceSource.DEVICE if is_command else EvidenceSource.NONE
        attempt = self._current
        disturbed = "" if attempt is None else attempt.host.in_words(attempt.begun_s, math.inf)
        row = AttemptFinished(
            self.trial.id,
            self.take_number,
            self._last_number,
            outcome,
            recognition,
            source,
            cause=cause,
            disturbed=disturbed,
        )
        self._write_row(row)

    def _interrupt(self, cause: str) -> None:
        if self._phase not in UNDER_WAY:
            return
        if self._sounding:
            self._actions.append(StopStimulus())
        self._write_verdict(Outcome.INTERRUPTED, cause)
        self._earliest_sound_s = self._now_s + RETRY_S
        self._enter(Phase.WAITING, cause_in_words(cause))

    def _end(self, now_s: float, outcome: Outcome, cause: str) -> list[Action]:
        self._set_time(now_s)
        if self._phase is Phase.DONE:
            return []
        if self._phase in UNDER_WAY:
            if self._sounding:
                self._actions.append(StopStimulus())
            self._write_verdict(outcome, cause)
        self._finish(Verdict(outcome, None, cause))
        return self._drain_actions()

    def _absent_sources(self) -> list[str]:
        """Sources that the trial needs and that are lost or gone."""
        sources = {source for target in self._listening.targets for source in target.sources}
        required = sources | {*self._listening.players, *self.trial.noise_players}
        return sorted(self._bench_state.unreachable & required)
