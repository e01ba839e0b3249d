"""How long devices remember: the pairs of a session's context-memory probes, and their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from harness.base.grouping import group_by
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.observation import ResponseText, Wake
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Entry,
    Observed,
    ResponseFrozen,
    ResponseTranscribed,
    SessionStarted,
    TrialFinished,
)
from harness.model.scenario import RecognitionRule
from harness.model.trial import Outcome, Trial
from harness.statistics.intervals import CONFIDENCE, Share, clopper_pearson
from harness.statistics.isotonic import CRITICAL, crossing, falling_shares
from harness.transcripts.readings import without_beginning
from harness.transcripts.recognition import readings_of

LEFT_SHARE = 0.05
"""Share of pairs that may still show memory from the recommended wait on."""
_HALF = 0.5  # The length of a memory is its median.

Floats = npt.NDArray[np.float64]


@frozen
class Pair:
    """A pair of prime and follow-up, which was asked after `wait_s`. shown: whether its answer showed memory."""

    wait_s: float
    shown: bool


@frozen
class WaitLevel:
    """The pairs with the same wait.

    - shown: share that showed memory.
    - fitted: that share by the isotonic estimate.
    """

    wait_s: float
    shown: Share
    fitted: float

    @property
    def interval(self) -> tuple[float, float]:
        """The exact 95 % interval of the share."""
        interval = clopper_pearson(self.shown.count, self.shown.total)
        assert interval is not None  # a level has a pair
        return interval


@frozen
class MemoryLength:
    """The wait at which half of the pairs show memory, in seconds.

    - bracket: waits between which the estimate crosses one half. The upper end is None if that is beyond the longest
      wait, and the lower end is 0 if it is before the shortest.
    - interval: the 95 % interval, with ends as in `bracket`.
    """

    bracket: tuple[float, float | None]
    interval: tuple[float, float | None]

    @property
    def value_s(self) -> float | None:
        """The middle of the bracket; None when an end is open."""
        low, high = self.bracket
        return None if high is None or low == 0 else (low + high) / 2


@frozen
class RecommendedWait:
    """The recommended wait, after which pairs rarely show memory.

    - left: share of the pairs with this wait or a longer one that still show memory.
    - at_most: 95 % upper bound on the share that shows memory at this wait.
    - surer: the longest tested wait and its bound; None unless that bound is lower.
    """

    wait_s: float
    left: Share
    at_most: float
    surer: tuple[float, float] | None = None


def levels(pairs: Sequence[Pair]) -> tuple[WaitLevel, ...]:
    """The pairs by their waits, shortest first."""
    waits, shown, totals = _counts_by_wait(pairs)
    return tuple(
        WaitLevel(float(wait_s), Share(int(count), int(total)), float(fitted))
        for wait_s, count, total, fitted in zip(waits, shown, totals, falling_shares(shown, totals), strict=True)
    )


def memory_length(pairs: Sequence[Pair], critical: float = CRITICAL) -> MemoryLength | None:
    """The length of the device's memory; None without pairs."""
    if not pairs:
        return None
    waits, shown, totals = _counts_by_wait(pairs)
    return MemoryLength(*crossing(waits, shown, totals, _HALF, critical))


def find_forgetting_wait(
    pairs: Sequence[Pair], length: MemoryLength, left_share: float = LEFT_SHARE
) -> RecommendedWait | None:
    """The shortest wait from which on memory is rarely shown. It is not below the upper end of the length's interval.

    None if no tested wait is long enough. left_share: share of pairs that may still show memory.
    """
    until_s = length.interval[1]
    if until_s is None:
        return None
    waits, shown, totals = _counts_by_wait(pairs)
    for index in np.flatnonzero(waits >= until_s).tolist():
        remembering = Share(int(shown[index:].sum()), int(totals[index:].sum()))
        if remembering.count <= left_share * remembering.total:
            at_most, surer = _upper_bound(index, shown, totals), None
            # Only if none shows memory do the bounds of all waits hold together. The last of them is the lowest.
            if not remembering.count and index + 1 < len(waits):
                surer = float(waits[-1]), _upper_bound(len(waits) - 1, shown, totals)
            return RecommendedWait(float(waits[index]), remembering, at_most, surer)
    return None


