"""A comparison of sessions as lines, Markdown for a pull request, one page of HTML, and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.foreign import plain_text
from harness.base.pages import write_filled_page
from harness.base.plain_json import to_plain
from harness.base.text_table import note, shown
from harness.model import numbers
from harness.model.numbers import counted
from harness.model.time import MeasuredDuration
from harness.report.charts import Chart
from harness.report.comparison import ComparedMeasure, SessionComparison
from harness.report.session_facts import DifferingFact, facts_of, facts_that_differ, letter
from harness.report.session_page import DELAY_TITLE, LATENCY_TITLE, delays_by_device, distribution, latencies_by_device
from harness.statistics.comparison import DifferenceVerdict, MeasureKind, difference_text

MAX_MARKDOWN_CHARS = 60_000
"""Longest Markdown text. A comment on GitHub may have 65,536 characters."""
MAX_FACTS, MAX_FACT_LINES = 40, 12
"""Most facts in Markdown, and on a terminal, where the verdict stands below them."""
_MAX_CELL_CHARS = 100
METHOD = (
    "Each difference is the later session minus A, with its own 95 % interval.",
    "p is corrected for the number of tests (Holm): half of the 5 % is for overall results, half for conditions.",
)


def differing_facts(comparison: SessionComparison, folders: Sequence[Path]) -> tuple[DifferingFact, ...]:
    """The facts that differ between the compared sessions. Raises LogError for a bench that cannot be read."""
    return facts_that_differ(
        [facts_of(session, folder) for folder, session in zip(folders, comparison.sessions, strict=True)]
    )


# Text


def headline(comparison: SessionComparison) -> str:
    """The numbers of verdicts: `2 worse, 1 better, 3 undecided, 9 not shown to differ`."""
    return ", ".join(f"{len(comparison.rows_with(verdict))} {verdict.word}" for verdict in DifferenceVerdict)


def name_of(row: ComparedMeasure, limit: int = 80) -> str:
    """The name of a row, sanitised: `false rejects, kitchen, level_dbfs=-40`. limit: most characters of a name in
    it."""
    condition = f", {plain_text(row.axis, 40)}={plain_text(row.label, limit)}" if row.axis else ""
    return f"{row.measure}, {plain_text(row.device, limit)}{condition}"


def difference_cell(row: ComparedMeasure) -> str:
    """The difference with its interval: `+8.33 points (+2.10 to +14.6)`."""
    return difference_text(row.measure.kind, row.difference, row.interval)


def lines(comparison: SessionComparison, facts: Sequence[DifferingFact], width: int) -> Iterator[str]:
    """The comparison for a terminal: regressions and improvements under all conditions, other measures only over all
    trials."""
    for number, (session, verdict) in enumerate(zip(comparison.sessions, comparison.verdicts, strict=True)):
        yield from note(letter(number), f"{shown(session.started.session_id)}, {verdict}", width, 2)
    for warning in comparison.warnings:
        yield f"note: {warning}"
    yield ""
    for fact in facts[:MAX_FACT_LINES]:
        shown_values = [shown(value, _MAX_CELL_CHARS) or "–" for value in fact.values]
        values = ", ".join(f"{letter(number)} {value}" for number, value in enumerate(shown_values))
        yield f"differs: {shown(fact.what, _MAX_CELL_CHARS)}: {values}"
    if len(facts) > MAX_FACT_LINES:
        yield f"differs: {len(facts) - MAX_FACT_LINES} more; see --html"
    if facts:
        yield ""
    yield headline(comparison)
    rows = [row for row in comparison.rows if not row.axis or row.change.differs]
    for row in rows:
        parts = [f"{letter(row.session)} {name_of(row)}: {row.first} → {row.second}"]
        parts += [f"{difference_cell(row)}, {numbers.p_is(row.p_holm)}"] if row.p is not None else []
        parts += [f"{row.how}: {row.why}" if row.why else row.how]
        yield from note(row.change.word, "; ".join(parts), width)
    if hidden_count := len(comparison.rows) - len(rows):
        yield f"{counted(hidden_count, 'condition')} not shown to differ, or undecided; see --html"
    yield from METHOD


def markdown(comparison: SessionComparison, facts: Sequence[DifferingFact]) -> str:
    """The comparison for a comment on a pull request, in at most MAX_MARKDOWN_CHARS. Names are written as code, so that
    none becomes a link or a mention."""
    names = [
        f"- {letter(number)}: {_code(session.started.session_id)}, {_code(verdict, 400)}"
        for number, (session, verdict) in enumerate(zip(comparison.sessions, comparison.verdicts, strict=True))
    ]
    head = [
        f"### {headline(comparison)}",
        "",
        *names,
        *(f"- **Note**: {_code(warning, 400)}" for warning in comparison.warnings),
    ]
    if facts:
        letters = [letter(number) for number in range(len(comparison.sessions))]
        head += ["", _row(["differs", *letters]), _row(["---"] * (len(letters) + 1))]
        head += [_row([_code(fact.what), *map(_code, fact.values)]) for fact in facts[:MAX_FACTS]]
        head += [f"\n{len(facts) - MAX_FACTS} more differ."] if len(facts) > MAX_FACTS else []
    shown_rows = [row for row in comparison.rows if not row.axis or row.change.differs]
    titles = ("measure", "session", "", "A (baseline)", "this session", "difference (95 %)", "p", "compared")
    text_lines = [*head, "", _row(titles), _row(["---"] * len(titles))]
    end = ["", *METHOD, ""]
    # The last 100 characters are reserved for the line about rows that do not fit.
    room = MAX_MARKDOWN_CHARS - sum(len(line) + 1 for line in (*text_lines, *end)) - 100
    for index, row in enumerate(shown_rows):
        change = f"**{row.change.word}**" if row.change.differs else row.change.word
        why = f": {row.why}" if row.why else ""
        place = [row.device, f"{row.axis}={row.label}"] if row.axis else [row.device]
        name = ", ".join([row.measure.value, *map(_code, place)])
        line = _row([name, letter(row.session), change + why, row.first, row.second, difference_cell(row),
                     numbers.probability(row.p_holm).replace("<", "\\<"), row.how])  # fmt: skip
        room -= len(line) + 1
        if room < 0:
            end.insert(0, f"\n{len(shown_rows) - index} more rows do not fit here.")
            break
        text_lines.append(line)
    if hidden_count := len(comparison.rows) - len(shown_rows):
        end.insert(0, f"\n{counted(hidden_count, 'condition')} not shown to differ, or undecided.")
    return "\n".join([*text_lines, *end])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(foreign: str, limit: int = _MAX_CELL_CHARS) -> str:
    """Foreign text, made safe: no part of it is Markdown, HTML, a mention or the end of a cell."""
    safe = plain_text(foreign, limit).replace("`", "'").replace("\\", "/").replace("|", "\\|").strip()
    return f"`{safe}`" if safe else "–"


def as_json(comparison: SessionComparison, facts: Sequence[DifferingFact]) -> dict[str, Any]:
    """The comparison as one object for JSON. Durations are in seconds."""
    return {
        "sessions": {letter(number): session.started.session_id for number, session in enumerate(comparison.sessions)},
        "verdicts": {letter(number): verdict for number, verdict in enumerate(comparison.verdicts)},
        "regressions": len(comparison.rows_with(DifferenceVerdict.WORSE)),
        "warnings": list(comparison.warnings),
        "differing": to_plain(facts),
        "measures": [
            to_plain(row)
            | {"session": letter(row.session), "unit": row.measure.kind.value, "interval": finite_ends(row.interval)}
            for row in comparison.rows
        ],
    }


def finite_ends(interval: tuple[float, float] | None) -> list[float | None] | None:
    """The ends of an interval for JSON, which has no infinite numbers."""
    return None if interval is None else [end if math.isfinite(end) else None for end in interval]


def write_page(comparison: SessionComparison, facts: Sequence[DifferingFact], target: Path) -> None:
    """Writes one page of HTML, completely or not at all."""
    write_filled_page(
        target,
        "harness.report",
        "comparison_page.html",
        title="Comparison of sessions",
        comparison=comparison,
        facts=facts,
        charts=tuple(_time_charts(comparison)),
        headline=headline(comparison),
        method=" ".join(METHOD),
        changes=tuple(DifferenceVerdict),
        letter=letter,
        difference_cell=difference_cell,
        whisker=_make_whisker(comparison),
    )


def _make_whisker(comparison: SessionComparison) -> Callable[[ComparedMeasure], tuple[float, float, float] | None]:
    """A function that returns the place of a row's interval and difference on a scale of 0–100, whose middle is no
    difference. Each unit has its own scale."""
    scales: dict[MeasureKind, float] = {}
    for row in comparison.rows:
        ends = [] if row.interval is None else [abs(end) for end in row.interval if math.isfinite(end)]
        scales[row.measure.kind] = max([scales.get(row.measure.kind, 0.0), *ends])

    def place(row: ComparedMeasure) -> tuple[float, float, float] | None:
        scale = scales[row.measure.kind]
        if row.difference is None or row.interval is None or not scale:
            return None
        low, high = row.interval
        return position(low / scale), position(row.difference / scale), position(high / scale)

    def position(value: float) -> float:
        return 50 + 50 * max(-1.0, min(1.0, value))

    return place


def _time_charts(comparison: SessionComparison) -> Iterator[Chart]:
    for id_, title, times_of in (
        ("latency", LATENCY_TITLE, latencies_by_device),
        ("delay", DELAY_TITLE, lambda session: delays_by_device(session.wake)),
    ):
        curves: dict[str, list[MeasuredDuration]] = {
            f"{letter(number)} {device}": times
            for number, session in enumerate(comparison.sessions)
            for device, times in times_of(session).items()
        }
        chart = distribution(id_, title, curves)
        if chart is not None:
            words = "The table of measures gives the intervals of the medians, and of their difference."
            yield replace(chart, words=words)
