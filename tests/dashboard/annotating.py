"""An annotator's terminal on real projects, for tests."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from harness.dashboard.annotation_app import AnnotationApp
from harness.dashboard.screens.annotating import AnnotatingScreen
from harness.rig.annotation_room import AnnotationRoom
from tests.annotation_projects import rows
from tests.dashboard.bench import screen_text, until

SMALL, WIDE = (80, 24), (120, 40)
SIZES = {"80x24": SMALL, "120x40": WIDE}


def seated(folder: Path, annotator: str = "ann", *, adjudicating: bool = False) -> AnnotationApp:
    """An annotator's app on a project."""
    room = AnnotationRoom(folder)
    return AnnotationApp(room, room.adjudication(annotator) if adjudicating else room.desk(annotator))


async def ready(pilot: Pilot[int]) -> None:
    """Waits until the screen takes keys that write."""
    await until(pilot, lambda: isinstance(pilot.app.screen, AnnotatingScreen) and pilot.app.screen._drawn)
    await pilot.pause()


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Keys as a person presses them: each after the last one has been drawn, none of them held down."""
    for key in keys:
        app = pilot.app
        assert isinstance(app, AnnotationApp)
        before = len(rows(app._annotating._room.folder.path))
        await pilot.press(key)
        await pilot.pause()
        if isinstance(app.screen, AnnotatingScreen):
            await ready(pilot)
            await pilot.pause(0.09 if len(rows(app._annotating._room.folder.path)) > before else 0)


def shown(pilot: Pilot[int]) -> str:
    return screen_text(pilot)
