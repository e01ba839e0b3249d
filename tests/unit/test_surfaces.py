"""setup/surfaces.py tells what renders and what compares by the types of functions and the tests they call."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "setup" / "surfaces.py"


def counted(*arguments: str) -> list[str]:
    result = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def test_this_tree_is_counted_in_two_lines() -> None:
    rendering, comparators = counted()
    assert re.fullmatch(r"files that render results: \d+, \d+ lines", rendering)
    assert re.fullmatch(r"comparators: \d+, \d+ lines", comparators)


def test_a_file_counts_by_what_it_returns_and_calls(tmp_path: Path) -> None:
    for name, content in (
        ("rating/reports.py", "def lines(found) -> Iterator[str]: ...\n"),
        ("cli/table.py", "from harness.statistics import text\nprint(text_table([], [], 80))\n"),
        ("cli/other.py", "def lines() -> Iterator[str]: ...\n"),
        ("base/text_table.py", "from harness.statistics import text\ndef lines() -> Iterator[str]: ...\n"),
        ("offline/pairs.py", "from harness.statistics.significance import holm\ncorrected = holm([0.01])\n"),
        ("statistics/significance.py", "def holm(ps): ...\nholm([])\n"),
    ):
        path = tmp_path / "harness" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert counted("--list", str(tmp_path)) == [
        "files that render results: 2, 3 lines",
        "     2  harness/cli/table.py",
        "     1  harness/rating/reports.py",
        "comparators: 1, 2 lines",
        "     2  harness/offline/pairs.py",
    ]
