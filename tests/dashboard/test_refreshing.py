"""What comes to sessions from elsewhere is read again every so often."""

import time
from pathlib import Path

from textual.message import Message

from harness.dashboard.messages import RoomRead
from harness.dashboard.rater_threads import RefreshThread
from harness.model.judgment import Category
from tests.rating_sessions import open_room, rating_session
from tests.seen import until


def test_rows_from_elsewhere_appear_and_faults_are_reported(tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 3)
    room, messages = open_room([session]), list[Message]()
    assert open_room([session]).desk("bob").judge(Category.WRONG)
    refreshing = RefreshThread(room, messages.append, interval_s=0.02)
    try:
        until(lambda: messages)
        assert [row.category for row in room.rows] == [Category.WRONG]
        (tmp_path / "s1").rename(tmp_path / "gone")
        count = len(messages)
        until(lambda: len(messages) >= count + 2)
        last = messages[-1]
        assert isinstance(last, RoomRead)
        assert last.fault
    finally:
        refreshing.close()
    count = len(messages)
    time.sleep(0.1)
    assert len(messages) == count, "nothing is told after the close"
