"""An annotator's terminal on real projects, for tests."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from harness.annotation.project import AnnotationRoom
from harness.dashboard.annotation_app import AnnotationApp
from harness.dashboard.screens.annotating import AnnotatingScreen
from tests.dashboard.bench import screen_text, until
from tests.dashboard.seats import SIZES, SMALL, WIDE, press

__all__ = ["SIZES", "SMALL", "WIDE", "press", "ready", "seated", "shown"]


def seated(folder: Path, annotator: str = "ann", *, adjudicating: bool = False) -> AnnotationApp:
    """An annotator's app on a project."""
    room = AnnotationRoom(folder)
    return AnnotationApp(room, room.adjudication(annotator) if adjudicating else room.desk(annotator))


async def ready(pilot: Pilot[int]) -> None:
    """Waits until the screen takes keys that write."""
    await until(pilot, lambda: isinstance(pilot.app.screen, AnnotatingScreen))
    await pilot.pause()


def shown(pilot: Pilot[int]) -> str:
    return screen_text(pilot)
