"""Shares and orders: by seed, even, and steady while a session grows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from harness.model.judgment import ItemFilter, RatingRound
from harness.rating.items import Hidden
from harness.rating.standing import assigned, drawn
from tests.unit.rating.sittings import item, items

RATERS = ("ann", "ben", "cem", "dora")


def test_the_order_is_the_raters_own_and_comes_again() -> None:
    every = items(50)
    ann, ben = (assigned(every, RatingRound(seed=3), rater) for rater in ("ann", "ben"))
    assert assigned(every, RatingRound(seed=3), "ann") == ann
    assert set(ann) == set(ben) == set(every)
    assert len({ann, ben, every, assigned(every, RatingRound(seed=4), "ann")}) == 4


@pytest.mark.parametrize("raters", [2, 3, 4])
@pytest.mark.parametrize("each", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 7, 100])
def test_shares_are_even_and_every_item_has_its_raters(raters: int, each: int, count: int) -> None:
    every = items(count)
    round_ = RatingRound(raters=RATERS[:raters], raters_per_item=each)
    shares = {rater: assigned(every, round_, rater) for rater in round_.raters}
    given = Counter(one.id for share in shares.values() for one in share)
    assert set(given.values()) == {min(each, raters)}
    assert len(given) == count
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1


def test_pairs_of_raters_vary() -> None:
    every = items(300)
    round_ = RatingRound(raters=RATERS, raters_per_item=2)
    ids = {rater: {one.id for one in assigned(every, round_, rater)} for rater in RATERS}
    pairs = Counter(tuple(rater for rater in RATERS if one.id in ids[rater]) for one in every)
    assert len(pairs) == 6
    assert min(pairs.values()) > 300 / 6 / 2


def test_gold_goes_to_everybody_and_shares_stay_even() -> None:
    every = (*items(40), *(item(number, gold=True) for number in range(41, 46)))
    round_ = RatingRound(raters=RATERS, raters_per_item=1)
    for rater in RATERS:
        share = assigned(every, round_, rater)
        assert len([one for one in share if one.hidden.gold]) == 5
        assert len(share) == 15


def test_what_comes_later_moves_nothing() -> None:
    """A session that still runs gives more; what was there keeps its raters and its order."""
    round_ = RatingRound(raters=RATERS, raters_per_item=2)
    for rater in RATERS:
        before, after = (assigned(items(count), round_, rater) for count in (40, 60))
        assert tuple(one for one in after if one in before) == before


def test_a_run_again_trial_stays_in_the_same_hands() -> None:
    round_ = RatingRound(raters=RATERS, raters_per_item=2)
    every = list(items(40))
    again = [*every[:9], item(10, clip="another"), *every[10:]]
    for rater in RATERS:
        before, after = ({one.subject.trial_id for one in assigned(its, round_, rater)} for its in (every, again))
        assert before == after


def test_a_limit_draws_by_the_seed_and_keeps_most_of_it_later() -> None:
    few = ItemFilter(limit=10)
    first = drawn(items(100), few, 1)
    assert len(first) == 10
    assert drawn(items(100), few, 1) == first
    assert drawn(items(100), few, 2) != first
    assert [one.query for one in first] != [one.query for one in items(10)]
    later = drawn(items(105), few, 1)
    assert len(set(first) - set(later)) <= 5
    with_gold = drawn((*items(100), item(200, gold=True)), few, 1)
    assert any(one.hidden.gold for one in with_gold)
    assert drawn(items(5), few, 1) == items(5)


def test_filters_take_what_fits_all_of_them() -> None:
    every = items(8)
    assert {one.hidden.query_class for one in drawn(every, ItemFilter(query_classes=("lists",)), 0)} == {"lists"}
    both = ItemFilter(query_classes=("lists",), queries=("q1",), devices=("kitchen",))
    assert [one.hidden.trial_id for one in drawn(every, both, 0)] == ["t1", "t5"]
    assert [one.hidden.trial_id for one in drawn(every, ItemFilter(trials=("t7", "t2")), 0)] == ["t2", "t7"]
    assert drawn(every, ItemFilter(devices=("den",)), 0) == ()


def test_conditions_are_met_by_one_label_of_each_axis() -> None:
    def under(number: int, **conditions: str) -> object:
        one = item(number)
        return replace(one, hidden=replace(Hidden(), trial_id=f"t{number}", conditions=tuple(conditions.items())))

    every = [under(1, noise="quiet", voice="ann"), under(2, noise="pink", voice="ann"), under(3, noise="car")]

    def met(*conditions: tuple[str, str]) -> list[str]:
        return [one.hidden.trial_id for one in drawn(every, ItemFilter(conditions=conditions), 0)]  # type: ignore[arg-type]

    assert met(("noise", "quiet"), ("noise", "pink")) == ["t1", "t2"]
    assert met(("noise", "quiet"), ("noise", "car"), ("voice", "ann")) == ["t1"]
    assert met(("room", "kitchen")) == []