def _upper_bound(index: int, shown: Floats, totals: Floats) -> float:
    """One-sided 95 % upper bound on the share that shows memory at a wait, valid although the pairs chose the wait.

    The share never grows with the wait, so shorter waits bound it and longer ones do not. The bound uses the pairs back
    to the last shorter wait that showed memory, and counts all that show memory from this wait on. If none does, the
    bounds of all waits hold together with 95 %. Each fails only if all pairs from some place on show nothing, and the
    event with the latest such place contains the others.
    """
    count, first = int(shown[index:].sum()), index
    while first and not shown[first - 1]:  # back over shorter waits that showed no memory
        first -= 1
    total = int(totals[first : index + 1].sum())
    bound = clopper_pearson(min(count, total), total, 2 * CONFIDENCE - 1)  # one-sided: all of the error is above
    assert bound is not None  # a wait has a pair
    return bound[1]


def _counts_by_wait(pairs: Sequence[Pair]) -> tuple[Floats, Floats, Floats]:
    """The waits, shortest first, and for each the number of pairs that showed memory, and of all; arrays (n,)."""
    waits, place = np.unique([pair.wait_s for pair in pairs], return_inverse=True)
    shown = np.bincount(place, weights=[pair.shown for pair in pairs], minlength=len(waits))
    return waits.astype(np.float64), shown.astype(np.float64), np.bincount(place).astype(np.float64)


WAIT_STEP_S = 0.1
"""Waits are rounded to this: about the error of the end of an answer in a microphone's recording."""
GUARD_S = 0.5
"""A text that arrives earlier than this before the end of the follow-up belongs to the prime."""
MAX_LATE_S = 0.3
"""A pair counts among those of its planned wait up to this much above it, for a warning of waits not reached."""


class AnswerSource(StrEnum):
    """Where the answer's text is from: the device's report, or the harness's transcription of its first response."""

    DEVICE = "device"
    TRANSCRIPTION = "transcription"


@frozen
class MemoryPoint:
    """One pair of prime and follow-up.

    - planned_s, waited_s: planned and real wait, from the last sound of the answer to the prime until the follow-up
      starts.
    - error_s: bound on the error of the time of that last sound.
    - woke_s: time from that last sound to the wake event of the follow-up; None if none was reported.
    - shown: whether the answer shows memory; None if unknown, with the reason in `why`.
    - answer, source: the words of the answer, and where they are from.
    """

    trial: Trial
    planned_s: float
    waited_s: float | None = None
    error_s: float = 0.0
    woke_s: float | None = None
    shown: bool | None = None
    answer: str = ""
    source: AnswerSource | None = None
    why: str = ""


@frozen
class MemoryFinding:
    """Results of the pairs of one device, or of one device under one label of an axis; None where there is no result.

    - group: the label; "" without an axis.
    - length: how long the device remembers. to_wake: the same, with waits up to the wake event. None unless every pair
      that counts has one.
    - forgotten: the recommended wait. why: the reason if there is none; else "".
    """

    device: str
    group: str
    points: tuple[MemoryPoint, ...]
    levels: tuple[WaitLevel, ...]
    length: MemoryLength | None
    to_wake: MemoryLength | None
    forgotten: RecommendedWait | None
    why: str

    @property
    def counted(self) -> int:
        """Number of pairs that count."""
        return sum(level.shown.total for level in self.levels)

    @property
    def exceeded_waits(self) -> Mapping[float, float]:
        """Planned waits that were exceeded, because of a pause or a slow device → mean actual wait."""
        waits_by_plan = group_by(
            (point.planned_s, point.waited_s) for point in self.points if point.waited_s is not None
        )
        mean_waits = {planned_s: sum(waits) / len(waits) for planned_s, waits in sorted(waits_by_plan.items())}
        return {planned_s: mean_s for planned_s, mean_s in mean_waits.items() if mean_s > planned_s + MAX_LATE_S}

    @property
    def left_out(self) -> tuple[tuple[str, int], ...]:
        """Number of pairs that do not count, by cause code."""
        return tuple(Counter(point.why.partition(":")[0] for point in self.points if point.shown is None).items())


@dataclass(slots=True)
class _Take:
    """The rows of one take of a trial, by attempt.

    - started, ended, frozen, finished: rows of these kinds.
    - sounded_s: when the bench was last heard before the attempt. asked_s: when its query ended.
    - texts: answers as the device reported them. heard: the harness's transcription of the answer.
    - woke_s: time of the first wake event.
    """

    started: dict[int, AttemptStarted] = field(default_factory=dict)
    sounded_s: dict[int, float] = field(default_factory=dict)
    asked_s: dict[int, float] = field(default_factory=dict)
    ended: dict[int, AttemptFinished] = field(default_factory=dict)
    texts: dict[int, list[str]] = field(default_factory=dict)
    heard: dict[int, str] = field(default_factory=dict)
    woke_s: dict[int, float] = field(default_factory=dict)
    frozen: dict[int, ResponseFrozen] = field(default_factory=dict)
    finished: TrialFinished | None = None


