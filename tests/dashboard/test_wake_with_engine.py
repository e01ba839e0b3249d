"""The wake screen with the real engine: what its users do, and what the log says then."""

from pathlib import Path

from harness.dashboard.screens.wake import UnmatchedList, WakeScreen
from harness.model.record import EndReason, EventReviewed, ReviewWord, SessionFinished
from harness.wake.wake import WakeFigures
from tests.conformance.engine_runs import Runs, rows, runs, wait_for
from tests.dashboard.bench import LARGE, SMALL, shows, until
from tests.dashboard.test_with_engine import begin, dashboard, found, leave

__all__ = ["runs"]


def figures(folder: Path) -> WakeFigures:
    made = WakeFigures()
    for entry in rows(folder):
        made.add(entry)
    return made


async def test_events_are_reviewed_while_the_run_goes_on_and_the_figures_follow(runs: Runs) -> None:
    folder, place = begin(runs, "wake.yaml", "wake_bench.yaml")
    app = dashboard(place)
    async with app.run_test(size=SMALL) as pilot:
        await until(
            pilot, lambda: isinstance(app.screen, WakeScreen) and bool(app.screen.query(UnmatchedList)), within_s=40
        )
        events = app.screen.query_one(UnmatchedList)
        await until(pilot, lambda: events.selected is not None, within_s=60)
        first = events.selected
        assert first is not None
        await pilot.press("h")
        await until(pilot, lambda: found(folder, EventReviewed))
        assert found(folder, EventReviewed) == [EventReviewed(first.seq, ReviewWord.REAL_PERSON, "ann")]
        await until(pilot, shows(pilot, f"event {first.seq}: real person: done"))
        await until(pilot, shows(pilot, "all played"), within_s=60)
        await until(pilot, shows(pilot, "same 20: only 1st"))
        progress = app.watch_.view().wake
        assert progress == figures(folder).snapshot(), "the screen and the log say the same"
        assert {one.device: one.false_rejects.share.total for one in progress.devices} == {"shelf": 20, "wired": 20}
        reviewed = next(one for one in progress.unmatched if one.seq == first.seq)
        assert reviewed.word is ReviewWord.REAL_PERSON
        await pilot.press("u")
        await until(pilot, lambda: len(found(folder, EventReviewed)) == 2)
        assert found(folder, EventReviewed)[-1] == EventReviewed(first.seq, None, "ann")
        assert await leave(pilot, app) == 0
    assert found(folder, SessionFinished) == [SessionFinished(EndReason.COMPLETED)]
    wait_for(lambda: not place.alive)


async def test_who_comes_back_sees_the_same_figures(runs: Runs) -> None:
    folder, place = begin(runs, "wake.yaml", "wake_bench.yaml")
    first = dashboard(place)
    async with first.run_test(size=LARGE) as pilot:
        await until(pilot, lambda: isinstance(first.screen, WakeScreen), within_s=40)
        await until(pilot, lambda: first.watch_.view().wake.counted >= 3, within_s=40)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: first.return_value is not None)
    again = dashboard(place)
    async with again.run_test(size=LARGE) as pilot:
        await until(pilot, shows(pilot, "all played"), within_s=60)
        assert again.watch_.view().wake == figures(folder).snapshot()
        assert await leave(pilot, again) == 0
    wait_for(lambda: not place.alive)
