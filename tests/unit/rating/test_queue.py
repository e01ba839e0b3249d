"""Shares and orders: by seed, even, and steady while a session grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.judgment import Category, Flag, GoldItem, ItemFilter, RatingRound, StopRule
from harness.model.record import Clip
from harness.rating.items import HiddenDetails, Item
from harness.rating.rater_queue import assigned_items, raters_by_item, sampled_items
from harness.rating.rating_room import RatingRoom
from harness.rating.view import SittingPhase
from harness.session.log.reader import check
from tests.rating_sessions import rating_session
from tests.unit.rating.sittings import in_sight, item, items, seated

FOUR = ("ann", "ben", "cem", "dora")


def test_each_rater_has_a_reproducible_order() -> None:
    every = items(50)
    ann, ben = (assigned_items(every, RatingRound(seed=3), rater) for rater in ("ann", "ben"))
    assert assigned_items(every, RatingRound(seed=3), "ann") == ann
    assert set(ann) == set(ben) == set(every)
    assert len({ann, ben, every, assigned_items(every, RatingRound(seed=4), "ann")}) == 4


@pytest.mark.parametrize("raters", [2, 3, 4])
@pytest.mark.parametrize("per_item", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 7, 100])
def test_shares_are_even_and_every_item_has_its_raters(raters: int, per_item: int, count: int) -> None:
    every = items(count)
    round_ = RatingRound(raters=FOUR[:raters], raters_per_item=per_item)
    shares = {rater: assigned_items(every, round_, rater) for rater in round_.raters}
    counts = Counter(item.id for share in shares.values() for item in share)
    assert set(counts.values()) == {min(per_item, raters)}
    assert len(counts) == count
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1


def test_pairs_of_raters_vary() -> None:
    every = items(300)
    round_ = RatingRound(raters=FOUR, raters_per_item=2)
    ids = {rater: {item.id for item in assigned_items(every, round_, rater)} for rater in FOUR}
    pairs = Counter(tuple(rater for rater in FOUR if item.id in ids[rater]) for item in every)
    assert len(pairs) == 6
    assert min(pairs.values()) > 300 / 6 / 2


def test_gold_goes_to_everybody_and_shares_stay_even() -> None:
    every = (*items(40), *(item(number, gold=True) for number in range(41, 46)))
    round_ = RatingRound(raters=FOUR, raters_per_item=1)
    for rater in FOUR:
        share = assigned_items(every, round_, rater)
        assert len([response for response in share if response.hidden.gold]) == 5
        assert len(share) == 15


def test_new_items_do_not_move_existing_assignments() -> None:
    """A session that still runs gives more; what was there keeps its raters and its order."""
    round_ = RatingRound(raters=FOUR, raters_per_item=2)
    for rater in FOUR:
        before, after = (assigned_items(items(count), round_, rater) for count in (40, 60))
        assert tuple(item for item in after if item in before) == before


def test_rerun_trial_keeps_its_raters() -> None:
    round_ = RatingRound(raters=FOUR, raters_per_item=2)
    every = list(items(40))
    rerun = [*every[:9], item(10, clip="another"), *every[10:]]
    for rater in FOUR:
        before, after = (
            {response.subject.trial_id for response in assigned_items(its, round_, rater)} for its in (every, rerun)
        )
        assert before == after


def test_a_limit_draws_by_the_seed_and_keeps_most_of_it_later() -> None:
    few = ItemFilter(limit=10)
    first = sampled_items(items(100), few, 1)
    assert len(first) == 10
    assert sampled_items(items(100), few, 1) == first
    assert sampled_items(items(100), few, 2) != first
    assert [response.query for response in first] != [response.query for response in items(10)]
    later = sampled_items(items(105), few, 1)
    assert len(set(first) - set(later)) <= 5
    with_gold = sampled_items((*items(100), item(200, gold=True)), few, 1)
    assert any(response.hidden.gold for response in with_gold)
    assert sampled_items(items(5), few, 1) == items(5)


def test_filters_select_items_that_match_all_of_them() -> None:
    every = items(8)
    assert {item.hidden.query_class for item in sampled_items(every, ItemFilter(query_classes=("lists",)), 0)} == {
        "lists"
    }
    selection = ItemFilter(query_classes=("lists",), queries=("q1",), devices=("kitchen",))
    assert [item.subject.trial_id for item in sampled_items(every, selection, 0)] == ["t1", "t5"]
    assert [item.subject.trial_id for item in sampled_items(every, ItemFilter(trials=("t7", "t2")), 0)] == ["t2", "t7"]
    assert sampled_items(every, ItemFilter(devices=("den",)), 0) == ()


def test_conditions_match_any_listed_label_per_axis() -> None:
    def under(number: int, **conditions: str) -> object:
        return replace(item(number), hidden=HiddenDetails(conditions=tuple(conditions.items())))

    every = [under(1, noise="quiet", voice="ann"), under(2, noise="pink", voice="ann"), under(3, noise="car")]

    def met(*conditions: tuple[str, str]) -> list[str]:
        return [response.subject.trial_id for response in sampled_items(every, ItemFilter(conditions=conditions), 0)]  # type: ignore[arg-type]

    assert met(("noise", "quiet"), ("noise", "pink")) == ["t1", "t2"]
    assert met(("noise", "quiet"), ("noise", "car"), ("voice", "ann")) == ["t1"]
    assert met(("room", "kitchen")) == []


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
    rating_room = opened(folder)
    yield rating_room
    rating_room.close()


def judge(room: RatingRoom, rater: str, category: Category, max_judgments: int) -> None:
    desk = room.desk(rater)
    for _ in range(max_judgments):
        desk.judge(category)


def ids(room: RatingRoom, rater: str) -> set[str]:
    return {item_id for item_id, raters in raters_by_item(room.items, room.round).items() if rater in raters}


def test_progress_shows_counts_pace_and_known_answers_per_rater(folder: Path) -> None:
    room = opened(folder, stop=StopRule(2, 0.6))
    judge(room, "ann", Category.WRONG, 12)
    judge(room, "ben", Category.CORRECT, 4)
    ann, ben, cem = room.progress()
    assert (ann.rater, ann.known_answers, ann.known_share, ann.stopped) == ("ann", (0, 2), 0.0, True)
    assert (ben.count.done, ben.stopped) == (4, False)
    assert ben.rows.pace_s is not None
    assert ben.left_s == pytest.approx(ben.rows.pace_s * ben.count.left)
    assert ben.rows.last_wall_s is not None
    assert (cem.count.done, cem.rows.pace_s, cem.rows.last_wall_s, cem.known_answers) == (0, None, None, (0, 0))
    assert sum(entry.count.total for entry in room.progress()) == 10 + 3 * len(GOLD)
    room.close()


def test_an_open_share_moves_to_others_and_judged_items_stay(room: RatingRoom, folder: Path) -> None:
    judge(room, "ann", Category.CORRECT, 3)
    before = {rater: ids(room, rater) for rater in RATERS}
    done = {row.item_id for row in room.rows}
    gold = {item.id for item in room.items if item.hidden.gold is not None}
    sitting = room.desk("ben")
    moved = before["ann"] - done - gold
    assert room.reassign("ann", ("ben", "cem"), "carla") == (len(moved), 0)
    after = {rater: ids(room, rater) for rater in RATERS}
    assert after["ann"] == before["ann"] - moved
    assert after["ben"] | after["cem"] == before["ben"] | before["cem"] | moved
    assert abs(len(after["ben"]) - len(after["cem"])) <= 1
    sitting.refresh(room.items, room.rows)
    assert sitting.view.count.total == len(after["ben"])
    assert room.desk("ann").view.count.left == len(gold - done)
    reopened = opened(folder)
    assert {rater: ids(reopened, rater) for rater in RATERS} == after
    assert reopened.reassign("ann", ("ben",), "carla") == (0, 0)
    assert not [problem for problem in check(folder).damage if "judgments" in problem]
    # Then it may go on to somebody else.
    assert reopened.reassign("ben", ("cem",), "carla")[0] == len(after["ben"] - gold)
    assert ids(reopened, "cem") == (after["cem"] | after["ben"])
    reopened.close()


def test_moves_apply_in_their_order_although_the_first_session_is_another_by_then(tmp_path: Path) -> None:
    paths = [str(rating_session(tmp_path / name, 6, session_id=name)) for name in ("a", "b")]
    settings = RatingRound(id="spring", raters=RATERS, raters_per_item=1)
    with closing(RatingRoom(replace(settings, sessions=(paths[1],)))) as room:
        moved = ids(room, "ann")
        room.reassign("ann", ("ben",), "carla")
        assert moved <= ids(room, "ben")
    with closing(RatingRoom(replace(settings, sessions=tuple(paths)))) as room:
        moved &= ids(room, "ben")
        assert moved
        room.reassign("ben", ("cem",), "carla")
        assert moved <= ids(room, "cem")


def test_items_that_every_rater_has_are_not_reassigned(folder: Path) -> None:
    room = opened(folder, raters_per_item=2, gold=())
    total = len(ids(room, "ann"))
    moved_count, left = room.reassign("ann", ("ben",), "carla")
    assert (moved_count + left, left > 0) == (total, True)
    assert ids(room, "ann") == set()
    assert len(ids(room, "ben")) == 12
    room.close()


@pytest.mark.parametrize(("rater", "to"), [("ann", ()), ("ann", ("ann",)), ("ann", ("zoe",)), ("zoe", ("ben",))])
def test_shares_move_between_raters_of_the_round_only(room: RatingRoom, rater: str, to: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        room.reassign(rater, to, "carla")


def test_a_round_that_everybody_judges_whole_has_no_shares(folder: Path) -> None:
    room = opened(folder, raters_per_item=None)
    with pytest.raises(InputError, match="every rater judges every response"):
        room.reassign("ann", ("ben",), "carla")
    room.close()


WRONG, CORRECT = Category.WRONG, Category.CORRECT
SECONDS = 2


def spoken(count: int) -> list[Item]:
    clip = Clip("00001.flac", "00" * 32, 16_000, SECONDS * 16_000, 0.0)
    return [replace(item, clip=clip) for item in items(count)]


@pytest.mark.parametrize(
    ("plays", "enough"),
    [
        ([], False),
        ([(1000, None)], False),
        ([(1000, None), (1000, None)], False),
        ([(2000, None)], True),
        ([(1990, None), (10, None)], True),
        ([(1200, False), (700, True)], True),
        ([(200, True)], False),
        ([(2000, False)], False),
    ],
)
def test_a_category_requires_the_response_heard_to_its_end(plays: list[tuple[int, bool | None]], enough: bool) -> None:
    bench, desk = seated(spoken(2), RatingRound(must_hear=True))
    for played_ms, to_end in plays:
        desk.record_play(played_ms, began=True, to_end=to_end)
    assert desk.judge(WRONG) is enough
    assert len(bench.disk.rows) == enough
    assert ("listen to the whole response" in desk.view.message) is not enough


def test_unheard_item_stays_flagged_and_heard_item_can_be_changed() -> None:
    _, desk = seated(spoken(2), RatingRound(must_hear=True))
    assert desk.flag(Flag.AUDIO_BAD)
    desk.record_play(2000, began=True)
    desk.judge(WRONG)
    assert desk.earlier()
    assert desk.judge(CORRECT)
    assert desk.earlier()
    assert desk.earlier()
    assert not desk.judge(CORRECT), "it was put aside unheard"


def test_rater_who_fails_known_answers_is_stopped() -> None:
    gold_items = [item(number, gold=number <= 4) for number in range(1, 9)]
    bench, desk = seated(gold_items, RatingRound(stop=StopRule(after=3, below=0.6)))
    met = 0
    while in_sight(desk):
        response = desk.view.item
        assert response is not None
        met += response.hidden.gold is not None
        desk.judge(CORRECT if response.hidden.gold is None or met == 1 else WRONG)
    assert met == 3
    for sitting in (desk, bench.desk()):
        view = sitting.view
        assert (view.stopped, view.phase, view.can_undo, view.can_go_back) == (
            True,
            SittingPhase.FINISHED,
            False,
            False,
        )
        assert not sitting.undo()
        assert not sitting.earlier()
        assert sitting.reopenable_items() == ()
    assert len(bench.disk.rows) == view.count.done < 8
    other = bench.desk("ben")
    while in_sight(other):
        other.judge(CORRECT)
    assert (other.view.stopped, other.view.count.done) == (False, 8)
