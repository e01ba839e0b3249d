"""How long commands take to start: CPU and elapsed seconds, best of three, and how many times `python -c pass`.

python benchmarks/bench_startup.py          under a minute
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from program_times import timed
from sizes import sized

from harness.cli import group
from tests.unit.cli.walking import commands

ROUNDS = sized(3, 1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("r.trn", "h.trn"):
            (Path(folder) / name).write_text("the cat sat (a_1)\n")
        started = "from harness.cli import main; main()"
        _, python_s = timed([sys.executable, "-c", "pass"], ROUNDS)
        score = ["score", "-r", f"{folder}/r.trn", "-H", f"{folder}/h.trn"]
        wanted = [[*name.split()[1:], "--help"] for name, _ in commands(group)]
        print(f"{'command':40} CPU s  elapsed s  × python -c pass ({python_s:.3f} s)")
        for arguments in (*sized(wanted, wanted[:1]), score, ["engines"]):
            elapsed_s, cpu_s = timed([sys.executable, "-c", started, *arguments], ROUNDS)
            told = " ".join(one for one in arguments if not one.startswith(folder))
            print(f"{told:40} {cpu_s:5.2f}  {elapsed_s:9.2f}  {cpu_s / python_s:5.1f}")


if __name__ == "__main__":
    main()
