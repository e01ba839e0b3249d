"""A rater's screen in a window that is too low: what is out of sight is named, and nothing that one needs is."""

from __future__ import annotations

from pathlib import Path

from tests.dashboard.bench import screen_text
from tests.dashboard.seats import press, seated, sitting
from tests.rating_sessions import rating_session

LOW = (60, 15)


async def test_keys_and_answers_that_do_not_fit(tmp_path: Path) -> None:
    async with sitting(seated(rating_session(tmp_path / "s1", 2)), LOW) as (_app, pilot):
        text = screen_text(pilot)
        assert "0 - … 24 lines show all keys" in text
        await press(pilot, "?")
        text = screen_text(pilot)
        assert all(f"  {letter} " in text for letter in "abcd")
        assert "escape" in text
        assert "seen by the harness)\n" not in text
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "query heard" in screen_text(pilot)
