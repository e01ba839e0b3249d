"""A room of sessions on a disk: items, evidence, judgments by several raters, sounds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.model.effect import EffectSource, EffectWord
from harness.model.errors import InputError, LogError
from harness.model.judgment import Category, GoldItem, ItemFilter, RatingRound
from harness.model.record import EffectAnswered, JudgmentGiven
from harness.rating.desk import Desk
from harness.rating.exercises import BUILT_IN_EXERCISES
from harness.rating.judgment_log import JudgmentLog
from harness.rating.rating_room import RatingRoom, open_room
from harness.session.log.reader import check, rating_rows
from tests.rating_sessions import TALKS, rating_sessions

SESSIONS = [14, 24]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rooms")
    rating_sessions(root, *SESSIONS, effects=True)
    return root


@pytest.fixture
def folders(stored: Path, tmp_path: Path) -> list[Path]:
    return [Path(shutil.copytree(one, tmp_path / one.name)) for one in sorted(stored.iterdir())]


@pytest.fixture
def room(folders: list[Path]) -> Iterator[RatingRoom]:
    made = open_room(folders)
    yield made
    made.close()


def all_judged(desk: Desk, category: Category) -> None:
    while desk.view.item is not None:
        assert desk.judge(category)


def test_items_come_from_all_sessions_and_tell_what_is_needed(room: RatingRoom) -> None:
    assert len(room.items) == sum(SESSIONS)
    assert len({one.id for one in room.items}) == sum(SESSIONS)
    third = next(one for one in room.items if one.hidden.trial_id == "weather-kitchen-3")
    assert (third.attempts, third.waits_s, third.subject.attempt) == (2, (5.0,), 2)
    assert (third.query, third.transcript) == (TALKS[2].query, TALKS[2].answer)
    assert third.length is not None
    assert third.clip is not None
    assert third.subject.span_s is not None
    assert third.subject.span_s[1] - third.subject.span_s[0] == pytest.approx(third.length.value_s)


def test_nothing_that_is_shown_names_the_device(room: RatingRoom) -> None:
    for one in room.items:
        shown = replace(one, hidden=type(one.hidden)(), subject=type(one.subject)("", 1, ""))
        assert "kitchen" not in repr(shown)
        assert "den" not in one.id


def test_effects_are_known_or_hold_their_items(room: RatingRoom) -> None:
    words = {one.hidden.query_id: one.effect for one in room.items if one.effect is not None}
    assert {name: (found.word, found.source) for name, found in words.items()} == {
        "timer": (EffectWord.UNKNOWN, EffectSource.NONE),
        "pause": (EffectWord.RIGHT, EffectSource.OPERATOR),
        "lamp": (EffectWord.WRONG, EffectSource.OPERATOR),
        "list": (EffectWord.RIGHT, EffectSource.OPERATOR),
    }
    desk = room.desk("ann")
    held = desk.view.count.held
    assert held == sum(one.waits_for_effect for one in room.items) > 0
    waiting = next(one for one in room.items if one.waits_for_effect)
    subject = waiting.subject
    room.answer_effect(
        waiting, EffectAnswered(subject.trial_id, subject.take, subject.attempt, EffectWord.RIGHT, "ann")
    )
    room.refresh()
    desk.refresh(room.items, room.rows)
    assert desk.view.count.held == held - 1


def test_judgments_of_several_raters_stay_apart_and_on_the_disk(folders: list[Path], room: RatingRoom) -> None:
    all_judged(room.desk("ann"), Category.CORRECT)
    desk = room.desk("ben")
    assert desk.view.count.done == 0
    desk.judge(Category.WRONG)
    ids = {row.id for row in room.rows}
    stored = [
        one.record.judgment for each in folders for one in rating_rows(each) if isinstance(one.record, JudgmentGiven)
    ]
    assert {row.id for row in stored} == ids
    again = open_room(folders)
    assert again.desk("ann").view.count == room.desk("ann").view.count
    assert again.desk("ben").view.count.done == 1
    again.close()
    assert all(not check(one).damage for one in folders)


def test_a_desk_that_is_seated_without_reading_again_knows_the_last_row(room: RatingRoom) -> None:
    room.desk("ann").judge(Category.CORRECT)
    assert room.desk("ann").view.count.done == 1
    room.refresh()
    assert room.desk("ann").view.count.done == 1


def test_rows_of_another_process_come_with_the_next_reading(folders: list[Path], room: RatingRoom) -> None:
    other = open_room(folders)
    other.desk("ann").judge(Category.CORRECT)
    desk = room.desk("ann")
    assert desk.view.count.done == 0
    room.refresh()
    desk.refresh(room.items, room.rows)
    assert desk.view.count.done == 1
    other.close()


def test_adjudication_has_the_inputs_and_leaves_out_what_others_settled(room: RatingRoom) -> None:
    ann, ben = room.desk("ann"), room.desk("ben")
    for _ in range(6):
        ann.judge(Category.CORRECT)
    all_judged(ben, Category.WRONG)
    settling = room.adjudication("cem")
    assert settling.view.count.total == 6
    assert settling.view.item is not None
    assert [row.category for row in settling.view.item.inputs] in (
        [Category.CORRECT, Category.WRONG],
        [Category.WRONG, Category.CORRECT],
    )
    settling.judge(Category.PARTIALLY_CORRECT)
    assert room.adjudication("cem").view.count.done == 1
    assert room.adjudication("dora").view.count.total == 5
    assert len(room.disputed) == 6
    assert room.desk("ann").view.count.done == 6


def test_a_round_draws_shares_gold_and_exercises(folders: list[Path]) -> None:
    gold = (GoldItem("s1", "moons-kitchen-1", Category.CORRECT), GoldItem("s1", "none", Category.WRONG))
    round_ = RatingRound(
        sessions=tuple(map(str, folders)),
        items=ItemFilter(devices=("kitchen",), limit=8),
        raters=("ann", "ben"),
        raters_per_item=1,
        exercises=BUILT_IN_EXERCISES[:2],
        gold=gold,
    )
    room = RatingRoom(round_)
    assert len(room.items) == 8
    assert [one.hidden.gold for one in room.items if one.hidden.gold] == [gold[0]]
    assert room.unmatched_gold == (gold[1],)
    assert len(room.exercises) == 2
    assert sum(room.desk(rater).view.count.total for rater in ("ann", "ben")) == 9
    with pytest.raises(InputError, match="no rater of the round"):
        room.desk("cem")
    room.close()


def test_exercises_are_kept_with_the_first_session_and_harm_no_figure(folders: list[Path]) -> None:
    room = open_room(folders, RatingRound(exercises=BUILT_IN_EXERCISES[:1]))
    desk = room.desk("ann")
    desk.judge(BUILT_IN_EXERCISES[0].category)
    (row,) = [one.record for one in rating_rows(folders[0]) if isinstance(one.record, JudgmentGiven)]
    assert row.judgment.trial_id == f"exercise:{BUILT_IN_EXERCISES[0].id}"
    assert len(open_room(folders).items) == sum(SESSIONS)
    room.close()


def test_sounds_are_the_stored_response_the_query_alone_and_a_spoken_exercise(folders: list[Path]) -> None:
    room = open_room(folders, RatingRound(exercises=BUILT_IN_EXERCISES[:1]))
    one = room.items[0]
    assert one.clip is not None
    heard = room.response_sound(one)
    assert (len(heard.samples), heard.rate_hz) == (one.clip.samples, one.clip.rate_hz)
    query = room.query_sound(one)
    assert 0.5 < query.duration_s < 5
    assert float(np.abs(query.samples).max()) > 0.01
    exercise = room.exercises[0]
    assert room.response_sound(exercise).duration_s > 0.5
    assert room.query_sound(exercise).duration_s > 0.5
    (folders[0] / "clips" / one.clip.name).unlink()
    with pytest.raises(LogError, match="is missing"):
        room.response_sound(one)
    room.close()


def test_what_cannot_be_a_room_is_refused(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="named twice"):
        open_room([folders[0], folders[0]])
    with pytest.raises(InputError, match="no first response"):
        open_room(folders, RatingRound(items=ItemFilter(devices=("bath",))))
    with pytest.raises(LogError, match="no session folder"):
        open_room([tmp_path / "none"])
    (folders[0] / "judgments.sqlite").write_bytes(b"hello" * 999)
    with pytest.raises(LogError, match=r"judgments\.sqlite is damaged or no database"):
        open_room(folders)


def test_a_row_that_is_kept_elsewhere_is_read_once(folders: list[Path], room: RatingRoom) -> None:
    desk = room.desk("ann")
    desk.judge(Category.CORRECT)
    row = room.rows[0]
    log = JudgmentLog(folders[0] if row.session_id == "s1" else folders[1])
    log.append(JudgmentGiven(row))
    log.close()
    room.refresh()
    assert [one.id for one in room.rows] == [row.id]
