"""The common base of the machines of all kinds of trials: phases, rows and times of one take.

A machine has no effects of its own. Each call records the time and an event, steps until nothing changes any more, and
returns actions, which `takes.py` carries out in order:

    observation, command or tick ──► _apply ──► _step, repeated ──► actions: rows to commit, sounds to play or stop

`_phase_end_s` is when the present phase ends by itself. The conductor calls `tick` then, at the latest. An attempt ends
with a row (AttemptFinished). From the rows of all attempts, `trial_verdict` decides whether another one follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple, TypedDict, Unpack

from harness.model.feed import StateWord
from harness.model.frozen import frozen
from harness.model.observation import (
    PRESENCE,
    DeviceState,
    LinkBack,
    LinkLost,
    Observation,
    SpeechEnded,
    SpeechStarted,
    Status,
    Wake,
)
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    FaultMet,
    Observed,
    OperatorAsked,
    Question,
    TrialFinished,
)
from harness.model.scenario import RepromptRule, TrialKind
from harness.model.stimulus import RenderedStimulus, Role
from harness.model.time import Stamp
from harness.model.trial import Outcome, Trial
from harness.session.device_speech import Activity


@frozen
class StimulusTiming:
    """Where the parts of a stimulus lie, in seconds from its first sample.

    - sha256: hash of the stimulus.
    - wake_start_s, wake_end_s: None without a wake phrase.
    - other_phrases: where else a wake phrase is said (see `Opening`), in order.
    """

    sha256: str
    query_start_s: float
    query_end_s: float
    duration_s: float
    wake_start_s: float | None = None
    wake_end_s: float | None = None
    other_phrases: tuple[tuple[float, float], ...] = ()

    @property
    def has_timing(self) -> bool:
        """Whether the times are known; False until a person has spoken."""
        return bool(self.sha256)

    @classmethod
    def of(cls, stimulus: RenderedStimulus) -> StimulusTiming:
        """The timing of a rendered stimulus. If it has no query part, all of it is the query."""
        duration_s = stimulus.waveform.duration_s
        query_start_s, query_end_s = stimulus.span_s(Role.QUERY) or (0.0, duration_s)
        wake_start_s, wake_end_s = stimulus.span_s(Role.WAKE_PHRASE) or (None, None)
        return cls(
            stimulus.sha256,
            query_start_s=query_start_s,
            query_end_s=query_end_s,
            duration_s=duration_s,
            wake_start_s=wake_start_s,
            wake_end_s=wake_end_s,
            other_phrases=tuple(span for role in (Role.OPENING, Role.CLOSING) if (span := stimulus.span_s(role))),
        )

    @classmethod
    def of_listening(cls, stimulus: RenderedStimulus, kind: TrialKind) -> StimulusTiming:
        """The timing for a trial of that kind.

        The query is the wake phrase (wake), the phrase and the command (command) or the whole stimulus (ambient).
        """
        timing = cls.of(stimulus)  # the recipe of a wake trial has the phrase as its query
        wake = stimulus.span_s(Role.WAKE_PHRASE)
        if kind is TrialKind.COMMAND and wake is not None:
            return replace(timing, query_start_s=wake[0])
        return timing


UNSPOKEN = StimulusTiming("", query_start_s=0.0, query_end_s=0.0, duration_s=0.0)
"""The timing of a stimulus that a person has not spoken yet."""


@frozen
class StopStimulus:
    """Stop the sound that is playing."""


@frozen
class FreezeResponse:
    """Cut and store the first response, then call `response_frozen` or `response_lost` of the machine."""

    attempt: int
    starts: Stamp
    ends: Stamp
    truncated: bool


@frozen
class SayClosing:
    """Speak the text with the trial's voice, without a wake phrase, under that play_id."""

    text: str
    play_id: str


Action = (
    Observed
    | AttemptStarted
    | OperatorAsked
    | AttemptFinished
    | TrialFinished
    | FaultMet
    | StopStimulus
    | FreezeResponse
    | SayClosing
)
"""What a machine requests: rows to commit, in order, and sounds.

After AttemptStarted, the trial's stimulus is played under its play_id. AttemptFinished may come again for the same
attempt, and the later one counts. TrialFinished is the last action of a machine.
"""


