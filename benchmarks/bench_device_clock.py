"""How far times of a board's events are off, where the truth is known: the firmware on a pty, with a wrong clock.

The board notes the CLOCK_MONOTONIC at which it took each event's time. Three runs: nothing else going on; while sound
is injected as fast as it goes; while another process draws a Textual dashboard. Prints the errors, what the harness had
stated, and the share of events within it.

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
from tests.conformance.boards import posix_board
from tests.conformance.serial_bench import Bench
from tests.seen import until

PPM, OFFSET_US = 80, 123_456_789_012
PAUSE_S = 0.02


def draw() -> None:
    """A table and a chart that change at 20 Hz, until the process is ended."""
    from textual.app import App, ComposeResult
    from textual.widgets import DataTable, Sparkline

    class Drawing(App[None]):
        def compose(self) -> ComposeResult:
            yield Sparkline([], id="chart")
            yield DataTable(id="rows")

        def on_mount(self) -> None:
            self.query_one(DataTable).add_columns(*"abcdefgh")
            self.set_interval(0.05, self.change)

        def change(self) -> None:
            chance = np.random.default_rng()
            self.query_one(Sparkline).data = chance.random(200).tolist()
            table = self.query_one(DataTable)
            table.clear()
            for row in chance.random((30, 8)):
                table.add_row(*(f"{value:.4f}" for value in row))

    Drawing().run()


def draw_on_a_terminal_that_nobody_sees() -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="160", LINES="50")
        draw()
        return
    # It leads a session of its own, and would draw for ever.
    signal.signal(signal.SIGTERM, lambda number, frame: (os.kill(child, signal.SIGKILL), os._exit(0)))
    while os.read(terminal, 65536):
        pass


@contextmanager
def drawing() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, __file__, "--draw"])
    time.sleep(2)  # until it draws
    try:
        yield
    finally:
        process.terminate()
        process.wait(5)


def run(name: str, seconds: float, *, inject: bool = False) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        posix_board(Path(folder), "--clock-offset-us", str(OFFSET_US), "--clock-ppm", str(PPM)) as board,
        Bench(Path(folder), board.port) as bench,
    ):
        noise = np.random.default_rng(1).normal(0, 0.02, 16000 * 60).astype(np.float32)
        end_s = time.monotonic() + seconds
        said = 0
        while time.monotonic() < end_s:
            if inject and (bench.driver.level_dbfs() is None):
                bench.driver.play(str(said), Waveform(noise, 16000))
            bench.driver.say(f"word {said}")
            said += 1
            time.sleep(PAUSE_S)
        until(lambda: len(bench.of(ResponseText)) == said)
        told = [one for one in bench.all if isinstance(one, Transcript | Intent | ResponseText)]
        (moments,) = board.truth()
        truth_s = [moments[number] * 1e-9 for number in sorted(moments)][1:]
        assert len(told) == len(truth_s) == 3 * said, (len(told), len(truth_s), said)
        errors = np.array([abs(one.at.at_s - true_s) for one, true_s in zip(told, truth_s, strict=True)]) * 1e6
        stated = np.array([one.at.error_s for one in told]) * 1e6
        framed = bench.driver.framed_peer
        fit = framed.session.clock.fit() if framed is not None else None
        drift = f"{fit.skew_ppm:.1f}" if fit is not None else "?"
        print(
            f"{name:<12} {len(errors):>6} events   error {_spread(errors)}   stated {_spread(stated)}   "
            f"within {np.mean(errors <= stated):.2%}   drift {drift} ppm (true: {PPM})"
        )


def _spread(values: np.ndarray) -> str:
    return f"µs: median {np.median(values):6.1f}  p99 {np.percentile(values, 99):7.1f}  max {values.max():7.1f}"


def main() -> None:
    if "--draw" in sys.argv:
        draw_on_a_terminal_that_nobody_sees()
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else sized(60.0, 1.0)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; {seconds:g} s each")
    run("quiet", seconds)
    run("injecting", seconds, inject=True)
    with drawing():
        run("dashboard", seconds)


if __name__ == "__main__":
    main()
