"""A session's verdict against the limits of its scenario, with what each was counted over and its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.model.record import EndReason
from harness.model.scenario import Limits, Stopping
from harness.report.session import WholeSession
from harness.session.figures.progress import DISTURBED, LimitVerdict, Totals, check_limits, words_of_session
from harness.session.figures.requests import requests_of_session
from harness.statistics import text
from harness.statistics.intervals import Interval, LatencyFigures, Quantile
from harness.wake.requests import shortest_pause
from harness.wake.wake_progress import WakeProgress


class ReportVerdict(StrEnum):
    """MARGINAL: the limit holds, but its interval reaches beyond it. UNDECIDED: not measured, or not finished."""

    PASS = "PASS"
    MARGINAL = "MARGINAL"
    UNDECIDED = "UNDECIDED"
    FAIL = "FAIL"
    NO_LIMITS = "NO LIMITS"


@dataclass(frozen=True, slots=True)
class ReportLimit:
    """A declared limit, as text. of: what was counted."""

    name: str
    wanted: str
    found: str
    interval: str
    of: str
    verdict: ReportVerdict


SEVERITY = [
    ReportVerdict.NO_LIMITS,
    ReportVerdict.PASS,
    ReportVerdict.MARGINAL,
    ReportVerdict.UNDECIDED,
    ReportVerdict.FAIL,
]


def limits_of(session: WholeSession, limits: Limits, stopping: Stopping) -> Iterator[ReportLimit]:
    """Each declared limit and sequential test."""
    return limit_rows(session.progress.totals, session.wake.snapshot(), limits, stopping)


def limit_rows(totals: Totals, wake: WakeProgress, limits: Limits, stopping: Stopping) -> Iterator[ReportLimit]:
    """The same from results that need not be a session's."""
    for one in check_limits(limits, totals, wake, stopping):
        of, interval = _basis(totals, wake, one)
        if one.of_test:
            found = "undecided" if one.found is None else "passed" if one.found else "failed"
            verdict = (
                ReportVerdict.UNDECIDED if one.found is None else ReportVerdict.PASS if one.ok else ReportVerdict.FAIL
            )
            yield ReportLimit(one.name, "passed", found, "", of, verdict)
            continue
        shown = _unit(one.name)
        span = "" if interval is None else f"{shown(interval[0])} to {shown(interval[1])}"
        yield ReportLimit(one.name, shown(one.wanted), shown(one.found), span, of, _limit_verdict(one, interval))


def _limit_verdict(one: LimitVerdict, interval: Interval | None) -> ReportVerdict:
    if one.undecided:
        return ReportVerdict.UNDECIDED
    if not one.ok:
        return ReportVerdict.FAIL
    if interval is None:
        return ReportVerdict.PASS
    beyond = interval[0] < one.wanted if one.name.startswith("min_") else interval[1] > one.wanted
    return ReportVerdict.MARGINAL if beyond else ReportVerdict.PASS


def _unit(name: str) -> Callable[[float | None], str]:
    if "_ms" in name:
        return _milliseconds
    if any(word in name for word in ("share", "wer", "reject")):
        return text.percent
    return text.number


def _milliseconds(value: float | None) -> str:
    if value is None:
        return text.NOTHING
    return "any length" if math.isinf(value) else f"{value:.0f} ms"


def _basis(totals: Totals, wake: WakeProgress, limit: LimitVerdict) -> tuple[str, Interval | None]:
    """What a limit's result was counted over, and its 95 % interval, if it has one."""
    name, _, device_name = limit.name.removesuffix("]").partition("[")
    first, final = words_of_session(totals, wake)
    if name == DISTURBED:
        return f"{totals.disturbed.total} attempts", None
    shares = {
        "min_recognised_share": totals.recognised,
        "min_first_attempt_share": totals.first_attempt,
        "min_effect_share": totals.effects,
        "min_understood_share": totals.understood.right,
        "min_intent_share": totals.understood.intents,
    }
    if name in shares:
        return f"{shares[name].total} trials", shares[name].interval
    if name == "max_latency_p95_ms":
        return f"{_used(totals.latency)} responses", _ends_ms(totals.latency.p95)
    if name == "max_first_sound_p95_ms":
        of = wake.device(device_name)
        sounds = totals.first_sounds if of is None else of.first_sounds
        return f"{_used(sounds.times)} {'queries' if of is None else 'commands'}", _ends_ms(sounds.times.p95)
    if name.endswith("_wer"):
        words = first if "first" in name else final
        return f"{words.counts.words} words", words.interval
    if name == "max_request_gap_ms":
        gaps = dict(requests_of_session(totals.requests, wake)).get(device_name, ())
        pause = shortest_pause(gaps)
        interval = (
            None if pause is None else (pause.interval[0], math.inf if (high := pause.interval[1]) is None else high)
        )
        return f"{sum(gap.whole.total for gap in gaps)} requests", interval
    device = wake.device(device_name)
    if device is None:
        return f"{totals.finished} of {totals.planned} trials", None
    if "reject" in name:
        interval = device.false_rejects.interval if name.endswith("share") else None
        return f"{device.false_rejects.share.total} wake trials", interval
    if name == "max_wake_delay_p95_ms":
        return f"{_used(device.delays)} wake events", _ends_ms(device.delays.p95)
    if "command" in name:
        return f"{device.commands.total} commands", device.commands.interval
    interval = device.after_review.interval if name == "max_false_accepts_per_hour" else None
    return f"{device.after_review.hours:.3f} h", interval


def _used(times: LatencyFigures) -> str:
    return f"{times.total} of {times.measured}" if times.excluded else f"{times.total}"


def _ends_ms(quantile: Quantile | None) -> Interval | None:
    """The ends of a quantile's interval, ms; None where there are too few values for one."""
    if quantile is None or quantile.low_s is None or quantile.high_s is None:
        return None
    return quantile.low_s * 1000, quantile.high_s * 1000


def worst_of(limits: Sequence[ReportLimit], finished: EndReason | None) -> ReportVerdict:
    """The worst of the limits. A run that has not completed is undecided at best."""
    worst = max((one.verdict for one in limits), key=SEVERITY.index, default=ReportVerdict.NO_LIMITS)
    if finished is not EndReason.COMPLETED:
        worst = max(worst, ReportVerdict.UNDECIDED, key=SEVERITY.index)
    return worst


def verdict_of(session: WholeSession, limits: Sequence[ReportLimit]) -> tuple[ReportVerdict, str]:
    """As `worst_of`, and why."""
    progress = session.progress
    worst = worst_of(limits, progress.finished)
    if progress.finished is not EndReason.COMPLETED:
        ended = "has not ended" if progress.finished is None else f"ended early: {progress.finished.value}"
        return worst, f"the run {ended}; {progress.totals.finished} of {progress.totals.planned} trials are finished"
    if not limits:
        return worst, "the scenario declares no limits"
    held = sum(one.verdict in (ReportVerdict.PASS, ReportVerdict.MARGINAL) for one in limits)
    return worst, f"{held} of {len(limits)} limits hold"
