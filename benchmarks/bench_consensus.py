"""How often a consensus is right, and what is stated of it, where it is known what is right.

python benchmarks/bench_consensus.py            a quarter of a minute; --rounds N for more or fewer

Each round draws items of a few common and many rare categories, and raters who are right so often and else say one of
three neighbouring categories. On a share of the items ("shared") each rater falls into the same error nine times in
ten. A consensus is the category of most raters, two at least. Two figures state how likely it is right: the
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
from tests.unit.statistics.simulations import CATEGORIES, confusion_matrix, said, truths, with_shared_errors

MIN_RIGHT_SHARE, MIN_COVERED_SHARE = 0.88, 0.9
ITEMS, KNOWN, LARGE = 250, 50, 20_000
CASES = [
    *(((0.8,) * 3, shared) for shared in (0.0, 0.1, 0.2)),
    *((rights, shared) for rights in ((0.9, 0.8, 0.6), (0.6,) * 3) for shared in (0.0, 0.15)),
    *((rights, 0.15) for rights in ((0.8,) * 2, (0.8,) * 5)),
]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Agreed:
    """Items with a consensus: their numbers and categories. votes: how many raters gave it."""

    items: Labels
    lead: Labels
    votes: Labels
    right: NDArray[np.bool_]


def drawn(items: int, rights: tuple[float, ...], shared: float, random: np.random.Generator) -> tuple[Labels, Labels]:
    truth = truths(items, random)
    labels = said(truth, [confusion_matrix(right) for right in rights], random)
    return truth, with_shared_errors(truth, labels, shared, random)


def agreed(truth: Labels, labels: Labels) -> Agreed:
    leads = [leading_label(column) for column in labels.T.tolist()]
    at = np.flatnonzero([lead is not None for lead in leads])
    lead, votes = np.array([one for one in leads if one is not None]).T
    return Agreed(at, lead, votes, lead == truth[at])


def known_right(known: Agreed) -> dict[int, Share]:
    return {
        int(votes): Share(int(known.right[known.votes == votes].sum()), int((known.votes == votes).sum()))
        for votes in np.unique(known.votes)
    }


def deciles(stated: NDArray[np.float64], right: NDArray[np.bool_]) -> Iterator[str]:
    tenth = np.minimum((10 * stated).astype(int), 9)
    for decile in range(10):
        these = tenth == decile
        figures = (
            f"{these.sum():7}  {stated[these].mean():6.1%}  {right[these].mean():6.1%}" if these.any() else " " * 23
        )
        yield figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=sized(100, 1))
    rounds = parser.parse_args().rounds
    print(f"{rounds} rounds each")
    print("raters                   shared  consensus   right   model   known  covered")
    enough = True
    all_covered = all_intervals = 0
    together: list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]] = []
    for rights, shared in CASES:
        random = np.random.default_rng(17)
        large = known_right(agreed(*drawn(sized(LARGE, 500), rights, shared, random)))
        items = covered = intervals = 0
        of_case = []
        for _ in range(rounds):
            known = known_right(agreed(*drawn(KNOWN, rights, shared, random)))
            truth, labels = drawn(ITEMS, rights, shared, random)
            found = agreed(truth, labels)
            model = dawid_skene(labels, CATEGORIES).posteriors[found.items, found.lead]
            items += len(found.right)
            by_known = np.array([known[one].value if one in known else np.nan for one in found.votes.tolist()], float)
            of_case.append((model, by_known, found.right))
            for votes, share in known.items():
                if share.interval is not None and votes in large and (true := large[votes].value) is not None:
                    intervals += 1
                    covered += share.interval[0] <= true <= share.interval[1]
        stated, by_known, right = (np.concatenate(columns) for columns in zip(*of_case, strict=True))
        together += [(stated, by_known, right)] if shared else []
        if not shared and rights == (0.8,) * 3:
            enough &= bool(right.mean() >= MIN_RIGHT_SHARE)
        all_covered, all_intervals = all_covered + covered, all_intervals + intervals
        of_raters = ", ".join(f"{one:.0%}" for one in rights)
        agree = f"{items / rounds / ITEMS:9.1%}  {right.mean():6.1%}"
        print(
            f"{of_raters:23}  {shared:6.0%}  {agree}  {stated.mean():6.1%}  {np.nanmean(by_known):6.1%}"
            f"  {covered / intervals:7.1%}"
        )
    stated, by_known, right = (np.concatenate(columns) for columns in zip(*together, strict=True))
    print("with shared errors           model: items, stated, right   known: items, stated, right")
    is_known = ~np.isnan(by_known)
    rows = zip(deciles(stated, right), deciles(by_known[is_known], right[is_known]), strict=True)
    for decile, (of_model, of_known) in enumerate(rows):
        print(f"{decile / 10:.1f} to {(decile + 1) / 10:.1f}{'':17}  {of_model}{'':9}  {of_known}")
    enough &= all_covered >= MIN_COVERED_SHARE * all_intervals
    return 0 if enough or SMALLEST else 1


if __name__ == "__main__":
    sys.exit(main())
