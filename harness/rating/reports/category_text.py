"""A category report as lines for people: the funnel, the eleven under both readings, groups, comparisons."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from harness.base.text_table import GAP, LEAST_LABEL, Column, shown, text_table, width_of
from harness.model.choices import Derived, Parting, Reading
from harness.model.judgment import Category
from harness.model.numbers import NOTHING, TOO_FEW, counted, hundredths, number, p_is, percent, points, seconds
from harness.rating.figures.categories import (
    By,
    CategoryComparison,
    CategoryFigures,
    CountedShare,
    CrossedFigures,
    DifferingQuery,
    Figure,
    Method,
    RepromptFigures,
    Waits,
)
from harness.rating.figures.judged import Basis, Fate, RatedTrial
from harness.rating.guide import KEYS
from harness.rating.reports.categories import CategoryReport, QueryGroup, label_in_words, name_of
from harness.statistics.significance import DRAWS, Swapping
from harness.statistics.text import hundredths_interval, number_interval, points_interval, seconds_interval

WIDEST_LABEL = 34
LEAST_BAR, WIDEST_BAR = 5, 24
MOST_ROWS = 100
QUERY = ("query", "queries")
TOO_FEW_WHY = f"{TOO_FEW}: one query, asked several times, says nothing of others"
FULL, THIN = "█", "▏"


def share_span(of: CountedShare) -> str:
    """The 95 % interval of a share; `too few` queries where there is a share and no interval."""
    return TOO_FEW if of.interval is None and of.total else hundredths_interval(of.interval)


def bar(value: float | None, width: int) -> str:
    """So many full columns of a share; a share that is not nothing is never drawn as nothing."""
    if not value or width < 1:
        return ""
    return FULL * round(value * width) or THIN


def _table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    shares: Sequence[float | None] | None = None,
    ends: Sequence[Sequence[str]] = (),
) -> Iterator[str]:
    """A table of labels and numbers. shares: drawn as bars beside rows and ends, where the terminal leaves room."""
    columns = [Column(head) for head in heads]
    rows, ends = ([(shown(row[0], WIDEST_LABEL), *row[1:]) for row in of] for of in (rows, ends))
    made = list(text_table(columns, rows, width, ends=ends, most=MOST_ROWS))
    room = min(WIDEST_BAR, width - width_of(made[1]) - 2)
    if shares is not None and room >= LEAST_BAR:
        drawn = [(*row, bar(value, room)) for row, value in zip([*rows, *ends], shares, strict=True)]
        bars = Column("", left=True)
        made = list(text_table([*columns, bars], drawn[: len(rows)], width, ends=drawn[len(rows) :], most=MOST_ROWS))
    yield from made


MOST_LISTED = 20
NOTES = 12
FUNNEL: tuple[tuple[str, tuple[Fate, ...], str], ...] = (
    ("planned", (), ""),
    ("  not played", (Fate.NOT_PLAYED,), "still to come"),
    ("  not tested", (Fate.NOT_TESTED,), "skipped, aborted or interrupted"),
    ("asked", (), ""),
    ("  not recognised", (Fate.NOT_RECOGNISED,), "misheard, not woken, or silent to the last attempt"),
    ("  inconclusive", (Fate.INCONCLUSIVE,), "answered, and nobody knows what it had heard"),
    ("recognised", (), ""),
    ("  no answer", (Fate.SILENT,), ""),
    ("  no recording", (Fate.NO_RECORDING,), "of the answer"),
    ("answered", (), ""),
    ("  not judged", (Fate.UNJUDGED,), ""),
    ("  skipped", (Fate.SKIPPED,), "by their raters"),
    ("  put aside", (Fate.FLAGGED,), "flagged by a rater"),
    ("  held", (Fate.HELD,), "until the effect is known"),
    ("  disputed", (Fate.DISPUTED,), "raters differ, and nothing settles it"),
    ("with a category", (), ""),
)
READINGS = {
    Reading.ADMITTED: "an admitted lack of a core capability is an admitted defeat",
    Reading.WRONG: "it is wrong",
}
BASES = {Basis.ALONE: "by one rater alone"}


def report_lines(report: CategoryReport, width: int) -> Iterator[str]:
    """The summary of all queries, then a block for each grouping, crossed table and comparison."""
    figures = report.figures
    yield shown(f"categories of first responses, {counted(len(report.sessions), 'session')}{_only(report)}", width)
    yield ""
    yield from funnel(figures)
    yield ""
    yield from eleven(figures, width)
    yield ""
    yield from notes(figures, width)
    if disputed := report.of(Fate.DISPUTED):
        yield ""
        yield from _disputed(disputed, width)
    yield from _of_groups(report, width)


def stages(figures: CategoryFigures) -> Iterator[tuple[str, int, str]]:
    """Each line of the funnel: name, count, remark. What is indented is taken off the stage above it."""
    counts = {
        "planned": figures.planned,
        "asked": figures.asked,
        "recognised": figures.recognised,
        "answered": figures.answered,
        "with a category": figures.total,
    }
    remarks = {
        "recognised": f"{figures.unassessed} of them not assessed" if figures.unassessed else "",
        "with a category": _bases(figures),
    }
    for name, fates, remark in FUNNEL:
        yield name, figures.count(*fates) if fates else counts[name], remarks.get(name, remark)


def funnel(figures: CategoryFigures) -> Iterator[str]:
    """A line for each stage and for what is lost before it."""
    for name, count, remark in stages(figures):
        yield f"{name:<18}{count:>6,}  {remark if count else ''}".rstrip()


def eleven(figures: CategoryFigures, width: int) -> Iterator[str]:
    """The categories with counts and shares under both readings; under the rule the derived groups."""
    if figures.why_not:
        yield from _note("categories", f"{NOTHING}: {figures.why_not}", width)
        return
    yield from _table(
        ("category", "A: n", "%", "95 %", "B: n", "%"),
        [(f"{key} {name_of(one)}", *_cells(figures, one)) for key, one in KEYS],
        width,
        [figures.share(one).value for one in (*Category, *Derived)],
        [(f"  {name_of(one)}", *_cells(figures, one)) for one in Derived],
    )


def notes(figures: CategoryFigures, width: int) -> Iterator[str]:
    """What readings and intervals mean here, and what was said beside the categories."""
    lack = figures.core
    apart = f"they differ on {lack.total}"
    if lack.total:
        apart += f": {lack.by_rater} said by raters, {lack.by_scenario} by the scenario, {lack.by_both} by both"
    yield from _note("readings", f"A: {READINGS[Reading.ADMITTED]}; B: {READINGS[Reading.WRONG]}; {apart}", width)
    if figures.total:
        yield from _note("intervals", interval_in_words(figures), width)
    flags = ", ".join(f"{flag.value.replace('_', ' ')} {count}" for flag, count in figures.sub_flags if count)
    yield from _note("sub-flags", flags or "none", width)
    if figures.flagged_too:
        yield from _note("flags", f"a rater flagged {figures.flagged_too} of the responses with a category", width)
    if figures.voices == 1:
        yield from _note("raters", "one alone: nobody knows whether another would agree", width)


def interval_in_words(figures: CategoryFigures) -> str:
    """How intervals were made, and what they speak of."""
    each = "95 % each, not all eleven at once"
    queries = counted(figures.queries, *QUERY)
    match figures.method:
        case Method.CLUSTERED:
            return f"{each}; over {queries}, repetitions counting as far as they differ"
        case Method.WILSON:
            return f"{each}; Wilson, over {queries}, each asked once"
        case Method.TOO_FEW:
            return f"none: too few queries. One, asked {counted(figures.total, 'time')}, says nothing of others"


def given(one: RatedTrial) -> str:
    """What raters said of a response: `2 Correct, 1 Wrong`."""
    said = [row.category for row in one.judged.submitted] if one.judged else []
    return ", ".join(f"{said.count(category)} {name_of(category)}" for category in Category if category in said)


def _cells(figures: CategoryFigures, of: Figure) -> tuple[str, ...]:
    a, b = figures.share(of), figures.share(of, Reading.WRONG)
    return str(a.count), hundredths(a.value), share_span(a), str(b.count), hundredths(b.value)


def _bases(figures: CategoryFigures) -> str:
    return ", ".join(f"{count} {BASES.get(basis, basis.value)}" for basis, count in figures.bases if count)


def _disputed(trials: Iterable[RatedTrial], width: int) -> Iterator[str]:
    held = list(trials)
    yield f"disputed ({len(held)}): not counted until settled"
    for one in held[:MOST_LISTED]:
        yield shown(f"  {one.trial.id} ({one.trial.device}): {given(one)}", width)
    if len(held) > MOST_LISTED:
        yield f"  and {len(held) - MOST_LISTED} more, which the JSON has"


def _note(name: str, text: str, width: int) -> list[str]:
    head = f"{name:<{NOTES}} "
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    wrapper.initial_indent, wrapper.subsequent_indent = head, " " * len(head)
    return wrapper.wrap(text)


def _only(report: CategoryReport) -> str:
    of = report.selection
    raters = f", by {', '.join(shown(one, 40) for one in of.raters)} alone" if of.raters else ""
    return raters + (f", round {shown(of.round_id, 40)}" if of.round_id is not None else "")


MOST_DIFFERING = 15
WIDEST_COLUMN = 18


def _of_groups(report: CategoryReport, width: int) -> Iterator[str]:
    for by, groups in report.groups:
        yield ""
        yield from _counts(by, groups, width)
        yield ""
        yield from _shares(by, groups, width)
    if report.groups:
        yield ""
        yield "1 to - as above, reading A. 9b: wrong under reading B. ?: disputed, not counted"
        if has_too_few(report):
            yield TOO_FEW_WHY
    for one in report.crossed:
        yield ""
        yield from _crossed(one, report, width)
    yield ""
    yield from _reprompts(report, width)
    for comparison in report.comparisons:
        yield ""
        yield from _comparison(comparison, width)


def has_too_few(report: CategoryReport) -> bool:
    """Whether a group is one query that was repeated."""
    return any(one.figures.method is Method.TOO_FEW for _, groups in report.groups for one in groups)


def waits_in_words(waits: Waits) -> str:
    """`12, 5.00–9.10 s, median 5.20 s; 1 shorter than asked for`."""
    if waits.least_s is None or waits.median_s is None or waits.most_s is None:
        return f"{NOTHING} ({'not in the log' if waits.unknown else 'nothing was said again'})"
    text = f"{waits.count}, {seconds_interval(waits.least_s, waits.most_s)}, median {seconds(waits.median_s)}"
    text += f"; {waits.shorter} shorter than asked for" if waits.shorter else ""
    return text + (f"; {waits.unknown} not in the log" if waits.unknown else "")


def mean_span(figures: RepromptFigures) -> str:
    known = figures.mean is not None
    return TOO_FEW if figures.mean_interval is None and known else number_interval(figures.mean_interval)


def _counts(by: By, groups: Sequence[QueryGroup], width: int) -> Iterator[str]:
    heads = (f"by {by.value}", "n", *(key for key, _ in KEYS), "9b", "?")
    yield from _table(heads, [(label_in_words(one.label, by), *_counts_of(one.figures)) for one in groups], width)


def _counts_of(figures: CategoryFigures) -> tuple[str, ...]:
    counts = (figures.share(one).count for one in Category)
    wrong = figures.share(Category.WRONG, Reading.WRONG).count
    return tuple(map(str, (figures.total, *counts, wrong, figures.count(Fate.DISPUTED))))


def _shares(by: By, groups: Sequence[QueryGroup], width: int) -> Iterator[str]:
    heads = (f"by {by.value}", "correct %", "95 %", "wrong A %", "95 %", "wrong B %", "95 %")
    rows = [(label_in_words(one.label, by), *_shares_of(one.figures)) for one in groups]
    yield from _table(heads, rows, width, [one.figures.share(Category.CORRECT).value for one in groups])


def _shares_of(figures: CategoryFigures) -> tuple[str, ...]:
    found = (
        figures.share(Category.CORRECT),
        figures.share(Category.WRONG),
        figures.share(Category.WRONG, Reading.WRONG),
    )
    return tuple(cell for one in found for cell in (hundredths(one.value), share_span(one)))


def _crossed(found: CrossedFigures, report: CategoryReport, width: int) -> Iterator[str]:
    on = report.selection.on
    names = [shown(label_in_words(label, found.by[0]), WIDEST_COLUMN) for label in found.rows]
    heads = [shown(label_in_words(label, found.by[1]), WIDEST_COLUMN) for label in found.columns]
    cells = [[_crossed_cell(one, report) for one in row] for row in found.cells]
    side = max(LEAST_LABEL, width_of(found.by[0].value), *map(width_of, names))
    each = max(*map(width_of, heads), *(len(text) for row in cells for cell in row for text in cell))
    at_once = max(1, (width - side) // (each + len(GAP)))
    yield f"{found.by[0].value} by {found.by[1].value}: {name_of(on)} in % of so many responses, 95 % interval below"
    for begin in range(0, len(heads), at_once):
        part = slice(begin, begin + at_once)
        rows = []
        for name, row in zip(names, cells, strict=True):
            rows.append((name, *(above for above, _ in row[part])))
            if any(below for _, below in row[part]):
                rows.append(("", *(below for _, below in row[part])))
        yield from text_table([Column(one) for one in (found.by[0].value, *heads[part])], rows, width)


def _crossed_cell(figures: CategoryFigures | None, report: CategoryReport) -> tuple[str, str]:
    if figures is None or not figures.total:
        return NOTHING, ""
    found = figures.share(report.selection.on)
    return f"{hundredths(found.value)} of {found.total}", share_span(found)


def _reprompts(report: CategoryReport, width: int) -> Iterator[str]:
    heads = ("said until recognised", "queries", "first %", "95 %", "mean", "95 %", "never")
    yield from _table(heads, [("all", *_reprompts_of(report.reprompts))], width)
    for by, groups in report.groups:
        if by is not Parting.ATTEMPTS:
            yield ""
            rows = [(label_in_words(one.label, by), *_reprompts_of(one.reprompts)) for one in groups]
            yield from _table((f"by {by.value}", *heads[1:]), rows, width)
    yield ""
    all_ = report.reprompts
    needed = ", ".join(f"{attempts}: {queries}" for attempts, queries in all_.needed) or "none"
    yield f"attempts     {needed}, never: {all_.never}; the mean is of those recognised"
    yield f"waits        {waits_in_words(all_.waits)}"
    if all_.unassessed:
        yield f"left out     {counted(all_.unassessed, *QUERY)} whose recognition nobody assessed"


def _reprompts_of(figures: RepromptFigures) -> tuple[str, ...]:
    first = figures.first
    shares = (hundredths(first.value), share_span(first), number(figures.mean), mean_span(figures))
    return (str(figures.assessed), *shares, str(figures.never))


def _comparison(found: CategoryComparison, width: int) -> Iterator[str]:
    first, second = shown(found.first, 24), shown(found.second, 24)
    yield f"{first} against {second}, on {name_of(found.on)}, reading {found.reading.value.upper()}"
    if found.why_not or found.difference is None:
        yield f"  {NOTHING}: {shown(found.why_not, width - 8)}"
    else:
        apart = found.difference
        of = f"{found.first_responses} and {counted(found.second_responses, 'response')}"
        yield f"  compared     {counted(found.queries, *QUERY)}, {found.strata} with their conditions; {of}"
        yield f"  shares       {percent(apart.first)} against {percent(apart.second)}"
        yield f"  difference   {points(apart.difference)} points ({_apart(apart.interval)})"
        if (counts := found.discordance) is not None:
            yield (
                f"  pairs        both {counts.both}, only the first {counts.only_first}, only the second "
                f"{counts.only_second}, neither {counts.neither}"
            )
        yield f"  p            {p_in_words(found)}"
        if found.discordance is None:
            yield f"               {_p(found.alone_p)} if every response stood for itself (Mantel-Haenszel)"
        yield f"  all eleven   {all_in_words(found)}"
        if found.apart:
            yield f"  they differ on {counted(len(found.apart), *QUERY)}, the widest first:"
            for one in found.apart[:MOST_DIFFERING]:
                yield shown(f"    {points(one.apart):>7} {one.query_id}: {differing_in_words(one)}", width)
            if len(found.apart) > MOST_DIFFERING:
                yield f"    and {len(found.apart) - MOST_DIFFERING} more, which the JSON has"
    yield f"  left over    {found.first_unpaired} of {first}, {found.second_unpaired} of {second}"


def differing_in_words(one: DifferingQuery) -> str:
    """`2 Correct / 1 Correct, 1 Wrong`."""
    sides = [", ".join(f"{n} {name_of(category)}" for category, n in side) for side in (one.first, one.second)]
    return " / ".join(sides)


def all_in_words(found: CategoryComparison) -> str:
    if found.all_swap is None:
        return f"p {NOTHING}: both have the same categories everywhere"
    return f"{p_is(found.all_swap.p)}, devices swapped in whole queries ({_how(found.all_swap)})"


def p_in_words(found: CategoryComparison) -> str:
    """Of the swapping test; it takes all responses to a query as one."""
    if found.swap is None:
        return f"{NOTHING}: their shares are the same in every query"
    return f"{_p(found.swap.p)}, devices swapped in whole queries ({_how(found.swap)})"


def _how(swap: Swapping) -> str:
    return "exact" if swap.exact else f"{DRAWS:,} random ways"


def _p(value: float | None) -> str:
    return p_is(value).removeprefix("p ")


def _apart(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return f"95 % interval {NOTHING}, of one query"
    return f"95 % interval {points_interval(interval)}, over queries"
