"""How long commands take to start: CPU and elapsed seconds, best of three, and how many times `python -c pass`.

python benchmarks/bench_startup.py          under a minute
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import sized
from timing import HARNESS, quickest_program

from harness.cli import group
from tests.unit.cli.walking import commands

ROUNDS = sized(3, 1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("r.trn", "h.trn"):
            (Path(folder) / name).write_text("the cat sat (a_1)\n")
        python_s = quickest_program([sys.executable, "-c", "pass"], ROUNDS).cpu_s
        score = ["score", "-r", f"{folder}/r.trn", "-H", f"{folder}/h.trn"]
        helps = [[*name.split()[1:], "--help"] for name, _ in commands(group)]
        print(f"{'command':40} CPU s  elapsed s  × python -c pass ({python_s:.3f} s)")
        for arguments in (*sized(helps, helps[:1]), score, ["engines"]):
            times = quickest_program([*HARNESS, *arguments], ROUNDS)
            command = " ".join(argument for argument in arguments if not argument.startswith(folder))
            print(f"{command:40} {times.cpu_s:5.2f}  {times.wall_s:9.2f}  {times.cpu_s / python_s:5.1f}")


if __name__ == "__main__":
    main()
