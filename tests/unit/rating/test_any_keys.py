"""Whatever a rater presses: nothing is lost, nothing is counted twice, and a restart stands where the desk stood."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import LogFull
from harness.model.judgment import Category, Flag, JudgmentStatus, SubFlag, in_force
from harness.rating.desk import Desk
from tests.unit.rating.sittings import SEEN, WAITS, Bench, exercises, item

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
            desk.toggle(key)
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
            desk.comment("hm")
        case "full" | "room":
            bench.disk.full = key == "full"
        case "evidence":
            bench.items = [replace(one, effect=SEEN if one.effect else None) for one in bench.items]
            desk.refresh(bench.items, ())
        case "refresh":
            desk.refresh(bench.items, tuple(bench.disk.rows))
        case "leave":
            return bench.desk()
    return desk


@settings(max_examples=150, deadline=None)
@given(st.lists(KEYS, max_size=60), st.booleans())
def test_any_keys_keep_what_must_hold(keys: list[object], training: bool) -> None:
    every = [item(number, effect=WAITS if number % 3 == 0 else None) for number in range(1, COUNT + 1)]
    trained = exercises(Category.CORRECT, Category.WRONG) if training else ()
    bench = Bench(every, exercises=trained)
    desk = bench.desk()
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
            assert (view.item, view.draft, view.explained) == (before.item, before.draft, before.explained)
        count = view.count
        assert count.total == COUNT
        assert count.done + count.left + count.held == count.total
        assert min(count.done, count.left, count.held, count.skipped, count.flagged) >= 0
        assert count.skipped <= count.left
        assert view.item is not None or (not count.left and view.explained is None)
    standing = in_force(bench.disk.rows)
    subjects = [row.trial_id for row in standing]
    assert len(subjects) == len(set(subjects)), "one row in force on each item"
    submitted = [row for row in standing if not row.trial_id.startswith("exercise:")]
    done = [row for row in submitted if row.status in (JudgmentStatus.SUBMITTED, JudgmentStatus.FLAGGED)]
    assert desk.view.count.done == len(done)
    bench.disk.full = False
    again = bench.desk()
    with contextlib.suppress(LogFull):
        if desk.view.count.held != again.view.count.held:  # who released held items does so for one sitting
            again.release_held()
    assert again.view.count == desk.view.count
    assert again.view.exercises == desk.view.exercises
    assert again.view.can_undo == desk.view.can_undo
