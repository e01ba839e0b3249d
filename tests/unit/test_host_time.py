"""What becomes of a test of timing: on a quiet host, beside others who stall it, and when it stalls itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host_time import HostSample, disturbance
from tests.leftovers import MARK

ROOT = Path(__file__).parents[2]
HOG = "import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"
TESTS = f"""
import os, subprocess, sys
import pytest

def stalled(environment):
    hogs = [subprocess.Popen([sys.executable, "-c", {HOG!r}], env=environment) for _ in range(4 * os.cpu_count())]
    for hog in hogs:
        hog.wait()

@pytest.fixture
def by_others():
    stalled({{name: value for name, value in os.environ.items() if name != {MARK!r}}})

@pytest.fixture
def by_itself():
    stalled(dict(os.environ))

def test_wrong(host_keeps_time): assert "too late" == ""
def test_stalled_by_others(host_keeps_time, by_others): assert "too late" == ""
def test_stalled_by_itself(host_keeps_time, by_itself): assert "too late" == ""
def test_stalled_once(host_keeps_time, tmp_path_factory, request):
    if not request.config.getoption("--alone"):
        request.getfixturevalue("by_others")
        assert "too late" == ""
def test_right(host_keeps_time, by_others): pass
def test_rule(by_others): assert "miscounted" == ""
"""


def run(folder: Path, *names: str, more: tuple[str, ...] = ()) -> tuple[dict[str, tuple[str, str]], int, str]:
    """How each test ended and why, the exit status, and the output of a pytest with nothing but our plugin."""
    folder.joinpath("test_inner.py").write_text(TESTS, encoding="utf-8")
    outcomes = folder / "outcomes.json"
    folder.joinpath("pytest.ini").write_text("[pytest]\naddopts = -p tests.host_time\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        f"--outcomes={outcomes}",
        *(f"test_inner.py::{name}" for name in names),
        *more,
    ]
    around = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True, check=False)
    outcome_by_name = json.loads(outcomes.read_text(encoding="utf-8"))
    ended = {
        name.partition("::")[2] or name: (outcome["word"], outcome["why"]) for name, outcome in outcome_by_name.items()
    }
    return ended, result.returncode, result.stdout


def test_a_wrong_result_on_a_quiet_host_is_a_failure(tmp_path: Path, host_keeps_time: None) -> None:
    ended, status, _ = run(tmp_path, "test_wrong")
    word, why = ended["test_wrong"]
    assert (word, status) == ("failed", 1)
    line = TESTS.partition("def test_wrong")[0].count("\n") + 1
    assert why.startswith(f"in its call: test_inner.py:{line}: AssertionError: assert 'too late' == ''")


def test_a_stall_by_others_is_undecided_after_one_repetition(tmp_path: Path) -> None:
    ended, status, output = run(tmp_path, "test_stalled_by_others")
    word, why = ended["test_stalled_by_others"]
    assert (word, status) == ("undecided", 0), output
    assert why.startswith(("the host stood still for", "others held")), why
    assert f"UNDECIDED test_inner.py::test_stalled_by_others: {why}" in output
    assert output.count("collected 1 item") == 2
    assert "1 undecided in" in output.splitlines()[-1]


def test_a_file_that_cannot_be_imported_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "test_gone.py").write_text("from nowhere import anything\n", encoding="utf-8")
    ended, status, _ = run(tmp_path, "test_rule", more=("test_gone.py", "-n1"))
    assert status != 0
    assert ended["test_gone.py"][0] == "failed"
    assert "No module named 'nowhere'" in ended["test_gone.py"][1]


def test_the_same_stall_by_the_test_itself_is_a_failure(tmp_path: Path, host_keeps_time: None) -> None:
    ended, status, output = run(tmp_path, "test_stalled_by_itself")
    assert (ended["test_stalled_by_itself"][0], status) == ("failed", 1), output
    assert output.count("collected 1 item") == 1


def test_what_holds_when_it_is_repeated_alone_has_passed(tmp_path: Path) -> None:
    ended, status, output = run(tmp_path, "test_stalled_once")
    assert (ended, status) == ({"test_stalled_once": ("passed", "")}, 0), output
    assert "1 passed in" in output.splitlines()[-1]


def test_a_stall_changes_nothing_for_a_test_that_passes_or_is_about_a_rule(tmp_path: Path) -> None:
    ended, status, _ = run(tmp_path, "test_right", "test_rule")
    assert ended["test_right"] == ("passed", "")
    assert (ended["test_rule"][0], status) == ("failed", 1)


def sample(begun_s: float, late_s: float, **took_s: float) -> HostSample:
    return HostSample(begun_s, begun_s + 0.25, late_s, int(late_s / 0.02), took_s)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([sample(0, 0.01, gw0=0.5)], ""),
        ([sample(0, 0.2, gw0=0.4, outside=0.1)], ""),
        ([sample(0, 0.2, gw0=0.1, gw1=0.4)], "the host stood still for 0.20 s (10 blocks of 20 ms lost)"),
        ([sample(0, 0.2)], "the host stood still for 0.20 s (10 blocks of 20 ms lost)"),  # nobody ran
        (
            [sample(0, 0.2, steal=0.3)],
            "the host stood still for 0.20 s (10 blocks of 20 ms lost; 0.30 s of it taken by the hypervisor)",
        ),
        ([sample(0.25 * n, 0.01, outside=0.4 * (n < 2)) for n in range(4)], ""),
        (
            [sample(0.25 * n, 0.01, outside=0.4 * (n < 3)) for n in range(4)],
            "others held 1.6 of 2 processors for 0.8 s",
        ),
        ([sample(0, 0.01, outside=0.4)], "others held 1.6 of 2 processors for 0.2 s"),  # all of a short test
        ([sample(0.25 * n, 0.01, outside=0.2, gw0=0.3) for n in range(4)], ""),
    ],
)
def test_stall_is_attributed_by_processor_use(samples: list[HostSample], words: str) -> None:
    assert disturbance(samples, "gw0", processors=2) == words
