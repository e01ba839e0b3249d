"""Consensus: simulated raters whose confusions are known are found again; ties, gaps and single raters."""

from __future__ import annotations

import numpy as np
import pytest

from harness.statistics.agreement import MISSING, MOST_ROUNDS, consensus, majority, without_each
from tests.unit.statistics.raters import CATEGORIES, confusion_matrix, prevalences, said, truths


def test_majority_and_ties() -> None:
    labels = np.array([[0, 0, 1, 2, -1], [0, 1, 1, 1, -1], [1, -1, 1, 0, -1]])
    assert majority(labels, 3).tolist() == [0, MISSING, 1, MISSING, MISSING]
    assert majority(np.zeros((0, 4), np.int64), 3).tolist() == [MISSING] * 4


def test_confusions_and_priors_are_found_again() -> None:
    """Five raters, 4,000 items: no common category's confusions are off by more than 0.06, nor priors by 0.02."""
    random = np.random.default_rng(11)
    matrices = [confusion_matrix(right) for right in (0.95, 0.9, 0.85, 0.75, 0.6)]
    truth = truths(4000, random)
    found = consensus(said(truth, matrices, random, missing=0.1), CATEGORIES)
    assert found.converged
    assert np.abs(found.priors - prevalences()).max() < 0.02
    common = prevalences() > 0.05
    for rater, matrix in enumerate(matrices):
        assert np.abs(found.confusion[rater] - matrix)[common].max() < 0.06
        assert found.confusion[rater].sum(axis=1) == pytest.approx(1.0)
    declared = found.labels != MISSING
    assert declared.mean() > 0.9
    assert (found.labels == truth)[declared].mean() > 0.96


def test_it_trusts_those_who_earn_it() -> None:
    """Two careful raters and three careless ones: the majority is often wrong, what the consensus declares rarely."""
    random = np.random.default_rng(2)
    truth = truths(800, random)
    labels = said(truth, [confusion_matrix(right) for right in (0.95, 0.95, 0.4, 0.4, 0.4)], random)
    found, most = consensus(labels, CATEGORIES).labels, majority(labels, CATEGORIES)
    declared, several = found != MISSING, most != MISSING
    assert declared.mean() > 0.7
    assert (found == truth)[declared].mean() > 0.97
    assert (most == truth)[several].mean() < 0.95


@pytest.mark.parametrize("rights", [(0.8, 0.8, 0.8), (0.9, 0.8, 0.6), (0.7, 0.7, 0.7), (0.8, 0.8, 0.8, 0.8)], ids=str)
@pytest.mark.parametrize("items", [4, 30, 150])
def test_nothing_is_declared_without_a_plurality_and_what_is_declared_is_mostly_right(
    rights: tuple[float, ...], items: int
) -> None:
    """The figures over more rounds: benchmarks/bench_consensus.py."""
    random = np.random.default_rng(13)
    right = declared = 0
    for _ in range(10):
        truth = truths(items, random)
        labels = said(truth, [confusion_matrix(one) for one in rights], random)
        found = consensus(labels, CATEGORIES)
        known = found.labels != MISSING
        assert (found.labels[known] == majority(labels, CATEGORIES)[known]).all()
        assert (found.posteriors[known, found.labels[known]] >= 0.9).all()
        right, declared = right + int((found.labels == truth)[known].sum()), declared + int(known.sum())
    assert right >= 0.88 * declared > 0


def test_three_raters_with_three_categories_are_no_consensus() -> None:
    alike = [[at % 5] * 3 for at in range(40)]
    labels = np.array([*alike, [0, 1, 2], [3, 3, 4]]).T
    found = consensus(labels, CATEGORIES).labels
    assert found[-2] == MISSING
    assert found[-1] == 3
    assert consensus(np.array([[0], [1], [2]]), CATEGORIES).labels.tolist() == [MISSING]


def test_each_round_comes_nearer_and_it_comes_to_rest() -> None:
    random = np.random.default_rng(4)
    for raters, items in ((2, 30), (3, 12), (6, 200)):
        labels = said(truths(items, random), [confusion_matrix(0.7)] * raters, random, missing=0.3)
        found = consensus(labels, CATEGORIES)
        assert (np.diff(found.objectives) > -1e-8 * np.abs(found.objectives[1:])).all()
        assert found.converged == (found.rounds < MOST_ROUNDS)
        labelled = (labels != MISSING).any(axis=0)
        assert found.posteriors[labelled].sum(axis=1) == pytest.approx(1.0)
        assert np.isnan(found.posteriors[~labelled]).all()
        assert (found.labels[~labelled] == MISSING).all()
        again = consensus(labels, CATEGORIES)
        assert (again.labels == found.labels).all()
        assert again.objectives == found.objectives


def test_two_against_each_other_is_no_consensus() -> None:
    found = consensus(np.array([[0, 1], [1, 0]]), 3)
    assert found.labels.tolist() == [MISSING, MISSING]
    # What a single rater says, of whom nothing is known, is not sure enough either.
    assert consensus(np.array([[0, 1, 2]]), 3).labels.tolist() == [MISSING] * 3
    assert consensus(np.full((2, 3), 4), 5).labels.tolist() == [4, 4, 4]


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 4), (2, 4)])
def test_nothing_judged(shape: tuple[int, int]) -> None:
    labels = np.full(shape, MISSING)
    found = consensus(labels, 5)
    assert (found.labels == MISSING).all()
    assert (found.rounds, found.converged) == (0, True)
    assert (without_each(labels, 5, found) == MISSING).all()


def test_ten_thousand_sure_raters_do_not_overflow() -> None:
    found = consensus(np.zeros((10_000, 3), np.int64) + np.array([0, 1, 1]), 2)
    assert found.labels.tolist() == [0, 1, 1]
    assert np.isfinite(found.posteriors).all()


def test_a_raters_own_label_does_not_vouch_for_it() -> None:
    random = np.random.default_rng(6)
    rights = (0.95, 0.9, 0.9, 0.5)
    truth = truths(1500, random)
    labels = said(truth, [confusion_matrix(right) for right in rights], random)
    whole = consensus(labels, CATEGORIES)
    others = without_each(labels, CATEGORIES, whole)
    for rater, right in enumerate(rights):
        known = others[rater] != MISSING
        assert (others[rater] == labels[rater])[known].mean() == pytest.approx(right, abs=0.06)
    # From the same start, as if the rater had never been there.
    alone = consensus(labels[1:], CATEGORIES).labels
    assert (others[0] == alone).mean() > 0.99


def test_fewer_than_two_others_are_no_yardstick() -> None:
    labels = np.array([[0, *[0, 1] * 8], [0, *[0, 1] * 8], [-1, *[0, 1] * 8]])
    found = without_each(labels, 2, consensus(labels, 2))
    assert (found[:, 0] == MISSING).all()
    assert found[2].tolist()[1:3] == [0, 1]
