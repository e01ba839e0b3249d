"""Cost of counting wake events: adding a row, a snapshot for the screen, matching, and a whole log.

python benchmarks/bench_wake_counting.py      under a minute
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # rows as the tests write them

from sizes import sized

from harness.model.record import EventReviewed, ReviewVerdict
from harness.model.scenario import TrialKind
from harness.offline.wake_log import write
from harness.offline.wake_log_reading import read
from harness.report.session import WholeSession
from harness.report.wake_log_session import wake_log
from harness.wake.counting import Window, match_events
from harness.wake.wake import WakeFigures
from tests.unit.wake.wake_rows import WakeRows, wake_trial

WAKES = sized(2_000, 20)
SEGMENTS = sized(4_000, 40)
EVENTS_A_SEGMENT = 25
"""60 s segments with an event each 2.4 s: 100,000 unmatched events."""
LAST = sized(2_000, 20)
WINDOWS = sized(50_000, 50)


def session() -> WakeRows:
    """Wake trials of which every twentieth is missed, then ambient segments with EVENTS_A_SEGMENT each."""
    wakes = [wake_trial(number, devices=("a", "b")) for number in range(WAKES)]
    ambient = [wake_trial(WAKES + number, TrialKind.AMBIENT, ("a", "b")) for number in range(SEGMENTS)]
    rows = WakeRows()
    rows.plan(*wakes, *ambient)
    for number, trial in enumerate(wakes):
        rows.play(trial, [("a", 1.8)] if number % 20 else [])
    for trial in ambient:
        rows.play(trial, [("a", 0.5 + 2.4 * index) for index in range(EVENTS_A_SEGMENT)])
    return rows


def measure_counting(rows: WakeRows) -> None:
    """Prints what rows and snapshots cost, the last rows with a snapshot after each, as while a screen shows them."""
    figures = WakeFigures()
    began_s = time.perf_counter()
    for entry in rows.entries[:-LAST]:
        figures.add(entry)
    per_row_us = (time.perf_counter() - began_s) / (len(rows.entries) - LAST) * 1e6
    print(f"{len(rows.entries):,} rows, {len(figures.unmatched('a')):,} unmatched events: {per_row_us:.0f} µs a row")
    began_s = time.perf_counter()
    figures.snapshot()
    print(f"first snapshot: {(time.perf_counter() - began_s) * 1e3:.0f} ms")
    rows_s, snapshots_s = [], []
    for entry in rows.entries[-LAST:]:
        began_s = time.perf_counter()
        figures.add(entry)
        added_s = time.perf_counter()
        figures.snapshot()
        rows_s.append(added_s - began_s)
        snapshots_s.append(time.perf_counter() - added_s)
    print(f"the last rows: median {statistics.median(rows_s) * 1e6:.0f} µs, worst {max(rows_s) * 1e3:.1f} ms")
    p99_s = sorted(snapshots_s)[len(snapshots_s) * 99 // 100]
    print(
        f"a snapshot after each: median {statistics.median(snapshots_s) * 1e3:.1f} ms, p99 {p99_s * 1e3:.1f} ms, "
        f"at 5 Hz {p99_s * 5:.1%} of a core at most"
    )
    oldest = figures.unmatched("a")[0].seq
    entry = rows.add(EventReviewed(oldest, ReviewVerdict.REAL_PERSON, "ann"))
    began_s = time.perf_counter()
    figures.add(entry)
    figures.snapshot()
    print(f"a review of the oldest event, and a snapshot: {(time.perf_counter() - began_s) * 1e3:.1f} ms")


def measure_matching() -> None:
    windows = [Window(index * 2.0, index * 2.0 + 2.7, index * 2.0 + 1.6) for index in range(WINDOWS)]
    events = [index * 1.0 for index in range(2 * WINDOWS)]
    began_s = time.perf_counter()
    match_events(windows, events, 0.5)
    took_s = time.perf_counter() - began_s
    print(f"matching {len(events):,} events with {WINDOWS:,} overlapping windows: {took_s:.2f} s")


def measure_log(rows: WakeRows) -> None:
    began_s = time.perf_counter()
    text = write(wake_log(WholeSession.of(rows.entries), "a"))
    written_s = time.perf_counter()
    read(text)
    print(
        f"the wake-evaluation log, {len(text) / 1e6:.1f} MB: {written_s - began_s:.1f} s from rows to text, "
        f"{time.perf_counter() - written_s:.1f} s read back"
    )


def main() -> None:
    rows = session()
    measure_counting(rows)
    measure_matching()
    measure_log(rows)


if __name__ == "__main__":
    main()
