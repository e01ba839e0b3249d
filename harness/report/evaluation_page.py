"""Evaluations of files as one page of HTML that needs nothing else, and as JUnit for a CI server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from harness.base.foreign import plain_text
from harness.base.pages import write_filled_page
from harness.base.plain_json import from_plain
from harness.base.table import Table
from harness.base.whole_file import write_atomically
from harness.model.numbers import counted, exact
from harness.offline.figures.engines import EnginesTable, EvaluatedEngine
from harness.offline.figures.figures import limits_of
from harness.offline.figures.groups import FileBreakdown
from harness.offline.figures.sweep import PointFigures
from harness.offline.reports import tables
from harness.offline.reports.det import Curve, chosen_lines, threshold_text
from harness.offline.reports.log import (
    fault_lines,
    interval_info,
    recording_warnings,
    run_of,
    stored_lines,
    summary_line,
    verdict_of,
)
from harness.offline.reports.tables import P_OF_GROUPS, gap_texts
from harness.offline.request import DeclaredLimits
from harness.report.charts import Chart, make_det_chart
from harness.report.evaluation_cases import EvaluationCases, errors_of
from harness.report.junit import limit_case
from harness.report.junit_xml import Case, CaseVerdict, JUnitReport, Reason, Suite, to_xml
from harness.report.session_cases import MAX_LISTED, PageSounds, SoundStorage
from harness.statistics import text
from harness.statistics.verdict import LimitVerdict, worst

MAX_CASES = 2000
"""Most error cases of one evaluation in JUnit."""


def write_evaluations(
    engines: Sequence[EvaluatedEngine], table: EnginesTable, target: Path, sounds: SoundStorage
) -> LimitVerdict:
    """Writes the page to a file, completely or not at all. Returns the worst verdict. Raises LogError."""
    page_sounds = PageSounds(sounds, target)
    max_listed = max(10, MAX_LISTED // len(engines))
    sections = [_engine_values(engine, number, page_sounds, max_listed) for number, engine in enumerate(engines, 1)]
    verdict = worst(section["verdict"] for section in sections)
    write_filled_page(
        target,
        "harness.report",
        "evaluation_page.html",
        title=f"Evaluation of {plain_text(' and '.join(engine.name for engine in engines), 200)}",
        sections=sections,
        verdict=verdict,
        det=_det_chart(engines, table),
        table=table,
        tables=tables,
        equal=tables.accuracy_table(table),
        costs=Table(tables.COST_FIELDS, table.rows).cells,
        sounds=sounds,
        no_sounds=SoundStorage.NONE,
        missing_sounds=page_sounds.unreadable,
        text=text,
        threshold_text=threshold_text,
        gaps=gap_texts,
        p_of_groups=P_OF_GROUPS,
        intervals=interval_info,
        most_ids=MAX_LISTED,
    )
    return verdict


def _det_chart(engines: Sequence[EvaluatedEngine], table: EnginesTable) -> Chart | None:
    chosen = [row.equal for row in table.rows]
    if len(engines) == 1:
        chosen = [engine.chosen.shown if engine.chosen else None for engine in engines]
    curves = [
        Curve(engine.name, engine.det, engine.as_run, point) for engine, point in zip(engines, chosen, strict=True)
    ]
    words = f"Dot: the point as run{'; ring: the chosen point' if any(chosen) else ''}. Both axes are stretched near "
    words += "zero; the band is the 95 % interval of false rejects."
    title = "False rejects (%) against false accepts per hour"
    return make_det_chart("det", title, words, curves)


def _engine_values(engine: EvaluatedEngine, number: int, sounds: PageSounds, max_listed: int) -> dict[str, Any]:
    """Everything that the page shows about one evaluation; texts are escaped by the template."""
    run, summary = run_of(engine.journal), _summary(engine)
    limits = limits_of(_declared_limits(summary), engine.results)
    verdict, why = verdict_of(limits, run, engine.results.counts)
    return {
        "engine": engine,
        "number": number,
        "run": run,
        "summary": summary_line(run, engine.results),
        "warnings": [
            *fault_lines(engine.results.counts, "the log says", resampling=run.header.evaluation.resample),
            *recording_warnings(engine.results),
            *stored_lines(run),
        ],
        "verdict": verdict,
        "verdict_why": why,
        "limits": limits,
        "target": list(chosen_lines(engine.target, engine.chosen)) if engine.target else [],
        "points": _shown_points(engine),
        "groups": [from_plain(FileBreakdown, group) for group in summary.get("groups", ())],
        "cases": list(EvaluationCases(engine, number, sounds, max_listed).listed()),
    }


def _shown_points(engine: EvaluatedEngine) -> list[PointFigures]:
    """The counts at the chosen point, and at each operating point."""
    points = [engine.sweep.figures_at(point.threshold) for point in engine.points] if engine.sweep else []
    return [engine.chosen.shown, *points] if engine.chosen and engine.chosen.shown.point is None else points


def _summary(engine: EvaluatedEngine) -> dict[str, Any]:
    """The content of LOG.json, for what the journal does not have. {} if it cannot be read."""
    path = engine.log.with_name(f"{engine.log.name.removesuffix('.jsonl')}.json")
    try:
        summary = from_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return summary if isinstance(summary, dict) else {}


def _declared_limits(summary: dict[str, Any]) -> DeclaredLimits:
    return from_plain(DeclaredLimits, summary.get("limits", {}))


def write_junit(engines: Sequence[EvaluatedEngine], target: Path) -> None:
    """Writes JUnit: for each evaluation, suites of the run, its limits and its errors. Raises LogError."""
    suites = [suite for engine in engines for suite in _engine_suites(engine)]
    first = engines[0].journal
    report = JUnitReport(
        "evaluation", tuple(suites), first.header.started_s, sum(engine.journal.duration_s for engine in engines)
    )
    write_atomically(target, to_xml(report))


def _engine_suites(engine: EvaluatedEngine) -> Iterator[Suite]:
    """The suites of one evaluation. Without a limit on the number of errors, every error is a failure. With one, only
    the limit decides. As in a session, one case is the run itself: CI servers show a report without cases as "no
    tests"."""
    limits, name = _declared_limits(_summary(engine)), engine.name
    declared = limits_of(limits, engine.results)
    yield Suite(f"{name}.evaluation", (_run_case(engine),))
    if declared:
        yield Suite(f"{name}.limits", tuple(limit_case(limit, limit.words, f"{name}.limits") for limit in declared))
    figures = dict(interval_info(engine.results))
    totals = tuple((key, exact(value)) for key, value in engine.results.totals.items())
    cases = list(_error_cases(engine, {limit.name for limit in declared}))
    hidden_count = len(cases) - MAX_CASES
    properties = (("errors_not_listed", str(hidden_count)),) if hidden_count > 0 else ()
    yield Suite(f"{name}.files", tuple(cases[:MAX_CASES]), (*totals, *figures.items(), *properties))


