"""How often a consensus is right, and how well that is estimated, where the truth is known.

python benchmarks/bench_consensus.py            a quarter of a minute; --rounds N for more or fewer

Each round draws items of a few common and many rare categories. It draws raters who are right so often, and else give
one of three neighbouring categories. On a share of the items ("shared") each rater falls into the same error nine times
in ten. A consensus is the category of most raters, two at least. Two figures state how likely it is right: the
probability by the model of Dawid and Skene, and the share right of 50 known answers with as many votes ("known").
`covered`: of all 95 % intervals of that share, those that hold the true one. The second table has both figures by
decile, over the cases with shared errors. Ends with status 1 when fewer than 88 % are right without shared errors, or
intervals cover less than 90 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import SMALLEST, sized

from harness.statistics.agreement import dawid_skene, leading_label
from harness.statistics.intervals import Share
from tests.unit.statistics.simulations import CATEGORIES, confusion_matrix, drawn_labels, truths, with_shared_errors

MIN_RIGHT_SHARE, MIN_COVERED_SHARE = 0.88, 0.9
ITEMS, KNOWN, LARGE = 250, 50, 20_000


@dataclass(frozen=True, slots=True)
class Raters:
    """rights: how often each is right. shared: the share of items with a shared error."""

    rights: tuple[float, ...]
    shared: float


CASES = [
    *(Raters((0.8,) * 3, shared) for shared in (0.0, 0.1, 0.2)),
    *(Raters(rights, shared) for rights in ((0.9, 0.8, 0.6), (0.6,) * 3) for shared in (0.0, 0.15)),
    *(Raters(rights, 0.15) for rights in ((0.8,) * 2, (0.8,) * 5)),
]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Consensus:
    """The items with a consensus.

    - items, categories: their positions among all items, and the category of each.
    - votes: how many raters gave it.
    - right: whether it is the true category.
    """

    items: Labels
    categories: Labels
    votes: Labels
    right: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Estimates:
    """For each consensus: its probability by the model, the share right of known answers (NaN if none), the truth."""

    by_model: NDArray[np.float64]
    by_known: NDArray[np.float64]
    right: NDArray[np.bool_]


def draw(items: int, raters: Raters, random: np.random.Generator) -> tuple[Labels, Labels]:
    """True categories, and the raters' labels."""
    truth = truths(items, random)
    labels = drawn_labels(truth, [confusion_matrix(right) for right in raters.rights], random)
    return truth, with_shared_errors(truth, labels, raters.shared, random)


def consensus_of(truth: Labels, labels: Labels) -> Consensus:
    leads = [leading_label(column) for column in labels.T.tolist()]
    items = np.flatnonzero([lead is not None for lead in leads])
    categories, votes = np.array([lead for lead in leads if lead is not None]).T
    return Consensus(items, categories, votes, categories == truth[items])


def right_by_votes(consensus: Consensus) -> dict[int, Share]:
    """The share right of consensuses with each number of votes."""
    return {
        int(votes): Share(int(consensus.right[consensus.votes == votes].sum()), int((consensus.votes == votes).sum()))
        for votes in np.unique(consensus.votes)
    }


def joined(estimates: list[Estimates]) -> Estimates:
    return Estimates(
        np.concatenate([part.by_model for part in estimates]),
        np.concatenate([part.by_known for part in estimates]),
        np.concatenate([part.right for part in estimates]),
    )


def decile_texts(stated: NDArray[np.float64], right: NDArray[np.bool_]) -> Iterator[str]:
    """For each tenth of the stated probabilities: items, mean of the stated ones, share right."""
    tenths = np.minimum((10 * stated).astype(int), 9)
    for decile in range(10):
        chosen = tenths == decile
        if chosen.any():
            yield f"{chosen.sum():7}  {stated[chosen].mean():6.1%}  {right[chosen].mean():6.1%}"
        else:
            yield " " * 23


def covered_intervals(known: dict[int, Share], large: dict[int, Share]) -> tuple[int, int]:
    """Of the intervals of known answers, those that hold the share of a large draw; and all that can be compared."""
    covered = total = 0
    for votes, share in known.items():
        true_share = large[votes].value if votes in large else None
        if share.interval is not None and true_share is not None:
            total += 1
            covered += share.interval[0] <= true_share <= share.interval[1]
    return covered, total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=sized(100, 1))
    rounds = parser.parse_args().rounds
    print(f"{rounds} rounds each")
    print("raters                   shared  consensus   right   model   known  covered")
    is_good = True
    all_covered = all_intervals = 0
    with_shared: list[Estimates] = []
    for raters in CASES:
        estimates, covered, intervals = simulate(raters, rounds)
        all_covered, all_intervals = all_covered + covered, all_intervals + intervals
        if raters.shared:
            with_shared.append(estimates)
        elif raters.rights == (0.8,) * 3:
            is_good = bool(estimates.right.mean() >= MIN_RIGHT_SHARE)
        rights = ", ".join(f"{right:.0%}" for right in raters.rights)
        print(
            f"{rights:23}  {raters.shared:6.0%}  {len(estimates.right) / rounds / ITEMS:9.1%}"
            f"  {estimates.right.mean():6.1%}  {estimates.by_model.mean():6.1%}"
            f"  {np.nanmean(estimates.by_known):6.1%}  {covered / intervals:7.1%}"
        )
    together = joined(with_shared)
    print("with shared errors           model: items, stated, right   known: items, stated, right")
    is_known = ~np.isnan(together.by_known)
    rows = zip(
        decile_texts(together.by_model, together.right),
        decile_texts(together.by_known[is_known], together.right[is_known]),
        strict=True,
    )
    for decile, (model_text, known_text) in enumerate(rows):
        print(f"{decile / 10:.1f} to {(decile + 1) / 10:.1f}{'':17}  {model_text}{'':9}  {known_text}")
    is_good &= all_covered >= MIN_COVERED_SHARE * all_intervals
    return 0 if is_good or SMALLEST else 1


def simulate(raters: Raters, rounds: int) -> tuple[Estimates, int, int]:
    """The estimates of all rounds, and how many of how many intervals of known answers hold the true share."""
    random = np.random.default_rng(17)
    large = right_by_votes(consensus_of(*draw(sized(LARGE, 500), raters, random)))
    covered = intervals = 0
    estimates = []
    for _ in range(rounds):
        known = right_by_votes(consensus_of(*draw(KNOWN, raters, random)))
        truth, labels = draw(ITEMS, raters, random)
        consensus = consensus_of(truth, labels)
        by_model = dawid_skene(labels, CATEGORIES).posteriors[consensus.items, consensus.categories]
        by_known = [known[votes].value if votes in known else np.nan for votes in consensus.votes.tolist()]
        estimates.append(Estimates(by_model, np.array(by_known, float), consensus.right))
        round_covered, round_intervals = covered_intervals(known, large)
        covered, intervals = covered + round_covered, intervals + round_intervals
    return joined(estimates), covered, intervals


if __name__ == "__main__":
    sys.exit(main())
