"""The time to an answer is time in front of the response, not a night between two keys."""

from __future__ import annotations

from harness.base.presence import REST_S
from harness.model.judgment import Category
from harness.rating.desk import Desk
from tests.unit.rating.sittings import Bench, items

NIGHT_S = 9 * 3600.0


def seated() -> tuple[Bench, Desk]:
    bench = Bench(items(3))
    return bench, bench.desk()


def time_of_answer(bench: Bench, desk: Desk) -> float | None:
    desk.judge(Category.CORRECT)
    return bench.disk.rows[-1].time_to_answer_s


def test_a_night_between_two_keys_is_not_counted() -> None:
    bench, desk = seated()
    bench.clock.now_s += 5
    desk.set_confidence(2)
    bench.clock.now_s += NIGHT_S
    desk.note_presence()
    bench.clock.now_s += 7
    assert time_of_answer(bench, desk) == 12.0


def test_answer_right_after_a_break_has_no_time() -> None:
    bench, desk = seated()
    bench.clock.now_s += REST_S + 1
    assert time_of_answer(bench, desk) is None
    bench.clock.now_s += 4
    assert time_of_answer(bench, desk) == 4.0, "the next response has its own time"
    assert desk.view.pace_s == 4.0


def test_key_press_and_its_effect_count_as_one_presence() -> None:
    bench, desk = seated()
    bench.clock.now_s += NIGHT_S
    desk.note_presence()
    assert time_of_answer(bench, desk) is None


def test_long_listening_does_not_count_as_a_rest() -> None:
    bench, desk = seated()
    bench.clock.now_s += REST_S + 60
    desk.record_play(int((REST_S + 60) * 1000), began=True)
    bench.clock.now_s += 5
    assert time_of_answer(bench, desk) == REST_S + 65


def test_thinking_for_less_than_a_rest_counts_whole() -> None:
    bench, desk = seated()
    bench.clock.now_s += REST_S
    assert time_of_answer(bench, desk) == REST_S
