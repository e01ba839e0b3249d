"""How long a rater waits from a key to the next response on the screen, as another process sees it through tmux.

Beside it stands the echo of one character by `cat` in the same terminal, which tmux and the polling alone take.

    .venv/bin/python benchmarks/bench_rating_keys.py
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sizes import sized

from tests.conformance.rating.terminal import RatingTerminal
from tests.rating_sessions import rating_session

KEYS = sized(200, 5)
ECHOES = sized(60, 10)
PAUSE_S = 0.12


def spread_text(delays_s: list[float]) -> str:
    ordered_ms = sorted(1000 * delay_s for delay_s in delays_s)
    p95_ms = ordered_ms[int(0.95 * len(ordered_ms))]
    return f"median {statistics.median(ordered_ms):.1f}, p95 {p95_ms:.1f}, longest {ordered_ms[-1]:.1f} ms"


def measure_echoes(terminal: RatingTerminal) -> list[float]:
    """Types characters to `cat`. Returns the seconds until each stands on the screen."""
    terminal.start("cat")
    delays_s = []
    for number in range(1, ECHOES + 1):
        began_s = time.monotonic()
        terminal.type("x")
        terminal.wait(lambda screen, number=number: screen.count("x") >= number)  # type: ignore[misc]
        delays_s.append(time.monotonic() - began_s)
        time.sleep(0.02)
    return delays_s


def measure_keys(terminal: RatingTerminal, folder: Path, items: int) -> list[float]:
    """Judges responses of a session. Returns the seconds from each key to the next response."""
    session = rating_session(folder / f"s{items}", items)
    terminal.rate(str(session), "--rater", "ann", "--no-sound")
    terminal.wait(lambda screen: f"item 1 of {items}" in screen, within_s=120)
    delays_s = []
    for number in range(1, KEYS + 1):
        time.sleep(PAUSE_S)
        began_s = time.monotonic()
        terminal.type("1234567890-"[number % 11])
        terminal.wait_position(lambda position, number=number: position == number + 1)  # type: ignore[misc]
        delays_s.append(time.monotonic() - began_s)
    return delays_s


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="vh-"))
    terminal = RatingTerminal(folder)
    try:
        echoes_s = measure_echoes(terminal)
        print(f"echo of a character:             {spread_text(echoes_s)}")
        for items in sized((300, 5000), (10,)):
            keys_s = measure_keys(terminal, folder, items)
            ratio = statistics.median(keys_s) / statistics.median(echoes_s)
            print(f"key to next of {items:>4} responses: {spread_text(keys_s)}; {ratio:.1f} × the echo")
    finally:
        terminal.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
