"""How far times of a board's events are off, where the truth is known: the firmware on a pty, with a wrong clock.

The board notes the CLOCK_MONOTONIC at which it took each event's time. There are three runs: with nothing else on the
line; while sound is injected as fast as possible; while another process draws a Textual dashboard. Prints the true
errors, the errors that the harness stated, and the share of events within them.

    python benchmarks/bench_device_clock.py [SECONDS]
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import sized

from harness.model.observation import Intent, ResponseText, Transcript
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from tests.conformance.boards import posix_board
from tests.conformance.serial_bench import Bench
from tests.seen import until

PPM, OFFSET_US = 80, 123_456_789_012
PAUSE_S = 0.02


def draw() -> None:
    """Draws a table and a chart that change at 20 Hz, until the process is ended."""
    from textual.app import App, ComposeResult
    from textual.widgets import DataTable, Sparkline

    class Drawing(App[None]):
        def compose(self) -> ComposeResult:
            yield Sparkline([], id="chart")
            yield DataTable(id="rows")

        def on_mount(self) -> None:
            self.query_one(DataTable).add_columns(*"abcdefgh")
            self.set_interval(0.05, self.redraw)

        def redraw(self) -> None:
            random = np.random.default_rng()
            self.query_one(Sparkline).data = random.random(200).tolist()
            table = self.query_one(DataTable)
            table.clear()
            for row in random.random((30, 8)):
                table.add_row(*(f"{value:.4f}" for value in row))

    Drawing().run()


def draw_on_pty() -> None:
    """Draws in a child, on a pseudo-terminal that this process reads, until SIGTERM."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="160", LINES="50")
        draw()
        return

    def end(number: int, frame: object) -> None:
        # The child leads a session of its own, so nothing else ends it.
        os.kill(child, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    while os.read(terminal, 65536):
        pass


@contextmanager
def drawing() -> Iterator[None]:
    """Draws in another process within the `with` block."""
    process = subprocess.Popen([sys.executable, __file__, "--draw"])
    time.sleep(2)  # until it draws
    try:
        yield
    finally:
        process.terminate()
        process.wait(5)


def measure(name: str, seconds: float, *, inject: bool = False) -> None:
    """Lets the board report events for so long, and prints a line about the errors of their times."""
    with (
        tempfile.TemporaryDirectory() as folder,
        posix_board(Path(folder), "--clock-offset-us", str(OFFSET_US), "--clock-ppm", str(PPM)) as board,
        Bench(Path(folder), board.port) as bench,
    ):
        noise = np.random.default_rng(1).normal(0, 0.02, 16000 * 60).astype(np.float32)
        end_s = time.monotonic() + seconds
        queries = 0
        while time.monotonic() < end_s:
            if inject and bench.driver.level_dbfs() is None:  # the previous sound has ended
                bench.driver.play(str(queries), Waveform(noise, 16000))
            bench.driver.say(f"word {queries}")
            queries += 1
            time.sleep(PAUSE_S)
        until(lambda: len(bench.of(ResponseText)) == queries)
        events = [event for event in bench.all if isinstance(event, Transcript | Intent | ResponseText)]
        (truth_ns,) = board.truth()
        truth_s = [truth_ns[number] * 1e-9 for number in sorted(truth_ns)][1:]  # the first is not of a query
        assert len(events) == len(truth_s) == 3 * queries, (len(events), len(truth_s), queries)
        errors_us = np.array([abs(event.at.at_s - true_s) for event, true_s in zip(events, truth_s, strict=True)]) * 1e6
        stated_us = np.array([event.at.error_s for event in events]) * 1e6
        framed = bench.driver.framed_peer
        fit = framed.session.clock.fit("board", Stamp(0.0, 0.0)) if framed is not None else None
        drift = f"{fit.skew_ppm:.1f}" if fit is not None else "?"
        print(
            f"{name:<12} {len(errors_us):>6} events   error {_spread(errors_us)}   stated {_spread(stated_us)}   "
            f"within {np.mean(errors_us <= stated_us):.2%}   drift {drift} ppm (true: {PPM})"
        )


def _spread(times_us: np.ndarray) -> str:
    return f"µs: median {np.median(times_us):6.1f}  p99 {np.percentile(times_us, 99):7.1f}  max {times_us.max():7.1f}"


def main() -> None:
    if "--draw" in sys.argv:
        draw_on_pty()
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else sized(60.0, 1.0)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; {seconds:g} s each")
    measure("quiet", seconds)
    measure("injecting", seconds, inject=True)
    with drawing():
        measure("dashboard", seconds)


if __name__ == "__main__":
    main()
