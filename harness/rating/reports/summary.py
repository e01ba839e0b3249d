"""A category report as lines for people: the funnel, the eleven under both readings, what they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.base.cells import shown
from harness.model.choices import Derived, Reading
from harness.model.judgment import Category
from harness.rating.categories import KEYS
from harness.rating.figures.categories import CategoryFigures, Figure, Method
from harness.rating.figures.rated_trials import Basis, Fate, RatedTrial
from harness.rating.reports.columns import NOTHING, bar, hundredths, room_for_bars, share_span, table
from harness.rating.reports.report import CategoryReport, name_of

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


def lines(report: CategoryReport, width: int) -> Iterator[str]:
    """The summary of all queries, blank lines between its parts."""
    figures = report.figures
    yield shown(f"categories of first responses, {_counted(len(report.sessions), 'session')}{_only(report)}", width)
    yield ""
    yield from funnel(figures)
    yield ""
    yield from eleven(figures, width)
    yield ""
    yield from notes(figures, width)
    if disputed := report.of(Fate.DISPUTED):
        yield ""
        yield from _disputed(disputed, width)


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
    keys = {category: key for key, category in KEYS}
    heads = ("category", "A: n", "%", "95 %", "B: n", "%")
    rows = [(f"{keys[one]} {name_of(one)}", _cells(figures, one)) for one in Category]
    derived = [(f"  {name_of(one)}", _cells(figures, one)) for one in Derived]
    room = room_for_bars(heads, [*rows, *derived], width)
    bars = [bar(figures.share(one).value, room) for one in (*Category, *Derived)]
    made = list(table(heads, [*rows, *derived], width, bars))
    yield from made[: 2 + len(rows)]
    yield made[1]
    yield from made[2 + len(rows) :]


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
    match figures.method:
        case Method.CLUSTERED:
            return f"{each}; over {figures.queries} queries, repetitions counting as far as they differ"
        case Method.WILSON:
            return f"{each}; Wilson, over {_counted(figures.queries, 'query', 'queries')}, each asked once"
        case Method.TOO_FEW:
            return f"none: too few queries. One, asked {figures.total} times, says nothing of others"


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
    yield f"disputed ({len(held)}): in no figure until somebody settles them"
    for one in held[:MOST_LISTED]:
        yield shown(f"  {one.trial.id} ({one.trial.device}): {given(one)}", width)
    if len(held) > MOST_LISTED:
        yield f"  and {len(held) - MOST_LISTED} more, which the JSON has"


def _note(name: str, text: str, width: int) -> Iterator[str]:
    """Wraps at words, since these notes are sentences."""
    line = name.ljust(NOTES)
    for word in text.split():
        if len(line) + 1 + len(word) > width and line.strip():
            yield line
            line = " " * NOTES
        line += f" {word}"
    yield line


def _only(report: CategoryReport) -> str:
    of = report.selection
    raters = f", by {', '.join(shown(one, 40) for one in of.raters)} alone" if of.raters else ""
    return raters + (f", round {shown(of.round_id, 40)}" if of.round_id is not None else "")


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
