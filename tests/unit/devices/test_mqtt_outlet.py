"""A flood of log lines is bounded, and so is what is said of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from harness.devices.outlet import DriverOutlet
from harness.model.observation import LogLine, Observation
from harness.model.time import Stamp


def test_a_flood_is_told_of_every_ten_seconds_and_at_its_end() -> None:
    now = [0.0]
    seen: list[Observation] = []
    surroundings = SimpleNamespace(clock=SimpleNamespace(now_s=lambda: now[0]), profile=None, folder=Path())
    outlet = DriverOutlet("board", surroundings)  # type: ignore[arg-type]
    outlet.open(seen.append)
    for step in range(30_000):
        now[0] = step / 1000
        outlet.tell(LogLine("board", Stamp(now[0]), "x"))
    outlet.close()
    texts = [one.text for one in seen if isinstance(one, LogLine)]
    counts = [int(text.split()[0]) for text in texts if "left out" in text]
    assert len(counts) == 3
    assert sum(counts) == outlet.left_out == 30_000 - texts.count("x")
