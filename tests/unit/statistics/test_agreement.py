"""Agreement and consensus: known values, another implementation, simulated raters, tables without a figure."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from harness.statistics.agreement import (
    ALL_EQUAL,
    MAX_ROUNDS,
    MISSING,
    NEVER_GIVEN,
    NO_OVERLAP,
    NOTHING_JUDGED,
    ONE_RATER,
    TOO_FEW_ITEMS,
    agreement,
    confusions,
    dawid_skene,
    label_counts,
    leading_label,
    leave_one_out,
    pairs,
)
from harness.statistics.intervals import Share
from tests.unit.statistics.simulations import (
    CATEGORIES,
    confusion_matrix,
    drawn_labels,
    prevalences,
    true_raw_and_alpha,
    truths,
    with_shared_errors,
)


def table(*rows: str) -> NDArray[np.int64]:
    """Raters as strings: a digit is a category, a point none."""
    return np.array([[MISSING if sign == "." else int(sign) for sign in row] for row in rows])


def test_alpha_matches_the_library_on_random_tables() -> None:
    random = np.random.default_rng(5)
    compared = 0
    for _ in range(100):
        raters, items, categories = random.integers(2, 7), random.integers(1, 60), random.integers(2, 12)
        labels = random.integers(-1, categories, (raters, items))
        if random.random() < 0.5:  # a common category, as responses have
            labels = np.where(random.random(labels.shape) < 0.7, np.minimum(labels, 0), labels)
        ours = agreement(labels, int(categories), resamples=2).alpha.value
        try:
            with np.errstate(invalid="ignore"):
                theirs = krippendorff.alpha(
                    np.where(labels == MISSING, np.nan, labels.astype(float)), level_of_measurement="nominal"
                )
        except ValueError:  # a single value, or nothing shared
            theirs = np.nan
        if ours is None:
            assert np.isnan(theirs)
            continue
        compared += 1
        assert abs(ours - theirs) <= 1e-9
    assert compared > 75


def test_a_small_table_matches_hand_calculation() -> None:
    # Ten labels of 0 and 1 on five items, of which one pair differs.
    figures = agreement(table("00110", "00111"), 2)
    assert figures.raw.value == pytest.approx(0.8)
    # Margins 5 and 5: chance differs in 2·5·5 of 10·9 ordered pairs.
    assert figures.alpha.value == pytest.approx(1 - 0.2 / (50 / 90))
    assert figures.ac1.value == pytest.approx((0.8 - 0.5) / 0.5)
    assert [category.agreement.value for category in figures.categories] == [pytest.approx(0.8), pytest.approx(0.8)]
    assert figures.confusion.tolist() == [[2, 1], [1, 2]]
    (pair,) = pairs(table("00110", "00111"), 2)
    assert pair.agreed == Share(4, 5)
    assert pair.kappa.value == pytest.approx((0.8 - 0.48) / 0.52)
    assert pair.confusion.tolist() == [[2, 1], [0, 2]]


def test_each_item_counts_once_however_many_raters_it_has() -> None:
    figures = agreement(table("00", "01", "0.", "0."), 2)
    assert figures.raw.value == pytest.approx(0.5)
    assert (figures.raters, figures.items, figures.shared, figures.labels, figures.shared_labels) == (4, 2, 2, 6, 6)


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (np.zeros((0, 0), np.int64), NOTHING_JUDGED),
        (table("...", "..."), NOTHING_JUDGED),
        (table("012"), ONE_RATER),
        (table("012", "..."), ONE_RATER),
        (table("01..", "..23"), NO_OVERLAP),
    ],
)
def test_without_shared_items_there_is_no_figure_and_the_reason(labels: NDArray[np.int64], why: str) -> None:
    figures = agreement(labels, 4)
    for figure in (figures.raw, figures.alpha, figures.ac1, *(category.agreement for category in figures.categories)):
        assert (figure.value, figure.interval, figure.why_not) == (None, None, why)
    assert pairs(labels, 4) == ()
    assert agreement(labels, 4).alpha.value is None


def test_all_equal_labels_have_no_alpha_and_the_reason() -> None:
    figures = agreement(table("1111111111", "1111111111"), 3)
    assert (figures.alpha.value, figures.alpha.why_not) == (None, ALL_EQUAL)
    assert figures.raw.value == figures.ac1.value == 1.0
    # Ten items of one kind do not prove that raters always agree: 1 - 0.05 ** (1 / 10) at the least.
    assert figures.raw.interval is not None
    assert figures.ac1.interval is not None
    assert 0.65 < figures.raw.interval[0] < 0.75
    assert 0.65 < figures.ac1.interval[0] < 0.75
    (pair,) = pairs(table("11", "11"), 3)
    assert (pair.kappa.value, pair.kappa.why_not) == (None, ALL_EQUAL)
    assert figures.categories[0].agreement.why_not == NEVER_GIVEN


def test_one_item_on_which_all_differ_has_values_and_no_interval() -> None:
    figures = agreement(table("0", "1"), 2)
    assert (figures.raw.value, figures.alpha.value) == (0.0, 0.0)
    assert figures.alpha.interval is None
    assert figures.alpha.why_not


@pytest.mark.parametrize(("items", "has_intervals"), [(9, False), (10, True)])
def test_a_bootstrapped_interval_needs_ten_shared_items(items: int, has_intervals: bool) -> None:
    labels = ("01" * 5)[:items]
    by_one_rater_alone = "00000"
    figures = agreement(table(by_one_rater_alone + labels, "....." + "1" + labels[1:]), 2)
    assert figures.shared == items
    for figure in (figures.alpha, figures.ac1):
        assert (figure.interval is not None) is has_intervals
        assert figure.why_not == ("" if has_intervals else TOO_FEW_ITEMS)
    # Two raters agree on each item as a whole or not at all: Wilson's interval holds for any number.
    assert figures.raw.interval is not None


def test_simulated_raters_have_the_agreement_that_they_must() -> None:
    """Four raters, 20,000 items: within 0.015 of what their confusion matrices imply (3 standard errors)."""
    matrices = [confusion_matrix(right) for right in (0.95, 0.9, 0.8, 0.7)]
    random = np.random.default_rng(3)
    labels = drawn_labels(truths(20_000, random), matrices, random)
    raw, alpha = true_raw_and_alpha(matrices, prevalences())
    figures = agreement(labels, CATEGORIES, resamples=500)
    assert figures.raw.value == pytest.approx(raw, abs=0.015)
    assert figures.alpha.value == pytest.approx(alpha, abs=0.015)
    for figure, truth in ((figures.raw, raw), (figures.alpha, alpha)):
        assert figure.interval is not None
        assert figure.interval[0] < truth < figure.interval[1]
        assert figure.interval[1] - figure.interval[0] < 0.02
    # What is said instead of a category is one of the three behind it.
    assert {(k - c) % CATEGORIES for c, k, _ in confusions(figures.confusion)[:10]} <= {1, 2, 3, 8, 9, 10}


def test_the_same_table_gives_the_same_figures() -> None:
    random = np.random.default_rng(1)
    labels = random.integers(-1, 5, (3, 40))
    first, other = (agreement(labels, 5) for _ in range(2))
    assert (first.raw, first.alpha, first.ac1) == (other.raw, other.alpha, other.ac1)
    assert first.alpha != agreement(labels, 5, seed=2).alpha


def test_labels_outside_the_set_are_refused() -> None:
    for wrong in (table("05"), table("01")[0], np.array([[-2, 0]])):
        with pytest.raises(ValueError, match=r"labels|table"):
            label_counts(wrong, 5)


@st.composite
def tables(draw: st.DrawFn) -> NDArray[np.int64]:
    raters, items = draw(st.integers(2, 4)), draw(st.integers(1, 8))
    cells = draw(st.lists(st.integers(-1, 3), min_size=raters * items, max_size=raters * items))
    return np.array(cells).reshape(raters, items)


@given(tables())
def test_figures_do_not_depend_on_names_and_order(labels: NDArray[np.int64]) -> None:
    figures = agreement(labels, 4, resamples=50)
    for figure in (figures.raw, figures.alpha, figures.ac1):
        assert figure.value is None or (-1.0000001 <= figure.value <= 1.0000001 and np.isfinite(figure.value))
        assert (figure.value is None) <= bool(figure.why_not)
        if figure.interval is not None:
            assert -1.0000001 <= figure.interval[0] <= figure.interval[1] <= 1.0000001
    swapped = np.where(labels == MISSING, MISSING, np.array([2, 0, 3, 1])[labels])[::-1, ::-1]
    renamed = agreement(swapped, 4, resamples=50)
    for figure, other in ((figures.raw, renamed.raw), (figures.alpha, renamed.alpha), (figures.ac1, renamed.ac1)):
        assert figure.value is other.value is None or figure.value == pytest.approx(other.value)
    assert (
        np.triu(figures.confusion).sum()
        == np.triu(renamed.confusion).sum()
        == sum(pair.agreed.total for pair in pairs(labels, 4))
    )


def test_the_majority_decides_and_ties_stay_open() -> None:
    columns = ([0, 0, 1], [0, 1], [1, 1, 1], [2, 1, 0], [])
    assert [leading_label(labels, min_raters=1) for labels in columns] == [(0, 2), None, (1, 3), None, None]


def test_the_model_recovers_confusions_and_priors() -> None:
    """Five raters, 2,000 items: no common category's confusions are off by more than 0.08, nor priors by 0.03."""
    random = np.random.default_rng(11)
    matrices = [confusion_matrix(right) for right in (0.95, 0.9, 0.85, 0.75, 0.6)]
    truth = truths(2000, random)
    fit = dawid_skene(drawn_labels(truth, matrices, random, missing=0.1), CATEGORIES)
    assert fit.converged
    assert np.abs(fit.priors - prevalences()).max() < 0.03
    common = prevalences() > 0.05
    for rater, matrix in enumerate(matrices):
        assert np.abs(fit.confusion[rater] - matrix)[common].max() < 0.08
        assert fit.confusion[rater].sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("labels", "lead"),
    [
        ("", None),
        ("3", None),
        ("33", ("3", 2)),
        ("34", None),
        ("334", ("3", 2)),
        ("345", None),
        ("3344", None),
        ("33456", ("3", 2)),
        ("33344", ("3", 3)),
    ],
)
def test_two_raters_who_agree_decide_unless_as_many_say_something_else(
    labels: str, lead: tuple[str, int] | None
) -> None:
    assert leading_label(labels) == leading_label(labels[::-1]) == lead


