"""Foreign text before a rater that tries to be markup, a terminal command or a page of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.user_text import MAX_TEXT_CHARS
from harness.model.effect import EffectCheck, EffectEvidence, EffectOutcome, EffectSource
from harness.model.judgment import Category, RaterKeys, RatingRound
from tests.dashboard.bench import raw, screen_text, until
from tests.dashboard.seats import SIZES, SittingApp, press, ready
from tests.dashboard.test_hostile import HOSTILE
from tests.judged_sessions import judged
from tests.rating_sessions import open_room, rating_session


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_hostile_text_in_every_field(tmp_path: Path, size: tuple[int, int]) -> None:
    room = open_room([rating_session(tmp_path / "s1", 3)], RatingRound(title=HOSTILE))
    evidence = EffectEvidence(EffectCheck(HOSTILE), EffectOutcome.WRONG, EffectSource.OPERATOR, HOSTILE)
    inputs = tuple(
        replace(judged("t", "sha", rater, Category.WRONG, comment=HOSTILE), aid_path=(HOSTILE,), sub_flags=())
        for rater in (HOSTILE, "b")
    )
    items = [
        replace(
            item, query=HOSTILE, transcript=HOSTILE, note=HOSTILE, effect=evidence,
            inputs=inputs,
        )
        for item in room.items
    ]  # fmt: skip
    desk = room.desk(HOSTILE)
    desk.refresh(items, ())
    app = SittingApp(room, desk, RaterKeys(), None, names=True)
    async with app.run_test(size=size) as pilot:
        await ready(pilot, "[/red]")
        assert raw(pilot) == []
        desk.set_comment(HOSTILE[:MAX_TEXT_CHARS])
        await press(pilot, "t", then="all text")
        assert raw(pilot) == []
        assert "[/red] [wake]" in screen_text(pilot)
        await press(pilot, "t", then="x" * 60)
        assert raw(pilot) == []
        await press(pilot, "escape", "question_mark", then="of at most")
        assert raw(pilot) == []
        await press(pilot, "escape", "c", then="Comment, saved")
        assert raw(pilot) == []
        await press(pilot, "escape", "1")
        await until(pilot, lambda: desk.view.position == 2 or "2 left" in screen_text(pilot))
        assert raw(pilot) == []
        exported = app.export_screenshot()
        assert not any(c in exported for c in "\x1b\x07\x9b\u202e\u200b")
