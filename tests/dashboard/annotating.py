"""An annotator's terminal on real projects, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from harness.annotation.desk import AnnotationDesk
from harness.annotation.project import AnnotationRoom
from harness.dashboard.screens.annotating import AnnotatingScreen
from harness.dashboard.sitting_app import SittingApp
from tests.dashboard.bench import until
from tests.dashboard.seats import SIZES, SMALL, WIDE, press

__all__ = ["SIZES", "SMALL", "WIDE", "press", "ready", "seated"]


class AnnotatorApp(SittingApp):
    def __init__(self, room: AnnotationRoom, desk: AnnotationDesk) -> None:
        super().__init__(AnnotatingScreen(room, desk))
        self.desk, self.room = desk, room


def seated(folder: Path, annotator: str = "ann", *, adjudicating: bool = False) -> AnnotatorApp:
    """An annotator's app on a project."""
    room = AnnotationRoom(folder)
    return AnnotatorApp(room, room.adjudication(annotator) if adjudicating else room.desk(annotator))


async def ready(pilot: Pilot[int]) -> None:
    """Waits until the screen takes keys that write."""
    await until(pilot, lambda: isinstance(pilot.app.screen, AnnotatingScreen))
    await pilot.pause()


@asynccontextmanager
async def sitting(app: AnnotatorApp, size: tuple[int, int] = SMALL) -> AsyncIterator[tuple[AnnotatorApp, Pilot[int]]]:
    """The app, once it takes keys."""
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        yield app, pilot
