"""Figures of intents are those of scikit-learn, over 10,000 random utterances one by one and in corpora of any size."""

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.metrics import accuracy_score, jaccard_score, precision_recall_fscore_support

from harness.understanding.figures import ONE, ZERO, Averages, ZeroDivision, figures
from tests.unit.understanding.arithmetic.random_frames import INTENTS, Pair, counted, pairs

CASES = 10_000


@pytest.fixture(scope="module")
def cases() -> list[Pair]:
    return pairs(random.Random(7), CASES, longest=0)


def matrix(of: list[Pair], side: int) -> np.ndarray[Any, Any]:
    return np.array([[name in (pair[side].intents or ()) for name in INTENTS] for pair in of], dtype=int)


def theirs(of: list[Pair], average: str | None, zero: float) -> list[Any]:
    found = precision_recall_fscore_support(matrix(of, 0), matrix(of, 1), average=average, zero_division=zero)
    return [np.asarray(one).tolist() for one in found[:3]]


def ours(averages: Averages) -> tuple[float | None, ...]:
    return averages.precision, averages.recall, averages.f1


def close(one: Any, other: Any) -> bool:
    return np.shape(one) == np.shape(other) and np.allclose(np.asarray(one, float), other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("zero", [ZERO, ONE])
def test_every_utterance_by_itself(cases: list[Pair], zero: ZeroDivision) -> None:
    gold, predicted = matrix(cases, 0), matrix(cases, 1)
    # A row's figures are those of a label once rows are columns.
    each = precision_recall_fscore_support(gold.T, predicted.T, average=None, zero_division=zero.precision)
    accuracies = jaccard_score(gold.T, predicted.T, average=None, zero_division=zero.accuracy)
    for row, pair in enumerate(cases):
        found = figures(counted([pair]), zero).intents
        assert close(ours(found.samples), [column[row] for column in each[:3]])
        assert close(found.accuracy, accuracies[row])
        assert found.exact.count == int((gold[row] == predicted[row]).all())


@pytest.mark.parametrize("zero", [ZERO, ONE])
def test_corpora_of_any_size(cases: list[Pair], zero: ZeroDivision) -> None:
    source = random.Random(1)
    ends = [0, *sorted(source.sample(range(1, CASES), 120)), CASES]
    for begin, end in pairwise(ends):
        some = cases[begin:end]
        with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            found = figures(counted(some), zero, INTENTS).intents
            assert close(ours(found.samples), theirs(some, "samples", zero.precision))
            assert close(ours(found.macro), theirs(some, "macro", zero.precision))
            if found.micro != Averages():
                assert close(ours(found.micro), theirs(some, "micro", zero.precision))
            by_label = np.array([ours(one) for _, _, one in found.labels]).T
            assert close(by_label.tolist(), theirs(some, None, zero.precision))
            gold, predicted = matrix(some, 0), matrix(some, 1)
            jaccard = jaccard_score(gold, predicted, average="samples", zero_division=zero.accuracy)
            assert close(found.accuracy, jaccard)
            assert close(found.exact.value, accuracy_score(gold, predicted))


def test_macro_over_labels_seen_is_over_the_columns_that_occur() -> None:
    source = random.Random(3)
    for _ in range(40):
        some = pairs(source, source.randint(1, 4), longest=0)
        gold, predicted = matrix(some, 0), matrix(some, 1)
        seen = (gold + predicted).any(axis=0)
        found = figures(counted(some)).intents
        assert not found.declared
        assert len(found.labels) == seen.sum()
        if seen.any():
            of = precision_recall_fscore_support(gold[:, seen], predicted[:, seen], average="macro", zero_division=0.0)
            assert close(ours(found.macro), of[:3])
        else:
            assert found.macro == Averages()


def test_over_nothing_at_all_scikit_learn_chooses_and_we_say_nothing() -> None:
    gold = np.zeros((3, 2), dtype=int)
    found = precision_recall_fscore_support(gold, gold, average="micro", zero_division=0.0)
    assert found[:3] == (0, 0, 0)
    assert figures(counted(pairs(random.Random(0), 0))).intents.micro == Averages()
