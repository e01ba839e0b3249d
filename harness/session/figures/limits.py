"""A scenario's limits and sequential tests, each with its result, its interval and its verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from harness.model import numbers
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact, fixed
from harness.model.record import EndReason
from harness.model.scenario import Limits, OnUndecided, Stopping
from harness.model.trial import Outcome
from harness.session.figures.progress import Progress, Totals, words_of_session
from harness.session.figures.requests import requests_of_session
from harness.statistics.intervals import Interval, LatencyFigures, Quantile, Share, values_needed
from harness.statistics.text import seconds_interval
from harness.statistics.verdict import RATE, SHARE, DeclaredLimit, LimitVerdict, ValueUnit, worst
from harness.wake.requests import pause_compared_with, shortest_pause
from harness.wake.wake_progress import DeviceWake, WakeProgress

NO_TESTS = Stopping()
DISTURBED = "max_disturbed_share"
MAX_DISTURBED_SHARE = 0.1
"""The limit on the share of disturbed attempts, if the scenario does not declare one."""
SUBJECTS = {
    "min_recognised_share": "recognised",
    "min_first_attempt_share": "recognised at the first attempt",
    "min_answered_share": "answered",
    "max_latency_p95_ms": "latency, p95",
    "min_effect_share": "effects",
    "min_understood_share": "understood",
    "min_intent_share": "intents understood",
    "max_inconclusive": "inconclusive trials",
    "max_interrupted": "interrupted trials",
    "max_first_attempt_wer": "WER of first attempts",
    "max_final_wer": "WER of final attempts",
    "max_false_reject_share": "false rejects",
    "max_false_reject_upper": "upper end of the interval of false rejects",
    "max_false_accepts_per_hour": "false accepts per hour",
    "max_false_accepts_upper_per_hour": "upper end of the interval of false accepts per hour",
    "min_exposure_hours": "exposure",
    "min_command_share": "commands recognised",
    "max_wake_delay_p95_ms": "wake delay, p95",
    "max_first_sound_p95_ms": "first sound, p95",
    "max_request_gap_ms": "pause before the request",
    DISTURBED: "attempts that the host disturbed",
    "false_accepts_test": "sequential test of false accepts",
    "false_rejects_test": "sequential test of false rejects",
}
"""The words for what each limit is about."""


@frozen
class LimitResult:
    """The result with which a limit is compared; the fields are those of `DeclaredLimit`."""

    found: float | None
    of: str = ""
    interval: Interval | None = None
    settled: bool = False
    why_not: str = ""
    or_more: bool = False


def limits_so_far(
    limits: Limits, stopping: Stopping, progress: Progress, wake: WakeProgress | None
) -> tuple[DeclaredLimit, ...]:
    """The limits as `check_limits` gives them, for a session that has ended, still runs, or failed before it began."""
    running = progress.finished is None and not progress.failed_at_start
    return check_limits(limits, progress.totals, wake, stopping, running=running)


def worst_of(
    limits: Iterable[DeclaredLimit], finished: EndReason | None, *, failed_at_start: bool = False
) -> LimitVerdict:
    """The worst verdict on the limits. Unless one fails, an unfinished run is open, and one cut short is undecided."""
    verdicts = [limit.verdict for limit in limits]
    if finished is not EndReason.COMPLETED:
        is_running = finished is None and not failed_at_start
        verdicts.append(LimitVerdict.OPEN if is_running else LimitVerdict.UNDECIDED)
    return worst(verdicts)


def check_limits(
    limits: Limits,
    totals: Totals,
    wake: WakeProgress | None = None,
    stopping: Stopping = NO_TESTS,
    *,
    running: bool = False,
) -> tuple[DeclaredLimit, ...]:
    """The result of each declared limit: on wake statistics for each device, on WER for all devices together.

    Times that were left out may have had any length. If they could change the verdict on a limit, it has no result. Nor
    has a limit on a percentile of too few times, unless even the lower end of its interval exceeds the limit.
    If wake statistics have limits or tests but no device has such statistics, there is one without a result. False
    accepts are those after review. Sequential tests come last; an open one fails the run unless `stopping` says that it
    passes. If there are any limits, one on attempts that the host disturbed is added when it is exceeded.
    running: whether further results may come.
    """
    results = [*_query_results(limits, totals, wake)]
    devices = wake.devices if wake else ()
    for device in devices:
        results += _device_results(limits, device)
    if not devices:
        results += [(name, LimitResult(None, totals.finished_in_words)) for name in _WAKE_LIMITS]
    results += _first_sound_results(limits.max_first_sound_p95_ms, totals, devices)
    results += _request_pause_results(limits.max_request_gap_ms, totals, wake)
    declared: list[DeclaredLimit] = []
    for name, result in results:
        bound = getattr(limits, name.partition("[")[0])
        if bound is not None:
            declared.append(_declared_limit(name, bound, result))
    tests = [test for device in devices or (None,) for test in _sequential_tests(device, stopping)]
    share, max_share = totals.disturbed, limits.max_disturbed_share
    if max_share is None and (tests or declared) and (share.value or 0.0) > MAX_DISTURBED_SHARE:
        max_share = MAX_DISTURBED_SHARE
    if max_share is not None:
        result = LimitResult(share.value, counted(share.total, "attempt"))
        declared.append(_declared_limit(DISTURBED, max_share, result))
    return tuple(replace(limit, running=running) for limit in (*declared, *tests))


def _declared_limit(name: str, bound: float, result: LimitResult) -> DeclaredLimit:
    """A limit with its result. name: the scenario's key, with the device in brackets if it is on one device."""
    key, _, device = name.removesuffix("]").partition("[")
    unit = _unit(key)
    return DeclaredLimit(
        name,
        f"{SUBJECTS[key]} of {device}" if device else SUBJECTS[key],
        bound,
        result.found,
        is_minimum=key.startswith("min_"),
        unit=unit,
        interval=result.interval,
        of=result.of,
        why_not=result.why_not,
        settled=result.settled,
        or_more=result.or_more,
        has_interval=unit in (SHARE, RATE) and "_upper" not in key and key != DISTURBED,
        of_host=key == DISTURBED,
    )


