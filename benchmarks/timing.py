"""How long work takes: wall clock, and processor time of this process and of programs that it runs."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")
HARNESS = [sys.executable, "-c", "from harness.cli import main; main()"]
"""The `harness` of this tree, also where another one is installed."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of wall clock, and of processor time."""

    wall_s: float
    cpu_s: float


def children_cpu_s() -> float:
    """Processor time so far of all programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def total_cpu_s() -> float:
    """Processor time so far of this process, and of all programs that have ended."""
    return time.process_time() + children_cpu_s()


def quickest(work: Callable[[], object], rounds: int, cpu_clock: Callable[[], float] = total_cpu_s) -> Times:
    """The least wall clock and the least processor time of several rounds: load on the machine then matters little."""
    times = []
    for _ in range(rounds):
        began_s, cpu_began_s = time.perf_counter(), cpu_clock()
        work()
        times.append(Times(time.perf_counter() - began_s, cpu_clock() - cpu_began_s))
    return Times(min(round_.wall_s for round_ in times), min(round_.cpu_s for round_ in times))


def quickest_program(command: Sequence[str], rounds: int) -> Times:
    """The same for a program, its start-up included. Discards its output; CalledProcessError if it fails."""
    return quickest(
        lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), rounds, cpu_clock=children_cpu_s
    )


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """The result of the work, and its processor seconds in this process."""
    began_s = time.process_time()
    result = work()
    return result, time.process_time() - began_s
