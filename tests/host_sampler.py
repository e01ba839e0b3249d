"""Samples whether the host keeps time, in a process of its own: `python -S -m tests.host_sampler RUN FILE`.

Sleeps for 10 ms again and again, and notes how late it wakes. Every quarter of a second, and after each stall, it
appends a line of JSON to the file: how late it woke at most, how many blocks of 20 ms it would have lost, and how much
processor time each group of processes took meanwhile. A group is a worker of the run, by the mark in its environment;
"steal" is what the hypervisor took; "outside" is everything else. Ends with its parent.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

from tests.leftovers import mark_of, within

TICK_S = 0.01
WINDOW_S = 0.25
STALL_S = 0.03
BLOCK_S = 0.02
OUTSIDE, STEAL = "outside", "steal"
_JIFFY_S = 1.0 / os.sysconf("SC_CLK_TCK")


def processor_times() -> tuple[float, float, float]:
    """Seconds since the boot that the processors have worked, that the hypervisor has taken, and that there were."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    worked = user + nice + system + irq + softirq
    return worked * _JIFFY_S, steal * _JIFFY_S, (worked + steal + idle + iowait) * _JIFFY_S


class Groups:
    """Processor time of the groups of a run."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._known: dict[tuple[str, str], str | None] = {}

    def _group(self, name: str) -> str | None:
        """The name of the worker, or "" for the run itself; None for others."""
        mark = mark_of(name)
        return mark[len(self._run) + 1 :].partition("/")[0] if within(mark, self._run) else None

    def times(self) -> dict[str, float]:
        """Seconds so far, with those of children that have ended and were waited for."""
        seconds: dict[str, float] = defaultdict(float)
        groups = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                stat = Path(f"/proc/{name}/stat").read_bytes()
            except OSError:
                continue
            fields = stat.rpartition(b")")[2].split()
            key = name, fields[19].decode()
            groups[key] = self._known[key] if key in self._known else self._group(name)
            if (group := groups[key]) is not None:
                seconds[group] += sum(map(int, fields[11:15])) * _JIFFY_S
        self._known = groups
        return seconds


def main(run: str, path: str) -> None:
    parent, groups = os.getppid(), Groups(run)
    with open(path, "a", encoding="ascii", buffering=1) as file:
        begun_s, times, (worked_s, stolen_s, _) = time.monotonic(), groups.times(), processor_times()
        worst_s, lost, due_s = 0.0, 0, time.monotonic() + TICK_S
        while os.getppid() == parent:
            time.sleep(max(0.0, due_s - time.monotonic()))
            now_s = time.monotonic()
            late_s = now_s - due_s
            worst_s = max(worst_s, late_s)
            lost += int(late_s / BLOCK_S)
            if now_s - begun_s >= WINDOW_S or late_s >= STALL_S:
                new_times, (new_worked_s, new_stolen_s, _) = groups.times(), processor_times()
                # A process that ended without anyone waiting for it takes its time with it.
                took = {group: max(0.0, time_s - times.get(group, 0.0)) for group, time_s in new_times.items()}
                took[OUTSIDE] = max(0.0, new_worked_s - worked_s - sum(took.values()))
                took[STEAL] = new_stolen_s - stolen_s
                line = {"from": begun_s, "to": now_s, "late": worst_s, "lost": lost, "took": took}
                file.write(json.dumps(line) + "\n")
                times, worked_s, stolen_s = new_times, new_worked_s, new_stolen_s
                begun_s, worst_s, lost = now_s, 0.0, 0
            due_s = time.monotonic() + TICK_S


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
