"""Cost of a report about a long session, in processor time, memory and size, beside reading its rows raw and counted.

python benchmarks/bench_report.py [TRIALS] [EVENTS]      100,000 and 1,000,000: some ten minutes, most of them to write
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # rows as the tests write them

from sizes import sized

from harness.model.bench import Bench
from harness.model.record import EndReason, SessionFinished
from harness.model.scenario import Limits, Scenario, TrialKind
from harness.session.engine.assemble import ResolvedSession, write_resolved
from tests.unit.wake.wake_rows import WakeRows, wake_trial
from tests.written_sessions import written

SEGMENTS = sized(1000, 10)
READ = """
import sys
from pathlib import Path
from harness.report.session import read_session
read_session(Path(sys.argv[1]))
"""
RAW = """
import json, sqlite3, sys
for (body,) in sqlite3.connect(sys.argv[1] + "/log.sqlite").execute("SELECT body FROM entries ORDER BY seq"):
    json.loads(body)
"""
REPORT = "from harness.cli import main; main()"


def main(trials: int, events: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = made(Path(folder) / "session", trials, events)
        page = Path(folder) / "report.html"
        raw_s, raw_mb = timed(RAW, str(session))
        read_s, read_mb = timed(READ, str(session))
        took_s, mb = timed(REPORT, "report", str(session), "--html", str(page))
        print(f"{trials:,} trials, {events:,} unmatched events")
        print(f"  rows read raw, as JSON      {raw_s:6.1f} s  {raw_mb:6.0f} MB")
        print(f"  rows read, figures counted  {read_s:6.1f} s  {read_mb:6.0f} MB  {read_s / raw_s:.2f} of raw")
        print(f"  report                      {took_s:6.1f} s  {mb:6.0f} MB  {took_s / raw_s:.2f} of raw")
        print(f"  page                        {page.stat().st_size / 1e6:6.1f} MB")


def made(folder: Path, trials: int, events: int) -> Path:
    """Two devices, four voices and two levels; every twentieth wake trial is missed."""
    devices = ("a", "b")
    wakes = [
        wake_trial(
            number, devices=devices, conditions=(("voice", f"v{number % 4}"), ("level_dbfs", f"-{20 + number % 2}"))
        )
        for number in range(trials)
    ]
    ambient = [wake_trial(trials + number, TrialKind.AMBIENT, devices) for number in range(SEGMENTS)]
    rows = WakeRows()
    rows.plan(*wakes, *ambient)
    for number, trial in enumerate(wakes):
        rows.play(trial, [("a", 1.8), ("b", 1.9)] if number % 20 else [])
    each = events // SEGMENTS
    for trial in ambient:
        rows.play(trial, [("a", 0.5 + 59 * index / each) for index in range(each)])
    rows.add(SessionFinished(EndReason.COMPLETED))
    written(folder, rows)
    scenario = Scenario("long", "Long", "/s.yaml", "a", (), (), limits=Limits(max_false_reject_share=0.1))
    write_resolved(folder, ResolvedSession(scenario, Bench("lab", "", "", "b", ())))
    return folder


def timed(code: str, *arguments: str) -> tuple[float, float]:
    """Processor time in seconds and peak memory in MB of another Python, at least as much as this process has."""
    child = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"ended with {child.returncode}: {code.strip()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:]]
    main(*(numbers or sized([100_000, 1_000_000], [100, 100])))
