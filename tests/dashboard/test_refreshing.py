"""What comes to sessions from elsewhere is read again every so often."""

import time
from pathlib import Path

from textual.message import Message

from harness.dashboard.listening import Refreshing
from harness.dashboard.messages import RoomRead
from harness.model.judgment import Category
from harness.rating.rating_room import open_room
from tests.rating_sessions import rating_session


def told_within(told: list[Message], count: int, limit_s: float = 20.0) -> None:
    limit = time.monotonic() + limit_s
    while len(told) < count:
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_rows_from_elsewhere_come_and_a_fault_is_told(tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 3)
    room, told = open_room([session]), list[Message]()
    assert open_room([session]).desk("bob").judge(Category.WRONG)
    refreshing = Refreshing(room, told.append, every_s=0.02)
    try:
        told_within(told, 1)
        assert [row.category for row in room.rows] == [Category.WRONG]
        (tmp_path / "s1").rename(tmp_path / "gone")
        told_within(told, len(told) + 2)
        last = told[-1]
        assert isinstance(last, RoomRead)
        assert last.fault
    finally:
        refreshing.close()
    count = len(told)
    time.sleep(0.1)
    assert len(told) == count, "nothing is told after the close"
