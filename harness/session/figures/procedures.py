"""The clauses of published procedures, and whether a session meets each: met, not met or not applicable.

Only parts of the procedures' texts were available. A result by one of them is not a certification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from harness.model import numbers
from harness.model.bench import ObservationKind
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.procedure import ProcedureName
from harness.model.scenario import Scenario, TrialKind
from harness.model.stimulus import NoiseKind
from harness.model.trial import Outcome, Trial
from harness.session.figures.effects import right_effects
from harness.session.figures.progress import Progress
from harness.session.figures.requests import requests_asked, requests_of_session
from harness.session.figures.trials import tested_attempts
from harness.statistics import text
from harness.statistics.intervals import Share, values_needed
from harness.wake.first_sounds import FirstSounds
from harness.wake.reports.figures_text import consistent_words
from harness.wake.requests import CONSISTENT, shortest_pause
from harness.wake.wake import WakeFigures
from harness.wake.wake_plays import Play
from harness.wake.wake_progress import DeviceWake, WakeProgress

_ROUNDING = 1e-9  # More than the rounding of a share times a count.
_EXPOSURE_TOLERANCE = 0.01  # An exposure that is this much shorter than required is accepted.
MAX_PAUSE_MS = 1000
"""The longest pause before a request in the AVS self-test."""
RESPONSE_LIMIT_S = 0.5
"""The longest response time for ESP-SR."""
SELF_TEST_CALLS = 30
"""The smallest number of utterances in each condition of the AVS self-test."""
TINY_WORDS = 50
"""The number of wake words of MLPerf Tiny."""


class ClauseVerdict(StrEnum):
    """Whether a session meets a clause.

    NOT_APPLICABLE: the session has no trials that the clause is about, or the clause has no limit.
    """

    MET = "met"
    NOT_MET = "not met"
    NOT_APPLICABLE = "not applicable"


class CallCondition(StrEnum):
    """The sound around the wake phrase of a trial."""

    SILENCE = "silence"
    STATIONARY = "stationary noise"
    RECORDED = "recorded noise or music"
    PLAYBACK = "own playback"


def condition_of(trial: Trial) -> CallCondition:
    """The sound around the wake phrase: what the device itself plays counts before any noise."""
    recipe = trial.recipe
    if recipe.opening is not None and recipe.opening.sounds:
        return CallCondition.PLAYBACK
    if recipe.noise is None:
        return CallCondition.SILENCE
    return CallCondition.RECORDED if recipe.noise.kind is NoiseKind.RECORDING else CallCondition.STATIONARY


@frozen
class ClauseResult:
    """The result of a session for a clause.

    - value: the result in words.
    - holds: None if there is no limit, or nothing to compare with it.
    """

    value: str
    holds: bool | None = None

    @property
    def verdict(self) -> ClauseVerdict:
        if self.holds is None:
            return ClauseVerdict.NOT_APPLICABLE
        return ClauseVerdict.MET if self.holds else ClauseVerdict.NOT_MET


class DeviceSession:
    """A session's results for one device, as the clauses need them."""

    def __init__(self, device: str, scenario: Scenario, progress: Progress, wake: WakeFigures) -> None:
        self.device, self.scenario, self.progress = device, scenario, progress
        self.wake: DeviceWake = wake.snapshot().device(device) or DeviceWake(device)
        self.plays: tuple[Play, ...] = wake.plays(device)
        kinds = (TrialKind.QUERY, TrialKind.UNDERSTAND)
        device_queries = (
            query for query in progress.trials if query.trial.device == device and query.trial.kind in kinds
        )
        self.queries = tuple(query for query in device_queries if query.trial.recipe.wake_phrase is not None)

    def woken_share(self, condition: CallCondition | None = None) -> Share:
        """The share of wake phrases that woke it, in wake trials, commands, and first attempts at queries."""
        wakes: list[bool] = []
        for play in self.plays:
            has_evidence = play.kind is TrialKind.WAKE or (
                play.kind is TrialKind.COMMAND and _reports_wakes(play.target.reports)
            )
            if has_evidence and condition in (None, condition_of(play.trial)):
                wakes.append(play.reading.hit is not None)
        for query in self.queries:
            attempts = [] if query.counting is None else tested_attempts(query.counting)
            has_evidence = bool(attempts) and _reports_wakes(query.trial.reports)
            if has_evidence and condition in (None, condition_of(query.trial)):
                wakes.append(attempts[0].outcome is not Outcome.NO_WAKE)
        return Share(sum(wakes), len(wakes))

    def requests(self, condition: CallCondition | None = None) -> tuple[Share, int]:
        """The share of requests that arrived whole, of those that are known, and how many of these did not wake it."""
        whole, unwoken = Share(), 0
        for query in self.queries:
            if condition not in (None, condition_of(query.trial)):
                continue
            for _, gaps in requests_asked([query]):
                for gap in gaps:
                    whole += gap.whole
                    unwoken += gap.unwoken if gap.whole.total else 0
        for play in self.plays:
            if (request := play.request) is not None and condition in (None, condition_of(play.trial)):
                whole += Share(bool(request.arrived), 1)
                if not request.woken:
                    unwoken += 1
        return whole, unwoken

    def responses(self) -> Share:
        """The share of correct responses: right effects of those known, else requests that arrived whole."""
        keys = [
            (query.trial.id, response.take, response.attempt) for query in self.queries if (response := query.response)
        ]
        effects = right_effects(self.progress.effects[key] for key in keys if key in self.progress.effects)
        return effects if effects.total else self.requests()[0]

    def first_sounds(self, condition: CallCondition) -> FirstSounds:
        """Times from the end of commands and queries to the device's first sound."""
        times = [play.first_sound for play in self.plays if play.was_answered and condition_of(play.trial) is condition]
        for query in self.queries:
            take = query.counting
            verdict = take.deciding.verdict if take and take.deciding else None
            heard = verdict is not None and verdict.outcome is not Outcome.NO_WAKE and query.trial.microphone
            if heard and verdict is not None and condition_of(query.trial) is condition:
                times.append(verdict.first_sound)
        return FirstSounds.of(times)


