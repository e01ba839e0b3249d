"""What a desk makes of rows: undo, restarts, rows and responses that come from elsewhere, a full disk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.errors import LogFull
from harness.model.judgment import Category, Flag, JudgmentStatus, RatingRound, SubFlag, in_force
from harness.rating.desk import Desk
from harness.rating.rater_queue import QueueCounts
from harness.rating.view import SittingPhase
from tests.unit.rating.sittings import Bench, exercises, in_sight, item, items, seated

WRONG, CORRECT, PARTIAL = Category.WRONG, Category.CORRECT, Category.PARTIALLY_CORRECT


def judged_in_turn(desk: Desk, times: int) -> list[str]:
    """Judges so many items; the query in sight before each."""
    met = []
    for _ in range(times):
        met.append(in_sight(desk))
        desk.judge(CORRECT)
    return met


def test_undo_can_be_repeated_across_restarts() -> None:
    bench, desk = seated(items(4))
    met = judged_in_turn(desk, 3)
    for expected in reversed(met):
        desk = bench.desk()
        assert desk.undo()
        assert in_sight(desk) == expected
    assert not desk.undo()
    assert desk.view.message == "nothing is left to undo"
    assert not desk.view.can_undo
    assert in_force(bench.disk.rows) == ()
    assert desk.view.count == QueueCounts(total=4, left=4)


def test_undo_follows_the_order_of_rows_after_a_clock_reset() -> None:
    bench, desk = seated(items(4))
    met = []
    for _ in range(4):
        met.append(in_sight(desk))
        desk.judge(CORRECT)
        bench.clock.now_s -= 3600.0
    desk.refresh(bench.items, bench.disk.rows)
    for expected in reversed(met[2:]):
        assert desk.undo()
        assert in_sight(desk) == expected
    desk = bench.desk()
    assert desk.undo()
    assert in_sight(desk) == met[1]


def test_undo_restores_comment_confidence_and_flags() -> None:
    desk = Bench(items(2)).desk()
    desk.set_comment("hm")
    desk.set_confidence(1)
    desk.toggle_sub_flag(SubFlag.TOO_MUCH)
    desk.set_effect_claimed(True)
    desk.show_transcript()
    desk.record_play(700, began=True)
    desk.judge(PARTIAL)
    desk.undo()
    draft = desk.view.draft
    assert (draft.comment, draft.confidence, draft.sub_flags) == ("hm", 1, (SubFlag.TOO_MUCH,))
    assert (draft.effect_claimed, draft.transcript_shown, draft.plays, draft.heard_ms) == (True, True, 1, 700)


def test_judgment_after_undo_replaces_no_valid_judgment() -> None:
    bench, desk = seated(items(1))
    desk.judge(CORRECT)
    desk.undo()
    desk.judge(WRONG)
    first, withdrawn, second = bench.disk.rows
    assert (withdrawn.status, withdrawn.replaces) == (JudgmentStatus.WITHDRAWN, first.id)
    assert [row.id for row in in_force(bench.disk.rows)] == [second.id]


def test_a_full_disk_leaves_the_item_in_sight_with_its_draft() -> None:
    bench, desk = seated(items(3), exercises=exercises(CORRECT))
    bench.disk.full = True
    with pytest.raises(LogFull):
        desk.judge(WRONG)
    assert desk.view.explanation is None, "what is not saved is not explained"
    bench.disk.full = False
    desk.judge(CORRECT)
    desk.go_on()
    desk.judge(CORRECT)
    visible = desk.view.item
    desk.set_comment("keep this")
    bench.disk.full = True
    for key in (lambda: desk.judge(WRONG), desk.skip, desk.hold, lambda: desk.flag(Flag.PRIVACY), desk.undo):
        with pytest.raises(LogFull):
            key()
        assert desk.view.item == visible
        assert desk.view.draft.comment == "keep this"
    bench.disk.full = False
    desk.judge(WRONG)
    assert bench.disk.rows[-1].comment == "keep this"
    assert desk.view.count.done == 2


def test_a_refresh_brings_new_items_and_keeps_what_is_in_sight() -> None:
    desk = Bench(items(5)).desk()
    desk.set_comment("in the middle of it")
    query = in_sight(desk)
    desk.refresh(items(30), ())
    assert (in_sight(desk), desk.view.draft.comment) == (query, "in the middle of it")
    assert desk.view.count.total == 30


def test_rows_that_a_refresh_has_not_seen_yet_stay() -> None:
    """A room that was read a moment before the last key must not bring its item back."""
    bench, desk = seated(items(3))
    stale = tuple(bench.disk.rows)
    desk.judge(CORRECT)
    desk.refresh(bench.items, stale)
    assert desk.view.count.done == 1
    assert desk.view.can_undo


def test_an_older_row_of_another_window_stays_before_the_own_one() -> None:
    bench = Bench(items(3))
    desk, other = bench.desk(), bench.desk()
    other.skip()
    desk.judge(CORRECT)
    desk.refresh(bench.items, bench.disk.rows)
    assert (desk.view.count.done, desk.view.count.skipped) == (1, 0)
    assert desk.undo()
    assert bench.disk.rows[-1].replaces == bench.disk.rows[1].id


def test_judgment_given_elsewhere_counts_and_removes_the_visible_item() -> None:
    bench = Bench(items(3))
    desk, other = bench.desk(), bench.desk()
    other.judge(WRONG)
    desk.set_comment("too late")
    desk.refresh(bench.items, bench.disk.rows)
    assert desk.view.count.done == 1
    assert in_sight(desk) == in_sight(other)
    assert desk.view.draft.comment == ""
    assert desk.undo()
    assert bench.disk.rows[-1].replaces == bench.disk.rows[0].id


def test_undo_skips_an_item_withdrawn_elsewhere() -> None:
    bench, desk = seated(items(3))
    first = desk.view.item
    desk.judge(CORRECT)
    second = desk.view.item
    desk.judge(CORRECT)
    third = desk.view.item
    assert first is not None
    desk.refresh([item for item in bench.items if item not in (second, third)], bench.disk.rows)
    assert desk.view.phase is SittingPhase.FINISHED
    assert desk.undo()
    assert desk.view.item == first


def test_an_adjudicator_settles_what_they_have_judged_themselves() -> None:
    bench, desk = seated(items(2))
    desk.judge(CORRECT)
    desk.judge(CORRECT)
    disputed = [replace(item, inputs=tuple(bench.disk.rows)) for item in bench.items]
    settling = Bench(disputed, RatingRound(id="open.adjudication"), disk=bench.disk).desk()
    assert settling.view.count == QueueCounts(total=2, left=2)
    settling.judge(WRONG)
    assert bench.disk.rows[-1].adjudicates == tuple(row.id for row in bench.disk.rows[:2])
    assert bench.disk.rows[-1].replaces is None
    assert settling.view.count.done == 1
    assert bench.desk().view.count.done == 2
    assert settling.undo()
    assert not settling.undo(), "the judgments are of another round"


def test_any_earlier_item_can_be_reopened_and_replaced() -> None:
    bench, desk = seated(items(5))
    met = []
    for category in (CORRECT, WRONG, CORRECT):
        met.append(in_sight(desk))
        desk.set_comment(f"as {category}")
        desk.judge(category)
    waiting = in_sight(desk)
    desk.set_comment("half written")
    assert [entry.item.query for entry in desk.reopenable_items()] == met[::-1]
    assert [entry.item.query for entry in desk.reopenable_items(f"WRONG {met[1]}")] == [met[1]]
    assert desk.open(desk.reopenable_items()[-1].item.id)
    view = desk.view
    assert (in_sight(desk), view.is_reopened, view.draft.comment) == (met[0], True, "as correct")
    assert view.own_row is not None
    assert view.own_row.category is CORRECT
    assert desk.judge(PARTIAL)
    first, row = bench.disk.rows[0], bench.disk.rows[-1]
    assert (row.replaces, row.category, row.comment) == (first.id, PARTIAL, "as correct")
    assert [judgment.category for judgment in in_force(bench.disk.rows)] == [WRONG, CORRECT, PARTIAL]
    assert (in_sight(desk), desk.view.is_reopened, desk.view.draft.comment) == (waiting, False, "half written")
    assert desk.view.count.done == 3
    reopened = bench.desk()
    assert (in_sight(reopened), reopened.reopenable_items()[0].item.query) == (waiting, met[0])


def test_a_query_with_decomposed_letters_is_found_by_composed_ones() -> None:
    _, desk = seated([replace(item(1), query="wie spa\u0308t ist es")])
    desk.judge(CORRECT)
    assert len(desk.reopenable_items("sp\u00e4t")) == 1


def test_earlier_and_later_step_through_given_judgments() -> None:
    bench, desk = seated(items(4))
    met = []
    for _ in range(3):
        met.append(in_sight(desk))
        desk.judge(CORRECT)
    waiting = in_sight(desk)
    assert not desk.later()
    for expected in met[::-1]:
        assert desk.earlier()
        assert in_sight(desk) == expected
    assert not desk.earlier()
    for expected in (*met[1:], waiting):
        assert desk.later()
        assert in_sight(desk) == expected
    assert len(bench.disk.rows) == 3


def test_skipping_a_reopened_item_leaves_it_unchanged() -> None:
    bench, desk = seated(items(3))
    desk.judge(CORRECT)
    desk.earlier()
    assert desk.skip()
    assert (len(bench.disk.rows), desk.view.is_reopened, desk.view.message) == (1, False, "left unchanged")
    assert not desk.leave()
    assert not desk.open("nothing of theirs")


def test_reopened_item_stays_visible_after_a_refresh() -> None:
    bench, desk = seated(items(3))
    first = in_sight(desk)
    desk.judge(CORRECT)
    desk.earlier()
    desk.refresh(bench.items, bench.disk.rows)
    assert (in_sight(desk), desk.view.is_reopened) == (first, True)
    bench.desk().undo()
    desk.refresh(bench.items, bench.disk.rows)
    assert (in_sight(desk), desk.view.is_reopened) == (first, False)


def test_finished_sitting_can_reopen_items() -> None:
    desk = Bench(items(1)).desk()
    only = in_sight(desk)
    desk.judge(CORRECT)
    assert desk.view.phase is SittingPhase.FINISHED
    assert desk.earlier()
    assert (in_sight(desk), desk.view.phase) == (only, SittingPhase.JUDGING)
    desk.judge(WRONG)
    assert desk.view.phase is SittingPhase.FINISHED


def test_an_adjudicator_opens_what_raters_agree_on_and_settles_it_otherwise() -> None:
    bench, desk = seated(items(3))
    for _ in range(3):
        desk.judge(CORRECT)
    inputs = {row.item_id: (row,) for row in bench.disk.rows}
    judged = [replace(item, inputs=inputs[item.id], agreed=number > 0) for number, item in enumerate(bench.items)]
    settling = Bench(judged, RatingRound(id="open.adjudication"), disk=bench.disk).desk("zoe")
    disputed = in_sight(settling)
    assert settling.view.count == QueueCounts(total=1, left=1)
    assert settling.view.can_go_back
    assert len(settling.reopenable_items()) == 2
    (entry,) = settling.reopenable_items("question 3")
    assert entry.row is None
    assert settling.open(entry.item.id)
    settling.judge(WRONG)
    row = bench.disk.rows[-1]
    assert (row.category, row.adjudicates) == (WRONG, (inputs[entry.item.id][0].id,))
    assert (in_sight(settling), settling.view.count) == (disputed, QueueCounts(total=2, done=1, left=1))
    adjudicator = Bench(judged, RatingRound(id="open.adjudication"), disk=bench.disk).desk("zoe")
    assert adjudicator.view.count.done == 1
    assert adjudicator.undo()
    assert in_sight(adjudicator) == "question 3"
    adjudicator.leave()
    assert adjudicator.view.count == QueueCounts(total=1, left=1)
