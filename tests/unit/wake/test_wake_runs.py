"""A session that several processes ran one after another: each counts the sound that it injects from 0."""

from __future__ import annotations

from itertools import product

import pytest

from harness.model.record import EngineStarted, ReviewWord
from harness.model.scenario import TrialKind
from harness.model.time import Stamp
from harness.model.trial import Outcome
from harness.statistics.intervals import Share
from harness.statistics.significance import Discordance
from harness.wake.wake import comparisons, discordance
from harness.wake.wake_device import UnmatchedEvents
from harness.wake.wake_progress import UnmatchedWake
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial


def resumed(rows: WakeRows) -> None:
    rows.add(EngineStarted(2, 4242, "boot", 1.0))
    rows.audio_s = 0.0


def test_an_event_of_this_run_is_not_taken_for_one_of_the_run_before() -> None:
    one, two = wake_trial(1), wake_trial(2)
    rows = rows_of(one, two)
    rows.play(one)
    resumed(rows)
    rows.play(two, [("kitchen", 1.8)])
    assert rows.figures.hits("kitchen") == {one.id: False, two.id: True}


def test_an_event_of_this_run_is_not_part_of_one_of_the_run_before() -> None:
    one, two = (wake_trial(number, TrialKind.AMBIENT) for number in (1, 2))
    rows = rows_of(one, two)
    rows.play(one, [("kitchen", 0.1)])
    resumed(rows)
    rows.play(two, [("kitchen", 0.5)])
    assert rows.device().false_accepts.count == 2
    assert rows.device().suppressed == 0


def test_what_was_acknowledged_in_a_run_proves_nothing_of_the_next() -> None:
    one, two, three = (wake_trial(number, TrialKind.AMBIENT) for number in (1, 2, 3))
    rows = rows_of(one, two, three)
    rows.play(one)
    rows.play(two)
    resumed(rows)
    rows.play(three, proof=False)
    assert (rows.device().exposure_s, rows.device().unproven_s) == (120.0, 60.0)


def test_a_command_has_no_delay_since_nobody_knows_where_its_phrase_ends() -> None:
    call, ask = wake_trial(1), wake_trial(2, TrialKind.COMMAND)
    rows = rows_of(call, ask)
    rows.play(call, [("kitchen", 1.8)])
    rows.play(ask, [("kitchen", 1.3)])
    assert rows.device().delays.total == 1
    assert rows.device().false_rejects.share == Share(0, 1)


def test_what_a_cut_off_phrase_woke_counts_nowhere() -> None:
    call = wake_trial(1)
    rows = rows_of(call)
    rows.play(call, [("kitchen", 0.2)], outcome=Outcome.INTERRUPTED, finish=False)
    resumed(rows)
    rows.play(call, [("kitchen", 1.8)], attempt=2)
    assert (rows.device().hits, rows.device().in_vocabulary_events) == (1, 0)


def test_the_groups_add_up_to_all_events() -> None:
    events = UnmatchedEvents()
    cases = list(product((False, True), (False, True), (None, ReviewWord.SELF_WAKE), (False, True)))
    for seq, (in_vocabulary, exposed, rule, pending) in enumerate(cases):
        at = Stamp(float(seq))
        events.put(
            UnmatchedWake(seq, "d", at, 0.0, "a", None, None, in_vocabulary=in_vocabulary, exposed=exposed, rule=rule),
            pending,
        )
    found = events.counts("d")
    by_rule = 1  # exposed, in ambient sound, and its own voice
    groups = (found.before, by_rule, found.in_vocabulary, found.outside, found.uncounted, found.pending)
    assert groups == (1, 1, 2, 2, 2, 8)
    assert sum(found.words.values()) == sum(groups)
    for seq in range(len(cases)):
        events.drop(seq)
    assert (found.uncounted, found.pending, found.outside, found.in_vocabulary) == (0, 0, 0, 0)


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