def agreed_on(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each item: the leading category and how many raters gave it."""
    return np.array([leading_label(column[column != MISSING].tolist()) or (MISSING, 0) for column in labels.T])


def test_the_model_puts_wrong_answers_of_raters_first_in_a_review() -> None:
    """Two careful raters and three careless ones: a third of the items has most of what is wrong."""
    random = np.random.default_rng(2)
    truth = truths(800, random)
    labels = drawn_labels(truth, [confusion_matrix(right) for right in (0.95, 0.95, 0.4, 0.4, 0.4)], random)
    lead, _ = agreed_on(labels).T
    agreed = lead != MISSING
    sure = dawid_skene(labels, CATEGORIES).posteriors[np.arange(800), lead][agreed]
    wrong = (lead != truth)[agreed]
    first = sure <= np.quantile(sure, 1 / 3)
    assert wrong.sum() > 30
    assert wrong[first].sum() > 0.8 * wrong.sum()


def test_only_known_answers_reveal_errors_that_raters_share() -> None:
    """The figures over more rounds, by decile: benchmarks/bench_consensus.py."""
    random = np.random.default_rng(7)
    matrices = [confusion_matrix(0.8)] * 3

    def drawn(items: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        truth = truths(items, random)
        return truth, with_shared_errors(truth, drawn_labels(truth, matrices, random), 0.15, random)

    truth, labels = drawn(1500)
    lead, votes = agreed_on(labels).T
    stated = dawid_skene(labels, CATEGORIES).posteriors[np.arange(1500), lead]
    for number, most in ((3, 0.9), (2, 0.85)):
        assert (lead == truth)[votes == number].mean() < most
    assert stated[votes == 3].mean() > 0.97
    covered_rounds = 0
    for _ in range(30):
        answers, ratings = drawn(50)
        by_lead, by_votes = agreed_on(ratings).T
        right = (by_lead == answers)[by_votes == 3]
        low, high = Share(int(right.sum()), len(right)).interval or (0.0, 0.0)
        covered_rounds += low <= (lead == truth)[votes == 3].mean() <= high
    assert covered_rounds >= 27


def test_model_improves_each_round_and_converges() -> None:
    random = np.random.default_rng(4)
    for raters, items in ((2, 30), (3, 12), (6, 200)):
        labels = drawn_labels(truths(items, random), [confusion_matrix(0.7)] * raters, random, missing=0.3)
        fit = dawid_skene(labels, CATEGORIES)
        assert (np.diff(fit.objectives) > -1e-8 * np.abs(fit.objectives[1:])).all()
        assert fit.converged == (fit.rounds < MAX_ROUNDS)
        labelled = (labels != MISSING).any(axis=0)
        assert fit.posteriors[labelled].sum(axis=1) == pytest.approx(1.0)
        assert np.isnan(fit.posteriors[~labelled]).all()
        repeated = dawid_skene(labels, CATEGORIES)
        assert repeated.objectives == fit.objectives


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 4), (2, 4)])
def test_no_judgments_give_no_figures(shape: tuple[int, int]) -> None:
    labels = np.full(shape, MISSING)
    fit = dawid_skene(labels, 5)
    assert (fit.rounds, fit.converged) == (0, True)
    assert (leave_one_out(labels) == MISSING).all()


def test_rater_accuracy_excludes_their_own_label() -> None:
    random = np.random.default_rng(6)
    rights = (0.95, 0.9, 0.9, 0.5)
    truth = truths(500, random)
    labels = drawn_labels(truth, [confusion_matrix(right) for right in rights], random)
    others = leave_one_out(labels)
    for rater, right in enumerate(rights):
        labelled = others[rater] != MISSING
        assert (others[rater] == labels[rater])[labelled].mean() == pytest.approx(right, abs=0.07)
    assert (others[0] == agreed_on(labels[1:])[:, 0]).all(), "as if the rater had never been there"


def test_fewer_than_two_others_are_no_yardstick() -> None:
    labels = np.array([[0, *[0, 1] * 8], [0, *[0, 1] * 8], [-1, *[0, 1] * 8]])
    reference_labels = leave_one_out(labels)
    assert (reference_labels[:, 0] == MISSING).all()
    assert reference_labels[2].tolist()[1:3] == [0, 1]