@frozen
class DisplayedState:
    """A machine's state, as people see it.

    - until_s: when it ends by itself; None if not known.
    - asks: what the operator is asked about; None if nothing.
    """

    word: StateWord
    since_s: float
    until_s: float | None = None
    attempt: int | None = None
    reason: str = ""
    asks: Question | None = None


@dataclass(slots=True)
class BenchState:
    """The last reports on devices and links, by source (the id of a connection, or of another part of the bench).

    - down_links: sources whose link is down.
    - gone_devices: connections whose device, or its last will, reported that it is gone.
    - loss_reasons: source → the last report about its loss, in words.
    - activities: source → what its device is doing.
    - last_wake_s: source → time of its last wake event.
    """

    down_links: set[str] = field(default_factory=set)
    gone_devices: set[str] = field(default_factory=set)
    loss_reasons: dict[str, str] = field(default_factory=dict)
    activities: dict[str, Activity] = field(default_factory=dict)
    last_wake_s: dict[str, float] = field(default_factory=dict)

    def observe(self, observation: Observation) -> None:
        """Adds an observation; call it in the order of arrival."""
        if isinstance(observation, Status):
            self.activities.setdefault(observation.source, Activity())
        for source, activity in self.activities.items():
            # The microphone hears speech, but not whose: it counts for every device.
            if observation.source == source or isinstance(observation, SpeechStarted | SpeechEnded):
                activity.observe(observation)
        if isinstance(observation, PRESENCE):
            self.gone_devices.discard(observation.source)
        match observation:
            case LinkLost(source=source, what=problem):
                self.down_links.add(source)
                self.loss_reasons[source] = problem
            case LinkBack(source=source):
                self.down_links.discard(source)
            case Status(source=source, state=state, detail=detail):
                if state is DeviceState.GONE:
                    self.gone_devices.add(source)
                    if source not in self.down_links:  # else its driver has already said what is wrong with the link
                        self.loss_reasons[source] = f"it reported that it is gone{': ' if detail else ''}{detail}"
                else:
                    self.gone_devices.discard(source)
            case Wake(source=source, at=at):
                self.last_wake_s[source] = max(at.at_s, self.last_wake_s.get(source, at.at_s))
            case _:
                pass

    @property
    def unreachable(self) -> set[str]:
        """Sources whose link is down or whose device is gone."""
        return self.down_links | self.gone_devices

    def activity_of(self, sources: Iterable[str], states: Collection[DeviceState]) -> Activity:
        """A copy of the activity of the first of these sources that is in one of these states; else an unknown one."""
        for source in sources:
            activity = self.activities.get(source)
            if activity is not None and activity.state in states:
                return replace(activity)
        return Activity()

    def copy(self) -> BenchState:
        """A separate copy that can change."""
        return BenchState(
            down_links=set(self.down_links),
            gone_devices=set(self.gone_devices),
            loss_reasons=dict(self.loss_reasons),
            activities={source: replace(activity) for source, activity in self.activities.items()},
            last_wake_s=dict(self.last_wake_s),
        )


ENGINE_ENDED = "engine_ended"
_ENGINE_END_CODES = (ENGINE_ENDED, "stopped")
"""Cause codes of attempts during which the engine was killed or asked to end. They do not count in `max_interruptions`.
"""

SOUND_GUARD_S = 30.0
"""A stimulus counts as lost if its end is not reported this long after the planned end. Drivers are much faster."""
LINK_WAIT_S = 600.0
"""How long a trial waits for a lost link before it is given up, in seconds."""
_DECISIVE = (
    Outcome.RESPONDED,
    Outcome.LATE,
    Outcome.INCONCLUSIVE,
    Outcome.COUNTED,
    Outcome.UNDERSTOOD,
    Outcome.SKIPPED,
    Outcome.ABORTED,
)
"""Outcomes of an attempt that decide its trial."""


class Verdict(NamedTuple):
    """The verdict on a trial. deciding_attempt: None when no attempt decided it."""

    outcome: Outcome
    deciding_attempt: int | None
    cause: str


