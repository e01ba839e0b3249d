"""Keys that label: every screen, one guard, one clock. Times are those of the keys' events."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from harness.dashboard.key_guard import FIRST_REPEAT_S, REPEAT_S, TOO_FAST, GuardedApp, KeyGuard, KeyVerdict
from harness.dashboard.screens.questions import AskingPanel
from harness.model.feed import AnswerOperator, Judge, Review, StateWord
from tests.dashboard import seats
from tests.dashboard.bench import double, opened, press_until, shows, until
from tests.dashboard.engine_double import START_S
from tests.dashboard.wake_bench import wake_double, wake_opened
from tests.known import known
from tests.rating_sessions import rating_session

REPEATS_S = 0.03
"""Between repeats of a key that is held down."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A screen that labels. label: a key that labels what is in sight; labelled: how many items that is so far."""

    app: GuardedApp
    pilot: Pilot[int]
    label: str
    labelled: Callable[[], int]


@asynccontextmanager
async def bench(folder: Path) -> AsyncIterator[Seat]:
    async with opened(double(folder), (80, 24)) as (engine, app, pilot):
        await press_until(pilot, shows(pilot, "milk is on the list"), "j")
        yield Seat(app, pilot, "1", lambda: len(engine.commands(Judge)))


@asynccontextmanager
async def rate(folder: Path) -> AsyncIterator[Seat]:
    session = rating_session(folder / "s1", 12)
    app = seats.seated(session)
    async with app.run_test(size=(80, 24)) as pilot:
        await seats.ready(pilot)
        yield Seat(app, pilot, "1", lambda: len(seats.rows(session)))


@asynccontextmanager
async def wake(folder: Path) -> AsyncIterator[Seat]:
    async with wake_opened(wake_double(folder), (80, 24)) as (engine, app, pilot):
        yield Seat(app, pilot, "f", lambda: len(engine.commands(Review)))


SCREENS = [bench, rate, wake]


def key(name: str, at_s: float) -> events.Key:
    event = events.Key(name, name if len(name) == 1 else None)
    event.time = at_s
    return event


async def settled(seat: Seat) -> None:
    """Until the first item is labelled, and no key is still to be decided on."""
    await until(seat.pilot, seat.labelled)
    await seat.pilot.pause(REPEAT_S + 0.05)
    await until(seat.pilot, lambda: True)


@pytest.mark.parametrize("screen", SCREENS)
async def test_a_key_from_before_the_drawing_labels_nothing_however_late_it_is_handled(
    screen: Callable[[Path], Seat], tmp_path: Path
) -> None:
    async with screen(tmp_path) as seat:
        drawn_s = known(seat.app.guard.drawn_s)
        seat.app.post_message(key(seat.label, drawn_s - 0.001))
        await until(seat.pilot, shows(seat.pilot, TOO_FAST))
        assert seat.labelled() == 0
        seat.app.post_message(key(seat.label, drawn_s + FIRST_REPEAT_S + 0.001))
        await until(seat.pilot, lambda: seat.labelled() == 1)


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("first_after_s", [REPEATS_S, 0.66], ids=lambda s: f"repeats after {s} s")
async def test_a_key_that_is_held_down_labels_one_item(
    screen: Callable[[Path], Seat], first_after_s: float, tmp_path: Path, host_keeps_time: None
) -> None:
    """Held for a third of a second longer than the keyboard takes to repeat it, in real time."""
    async with screen(tmp_path) as seat:
        began_s = time.monotonic()

        def hold() -> None:
            for after_s in (0.0, *(first_after_s + n * REPEATS_S for n in range(11))):
                time.sleep(max(0.0, began_s + after_s - time.monotonic()))
                seat.app.post_message(key(seat.label, began_s + after_s))

        await asyncio.to_thread(hold)  # as a terminal's keys, they do not wait for the drawing
        await settled(seat)
        assert seat.labelled() == 1


