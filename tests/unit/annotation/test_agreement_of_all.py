"""Three annotators at once: alpha over what two or more of them labelled."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest

from harness.annotation.agreement import all_annotators, masi_distance
from harness.model.annotation import AnnotationRow, Labelled
from tests.unit.annotation.sittings import Bench, utterances

GIVEN = {
    "u1": {"ann": "play", "ben": "play", "cem": "play"},
    "u2": {"ann": "play", "ben": "play thank", "cem": "stop"},
    "u3": {"ann": "stop", "cem": "stop thank"},
    "u4": {"ben": "thank"},
    "u5": {"ann": "thank", "ben": "thank"},
}


def rows(*names: str) -> list[AnnotationRow]:
    return [
        Labelled(f"{name} {one}", name, one, tuple(labels.split()))
        for one, by in GIVEN.items()
        for name, labels in by.items()
        if name in names
    ]


def by_hand(*, masi: bool) -> float:
    """Krippendorff's coincidences, pair by pair: each unit's pairs weigh 1 / (values − 1)."""
    coincidences: Counter[tuple[frozenset[str], frozenset[str]]] = Counter()
    for by in GIVEN.values():
        sets = [frozenset(labels.split()) for labels in by.values()]
        for one, other in permutations(sets, 2):
            coincidences[one, other] += 1 / (len(sets) - 1)  # type: ignore[assignment]

    def distance(one: frozenset[str], other: frozenset[str]) -> float:
        return masi_distance(one, other) if masi else float(one != other)

    margins: Counter[frozenset[str]] = Counter()
    for (one, _), many in coincidences.items():
        margins[one] += many
    total = sum(margins.values())
    observed = sum(many * distance(*pair) for pair, many in coincidences.items()) / total
    chance = sum(
        margins[one] * (margins[other] - (one == other)) * distance(one, other) for one in margins for other in margins
    ) / (total * (total - 1))
    return 1 - observed / chance


def test_alphas_of_three_are_those_worked_out_pair_by_pair() -> None:
    found = all_annotators(utterances(6), Bench(rows=rows("ann", "ben", "cem")).ledger)
    assert found is not None
    assert (found.annotators, found.shared) == (("ann", "ben", "cem"), 4)
    assert found.masi.value == pytest.approx(by_hand(masi=True), abs=1e-12)
    assert found.nominal.value == pytest.approx(by_hand(masi=False), abs=1e-12)


def test_two_annotators_are_a_pair() -> None:
    ledger = Bench(rows=rows("ann", "ben", "cem")).ledger
    assert all_annotators(utterances(6), ledger, ("ann", "ben")) is None
    assert all_annotators(utterances(6), Bench(rows=rows("ann", "ben")).ledger) is None
