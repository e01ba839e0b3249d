"""Categories and re-prompts by device, class and condition, crossed tables, and comparisons, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.cells import padded, shown, width_of
from harness.model.choices import Reading
from harness.model.judgment import Category
from harness.rating.categories import KEYS
from harness.rating.figures.categories import CategoryFigures, Method
from harness.rating.figures.category_comparison import CategoryComparison, DifferingQuery
from harness.rating.figures.category_groups import By, CrossedFigures
from harness.rating.figures.rated_trials import Fate
from harness.rating.figures.reprompts import RepromptFigures, Waits
from harness.rating.reports.columns import (
    NOTHING,
    TOO_FEW,
    TOO_FEW_WHY,
    bar,
    hundredths,
    room_for_bars,
    share_span,
    table,
)
from harness.rating.reports.report import CategoryReport, Group, label_in_words, name_of
from harness.statistics.significance import DRAWS, Swapping
from harness.transcripts.reports.summary import points, probability

MOST_ROWS = 100
MOST_DIFFERING = 15
WIDEST_COLUMN = 18


def lines(report: CategoryReport, width: int) -> Iterator[str]:
    """A block for each grouping, the crossed tables, re-prompts, comparisons; blank lines between."""
    for by, groups in report.groups:
        yield ""
        yield from _counts(by, groups, width)
        yield ""
        yield from _shares(by, groups, width)
    if report.groups:
        yield ""
        yield "1 to - as above, reading A; 9b: wrong under reading B; ?: disputed, in no figure"
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
    """`12, 5.0 to 9.1 s, median 5.2 s; 1 shorter than asked for`."""
    if waits.least_s is None or waits.median_s is None or waits.most_s is None:
        return f"{NOTHING} ({'not in the log' if waits.unknown else 'nothing was said again'})"
    text = f"{waits.count}, {waits.least_s:.1f} to {waits.most_s:.1f} s, median {waits.median_s:.1f} s"
    text += f"; {waits.shorter} shorter than asked for" if waits.shorter else ""
    return text + (f"; {waits.unknown} not in the log" if waits.unknown else "")


def mean_in_words(figures: RepromptFigures) -> str:
    """`1.21`, of the queries that were recognised."""
    return NOTHING if figures.mean is None else f"{figures.mean:.2f}"


def mean_span(figures: RepromptFigures) -> str:
    found = figures.mean_interval
    if found is None:
        return NOTHING if figures.mean is None else TOO_FEW
    return f"{found[0]:.2f}–{found[1]:.2f}"


def _counts(by: By, groups: Sequence[Group], width: int) -> Iterator[str]:
    heads = (f"by {by.value}", "n", *(key for key, _ in KEYS), "9b", "?")
    rows = [(label_in_words(one.label, by), _counts_of(one.figures)) for one in groups[:MOST_ROWS]]
    yield from table(heads, rows, width)
    if len(groups) > MOST_ROWS:
        yield f"… and {len(groups) - MOST_ROWS:,} more, which the JSON has"


def _counts_of(figures: CategoryFigures) -> tuple[str, ...]:
    counts = (figures.share(one).count for one in Category)
    wrong = figures.share(Category.WRONG, Reading.WRONG).count
    return tuple(map(str, (figures.total, *counts, wrong, figures.count(Fate.DISPUTED))))


def _shares(by: By, groups: Sequence[Group], width: int) -> Iterator[str]:
    heads = (f"by {by.value}", "correct %", "95 %", "wrong A %", "95 %", "wrong B %", "95 %")
    rows = [(label_in_words(one.label, by), _shares_of(one.figures)) for one in groups[:MOST_ROWS]]
    room = room_for_bars(heads, rows, width)
    bars = [bar(one.figures.share(Category.CORRECT).value, room) for one in groups[:MOST_ROWS]]
    yield from table(heads, rows, width, bars)


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
    side = max(8, width_of(found.by[0].value), *map(width_of, names))
    each = max(*map(width_of, heads), *(len(text) for row in cells for cell in row for text in cell))
    at_once = max(1, (width - side) // (each + 1))
    yield f"{found.by[0].value} by {found.by[1].value}: {name_of(on)} in % of so many responses, 95 % interval below"
    for begin in range(0, len(heads), at_once):
        part = slice(begin, begin + at_once)
        yield padded(found.by[0].value, side) + "".join(" " * (1 + each - width_of(one)) + one for one in heads[part])
        yield "─" * (side + (each + 1) * len(heads[part]))
        for name, row in zip(names, cells, strict=True):
            yield padded(name, side) + "".join(f" {above:>{each}}" for above, _ in row[part])
            if any(below for _, below in row[part]):
                yield (" " * side + "".join(f" {below:>{each}}" for _, below in row[part])).rstrip()


def _crossed_cell(figures: CategoryFigures | None, report: CategoryReport) -> tuple[str, str]:
    if figures is None or not figures.total:
        return NOTHING, ""
    found = figures.share(report.selection.on)
    return f"{hundredths(found.value)} of {found.total}", share_span(found)


def _reprompts(report: CategoryReport, width: int) -> Iterator[str]:
    heads = ("said until recognised", "queries", "first %", "95 %", "mean", "95 %", "never")
    yield from table(heads, [("all", _reprompts_of(report.reprompts))], width)
    for by, groups in report.groups:
        if by.value != "attempts":
            yield ""
            rows = [(label_in_words(one.label, by), _reprompts_of(one.reprompts)) for one in groups[:MOST_ROWS]]
            yield from table((f"by {by.value}", *heads[1:]), rows, width)
    yield ""
    all_ = report.reprompts
    needed = ", ".join(f"{attempts}: {queries}" for attempts, queries in all_.needed) or "none"
    yield f"attempts     {needed}, never: {all_.never}; the mean is of those recognised"
    yield f"waits        {waits_in_words(all_.waits)}"
    if all_.unassessed:
        yield f"left out     {all_.unassessed} queries whose recognition nobody assessed"


def _reprompts_of(figures: RepromptFigures) -> tuple[str, ...]:
    first = figures.first
    shares = (hundredths(first.value), share_span(first), mean_in_words(figures), mean_span(figures))
    return (str(figures.assessed), *shares, str(figures.never))


def _comparison(found: CategoryComparison, width: int) -> Iterator[str]:
    first, second = shown(found.first, 24), shown(found.second, 24)
    yield f"{first} against {second}, on {name_of(found.on)}, reading {found.reading.value.upper()}"
    if found.why_not or found.difference is None:
        yield f"  {NOTHING}: {shown(found.why_not, width - 8)}"
    else:
        apart = found.difference
        of = f"{found.first_responses} and {found.second_responses} responses"
        yield f"  compared     {found.queries} queries, {found.strata} with their conditions; {of}"
        yield f"  shares       {hundredths(apart.first)} % against {hundredths(apart.second)} %"
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
            yield f"  they differ on {len(found.apart)} queries, the widest first:"
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
    return f"p {_p(found.all_swap.p)}, devices swapped in whole queries ({_how(found.all_swap)})"


def p_in_words(found: CategoryComparison) -> str:
    """Of the swapping test; it takes all responses to a query as one."""
    if found.swap is None:
        return f"{NOTHING}: their shares are the same in every query"
    return f"{_p(found.swap.p)}, devices swapped in whole queries ({_how(found.swap)})"


def _how(swap: Swapping) -> str:
    return "exact" if swap.exact else f"{DRAWS:,} random ways"


def _p(value: float | None) -> str:
    found = probability(value)
    return found if found.startswith("<") else f"= {found}"


def _apart(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return f"95 % interval {NOTHING}, of one query"
    return f"95 % interval {points(interval[0])} to {points(interval[1])}, over queries"