class MemoryFigures:
    """Finds the pairs of memory probes in a log's rows, which it takes in their order. It ignores other trials.

    plan: the trials, if the log's first row does not list them.
    """

    def __init__(self, plan: Iterable[Trial] = ()) -> None:
        self._trials = {trial.id: trial for trial in plan if trial.memory is not None}
        self._takes: dict[str, dict[int, _Take]] = {}
        self._seq = 0

    @classmethod
    def of(cls, entries: Iterable[Entry], plan: Iterable[Trial] = ()) -> MemoryFigures:
        """The statistics of all rows of a log."""
        figures = cls(plan)
        for entry in entries:
            figures.add(entry)
        return figures

    @property
    def planned(self) -> int:
        """Number of pairs in the plan."""
        return sum(trial.is_follow_up for trial in self._trials.values())

    def add(self, entry: Entry) -> None:
        """Takes one row; ignores one that it has seen."""
        if entry.seq <= self._seq:
            return
        self._seq = entry.seq
        match entry.record:
            case SessionStarted(trials=trials):
                self._trials = {trial.id: trial for trial in trials if trial.memory is not None}
            case TrialFinished() as row if row.trial_id in self._trials:
                self._take(row.trial_id, row.take).finished = row
            case AttemptStarted() as row if row.trial_id in self._trials:
                take = self._take(row.trial_id, row.take)
                take.started[row.attempt] = row
                take.asked_s[row.attempt] = entry.at_s + row.query_end_s
                if row.waited_s is not None:
                    take.sounded_s[row.attempt] = entry.at_s - row.waited_s
            case AttemptFinished() as row if row.trial_id in self._trials:
                self._take(row.trial_id, row.take).ended[row.attempt] = row
            case ResponseFrozen() as row if row.trial_id in self._trials:
                self._take(row.trial_id, row.take).frozen[row.attempt] = row
            case ResponseTranscribed() as row if row.trial_id in self._trials:
                self._take(row.trial_id, row.take).heard[row.attempt] = row.text
            case Observed(trial_id=str() as trial_id, take=int() as number, attempt=int() as attempt) as row:
                if trial_id in self._trials:
                    self._observe(row, self._take(trial_id, number), attempt)
            case _:
                pass

    def points(self) -> tuple[MemoryPoint, ...]:
        """One point for each pair whose follow-up has ended, by its latest finished take, in the order of the plan."""
        points = []
        for trial in self._trials.values():
            takes = {n: take for n, take in self._takes.get(trial.id, {}).items() if take.finished is not None}
            if takes and trial.is_follow_up:
                points.append(self._point(trial, takes[max(takes)]))
        return tuple(points)

    def _take(self, trial_id: str, number: int) -> _Take:
        return self._takes.setdefault(trial_id, {}).setdefault(number, _Take())

    @staticmethod
    def _observe(row: Observed, take: _Take, attempt: int) -> None:
        match row.observation:
            case ResponseText(text=text, at=at) if at.at_s >= take.asked_s.get(attempt, 0.0) - GUARD_S:
                take.texts.setdefault(attempt, []).append(text)
            case Wake(at=at):
                take.woke_s.setdefault(attempt, at.at_s)
            case _:
                pass

    def _point(self, trial: Trial, take: _Take) -> MemoryPoint:
        part, ended = trial.memory, take.finished
        assert part is not None
        assert ended is not None
        attempt = ended.deciding_attempt
        started = None if attempt is None else take.started.get(attempt)
        if attempt is None or started is None or started.waited_s is None:
            return MemoryPoint(trial, part.wait_s, why=ended.cause or ended.outcome.value)
        woke_s, sounded_s = take.woke_s.get(attempt), take.sounded_s[attempt]
        text, source = _answer(take, attempt)
        shown, why = _shows_memory(trial, take.ended.get(attempt), text)
        return MemoryPoint(
            trial=trial,
            planned_s=part.wait_s,
            waited_s=started.waited_s,
            error_s=self._error_s(part.primed_by),
            woke_s=None if woke_s is None or woke_s < sounded_s else woke_s - sounded_s,
            shown=shown,
            answer=text,
            source=source,
            why=why,
        )

    def _error_s(self, prime: str) -> float:
        """Bound on the error of the end of the answer to the prime, in its latest take that was answered."""
        for _, take in sorted(self._takes.get(prime, {}).items(), reverse=True):
            if take.frozen:
                return take.frozen[max(take.frozen)].ends.error_s
        return 0.0


