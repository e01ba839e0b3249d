"""The device monitor on a terminal: hostile lines, floods, keys, a profile that is saved meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

from harness.dashboard.screens.monitor import MAX_ROWS, MonitorApp
from harness.devices.device_monitor import DeviceMonitor
from harness.devices.device_sources import DeviceOutputQueue, output_now
from tests.dashboard.bench import LARGE, SMALL, raw, screen_text, shows, sizes, until
from tests.files import file_with

LAMP = """\
device: lamp
wake_phrases: [hey lamp]
reports: [wake]
lines:
  - {match: '^WAKE (?P<phrase>.+)$', kind: wake}
"""
HOSTILE = b"[/red] [wake] [@click=app.quit]x[/]\x1b]0;owned\x07\x1b[2J\x9b31m\xe2\x80\xae\xe2\x80\x8bgnp\xff\t"


class Bench:
    """A source whose bytes the test gives."""

    name = "[/red] bench \x1b[2J"
    live = True
    ended = False
    trouble = ""

    def __init__(self) -> None:
        self.queue = DeviceOutputQueue()

    def open(self) -> None: ...

    def close(self) -> None: ...

    def say(self, data: bytes) -> None:
        self.queue.put(output_now(data))


def app(folder: Path, source: Bench, profile: str = LAMP) -> MonitorApp:
    path = file_with(folder / "lamp.yaml", profile)
    return MonitorApp(DeviceMonitor(str(path), Path()), source, folder / "samples.yaml", unmapped=False)


@sizes
async def test_lines_and_their_observations_are_shown_side_by_side(tmp_path: Path, size: tuple[int, int]) -> None:
    source = Bench()
    async with app(tmp_path, source).run_test(size=size) as pilot:
        source.say(b"WAKE hey lamp\nsomething else\n" + HOSTILE + b"\nWAKE " + HOSTILE + b"\n")
        await until(pilot, shows(pilot, "lines 4, not mapped 2"))
        text = screen_text(pilot)
        row = next(line for line in text.splitlines() if "WAKE hey lamp" in line)
        assert row.index("WAKE hey lamp") < row.index("kind: wake, phrase")
        assert "not mapped" in next(line for line in text.splitlines() if "something else" in line)
        assert "[/red] [wake]" in text
        assert raw(pilot) == []


async def test_a_flood_is_survived_and_keys_work_in_it(tmp_path: Path) -> None:
    source = Bench()
    monitor = app(tmp_path, source)
    async with monitor.run_test(size=SMALL) as pilot:
        for _ in range(200):
            source.say(HOSTILE * 100 + b"\nWAKE hey lamp\n" + b"tick\n" * 1000)
        began_s = time.process_time()
        await until(pilot, shows(pilot, "bytes arrived too fast"))
        await pilot.press("space")
        await until(pilot, shows(pilot, "PAUSED"))
        assert time.process_time() - began_s < 10
        assert raw(pilot) == []
        assert monitor.query_one("#rows").count <= MAX_ROWS  # type: ignore[attr-defined]


async def test_the_monitor_pauses_filters_and_copies(tmp_path: Path) -> None:
    source = Bench()
    async with app(tmp_path, source).run_test(size=LARGE) as pilot:
        source.say(b"WAKE hey lamp\ntick 1\ntick 2\n")
        await until(pilot, shows(pilot, "tick 2"))
        await pilot.press("space")
        source.say(b"tick 3\n")
        await until(pilot, shows(pilot, "PAUSED, 1 wait"))
        assert "tick 3" not in screen_text(pilot)
        await pilot.press("up", "up", "c")
        await until(pilot, shows(pilot, "paste it under"))
        copied = (tmp_path / "samples.yaml").read_text(encoding="utf-8")
        assert copied == "  - lines: ['WAKE hey lamp']\n    gives: [{kind: wake, phrase: 'hey lamp'}]\n"
        await pilot.press("u")
        await until(pilot, lambda: "WAKE hey lamp" not in screen_text(pilot))
        await pilot.press("end")
        await until(pilot, shows(pilot, "tick 3"))
        await pilot.press("question_mark")
        await until(pilot, shows(pilot, "adds the chosen line to a file"))


async def test_a_saved_profile_maps_the_lines_anew_and_its_errors_have_a_place(tmp_path: Path) -> None:
    source = Bench()
    async with app(tmp_path, source).run_test(size=LARGE) as pilot:
        source.say(b"GO hey lamp\n")
        await until(pilot, shows(pilot, "lines 1, not mapped 1"))
        path = file_with(tmp_path / "lamp.yaml", LAMP.replace("kind: wake}", "kind: wak}"))
        await until(pilot, shows(pilot, "lamp.yaml:5:"))
        path.write_text(LAMP.replace("WAKE", "GO"), encoding="utf-8")
        await until(pilot, shows(pilot, "kind: wake, phrase: 'hey lamp'"))
        assert "lamp.yaml:5:" not in screen_text(pilot)
