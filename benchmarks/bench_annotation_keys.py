"""How long an annotator waits from a key to the next page on the screen, seen from another process through tmux.

A project of 16,000 utterances, as in the seed. Beside it the echo of one character by `cat` in the same terminal
(what tmux and the looking alone cost), a strike (no row is written), and an accepted page (its rows are on the disk).

    .venv/bin/python benchmarks/bench_annotation_keys.py [UTTERANCES]
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_rating_keys import APART_S, echoes, milliseconds
from sizes import sized

from tests.annotation_projects import TALK, annotation_project
from tests.conformance.rating.terminal import RatingTerminal

PAGES = sized(100, 2)
HARNESS = Path(sys.executable).with_name("harness")


def timed(terminal: RatingTerminal, key: str, wanted: Callable[[str], object]) -> float:
    time.sleep(APART_S)
    began_s = time.monotonic()
    terminal.type(key)
    terminal.wait(wanted)
    return time.monotonic() - began_s


def keys(terminal: RatingTerminal, folder: Path, utterances: int) -> tuple[list[float], list[float], float]:
    """(strikes, accepted pages, the start) in seconds."""
    talk = [(f"{TALK[n % 4][0]} {n}", TALK[n % 4][1]) for n in range(utterances)]
    project = annotation_project(folder / f"p{utterances}", talk)
    began_s = time.monotonic()
    terminal.start(str(HARNESS), "annotate", "review", str(project), "--annotator", "ann")
    terminal.wait(lambda screen: f"0 of {utterances} done" in screen, within_s=300)
    start_s = time.monotonic() - began_s
    strikes, pages = [], []
    for number in range(1, PAGES + 1):
        line = "123456789"[number % 9]
        strikes.append(timed(terminal, line, lambda screen, line=line: f"›{line} ✗" in screen))  # type: ignore[misc]
        done = f"{9 * number} of {utterances} done"
        pages.append(timed(terminal, "Enter", lambda screen, done=done: done in screen))  # type: ignore[misc]
    terminal.type("q")
    return strikes, pages, start_s


def main(largest: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="vh-"))
    terminal = RatingTerminal(folder)
    try:
        floor = echoes(terminal)
        print(f"echo of a character:              {milliseconds(floor)}")
        for utterances in sorted({min(2000, largest), largest}):
            strikes, pages, start_s = keys(terminal, folder, utterances)
            ratio = statistics.median(pages) / statistics.median(floor)
            print(f"of {utterances:>6}: start {start_s:.1f} s; strike  {milliseconds(strikes)}")
            print(f"of {utterances:>6}: key to the next page {milliseconds(pages)}; {ratio:.1f} × the echo")
    finally:
        terminal.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else sized(16_000, 40))