def _reports_wakes(reports: Sequence[ObservationKind]) -> bool:
    return ObservationKind.WAKE in reports


@frozen
class Clause:
    """A clause of a procedure.

    - what: the property that it measures, in words. wanted: the criterion; "" without one.
    - key: the scenario's key that provides for it. column: column of the report that has its result.
    - judge: returns the result of a session.
    """

    what: str
    wanted: str
    key: str
    column: str
    judge: Callable[[DeviceSession], ClauseResult]


@frozen
class ClauseRow:
    """A clause with a device's result."""

    device: str
    clause: Clause
    result: ClauseResult


NOTHING = ClauseResult("nothing played")


def _missed_clause(condition: CallCondition, max_share: float) -> Callable[[DeviceSession], ClauseResult]:
    """The clause on the share of wake phrases that were missed. max_share: the largest allowed."""

    def judge(session: DeviceSession) -> ClauseResult:
        woken = session.woken_share(condition)
        if woken.value is None:
            return NOTHING
        missed = Share(woken.total - woken.count, woken.total)
        value, played = text.share_with_interval(missed), missed.total / SELF_TEST_CALLS
        return _count_result(value, missed.count, max_share * SELF_TEST_CALLS, played, f"{SELF_TEST_CALLS} utterances")

    return judge


def _woken_clause(condition: CallCondition) -> Callable[[DeviceSession], ClauseResult]:
    return lambda session: _share_clause(session.woken_share(condition))


def _share_clause(share: Share) -> ClauseResult:
    return NOTHING if share.value is None else ClauseResult(text.share_with_interval(share))


def _judge_samples(session: DeviceSession) -> ClauseResult:
    """Whether there are enough wake phrases in each condition that was played."""
    counts = {condition: session.woken_share(condition).total for condition in CallCondition}
    played = {condition: count for condition, count in counts.items() if count}
    if not played:
        return NOTHING
    summary = ", ".join(f"{condition}: {count}" for condition, count in played.items())
    return ClauseResult(summary, min(played.values()) >= SELF_TEST_CALLS)


def _judge_pause(session: DeviceSession) -> ClauseResult:
    """The shortest pause before a request from which on requests consistently arrive whole."""
    requests = requests_of_session(session.progress.totals.requests, WakeProgress((session.wake,)))
    gaps = dict(requests).get(session.device, ())
    pause = shortest_pause(gaps) if len(gaps) > 1 else None
    if pause is None:
        return ClauseResult("needs requests after several pauses")
    if any(gap.total < CONSISTENT for gap in gaps if gap.gap_ms <= MAX_PAUSE_MS):
        return ClauseResult(f"needs {CONSISTENT} requests after each pause")
    is_met = pause.consistent is not None and pause.consistent <= MAX_PAUSE_MS
    return ClauseResult(consistent_words(gaps), is_met)


