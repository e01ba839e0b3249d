"""Settings, order and fixtures of all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from harness.base.simulated_threads import SimulatedThreads
    from tests.conformance.engine_runs import Runs

pytest_plugins = ["tests.host_time"]

# A failed assertion of a helper shows its values, too: of a failure that happens once, they are all there is.
pytest.register_assert_rewrite("tests.conformance", "tests.dashboard", "tests.unit")

# No example is timed: on a machine with other work, any of them may wait for a processor. Examples are the same at
# every run, so that CI says what a change did and not what chance found; EXPLORE=1 draws others. `make soak` asks for
# many, by EXAMPLES; a test that names a number of its own is one that pays for each.
settings.register_profile(
    "untimed",
    parent=settings(),
    deadline=None,
    max_examples=int(os.environ.get("EXAMPLES", "30")),
    derandomize="EXPLORE" not in os.environ,
)
settings.load_profile("untimed")

# A worker of xdist has 80 columns, the tests alone have none: the same text for both.
os.environ.pop("COLUMNS", None)

# Modules are compiled once, and not by every worker and every program that a test starts, even where the environment
# says otherwise.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The parent may ignore these signals, as `nohup` does, or a shell without job control for a command in the background.
# Every program that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for signum in (signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(signum) is signal.SIG_IGN:
        signal.signal(signum, signal.SIG_DFL)


SLOW = Path(__file__).with_name("slow.txt")
# Files that take long begin first: otherwise all workers wait for the one that gets such a file last.
LONGEST = (
    *("test_board_faults", "test_wake_air", "test_lab_faults", "test_driver_suite", "test_lab", "test_talker_live"),
    *("test_understanding_live", "test_wake_truth", "test_engine_life", "test_power", "test_tutorials", "test_browser"),
    *("test_with_engine", "test_external_driver", "test_installed", "test_workers", "test_wake_sessions"),
    *("test_new_board", "test_judging"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out the tests that tests/slow.txt lists")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest first. Tests that need PyTorch only where -m asks for them, whatever else it says.

    For --quick, without what needs sound or speech models and what took long when measured.
    """
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    not_here = [] if "transformer" in config.getoption("markexpr") else ["transformer"]
    slow: set[str] = set()
    if config.getoption("--quick"):
        slow |= set(SLOW.read_text(encoding="utf-8").split())
        not_here += ["sound", "speech"]
    left_out = [
        item
        for item in items
        if item.nodeid.partition("[")[0] in slow or any(item.get_closest_marker(name) for name in not_here)
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Modules and items stay until the end: the collector need not walk through all of them again and again."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


@pytest.fixture
def simulated_time() -> Iterator[SimulatedThreads]:
    """All threads, waits and times of the session are simulated: nothing sleeps, and equal runs are equal."""
    from harness.base import threads
    from harness.base.simulated_threads import SimulatedThreads

    with SimulatedThreads() as world, threads.using(world):
        yield world


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """tmp_path; a socket's path must be short."""
    with tempfile.TemporaryDirectory(prefix="vh") as runtime:
        monkeypatch.setenv("HARNESS_RUNTIME", runtime)
        yield tmp_path


@pytest.fixture
def runs(short: Path) -> Iterator[Runs]:
    from tests.conformance.engine_runs import Runs  # here, since few tests run an engine

    session_runs = Runs(short)
    yield session_runs
    session_runs.close()