def _unit(key: str) -> ValueUnit:
    if key == "max_request_gap_ms":
        return _PAUSE
    if key.endswith("_ms"):
        return _DURATION
    if any(word in key for word in ("share", "wer", "reject")):
        return SHARE
    if key == "min_exposure_hours":
        return _HOURS
    return _COUNT if key in ("max_inconclusive", "max_interrupted") else RATE


def _pause(value_ms: float | None) -> str:
    if value_ms is None:
        return numbers.NOTHING
    return "any length" if math.isinf(value_ms) else f"{exact(value_ms)} ms"


def _hours(value: float | None) -> str:
    return numbers.NOTHING if value is None else numbers.exposure(value)


def _count(value: float | None) -> str:
    return numbers.NOTHING if value is None else fixed(value, 0)


_DURATION = ValueUnit(
    lambda value_ms: numbers.seconds(None if value_ms is None else value_ms / 1000),
    lambda ends_ms: seconds_interval(ends_ms[0] / 1000, ends_ms[1] / 1000),
    lambda value_ms: f"{exact(value_ms)} ms" if value_ms < 1000 else f"{exact(value_ms / 1000)} s",
)
_PAUSE = ValueUnit(_pause, lambda ends_ms: f"{exact(ends_ms[0])} to {exact(ends_ms[1])} ms", _pause)
"""The unit of pauses between wake phrase and request, which scenarios give in ms."""
_HOURS = ValueUnit(_hours, declared=lambda value: f"{exact(value)} h")
_COUNT = ValueUnit(_count)
NamedResult = tuple[str, LimitResult]


def _query_results(limits: Limits, totals: Totals, wake: WakeProgress | None) -> Iterator[NamedResult]:
    """Limits on queries. A result is settled if no trial that is left can change the verdict any more."""
    unfinished, to_rerun, effects = totals.planned - totals.finished, totals.to_rerun, totals.effects

    def share_result(name: str, share: Share) -> NamedResult:
        # Shares are compared as quotients, like the verdict: as a float, 0.56 * 25 is more than 14.
        bound = getattr(limits, name)
        best_count = share.count + unfinished + to_rerun  # one that is played again may be in the total already
        settled = bound is not None and share.total > 0 and best_count / (share.total + unfinished) < bound
        return name, LimitResult(share.value, counted(share.total, "trial"), share.interval, settled)

    yield share_result("min_recognised_share", totals.recognised)
    yield share_result("min_first_attempt_share", totals.first_attempt)
    yield share_result("min_answered_share", totals.answered)
    yield "max_latency_p95_ms", _p95_result(totals.latency, limits.max_latency_p95_ms, "response")
    yield "min_effect_share", LimitResult(effects.value, counted(effects.total, "trial"), effects.interval)
    yield share_result("min_understood_share", totals.understood.right)
    yield share_result("min_intent_share", totals.understood.intents)
    for name, outcome in (("max_inconclusive", Outcome.INCONCLUSIVE), ("max_interrupted", Outcome.INTERRUPTED)):
        count, bound = totals.count(outcome), getattr(limits, name)
        yield name, LimitResult(count, totals.finished_in_words, settled=bound is not None and count - to_rerun > bound)
    if limits.max_first_attempt_wer is not None or limits.max_final_wer is not None:
        for name, words in zip(("max_first_attempt_wer", "max_final_wer"), words_of_session(totals, wake), strict=True):
            yield name, LimitResult(words.wer, counted(words.counts.words, "word"), words.interval)


_WAKE_LIMITS = (
    "max_false_reject_share",
    "max_false_reject_upper",
    "max_false_accepts_per_hour",
    "max_false_accepts_upper_per_hour",
    "min_exposure_hours",
    "min_command_share",
    "max_wake_delay_p95_ms",
)


