"""A session that several processes ran one after another: each counts the sound that it injects from 0."""

from harness.model.record import EngineStarted
from harness.model.scenario import TrialKind
from harness.model.trial import Outcome
from harness.statistics.intervals import Share
from tests.unit.wake.wake_rows import WakeRows, wake_trial


def resumed(rows: WakeRows) -> None:
    rows.add(EngineStarted(2, 4242, "boot", 1.0))
    rows.audio_s = 0.0


def test_an_event_of_this_run_is_not_taken_for_one_of_the_run_before() -> None:
    one, two = wake_trial(1), wake_trial(2)
    rows = WakeRows()
    rows.plan(one, two)
    rows.play(one)
    resumed(rows)
    rows.play(two, [("kitchen", 1.8)])
    assert rows.figures.hits("kitchen") == {one.id: False, two.id: True}


def test_an_event_of_this_run_is_not_part_of_one_of_the_run_before() -> None:
    one, two = (wake_trial(number, TrialKind.AMBIENT) for number in (1, 2))
    rows = WakeRows()
    rows.plan(one, two)
    rows.play(one, [("kitchen", 0.1)])
    resumed(rows)
    rows.play(two, [("kitchen", 0.5)])
    assert rows.device().false_accepts.count == 2
    assert rows.device().suppressed == 0


def test_what_was_acknowledged_in_a_run_proves_nothing_of_the_next() -> None:
    one, two, three = (wake_trial(number, TrialKind.AMBIENT) for number in (1, 2, 3))
    rows = WakeRows()
    rows.plan(one, two, three)
    rows.play(one)
    rows.play(two)
    resumed(rows)
    rows.play(three, proof=False)
    assert (rows.device().exposure_s, rows.device().unproven_s) == (120.0, 60.0)


def test_a_command_has_no_delay_since_nobody_knows_where_its_phrase_ends() -> None:
    call, ask = wake_trial(1), wake_trial(2, TrialKind.COMMAND)
    rows = WakeRows()
    rows.plan(call, ask)
    rows.play(call, [("kitchen", 1.8)])
    rows.play(ask, [("kitchen", 1.3)])
    assert rows.device().delays.total == 1
    assert rows.device().false_rejects.share == Share(0, 1)


def test_what_a_cut_off_phrase_woke_counts_nowhere() -> None:
    call = wake_trial(1)
    rows = WakeRows()
    rows.plan(call)
    rows.play(call, [("kitchen", 0.2)], outcome=Outcome.INTERRUPTED, finish=False)
    resumed(rows)
    rows.play(call, [("kitchen", 1.8)], attempt=2)
    assert (rows.device().hits, rows.device().in_vocabulary_events) == (1, 0)
