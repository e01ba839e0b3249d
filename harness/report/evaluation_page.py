"""Evaluations of files as one page of HTML that needs nothing else, and as JUnit for a CI server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.base.foreign import plain_text
from harness.base.pages import filled_page
from harness.base.plain_json import restored
from harness.base.text_table import counted
from harness.base.whole_file import write_whole
from harness.model.choices import LimitsOn
from harness.offline.asked import DeclaredLimits
from harness.offline.figures.counts import OfflineCounts
from harness.offline.figures.engines import EnginesTable, EvaluatedEngine
from harness.offline.figures.figures import LimitCheck, limit_checks
from harness.offline.figures.groups import FileBreakdown
from harness.offline.figures.sweep import PointFigures, figures_at
from harness.offline.reports import engines as tables
from harness.offline.reports.det import Curve
from harness.offline.reports.groups import gap_texts
from harness.offline.reports.log import EvaluationRun, clip_warnings, interval_info, run_of, summary_line
from harness.report.charts import Chart, det_chart
from harness.report.evaluation_cases import EvaluationCases, errors_of
from harness.report.junit_xml import Case, CaseVerdict, JUnitReport, Reason, Suite, as_xml
from harness.report.session_cases import MOST_LISTED, Cases, PageSounds, SoundsIn
from harness.report.verdict import SEVERITY, ReportLimit, ReportVerdict
from harness.statistics import text

MOST_CASES = 2000
"""Of JUnit, for one evaluation."""


@dataclass(frozen=True, slots=True)
class EvaluationSection:
    """Everything that the page shows about one evaluation; texts are escaped by the template."""

    engine: EvaluatedEngine
    number: int
    run: EvaluationRun
    summary: str
    warnings: tuple[str, ...]
    verdict: ReportVerdict
    verdict_why: str
    limits: tuple[ReportLimit, ...]
    points: tuple[PointFigures, ...]
    groups: tuple[FileBreakdown, ...]
    cases: tuple[Cases, ...]

    @property
    def counts(self) -> OfflineCounts:
        return self.engine.counted.counts


def write_evaluations(
    engines: Sequence[EvaluatedEngine], table: EnginesTable, target: Path, sounds: SoundsIn
) -> ReportVerdict:
    """Writes the page to a file, completely or not at all; returns the worst verdict. LogError."""
    shelf = PageSounds(sounds, target)
    most = max(10, MOST_LISTED // len(engines))
    sections = [_section(one, number, shelf, most) for number, one in enumerate(engines, 1)]
    worst = max((one.verdict for one in sections), key=SEVERITY.index)
    page = filled_page(
        "harness.report",
        "evaluation_page.html",
        title=f"Evaluation of {plain_text(' and '.join(one.name for one in engines), 200)}",
        sections=sections,
        verdict=worst,
        det=_det(engines),
        table=table,
        tables=tables,
        columns=tables.accuracy_columns(table),
        sounds=sounds,
        no_sounds=SoundsIn.NONE,
        missing_sounds=shelf.missing,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        text=text,
        gaps=gap_texts,
        intervals=interval_info,
        most_ids=MOST_LISTED,
    )
    write_whole(target, page.encode("utf-8"))
    return worst


def _det(engines: Sequence[EvaluatedEngine]) -> Chart | None:
    words = "A dot: as it ran. Both axes are stretched towards zero; the band is the 95 % interval of false rejects."
    title = "False rejects, %, at each number of false accepts per hour"
    return det_chart("det", title, words, [Curve(one.name, one.det, one.own) for one in engines])


def _section(engine: EvaluatedEngine, number: int, sounds: PageSounds, most: int) -> EvaluationSection:
    run, written = run_of(engine.journal), _summary(engine)
    limits = tuple(_limits(engine, _declared(written)))
    verdict = max((one.verdict for one in limits), key=SEVERITY.index, default=ReportVerdict.NO_LIMITS)
    held = sum(one.verdict in (ReportVerdict.PASS, ReportVerdict.MARGINAL) for one in limits)
    why = f"{held} of {counted(len(limits), 'limit')} hold" if limits else "no limit was declared"
    if run.partial:
        verdict = max(verdict, ReportVerdict.UNDECIDED, key=SEVERITY.index)
        why = f"interrupted after {run.outcomes} of {run.header.planned} files"
    points = () if engine.sweep is None else tuple(figures_at(engine.sweep, one.threshold) for one in engine.points)
    groups = tuple(restored(FileBreakdown, one) for one in written.get("groups", ()))
    cases = tuple(EvaluationCases(engine, number, sounds, most).listed())
    summary, warnings = summary_line(run, engine.counted), tuple(clip_warnings(engine.counted))
    return EvaluationSection(engine, number, run, summary, warnings, verdict, why, limits, points, groups, cases)


def _summary(engine: EvaluatedEngine) -> dict[str, Any]:
    """LOG.json: what the journal does not have."""
    path = engine.log.with_name(f"{engine.log.name.removesuffix('.jsonl')}.json")
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _declared(summary: dict[str, Any]) -> DeclaredLimits:
    return restored(DeclaredLimits, summary.get("limits", {}))


def _limits(engine: EvaluatedEngine, limits: DeclaredLimits) -> Iterator[ReportLimit]:
    """The limits that were declared. MARGINAL: the estimate keeps it, which is compared, but its interval does not."""
    for one in limit_checks(limits, engine.counted):
        if one.fails(limits.on):
            verdict = ReportVerdict.FAIL
        else:
            beyond = one.bound is not None and one.bound > one.wanted
            verdict = ReportVerdict.MARGINAL if beyond else ReportVerdict.PASS
        found, bound = (text.NOTHING if value is None else f"{value:.4g}{one.unit}" for value in (one.value, one.bound))
        on = "the upper end" if limits.on is LimitsOn.BOUND else "the estimate"
        wanted = f"at most {one.wanted:g}{one.unit}"
        yield ReportLimit(f"{one.what} ({one.option})", wanted, found, f"up to {bound}", f"compared: {on}", verdict)


def write_junit(engines: Sequence[EvaluatedEngine], target: Path) -> None:
    """Writes JUnit: a suite of limits, and one of errors, for each evaluation. LogError."""
    suites = [suite for one in engines for suite in _suites(one)]
    first = engines[0].journal
    report = JUnitReport(
        "evaluation", tuple(suites), first.header.started_s, sum(one.journal.duration_s for one in engines)
    )
    write_whole(target, as_xml(report))


def _suites(engine: EvaluatedEngine) -> Iterator[Suite]:
    """Without a limit on their number, every error fails. With one, the limit alone decides."""
    limits, name = _declared(_summary(engine)), engine.name
    checks = list(limit_checks(limits, engine.counted))
    if checks:
        yield Suite(f"{name}.limits", tuple(_limit_case(one, limits.on, f"{name}.limits") for one in checks))
    figures = dict(interval_info(engine.counted))
    totals = tuple((key, f"{value:g}") for key, value in engine.counted.totals.items())
    cases = list(_error_cases(engine, {one.option for one in checks}))
    left = len(cases) - MOST_CASES
    more = (("errors_not_listed", str(left)),) if left > 0 else ()
    yield Suite(f"{name}.files", tuple(cases[:MOST_CASES]), (*totals, *figures.items(), *more))


def _limit_case(one: LimitCheck, on: LimitsOn, class_name: str) -> Case:
    reason = Reason(CaseVerdict.FAILURE, "limit", one.failure(on)) if one.fails(on) else None
    said = f"wanted at most {one.wanted:g}{one.unit}"
    return Case(one.what, class_name, 0.0, reason, (said,))


def _error_cases(engine: EvaluatedEngine, bounded: set[str]) -> Iterator[Case]:
    missed, accepted, mistaken = errors_of(engine)
    for kind, option, errors in (
        ("false_reject", "--max-fr", missed), ("false_accept", "--max-fa-per-hour", accepted),
        ("mistaken", "--max-wer" if engine.counted.counting.words else "--max-fr", mistaken),
    ):  # fmt: skip
        for one in errors:
            said = tuple(one.details())
            reason = None if option in bounded else Reason(CaseVerdict.FAILURE, kind, kind.replace("_", " "))
            yield Case(plain_text(one.listed, 300), f"{engine.name}.{kind}", 0.0, reason, (kind, *said))
    for found in engine.journal.outcomes():
        if found.outcome.rejected is not None or found.outcome.error:
            rejected = found.outcome.rejected
            why = found.outcome.error or (rejected.value if rejected else "")
            reason = Reason(CaseVerdict.ERROR, "rejected", plain_text(why, 300), plain_text(found.outcome.detail, 500))
            yield Case(plain_text(found.listed, 300), f"{engine.name}.rejected", 0.0, reason)
