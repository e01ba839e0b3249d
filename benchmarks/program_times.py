"""How long a program takes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence


def timed(command: Sequence[str], rounds: int) -> tuple[float, float]:
    """Wall clock and processor seconds of the quickest of several rounds, start-up and all."""
    took = []
    for _ in range(rounds):
        began, before = time.perf_counter(), os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        took.append((time.perf_counter() - began, cpu))
    return min(wall for wall, _ in took), min(cpu for _, cpu in took)
