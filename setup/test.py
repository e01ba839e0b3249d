"""Runs all tests in groups, by what they need from the machine, and prints what failed and why tests were skipped.

usage: python setup/test.py [timed] [unit] [live]

Exits with 0 if none failed. Ctrl-C, TERM or KILL, also of the whole process group, ends everything that was started.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.host_sampler import processor_times  # noqa: E402 (the line above finds it)
from tests.leftovers import MARK, end_all, end_all_after  # noqa: E402

UNDECIDED_SHARE = 0.03
"""Of the tests of timing, so many may be undecided on a quiet host."""
QUIET_SHARE = 0.15
"""A host is quiet if programs other than ours use less of its processors."""
SLOWEST = 10
TIMED = tuple(
    str(path)
    for path in sorted(ROOT.glob("tests/*/**/test_*.py"))
    if re.search(r"host_keeps_time|mark\.sound|tested: sound", path.read_text("utf-8"))
)
GROUPS: dict[str, dict[str, Any]] = {
    # What keeps time has the machine to itself, with a core to spare.
    "timed": {"arguments": ("--timed=only", "-n3", *TIMED)},
    # Boards, brokers, browsers and screens mostly wait; unit tests take what they leave.
    "unit": {"arguments": ("--timed=without", "-n2", "tests/unit"), "nice": 10, "quiet": True},
    "live": {"arguments": ("--timed=without", "-n4", "tests/conformance", "tests/dashboard")},
}
"""The first runs alone, then the others side by side."""
_PR_SET_CHILD_SUBREAPER = 36


class Group:
    """A pytest process of its own process session. quiet: prints its output only at its end."""

    def __init__(
        self, folder: Path, name: str, *, arguments: tuple[str, ...], nice: int = 0, quiet: bool = False
    ) -> None:
        self.name = name
        self._outcomes = folder / f"{name}.json"
        self._output = (folder / f"{name}.txt").open("w+b") if quiet else None
        common = f"--outcomes={self._outcomes}", "--dist", "loadfile", "--no-loadscope-reorder"
        # A process session of its own: Ctrl-C reaches only us, and we end it.
        self.process = subprocess.Popen(
            ["nice", "-n", str(nice), sys.executable, "-m", "pytest", *common, *arguments], cwd=ROOT,
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output, start_new_session=True,
        )  # fmt: skip

    def finish(self) -> dict[str, dict[str, Any]]:
        """Prints what is left to print, once the process has ended. Returns how each test ended."""
        if self._output is not None:
            self._output.seek(0)
            sys.stdout.write(self._output.read().decode(errors="replace"))
            self._output.close()
        if self.process.returncode:
            print(f"pytest of the {self.name} tests exited with {self.process.returncode}")
        return json.loads(self._outcomes.read_text("utf-8")) if self._outcomes.exists() else {}


def wait(groups: list[Group]) -> dict[str, dict[str, Any]]:
    """Waits until all groups have ended, and returns how each test ended. Reaps every process that loses its parent."""
    running = {group.process.pid: group.process for group in groups}
    while running:
        pid, status = os.wait()
        if pid in running:
            running.pop(pid).returncode = os.waitstatus_to_exitcode(status)
    return {name: outcome for group in groups for name, outcome in group.finish().items()}


def seconds_of_work() -> tuple[float, float, float]:
    """Processor seconds since the boot: of all programs and the hypervisor, of our tests, and of all processors."""
    worked_s, stolen_s, all_s = processor_times()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return worked_s + stolen_s, usage.ru_utime + usage.ru_stime, all_s


def undecided_too_often(outcomes: dict[str, dict[str, Any]], others_share: float) -> bool:
    """Prints how many tests of timing are undecided. Returns whether these are more than a quiet host explains.

    others_share: of the processors, what other programs used.
    """
    timed = [outcome for outcome in outcomes.values() if outcome["timed"]]
    undecided = sum(outcome["word"] == "undecided" for outcome in timed)
    is_quiet = others_share < QUIET_SHARE
    print(
        f"\n{undecided} of {len(timed)} tests of timing undecided; other programs used {others_share:.0%} of the"
        f" processors meanwhile ({'quiet' if is_quiet else 'not quiet'})"
    )
    return is_quiet and undecided > UNDECIDED_SHARE * len(timed)


def report(outcomes: dict[str, dict[str, Any]]) -> None:
    """Prints the last lines: what failed and is undecided, why tests were skipped, the slowest, and the counts."""
    for word in ("failed", "undecided"):
        for name, outcome in outcomes.items():
            if outcome["word"] == word:
                print(f"{word.upper()} {name}" + (f": {outcome['why']}" if outcome["why"] else ""))
    print("\nskipped:")
    reasons = Counter(outcome["why"] for outcome in outcomes.values() if outcome["word"] == "skipped")
    for why, count in reasons.most_common():
        print(f"  {count:4}  {why}")
    print("slowest:")
    by_duration = sorted(outcomes.items(), key=lambda test: test[1]["seconds"], reverse=True)
    for name, outcome in by_duration[:SLOWEST]:
        print(f"  {outcome['seconds']:6.1f} s  {name}")
    words = Counter(outcome["word"] for outcome in outcomes.values())
    print(", ".join(f"{words[word]} {word}" for word in ("passed", "failed", "undecided", "skipped")))


def main(names: list[str]) -> int:
    run_id = os.environ[MARK] = "/".join(filter(None, (os.environ.get(MARK), uuid.uuid4().hex)))
    end_all_after(os.getpid(), run_id)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what loses its parent becomes our child, and is counted

    outcomes_folder = tempfile.TemporaryDirectory(prefix="vh-tests-")

    def end_run(number: int, frame: FrameType | None) -> NoReturn:
        left = end_all(run_id)
        outcomes_folder.cleanup()
        ending = f"these processes are left: {left}" if left else "everything that they had started has ended"
        os.write(2, f"\nThe tests were interrupted by {signal.Signals(number).name}; {ending}.\n".encode())
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_run)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]

    began_s, (load, *_), work_before = time.monotonic(), os.getloadavg(), seconds_of_work()
    failed, outcomes = False, dict[str, dict[str, Any]]()
    with outcomes_folder as folder:
        for together in (["timed"], ["unit", "live"]):
            groups = [Group(Path(folder), name, **GROUPS[name]) for name in together if name in names]
            outcomes |= wait(groups)
            failed |= any(group.process.returncode for group in groups)
            if "timed" in names and together == ["timed"]:
                work = zip(seconds_of_work(), work_before, strict=True)
                worked_s, ours_s, all_s = (now_s - before_s for now_s, before_s in work)
                failed |= undecided_too_often(outcomes, max(0.0, worked_s - ours_s) / all_s)
    report(outcomes)
    _, cpu_s, _ = seconds_of_work()
    print(
        f"{cpu_s / 60:.1f} processor minutes in {(time.monotonic() - began_s) / 60:.1f} minutes;"
        f" load average {load:.1f} at the start, {os.getloadavg()[0]:.1f} at the end"
    )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(GROUPS)))
