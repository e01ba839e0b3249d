"""A session's results in Prometheus' text format, for a node exporter's textfile directory.

Source: Prometheus text exposition format 0.0.4. Every value is a gauge, since the file shows the present state of one
session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.base.foreign import plain_text
from harness.model.numbers import exact
from harness.model.scenario import Scenario
from harness.report.session import WholeSession, limits_of
from harness.session.figures.progress import words_of_session
from harness.session.figures.requests import requests_of_session
from harness.session.summary import session_verdict
from harness.statistics.intervals import Interval, LatencyFigures, values_needed
from harness.statistics.verdict import SEVERITY

SCHEMA = 1
"""Version of METRICS. Metrics and labels may be added under the same number, but not removed or given another
meaning."""
METRICS = {
    "info": "Session details; schema: version of this list",
    "last_row_seconds": "Unix time of the last row",
    "verdict": "1 for the verdict of the session, 0 for the others",
    "trials_planned": "Planned trials",
    "trials": "Trials that ended, by outcome",
    "result": "Shares (0 to 1), word error rates (1 is 100 %) and false accepts per hour after review",
    "result_low": "Lower end of the 95 % interval",
    "result_high": "Upper end of the 95 % interval",
    "result_of": "Number of trials, words or hours of proven exposure from which the result was computed",
    "connection_losses": "How often the connection to a device was lost",
    "connection_lost_seconds": "How long the connection to a device was lost in total",
    "restarts": "Restarts of a device, excluding power cycles by the run",
    "interrupted_attempts": "Attempts interrupted by a lost connection or by a restart of a device",
    "requests_whole": "Requests that arrived whole, by the pause after their wake phrase",
    "requests_known": "Requests known to have arrived whole or cut, by the pause after their wake phrase",
    "duration_seconds": "Quantiles of wake delay, latency and time to first sound; p95 from 20 values, p99 from 100",
    "duration_of": "Number of durations",
}
Labels = Mapping[str, str]


def prometheus(session: WholeSession, scenario: Scenario) -> str:
    """The whole text. Results without trials are left out; labels are escaped."""
    lines_by_metric: dict[str, list[str]] = {name: [] for name in METRICS}
    for name, labels, value in _all_samples(session, scenario):
        all_labels = {"session": session.started.session_id, **labels}
        label_text = ",".join(f'{key}="{_escape_label(label)}"' for key, label in all_labels.items())
        lines_by_metric[name].append(f"voice_harness_{name}{{{label_text}}} {float(value)!r}")
    return "".join(
        f"# HELP voice_harness_{name} {METRICS[name]}\n# TYPE voice_harness_{name} gauge\n" + "\n".join(lines) + "\n"
        for name, lines in lines_by_metric.items()
        if lines
    )


def _escape_label(label: str) -> str:
    return plain_text(label, 200).replace("\\", r"\\").replace('"', r"\"")


def _all_samples(session: WholeSession, scenario: Scenario) -> Iterator[tuple[str, Labels, float]]:
    started, totals = session.started, session.progress.totals
    wake = session.wake.snapshot()
    yield "info", {"scenario": started.scenario_id, "bench": started.bench_id, "schema": str(SCHEMA)}, 1
    yield "last_row_seconds", {}, session.last_s
    limits = limits_of(session, scenario)
    verdict, _ = session_verdict(limits, session.progress)
    for state in SEVERITY:
        yield "verdict", {"verdict": state.value}, int(state is verdict)
    yield "trials_planned", {}, totals.planned
    for outcome, count in totals.by_outcome:
        yield "trials", {"outcome": outcome.value}, count
    for connection in session.progress.connections:
        labels = {"device": connection.device}
        yield "connection_losses", labels, connection.lost
        yield "connection_lost_seconds", labels, connection.lost_s
        yield "restarts", labels, connection.restarts
        yield "interrupted_attempts", labels, connection.interrupted
    shares = {
        "recognised": totals.recognised,
        "first_attempt": totals.first_attempt,
        "answered": totals.answered,
        "effects": totals.effects,
        "understood": totals.understood.right,
    }
    for name, share in shares.items():
        yield from _result_samples(name, "", share.value, share.interval, share.total)
    for name, words in zip(("first_wer", "final_wer"), words_of_session(totals, wake), strict=True):
        yield from _result_samples(name, "", words.counts.wer, words.interval, words.counts.words)
    yield from _duration_samples("wake_delay", "", totals.wake_delay)
    yield from _duration_samples("latency", "", totals.latency)
    yield from _duration_samples("first_sound", "", totals.first_sounds.times)
    for name, gaps in requests_of_session(totals.requests, wake):
        for gap in gaps:
            labels = {"device": name, "gap_ms": str(gap.gap_ms)}
            yield "requests_whole", labels, gap.whole.count
            yield "requests_known", labels, gap.whole.total
    for device in wake.devices:
        rejects, accepts = device.false_rejects, device.after_review
        yield from _result_samples(
            "false_rejects", device.device, rejects.share.value, rejects.interval, rejects.share.total
        )
        yield from _result_samples(
            "false_accepts_per_hour", device.device, accepts.per_hour, accepts.interval, accepts.hours
        )
        yield from _result_samples(
            "commands", device.device, device.commands.value, device.commands.interval, device.commands.total
        )
        yield from _duration_samples("wake_delay", device.device, device.delays)
        yield from _duration_samples("first_sound", device.device, device.first_sounds.times)


def _result_samples(
    name: str, device: str, value: float | None, interval: Interval | None, total: float
) -> Iterator[tuple[str, Labels, float]]:
    if value is None:
        return
    labels = {"device": device, "result": name}
    yield "result", labels, value
    yield "result_of", labels, total
    if interval is not None:
        yield "result_low", labels, interval[0]
        yield "result_high", labels, interval[1]


def _duration_samples(name: str, device: str, figures: LatencyFigures) -> Iterator[tuple[str, Labels, float]]:
    labels = {"device": device, "of": name}
    if figures.total:
        yield "duration_of", labels, figures.total
    for quantile in (figures.p50, figures.p95, figures.p99):
        if quantile is not None and (quantile is figures.p50 or figures.total >= values_needed(quantile.share)):
            yield "duration_seconds", {**labels, "quantile": exact(quantile.share)}, quantile.value_s