def trial_verdict(rule: RepromptRule, rows: Mapping[int, AttemptFinished]) -> Verdict | None:
    """The verdict on a trial from its finished attempts; None when another attempt is due.

    rows: attempt number → its latest row. An inconclusive attempt ends the trial, since nothing shows that the query
    was not recognised. Interrupted attempts do not count towards `max_attempts`.
    """
    ordered = [rows[number] for number in sorted(rows)]
    for row in ordered:
        if row.outcome in _DECISIVE:
            by_operator = row.outcome in (Outcome.SKIPPED, Outcome.ABORTED)
            return Verdict(row.outcome, None if by_operator else row.attempt, row.cause)
    counted = [row for row in ordered if row.outcome is not Outcome.INTERRUPTED]
    if len(counted) >= rule.max_attempts:
        return Verdict(counted[-1].outcome, counted[-1].attempt, counted[-1].cause)
    interrupted = [
        row for row in ordered if row.outcome is Outcome.INTERRUPTED and cause_code(row.cause) not in _ENGINE_END_CODES
    ]
    if len(interrupted) > rule.max_interruptions:  # up to that many are repeated
        return Verdict(Outcome.INTERRUPTED, None, f"too_many_interruptions: last {interrupted[-1].cause}")
    return None


def cause_code(cause: str) -> str:
    """The code word of a cause, before its colon."""
    return cause.partition(":")[0]


class Phase(Enum):
    """The phases of a machine; `StateWord` is what people see of them. Not every kind of trial has all of them."""

    READY = auto()
    PLAYING = auto()
    LISTENING = auto()
    RESPONDING = auto()
    FREEZING = auto()  # the response is cut and stored
    CHECKING = auto()  # waits for evidence that the query was recognised, or was not
    ASKING = auto()
    CHECKING_EFFECT = auto()  # waits for the report that the query had its effect
    ASKING_EFFECT = auto()
    CLOSING = auto()
    WAITING = auto()
    LINK_LOST = auto()  # waits for a lost link or a device that has gone
    DONE = auto()


UNDER_WAY = (Phase.PLAYING, Phase.LISTENING, Phase.RESPONDING, Phase.FREEZING, Phase.CHECKING)
"""Phases of an attempt. A wake, command or ambient trial has only the first two."""


def _operator_cause(reason: str) -> str:
    return f"operator: {reason}" if reason else "operator"


_STATE_WORDS = {
    Phase.READY: StateWord.PREPARING,
    Phase.PLAYING: StateWord.PLAYING,
    Phase.LISTENING: StateWord.LISTENING,
    Phase.RESPONDING: StateWord.RESPONSE,
    Phase.FREEZING: StateWord.RESPONSE,
    Phase.CHECKING: StateWord.CHECKING,
    Phase.ASKING: StateWord.ASKING,
    Phase.CHECKING_EFFECT: StateWord.CHECKING,
    Phase.ASKING_EFFECT: StateWord.ASKING,
    Phase.CLOSING: StateWord.CLOSING,
    Phase.WAITING: StateWord.WAITING,
    Phase.LINK_LOST: StateWord.INTERRUPTED,
    Phase.DONE: StateWord.FINISHED,
}
_ASKS = {Phase.ASKING: Question.RECOGNITION, Phase.ASKING_EFFECT: Question.EFFECT}


class TakeOptions(TypedDict, total=False):
    """Options of a take.

    - earlier_attempts: rows of attempts at this take from an earlier run of the session.
    - attended: whether an operator is there to answer. The attribute of the take may be set at any time.
    - link_wait_s: how long to wait for a lost link before the trial is given up.
    """

    earlier_attempts: Sequence[AttemptFinished]
    attended: bool
    link_wait_s: float