@pytest.mark.parametrize("screen", SCREENS)
async def test_a_slow_redraw_does_not_make_keys_later_than_they_were(
    screen: Callable[[Path], Seat], tmp_path: Path
) -> None:
    """A thread reads keys as the driver's does, while the screen is busy before the next item is drawn."""
    async with screen(tmp_path) as seat:
        other = {"1": "2", "enter": "x", "f": "h"}[seat.label]

        def type_keys() -> None:
            for name in (other, seat.label, other):
                time.sleep(REPEATS_S)
                seat.app.post_message(key(name, time.monotonic()))

        seat.app.post_message(key(seat.label, time.monotonic()))
        thread = threading.Thread(target=type_keys)
        thread.start()
        thread.join()  # without letting the screen work
        await settled(seat)
        assert seat.labelled() == 1


@pytest.mark.parametrize("screen", SCREENS)
async def test_the_same_key_pressed_again_labels_the_next_item(screen: Callable[[Path], Seat], tmp_path: Path) -> None:
    async with screen(tmp_path) as seat:
        for number in (1, 2):
            item = seat.app._shown_item
            await seat.pilot.press(seat.label)
            await until(seat.pilot, lambda number=number: seat.labelled() == number)
            await until(seat.pilot, lambda item=item: seat.app._shown_item != item)  # an engine has answered by then
            await seat.pilot.pause(2 * REPEAT_S)


async def test_a_key_from_before_the_question_does_not_answer_it(tmp_path: Path) -> None:
    async with opened(double(tmp_path), (80, 24)) as (engine, app, pilot):
        engine.say(StateWord.ASKING, trial_id="kitchen-08", attempt=1, until_s=START_S + 42)
        await until(pilot, lambda: isinstance(app.screen, AskingPanel))
        await until(pilot, shows(pilot, "y recognised"))
        drawn_s = known(app.guard.drawn_s)
        app.post_message(key("u", drawn_s - 0.001))
        await until(pilot, shows(pilot, TOO_FAST))
        assert not engine.commands(AnswerOperator)
        app.post_message(key("y", drawn_s + 0.001))
        await until(pilot, lambda: engine.commands(AnswerOperator))


def verdicts(drawn_s: float, keys: Sequence[tuple[str, float]]) -> list[KeyVerdict]:
    """Of keys, each when the next one has been heard; the last one when time has passed."""
    guard = KeyGuard()
    guard.drawn_s = drawn_s
    heard = [key(*stroke) for stroke in keys]
    for event in heard:
        guard.record_key(event)
    return [guard.verdict(event) for event in heard]


EARLY, COUNTS = KeyVerdict.TOO_EARLY, KeyVerdict.COUNTS


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([("1", 0.9)], [EARLY]),
        ([("1", 1.1)], [COUNTS]),
        ([("1", 0.9), ("1", 0.95), ("1", 1.03)], [EARLY] * 3),
        ([("1", 0.9), ("1", 1.4), ("1", 1.44)], [EARLY] * 3),
        ([("1", 0.9), ("1", 1.4)], [EARLY, COUNTS]),
        ([("1", 0.9), ("2", 1.4), ("2", 1.44)], [EARLY, COUNTS, COUNTS]),
        ([("1", 0.9), ("2", 1.0), ("1", 1.01)], [EARLY, EARLY, COUNTS]),
        ([("1", 0.1), ("1", 1.4), ("1", 1.44)], [EARLY, COUNTS, COUNTS]),
    ],
)
def test_a_key_counts_by_its_time_after_the_drawing(keys: list[tuple[str, float]], expected: list[KeyVerdict]) -> None:
    """What is in sight was drawn at 1.0 s."""
    assert verdicts(1.0, keys) == expected


def test_a_drawing_that_another_one_overtook_does_not_count() -> None:
    guard = KeyGuard()
    first, second = guard.expect_redraw(), guard.expect_redraw()
    first()
    assert guard.drawn_s is None
    second()
    assert guard.drawn_s is not None
    assert guard.verdict(key("1", guard.drawn_s)) is EARLY