def _run_case(engine: EvaluatedEngine) -> Case:
    """The case of the run itself, an error if files have not been played."""
    run, reason = run_of(engine.journal), None
    played = f"{run.outcomes} of {counted(run.header.planned, 'file')} played"
    if run.partial:
        reason = Reason(CaseVerdict.ERROR, "not_finished", f"the run did not finish: {played}")
    return Case("run", f"{engine.name}.evaluation", engine.journal.duration_s, reason, (played,))


def _error_cases(engine: EvaluatedEngine, bounded: set[str]) -> Iterator[Case]:
    missed, accepted, mistaken = errors_of(engine.journal)
    for kind, option, errors in (
        ("false_reject", "--max-fr", missed), ("false_accept", "--max-fa-per-hour", accepted),
        ("mistaken", "--max-wer" if engine.results.counting.words else "--max-fr", mistaken),
    ):  # fmt: skip
        for error in errors:
            details = tuple(error.details())
            reason = None if option in bounded else Reason(CaseVerdict.FAILURE, kind, kind.replace("_", " "))
            yield Case(plain_text(error.listed, 300), f"{engine.name}.{kind}", 0.0, reason, (kind, *details))
    for entry in engine.journal.outcomes():
        if entry.outcome.rejected is not None or entry.outcome.error:
            rejected = entry.outcome.rejected
            why = entry.outcome.error or (rejected.value if rejected else "")
            reason = Reason(CaseVerdict.ERROR, "rejected", plain_text(why, 300), plain_text(entry.outcome.detail, 500))
            yield Case(plain_text(entry.listed, 300), f"{engine.name}.rejected", 0.0, reason)
