"""Counts of utterances as columns, from which figures of many samples of them are made at once.

Every figure is a ratio of sums, or (macro) a mean of several. Utterances with the same counts share a row, so that a
sample of all of them is a draw of how often each row occurs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from harness.understanding.arithmetic.counts import FrameCounts, IntentCounts, Matched, SlotCounts, pooled, total
from harness.understanding.arithmetic.zero_division import ZeroDivision

Numbers = NDArray[np.float64]
Ratio = tuple[float, float]
Pair = tuple[FrameCounts, ...]
_AT_ONCE = 4_000_000
"""Numbers of a draw that are held together."""


class Figure(StrEnum):
    """Figures that have an interval, by the names they have in tables and JSON."""

    ACCURACY = "intent_accuracy"
    EMR = "emr"
    SAMPLES_F1 = "intent_f1_samples"
    MACRO_F1 = "intent_f1_macro"
    MICRO_F1 = "intent_f1_micro"
    SLOT_F1 = "slot_f1"
    F1MH = "f1mh"
    CER = "cer"
    SFA = "sfa"
    VALUED_SLOT_F1 = "slot_f1_with_values"
    VALUED_F1MH = "f1mh_with_values"
    VALUED_CER = "cer_with_values"
    VALUED_SFA = "sfa_with_values"


SHARES = (Figure.EMR, Figure.SFA, Figure.VALUED_SFA)
"""Those that are right or wrong for each utterance."""
_SLOTS = (Figure.SLOT_F1, Figure.F1MH, Figure.CER, Figure.SFA)
_VALUED = (Figure.VALUED_SLOT_F1, Figure.VALUED_F1MH, Figure.VALUED_CER, Figure.VALUED_SFA)


@dataclass(frozen=True, slots=True)
class Basis:
    """What figures of two systems have in common. labels: that macro is over. by_place, valued_by_place: how SFA is."""

    labels: tuple[str, ...]
    by_place: bool
    valued_by_place: bool
    zero: ZeroDivision


def basis(systems: Sequence[Sequence[FrameCounts]], zero: ZeroDivision, labels: Sequence[str] | None) -> Basis:
    """labels: declared ones; those that are seen join them. SFA is by place where it is for every system."""
    sums = [total(one) for one in systems]
    seen = dict.fromkeys([*(labels or ()), *sorted(name for one in sums for name in one.intents.labels)])
    return Basis(
        tuple(seen),
        all(_all_placed(one.slots) for one in sums),
        all(_all_placed(one.valued) for one in sums),
        zero,
    )


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of utterances with the same counts for each of some systems; number: how many each row stands for.

    tops, bottoms: shape (systems, rows, ratios). of: the ratios of each figure.
    """

    number: NDArray[np.int64]
    tops: Numbers
    bottoms: Numbers
    of: dict[Figure, slice]
    zero: ZeroDivision

    @property
    def utterances(self) -> int:
        return int(self.number.sum())

    def found(self) -> dict[Figure, Numbers]:
        """The figures of all utterances, shape (systems,); not a number over nothing."""
        weights = self.number.astype(np.float64)[None]
        return {figure: of[:, 0] for figure, of in self._figures([weights] * len(self.tops)).items()}

    def resampled(self, draws: int, seed: int) -> dict[Figure, Numbers]:
        """Of so many samples with replacement, the same for every system; shape (systems, draws)."""
        rng = np.random.default_rng(seed)
        shares = self.number / self.utterances

        def drawn(size: int) -> list[Numbers]:
            return [rng.multinomial(self.utterances, shares, size).astype(np.float64)] * len(self.tops)

        return self._drawn(draws, drawn)

    def swapped(self, draws: int, seed: int) -> dict[Figure, Numbers]:
        """Of two systems whose frames are swapped, utterance by utterance, at random; shape (2, draws)."""
        rng = np.random.default_rng(seed)

        def drawn(size: int) -> list[Numbers]:
            kept = rng.binomial(self.number, 0.5, (size, len(self.number))).astype(np.float64)
            return [kept, self.number - kept]

        # Each row twice, as it is and swapped.
        tops, bottoms = (np.concatenate([side, side[::-1]], 1) for side in (self.tops, self.bottoms))
        both = Columns(np.tile(self.number, 2), tops, bottoms, self.of, self.zero)
        return both._drawn(draws, lambda size: [np.concatenate(drawn(size), 1)] * 2)

    def _drawn(self, draws: int, drawn: Callable[[int], list[Numbers]]) -> dict[Figure, Numbers]:
        at_once = max(1, _AT_ONCE // max(1, len(self.number)))
        sizes = [min(at_once, draws - begin) for begin in range(0, draws, at_once)]
        blocks = [self._figures(drawn(size)) for size in sizes]
        return {figure: np.concatenate([one[figure] for one in blocks], 1) for figure in self.of}

    def _figures(self, weights: list[Numbers]) -> dict[Figure, Numbers]:
        """weights: for each system, shape (samples, rows). Figures of shape (systems, samples)."""
        tops = np.stack([weight @ top for weight, top in zip(weights, self.tops, strict=True)])
        bottoms = np.stack([weight @ bottom for weight, bottom in zip(weights, self.bottoms, strict=True)])
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.where(bottoms > 0, tops / bottoms, np.nan)
        macro = self.of[Figure.MACRO_F1]
        of_labels = ratios[..., macro]
        ratios[..., macro] = np.where(np.isnan(of_labels), self.zero.f1, of_labels)
        return {
            figure: ratios[..., of].mean(axis=-1) if of.stop > of.start else np.full(ratios.shape[:2], np.nan)
            for figure, of in self.of.items()
        }


def columns(systems: Sequence[Sequence[FrameCounts]], on: Basis) -> Columns:
    """systems: the counts of each utterance, in the same order for each system."""
    number: Counter[tuple[object, ...]] = Counter()
    first: dict[tuple[object, ...], Pair] = {}
    for pair in zip(*systems, strict=True):
        key = tuple(part for one in pair for part in _key(one))
        number[key] += 1
        first.setdefault(key, pair)
    rows = [[dict(_ratios(one, on)) for one in pair] for pair in first.values()]
    of: dict[Figure, slice] = {}
    width = 0
    for figure in Figure:
        more = len(on.labels) if figure is Figure.MACRO_F1 else 1
        of[figure] = slice(width, width + more)
        width += more
    table = np.zeros((2, len(systems), len(rows), width))
    for row, pair_of in enumerate(rows):
        for system, ratios in enumerate(pair_of):
            for figure, found in ratios.items():
                table[:, system, row, of[figure]] = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return Columns(np.array(list(number.values()), dtype=np.int64), table[0], table[1], of, on.zero)


def _key(one: FrameCounts) -> Iterator[object]:
    yield tuple(one.intents.overlaps.items())
    yield tuple(one.intents.labels.items())
    for slots in (one.slots, one.valued):
        yield slots.placed
        yield tuple(slots.chunks.items())
        yield tuple(slots.concepts.items())
        yield slots.edits
        yield slots.frames
        yield slots.frames_placed


def _ratios(one: FrameCounts, on: Basis) -> Iterator[tuple[Figure, list[Ratio]]]:
    yield from _intent_ratios(one.intents, on.zero)
    none = Matched()
    yield Figure.MACRO_F1, [_f1(one.intents.labels.get(name, none)) for name in on.labels]
    yield from zip(_SLOTS, _slot_ratios(one.slots, by_place=on.by_place), strict=True)
    yield from zip(_VALUED, _slot_ratios(one.valued, by_place=on.valued_by_place), strict=True)


def _slot_ratios(slots: SlotCounts, *, by_place: bool) -> Iterator[list[Ratio]]:
    yield [_f1(pooled(slots.chunks.values()))]
    yield [_f1(pooled(slots.concepts.values()))]
    yield [(slots.edits.errors, slots.edits.words)]
    frames = slots.frames_placed if by_place else slots.frames
    yield [(frames.count, frames.total)]


def _intent_ratios(intents: IntentCounts, zero: ZeroDivision) -> Iterator[tuple[Figure, list[Ratio]]]:
    number = jaccard = f1 = exact = 0.0
    for one, n in intents.overlaps.items():
        either, both = one.gold + one.predicted - one.right, one.gold + one.predicted
        number += n
        jaccard += n * (one.right / either if either else zero.accuracy)
        f1 += n * (2 * one.right / both if both else zero.f1)
        exact += n * (one.right == either)
    yield Figure.ACCURACY, [(jaccard, number)]
    yield Figure.EMR, [(exact, number)]
    yield Figure.SAMPLES_F1, [(f1, number)]
    yield Figure.MICRO_F1, [_f1(pooled(intents.labels.values()))]


def _f1(one: Matched) -> Ratio:
    return 2 * one.right, one.gold + one.predicted


def _all_placed(slots: SlotCounts) -> bool:
    return 0 < slots.placed == slots.utterances
