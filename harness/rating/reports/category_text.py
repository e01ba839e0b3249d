"""A category report for people: the funnel, the eleven categories under both readings, groups, comparisons.

The HTML page has the same `sections`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.base.table import CrossTable, Notes, Part, Section, Table
from harness.base.text_table import Column, first_lines, join_blocks, note, shown
from harness.model.choices import By, CategoryGroup, Reading, ResultGrouping
from harness.model.frozen import frozen
from harness.model.judgment import Category
from harness.model.numbers import NOTHING, TOO_FEW, counted, hundredths, number, ordinal, p_is, percent, points, seconds
from harness.rating.figures.categories import (
    CategoryFigures,
    CountedShare,
    CrossedFigures,
    Figure,
    Method,
    RepromptFigures,
    Waits,
)
from harness.rating.figures.category_comparison import CategoryComparison, DifferingQuery
from harness.rating.figures.judged_responses import Basis, QueryOutcome, RatedTrial
from harness.rating.guide import KEYS, TO_JUDGE
from harness.rating.reports.categories import CategoryReport, QueryGroup, label_in_words, name_of
from harness.statistics.comparison import MeasureKind, sentence
from harness.statistics.significance import DRAWS, SwapTestResult
from harness.statistics.text import hundredths_interval, number_interval, seconds_interval
from harness.statistics.word_intervals import StratifiedDifference

MAX_ROWS = 100
QUERY = ("query", "queries")
TOO_FEW_WHY = f"{TOO_FEW}: a single repeated query does not generalise to other queries"


def share_span(share: CountedShare) -> str:
    """The 95 % interval of a share as text; `too few` if there is a share but no interval."""
    return TOO_FEW if share.interval is None and share.total else hundredths_interval(share.interval)


MAX_LISTED = 20
NOTE_COLUMN = 13
"""Column in which the texts of notes begin."""
FUNNEL: tuple[tuple[str, tuple[QueryOutcome, ...], str], ...] = (
    ("planned", (), ""),
    ("not played", (QueryOutcome.NOT_PLAYED,), "still to come"),
    ("not tested", (QueryOutcome.NOT_TESTED,), "skipped, aborted or interrupted"),
    ("asked", (), ""),
    ("not recognised", (QueryOutcome.NOT_RECOGNISED,), "misheard, not woken, or silent up to the last attempt"),
    ("inconclusive", (QueryOutcome.INCONCLUSIVE,), "answered, without evidence of what was heard"),
    ("recognised", (), ""),
    ("no answer", (QueryOutcome.SILENT,), ""),
    ("no recording", (QueryOutcome.NO_RECORDING,), "of the answer"),
    ("answered", (), ""),
    ("not judged", (QueryOutcome.UNJUDGED,), ""),
    ("skipped", (QueryOutcome.SKIPPED,), "by their raters"),
    ("put aside", (QueryOutcome.FLAGGED,), "flagged by a rater"),
    ("held", (QueryOutcome.HELD,), "until the effect is known"),
    ("tied", (QueryOutcome.TIED,), "no category leads, and no adjudicator has settled it"),
    ("with a category", (), ""),
)
"""Name, outcomes and remark of each line. A line with outcomes is a loss, subtracted from the stage above it."""
READINGS = {
    Reading.ADMITTED: "an admitted lack of a core capability counts as admitted defeat",
    Reading.WRONG: "as wrong",
}
BASES = {Basis.ALONE: "by a single rater"}


def report_lines(report: CategoryReport, width: int) -> Iterator[str]:
    """The summary of all queries, then a block for each grouping, crossed table and comparison.

    Unless groupings are selected, only devices are shown; JSON, CSV and page have all.
    """
    figures = report.figures
    sessions = f"{counted(len(report.sessions), 'session')}{_selection_text(report)}"
    yield shown(f"categories of {_counts_text(figures)}, {sessions}", width)
    yield ""
    hint: Iterator[str] = iter(())
    if report.selection.by is None:
        other_groupings = [grouping.value for grouping, _ in report.groups if grouping is not ResultGrouping.DEVICE]
        if other_groupings:
            more = f"More groupings: --by {', '.join(other_groupings)}. All of them: --html FILE"
            hint = Notes([("", more)]).lines(width)
        devices = tuple((grouping, groups) for grouping, groups in report.groups if grouping is ResultGrouping.DEVICE)
        crossed = () if report.selection.crosses is None else report.crossed
        report = replace(report, groups=devices, crossed=crossed)
    yield from join_blocks(
        funnel_lines(figures),
        categories_part(figures).lines(width),
        notes(figures).lines(width),
        _tied_lines(report.trials_with(QueryOutcome.TIED), width),
        *(section.lines(width, MAX_ROWS) for section in sections(report)),
        *(_comparison_lines(comparison, width) for comparison in report.comparisons),
        hint,
    )


def _counts_text(figures: CategoryFigures) -> str:
    """The number of responses that count: `3 of 13 first responses (not counted: 10 tied)`."""
    left_out = {
        QueryOutcome.UNJUDGED: "not judged",
        QueryOutcome.SKIPPED: "skipped",
        QueryOutcome.FLAGGED: "put aside",
        QueryOutcome.HELD: "held",
        QueryOutcome.TIED: "tied",
    }
    parts = [f"{figures.count(outcome)} {words}" for outcome, words in left_out.items() if figures.count(outcome)]
    if not parts:
        return counted(figures.total, "first response")
    responses = counted(figures.total + figures.count(*left_out), "first response")
    return f"{figures.total} of {responses} (not counted: {', '.join(parts)})"


@frozen
class FunnelLine:
    """A line of the funnel. is_loss: whether its queries are subtracted from the stage above it."""

    name: str
    count: int
    remark: str
    is_loss: bool


def stages(figures: CategoryFigures) -> Iterator[FunnelLine]:
    """The lines of the funnel, also those of losses that did not occur."""
    counts = {
        "planned": figures.planned,
        "asked": figures.asked,
        "recognised": figures.recognised,
        "answered": figures.answered,
        "with a category": figures.total,
    }
    bases = ", ".join(f"{count} {BASES.get(basis, basis.value)}" for basis, count in figures.bases if count)
    remarks = {"with a category": bases}
    if figures.unassessed:
        remarks["recognised"] = f"{figures.unassessed} of them not assessed (the trial required no evidence)"
    for name, outcomes, remark in FUNNEL:
        count = figures.count(*outcomes) if outcomes else counts[name]
        yield FunnelLine(name, count, remarks.get(name, remark), is_loss=bool(outcomes))


def funnel_lines(figures: CategoryFigures) -> Iterator[str]:
    """A line for each stage of the funnel, and for each kind of loss that occurred."""
    for line in stages(figures):
        if line.is_loss and not line.count:
            continue
        name = f"  {line.name}" if line.is_loss else line.name
        yield f"{name:<18}{line.count:>6,}  {line.remark}".rstrip()


def categories_part(figures: CategoryFigures) -> Part:
    """The table of categories, with counts and shares under both readings. The derived groups are below the rule."""
    if figures.why_not:
        remedy = f". {TO_JUDGE}" if figures.count(QueryOutcome.UNJUDGED) else ""
        return Notes([("categories", f"{NOTHING}: {figures.why_not}{remedy}")], NOTE_COLUMN)
    return Table.of(
        [Column(title) for title in ("category", "A: n", "%", "95 %", "B: n", "%")],
        [(f"{key} {name_of(category)}", *_cells(figures, category)) for key, category in KEYS],
        [(f"  {name_of(group)}", *_cells(figures, group)) for group in CategoryGroup],
        [(figures.share(figure).value, None) for figure in (*Category, *CategoryGroup)],
        bars=True,
    )


def notes(figures: CategoryFigures) -> Notes:
    """Notes on readings and intervals, and on what raters stated in addition to categories."""
    lack = figures.core
    lack_text = f"they differ on {counted(lack.total, 'response')}"
    if lack.total:
        lack_text += f": {lack.by_rater} marked by raters, {lack.by_scenario} by the scenario, {lack.by_both} by both"
    pairs = [("readings", f"A: {READINGS[Reading.ADMITTED]}; B: {READINGS[Reading.WRONG]}; {lack_text}")]
    if figures.total:
        pairs.append(("intervals", interval_in_words(figures)))
    flags = ", ".join(f"{flag.value.replace('_', ' ')} {count}" for flag, count in figures.sub_flags if count)
    pairs.append(("sub-flags", flags or "none"))
    if figures.flagged_too:
        pairs.append(("flags", f"a rater flagged {figures.flagged_too} of the responses with a category"))
    if figures.raters == 1:
        pairs.append(("raters", "only one, so agreement between raters is unknown"))
    return Notes(pairs, NOTE_COLUMN)


OF_A_RUN = "The intervals of a run treat trials as independent, so they apply to these queries only"


def interval_in_words(figures: CategoryFigures) -> str:
    """How intervals were computed, and to which queries they apply."""
    kind = "95 % each, not simultaneous"
    queries = counted(figures.queries, *QUERY)
    match figures.method:
        case Method.CLUSTERED:
            return f"{kind}; clustered over {queries}. {OF_A_RUN}"
        case Method.WILSON:
            return f"{kind}; Wilson over {queries}, each counted once"
        case Method.TOO_FEW:
            reason = f"a single query, asked {counted(figures.total, 'time')}, does not generalise to others"
            return f"none: {reason}. {OF_A_RUN}"


def categories_given(trial: RatedTrial) -> str:
    """The categories that raters gave to a response: `2 Correct, 1 Wrong`."""
    categories = [row.category for row in trial.judged.submitted] if trial.judged else []
    return ", ".join(
        f"{categories.count(category)} {name_of(category)}" for category in Category if category in categories
    )


def _cells(figures: CategoryFigures, figure: Figure) -> tuple[str, ...]:
    """Count and share under reading A, with its interval, then under reading B."""
    a, b = figures.share(figure), figures.share(figure, Reading.WRONG)
    return str(a.count), hundredths(a.value), share_span(a), str(b.count), hundredths(b.value)


def _tied_lines(trials: Sequence[RatedTrial], width: int) -> Iterator[str]:
    if trials:
        yield f"tied ({len(trials)}): not counted until settled"
    lines = [f"{trial.trial.id} ({trial.trial.device}): {categories_given(trial)}" for trial in trials]
    yield from (shown(f"  {line}", width) for line in first_lines(lines, MAX_LISTED, ", which the JSON has"))


def _selection_text(report: CategoryReport) -> str:
    selection = report.selection
    text = ""
    if selection.raters:
        text += f", only by {', '.join(shown(rater, 40) for rater in selection.raters)}"
    if selection.round_id is not None:
        text += f", round {shown(selection.round_id, 40)}"
    return text


MAX_DIFFERING = 15


def sections(report: CategoryReport) -> Iterator[Section]:
    """The sections on groups and crossed groups (if any response was judged), and on repeated queries."""
    groupings, crossed = (report.groups, report.crossed) if report.figures.judged else ((), ())
    parts: list[Part] = []
    for grouping, groups in groupings:
        parts += [_counts_table(grouping, groups), _shares_table(grouping, groups)]
    if groupings:
        pairs = [("", "1 to -: the categories above, reading A. 9b: wrong under reading B. ?: tied, not counted")]
        if any(group.figures.method is Method.TOO_FEW for _, groups in report.groups for group in groups):
            pairs.append(("", TOO_FEW_WHY))
        parts.append(Notes(pairs))
    parts += [_crossed_table(crossing, report.selection.on) for crossing in crossed if crossing.columns]
    if parts:
        yield Section("groups", "Groups", parts)
    yield Section("reprompts", "Re-prompts", list(_reprompt_parts(report)))


def waits_in_words(waits: Waits) -> str:
    """The pauses in words: `12, 5.00–9.10 s, median 5.20 s; 1 shorter than requested`."""
    if waits.least_s is None or waits.median_s is None or waits.most_s is None:
        return f"{NOTHING} ({'not in the log' if waits.unknown else 'no query was repeated'})"
    text = f"{waits.count}, {seconds_interval(waits.least_s, waits.most_s)}, median {seconds(waits.median_s)}"
    if waits.shorter:
        text += f"; {waits.shorter} shorter than requested"
    if waits.unknown:
        text += f"; {waits.unknown} not in the log"
    return text


def mean_span(figures: RepromptFigures) -> str:
    """The 95 % interval of the mean as text; `too few` if there is a mean but no interval."""
    has_mean = figures.mean is not None
    return TOO_FEW if figures.mean_interval is None and has_mean else number_interval(figures.mean_interval)


def _counts_table(grouping: By, groups: Sequence[QueryGroup]) -> Table[Sequence[str]]:
    columns = [Column(title) for title in (f"by {grouping.value}", "n", *(key for key, _ in KEYS), "9b", "?")]
    rows = [(label_in_words(group.label, grouping), *_count_cells(group.figures)) for group in groups]
    return Table.of(columns, rows)


def _count_cells(figures: CategoryFigures) -> tuple[str, ...]:
    counts = (figures.share(category).count for category in Category)
    wrong = figures.share(Category.WRONG, Reading.WRONG).count
    return tuple(map(str, (figures.total, *counts, wrong, figures.count(QueryOutcome.TIED))))


def _shares_table(grouping: By, groups: Sequence[QueryGroup]) -> Table[Sequence[str]]:
    titles = (f"by {grouping.value}", "correct %", "95 %", "wrong A %", "95 %", "wrong B %", "95 %")
    rows = [(label_in_words(group.label, grouping), *_share_cells(group.figures)) for group in groups]
    correct = [group.figures.share(Category.CORRECT) for group in groups]
    return Table.of(
        [Column(title) for title in titles], rows, plots=[(share.value, share.interval) for share in correct], bars=True
    )


def _share_cells(figures: CategoryFigures) -> tuple[str, ...]:
    shares = (
        figures.share(Category.CORRECT),
        figures.share(Category.WRONG),
        figures.share(Category.WRONG, Reading.WRONG),
    )
    return tuple(cell for share in shares for cell in (hundredths(share.value), share_span(share)))


def _crossed_table(crossed_figures: CrossedFigures, figure: Figure) -> CrossTable:
    first, second = crossed_figures.by
    rows = [
        (label_in_words(label, first), [_crossed_cell(figures, figure) for figures in cells])
        for label, cells in zip(crossed_figures.rows, crossed_figures.cells, strict=True)
    ]
    title = f"{first.value} by {second.value}: {name_of(figure)} in %, and the number of responses; 95 % interval below"
    return CrossTable(title, first.value, [label_in_words(label, second) for label in crossed_figures.columns], rows)


def _crossed_cell(figures: CategoryFigures | None, figure: Figure) -> tuple[str, str]:
    if figures is None or not figures.total:
        return NOTHING, ""
    share = figures.share(figure)
    return f"{hundredths(share.value)} of {share.total}", share_span(share)


NO_EVIDENCE = (
    "the scenario asks for no evidence of what was heard; with `evidence: auto`, the device or an operator reports it"
)


def _reprompt_parts(report: CategoryReport) -> Iterator[Part]:
    figures = report.reprompts
    yield _reprompt_table("attempts until recognition", [("all", figures)])
    for grouping, groups in report.groups:
        if grouping is not ResultGrouping.ATTEMPTS:
            rows = [(label_in_words(group.label, grouping), group.reprompts) for group in groups]
            yield _reprompt_table(f"by {grouping.value}", rows)
    attempts = [f"{counted(queries, *QUERY)} at the {ordinal(attempt)}" for attempt, queries in figures.needed]
    pairs = [
        ("attempts", ", ".join([*attempts, f"{figures.never} never recognised; the mean is over recognised queries"])),
        ("waits", waits_in_words(figures.waits)),
    ]
    if figures.unassessed:
        pairs.append(("left out", f"{counted(figures.unassessed, *QUERY)} not assessed: {NO_EVIDENCE}"))
    yield Notes(pairs, NOTE_COLUMN)


def _reprompt_table(title: str, rows: Sequence[tuple[str, RepromptFigures]]) -> Table[Sequence[str]]:
    titles = (title, "queries", "first %", "95 %", "mean", "95 %", "never")
    return Table.of(
        [Column(title) for title in titles],
        [(label, *_reprompt_cells(figures)) for label, figures in rows],
        plots=[(figures.first.value, figures.first.interval) for _, figures in rows],
    )


def _reprompt_cells(figures: RepromptFigures) -> tuple[str, ...]:
    first = figures.first
    shares = (hundredths(first.value), share_span(first), number(figures.mean), mean_span(figures))
    return (str(figures.assessed), *shares, str(figures.never))


def _comparison_lines(comparison: CategoryComparison, width: int) -> Iterator[str]:
    first, second = shown(comparison.first, 24), shown(comparison.second, 24)
    yield f"{first} versus {second}: {name_of(comparison.on)}, reading {comparison.reading.value.upper()}"
    if comparison.why_not or comparison.difference is None:
        yield f"  {NOTHING}: {shown(comparison.why_not, width - 8)}"
    else:
        yield from _difference_lines(comparison, comparison.difference, width)
    yield f"  unpaired     {comparison.first_unpaired} of {first}, {comparison.second_unpaired} of {second}"


def _difference_lines(comparison: CategoryComparison, estimate: StratifiedDifference, width: int) -> Iterator[str]:
    """What was compared, the difference with its tests, and the queries on which the two sides differ."""
    responses = f"{comparison.first_responses} and {counted(comparison.second_responses, 'response')}"
    pairs = counted(comparison.strata, "query-condition pair")
    yield f"  compared     {counted(comparison.queries, *QUERY)}, {pairs}; {responses}"
    yield f"  shares       {percent(estimate.first)} versus {percent(estimate.second)}"
    yield from note("  difference", difference_in_words(comparison), width, 15)
    counts = estimate.discordance
    if counts is not None:
        yield (
            f"  pairs        both {counts.both}, only the first {counts.only_first}, only the second "
            f"{counts.only_second}, neither {counts.neither}"
        )
    else:
        yield f"               {p_is(estimate.alone_p)} if responses were independent (Mantel-Haenszel)"
    yield f"  all eleven   {all_in_words(comparison)}"
    if comparison.differing:
        yield f"  the two differ on {counted(len(comparison.differing), *QUERY)}, largest difference first:"
        lines = [
            f"{points(query.difference):>7} {query.query_id}: {differing_in_words(query)}"
            for query in comparison.differing
        ]
        shown_lines = first_lines(lines, MAX_DIFFERING, ", which the JSON has")
        yield from (shown(f"    {line}", width) for line in shown_lines)


def differing_in_words(query: DifferingQuery) -> str:
    """The categories of a query on both sides: `2 Correct / 1 Correct, 1 Wrong`."""
    sides = (query.first, query.second)
    return " / ".join(", ".join(f"{count} {name_of(category)}" for category, count in side) for side in sides)


def all_in_words(comparison: CategoryComparison) -> str:
    """Whether the two sides differ over all eleven categories."""
    if comparison.all_swap is None:
        return f"p {NOTHING}: both have the same categories for every query"
    return f"{p_is(comparison.all_swap.p)}, swap test over whole queries ({_method_text(comparison.all_swap)})"


def difference_in_words(comparison: CategoryComparison) -> str:
    """Whether the second side is better, and by which test. The test swaps all responses to a query together."""
    estimate = comparison.difference
    first, second = shown(comparison.first, 24), shown(comparison.second, 24)
    text = sentence(first, second, estimate, MeasureKind.SHARE, more_is_better=comparison.more_is_better)
    if estimate is None or estimate.interval is None:
        return f"{text}: there is only one query"
    if estimate.swap is None:
        return f"{text}: their shares are equal for every query"
    return f"{text}, swap test over whole queries ({_method_text(estimate.swap)})"


def _method_text(swap: SwapTestResult) -> str:
    return "exact" if swap.exact else f"{DRAWS:,} random swaps"
