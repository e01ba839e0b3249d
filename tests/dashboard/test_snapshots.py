"""How the screens look, at both sizes (renew with --snapshot-update after looking at the report)."""

from pathlib import Path
from typing import Protocol

import pytest
from textual.pilot import Pilot

from harness.dashboard.screens.wake import UnmatchedList
from harness.dashboard.widgets.bars import RowList
from harness.dashboard.widgets.response import ClipShape
from harness.dashboard.widgets.run import EventLog, TrialList
from harness.model.feed import StateWord
from harness.model.record import Paused
from tests.dashboard.bench import dashboard, double, press_until, shows, sizes, until
from tests.dashboard.engine_double import START_S
from tests.dashboard.frame_bench import frame_double
from tests.dashboard.wake_bench import NAMES, wake_dashboard, wake_double

SCREENS = ("run", "asking", "rating", "paused", "gone")


async def drawn(pilot: Pilot[int], running: str = "kitchen-08") -> None:
    """Waits for what comes after the figures: clips are read in a thread, lists are scrolled when they are laid out."""
    await until(pilot, lambda: all(wave.is_drawn for wave in pilot.app.screen.query(ClipShape)))
    run = pilot.app.screen_stack[1]
    # A screen behind a panel is not laid out again: a list without its scroll bar by then would stay without it.
    await until(
        pilot,
        lambda: all(
            row_list.vertical_scrollbar.size.height or not row_list.max_scroll_y for row_list in run.query(RowList)
        ),
    )
    await until(pilot, lambda: all(log.scroll_offset.y == log.max_scroll_y for log in run.query(EventLog)))
    trials = run.query_one(TrialList)
    await until(pilot, lambda: trials.selected is not None and trials.selected.trial.id == running)
    # Where the list stands depends on how high it was when it was scrolled: it is scrolled once more, from its top.
    trials.scroll_home(animate=False, force=True, immediate=True)
    trials.action_follow()
    await until(pilot, lambda: trials.is_selection_visible)
    await until(pilot, lambda: all(bar_fits(row_list) for row_list in run.query(RowList)))
    await pilot.pause()


def bar_fits(rows: RowList) -> bool:
    """The scroll bar stands where the list does: a list that has become lower tells its bar later."""
    bar = rows.vertical_scrollbar
    shown = (bar.position, bar.window_size, bar.window_virtual_size)
    return not rows.max_scroll_y or shown == (
        rows.scroll_y, rows.scrollable_content_region.height, rows.virtual_size.height
    )  # fmt: skip


class Compare(Protocol):
    def __call__(self, app: object, *, terminal_size: tuple[int, int], run_before: object) -> bool: ...


@sizes
@pytest.mark.parametrize("screen", SCREENS)
def test_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snap_compare: Compare, screen: str, size: tuple[int, int]
) -> None:
    # A relative folder, since pytest's own is another at each run and is shown on the screen.
    monkeypatch.chdir(tmp_path)
    with double(tmp_path) as engine:
        engine.named = "."
        app = dashboard(engine)

        async def before(pilot: Pilot[int]) -> None:
            await until(pilot, shows(pilot, "7 of 12"))
            await until(pilot, shows(pilot, "-41 dBFS"))
            await drawn(pilot)
            match screen:
                case "asking":
                    engine.say(StateWord.ASKING, trial_id="kitchen-08", attempt=1, until_s=START_S + 42)
                    await until(pilot, shows(pilot, "42 s left to answer"))
                case "rating":
                    await press_until(pilot, shows(pilot, "milk is on the list"), "j")
                case "paused":
                    engine.log(Paused("lunch", "ann"))
                    engine.say(StateWord.PAUSED, trial_id="kitchen-08", attempt=1, reason="paused by ann: lunch")
                    await until(pilot, shows(pilot, "paused by ann: lunch, p continues · trial 8 of 12 · attempt 1"))
                case "gone":
                    engine.die()
                    await until(pilot, shows(pilot, "The engine is gone"))
            await drawn(pilot)

        assert snap_compare(app, terminal_size=size, run_before=before)


@sizes
@pytest.mark.parametrize("devices", [1, 2, 4])
def test_wake_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snap_compare: Compare, devices: int, size: tuple[int, int]
) -> None:
    monkeypatch.chdir(tmp_path)
    with wake_double(tmp_path, NAMES[:devices]) as engine:
        engine.named = "."
        app = wake_dashboard(engine)

        async def before(pilot: Pilot[int]) -> None:
            await until(pilot, shows(pilot, "87 of 90"))
            await until(pilot, shows(pilot, "00:47:29" if devices == 2 else "to review"))
            last = engine.rows.entries[-1].seq
            await until(pilot, lambda: app.watch_.view().progress.seq == last)
            app.redraw()
            events = pilot.app.screen.query_one(UnmatchedList)
            await until(pilot, lambda: events.selected is not None and events.scroll_offset.y == 0)

        assert snap_compare(app, terminal_size=size, run_before=before)


@sizes
def test_frame_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snap_compare: Compare, size: tuple[int, int]
) -> None:
    monkeypatch.chdir(tmp_path)
    with frame_double(tmp_path) as engine:
        engine.named = "."
        app = dashboard(engine)

        async def before(pilot: Pilot[int]) -> None:
            await until(pilot, shows(pilot, "4 of 5"))
            await until(pilot, shows(pilot, "-41 dBFS"))
            await until(pilot, shows(pilot, "Last frame, ×3: timer_and_eggs"))
            await drawn(pilot, "read_list")

        assert snap_compare(app, terminal_size=size, run_before=before)
