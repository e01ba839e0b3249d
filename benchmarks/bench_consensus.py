"""How often a consensus is right, and how much it declares, where it is known what is right.

python benchmarks/bench_consensus.py            half a minute; --rounds N for more or fewer

Each round draws items of a few common and many rare categories, and raters who are right so often and else say one of
three neighbouring categories ("near"), any other one ("any"), or a common one rather than a rare one ("common").
declared: of all items those with a consensus (at least 90 % probable, and more raters' than any other category); right:
of those. stated: their mean probability. plurality: of all items those that one category leads, and how many of these
leaders are right: what would be declared without a gate. three ways: items on which three raters give three
categories; none may be declared. Ends with status 1 when fewer than 88 % of the declared are right in the first line,
or anything is declared without a plurality.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import SMALLEST, sized

from harness.statistics.agreement import MISSING, consensus, label_counts, majority
from tests.unit.statistics.simulations import CATEGORIES, confusion_matrix, prevalences, said, truths

LEAST_RIGHT = 0.88
Matrix = NDArray[np.float64]


def towards_common(right: float) -> Matrix:
    matrix = np.tile(prevalences(), (CATEGORIES, 1))
    np.fill_diagonal(matrix, 0.0)
    matrix *= (1 - right) / matrix.sum(axis=1, keepdims=True)
    return matrix + right * np.eye(CATEGORIES)


ERRORS: dict[str, Callable[[float], Matrix]] = {
    "near": confusion_matrix,
    "any": lambda right: confusion_matrix(right, spread=CATEGORIES - 1),
    "common": towards_common,
}
CASES = [
    ("near", (0.8,) * 3, 150),
    ("any", (0.8,) * 3, 150),
    ("common", (0.8,) * 3, 150),
    *(("near", (0.8,) * 3, items) for items in (1, 4, 10, 30, 1000)),
    ("near", (0.9, 0.8, 0.6), 150),
    *(("near", (right,) * 3, 150) for right in (0.6, 0.7, 0.9)),
    ("near", (0.8,) * 4, 150),
    ("near", (0.8,) * 5, 150),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=sized(25, 1))
    rounds = parser.parse_args().rounds
    print(f"{rounds} rounds each")
    print("errors  raters                   items  declared    right  stated  plurality    right  three ways")
    enough = True
    for case in CASES:
        errors, rights, items = case
        random = np.random.default_rng(17)
        declared = right = leads = leaders_right = three = unled = 0
        stated = 0.0
        for _ in range(rounds):
            truth = truths(items, random)
            labels = said(truth, [ERRORS[errors](one) for one in rights], random)
            found, most = consensus(labels, CATEGORIES), majority(labels, CATEGORIES)
            known, led = found.labels != MISSING, most != MISSING
            declared += int(known.sum())
            right += int((found.labels == truth)[known].sum())
            stated += float(found.posteriors[known, found.labels[known]].sum())
            leads += int(led.sum())
            leaders_right += int((most == truth)[led].sum())
            three += int((label_counts(labels, CATEGORIES).max(axis=1) == 1).sum())
            unled += int((found.labels != most)[known].sum())
        enough &= not unled and (case is not CASES[0] or right >= LEAST_RIGHT * declared)
        total = rounds * items
        figures = f"{declared / total:8.1%} {right / declared:8.1%} {stated / declared:7.1%}" if declared else " " * 25
        print(
            f"{errors:6}  {', '.join(f'{one:.0%}' for one in rights):23} {items:6}  {figures}"
            f"  {leads / total:9.1%} {leaders_right / leads:8.1%}  {three:10}"
        )
    return 0 if enough or SMALLEST else 1


if __name__ == "__main__":
    sys.exit(main())
