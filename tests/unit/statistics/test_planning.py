"""The planning numbers of the specification."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest, poisson

from harness.statistics.intervals import clopper_pearson
from harness.statistics.planning import (
    Discordant,
    design_effect,
    files_for_difference,
    hours_for_claim,
    hours_with_power,
    mcnemar_power,
    utterances_for_claim,
    utterances_for_events,
    utterances_with_power,
)
from tests.known import known


@pytest.mark.parametrize(("events", "hours"), [(0, 30.0), (1, 47.4), (2, 63.0)])
def test_hours_for_less_than_one_in_ten_hours(events: int, hours: float) -> None:
    assert hours_for_claim(0.1, events) == pytest.approx(hours, abs=0.05)


def test_utterances_for_less_than_five_per_cent_when_it_is_two() -> None:
    needed = utterances_for_claim(0.05, 0.02)
    assert needed == 173
    shown, before = known(clopper_pearson(3, 173)), known(clopper_pearson(3, 172))
    assert shown[1] < 0.05 <= before[1]


def test_claims_that_cannot_be_shown_are_refused() -> None:
    with pytest.raises(ValueError, match="below"):
        utterances_for_claim(0.02, 0.02)
    with pytest.raises(ValueError, match="below"):
        hours_for_claim(0.0)


def test_hours_with_power_are_those_of_the_claim() -> None:
    found = hours_with_power(0.1, 0.02, 0.8)
    assert (round(found.amount, 1), found.events) == (63.0, 2)
    assert found.power == pytest.approx(poisson.cdf(2, 0.02 * found.amount))
    assert found.power >= 0.8
    assert poisson.cdf(1, 0.02 * 47.44) < 0.8
    assert hours_with_power(0.1, 0).events == 0


def test_utterances_for_events_are_the_least() -> None:
    for events in (0, 1, 3, 17):
        least = utterances_for_events(0.05, events)
        shown, before = known(clopper_pearson(events, least)), known(clopper_pearson(events, least - 1))
        assert shown[1] < 0.05 <= before[1]
    assert utterances_for_events(0.05, 3) == 173  # 2 % of 173, rounded, is 3: the figure of a claim without power


def test_utterances_with_power_keep_it() -> None:
    found = utterances_with_power(0.05, 0.02, 0.9)
    assert found.power == pytest.approx(binom.cdf(found.events, int(found.amount), 0.02))
    assert found.power >= 0.9


def test_mcnemar_power_is_what_is_simulated() -> None:
    differing = Discordant(0.08, 0.03)
    random = np.random.default_rng(1)
    drawn = random.multinomial(200, [0.08, 0.03, 0.89], 1500)
    significant = [a + b > 0 and binomtest(int(a), int(a + b)).pvalue <= 0.05 for a, b, _ in drawn[:, :3]]
    assert mcnemar_power(200, differing) == pytest.approx(np.mean(significant), abs=0.04)
    assert mcnemar_power(4, differing) == 0  # too few to ever be significant
    assert mcnemar_power(100, Discordant(0, 0)) == 0


def test_files_for_difference_have_the_power() -> None:
    differing = Discordant.of(0.05, 0.03)
    files = files_for_difference(differing)
    assert mcnemar_power(files, differing) >= 0.8 > mcnemar_power(files - 40, differing)
    alike = files_for_difference(Discordant.of(0.05, 0.03, 0.02))
    assert alike < files / 2  # systems that err on the same files are told apart by fewer
    with pytest.raises(ValueError, match="never"):
        files_for_difference(Discordant(0.1, 0.1))
    with pytest.raises(ValueError, match="can differ"):
        Discordant.of(0.05, 0.03, 0.01)


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(ValueError, match="below"):
        hours_with_power(0.1, 0.1)
    with pytest.raises(ValueError, match="below"):
        utterances_with_power(0.05, 0.06)
    with pytest.raises(ValueError, match="more than"):
        hours_with_power(0.1, 0.0999)


def test_design_effect() -> None:
    assert design_effect(1, 0.5) == 1
    assert design_effect(20, 0.1) == pytest.approx(2.9)
    assert design_effect(20, 1) == 20
    with pytest.raises(ValueError, match="design"):
        design_effect(0, 0.1)