def find_memories(points: Iterable[MemoryPoint], axis: str | None = None) -> tuple[MemoryFinding, ...]:
    """Results per device, in the order of the plan; with `axis`, per device and label of that axis."""
    groups: dict[tuple[str, str], list[MemoryPoint]] = {}
    for point in points:
        label = dict(point.trial.conditions).get(axis, "") if axis else ""
        groups.setdefault((point.trial.device, label), []).append(point)
    return tuple(find_memory(device, label, points_of_group) for (device, label), points_of_group in groups.items())


def find_memory(device: str, group: str, points: Sequence[MemoryPoint]) -> MemoryFinding:
    """The results of the points of one device and group. Without a pair that shows memory, no wait is recommended."""
    pairs = _pairs((point.waited_s, point.shown) for point in points)
    to_wake = _pairs((point.woke_s, point.shown) for point in points)
    length = memory_length(pairs)
    forgotten_wait = None if length is None else find_forgetting_wait(pairs, length)
    if not any(pair.shown for pair in pairs):
        forgotten_wait = None
    return MemoryFinding(
        device=device,
        group=group,
        points=tuple(points),
        levels=levels(pairs) if pairs else (),
        length=length,
        to_wake=memory_length(to_wake) if len(to_wake) == len(pairs) else None,
        forgotten=forgotten_wait,
        why="" if forgotten_wait is not None else _no_wait_reason(pairs, length),
    )


def _pairs(waits: Iterable[tuple[float | None, bool | None]]) -> list[Pair]:
    """The pairs with a known wait and a known result. waits: (wait in s, whether memory was shown)."""
    return [
        Pair(round(round(wait_s / WAIT_STEP_S) * WAIT_STEP_S, 3), shown)
        for wait_s, shown in waits
        if wait_s is not None and shown is not None
    ]


def _no_wait_reason(pairs: Sequence[Pair], length: MemoryLength | None) -> str:
    """Why there is no recommended wait."""
    if length is None:
        return "none of the pairs counts"
    shortest_s, longest_s = min(pair.wait_s for pair in pairs), max(pair.wait_s for pair in pairs)
    if not any(pair.shown for pair in pairs):
        return f"no memory seen, even after {exact(shortest_s)} s"
    if length.bracket[1] is None:
        return f"the device remembers for longer than {exact(longest_s)} s, the longest wait"
    if length.interval[1] is None:
        return f"the device may remember for longer than {exact(longest_s)} s: more pairs or longer waits are needed"
    long_s = exact(length.interval[1])
    return f"after every wait of {long_s} s or more, too many pairs show memory: longer waits are needed"


def _answer(take: _Take, attempt: int) -> tuple[str, AnswerSource | None]:
    """The answer, from the device's report, else from the harness's transcription."""
    texts = [text for text in take.texts.get(attempt, ()) if text.strip()]
    if texts:
        return " ".join(texts), AnswerSource.DEVICE
    heard = take.heard.get(attempt, "")
    return heard, AnswerSource.TRANSCRIPTION if heard.strip() else None


def _shows_memory(trial: Trial, row: AttemptFinished | None, answer: str) -> tuple[bool | None, str]:
    """Whether an answer shows memory; or None, and why that is unknown.

    Words of `shows` are evidence even if recognition is unknown, because a device must have understood to say them.
    Their absence is evidence only when the follow-up was understood.
    """
    part = trial.memory
    assert part is not None
    shows = _contains_phrase(answer, part.shows, trial.recognised)
    forgets = _contains_phrase(answer, part.forgets, trial.recognised)
    if shows and forgets:
        return None, "both: the answer has words from `shows` and from `forgets`"
    if shows:
        return True, ""
    if row is None or not row.outcome.answered:
        outcome = Outcome.INTERRUPTED if row is None else row.outcome
        return None, f"{outcome.value}: {row.cause}" if row is not None and row.cause else outcome.value
    if not answer.strip():
        return None, "no_text: the device reported no answer, and the recording could not be transcribed"
    if forgets or not part.forgets:
        return False, ""
    return None, "neither: the answer has no words from `shows` or `forgets`"


def _contains_phrase(answer: str, phrases: Iterable[str], rule: RecognitionRule) -> bool:
    """Whether one of the phrases occurs in the answer, in one of its readings."""
    words = readings_of(answer, rule)
    for phrase in phrases:
        reading = readings_of(phrase, rule)
        if reading and any(without_beginning(words[start:], reading) is not None for start in range(len(words))):
            return True
    return False
