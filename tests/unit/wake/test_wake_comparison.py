"""Devices on the same stimuli."""

import pytest

from harness.statistics.significance import Discordance
from harness.wake.wake import comparisons, discordance
from tests.unit.wake.wake_rows import WakeRows, wake_trial


def test_trials_are_paired_by_their_id_and_those_of_one_device_left_out() -> None:
    first = {"a": True, "b": True, "c": False, "d": False, "e": True}
    second = {"d": False, "c": True, "b": False, "a": True, "f": True}
    assert discordance(first, second) == Discordance(both=1, only_first=1, only_second=1, neither=1)


@pytest.mark.parametrize(("count", "pairs"), [(1, 0), (2, 1), (3, 3), (5, 4)])
def test_all_pairs_of_a_few_devices_and_each_with_the_first_of_many(count: int, pairs: int) -> None:
    names = [f"d{n}" for n in range(count)]
    rows = WakeRows()
    trials = [wake_trial(n, devices=names) for n in range(1, 5)]
    rows.plan(*trials)
    for trial in trials:
        rows.play(trial, [(name, 1.8) for n, name in enumerate(names) if n <= trial.number])
    found = comparisons(rows.figures)
    assert len(found) == pairs
    assert all(one.counts.total == 4 for one in found)
    if count == 5:
        assert found[-1].counts == Discordance(both=1, only_first=3, only_second=0, neither=0)
