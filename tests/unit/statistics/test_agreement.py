"""Agreement: known values, another implementation, simulated raters, and tables that have no figure."""

from __future__ import annotations

from itertools import permutations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from harness.statistics.agreement import (
    ALL_EQUAL,
    MISSING,
    NEVER_GIVEN,
    NO_OVERLAP,
    NOTHING_JUDGED,
    ONE_RATER,
    agreement,
    alpha_of,
    confusions,
    label_counts,
    pairs,
)
from harness.statistics.intervals import Share
from tests.unit.statistics.raters import CATEGORIES, confusion_matrix, prevalences, said, true_raw_and_alpha, truths


def table(*rows: str) -> NDArray[np.int64]:
    """Raters as strings: a digit is a category, a point none."""
    return np.array([[MISSING if sign == "." else int(sign) for sign in row] for row in rows])


def test_alpha_of_a_published_table() -> None:
    """Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), example C: four observers, twelve units."""
    published = table("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
    assert alpha_of(published, 6) == pytest.approx(0.743, abs=0.0005)


def test_alpha_is_that_of_the_library_on_random_tables() -> None:
    random = np.random.default_rng(5)
    compared = 0
    for _ in range(400):
        raters, items, categories = random.integers(2, 7), random.integers(1, 60), random.integers(2, 12)
        labels = random.integers(-1, categories, (raters, items))
        if random.random() < 0.5:  # a common category, as responses have
            labels = np.where(random.random(labels.shape) < 0.7, np.minimum(labels, 0), labels)
        ours = alpha_of(labels, int(categories))
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
    assert compared > 300


def test_a_small_table_by_hand() -> None:
    # Ten labels of 0 and 1 on five items, of which one pair differs.
    found = agreement(table("00110", "00111"), 2)
    assert found.raw.value == pytest.approx(0.8)
    # Margins 5 and 5: chance differs in 2·5·5 of 10·9 ordered pairs.
    assert found.alpha.value == pytest.approx(1 - 0.2 / (50 / 90))
    assert found.ac1.value == pytest.approx((0.8 - 0.5) / 0.5)
    assert [one.agreement.value for one in found.categories] == [pytest.approx(0.8), pytest.approx(0.8)]
    assert found.confusion.tolist() == [[2, 1], [1, 2]]
    (pair,) = pairs(table("00110", "00111"), 2)
    assert pair.agreed == Share(4, 5)
    assert pair.kappa.value == pytest.approx((0.8 - 0.48) / 0.52)
    assert pair.confusion.tolist() == [[2, 1], [0, 2]]


def test_each_item_counts_once_however_many_raters_it_has() -> None:
    found = agreement(table("00", "01", "0.", "0."), 2)
    assert found.raw.value == pytest.approx(0.5)
    assert (found.raters, found.items, found.shared, found.labels, found.shared_labels) == (4, 2, 2, 6, 6)


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
    found = agreement(labels, 4)
    for figure in (found.raw, found.alpha, found.ac1, *(one.agreement for one in found.categories)):
        assert (figure.value, figure.interval, figure.why_not) == (None, None, why)
    assert pairs(labels, 4) == ()
    assert alpha_of(labels, 4) is None


def test_all_equal_labels_have_no_alpha_and_the_reason() -> None:
    found = agreement(table("1111111111", "1111111111"), 3)
    assert (found.alpha.value, found.alpha.why_not) == (None, ALL_EQUAL)
    assert found.raw.value == found.ac1.value == 1.0
    # Ten items of one kind do not prove that raters always agree: 1 - 0.05 ** (1 / 10) at the least.
    assert found.raw.interval is not None
    assert found.ac1.interval is not None
    assert 0.65 < found.raw.interval[0] < 0.75
    assert 0.65 < found.ac1.interval[0] < 0.75
    (pair,) = pairs(table("11", "11"), 3)
    assert (pair.kappa.value, pair.kappa.why_not) == (None, ALL_EQUAL)
    assert found.categories[0].agreement.why_not == NEVER_GIVEN


def test_much_raw_agreement_may_go_with_none_beyond_chance() -> None:
    """The reason for a second figure: 95 % agree, and alpha and kappa say that this is chance."""
    first = np.zeros(100, np.int64)
    second = first.copy()
    first[:2], second[-3:] = 1, 1
    found = agreement(np.stack([first, second]), CATEGORIES)
    (pair,) = pairs(np.stack([first, second]), CATEGORIES)
    assert found.raw.value == pytest.approx(0.95)
    assert found.alpha.value == pytest.approx(-0.02, abs=0.02)
    assert pair.kappa.value == pytest.approx(-0.025, abs=0.01)
    assert found.ac1.value == pytest.approx(0.95, abs=0.01)
    assert found.categories[1].agreement.value == 0.0


def test_one_item_on_which_all_differ_has_values_and_no_interval() -> None:
    found = agreement(table("0", "1"), 2)
    assert (found.raw.value, found.alpha.value) == (0.0, 0.0)
    assert found.alpha.interval is None
    assert found.alpha.why_not


def test_simulated_raters_have_the_agreement_that_they_must() -> None:
    """Four raters, 20,000 items: within 0.015 of what their confusion matrices imply (3 standard errors)."""
    matrices = [confusion_matrix(right) for right in (0.95, 0.9, 0.8, 0.7)]
    random = np.random.default_rng(3)
    labels = said(truths(20_000, random), matrices, random)
    raw, alpha = true_raw_and_alpha(matrices, prevalences())
    found = agreement(labels, CATEGORIES, resamples=500)
    assert found.raw.value == pytest.approx(raw, abs=0.015)
    assert found.alpha.value == pytest.approx(alpha, abs=0.015)
    for figure, truth in ((found.raw, raw), (found.alpha, alpha)):
        assert figure.interval is not None
        assert figure.interval[0] < truth < figure.interval[1]
        assert figure.interval[1] - figure.interval[0] < 0.02
    # What is said instead of a category is one of the three behind it.
    assert {(k - c) % CATEGORIES for c, k, _ in confusions(found.confusion)[:10]} <= {1, 2, 3, 8, 9, 10}


def test_the_same_table_gives_the_same_figures() -> None:
    random = np.random.default_rng(1)
    labels = random.integers(-1, 5, (3, 40))
    one, other = (agreement(labels, 5) for _ in range(2))
    assert (one.raw, one.alpha, one.ac1) == (other.raw, other.alpha, other.ac1)
    assert one.alpha != agreement(labels, 5, seed=2).alpha


def test_other_labels_are_refused() -> None:
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
    found = agreement(labels, 4, resamples=50)
    for figure in (found.raw, found.alpha, found.ac1):
        assert figure.value is None or (-1.0000001 <= figure.value <= 1.0000001 and np.isfinite(figure.value))
        assert (figure.value is None) <= bool(figure.why_not)
        if figure.interval is not None:
            assert -1.0000001 <= figure.interval[0] <= figure.interval[1] <= 1.0000001
    swapped = np.where(labels == MISSING, MISSING, np.array([2, 0, 3, 1])[labels])[::-1, ::-1]
    again = agreement(swapped, 4, resamples=50)
    for figure, same in ((found.raw, again.raw), (found.alpha, again.alpha), (found.ac1, again.ac1)):
        assert figure.value is same.value is None or figure.value == pytest.approx(same.value)
    assert (
        np.triu(found.confusion).sum()
        == np.triu(again.confusion).sum()
        == sum(one.agreed.total for one in pairs(labels, 4))
    )


def test_pooled_confusions_are_those_of_the_pairs() -> None:
    random = np.random.default_rng(9)
    labels = random.integers(-1, 4, (4, 60))
    pooled = np.zeros((4, 4), np.int64)
    for pair in pairs(labels, 4):
        for c, k in permutations(range(4), 2):
            pooled[c, k] += pair.confusion[c, k] + pair.confusion[k, c]
        for c in range(4):
            pooled[c, c] += pair.confusion[c, c]
    assert agreement(labels, 4, resamples=10).confusion.tolist() == pooled.tolist()
