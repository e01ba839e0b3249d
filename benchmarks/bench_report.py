"""Cost of what reads a whole session, in processor time and memory, beside reading its rows raw, as JSON.

python benchmarks/bench_report.py [TRIALS…]      1,000, 10,000 and 100,000 (the last takes long)

Half of the trials are queries, half are wake trials of two devices; there are ten unmatched events for each trial.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # rows as the tests write them

from sizes import sized
from timing import HARNESS

from harness.base.chain import FIRST, seal_end
from harness.base.row_store import SESSION, insert, open_for_writing
from harness.model.bench import Bench
from harness.model.record import EndReason, SessionFinished
from harness.model.scenario import Limits, Scenario, TrialKind
from harness.session.engine.assemble import ResolvedSession, write_resolved
from tests.unit.session.figures.rows import clip_of, planned
from tests.unit.wake.wake_rows import WakeRows, wake_trial

SEGMENTS = sized(100, 10)
DAMAGED = 3
"""Exit status of `show --check`: the sessions have no clips."""
EVENTS = 10
"""Unmatched events for each trial."""
RAW = """
import json, sqlite3, sys
for (body,) in sqlite3.connect(sys.argv[1] + "/log.sqlite").execute("SELECT body FROM entries ORDER BY seq"):
    json.loads(body)
"""
RESUME = """
import sys
from pathlib import Path
from harness.base.garbage_collection import gc_paused
from harness.session.engine import engine
from harness.session.figures.live import LiveFigures
from harness.session.log.reader import LogReader, read_scenario
from harness.session.resumption import Resumption, read_takes
folder = Path(sys.argv[1])
read_takes(folder).pending()
figures, standing = LiveFigures(read_scenario(folder)), Resumption()
with LogReader(folder) as reader, gc_paused():
    for entry in reader.entries():
        figures.add(entry)
        standing.add(entry)
standing.pending()
figures.session()
"""
DASHBOARD = """
import sys
from pathlib import Path
from harness.dashboard import app
from harness.dashboard.watch import Watch
from harness.model.feed import Logged, StateChanged, StateWord, Welcome
from harness.session.log.reader import LogReader
watch = Watch()
with LogReader(Path(sys.argv[1])) as reader:
    last = reader.last_seq()
    watch.receive(Welcome("s", sys.argv[1], 1, last, StateChanged(StateWord.PREPARING, 0.0), "0", False))
    rows = reader.entries()
    while watch.last_seq < last:
        for _, entry in zip(range(500), rows):
            watch.receive(Logged(entry))
        while watch.handle_messages():
            watch.view()
"""


def main(sizes: list[int]) -> None:
    for trials in sizes:
        with tempfile.TemporaryDirectory() as folder:
            session, page = f"{folder}/session", f"{folder}/report.html"
            # Linux counts at least the memory of this process as that of a child, so the rows are made elsewhere.
            writing = multiprocessing.get_context("spawn").Process(target=write, args=(Path(session), trials))
            writing.start()
            writing.join()
            if writing.exitcode:
                raise SystemExit("the session could not be written")
            print(f"{trials:,} trials, {trials * EVENTS:,} unmatched events")
            raw_s, raw_mb = cpu_and_memory([sys.executable, "-c", RAW, session])
            print(f"  {'rows read raw, as JSON':26} {raw_s:6.1f} s  {raw_mb:6.0f} MB")
            for name, command in {
                "show": [*HARNESS, "report", "show", session],
                "show --check": [*HARNESS, "report", "show", session, "--check"],
                "export --json": [*HARNESS, "report", "export", session, "--json"],
                "report": [*HARNESS, "report", session, "--html", page],
                "resume: command and engine": [sys.executable, "-c", RESUME, session],
                "dashboard: rows and results": [sys.executable, "-c", DASHBOARD, session],
            }.items():
                cpu_s, peak_mb = cpu_and_memory(command)
                print(f"  {name:26} {cpu_s:6.1f} s  {peak_mb:6.0f} MB  {cpu_s / raw_s:5.2f} of raw", flush=True)
            print(f"  {'page':26} {Path(page).stat().st_size / 1e6:6.1f} MB")


def write(folder: Path, trials: int) -> None:
    """Writes a session of two devices, four voices and two levels; every twentieth wake trial is missed."""
    devices = ("a", "b")
    plan = [
        planned(number, trial_id=f"query-{number}", device="a")
        if number % 2
        else wake_trial(
            number, devices=devices, conditions=(("voice", f"v{number % 4}"), ("level_dbfs", f"-{20 + number % 2}"))
        )
        for number in range(trials)
    ]
    ambient = [wake_trial(trials + number, TrialKind.AMBIENT, devices) for number in range(SEGMENTS)]
    rows = WakeRows()
    rows.plan(*plan, *ambient)
    for number, trial in enumerate(plan):
        if number % 2:
            rows.trial(trial.id, attempts=1 + (number % 5 == 0), clip=clip_of(f"{number}.flac"), heard=trial.reference)
        else:
            rows.play(trial, [("a", 1.8), ("b", 1.9)] if number % 20 else [])
    events = trials * EVENTS // SEGMENTS
    for trial in ambient:
        rows.play(trial, [("a", 0.5 + 59 * index / events) for index in range(events)])
    rows.add(SessionFinished(EndReason.COMPLETED))
    folder.mkdir()
    with closing(open_for_writing(folder / "log.sqlite")) as connection:
        connection.execute("BEGIN")
        link = FIRST
        for entry in rows.entries:
            row = (entry.seq, entry.run, entry.at_s, entry.wall_s, entry.record.kind, SESSION.text(entry.record))
            link = insert(connection, row, link)
        connection.execute("COMMIT")
        seal_end(connection, folder / "log.sqlite")
    scenario = Scenario("long", "Long", "/s.yaml", "a", (), (), limits=Limits(max_false_reject_share=0.1))
    write_resolved(folder, ResolvedSession(scenario, Bench("lab", "", "", "b", ())))


def cpu_and_memory(command: list[str]) -> tuple[float, float]:
    """Runs a command. Returns its processor time in seconds, and its peak memory in MB: at least that of this process.

    Exits if the command fails.
    """
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, DAMAGED):
        raise SystemExit(f"ended with {child.returncode}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or sized([1000, 10_000, 100_000], [100]))