def _accepts_clause(max_accepts: int | None, hours: float) -> Callable[[DeviceSession], ClauseResult]:
    """The clause on false accepts. max_accepts: the largest number in that many hours of exposure; None: no limit."""

    def judge(session: DeviceSession) -> ClauseResult:
        accepts = session.wake.after_review
        if accepts.hours <= 0:
            return NOTHING
        value = f"{accepts.count} in {numbers.exposure(accepts.hours)}"
        if max_accepts is None:
            return ClauseResult(value)
        return _count_result(
            value, accepts.count, max_accepts, accepts.hours / hours, f"{numbers.number(hours)} h", _EXPOSURE_TOLERANCE
        )

    return judge


def _count_result(
    value: str, count: int, max_count: float, played: float, needed: str, tolerance: float = 0.0
) -> ClauseResult:
    """The result of a clause that limits a count in a whole test.

    - played: how many times the test was played, 1 or more if it is complete; a longer one may have more.
    - needed: the size of the test, in words.
    - tolerance: a test that is this much shorter is complete.
    """
    if count > max_count * max(1.0, played) + _ROUNDING:
        return ClauseResult(value, False)
    if played < 1 - tolerance:
        return ClauseResult(f"{value}: needs {needed}")
    return ClauseResult(value, True)


def _judge_proof_of_life(session: DeviceSession) -> ClauseResult:
    """Whether a probe or request woke it before the ambient sound, and one after it."""
    # Ordered by run first: after a reboot, the clock of the next run may show less.
    starts = [(play.run_index, play.start_s) for play in session.plays if play.kind is TrialKind.AMBIENT]
    if not starts:
        return NOTHING
    wakes = [
        (play.run_index, play.start_s)
        for play in session.plays
        if play.kind is not TrialKind.AMBIENT and play.reading.hit is not None
    ]
    before, after = any(wake < min(starts) for wake in wakes), any(wake > max(starts) for wake in wakes)
    return ClauseResult(f"before: {_yes(before)}, after: {_yes(after)}", before and after)


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _positions_clause(min_positions: int) -> Callable[[DeviceSession], ClauseResult]:
    """The clause on the number of places from which the device was called."""

    def judge(session: DeviceSession) -> ClauseResult:
        trials = [*(query.trial for query in session.queries), *(play.trial for play in session.plays)]
        places: set[tuple[str, ...]] = set()
        for trial in trials:
            conditions = dict(trial.conditions)
            axes = [axis for axis in ("position", "distance_m", "angle_deg") if axis in conditions]
            if axes:
                places.add(tuple(conditions[axis] for axis in axes))
        shown = ", ".join(" ".join(place) for place in sorted(places)) or "one, unnamed"
        return ClauseResult(shown, len(places) >= min_positions) if trials else NOTHING

    return judge


def _judge_responses(session: DeviceSession) -> ClauseResult:
    return _share_clause(session.responses())


def _recognised_clause(condition: CallCondition) -> Callable[[DeviceSession], ClauseResult]:
    """The clause on commands whose wake word was heard: the device was in its recognising state."""

    def judge(session: DeviceSession) -> ClauseResult:
        whole, unwoken = session.requests(condition)
        return _share_clause(Share(whole.count, max(whole.count, whole.total - unwoken)))

    return judge


def _judge_response_time(session: DeviceSession) -> ClauseResult:
    """The p95 of the times to the first sound in silence. Times that are missing may leave the verdict open."""
    first_sounds = session.first_sounds(CallCondition.SILENCE)
    p95 = first_sounds.times.p95
    if p95 is None:
        return NOTHING
    shortest, longest = (end_s < RESPONSE_LIMIT_S for end_s in first_sounds.times.p95_between_s)
    # The p95 of fewer times has no upper end; its lower end can still be too long.
    enough = first_sounds.times.total >= values_needed(p95.share) or (p95.low_s or 0.0) >= RESPONSE_LIMIT_S
    return ClauseResult(str(first_sounds), shortest if enough and shortest == longest else None)


def _judge_phrase_count(session: DeviceSession) -> ClauseResult:
    total = session.wake.false_rejects.share.total
    return ClauseResult(f"{total}", total >= TINY_WORDS) if total else NOTHING


def _judge_false_rejects(session: DeviceSession) -> ClauseResult:
    share = session.wake.false_rejects.share
    if not share.total:
        return NOTHING
    return _count_result(text.share(share), share.count, 8, share.total / TINY_WORDS, f"{TINY_WORDS} wake words")