def _device_results(limits: Limits, wake: DeviceWake) -> Iterator[NamedResult]:
    """Limits on wake statistics, in the order of _WAKE_LIMITS."""
    rejects, accepts, commands = wake.false_rejects, wake.after_review, wake.commands
    heard = numbers.exposure(accepts.hours)
    hours = wake.exposure_s / 3600
    results = (
        LimitResult(rejects.share.value, counted(rejects.share.total, "wake trial"), rejects.interval),
        LimitResult(_upper(rejects.interval), counted(rejects.share.total, "wake trial")),
        LimitResult(accepts.per_hour, heard, accepts.interval),
        LimitResult(_upper(accepts.interval), heard),
        LimitResult(hours, heard, settled=hours >= (limits.min_exposure_hours or 0.0)),
        LimitResult(commands.value, counted(commands.total, "command"), commands.interval),
        _p95_result(wake.delays, limits.max_wake_delay_p95_ms, "wake event"),
    )
    for name, result in zip(_WAKE_LIMITS, results, strict=True):
        yield f"{name}[{wake.device}]", result


def _first_sound_results(
    limit_ms: float | None, totals: Totals, devices: Iterable[DeviceWake]
) -> Iterator[NamedResult]:
    """The limit on first sounds: for all queries together, and for each device's commands.

    If there are neither, there is one without a result.
    """
    name = "max_first_sound_p95_ms"
    commands = [device for device in devices if device.first_sounds.times.measured]
    if totals.first_sounds.times.measured or not commands:
        yield name, _p95_result(totals.first_sounds.times, limit_ms, "first sound")
    for device in commands:
        yield f"{name}[{device.device}]", _p95_result(device.first_sounds.times, limit_ms, "first sound")


def _request_pause_results(limit_ms: float | None, totals: Totals, wake: WakeProgress | None) -> Iterator[NamedResult]:
    """The limit on the pause before requests, for each device with requests; one without a result if there are none."""
    if limit_ms is None:
        return
    devices = requests_of_session(totals.requests, wake)
    for device, gaps in devices:
        pause = shortest_pause(gaps)
        interval = None
        if pause is not None and pause.interval is not None:
            low, high = pause.interval
            interval = low, math.inf if high is None else high
        requests = counted(sum(gap.whole.total for gap in gaps), "request")
        yield f"max_request_gap_ms[{device}]", LimitResult(pause_compared_with(gaps, limit_ms), requests, interval)
    if not devices:
        yield "max_request_gap_ms", LimitResult(None)


def _sequential_tests(device: DeviceWake | None, stopping: Stopping) -> Iterator[DeclaredLimit]:
    """The sequential tests on a device that are declared or decided, as limits: 1 if passed, 0 if failed.

    device: None if no device has wake statistics, so that nothing can decide them.
    """
    decided = dict(device.decisions) if device else {}
    declared = {"false_accepts": stopping.false_accepts, "false_rejects": stopping.false_rejects}
    for figure, test in declared.items():
        passed = decided.get(figure)
        if passed is not None or test is not None:
            yield DeclaredLimit(
                f"{figure}_test[{device.device}]" if device else f"{figure}_test",
                SUBJECTS[f"{figure}_test"] + (f" of {device.device}" if device else ""),
                wanted=1.0,
                found=None if passed is None else float(passed),
                is_minimum=True,
                settled=passed is not None,
                may_stay_open=stopping.on_undecided is OnUndecided.PASS,
            )


def _p95_result(times: LatencyFigures, limit_ms: float | None, noun: str) -> LimitResult:
    """The p95 of times. It has no result if there are too few, or if those left out could change the verdict.

    The lower end of the interval stands for the p95 of too few times, since that already exceeds the limit.
    """
    basis = counted(times.total, noun)
    if times.excluded:
        basis = f"{times.total} of {counted(times.measured, noun)}"
    if times.p95 is None or limit_ms is None:
        return LimitResult(None, basis)
    least_count = values_needed(times.p95.share)
    low_ms = (times.p95.low_s or 0.0) * 1000
    too_few = times.total < least_count
    if too_few and low_ms <= limit_ms:
        return LimitResult(None, basis, why_not=f"{basis}, p95 needs {least_count}")
    # The p95 if the times that were left out were as short, or as long, as possible.
    holds_at_best, holds_at_worst = (end_s * 1000 <= limit_ms for end_s in times.p95_between_s)
    found_ms = low_ms if too_few else times.p95.value_s * 1000
    is_certain = holds_at_best == holds_at_worst
    return LimitResult(found_ms if is_certain else None, basis, _ends_ms(times.p95), or_more=too_few)


def _ends_ms(quantile: Quantile) -> Interval:
    """The ends of a quantile's interval in ms; an end is infinite if there are too few values for it."""
    low_s, high_s = quantile.low_s, quantile.high_s
    return -math.inf if low_s is None else low_s * 1000, math.inf if high_s is None else high_s * 1000


def _upper(interval: Interval | None) -> float | None:
    return None if interval is None else interval[1]
