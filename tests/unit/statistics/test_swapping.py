"""Permutation tests of paired systems, against every way of swapping written out."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.statistics import significance as swapping
from harness.statistics.significance import mcnemar, swapped, swapped_together

DIFFERENCES = st.lists(st.fractions(-2, 2, max_denominator=6), min_size=1, max_size=9)


@given(DIFFERENCES)
def test_it_counts_every_way_of_swapping(differences: list[Fraction]) -> None:
    found = swapped(differences)
    apart = [one for one in differences if one]
    if not apart:
        assert found is None
        return
    sums = [
        abs(sum(sign * one for sign, one in zip(signs, apart, strict=True)))
        for signs in product((1, -1), repeat=len(apart))
    ]
    assert found is not None
    assert found.exact
    assert found.clusters == len(apart)
    assert found.p == pytest.approx(sum(one >= abs(sum(apart)) for one in sums) / len(sums))


@pytest.mark.parametrize(("first", "second"), [(9, 3), (1, 0), (5, 5), (40, 12), (300, 240)])
def test_single_responses_are_mcnemars_exact_test(first: int, second: int) -> None:
    found = swapped([1] * first + [-1] * second + [0] * 20)
    assert found is not None
    assert found.p == pytest.approx(mcnemar(first, second))


def test_what_is_too_much_to_count_is_drawn_and_near(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = [Fraction(one, 7) for one in (3, -1, 5, 2, -4, 6, 1, 1, -2, 3, 5, -1)]
    exact = swapped(differences)
    monkeypatch.setattr(swapping, "MOST_STEPS", 0)
    drawn = swapped(differences)
    assert exact is not None
    assert drawn is not None
    assert (exact.exact, drawn.exact) == (True, False)
    assert drawn.p == pytest.approx(exact.p, abs=0.015)
    assert drawn == swapped(differences)


def test_several_figures_at_once_by_hand() -> None:
    # Two clusters: as they are and both swapped, the sums are (2, −2); with one swapped (0, 0). So p = 2/4.
    assert swapped_together(np.array([[1, -1, 0], [1, -1, 0], [0, 0, 0]])) == swapping.Swapping(0.5, True, 2)
    assert swapped_together(np.zeros((4, 11))) is None
    assert swapped_together(np.zeros((0, 11))) is None


def test_one_figure_at_once_is_the_single_test() -> None:
    differences = [2, -1, 1, 1, 3, 1, -1, 1]
    alone, together = swapped(differences), swapped_together(np.array(differences)[:, None])
    assert alone is not None
    assert together is not None
    assert together.p == pytest.approx(alone.p)


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_drawn_figures_are_near_the_exact_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    held = rng.integers(-1, 2, (12, 3))
    exact = swapped_together(held)
    most = swapping.MOST_ENUMERATED
    swapping.MOST_ENUMERATED = 0
    try:
        drawn = swapped_together(held)
    finally:
        swapping.MOST_ENUMERATED = most
    assert (exact is None) == (drawn is None)
    if exact is not None and drawn is not None:
        assert drawn.p == pytest.approx(exact.p, abs=0.02)
