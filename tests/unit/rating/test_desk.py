"""What each key of a rater does, and that nothing is lost."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.presence import REST_S
from harness.model.errors import LogFull
from harness.model.judgment import Category, Flag, JudgmentStatus, RatingRound, SubFlag, TranscriptPolicy, in_force
from harness.rating.aid import AidState, ResponseFacts
from harness.rating.desk import Desk
from harness.rating.rater_queue import QueueCounts
from harness.rating.view import SittingPhase, repetition_text
from tests.known import known
from tests.unit.rating.sittings import CANNOT_TELL, SEEN, WAITS, Bench, exercises, in_sight, item, items, seated

WRONG, CORRECT, PARTIAL = Category.WRONG, Category.CORRECT, Category.PARTIALLY_CORRECT


def test_a_label_is_on_the_disk_and_the_next_item_shows() -> None:
    bench, desk = seated(items(3))
    first = known(desk.view.item)
    bench.clock.now_s += 4
    desk.record_play(1500, began=True)
    desk.set_confidence(2)
    desk.set_comment("mumbled\r\ntwice")
    assert desk.judge(WRONG, sub_flags=[SubFlag.RECOVERABLE], aid_path=("cannot=no",))
    (row,) = bench.disk.rows
    assert (row.trial_id, row.session_id, row.item_id) == (first.subject.trial_id, "s1", first.id)
    assert (row.category, row.sub_flags, row.aid_path) == (WRONG, ("recoverable",), ("cannot=no",))
    assert (row.confidence, row.comment, row.plays, row.heard_ms) == (2, "mumbled\ntwice", 1, 1500)
    assert (row.round, row.position, row.rater, row.replaces) == ("open", 1, "ann", None)
    assert (row.time_to_answer_s, row.shown_wall_s) == (4.0, 1_700_000_100.0)
    view = desk.view
    assert view.item is not None
    assert view.item != first
    assert view.count == QueueCounts(total=3, done=1, left=2)
    assert view.draft.comment == ""


def test_each_item_is_shown_once_until_the_sitting_ends() -> None:
    bench, desk = seated(items(20))
    met = []
    while (item := desk.view.item) is not None:
        met.append(item.id)
        desk.judge(CORRECT)
    assert sorted(met) == sorted(item.id for item in bench.items)
    assert desk.view.phase is SittingPhase.FINISHED
    assert not desk.judge(CORRECT)
    assert not desk.skip()
    assert len(bench.disk.rows) == 20


def test_skipped_items_come_last_in_order_and_are_replaced_when_judged() -> None:
    bench, desk = seated(items(4))
    first = in_sight(desk)
    desk.skip()
    second = in_sight(desk)
    desk.skip()
    desk.judge(CORRECT)
    desk.judge(CORRECT)
    assert in_sight(desk) == first
    assert desk.view.own_row is not None
    desk.skip()
    assert in_sight(desk) == second, "who leaves one for the end twice sees the others in between"
    assert in_sight(bench.desk()) == second
    desk.judge(CORRECT)
    assert in_sight(desk) == first
    desk.judge(WRONG)
    assert desk.view.count == QueueCounts(total=4, done=4)
    assert len(in_force(bench.disk.rows)) == 4


def test_a_flag_puts_aside_and_counts_as_done() -> None:
    bench, desk = seated(items(2))
    desk.flag(Flag.PRIVACY)
    assert bench.disk.rows[0].flags == ("privacy",)
    assert desk.view.count == QueueCounts(total=2, done=1, left=1, flagged=1)


def test_item_with_unknown_effect_is_held_until_evidence_arrives() -> None:
    waiting = item(1, effect=WAITS)
    bench, desk = seated([waiting, item(2)])
    assert in_sight(desk) == "question 2"
    assert desk.view.count == QueueCounts(total=2, left=1, held=1)
    desk.judge(CORRECT)
    assert desk.view.phase is SittingPhase.FINISHED
    desk.refresh([replace(waiting, effect=SEEN), item(2)], bench.disk.rows)
    assert in_sight(desk) == "question 1"
    desk.judge(CORRECT)
    assert bench.disk.rows[-1].effect is SEEN.word


def test_a_hold_by_hand_ends_with_the_evidence() -> None:
    bench, desk = seated([item(1, effect=CANNOT_TELL), item(2)])
    while in_sight(desk) != "question 1":
        desk.skip()
    desk.hold()
    assert desk.view.count.held == 1
    assert bench.desk().view.count.held == 1, "the same evidence as before releases nothing"
    desk.refresh([item(1, effect=SEEN), item(2)], bench.disk.rows)
    assert desk.view.count.held == 0
    desk.judge(CORRECT)
    desk.judge(CORRECT)
    assert desk.view.count.done == 2


def test_item_with_known_effect_is_not_held() -> None:
    bench, desk = seated([item(1, effect=SEEN)])
    assert not desk.hold()
    assert in_sight(desk) == "question 1"
    assert "is known" in desk.view.message
    assert bench.disk.rows == []
    assert desk.judge(CORRECT)


def test_held_items_can_be_judged_all_the_same() -> None:
    bench, desk = seated([item(1, effect=WAITS), item(2)])
    desk.hold()
    assert desk.view.phase is SittingPhase.FINISHED
    assert desk.view.count.held == 2
    desk.release_held()
    assert desk.view.count == QueueCounts(total=2, left=2)
    desk.judge(CORRECT)
    desk.judge(CORRECT)
    assert desk.view.count.done == 2
    assert all(row.effect is None for row in bench.disk.rows)


def test_exercises_come_first_and_wrong_ones_are_repeated_once() -> None:
    bench, desk = seated(items(1), exercises=exercises(CORRECT, WRONG, PARTIAL))
    assert desk.view.phase is SittingPhase.TRAINING
    assert not repetition_text(desk.view)
    desk.judge(CORRECT)
    explained = known(desk.view.explanation)
    assert explained.right
    assert not desk.judge(WRONG), "the explanation is to be read first"
    desk.go_on()
    for _ in range(2):
        desk.judge(Category.FINDABLE)
        assert desk.view.explanation is not None
        assert not desk.view.explanation.right
        desk.go_on()
    assert in_sight(desk) == "ask 2", "too many were wrong"
    assert desk.view.exercises == (1, 3)
    assert repetition_text(desk.view)
    desk.judge(WRONG)
    desk.go_on()
    desk.judge(Category.FINDABLE)
    desk.go_on()
    assert desk.view.phase is SittingPhase.JUDGING, "nobody does one three times"
    assert {row.trial_id for row in bench.disk.rows} == {"exercise:e1", "exercise:e2", "exercise:e3"}
    assert bench.desk().view.phase is SittingPhase.JUDGING


def test_every_wrong_exercise_is_repeated_although_enough_are_right_by_then() -> None:
    _, desk = seated(items(1), exercises=exercises(*[CORRECT] * 5))
    for category in (WRONG, WRONG, WRONG, CORRECT, CORRECT):
        desk.judge(category)
        desk.go_on()
    repeats = []
    while desk.view.phase is SittingPhase.TRAINING:
        repeats.append(in_sight(desk))
        desk.judge(CORRECT)
        desk.go_on()
    assert repeats == ["ask 1", "ask 2", "ask 3"]


def test_enough_right_exercises_are_not_repeated() -> None:
    right_or = exercises(CORRECT, CORRECT, accept=(PARTIAL,))
    desk = Bench(items(1), RatingRound(pass_share=1.0), right_or).desk()
    for _ in range(2):
        desk.judge(PARTIAL)
        desk.go_on()
    assert desk.view.phase is SittingPhase.JUDGING


def test_undo_keeps_the_draft_of_the_item_that_it_leaves() -> None:
    _, desk = seated(items(3))
    desk.judge(CORRECT)
    second = in_sight(desk)
    desk.set_comment("two voices")
    desk.record_play(900, began=True)
    desk.undo()
    assert desk.view.draft.comment == ""
    desk.judge(WRONG)
    assert in_sight(desk) == second
    assert (desk.view.draft.comment, desk.view.draft.heard_ms) == ("two voices", 900)


def test_an_exercise_is_not_skipped_and_can_be_taken_back() -> None:
    bench, desk = seated(items(1), exercises=exercises(CORRECT, WRONG))
    for refused in (desk.skip, desk.hold, lambda: desk.flag(Flag.PRIVACY)):
        assert not refused()
        assert desk.view.message == "an exercise needs a category"
    desk.judge(WRONG)
    assert desk.undo()
    assert desk.view.explanation is None
    assert in_sight(desk) == "ask 1"
    assert not repetition_text(desk.view), "the answer was taken back"
    desk.judge(CORRECT)
    assert desk.view.explanation is not None
    assert desk.view.explanation.right
    assert len(bench.disk.rows) == 3


def test_pace_is_the_median_and_says_how_long_it_takes() -> None:
    bench, desk = seated(items(5))
    assert (desk.view.pace_s, desk.view.left_s) == (None, None)
    for seconds in (2.0, 4.0, 100.0):
        bench.clock.now_s += seconds
        desk.judge(CORRECT)
    assert (desk.view.pace_s, desk.view.left_s) == (4.0, 8.0)
    assert bench.desk().view.pace_s == 4.0


def test_a_break_is_due_after_long_work_and_over_after_a_rest() -> None:
    bench, desk = seated(items(500), RatingRound(break_after_min=10))
    for _ in range(20):
        bench.clock.now_s += 29
        desk.judge(CORRECT)
    assert not desk.view.break_due
    bench.clock.now_s += 29
    desk.judge(CORRECT)
    assert desk.view.break_due
    bench.clock.now_s += REST_S + 1
    desk.set_comment("back")
    assert not desk.view.break_due
    assert not bench.desk(break_after_min=0.0).view.break_due


def test_waiting_for_more_responses_is_not_work() -> None:
    bench, desk = seated(items(1), RatingRound(break_after_min=10))
    desk.judge(CORRECT)
    bench.clock.now_s += 660.0
    assert not desk.view.break_due


@pytest.mark.parametrize(
    ("policy", "at_once", "on_key"),
    [
        (TranscriptPolicy.SHOWN, True, True),
        (TranscriptPolicy.ON_REQUEST, False, True),
        (TranscriptPolicy.NEVER, False, False),
    ],
)
def test_the_transcript_is_shown_as_the_policy_says(policy: TranscriptPolicy, at_once: bool, on_key: bool) -> None:
    bench, desk = seated(items(3), RatingRound(transcript=policy))
    assert desk.view.draft.transcript_shown is at_once
    desk.judge(CORRECT)
    assert desk.show_transcript() is on_key
    desk.judge(CORRECT)
    assert [row.transcript_shown for row in bench.disk.rows] == [at_once, on_key]
    assert desk.view.draft.transcript_shown is at_once, "asked for anew with each item"
    desk.undo()
    assert bench.disk.rows[-1].transcript_shown is on_key, "as in the row that it takes back"


def test_sub_flags_go_with_their_category_and_exclude_each_other() -> None:
    bench, desk = seated(items(3))
    desk.toggle_sub_flag(SubFlag.TOO_MUCH)
    desk.toggle_sub_flag(SubFlag.TOO_LITTLE)
    assert desk.view.draft.sub_flags == (SubFlag.TOO_LITTLE,)
    desk.toggle_sub_flag(SubFlag.WORLD_KNOWLEDGE_GAP)
    desk.judge(PARTIAL, sub_flags=[SubFlag.TOO_MUCH])
    assert bench.disk.rows[-1].sub_flags == ("world_knowledge_gap", "too_much"), "the later of two that exclude"
    desk.toggle_sub_flag(SubFlag.RECOVERABLE)
    desk.judge(Category.CLARIFICATION)
    assert bench.disk.rows[-1].sub_flags == ()
    assert desk.view.message.endswith("without recoverable")
    desk.toggle_sub_flag(SubFlag.TOO_MUCH)
    desk.toggle_sub_flag(SubFlag.TOO_MUCH)
    assert desk.view.draft.sub_flags == ()


def test_a_confidence_can_be_withdrawn_alone() -> None:
    desk = Bench(items(1)).desk()
    desk.set_confidence(3)
    desk.set_confidence(3)
    assert desk.view.draft.confidence is None


def test_conclusion_of_the_aid_is_applied() -> None:
    bench, desk = seated(items(4))

    def led(*answers: str) -> bool:
        state = AidState.begin(ResponseFacts(truncated=None))
        for answer in answers:
            state = state.answer(answer)
        return desk.conclude(state)

    assert not led("yes"), "the way has not ended"
    assert led("no")
    assert bench.disk.rows[-1].flags == ("recognition_doubted",)
    assert bench.disk.rows[-1].aid_path == ("recognised=no",)
    state = AidState.begin(ResponseFacts(truncated=None))
    while state.question is not None:
        state = state.answer(state.question.answers[0].id)
    ending = known(state.ending)
    assert desk.conclude(state)
    assert (bench.disk.rows[-1].category, bench.disk.rows[-1].aid_path) == (ending.category, state.path)


def test_the_aid_may_note_too_little_and_too_much_at_once() -> None:
    bench, desk = seated(items(1))
    desk.toggle_sub_flag(SubFlag.TOO_MUCH)
    state = AidState.begin(ResponseFacts(truncated=None))
    for answer in ("yes", "yes", "no", "no", "clear", "part", "both"):
        state = state.answer(answer)
    assert desk.conclude(state)
    assert bench.disk.rows[-1].sub_flags == ("too_little", "too_much")
    desk.undo()
    desk.toggle_sub_flag(SubFlag.TOO_MUCH)
    assert desk.view.draft.sub_flags == (SubFlag.TOO_LITTLE,), "clearing one clears only that"


COUNT = 6
KEYS = st.one_of(
    st.sampled_from(list(Category)),
    st.sampled_from(list(Flag)),
    st.sampled_from(list(SubFlag)),
    st.sampled_from(
        ["undo", "undo", "skip", "hold", "go_on", "release", "comment", "full", "room", "evidence", "refresh", "leave"]
    ),
)


def press(desk: Desk, key: object, bench: Bench) -> Desk:
    """Does it; another desk when the rater leaves and comes back."""
    match key:
        case Category():
            desk.judge(key)
        case Flag():
            desk.flag(key)
        case SubFlag():
            desk.toggle_sub_flag(key)
        case "undo":
            desk.undo()
        case "skip":
            desk.skip()
        case "hold":
            desk.hold()
        case "go_on":
            desk.go_on()
        case "release":
            desk.release_held()
        case "comment":
            desk.set_comment("hm")
        case "full" | "room":
            bench.disk.full = key == "full"
        case "evidence":
            bench.items = [replace(item, effect=SEEN if item.effect else None) for item in bench.items]
            desk.refresh(bench.items, ())
        case "refresh":
            desk.refresh(bench.items, tuple(bench.disk.rows))
        case "leave":
            return bench.desk()
    return desk


@given(st.lists(KEYS, max_size=60), st.booleans())
def test_invariants_hold_for_any_key_sequence(keys: list[object], training: bool) -> None:
    every = [item(number, effect=WAITS if number % 3 == 0 else None) for number in range(1, COUNT + 1)]
    trained = exercises(Category.CORRECT, Category.WRONG) if training else ()
    bench, desk = seated(every, exercises=trained)
    for key in keys:
        rows = list(bench.disk.rows)
        before = desk.view
        refused = False
        try:
            desk = press(desk, key, bench)
        except LogFull:
            refused = True
        view = desk.view
        assert bench.disk.rows[: len(rows)] == rows, "rows are only added"
        assert len(bench.disk.rows) - len(rows) <= 1
        if refused:
            assert bench.disk.rows == rows
            assert (view.item, view.draft, view.explanation) == (before.item, before.draft, before.explanation)
        count = view.count
        assert count.total == COUNT
        assert count.done + count.left + count.held == count.total
        assert min(count.done, count.left, count.held, count.skipped, count.flagged) >= 0
        assert count.skipped <= count.left
        assert view.item is not None or (not count.left and view.explanation is None)
    standing = in_force(bench.disk.rows)
    subjects = [row.trial_id for row in standing]
    assert len(subjects) == len(set(subjects)), "one row in force on each item"
    submitted = [row for row in standing if not row.trial_id.startswith("exercise:")]
    done = [row for row in submitted if row.status in (JudgmentStatus.SUBMITTED, JudgmentStatus.FLAGGED)]
    assert desk.view.count.done == len(done)
    bench.disk.full = False
    reopened = bench.desk()
    with contextlib.suppress(LogFull):
        if desk.view.count.held != reopened.view.count.held:  # who released held items does so for one sitting
            reopened.release_held()
    assert reopened.view.count == desk.view.count
    assert reopened.view.exercises == desk.view.exercises
    assert reopened.view.can_undo == desk.view.can_undo
