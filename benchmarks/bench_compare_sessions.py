"""How often `harness compare` shows a regression between sessions of the same device: at most 5 % of pairs is right.

python benchmarks/bench_compare_sessions.py [PAIRS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import sized

from harness.report.comparison import compare_sessions
from harness.statistics.comparison import DifferenceVerdict
from tests.unit.report.test_comparison import wake_session


def main(pairs: int) -> None:
    """Prints the number of pairs with a regression: with the same stimuli in both sessions, and with different ones.

    A session has wake trials with delays, and ambient sound.
    """
    with tempfile.TemporaryDirectory() as folder:
        for kind, second_prefix in (("paired", ""), ("unpaired", "x")):
            regressions = 0
            for seed in range(pairs):
                first = wake_session(Path(folder) / f"{kind}-{seed}-a", 0.2, 2 * seed, 40)
                second = wake_session(Path(folder) / f"{kind}-{seed}-b", 0.2, 2 * seed + 1, 40, second_prefix)
                regressions += bool(compare_sessions([first, second]).rows_with(DifferenceVerdict.WORSE))
            print(f"{kind}: a regression in {regressions} of {pairs} pairs of equal sessions")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else sized(200, 1))
