"""Twenty sessions on every surface: one limit has one verdict and one sentence, wherever it is read.

`python -m tests.unit.report.test_surfaces` prints the table of sessions and surfaces.
"""

from __future__ import annotations

import html
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.dashboard.watch import View, read_criteria
from harness.dashboard.widgets.wake import limits_by_device as dashboard_limits
from harness.model.record import EndReason, SessionFinished
from harness.model.scenario import Limits, SequentialTest, Stopping
from harness.model.trial import Outcome, Recognition
from harness.report.session import limits_of, read_session
from harness.session.figures.live import LiveFigures
from harness.session.log.reader import LogReader, read_scenario
from harness.session.summary import limit_lines, session_verdict, verdict_lines
from harness.statistics.verdict import DeclaredLimit, LimitVerdict
from tests.command import harness, succeeded
from tests.unit.report.test_prometheus import parsed
from tests.unit.report.test_session_page import page, session, visible, wake_rows
from tests.unit.session.figures.rows import Rows, planned

DISTURBED = "the host stalled for 0.8 s"


def query_rows(
    trials: int = 8, failed: int = 0, ended: EndReason | None = EndReason.COMPLETED, finished: int | None = None,
    disturbed: int = 0,
) -> Rows:  # fmt: skip
    plan = [planned(number) for number in range(1, trials + 1)]
    rows = Rows.of(*plan)
    for number, trial in enumerate(plan[: trials if finished is None else finished]):
        outcome, right = (Outcome.RESPONDED, Recognition.YES)
        if number < failed:
            outcome, right = Outcome.MISHEARD, Recognition.NO
        rows.trial(
            trial.id, outcome, right, heard="what time is it", latency_s=0.5 + number / 10,
            disturbed=DISTURBED if number < disturbed else "",
        )  # fmt: skip
    if ended is not None:
        rows.add(SessionFinished(ended))
    return rows


def cut(rows: Rows, entries: int) -> Rows:
    """Without the last entries: the run goes on."""
    del rows.entries[-entries:]
    return rows


def resumed(rows: Rows) -> Rows:
    middle = len(rows.entries) // 2
    rows.entries[middle:] = [replace(entry, run=2) for entry in rows.entries[middle:]]
    return rows


@dataclass(frozen=True)
class Case:
    rows: Callable[[], Rows]
    limits: Limits
    verdict: LimitVerdict
    stopping: Stopping = field(default_factory=Stopping)


RECOGNISED = Limits(min_recognised_share=0.7)
FEW_MISSES = Limits(max_false_reject_share=0.1)
MANY_MISSES = Limits(max_false_reject_share=0.9)
CASES = {
    "passing": Case(lambda: query_rows(40), RECOGNISED, LimitVerdict.PASS),
    "marginal": Case(query_rows, Limits(min_recognised_share=0.7), LimitVerdict.MARGINAL),
    "failing": Case(lambda: query_rows(failed=4), RECOGNISED, LimitVerdict.FAIL),
    "all failed": Case(lambda: query_rows(failed=8), RECOGNISED, LimitVerdict.FAIL),
    "no latencies": Case(lambda: query_rows(0), Limits(max_latency_p95_ms=900), LimitVerdict.UNDECIDED),
    "too few latencies": Case(query_rows, Limits(max_latency_p95_ms=9000), LimitVerdict.UNDECIDED),
    "slow": Case(lambda: query_rows(40), Limits(max_latency_p95_ms=900), LimitVerdict.FAIL),
    "running": Case(lambda: query_rows(ended=None, finished=4), RECOGNISED, LimitVerdict.OPEN),
    "running, lost": Case(lambda: query_rows(ended=None, finished=7, failed=6), RECOGNISED, LimitVerdict.FAIL),
    "not begun": Case(lambda: query_rows(ended=None, finished=0), RECOGNISED, LimitVerdict.OPEN),
    "stopped": Case(lambda: query_rows(40, finished=20, ended=EndReason.ABORTED), RECOGNISED, LimitVerdict.UNDECIDED),
    "disturbed host": Case(lambda: query_rows(40, disturbed=20), RECOGNISED, LimitVerdict.UNDECIDED),
    "little disturbed": Case(lambda: query_rows(40, disturbed=1), RECOGNISED, LimitVerdict.PASS),
    "resumed": Case(lambda: resumed(query_rows(40)), RECOGNISED, LimitVerdict.PASS),
    "no limits": Case(query_rows, Limits(), LimitVerdict.NO_LIMITS),
    "wake, passing": Case(wake_rows, MANY_MISSES, LimitVerdict.PASS),
    "wake, failing": Case(wake_rows, FEW_MISSES, LimitVerdict.FAIL),
    "wake, running": Case(lambda: cut(wake_rows(), 1), MANY_MISSES, LimitVerdict.OPEN),
    "wake, running test": Case(
        lambda: cut(wake_rows(), 1), Limits(), LimitVerdict.OPEN, Stopping(false_accepts=SequentialTest(1.0, 2.0))
    ),
    "wake, upper end": Case(wake_rows, Limits(max_false_reject_upper=0.3), LimitVerdict.FAIL),
    "wake, open test": Case(
        wake_rows, Limits(), LimitVerdict.UNDECIDED, Stopping(false_accepts=SequentialTest(1.0, 2.0))
    ),
    "wake, two limits": Case(
        wake_rows, Limits(max_false_reject_share=0.9, max_false_accepts_per_hour=0.5), LimitVerdict.FAIL
    ),
}
OF_WAKE = "["