def _judge_window(session: DeviceSession) -> ClauseResult:
    after_s = session.scenario.wake.window_after_s
    return ClauseResult(f"{exact(after_s)} s", after_s == 1.0)


_NOISE = "matrix.axes.noise"
_OPENING = "matrix.axes.opening"
_REJECTS = "false rejects"
_SILENCE, _STATIONARY, _RECORDED, _PLAYBACK = CallCondition
CLAUSES: Mapping[ProcedureName, tuple[Clause, ...]] = {
    ProcedureName.AVS_SELF_TEST: (
        Clause("FRR in silence", "at most 10 %", "trials", _REJECTS, _missed_clause(_SILENCE, 0.1)),
        Clause("FRR in stationary noise", "at most 20 %", _NOISE, _REJECTS, _missed_clause(_STATIONARY, 0.2)),
        Clause("FRR with external music", "at most 20 %", _NOISE, _REJECTS, _missed_clause(_RECORDED, 0.2)),
        Clause(
            "FRR with own music", "at most 33 %", _OPENING, _REJECTS,
            _missed_clause(_PLAYBACK, 0.33),
        ),
        Clause("utterances in each condition", "at least 30", "trials.repeat", "n", _judge_samples),
        Clause("RAR: correct responses to requests", "", "trials.effect", "effects, requests whole", _judge_responses),
        Clause("WWDD: shortest pause before a request", "at most 1 s", "matrix.axes.gap_ms", "requests", _judge_pause),
        Clause("FAR in 24 h", "at most 3", "trials.hours", "false accepts", _accepts_clause(3, 24)),
        Clause("proof of life before and after the 24 h", "both", "trials.probe", "probes", _judge_proof_of_life),
        Clause("IAR: wakes by other voices", "at most 10 %", "", "", lambda session: ClauseResult("not measured")),
        Clause("positions of the speech loudspeaker", "4", "matrix.axes.position", "conditions", _positions_clause(4)),
    ),
    ProcedureName.ESP_SR: (
        Clause("wake-up rate, quiet", "", "trials", _REJECTS, _woken_clause(_SILENCE)),
        Clause("wake-up rate, white noise", "", _NOISE, _REJECTS, _woken_clause(_STATIONARY)),
        Clause("wake-up rate, people", "", _NOISE, _REJECTS, _woken_clause(_RECORDED)),
        Clause("speech recognition rate, quiet", "", "stimuli", "requests", _recognised_clause(_SILENCE)),
        Clause("speech recognition rate, white noise", "", _NOISE, "requests", _recognised_clause(_STATIONARY)),
        Clause("speech recognition rate, people", "", _NOISE, "requests", _recognised_clause(_RECORDED)),
        Clause("false wake-ups in music and news", "", "trials.hours", "false accepts", _accepts_clause(None, 12)),
        Clause("wake words under playback", "", _OPENING, _REJECTS, _woken_clause(_PLAYBACK)),
        Clause("command words under playback", "", _OPENING, "requests", _recognised_clause(_PLAYBACK)),
        Clause("response time, quiet", "below 500 ms", "stimuli", "first sound, p95", _judge_response_time),
    ),
    ProcedureName.MLPERF_TINY: (
        Clause("wake words", "50", "trials.repeat", "n", _judge_phrase_count),
        Clause("false negatives", "at most 8", "trials", _REJECTS, _judge_false_rejects),
        Clause("false positives in 1,200 s", "at most 8", "trials.hours", "false accepts", _accepts_clause(8, 1 / 3)),
        Clause("a detection counts up to 1 s after the word", "1 s", "wake.window_after_s", "", _judge_window),
    ),
}  # fmt: skip


def clause_rows(scenario: Scenario, progress: Progress, wake: WakeFigures | None) -> tuple[ClauseRow, ...]:
    """Each clause of the scenario's procedure with each device's result; () without a procedure."""
    if scenario.procedure is None:
        return ()
    figures = wake or WakeFigures()
    listening = [device_wake.device for device_wake in figures.snapshot().devices]
    query_devices = [query.trial.device for query in progress.trials if query.trial.listening is None]
    devices = dict.fromkeys([*listening, *query_devices])
    sessions = [DeviceSession(device, scenario, progress, figures) for device in devices]
    clauses = CLAUSES[scenario.procedure.name]
    return tuple(ClauseRow(session.device, clause, clause.judge(session)) for session in sessions for clause in clauses)
