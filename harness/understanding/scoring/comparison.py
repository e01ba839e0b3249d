"""Two systems on the utterances that both have a prediction for: how far they are apart, and whether by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.statistics.intervals import CONFIDENCE
from harness.statistics.significance import Discordance, paired_difference
from harness.understanding.arithmetic.counts import FrameCounts, total
from harness.understanding.arithmetic.sample_intervals import Interval
from harness.understanding.arithmetic.zero_division import ZERO, ZeroDivision
from harness.understanding.scoring.columns import SHARES, Columns, Figure, Numbers, basis, columns
from harness.understanding.scoring.scoring import Scoring

DRAWS = 1000
LEAST_UTTERANCES = 10
"""With fewer, samples of them say too little of further ones."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of the first system less that of the second. p: two-sided, that such a difference comes by chance.

    None over nothing; interval also over few utterances, and where no sample differs from another.
    """

    first: float | None
    second: float | None
    value: float | None
    interval: Interval | None
    p: float | None


NO_DIFFERENCE = Difference(None, None, None, None, None)


@dataclass(frozen=True, slots=True)
class FrameComparison:
    """first, second: paths of predictions. utterances: ids that both have; only_first, only_second, neither: how many
    of the others have a prediction of one alone, or of none. The counts are of the shared utterances alone.
    """

    first: str
    second: str
    utterances: tuple[str, ...]
    only_first: int
    only_second: int
    neither: int
    first_counts: FrameCounts
    second_counts: FrameCounts
    differences: Mapping[Figure, Difference]


def compare(
    first: Scoring,
    second: Scoring,
    zero: ZeroDivision = ZERO,
    labels: Sequence[str] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> FrameComparison:
    """Both scored against the same gold. ValueError where their rules are not the same."""
    if first.rule != second.rule:
        raise ValueError(f"frames were read by {first.rule} and by {second.rule}")
    theirs = {frame.id: frame for frame in second.frames}
    shared, only_first, only_second, neither = [], 0, 0, 0
    for frame in first.frames:
        other = theirs.get(frame.id)
        if other is None:
            continue
        if not frame.missing and not other.missing:
            shared.append((frame, other))
        only_first += not frame.missing and other.missing
        only_second += frame.missing and not other.missing
        neither += frame.missing and other.missing
    one, two = [frame.counts for frame, _ in shared], [other.counts for _, other in shared]
    return FrameComparison(
        first.predicted,
        second.predicted,
        tuple(frame.id for frame, _ in shared),
        only_first,
        only_second,
        neither,
        total(one),
        total(two),
        differences(one, two, zero, labels, draws=draws, seed=seed),
    )


def differences(
    first: Sequence[FrameCounts],
    second: Sequence[FrameCounts],
    zero: ZeroDivision = ZERO,
    labels: Sequence[str] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Mapping[Figure, Difference]:
    """Of the counts of the same utterances, one for one.

    EMR and SFA: Newcombe's interval of paired shares, McNemar's exact p. The others: the middle 95 % of the difference
    over samples of the utterances, the same for both; p from swapping the two within utterances at random.
    Sources: Efron & Tibshirani, An Introduction to the Bootstrap, 13 (the interval); Noreen, Computer-Intensive Methods
    for Testing Hypotheses, 1989 (approximate randomisation).
    """
    if not first:
        return dict.fromkeys(Figure, NO_DIFFERENCE)
    made = columns([first, second], basis([first, second], zero, labels))
    found = made.found()
    drawn, swapped = made.resampled(draws, seed), made.swapped(draws, seed + 1)
    differing: dict[Figure, Difference] = {}
    for figure in Figure:
        one, two = (None if np.isnan(value) else float(value) for value in found[figure])
        if one is None or two is None:
            differing[figure] = Difference(one, two, None, None, None)
        elif figure in SHARES:
            differing[figure] = _of_shares(made, figure, one, two)
        else:
            apart = drawn[figure][0] - drawn[figure][1]
            by_chance = swapped[figure][0] - swapped[figure][1]
            far = np.count_nonzero(np.abs(by_chance) >= abs(one - two) - 1e-12)
            p = (1 + int(far)) / (1 + draws)
            differing[figure] = Difference(
                one, two, one - two, _middle(apart) if len(first) >= LEAST_UTTERANCES else None, p
            )
    return differing


def _of_shares(made: Columns, figure: Figure, one: float, two: float) -> Difference:
    at = made.of[figure].start
    # An utterance counts where both systems are counted, which a frame of known intents and slots is for either.
    counted = (made.bottoms[0, :, at] > 0) & (made.bottoms[1, :, at] > 0)
    first, second = made.tops[0, :, at] > 0, made.tops[1, :, at] > 0

    def number(rows: NDArray[np.bool_]) -> int:
        return int(made.number[rows & counted].sum())

    counts = Discordance(
        both=number(first & second),
        only_first=number(first & ~second),
        only_second=number(~first & second),
        neither=number(~first & ~second),
    )
    apart = paired_difference(counts)
    if apart is None:
        return Difference(one, two, None, None, None)
    return Difference(one, two, apart.value, (apart.low, apart.high), 1.0 if counts.p is None else counts.p)


def _middle(values: Numbers) -> Interval | None:
    """The middle 95 % of what was drawn; samples over nothing do not count.

    None where all samples are the same: what did not happen cannot be drawn, which says nothing of whether it can.
    """
    held = values[~np.isnan(values)]
    if not held.size or held.min() == held.max():
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(held, [tail, 1 - tail])
    return float(low), float(high)
