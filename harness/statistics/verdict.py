"""A declared limit and its verdict: one rule for sessions and evaluations, while they run and at their end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from harness.model import numbers
from harness.model.frozen import frozen
from harness.statistics import text
from harness.statistics.intervals import Interval

if TYPE_CHECKING:
    from harness.statistics.agreement import Figure


class LimitVerdict(StrEnum):
    """The verdict on a limit, in the order of severity.

    MARGINAL: the limit holds, but the interval reaches beyond it, or too little was measured for an interval.
    OPEN: the run is not over and may still change the verdict. UNDECIDED: nothing or too little was measured, or the
    host disturbed the run. NO_LIMITS: a whole run for which no limits are declared.
    """

    NO_LIMITS = "NO LIMITS"
    PASS = "PASS"
    MARGINAL = "MARGINAL"
    OPEN = "OPEN"
    UNDECIDED = "UNDECIDED"
    FAIL = "FAIL"

    @property
    def in_words(self) -> str:
        """The words for a limit's verdict in a sentence."""
        return _IN_WORDS[self]


_IN_WORDS = {
    LimitVerdict.NO_LIMITS: "no limits",
    LimitVerdict.PASS: "holds",
    LimitVerdict.MARGINAL: "holds, but its interval crosses the limit",
    LimitVerdict.OPEN: "open",
    LimitVerdict.UNDECIDED: "undecided",
    LimitVerdict.FAIL: "fails",
}
SEVERITY = tuple(LimitVerdict)


@frozen
class ValueUnit:
    """How values of one unit are written.

    - write: a result.
    - interval: an interval.
    - declared: a limit, with as many digits as it was declared with.
    """

    write: Callable[[float | None], str] = numbers.number
    interval: Callable[[Interval], str] = text.number_interval
    declared: Callable[[float], str] = numbers.exact


SHARE = ValueUnit(numbers.percent, text.percent_interval, lambda value: f"{numbers.exact(value * 100)} %")
RATE = ValueUnit()
COEFFICIENT = ValueUnit(text.coefficient, text.coefficient_interval)


