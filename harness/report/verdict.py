"""The verdict on a session or an evaluation as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.record import EndReason
from harness.model.scenario import Scenario
from harness.report.session import WholeSession
from harness.session.figures.limits import limits_so_far
from harness.statistics.verdict import DeclaredLimit, LimitVerdict, worst


def limits_of(session: WholeSession, scenario: Scenario) -> tuple[DeclaredLimit, ...]:
    """Each declared limit and sequential test."""
    return limits_so_far(scenario, session.progress, session.wake.snapshot())


def worst_of(limits: Sequence[DeclaredLimit], finished: EndReason | None) -> LimitVerdict:
    """The worst of the limits. A run that goes on is open, and one that was cut short is undecided, unless it fails."""
    at_best = LimitVerdict.OPEN if finished is None else LimitVerdict.UNDECIDED
    verdicts = [limit.verdict for limit in limits]
    return worst(verdicts if finished is EndReason.COMPLETED else [*verdicts, at_best])


def verdict_of(session: WholeSession, limits: Sequence[DeclaredLimit]) -> tuple[LimitVerdict, str]:
    """As `worst_of`, and why."""
    progress = session.progress
    verdict, disturbed = worst_of(limits, progress.finished), progress.totals.disturbed
    if progress.finished is not EndReason.COMPLETED:
        ended = "has not ended" if progress.finished is None else f"ended early: {progress.finished.value}"
        why = f"the run {ended}; {progress.totals.finished} of {progress.totals.planned} trials are finished"
    elif not limits:
        why = "the scenario declares no limits"
    else:
        why = f"{sum(limit.holds for limit in limits)} of {len(limits)} limits hold"
    if disturbed.count:
        why += f"; the host disturbed {disturbed.count} of {disturbed.total} attempts"
    return verdict, why
