"""Agreement on sets of labels, by hand and against other libraries; and what became of proposals."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import krippendorff
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score

from harness.annotation.agreement import all_annotators, jaccard, masi_distance, set_agreement, set_alpha
from harness.annotation.report import annotation_report
from harness.model.annotation import Accepted, AnnotationRow, Labelled, LabelProposal, Proposed, Withdrawn
from harness.model.understanding import Utterance
from harness.statistics.agreement import ALL_EQUAL, MISSING, NO_OVERLAP
from tests.known import known
from tests.unit.annotation.sittings import Bench, utterances

NONE: frozenset[str] = frozenset()
A, B, C = (frozenset(letter) for letter in "abc")
SETS = [A, B, C, A | B, B | C, A | B | C, NONE]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (A, A, 0),
        (NONE, NONE, 0),
        (A, B, 1),
        (A, NONE, 1),
        (A, A | B, 1 - 1 / 2 * 2 / 3),
        (A | B | C, A, 1 - 1 / 3 * 2 / 3),
        (A | B, B | C, 1 - 1 / 3 * 1 / 3),
    ],
)
def test_masi_agrees_with_hand_calculation(first: frozenset[str], second: frozenset[str], expected: float) -> None:
    assert masi_distance(first, second) == pytest.approx(expected)
    assert masi_distance(second, first) == pytest.approx(expected)


def test_jaccard_of_nothing_is_agreement() -> None:
    assert jaccard(NONE, NONE) == 1
    assert jaccard(A | B, B | C) == pytest.approx(1 / 3)


def masi_metric(v1: NDArray[np.float64], v2: NDArray[np.float64], **_: object) -> NDArray[np.float64]:
    """The squared distance that the other library wants."""
    distance = np.vectorize(lambda index, other: masi_distance(SETS[int(index)], SETS[int(other)]))
    return np.asarray(distance(v1, v2), np.float64)


@pytest.mark.parametrize("seed", range(12))
def test_alpha_matches_the_krippendorff_library(seed: int) -> None:
    random = np.random.default_rng(seed)
    annotators, count = int(random.integers(2, 5)), int(random.integers(4, 60))
    table = random.integers(0, len(SETS), (annotators, count))
    table[random.random(table.shape) < 0.3] = MISSING
    table[:2, 0] = (0, 1)
    theirs = krippendorff.alpha(
        reliability_data=np.where(table == MISSING, np.nan, table.astype(float)),
        value_domain=list(range(len(SETS))),
        level_of_measurement=masi_metric,  # type: ignore[arg-type]
    )
    assert set_alpha(table, SETS, resamples=20).value == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_kappa_jaccard_and_counts_match_an_independent_recount(seed: int) -> None:
    random = np.random.default_rng(seed)
    first = [SETS[index] for index in random.integers(0, len(SETS), 80)]
    second = [label_set if random.random() < 0.6 else SETS[random.integers(0, len(SETS))] for label_set in first]
    agreement = set_agreement(first, second, ["a", "b", "c"], resamples=50)
    for row in agreement.labels:
        left, right = ([row.label in labels for labels in side] for side in (first, second))
        assert row.kappa.value == pytest.approx(cohen_kappa_score(left, right))
        assert row.both == sum(x and y for x, y in zip(left, right, strict=True))
        assert row.both + row.first == sum(left)
        assert row.both + row.second == sum(right)
        assert row.both + row.first + row.second + row.neither == 80
    assert agreement.exact.count == sum(x == y for x, y in zip(first, second, strict=True))
    assert agreement.jaccard.value == pytest.approx(
        np.mean([jaccard(x, y) for x, y in zip(first, second, strict=True)])
    )
    assert sum(often for _, _, often in agreement.confusion) == 80 - agreement.exact.count
    assert agreement.nominal.value == pytest.approx(
        krippendorff.alpha(
            reliability_data=[[SETS.index(label_set) for label_set in side] for side in (first, second)],
            level_of_measurement="nominal",
        )
    )
    for figure in (agreement.masi, agreement.jaccard, agreement.labels[0].kappa):
        assert figure.interval is not None
        assert figure.interval[0] < (figure.value or 0.0) < figure.interval[1]


def test_interval_covers_the_true_agreement_as_often_as_stated() -> None:
    """Of 200 projects of 150 utterances, the interval misses the value of all about as often as it says: 5 %."""
    random = np.random.default_rng(3)

    def draw(count: int) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
        first = random.integers(0, len(SETS), count)
        second = np.where(random.random(count) < 0.8, first, random.integers(0, len(SETS), count))
        return [SETS[index] for index in first], [SETS[index] for index in second]

    truth = set_agreement(*draw(200_000), [], resamples=2).masi.value or 0.0
    missed = 0
    for _ in range(200):
        interval = known(set_agreement(*draw(150), [], resamples=300).masi.interval)
        missed += not interval[0] <= truth <= interval[1]
    assert 2 <= missed <= 21, missed


def test_agreement_has_no_value_without_overlap_or_variation() -> None:
    nothing = set_agreement([], [], ["a"])
    assert (nothing.exact.value, nothing.masi.value, nothing.masi.why_not) == (None, None, NO_OVERLAP)
    assert nothing.labels[0].kappa.value is None
    equal = set_agreement([A] * 9, [A] * 9, ["a"])
    assert (equal.masi.value, equal.masi.why_not, equal.labels[0].kappa.why_not) == (None, ALL_EQUAL, ALL_EQUAL)
    agreed = set_agreement([A] * 20 + [B] * 20, [A] * 20 + [B] * 20, ["a"])
    assert agreed.masi.value == 1
    assert agreed.masi.interval is not None
    assert 0.7 < agreed.masi.interval[0] < 1
    with pytest.raises(ValueError, match="2 sets of one"):
        set_agreement([A, B], [A], ["a"])


GIVEN = {
    "u1": {"ann": "play", "ben": "play", "cem": "play"},
    "u2": {"ann": "play", "ben": "play thank", "cem": "stop"},
    "u3": {"ann": "stop", "cem": "stop thank"},
    "u4": {"ben": "thank"},
    "u5": {"ann": "thank", "ben": "thank"},
}


def rows(*names: str) -> list[AnnotationRow]:
    return [
        Labelled(f"{name} {utterance}", name, utterance, tuple(labels.split()))
        for utterance, by_annotator in GIVEN.items()
        for name, labels in by_annotator.items()
        if name in names
    ]


def by_hand(*, masi: bool) -> float:
    """Krippendorff's coincidences, pair by pair: each unit's pairs weigh 1 / (values − 1)."""
    coincidences: Counter[tuple[frozenset[str], frozenset[str]]] = Counter()
    for by_annotator in GIVEN.values():
        sets = [frozenset(labels.split()) for labels in by_annotator.values()]
        for first, other in permutations(sets, 2):
            coincidences[first, other] += 1 / (len(sets) - 1)  # type: ignore[assignment]

    def distance(first: frozenset[str], other: frozenset[str]) -> float:
        return masi_distance(first, other) if masi else float(first != other)

    margins: Counter[frozenset[str]] = Counter()
    for (first, _), count in coincidences.items():
        margins[first] += count
    total = sum(margins.values())
    observed = sum(count * distance(*pair) for pair, count in coincidences.items()) / total
    chance = sum(
        margins[first] * (margins[other] - (first == other)) * distance(first, other)
        for first in margins
        for other in margins
    ) / (total * (total - 1))
    return 1 - observed / chance


def test_alpha_of_three_annotators_matches_pairwise_hand_calculation() -> None:
    agreement = known(all_annotators(utterances(6), Bench(rows=rows("ann", "ben", "cem")).ledger))
    assert (agreement.annotators, agreement.shared) == (("ann", "ben", "cem"), 4)
    assert agreement.masi.value == pytest.approx(by_hand(masi=True), abs=1e-12)
    assert agreement.nominal.value == pytest.approx(by_hand(masi=False), abs=1e-12)


def test_two_annotators_are_a_pair() -> None:
    ledger = Bench(rows=rows("ann", "ben", "cem")).ledger
    assert all_annotators(utterances(6), ledger, ("ann", "ben")) is None
    assert all_annotators(utterances(6), Bench(rows=rows("ann", "ben")).ledger) is None


def test_accepted_label_that_was_changed_later_counts_as_wrong_proposal() -> None:
    utterances = [Utterance(id_) for id_ in ("u1", "u2", "u3")]
    rows: list[AnnotationRow] = [
        Proposed("b", "test", tuple(LabelProposal(utterance.id, ("play",)) for utterance in utterances)),
        Accepted("a", "ann", "b", "page", ("play",), ("u1", "u2", "u3")),
        Labelled("l1", "ann", "u1", ("stop",)),
        Labelled("l2", "ben", "u2", ("stop",)),
        Labelled("l3", "ann", "u3", ("play",)),
    ]
    final = {"u1": ("stop",)}
    report = annotation_report(utterances, rows, final)
    assert (report.accepted, report.overridden, report.unreviewed) == (2, 1, 0)
    assert (report.struck_share.count, report.struck_share.total) == (1, 3)
    back = annotation_report(utterances, [*rows, Withdrawn("w", "ann", ("l1",))], final)
    assert (back.accepted, back.overridden) == (3, 0)
