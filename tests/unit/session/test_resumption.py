"""A log that ends anywhere is gone on with: every trial once, none lost, none twice."""

from __future__ import annotations

import pytest

from harness.devices.in_process.driver import InProcessOptions
from harness.model.record import AttemptFinished, AttemptStarted, EndReason, Entry, TrialFinished
from harness.model.trial import Outcome
from harness.session.resumption import Resumption
from harness.session.take import code
from tests.unit.session.house import House, assert_whole, house


@pytest.fixture(scope="module")
def played() -> House:
    with house(4, options=InProcessOptions(mishear_share=0.4), speed=60.0).running() as run:
        pass
    return run


@pytest.mark.parametrize("cut", [x / 12 for x in range(12)])
def test_a_log_cut_off_anywhere_is_completed(played: House, cut: float) -> None:
    rows = played.log.rows[: round(cut * (len(played.log.rows) - 1))]
    known = Resumption.of(rows)
    again = house(4, speed=60.0)
    again.log.rows.extend(rows)
    again.log.clips.update(played.log.clips)
    second = House(again.trials, again.log, again.clock)
    with second.running():
        pass
    assert second.reason is EndReason.COMPLETED
    assert_whole(again.log, again.trials)
    engine_ended = [row for row in again.log.of(AttemptFinished) if code(row.cause) == "engine_ended"]
    assert len(engine_ended) == len(known.cut_off())
    assert all(row.outcome is Outcome.INTERRUPTED for row in engine_ended)
    for take, verdict in known.finished.items():
        assert [row for row in again.log.of(TrialFinished) if (row.trial_id, row.take) == take] == [verdict]


def test_the_context_wait_is_respected_after_a_crash(played: House) -> None:
    at = next(n for n, entry in enumerate(played.log.rows) if isinstance(entry.record, AttemptStarted))
    again = house(4, speed=60.0)
    clock = again.clock
    again.log.rows.extend(Entry(e.seq, 1, e.at_s, clock.wall_s(), e.record) for e in played.log.rows[: at + 1])
    second = House(again.trials, again.log, clock)
    crashed_s = clock.now_s()
    with second.running():
        pass
    second_attempt = next(entry for entry in again.log.rows[at + 1 :] if isinstance(entry.record, AttemptStarted))
    assert second_attempt.record.attempt == 2
    assert second_attempt.at_s - crashed_s >= 4.5


def test_a_clock_that_was_set_back_keeps_the_whole_wait() -> None:
    standing = Resumption(last_sound_wall_s=1000.0)
    assert standing.quiet_for_s(1003.0) == 3.0
    assert standing.quiet_for_s(1003.0, speed=10.0) == 30.0
    assert standing.quiet_for_s(900.0) == 0.0
    assert Resumption().quiet_for_s(900.0) is None


def test_a_take_that_was_begun_goes_first_and_reruns_last() -> None:
    standing = Resumption(takes=[("a", 1), ("b", 1), ("a", 2)], begun={("b", 1)})
    assert standing.pending() == (("b", 1), ("a", 1), ("a", 2))
    assert standing.next_take("a") == 3
    assert standing.in_play("b")
