"""A rater's terminal on real sessions, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from harness.dashboard.rating_app import RatingApp
from harness.log.judgment_log import rating_rows
from harness.model.judgment import Judgment
from harness.model.rater_keys import RaterKeys
from harness.model.rating_round import RatingRound
from harness.model.record import JudgmentGiven
from harness.rig.rater_player import RaterPlayer
from harness.rig.rating_room import RatingRoom, open_room
from tests.dashboard.bench import screen_text, shows, until

SMALL, WIDE = (80, 24), (120, 40)
SIZES = {"80x24": SMALL, "120x40": WIDE}


def seated(
    folders: Path | Sequence[Path],
    rater: str = "ann",
    round_: RatingRound | None = None,
    keys: RaterKeys | None = None,
    player: RaterPlayer | None = None,
    **more: Any,
) -> RatingApp:
    """A rater's app on session folders."""
    room = open_room([folders] if isinstance(folders, Path) else folders, round_)
    adjudicating = bool(more.get("adjudicating"))
    desk = room.adjudication(rater) if adjudicating else room.desk(rater)
    return RatingApp(room, desk, keys or RaterKeys(), player, **more)


def room_of(app: RatingApp) -> RatingRoom:
    return app._judging._room


async def ready(pilot: Pilot[int], text: str = "judge") -> None:
    """Waits until the screen shows a response with its sound drawn, and takes keys."""
    await until(pilot, shows(pilot, text))
    await until(pilot, lambda: "reading the sound" not in shown(pilot))
    await pilot.pause()


def shown(pilot: Pilot[int]) -> str:
    return screen_text(pilot)


def rows(folder: Path) -> list[Judgment]:
    """Judgments on the disk, oldest first, read anew."""
    return [one.record.judgment for one in rating_rows(folder) if isinstance(one.record, JudgmentGiven)]
