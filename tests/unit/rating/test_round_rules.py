"""Rules of a round that hold a rater back: hearing a response to its end, and known answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.judgment import Category, Flag, RatingRound, StopRule
from harness.model.record import Clip
from harness.rating.desk import SittingPhase
from harness.rating.items import Item
from tests.unit.rating.sittings import Bench, in_sight, item, items

WRONG, CORRECT = Category.WRONG, Category.CORRECT
SECONDS = 2


def spoken(count: int) -> list[Item]:
    clip = Clip("00001.flac", "00" * 32, 16_000, SECONDS * 16_000, 0.0)
    return [replace(one, clip=clip) for one in items(count)]


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
def test_a_category_wants_the_response_heard_to_its_end(plays: list[tuple[int, bool | None]], enough: bool) -> None:
    bench = Bench(spoken(2), RatingRound(must_hear=True))
    desk = bench.desk()
    for played_ms, to_end in plays:
        desk.heard(played_ms, began=True, to_end=to_end)
    assert desk.judge(WRONG) is enough
    assert len(bench.disk.rows) == enough
    assert ("listen to the response" in desk.view.said) is not enough


def test_what_cannot_be_heard_is_put_aside_and_what_was_heard_can_be_changed() -> None:
    bench = Bench(spoken(2), RatingRound(must_hear=True))
    desk = bench.desk()
    assert desk.flag(Flag.AUDIO_BAD)
    desk.heard(2000, began=True)
    desk.judge(WRONG)
    assert desk.earlier()
    assert desk.judge(CORRECT)
    assert desk.earlier()
    assert desk.earlier()
    assert not desk.judge(CORRECT), "it was put aside unheard"


def test_without_the_rule_nothing_needs_to_be_heard() -> None:
    assert Bench(spoken(1)).desk().judge(WRONG)


def test_who_fails_known_answers_gets_no_more_and_changes_none() -> None:
    known = [item(number, gold=number <= 4) for number in range(1, 9)]
    bench = Bench(known, RatingRound(stop=StopRule(after=3, below=0.6)))
    desk = bench.desk()
    met = 0
    while in_sight(desk):
        found = desk.view.item
        assert found is not None
        met += found.hidden.gold is not None
        desk.judge(CORRECT if found.hidden.gold is None or met == 1 else WRONG)
    assert met == 3
    for seated in (desk, bench.desk()):
        view = seated.view
        assert (view.stopped, view.phase, view.can_undo, view.can_go_back) == (
            True,
            SittingPhase.FINISHED,
            False,
            False,
        )
        assert not seated.undo()
        assert not seated.earlier()
        assert seated.given() == ()
    assert len(bench.disk.rows) == view.count.done < 8
    other = bench.desk("ben")
    while in_sight(other):
        other.judge(CORRECT)
    assert (other.view.stopped, other.view.count.done) == (False, 8)
