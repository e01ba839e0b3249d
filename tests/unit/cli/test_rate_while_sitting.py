"""What happens to a session while somebody sits at it in plain lines."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.cli.rate_plain import sit_plainly
from harness.model.judgment import RaterKeys
from harness.rating.rating_room import open_room
from tests.rating_sessions import rating_session

BEFORE = Mapping[int, Callable[[], object]]


class Lines(io.StringIO):
    """A script; `before` does something before the line of that number, counted from 0, is read."""

    def __init__(self, text: str, before: BEFORE) -> None:
        super().__init__(text)
        self._before = before
        self._number = 0

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        if (happens := self._before.get(self._number)) is not None:
            happens()
        self._number += 1
        return super().readline()


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return rating_session(tmp_path / "s1", 12, effects=True)


def sit(session: Path, lines: str, before: BEFORE) -> int:
    room = open_room([session])
    try:
        return sit_plainly(room, room.desk("ann"), RaterKeys(), None, adjudicating=False, source=Lines(lines, before))
    finally:
        room.close()


def looked(session: Path) -> Result:
    arguments = ["effects", str(session), "--answer", "timer-den-10", "right", "--by", "dora"]
    return CliRunner().invoke(group, arguments)


def test_a_response_that_is_known_now_is_shown_before_it_can_be_labelled(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = sit(session, "1\n" * 11 + "status\n", {11: lambda: looked(session)})
    told = capsys.readouterr().out
    assert status == 0
    assert "nothing is left to judge: 11 of 12 done, 1 held" in told
    after = told.partition("nothing is left")[2]
    assert "query: set a timer for ten minutes" in after
    assert "1 left" in after


def test_a_session_that_is_gone_is_told_and_nothing_is_taken_for_saved(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = sit(session, "1\nstatus\n1\n", {1: lambda: shutil.rmtree(session)})
    told = capsys.readouterr()
    assert "sessions cannot be read again" in told.err
    assert (status, told.out.count("saved as")) == (3, 1)