class Take:
    """One take of one trial. Subclasses decide when a phase ends (`_phase_end_s`) and what follows (`_step`)."""

    def __init__(self, trial: Trial, take_number: int, timing: StimulusTiming, **options: Unpack[TakeOptions]) -> None:
        self.trial = trial
        self.take_number = take_number
        self.attended = options.get("attended", False)
        self._timing = timing
        self._rule = trial.reprompt
        self._link_wait_s = options.get("link_wait_s", LINK_WAIT_S)
        self._rows = {row.attempt: row for row in options.get("earlier_attempts", ())}
        self._last_number = max(self._rows, default=0)
        self._phase = Phase.READY
        self._now_s = 0.0
        self._since_s = 0.0
        self._reason = ""
        self._earliest_sound_s = 0.0
        self._paused = False
        self._actions: list[Action] = []
        self.query_cut_s: float | None = None
        """When a query was cut short. Its answer may still come, so the next sound waits a context wait from then."""

    # Requests to every machine

    def tick(self, now_s: float) -> list[Action]:
        """Lets time pass."""
        self._set_time(now_s)
        return self._advance()

    def feed(self, observation: Observation, now_s: float) -> list[Action]:
        """Processes a driver's observation. The first action credits it to an attempt."""
        self._set_time(now_s)
        if self._phase is Phase.DONE:
            return [Observed(observation)]  # logged, but it belongs to no attempt
        self._apply(observation)
        return self._advance()

    def interrupt(self, now_s: float, cause: str) -> list[Action]:
        """Interrupts the current attempt for an external reason (a full disk, a driver that refuses)."""
        self._set_time(now_s)
        if self.under_way:
            self._interrupt(cause)
        return self._advance()

    def stop(self, now_s: float, cause: str) -> list[Action]:
        """The engine ends and will be resumed. The current attempt is interrupted, and the trial stays open."""
        self._set_time(now_s)
        if self.under_way or self._phase is Phase.ASKING:  # then its verdict is still missing
            self._interrupt(cause)
        elif self._phase is Phase.CLOSING:
            self._actions.append(StopStimulus())
        self._enter(Phase.DONE, "stopped")
        return self._drain_actions()

    def hold(self) -> None:
        """Prevents a new attempt until `release`."""
        self._paused = True

    def release(self, now_s: float) -> list[Action]:
        """Allows new attempts again."""
        self._paused = False
        return self.tick(now_s)

    def skip(self, now_s: float, reason: str) -> list[Action]:
        """Ends the trial now."""
        return self._end(now_s, Outcome.SKIPPED, _operator_cause(reason))

    def abort(self, now_s: float, reason: str) -> list[Action]:
        """As skip, when the session is aborted."""
        return self._end(now_s, Outcome.ABORTED, _operator_cause(reason))

    def withdraw(self, now_s: float, cause: str) -> list[Action]:
        """As skip, when the run itself cannot play the trial."""
        return self._end(now_s, Outcome.SKIPPED, cause)

    def set_spoken_timing(self, timing: StimulusTiming) -> None:
        """Records when a person has said the parts of the current attempt's stimulus."""
        self._timing = timing

    # Requests that concern only some kinds of trials

    def transcribed(self, now_s: float) -> list[Action]:
        """Records that the harness's transcription of the response is ready."""
        return self.tick(now_s)

    def accepts_answer(self, attempt: int) -> bool:
        """Whether the operator was asked about that attempt, and the trial is not over."""
        return False

    def effect_answered(self, now_s: float, attempt: int) -> list[Action]:
        """Records that a person has answered about that attempt's effect. The caller writes the row."""
        return self.tick(now_s)

    @property
    def call_start_s(self) -> float:
        """Start of the wake phrase in the stimulus, or of the query if it has no phrase."""
        return self._timing.query_start_s if self._timing.wake_start_s is None else self._timing.wake_start_s

    @property
    def phase(self) -> Phase:
        return self._phase

    @property
    def under_way(self) -> bool:
        """Whether an attempt can be interrupted."""
        return self._phase in UNDER_WAY

    @property
    def finished(self) -> bool:
        return self._phase is Phase.DONE

    @property
    def is_waiting_in_pause(self) -> bool:
        """Whether a pause keeps the next attempt from beginning."""
        return self._paused and self._phase in (Phase.WAITING, Phase.LINK_LOST)

    @property
    def deadline_s(self) -> float | None:
        """When `tick` is due at the latest; None: wait for an observation or a command."""
        return None if self._phase is Phase.DONE or self.is_waiting_in_pause else self._phase_end_s()

    @property
    def attempt_number(self) -> int | None:
        """Number of the latest attempt, None before the first."""
        return self._last_number or None

    @property
    def state(self) -> DisplayedState:
        """The state as people see it."""
        until_s = None if self.is_waiting_in_pause else self._expected_end()
        return DisplayedState(
            _STATE_WORDS[self._phase],
            self._since_s,
            until_s=until_s,
            attempt=self.attempt_number,
            reason=self._display_reason(),
            asks=_ASKS.get(self._phase),
        )

    # Decisions of each kind of trial

    def _phase_end_s(self) -> float | None:
        """When the present phase ends by itself."""
        raise NotImplementedError

    def _expected_end(self) -> float | None:
        """When the present phase most likely ends, for display."""
        return self._phase_end_s()

    def _display_reason(self) -> str:
        """The reason for the present phase, for display."""
        return self._reason

    def _step(self) -> None:
        """Enters the next phase when this one is over; called until nothing changes."""
        raise NotImplementedError

    def _apply(self, observation: Observation) -> None:
        """Credits an observation, and changes the state that it concerns."""
        raise NotImplementedError

    def _interrupt(self, cause: str) -> None:
        """Ends the current attempt, which may be repeated."""
        raise NotImplementedError

    def _end(self, now_s: float, outcome: Outcome, cause: str) -> list[Action]:
        """Ends the trial on request."""
        raise NotImplementedError

    def _fingerprint(self) -> tuple[object, ...]:
        """The state that a step may change."""
        return self._phase, self._last_number

    # Time

    def _set_time(self, now_s: float) -> None:
        # Never backwards: an observation may have waited in the inbox, and be older than the last tick.
        self._now_s = max(self._now_s, now_s)

    def _enter(self, phase: Phase, reason: str) -> None:
        self._phase, self._since_s, self._reason = phase, self._now_s, reason

    def _drain_actions(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

    def _advance(self) -> list[Action]:
        """Steps until nothing changes any more. Returns the actions."""
        previous: tuple[object, ...] | None = None
        while previous != (current := self._fingerprint()):
            previous = current
            self._step()
        return self._drain_actions()

    def _next_attempt(self) -> None:
        """Counts the next attempt. A person speaks the stimulus of every attempt anew."""
        self._last_number += 1
        if self.trial.talker:
            self._timing = UNSPOKEN

    def _limit_once_spoken(self, until_s: float) -> float | None:
        """A time by which a stimulus has ended; None before a person has spoken, who may take their time."""
        return until_s if self._timing.has_timing else None

    # Rows

    def _play_id(self, number: int) -> str:
        return f"{self.trial.id}.t{self.take_number}.a{number}"

    def _start_attempt(self, quiet_since_s: float | None) -> None:
        """Adds the row that starts the latest attempt. `takes.py` plays the stimulus once the row is committed."""
        self._actions.append(
            AttemptStarted(
                trial_id=self.trial.id,
                take=self.take_number,
                attempt=self._last_number,
                play_id=self._play_id(self._last_number),
                stimulus_sha256=self._timing.sha256,
                query_start_s=self._timing.query_start_s,
                query_end_s=self._timing.query_end_s,
                duration_s=self._timing.duration_s,
                waited_s=None if quiet_since_s is None else max(0.0, self._now_s - quiet_since_s),
                other_phrases=self._timing.other_phrases,
            )
        )

    def _verdict(self) -> Verdict | None:
        """The verdict on the trial from the rows so far; None when another attempt is due."""
        return trial_verdict(self._rule, self._rows)

    def _finish(self, verdict: Verdict) -> None:
        self._enter(Phase.DONE, "")
        row = TrialFinished(
            trial_id=self.trial.id,
            take=self.take_number,
            outcome=verdict.outcome,
            attempts=self._last_number,
            deciding_attempt=verdict.deciding_attempt,
            cause=verdict.cause,
        )
        self._actions.append(row)

    def _credit(self, observation: Observation, attempt: int | None) -> None:
        """Credits an observation to an attempt; None: it belongs to none."""
        if attempt is None:
            self._actions.append(Observed(observation))
        else:
            self._actions.append(Observed(observation, self.trial.id, self.take_number, attempt))

    def _write_row(self, row: AttemptFinished) -> None:
        """Adds the row with the verdict on an attempt, unless its latest row says the same."""
        if self._rows.get(row.attempt) != row:
            self._rows[row.attempt] = row
            self._actions.append(row)
