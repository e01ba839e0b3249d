"""A scored system as lines for people: figures, labels, concepts, confusions, what had no partner, groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.cells import padded, shown
from harness.model.choices import MOST_CONFUSIONS as MOST_CONFUSIONS
from harness.understanding.arithmetic.counts import FrameCounts, Matched
from harness.understanding.arithmetic.figures import Averages, FrameFigures, figures
from harness.understanding.reports.figure_rows import Reported
from harness.understanding.reports.words import (
    between,
    chunking_in_words,
    comparison_in_words,
    details_in_words,
    per_cent,
    table,
    zero_in_words,
)
from harness.understanding.scoring.counted import DetailCounts

NO_LABEL = "(none)"
MOST_IDS = 5
NOTES = 14


def lines(system: Reported, width: int, *, confusions: int = MOST_CONFUSIONS) -> Iterator[str]:
    """All of one system; figures come last, where a terminal still shows them. confusions: rows of them; 0 for all."""
    counts = system.counts
    rules = [one.rule for one in counts.details]
    yield _note("gold", counts.gold, width)
    yield _note("predicted", counts.predicted, width)
    yield _note("chunking", chunking_in_words(rules[0]), width)
    yield _note("concepts", details_in_words(rules), width)
    yield _note("0/0", zero_in_words(system.zero), width)
    if said := comparison_in_words(rules[0]):
        yield _note("slots", said, width)
    first = system.figures[0]
    if first.intents.utterances:
        yield ""
        yield from _by_label("intent", first.intents.labels, width)
        yield ""
        yield from _confusions(first, width, confusions)
    for one, of in zip(counts.details, system.figures, strict=True):
        if concepts := of.slots.per_concept or of.slots.per_concept_set:
            of_sets = "" if of.slots.per_concept else ", once an utterance"
            yield ""
            yield from _by_label(f"concept ({one.rule.detail}{of_sets})", concepts, width)
    yield from _groups(system, width)
    yield ""
    yield from _notes(system, width)
    yield ""
    yield from _figures(system, width)


def _figures(system: Reported, width: int) -> Iterator[str]:
    several = len(system.counts.details) > 1
    rows = [
        (
            f"{row.name} ({row.detail})" if several and row.detail else row.name,
            (per_cent(row.value), between(row.interval), row.counts),
        )
        for row in system.rows
    ]
    yield from table("figure", ("value", "95 % interval", " counts"), rows, width, 0)


def _by_label(title: str, rows: Sequence[tuple[str, Matched, Averages]], width: int) -> Iterator[str]:
    """Most frequent first."""
    cells = [
        (
            name,
            (
                *(f"{one:,}" for one in (of.gold, of.predicted, of.right)),
                *(per_cent(value) for value in (figure.precision, figure.recall, figure.f1)),
            ),
        )
        for name, of, figure in sorted(rows, key=lambda row: (-row[1].gold, row[0]))
    ]
    yield from table(title, ("gold", "predicted", "right", "precision", "recall", "F1"), cells, width)


def _confusions(of: FrameFigures, width: int, most: int) -> Iterator[str]:
    """Of utterances with one intent on either side."""
    wrong = [(pair, n) for pair, n in of.intents.confusions if pair[0] != pair[1]]
    single = sum(n for _, n in of.intents.confusions)
    yield f"confusions of single intents: {sum(n for _, n in wrong):,} of {single:,} utterances with one on either side"
    told = wrong[:most] if most else wrong
    for (gold, said), n in told:
        half = max(8, (width - 12) // 2)
        yield f"{n:>7,}  {shown(gold, half)} → {shown(said, half)}"
    if len(told) < len(wrong):
        yield f"         … and {len(wrong) - len(told):,} more, which the JSON has"


def _notes(system: Reported, width: int) -> Iterator[str]:
    counts, of = system.counts, system.figures[0].intents
    if of.utterances:
        plural = "s" * (of.empty != 1)
        zero = " (0/0)" if of.empty_rightly else ""
        empty = f"{of.empty:,} prediction{plural} without intent, {of.empty_rightly:,} rightly so{zero}"
        yield _note("empty", empty, width)
        if of.never_predicted:
            names = ", ".join(shown(one, 40) for one in of.never_predicted[:20])
            more = ", …" if len(of.never_predicted) > 20 else ""
            yield _note("never", f"{len(of.never_predicted):,} never predicted: {names}{more}", width)
    counted = "; counted as predicted nothing" if counts.missing else ""
    yield _note("missing", f"{listed(counts.missing)}{counted}", width)
    nowhere = "; counted nowhere" if counts.unknown else ""
    yield _note("without gold", f"{listed(counts.unknown)}{nowhere}", width)
    if counts.unannotated:
        yield _note("not annotated", f"{listed(counts.unannotated)}; counted nowhere", width)
    if counts.other_words:
        yield _note("other words", f"{listed(counts.other_words)}: gold has others than the prediction", width)


def _groups(system: Reported, width: int) -> Iterator[str]:
    for one in system.counts.details:
        for column, labels in one.groups:
            if len(labels) > 1:
                yield ""
                yield from _group(column, labels, one, system, width)


def _group(
    column: str, labels: Sequence[tuple[str, FrameCounts]], one: DetailCounts, system: Reported, width: int
) -> Iterator[str]:
    rows = []
    for label, counts in labels:
        of = figures(counts, system.zero, system.labels)
        cells = (
            f"{of.utterances:,}",
            per_cent(of.intents.exact.value),
            between(of.intents.exact.interval),
            per_cent(of.slots.micro.f1),
            per_cent(of.slots.concept_sets.f1),
            per_cent(of.slots.cer),
            per_cent(of.slots.frames.value),
            between(of.slots.frames.interval),
        )
        rows.append((label or NO_LABEL, cells))
    several = f" ({one.rule.detail})" if len(system.counts.details) > 1 else ""
    heads = ("utterances", "EMR", "95 %", "slot F1", "F1mh", "CER", "SFA", "95 %")
    yield from table(f"by {column}{several}", heads, rows, width)


def listed(ids: Sequence[str]) -> str:
    """How many, and the first of them."""
    if not ids:
        return "0"
    first = ", ".join(shown(one, 40) for one in ids[:MOST_IDS])
    return f"{len(ids):,} ({first}{', …' if len(ids) > MOST_IDS else ''})"


def _note(name: str, text: str, width: int) -> str:
    return padded(name, NOTES) + shown(text, max(20, width - NOTES))
