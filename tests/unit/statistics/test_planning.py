"""The planning numbers of the specification."""

import pytest

from harness.statistics.intervals import clopper_pearson
from harness.statistics.planning import hours_for_claim, utterances_for_claim


@pytest.mark.parametrize(("events", "hours"), [(0, 30.0), (1, 47.4), (2, 63.0)])
def test_hours_for_less_than_one_in_ten_hours(events: int, hours: float) -> None:
    assert hours_for_claim(0.1, events) == pytest.approx(hours, abs=0.05)


def test_utterances_for_less_than_five_per_cent_when_it_is_two() -> None:
    needed = utterances_for_claim(0.05, 0.02)
    assert needed == 173
    shown, before = clopper_pearson(3, 173), clopper_pearson(3, 172)
    assert shown is not None
    assert before is not None
    assert shown[1] < 0.05 <= before[1]


def test_claims_that_cannot_be_shown_are_refused() -> None:
    with pytest.raises(ValueError, match="below"):
        utterances_for_claim(0.02, 0.02)
    with pytest.raises(ValueError, match="below"):
        hours_for_claim(0.0)
