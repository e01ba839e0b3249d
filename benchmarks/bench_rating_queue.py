"""How long raters wait for a room of ten sessions with 1,000 responses each, beside a plain read of the logs."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sizes import sized

from harness.model.judgment import Category
from harness.session.log.reader import LogReader
from tests.rating_sessions import open_room, rating_sessions

SESSIONS, RESPONSES = sized(10, 2), sized(1000, 10)
KEYS = sized(200, 5)


def median_s(work: Callable[[], object], runs: int = 1) -> float:
    """The median wall clock of so many runs: what raters wait for."""
    walls_s = []
    for _ in range(runs):
        began_s = time.perf_counter()
        work()
        walls_s.append(time.perf_counter() - began_s)
    return statistics.median(walls_s)


def read_logs(folders: list[Path]) -> None:
    for folder in folders:
        with LogReader(folder) as reader:
            for _ in reader.entries():
                pass


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        folders = rating_sessions(Path(root), *[RESPONSES] * SESSIONS, effects=True)
        plain_s = median_s(lambda: read_logs(folders))
        open_s = median_s(lambda: open_room(folders).close())
        room = open_room(folders)
        idle_s = median_s(room.refresh, 5)
        desk = room.desk("ann")
        seat_s = median_s(lambda: room.desk("ben"), 3)

        def press_key() -> None:
            desk.judge(Category.CORRECT)
            assert desk.view.count.total == SESSIONS * RESPONSES

        key_s = median_s(press_key, KEYS)

        def read_another_raters_row() -> None:
            room.desk("cem").judge(Category.WRONG)
            room.refresh()
            desk.refresh(room.items, room.rows)

        another_row_s = median_s(read_another_raters_row, 3)
        room.close()
    print(f"{SESSIONS} sessions of {RESPONSES} responses")
    print(f"  plain read of the logs            {plain_s:8.3f} s")
    print(f"  a room is opened                  {open_s:8.3f} s  {open_s / plain_s:6.2f} of the plain read")
    print(f"  … reads again, nothing is new     {idle_s:8.3f} s  {idle_s / plain_s:6.2f}")
    print(f"  … another rater's row, desk anew  {another_row_s:8.3f} s  {another_row_s / plain_s:6.2f}")
    print(f"  a rater is seated                 {seat_s:8.3f} s")
    print(f"  a key: saved, next item, counts   {key_s:8.3f} s  (median of {KEYS})")


if __name__ == "__main__":
    main()
