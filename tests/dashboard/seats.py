"""A rater's terminal on real sessions, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from harness.dashboard.key_guard import REPEAT_S, GuardedApp
from harness.dashboard.sitting_app import SittingApp
from harness.dashboard.widgets.verbatim_input import VerbatimInput
from harness.model.judgment import Category, Judgment, RaterKeys, RatingRound
from harness.model.record import JudgmentGiven
from harness.rating.rater_player import RaterPlayer
from harness.session.log.reader import rating_rows
from tests.dashboard.bench import screen_text, shows, until
from tests.judged_sessions import clips_of, give, judged
from tests.rating_sessions import open_room

SMALL, WIDE = (80, 24), (120, 40)
APART_S = REPEAT_S + 0.01
SIZES = {"80x24": SMALL, "120x40": WIDE}


def seated(
    folders: Path | Sequence[Path],
    rater: str = "ann",
    round_: RatingRound | None = None,
    keys: RaterKeys | None = None,
    player: RaterPlayer | None = None,
    *,
    adjudicating: bool = False,
    **more: Any,
) -> SittingApp:
    """A rater's app on session folders."""
    room = open_room([folders] if isinstance(folders, Path) else folders, round_)
    desk = room.adjudication(rater) if adjudicating else room.desk(rater)
    return SittingApp(room, desk, keys or RaterKeys(), player, **more)


async def ready(pilot: Pilot[int], text: str = "judge") -> None:
    """Waits until the screen shows a response with its sound drawn, and takes keys."""
    await until(pilot, shows(pilot, text))
    await until(pilot, lambda: "reading the sound" not in screen_text(pilot))
    await pilot.pause()


@asynccontextmanager
async def sitting(
    app: SittingApp, size: tuple[int, int] = SMALL, text: str = "judge"
) -> AsyncIterator[tuple[SittingApp, Pilot[int]]]:
    """The app, once it takes keys."""
    async with app.run_test(size=size) as pilot:
        await ready(pilot, text)
        yield app, pilot


def rows(folder: Path) -> list[Judgment]:
    """Judgments on the disk, oldest first, read anew."""
    return [entry.record.judgment for entry in rating_rows(folder) if isinstance(entry.record, JudgmentGiven)]


async def press(pilot: Pilot[int], *keys: str, then: str = "") -> None:
    """Keys as a person presses them: each after the last one has been drawn, and none of them held down.

    then: waits until the screen shows this text.
    """
    assert isinstance(pilot.app, GuardedApp)
    heard = pilot.app.guard._keys
    for key in ("minus" if key == "-" else key for key in keys):
        same_key = bool(heard) and heard[-1][0] == key
        await pilot.pause(APART_S if same_key else 0)
        await pilot.press(key)
        if same_key:
            await pilot.pause(2 * APART_S)  # the guard looks again after REPEAT_S
        await pilot.pause(0)  # what came by then is handled
        await until(pilot, lambda: not any(line._enters for line in pilot.app.screen.query(VerbatimInput)))
    if then:
        await until(pilot, shows(pilot, then))


def adjudication(session: Path) -> None:
    """Two raters differ on two responses; one of them has a comment to be read as it is."""
    clips = clips_of(session)
    first, second, third = list(clips)[:3]
    for rater, category in (("zoe", Category.CORRECT), ("yan", Category.WRONG)):
        give(
            session,
            [
                judged(
                    trial, clips[trial][1], rater, category, attempt=clips[trial][0], session_id="s1", comment=comment
                )
                for trial, comment in ((first, f"{rater[0]}: [/b]\x1b[2J why"), (second, ""))
            ]
            + [judged(third, clips[third][1], rater, Category.CORRECT, attempt=clips[third][0], session_id="s1")],
        )