@frozen
class DeclaredLimit:
    """A declared limit, with the result that is compared with it."""

    name: str
    """Its key or option, with the device if it has one: `max_false_reject_share[kitchen]`."""
    words: str
    """What it limits, for people."""
    wanted: float
    """The limit, in the unit of `found`."""
    found: float | None
    """The result; None if nothing or too little was measured."""
    is_minimum: bool = False
    """Whether `wanted` is the least allowed value. If False, it is the greatest."""
    unit: ValueUnit = RATE
    """How its values are written."""
    interval: Interval | None = None
    """95 % interval of the result, in the same unit; None without one."""
    of: str = ""
    """What was counted, such as `57 trials`; "" for nothing."""
    why_not: str = ""
    """Why `found` is None; "" if it is not."""
    or_more: bool = False
    """Whether `found` is only the lower end of the interval, since there were too few values."""
    has_interval: bool = False
    """Whether the measure has an interval if enough is measured."""
    compares_bound: bool = False
    """Whether the worse end of the interval is compared, not the estimate."""
    running: bool = False
    """Whether results may still come."""
    settled: bool = False
    """Whether no further result can change this verdict."""
    of_host: bool = False
    """Whether it limits the behaviour of the host, which says nothing about a device."""
    may_stay_open: bool = False
    """Whether the run may succeed although this limit is undecided at its end."""

    @property
    def of_test(self) -> bool:
        """Whether the limit is a sequential test. `found` is then 1 (passed), 0 (failed) or None (no decision)."""
        return self.name.partition("[")[0].endswith("_test")

    @property
    def bound(self) -> float | None:
        """The worse end of the interval: the lower one of a minimum, else the upper one. None without an interval."""
        if self.interval is None:
            return None
        low, high = self.interval
        return low if self.is_minimum else high

    @property
    def verdict(self) -> LimitVerdict:
        """The verdict, by the rule that sessions and evaluations share."""
        if self.running and not self.settled:
            return LimitVerdict.OPEN
        value = self.bound if self.compares_bound and self.found is not None else self.found
        if value is None:
            return LimitVerdict.UNDECIDED
        if not self._allows(value):
            return LimitVerdict.UNDECIDED if self.of_host else LimitVerdict.FAIL
        if self.bound is None:
            return LimitVerdict.MARGINAL if self.has_interval else LimitVerdict.PASS
        return LimitVerdict.PASS if self._allows(self.bound) else LimitVerdict.MARGINAL

    @property
    def holds(self) -> bool:
        """Whether the limit is met, also if only just."""
        return self.verdict in (LimitVerdict.PASS, LimitVerdict.MARGINAL)

    @property
    def fails_run(self) -> bool:
        """Whether the limit sets the exit status to 1."""
        return not self.holds and not (self.may_stay_open and self.verdict is not LimitVerdict.FAIL)

    def _allows(self, value: float) -> bool:
        return value >= self.wanted if self.is_minimum else value <= self.wanted

    @property
    def wanted_text(self) -> str:
        """`≤ 5 %`; "to pass" for a sequential test."""
        if self.of_test:
            return "to pass"
        return f"{'≥' if self.is_minimum else '≤'} {self.unit.declared(self.wanted)}"

    @property
    def limit_text(self) -> str:
        """`latency, p95 ≤ 900 ms`; for a sequential test only its words."""
        return self.words if self.of_test else f"{self.words} {self.wanted_text}"

    @property
    def found_text(self) -> str:
        """`3.20 %`; for a sequential test its decision."""
        if self.of_test:
            decision = "passed" if self.found else "failed"
            return "no decision" if self.found is None else decision
        if self.found is None:
            return numbers.NOTHING + self._why_not_text
        return f"{self._value_text(self.found)}{' or more' if self.or_more else ''}"

    def _value_text(self, value: float) -> str:
        """A value as text, with more digits if it would read like the limit, such as 5.004 % with a limit of 5 %."""
        value_text = self.unit.write(value)
        reads_alike = value != self.wanted and value_text == self.unit.write(self.wanted)
        return self.unit.declared(value) if reads_alike else value_text

    @property
    def _why_not_text(self) -> str:
        return f" ({self.why_not})" if self.why_not else ""

    @property
    def interval_text(self) -> str:
        """`1.10–7.09 %`, `148 ms or more`; "" without an interval."""
        ends = [end for end in self.interval or () if not math.isinf(end)]
        if self.interval is None or not ends:
            return ""
        if len(ends) == 1:
            return f"{self.unit.write(ends[0])} or {'more' if math.isinf(self.interval[1]) else 'less'}"
        return self.unit.interval(self.interval)

    @property
    def sentence(self) -> str:
        """`recognised ≥ 70 %: found 90.9 %, holds`, `recognised ≥ 70 %: no data yet, open`."""
        if self.of_test:
            return f"{self.words}: {self.found_text if self.found is not None else self.verdict.in_words}"
        if self.found is None:
            result = f"no data{' yet' if self.verdict is LimitVerdict.OPEN else self._why_not_text}"
        elif not self.compares_bound:
            result = f"found {self.found_text}"
        elif self.bound is None:
            result = f"found {self.found_text}, too little data for an interval"
        else:
            reach = "down" if self.is_minimum else "up"
            result = f"found {self.found_text} (interval {reach} to {self._value_text(self.bound)})"
        if self.verdict is LimitVerdict.MARGINAL and self.bound is None:
            return f"{self.limit_text}: {result}, holds, but with too little data for an interval"
        return f"{self.limit_text}: {result}, {self.verdict.in_words}"


def alpha_limit(words: str, min_alpha: float, alpha: Figure) -> DeclaredLimit:
    """The limit of the option `--min-alpha`: the estimate of alpha (not its interval) must be at least `min_alpha`."""
    return DeclaredLimit(
        "--min-alpha",
        words,
        wanted=min_alpha,
        found=alpha.value,
        is_minimum=True,
        unit=COEFFICIENT,
        interval=alpha.interval,
        why_not=alpha.why_not,
        has_interval=True,
    )


def worst(verdicts: Iterable[LimitVerdict]) -> LimitVerdict:
    """The most severe of some verdicts; NO_LIMITS without any."""
    return max(verdicts, key=SEVERITY.index, default=LimitVerdict.NO_LIMITS)


def limits_met_text(limits: Sequence[DeclaredLimit]) -> str:
    """How many limits hold: `3 of 4 limits met`, or `no limits are declared`."""
    if not limits:
        return "no limits are declared"
    return f"{sum(limit.holds for limit in limits)} of {len(limits)} limits met"


def unmet_limits_text(limits: Sequence[DeclaredLimit]) -> str:
    """The limits that set the exit status to 1: `failed: latency, p95 ≤ 900 ms; undecided: recognised ≥ 70 %`. ""
    without any."""
    verdicts = {LimitVerdict.FAIL: "failed", LimitVerdict.UNDECIDED: "undecided"}
    return "; ".join(
        f"{word}: {limit.limit_text}"
        for verdict, word in verdicts.items()
        for limit in limits
        if limit.fails_run and limit.verdict is verdict
    )
