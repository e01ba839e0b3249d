"""A coordinator sees how far raters are, and gives what one of them has not judged to others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.judgment import Category, GoldItem, RatingRound, StopRule
from harness.rating.rating_room import RatingRoom
from harness.rating.standing import shares_of
from harness.session.log.reader import check
from tests.rating_sessions import rating_session

RATERS = ("ann", "ben", "cem")
GOLD = tuple(GoldItem("s1", trial, Category.CORRECT) for trial in ("moons-kitchen-1", "planets-den-2"))


def opened(folder: Path, **changes: object) -> RatingRoom:
    settings: dict[str, object] = {"id": "spring", "raters": RATERS, "raters_per_item": 1, "gold": GOLD, **changes}
    return RatingRoom(RatingRound(sessions=(str(folder),), **settings))  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return rating_session(tmp_path / "s1", 12)


@pytest.fixture
def room(folder: Path) -> Iterator[RatingRoom]:
    made = opened(folder)
    yield made
    made.close()


def judge(room: RatingRoom, rater: str, category: Category, most: int) -> None:
    desk = room.desk(rater)
    for _ in range(most):
        desk.judge(category)


def ids(room: RatingRoom, rater: str) -> set[str]:
    return {one for one, raters in shares_of(room.items, room.round).items() if rater in raters}


def test_progress_tells_counts_pace_and_known_answers_of_every_rater(folder: Path) -> None:
    room = opened(folder, stop=StopRule(2, 0.6))
    judge(room, "ann", Category.WRONG, 12)
    judge(room, "ben", Category.CORRECT, 4)
    ann, ben, cem = room.progress
    assert (ann.rater, ann.known, ann.known_share, ann.stopped) == ("ann", (0, 2), 0.0, True)
    assert (ben.count.done, ben.stopped) == (4, False)
    assert ben.pace_s is not None
    assert ben.left_s == pytest.approx(ben.pace_s * ben.count.left)
    assert ben.last_wall_s is not None
    assert (cem.count.done, cem.pace_s, cem.last_wall_s, cem.known) == (0, None, None, (0, 0))
    assert sum(one.count.total for one in room.progress) == 10 + 3 * len(GOLD)
    room.close()


def test_an_open_share_goes_to_others_and_what_was_judged_stays(room: RatingRoom, folder: Path) -> None:
    judge(room, "ann", Category.CORRECT, 3)
    before = {one: ids(room, one) for one in RATERS}
    done = {row.item_id for row in room.rows}
    known = {item.id for item in room.items if item.hidden.gold is not None}
    sitting = room.desk("ben")
    moved = before["ann"] - done - known
    assert room.reassign("ann", ("ben", "cem"), "carla") == (len(moved), 0)
    after = {one: ids(room, one) for one in RATERS}
    assert after["ann"] == before["ann"] - moved
    assert after["ben"] | after["cem"] == before["ben"] | before["cem"] | moved
    assert abs(len(after["ben"]) - len(after["cem"])) <= 1
    sitting.refresh(room.items, room.rows)
    assert sitting.view.count.total == len(after["ben"])
    assert room.desk("ann").view.count.left == len(known - done)
    again = opened(folder)
    assert {one: ids(again, one) for one in RATERS} == after
    assert again.reassign("ann", ("ben",), "carla") == (0, 0)
    assert not [one for one in check(folder).damage if "judgments" in one]
    # Then it may go on to somebody else.
    assert again.reassign("ben", ("cem",), "carla")[0] == len(after["ben"] - known)
    assert ids(again, "cem") == (after["cem"] | after["ben"])
    again.close()


def test_what_everybody_has_already_is_left_with_nobody(folder: Path) -> None:
    room = opened(folder, raters_per_item=2, gold=())
    total = len(ids(room, "ann"))
    taken, left = room.reassign("ann", ("ben",), "carla")
    assert (taken + left, left > 0) == (total, True)
    assert ids(room, "ann") == set()
    assert len(ids(room, "ben")) == 12
    room.close()


@pytest.mark.parametrize(("rater", "to"), [("ann", ()), ("ann", ("ann",)), ("ann", ("zoe",)), ("zoe", ("ben",))])
def test_shares_move_between_raters_of_the_round_only(room: RatingRoom, rater: str, to: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        room.reassign(rater, to, "carla")


def test_a_round_that_everybody_judges_whole_has_no_shares(folder: Path) -> None:
    room = opened(folder, raters_per_item=None)
    with pytest.raises(InputError, match="everybody judges every response"):
        room.reassign("ann", ("ben",), "carla")
    room.close()
