"""Intervals and sequential tests over voices: against those of trials, and against voices drawn with a known mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.scenario import SequentialTest
from harness.statistics.intervals import Share, clopper_pearson
from harness.statistics.sequential import SequentialVerdict, share_sequence
from harness.statistics.voices import VoiceIntervals, over_clusters, over_voices, voices_verdict
from tests.known import known
from tests.unit.statistics.simulations import voices_covered, voices_verdicts

VOICES = st.lists(
    st.integers(1, 30).flatmap(lambda total: st.builds(Share, st.integers(0, total), st.just(total))),
    min_size=2,
    max_size=12,
)


def over(*missed: int, total: int) -> VoiceIntervals:
    return known(over_voices(Share(count, total) for count in missed))


@pytest.mark.parametrize(("missed", "voices"), [(30, 200), (0, 40), (40, 40), (1, 2)])
def test_voices_with_one_trial_each_equal_independent_trials(missed: int, voices: int) -> None:
    estimate = over(*[1] * missed, *[0] * (voices - missed), total=1)
    assert estimate.interval == pytest.approx(known(clopper_pearson(missed, voices)), abs=0.002)
    assert estimate.any_time == pytest.approx(known(share_sequence(missed, voices)), abs=0.02)


@settings(max_examples=60)
@given(VOICES)
def test_the_interval_over_voices_contains_the_share_and_mirrors(voices: list[Share]) -> None:
    estimate = known(over_voices(voices))
    mirrored = known(over_voices(Share(voice.total - voice.count, voice.total) for voice in voices))
    share = sum(voices, Share()).value
    assert (
        0
        <= estimate.any_time[0]
        <= estimate.interval[0]
        <= known(share)
        <= estimate.interval[1]
        <= estimate.any_time[1]
        <= 1
    )
    assert estimate.interval == pytest.approx((1 - mirrored.interval[1], 1 - mirrored.interval[0]), abs=1e-6)


def test_a_few_voices_without_misses_leave_a_wide_interval() -> None:
    """With 20 % missed and a correlation of 0.5, four voices of 36 trials each miss none in 3 % of all cases."""
    ends = [over(*[0] * voices, total=36).interval for voices in (2, 4, 8, 16, 40)]
    assert [low for low, _ in ends] == [0.0] * 5
    assert [high for _, high in ends] == pytest.approx([0.606, 0.335, 0.174, 0.088, 0.037], abs=0.003)


def test_similar_voices_give_nearly_the_interval_of_trials() -> None:
    low, high = over(*[20] * 200, total=1000).interval
    assert 0.0195 < low < 0.02 < high < 0.022


@pytest.mark.parametrize(("errors", "totals"), [([], []), ([3], [36]), ([0, 0], [0, 0]), ([2, 0], [9, 0])])
def test_a_single_voice_has_no_interval(errors: list[int], totals: list[int]) -> None:
    assert over_clusters(errors, totals) is None


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_intervals_of_four_voices_cover_the_mean_of_all(share: float) -> None:
    runs = 400
    below, above = voices_covered(np.random.default_rng(21), share, 0.5, voices=4, trials=36, runs=runs)
    assert 1 - (below + above) / runs >= 0.93


def test_a_bad_device_passes_with_eight_voices_no_more_often_than_declared() -> None:
    test, runs = SequentialTest(0.05, 0.2), 200
    verdicts = voices_verdicts(np.random.default_rng(22), test, test.bad, 0.3, voices=8, trials=40, runs=runs)
    assert verdicts[SequentialVerdict.PASSED] / runs <= 0.07
    assert verdicts[SequentialVerdict.FAILED] / runs >= 0.5


def test_a_test_stays_open_until_there_are_voices_enough() -> None:
    test = SequentialTest(0.02, 0.1)
    assert voices_verdict(test, ()) is SequentialVerdict.OPEN
    assert voices_verdict(test, [Share(0, 1000)] * 4) is SequentialVerdict.OPEN
    assert voices_verdict(test, [Share(0, 36)] * 24) is SequentialVerdict.PASSED
    assert voices_verdict(test, [Share(9, 36)] * 8) is SequentialVerdict.FAILED
    with pytest.raises(ValueError, match="0 < good < bad"):
        voices_verdict(SequentialTest(0.1, 0.02), [Share(0, 36)] * 8)