def printed(limit: DeclaredLimit) -> str:
    return limit_lines([limit])[0]


def in_show(folder: Path) -> str:
    result = succeeded(harness("show", folder))
    return result.stdout


def in_page(folder: Path) -> str:
    return visible(page(folder)[1])


def in_junit(folder: Path) -> str:
    result = succeeded(harness("export", folder, "--junit", "-"))
    root = ElementTree.fromstring(result.stdout)
    return html.unescape(" ".join(text for part in root.iter() for text in (*part.attrib.values(), part.text or "")))


def failing_in_junit(folder: Path) -> set[str]:
    """The limits and tests that JUnit counts as failures."""
    root = ElementTree.fromstring(harness("export", folder, "--junit", "-").stdout)
    suites = [suite for suite in root if suite.get("name") in ("limits", "sequential tests")]
    return {case.get("name", "") for suite in suites for case in suite if case.find("failure") is not None}


def in_message(folder: Path) -> str:
    """What a notification says of the limits: those of the figures that the engine keeps."""
    figures = LiveFigures(read_scenario(folder))
    with LogReader(folder) as reader:
        for entry in reader.entries():
            figures.add(entry)
    progress = figures.session()
    return "\n".join(verdict_lines(figures.limits(running=progress.finished is None), progress))


def surfaces(folder: Path) -> dict[str, Callable[[DeclaredLimit], bool]]:
    """For each surface whether it gives a limit its verdict in its words."""
    shown, drawn, cases, message = in_show(folder), in_page(folder), in_junit(folder), in_message(folder)
    return {
        "show": lambda limit: printed(limit) in shown,
        "page": lambda limit: f"{limit.words}{limit.verdict}" in drawn,
        "JUnit": lambda limit: limit.sentence in cases,
        "message": lambda limit: printed(limit) in message,
    }


def on_dashboard(folder: Path) -> dict[str, LimitVerdict]:
    """The limits beside the figures of each device; the verdicts by the limits' full names."""
    whole = read_session(folder)
    view = View(whole.progress, whole.wake.snapshot(), criteria=read_criteria(folder))
    return {limit.name: limit.verdict for of_device in dashboard_limits(view).values() for limit in of_device.values()}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Case, Path]:
    chosen = CASES[request.param]
    return chosen, session(tmp_path / "s", chosen.rows(), chosen.limits, chosen.stopping)


def test_a_limit_has_one_verdict_on_every_surface(case: tuple[Case, Path]) -> None:
    shown_case, folder = case
    whole, scenario = read_session(folder), read_scenario(folder)
    limits = limits_of(whole, scenario)
    verdict, why = session_verdict(limits, whole.progress)
    assert verdict is shown_case.verdict, why
    agrees, dashboard = surfaces(folder), on_dashboard(folder)
    for limit in limits:
        assert [name for name, agree in agrees.items() if not agree(limit)] == []
        if OF_WAKE in limit.name:
            assert dashboard[limit.name] is limit.verdict
    ended = whole.progress.finished is EndReason.COMPLETED
    for surface in (in_show, in_message):
        assert (f"{verdict:<9} {why[0]}" in surface(folder)) == (not ended)
    final = {limit.name for limit in limits if limit.verdict is not LimitVerdict.OPEN}
    assert failing_in_junit(folder) == {limit.name for limit in limits if limit.fails_run} & final
    assert ("no limits" in in_show(folder)) == (not limits)
    metrics = parsed(harness("export", folder, "--prometheus", "-").stdout)
    (verdict_labels,) = [labels for (name, labels), value in metrics.items() if name.endswith("verdict") and value == 1]
    assert ("verdict", verdict.value) in verdict_labels


def test_each_verdict_says_how_much_the_host_disturbed(case: tuple[Case, Path]) -> None:
    _, folder = case
    count = read_session(folder).progress.totals.disturbed.count
    for surface in (in_show, in_page, in_message):
        assert (f"the host disturbed {count} of " in surface(folder)) == bool(count), surface.__name__
    assert (f"disturbed attempts: {count} of " in in_junit(folder)) == bool(count)


def table() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        for number, (name, chosen) in enumerate(CASES.items()):
            folder = session(Path(directory) / str(number) / "s", chosen.rows(), chosen.limits, chosen.stopping)
            whole = read_session(folder)
            limits = limits_of(whole, read_scenario(folder))
            yield f"{name}: {session_verdict(limits, whole.progress)[0]}"
            for limit in limits:
                alike = ", ".join(name for name, agree in surfaces(folder).items() if agree(limit))
                yield f"    {limit.verdict:<9} {limit.sentence}   [{alike}]"


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in table()))
