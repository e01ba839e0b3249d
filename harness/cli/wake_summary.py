"""The wake figures of a session, a block for each device; plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.base.foreign import plain_text
from harness.cli.happenings import REVIEW_WORDS
from harness.statistics.intervals import Share
from harness.statistics.latency import LatencyFigures, Quantile
from harness.wake.wake import WakeFigures
from harness.wake.wake_comparison import Comparison, comparisons
from harness.wake.wake_progress import DeviceWake, Interval, Rate, Ratio

NOTHING = "n/a (of none)"


def wake_summary(figures: WakeFigures) -> list[str]:
    """Lines on every device that listened, and on each two of them; none where there were no such trials."""
    progress = figures.snapshot()
    if not progress.planned:
        return []
    lines = [f"wake trials          {progress.counted} of {progress.planned} counted"]
    for device in progress.devices:
        lines += ["", *_device(device)]
    if len(progress.devices) > 1:
        lines += ["", *_pairs(comparisons(figures))]
    return lines


def _device(device: DeviceWake) -> Iterator[str]:
    yield f"device {plain_text(device.device, 80)}"
    yield f"  false rejects      {ratio(device.false_rejects)}"
    yield f"  false accepts      {rate(device.after_review)}, after review"
    yield f"                     {rate(device.false_accepts)}, before review"
    yield f"  heard              {in_hours(device.exposure_s)}, and {in_hours(device.unproven_s)} without proof"
    yield f"  wake delay         {delays(device.delays)}"
    if device.probes.total:
        yield f"  probes             {device.probes.count} of {device.probes.total} heard"
    if device.commands.total:
        wrong = f"{device.substituted} misunderstood, {device.missed} missed"
        yield f"  commands           {share(device.commands)}; {wrong}"
    words = ((count, "unreviewed" if word is None else REVIEW_WORDS[word]) for word, count in device.events)
    events = ", ".join(f"{word} {count}" for count, word in words) or "none"
    more = [
        f"{count} {what}"
        for count, what in (
            (device.in_vocabulary_events, "in wake trials"),
            (device.uncounted_events, "in wake trials that do not count"),
            (device.ambient_events_outside, "outside of exposure"),
            (device.pending_events, "in an attempt that is not over"),
            (device.suppressed, "within the refractory time"),
        )
        if count
    ]
    beside = f" ({', '.join(more)})" if more else ""
    yield f"  unmatched events   {events}{beside}"
    for figure, passed in device.decisions:
        yield f"  sequential test    {figure.replace('_', ' ')}: {'passed' if passed else 'FAILED'}"
    for condition, found in device.conditions:
        yield f"    {plain_text(condition, 60)}: {ratio(found)}"


def _pairs(found: Iterable[Comparison]) -> Iterator[str]:
    """McNemar's test of two devices each, on the stimuli that count for both."""
    for one in found:
        both = one.found
        p = "n/a (they never differ)" if both.p is None else f"{both.p:.3g}"
        yield (
            f"{plain_text(one.first, 60)} against {plain_text(one.second, 60)}: of the same {both.total} stimuli both "
            f"heard {both.both}, only the first {both.only_first}, only the second {both.only_second}, "
            f"none {both.neither}; McNemar p = {p}"
        )


def ratio(value: Ratio) -> str:
    """`3 of 120 = 2.50% (95 % exact 0.52% to 7.13%; at any time 0.15% to 10.36%)`, or `… over 5 voices …`."""
    found = value.share
    if found.value is None:
        return NOTHING
    basis = f"over {value.speakers} voices" if value.speakers else "exact"
    return (
        f"{found.count} of {found.total} = {found.value:.2%} (95 % {basis} {_percent(value.interval)};"
        f" at any time {_percent(value.any_time)})"
    )


def rate(value: Rate) -> str:
    """`4 in 0.500 h = 8.00/h (95 % exact 2.18 to 20.48; at any time 0.51 to 34.10)`."""
    if value.per_hour is None:
        return f"{value.count} in 0 h: n/a"
    return (
        f"{value.count} in {value.hours:.3f} h = {_number(value.per_hour)}/h (95 % exact {_per_hour(value.interval)};"
        f" at any time {_per_hour(value.any_time)})"
    )


def share(value: Share) -> str:
    if value.value is None or value.interval is None:
        return NOTHING
    low, high = value.interval
    return f"{value.count} of {value.total} = {value.value:.1%} (95 % interval {low:.1%} to {high:.1%})"


def delays(figures: LatencyFigures) -> str:
    """`median 312 ms (290 to 330), p95 512 ms (480 to ?), p99 620 ms (512 to ?), clocks ± 1 ms (of 117)`."""
    if figures.p50 is None or figures.p95 is None or figures.p99 is None:
        return NOTHING
    error = max(one.clock_error_s for one in (figures.p50, figures.p95, figures.p99))
    return (
        f"median {_quantile(figures.p50)}, p95 {_quantile(figures.p95)}, p99 {_quantile(figures.p99)}, "
        f"clocks ± {error * 1000:.2g} ms (of {figures.total})"
    )


def in_hours(value_s: float) -> str:
    """H:MM:SS.s, the hours not padded."""
    tenths = round(value_s * 10)
    return f"{tenths // 36000}:{tenths // 600 % 60:02}:{tenths % 600 / 10:04.1f}"


def span(value_s: float) -> str:
    return f"{value_s:.1f} s"


def _quantile(value: Quantile) -> str:
    low, high = ("?" if end is None else f"{end * 1000:.0f}" for end in (value.low_s, value.high_s))
    return f"{value.value_s * 1000:.0f} ms ({low} to {high})"


def _percent(interval: Interval | None) -> str:
    return "n/a" if interval is None else f"{interval[0]:.2%} to {interval[1]:.2%}"


def _per_hour(interval: Interval | None) -> str:
    return "n/a" if interval is None else f"{_number(interval[0])} to {_number(interval[1])}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
