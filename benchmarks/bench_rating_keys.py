"""How long a rater waits from a key to the next response on the screen, seen from another process through tmux.

Beside it the echo of one character by `cat` in the same terminal: what tmux and the looking alone cost.

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
APART_S = 0.12


def milliseconds(taken_s: list[float]) -> str:
    ordered = sorted(taken_s)
    p95 = ordered[int(0.95 * len(ordered))]
    return f"median {statistics.median(ordered) * 1000:.1f}, p95 {p95 * 1000:.1f}, longest {ordered[-1] * 1000:.1f} ms"


def echoes(terminal: RatingTerminal) -> list[float]:
    terminal.start("cat")
    taken = []
    for number in range(1, ECHOES + 1):
        began_s = time.monotonic()
        terminal.type("x")
        terminal.wait(lambda screen, number=number: screen.count("x") >= number)  # type: ignore[misc]
        taken.append(time.monotonic() - began_s)
        time.sleep(0.02)
    return taken


def labels(terminal: RatingTerminal, folder: Path, items: int) -> list[float]:
    session = rating_session(folder / f"s{items}", items)
    terminal.rate(str(session), "--rater", "ann", "--no-sound")
    terminal.wait(lambda screen: f"item 1 of {items}" in screen, within_s=120)
    taken = []
    for number in range(1, KEYS + 1):
        time.sleep(APART_S)
        began_s = time.monotonic()
        terminal.type("1234567890-"[number % 11])
        terminal.wait_position(lambda at, number=number: at == number + 1)  # type: ignore[misc]
        taken.append(time.monotonic() - began_s)
    return taken


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="vh-"))
    terminal = RatingTerminal(folder)
    try:
        floor = echoes(terminal)
        print(f"echo of a character:             {milliseconds(floor)}")
        for items in sized((300, 5000), (10,)):
            taken = labels(terminal, folder, items)
            ratio = statistics.median(taken) / statistics.median(floor)
            print(f"key to next of {items:>4} responses: {milliseconds(taken)}; {ratio:.1f} × the echo")
    finally:
        terminal.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
