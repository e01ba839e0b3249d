"""The figures of a scored system in rows: value, 95 % interval, and the counts behind it in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.model.understanding import Detail
from harness.understanding.arithmetic.counts import Matched, SlotCounts, pooled
from harness.understanding.arithmetic.figures import Averages, FrameFigures, SlotFigures, figures
from harness.understanding.arithmetic.sample_intervals import (
    Interval,
    accuracy_interval,
    cer_interval,
    pooled_f1_interval,
    pooled_spans,
    samples_spans,
)
from harness.understanding.arithmetic.zero_division import ZERO, ZeroDivision
from harness.understanding.scoring.counted import DetailCounts, Samples, SystemCounts

NO_INTENTS = "no utterance is annotated with intents, or none is predicted"
NO_SLOTS = "no utterance is annotated in slots, or no slots are predicted"
NO_PLACES = "slots have no places, or places in other words"


@dataclass(frozen=True, slots=True)
class FigureRow:
    """key: in JSON and in limits. value: 0–1 (a CER may be above); None with the reason in `counts`.

    interval: 95 %; None where there is none. detail: of slots, None of what no detail changes. high: more is better.
    """

    key: str
    name: str
    value: float | None
    interval: Interval | None
    counts: str
    detail: Detail | None = None
    high: bool = True


@dataclass(frozen=True)
class Reported:
    """A system's counts with the choices that figures rest on. labels: all declared intents; None without any."""

    counts: SystemCounts
    zero: ZeroDivision = ZERO
    labels: tuple[str, ...] | None = None

    @cached_property
    def figures(self) -> tuple[FrameFigures, ...]:
        """One for each detail."""
        return tuple(figures(one.totals, self.zero, self.labels) for one in self.counts.details)

    @cached_property
    def rows(self) -> tuple[FigureRow, ...]:
        """Intents once; slots and SFA for each detail."""
        found = list(self._intents())
        for one, of in zip(self.counts.details, self.figures, strict=True):
            found += _slots(one, of.slots, one.totals.slots, one.samples, valued=False)
            if of.valued is not None:
                found += _slots(one, of.valued, one.totals.valued, None, valued=True)
        return tuple(found)

    def row(self, key: str, detail: Detail | None = None) -> FigureRow | None:
        """Of the first detail that has it, unless one is named."""
        return next((one for one in self.rows if one.key == key and detail in (None, one.detail)), None)

    def _intents(self) -> Iterator[FigureRow]:
        of, counts = self.figures[0].intents, self.counts.details[0].totals.intents
        overlaps, number = counts.overlaps, of.utterances
        if not number:
            yield FigureRow("emr", "EMR (exact match)", None, None, NO_INTENTS)
            return
        over = f"mean over {number:,} utterance{'s' * (number != 1)}"
        over += f"; {of.empty_rightly:,} {'is' if of.empty_rightly == 1 else 'are'} 0/0" if of.empty_rightly else ""
        zero = self.zero
        accuracy = accuracy_interval(overlaps, zero)
        yield FigureRow("intent_accuracy", "intent accuracy", of.accuracy, accuracy, over)
        exact = f"{of.exact.count:,} of {of.exact.total:,} utterances"
        yield FigureRow("emr", "EMR (exact match)", of.exact.value, of.exact.interval, exact)
        for name, value, found in zip(_PRF, _parts(of.samples), samples_spans(overlaps, zero), strict=True):
            yield FigureRow(f"{name.lower()}_samples", f"{name}, samples", value, found, over)
        labels = f"mean over {len(of.labels):,} {'declared' if of.declared else 'seen'} labels"
        for name, value in zip(_PRF, _parts(of.macro), strict=True):
            yield FigureRow(f"{name.lower()}_macro", f"{name}, macro", value, None, labels)
        all_ = pooled(counts.labels.values())
        spans, texts = pooled_spans(overlaps), _texts(all_, "intents")
        for name, value, found, text in zip(_PRF, _parts(of.micro), spans, texts, strict=True):
            yield FigureRow(f"{name.lower()}_micro", f"{name}, micro", value, found, text)


def _slots(
    one: DetailCounts, of: SlotFigures, counts: SlotCounts, samples: Samples | None, *, valued: bool
) -> Iterator[FigureRow]:
    """samples: None where no intervals but those of shares are made, as of figures with values."""
    detail = one.rule.detail
    key, name = ("value_", " with values") if valued else ("", "")
    if not of.utterances:
        yield FigureRow("slot_f1", "slot F1", None, None, NO_SLOTS, detail)
        return
    chunks = pooled(counts.chunks.values())
    spans = pooled_spans(samples.chunks if samples else {})
    if of.unplaced == of.utterances:
        yield FigureRow(f"{key}slot_f1", f"slot F1{name}", None, None, NO_PLACES, detail)
    else:
        beside = f"; {of.unplaced:,} utterances without places left out" if of.unplaced else ""
        texts = _texts(chunks, "chunks")
        for part, value, found, text in zip(_PRF, _parts(of.micro), spans, texts, strict=True):
            part_key = f"{key}slot_{part.lower()}"
            yield FigureRow(part_key, f"slot {part}{name}", value, found, text + beside * (part == "F1"), detail)
    concepts = pooled(counts.concepts.values())
    found = pooled_f1_interval(samples.concepts) if samples else None
    text = _texts(concepts, "concepts")[2]
    yield FigureRow(f"{key}f1mh", f"F1mh{name}", of.concept_sets.f1, found, text, detail)
    edits = counts.edits
    sums = f"{edits.substitutions:,} S + {edits.deletions:,} D + {edits.insertions:,} I of {edits.words:,} concepts"
    found = cer_interval(samples.edits) if samples else None
    yield FigureRow(f"{key}cer", f"CER{name}", of.cer, found, sums, detail, high=False)
    if not of.frames.total:
        yield FigureRow(f"{key}sfa", f"SFA{name}", None, None, "no utterance is annotated with both", detail)
        return
    how = "slots in their places" if of.by_place else "slots as lists of concepts"
    sfa = f"{of.frames.count:,} of {of.frames.total:,} utterances; {how}"
    yield FigureRow(f"{key}sfa", f"SFA{name}", of.frames.value, of.frames.interval, sfa, detail)


_PRF = ("precision", "recall", "F1")


def _parts(one: Averages) -> Sequence[float | None]:
    return one.precision, one.recall, one.f1


def _texts(of: Matched, what: str) -> tuple[str, str, str]:
    right = f"{of.right:,} right"
    return (
        f"{right} of {of.predicted:,} predicted {what}",
        f"{right} of {of.gold:,} {what}",
        f"{right}, {of.gold:,} {what}, {of.predicted:,} predicted",
    )
