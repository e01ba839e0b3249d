"""The dashboard over a socket, for tests: a session that has come some way."""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.segment import Segment
from textual._context import visible_screen_stack
from textual.pilot import Pilot
from textual.widgets import Input

from harness.dashboard.app import Dashboard
from harness.dashboard.key_guard import GuardedApp
from harness.model.feed import StateWord
from harness.model.judgment import Category
from harness.model.record import AttemptStarted, JudgmentGiven, MarkSet, NoteWritten, TrialStarted
from harness.model.trial import Outcome, Recognition
from harness.session.engine.feed import EngineClient
from tests.dashboard.engine_double import START_S, EngineDouble, write_clip
from tests.unit.session.figures.rows import Rows, judgment_on, planned

SMALL, LARGE = (80, 24), (120, 36)
sizes = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
QUERIES = (
    "what time is it",
    "set a timer for ten minutes",
    "add milk to the shopping list",
    "what is seven times eight",
    "how warm is it in the cellar",
    "play something quiet",
)


def some_way(folder: Path) -> Rows:
    """Twelve trials, seven of them ended in all sorts of ways, the eighth running."""
    rows = Rows()
    trials = [planned(n, QUERIES[n % len(QUERIES)], f"kitchen-{n:02}") for n in range(1, 13)]
    rows.start(*trials, title="Kitchen evening")
    first = write_clip(folder, "a.flac")
    rows.trial("kitchen-01", clip=first, text="set a timer for ten minutes starting now", latency_s=0.84)
    rows.trial("kitchen-02", attempts=2, clip=write_clip(folder, "b.flac", 2.0), text="milk is on the list")
    rows.trial("kitchen-03", Outcome.MISHEARD, Recognition.NO, attempts=3, latency_s=None)
    rows.trial("kitchen-04", Outcome.NO_WAKE, Recognition.NO, attempts=3, latency_s=None)
    rows.trial("kitchen-05", clip=write_clip(folder, "c.flac", 1.6), text="I don't know that yet", latency_s=1.31)
    rows.trial("kitchen-06", Outcome.INCONCLUSIVE, Recognition.UNKNOWN)
    rows.trial("kitchen-07", Outcome.LATE, clip=write_clip(folder, "d.flac"), text="it is noon", latency_s=8.6)
    rows.add(JudgmentGiven(judgment_on("kitchen-01", first, "j1", category=Category.CORRECT)))
    rows.add(NoteWritten("door slammed", "ann"))
    rows.add(MarkSet("fridge started", "ann"))
    rows.add(TrialStarted("kitchen-08", 1), 1.0)
    rows.add(AttemptStarted("kitchen-08", 1, 1, "p", "c", 0.5, 1.5, 1.6, None))
    return rows


def double(folder: Path, **more: bool) -> EngineDouble:
    engine = EngineDouble(folder, some_way(folder), **more)
    engine.state = type(engine.state)(StateWord.LISTENING, START_S, None, "kitchen-08", 1)
    return engine


def dashboard(engine: EngineDouble) -> Dashboard:
    return Dashboard(partial(EngineClient, engine.socket_path), "ann", now=lambda: START_S)


@asynccontextmanager
async def opened(
    engine: EngineDouble,
    size: tuple[int, int] = SMALL,
    text: str = "7 of 12",
    make: Callable[[EngineDouble], Dashboard] = dashboard,
) -> AsyncIterator[tuple[EngineDouble, Dashboard, Pilot[int]]]:
    """A dashboard on an engine's double, once it shows the text."""
    with engine:
        app = make(engine)
        async with app.run_test(size=size) as pilot:
            await until(pilot, shows(pilot, text))
            yield engine, app, pilot


async def until(pilot: Pilot[Any], predicate: Callable[[], object], within_s: float = 180.0) -> None:
    """Lets the app work until the predicate holds, and what is in sight is drawn, so that keys count."""
    limit = time.monotonic() + within_s
    asked_s = time.monotonic()
    while not predicate():
        assert time.monotonic() < limit, f"it did not come about in time; the screen:\n{screen_text(pilot)}"
        await pilot.pause()
        await asyncio.sleep(min(0.3, max(0.02, 4 * (time.monotonic() - asked_s))))  # the app needs the processor, too
        asked_s = time.monotonic()
    app = pilot.app
    while isinstance(app, GuardedApp) and app.return_value is None and app.guard.drawn_s is None:
        assert time.monotonic() < limit, f"it was not drawn in time; the screen:\n{screen_text(pilot)}"
        await pilot.pause(0.01)


async def press_until(pilot: Pilot[Any], predicate: Callable[[], object], *keys: str) -> None:
    """Presses keys, then waits as `until` does."""
    await pilot.press(*keys)
    await until(pilot, predicate)


async def still(pilot: Pilot[Any], for_s: float = 0.25) -> None:
    """Waits until the screen has stood still: for a picture, which has no text of its own to wait for."""
    for field in pilot.app.screen.query(Input):
        field.cursor_blink = False  # it would be on one picture and not on another
    screen, since = "", time.monotonic()
    while time.monotonic() < since + for_s:
        await pilot.pause(0.05)
        if (now := screen_text(pilot)) != screen:
            screen, since = now, time.monotonic()


def segments(pilot: Pilot[Any]) -> list[list[Segment]]:
    """What would be written to the terminal, row by row."""
    width, height = pilot.app.size
    # What lies behind a panel is drawn with it, and kept: without this, a picture taken later may have an empty ground.
    visible_screen_stack.set(pilot.app._background_screens)
    return [list(strip) for strip in pilot.app.screen._compositor.render_strips()][:height] if width else []


def raw(pilot: Pilot[Any]) -> list[str]:
    """Characters on the screen that a terminal could obey or that turn the text around."""
    characters: list[str] = []
    for row in segments(pilot):
        for segment in row:
            characters += [c for c in segment.text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
            assert segment.control is None
    return characters


def screen_text(pilot: Pilot[Any]) -> str:
    return "\n".join("".join(segment.text for segment in row) for row in segments(pilot))


def shows(pilot: Pilot[Any], text: str) -> Callable[[], bool]:
    return lambda: text in screen_text(pilot)
