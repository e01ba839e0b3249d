"""From the rows of a memory probe to what devices remember."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.observation import ResponseText
from harness.model.record import Observed, TrialFinished
from harness.model.time import Stamp
from harness.model.trial import Outcome, Recognition
from harness.session.figures.memory import MemoryFigures, MemoryPoint, Teller, findings, unreached
from harness.session.figures.progress import SessionFigures
from harness.statistics.intervals import Share
from tests.unit.session.figures.memory_rows import NO, YES, Told, ask, clear_cut, pair_of, session

WAITS = (2.0, 4.0, 8.0, 16.0)


def points(*told: Told) -> tuple[MemoryPoint, ...]:
    return MemoryFigures.of(session(*told).entries).points()


def point(told: Told) -> MemoryPoint:
    (only,) = points(told)
    return only


def test_a_point_says_what_was_waited_and_by_whose_word_it_is_known() -> None:
    found = point(Told(4.0, text=YES, heard="nothing of the kind", waited_s=4.3))
    assert (found.planned_s, found.waited_s, found.shown) == (4.0, 4.3, True)
    assert (found.answer, found.teller) == (YES, Teller.DEVICE)
    assert found.woke_s == pytest.approx(4.3 + 0.75)
    ours = point(Told(4.0, heard="fifty-six plus five is sixty-one", wakes=False))
    assert (ours.shown, ours.teller, ours.woke_s) == (True, Teller.TRANSCRIPTION, None)


@pytest.mark.parametrize(
    ("told", "shown", "why"),
    [
        (Told(4.0, text=NO), False, ""),
        (Told(4.0, text="It is 56 plus 5."), None, "neither"),
        (Told(4.0, text="It is 56 plus 5.", forgets=()), False, ""),
        (Told(4.0, text="Sorry? 61."), None, "both"),
        (Told(4.0), None, "no_text"),
        (Told(4.0, text="60, and 1 more"), None, "neither"),
        (Told(4.0, text=NO, outcome=Outcome.MISHEARD, recognition=Recognition.NO), None, "misheard"),
        (Told(4.0, outcome=Outcome.NO_WAKE, recognition=Recognition.UNKNOWN, cause="no_wake_event"), None, "no_wake"),
        (Told(4.0, text=NO, outcome=Outcome.INCONCLUSIVE, recognition=Recognition.UNKNOWN), None, "inconclusive"),
        # Nobody says the right sum by chance: the device has understood, whoever could not confirm it.
        (Told(4.0, text=YES, outcome=Outcome.INCONCLUSIVE, recognition=Recognition.UNKNOWN), True, ""),
        (Told(4.0, text=NO, recognition=Recognition.NOT_ASSESSED), False, ""),
        (Told(4.0, text=YES, outcome=Outcome.INTERRUPTED, cause="link_lost: near"), None, "link_lost"),
    ],
)
def test_what_counts_as_memory(told: Told, shown: bool | None, why: str) -> None:
    found = point(told)
    assert found.shown is shown
    assert found.why.partition(":")[0] == why


def test_a_follow_up_that_was_not_primed_does_not_count() -> None:
    told = Told(4.0, text=YES)
    rows = session(told)
    _, follow_up = pair_of(1, told)
    rows.add(
        TrialFinished(follow_up.id, 2, Outcome.SKIPPED, 0, None, "not_primed: memory.w4.r1.prime ended as no_wake")
    )
    (found,) = MemoryFigures.of(rows.entries).points()
    assert (found.shown, found.waited_s) == (None, None)
    assert findings([found])[0].left_out == (("not_primed", 1),)


def test_the_latest_take_counts() -> None:
    told = Told(4.0, text=YES)
    rows = session(told)
    ask(rows, pair_of(1, told)[1], Told(4.0, text=NO, waited_s=5.0), take=2)
    (found,) = MemoryFigures.of(rows.entries).points()
    assert (found.shown, found.waited_s) == (False, 5.0)


def test_rows_may_come_twice_and_a_session_may_be_going_on() -> None:
    rows = session(*clear_cut(5.0, WAITS))
    figures = MemoryFigures()
    for entry in (*rows.entries[:30], *rows.entries[:30]):
        figures.add(entry)
    assert figures.planned == 12
    assert 0 < len(figures.points()) < 12
    for entry in rows.entries:
        figures.add(entry)
    assert figures.points() == MemoryFigures.of(rows.entries).points()


def test_a_device_that_remembers_five_seconds() -> None:
    (found,) = findings(points(*clear_cut(5.0, WAITS)))
    assert found.counted == 12
    assert [(level.wait_s, level.shown.count) for level in found.levels] == [(2.0, 3), (4.0, 3), (8.0, 0), (16.0, 0)]
    assert found.length is not None
    assert found.length.interval == (4.0, 8.0)
    assert found.to_wake is not None
    assert found.to_wake.interval == pytest.approx((4.8, 8.8))
    assert found.forgotten is not None
    assert (found.forgotten.wait_s, found.forgotten.left, found.why) == (8.0, Share(0, 6), "")


@pytest.mark.parametrize(
    ("length_s", "why"),
    [
        (0.0, "no memory seen, even after 2 s"),
        (99.0, "it remembers for longer than 16 s, the longest wait"),
    ],
)
def test_there_is_no_wait_to_recommend_and_why(length_s: float, why: str) -> None:
    (found,) = findings(points(*clear_cut(length_s, WAITS)))
    assert found.forgotten is None
    assert found.why == why


def test_few_pairs_and_none_that_count_recommend_nothing() -> None:
    (few,) = findings(points(*clear_cut(5.0, WAITS, repeat=1)))
    assert few.why == "it may remember for longer than 16 s: more pairs or longer waits are needed"
    (none,) = findings(points(Told(4.0)))
    assert (none.length, none.levels, none.why) == (None, (), "no pair tells anything")
    assert findings(()) == ()


def test_devices_and_conditions_are_told_apart() -> None:
    far = [replace(one, conditions=(("position", "far"),)) for one in clear_cut(3.0, WAITS)]
    near = [replace(one, conditions=(("position", "near"),)) for one in clear_cut(5.0, WAITS)]
    other = clear_cut(9.0, WAITS, device="den")
    found = points(*far, *near, *other)
    assert [one.device for one in findings(found)] == ["kitchen", "den"]
    by = {(one.device, one.group): one.forgotten.wait_s for one in findings(found, "position") if one.forgotten}
    assert by == {("kitchen", "far"): 4.0, ("kitchen", "near"): 8.0, ("den", ""): 16.0}


def test_a_device_without_wake_events_has_no_length_to_them() -> None:
    told = clear_cut(5.0, WAITS)
    (found,) = findings(points(*told[:-1], replace(told[-1], wakes=False)))
    assert found.to_wake is None
    assert found.length is not None


def test_waits_that_were_not_reached_are_told() -> None:
    found = points(Told(0.5, YES, waited_s=1.2), Told(0.5, YES, waited_s=1.0), Told(4.0, YES, waited_s=4.1))
    assert unreached(found) == {0.5: pytest.approx(1.1)}


def test_probes_are_no_responses_to_judge_and_no_queries_in_the_totals() -> None:
    rows = session(*clear_cut(5.0, WAITS))
    figures = SessionFigures()
    for entry in rows.entries:
        figures.add(entry)
    progress = figures.snapshot()
    assert all(one.response is None and one.answer is not None for one in progress.trials)
    totals = progress.totals
    assert (totals.planned, totals.finished, totals.count(Outcome.RESPONDED)) == (24, 24, 24)
    assert (totals.to_judge, totals.recognised.total, totals.answered.total, totals.latency.total) == (0, 0, 0, 0)


def test_words_of_the_prime_are_none_of_the_follow_up() -> None:
    told = Told(4.0, text=NO)
    rows = session(told)
    prime, _ = pair_of(1, told)
    rows.add(Observed(ResponseText("link", Stamp(1.0), YES), prime.id, 1, 1))
    begun = next(n for n, one in enumerate(rows.entries) if getattr(one.record, "waited_s", None) == 4.01)
    late = Observed(ResponseText("link", Stamp(rows.entries[begun].at_s + 0.2), YES), "memory.w4.r1", 1, 1)
    rows.entries.insert(begun + 1, replace(rows.entries[begun], record=late))
    rows.entries[:] = [replace(one, seq=seq) for seq, one in enumerate(rows.entries, 1)]
    (found,) = MemoryFigures.of(rows.entries).points()
    assert (found.shown, found.answer) == (False, NO)
