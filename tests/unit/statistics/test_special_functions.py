"""SciPy's special functions by themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOM = Path(__file__).parents[3] / "harness" / "statistics"
USED = sorted(set(re.findall(r"\bspecial\.(\w+)", "".join(path.read_text() for path in ROOM.glob("*.py")))))

ALONE = f"""
import sys
from harness.statistics.intervals import clopper_pearson, garwood
from harness.statistics.voices import over_clusters

assert over_clusters([1, 3], [20, 20])
print(garwood(3, 2.5), clopper_pearson(3, 90), "numpy.f2py" in sys.modules)
import scipy.special, scipy.stats
from harness.statistics.special_functions import special

print(scipy.stats.binomtest(3, 9).pvalue)
print([name for name in {USED} if getattr(special, name) is not getattr(scipy.special, name)])
"""
BEFORE = "import scipy.special\n"
BESIDE_A_THREAD = """
import threading
ended = threading.Event()
threading.Thread(target=ended.wait, daemon=True).start()
"""


@pytest.mark.parametrize(("first", "whole_package"), [("", False), (BEFORE, True), (BESIDE_A_THREAD, True)])
def test_they_are_the_package_s_and_leave_it_usable(first: str, whole_package: bool) -> None:
    output = subprocess.run([sys.executable, "-c", first + ALONE], capture_output=True, text=True, check=True).stdout
    intervals = "(0.24746884915824058, 3.506909227896929) (0.006927602731010167, 0.0943360934131362)"
    assert output.splitlines() == [f"{intervals} {whole_package}", "0.5078125", "[]"]
