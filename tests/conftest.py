"""What every test stands on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# What helpers assert says its values too: of a failure that comes once, they are all there is.
pytest.register_assert_rewrite("tests.conformance", "tests.dashboard", "tests.unit")

# No example is timed: on a machine with other work, any of them may wait for a processor. Examples are the same at
# every run, so that CI says what a change did and not what chance found; EXPLORE=1 draws others.
settings.register_profile("untimed", parent=settings(), deadline=None, derandomize="EXPLORE" not in os.environ)
settings.load_profile("untimed")

# A worker of xdist has 80 columns, the tests alone have none: the same text for both.
os.environ.pop("COLUMNS", None)

# Who starts the tests may be deaf to these, as a shell without job control makes what runs in the background, or
# `nohup`; every program that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for asked in (signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(asked) is signal.SIG_IGN:
        signal.signal(asked, signal.SIG_DFL)


SLOW = Path(__file__).with_name("slow.txt")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out the tests that tests/slow.txt lists")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """For --quick: without what needs a sound server or speech models, and without what took long when measured."""
    if not config.getoption("--quick"):
        return
    slow = set(SLOW.read_text(encoding="utf-8").split())
    left_out = [
        item
        for item in items
        if item.nodeid.partition("[")[0] in slow or any(item.get_closest_marker(name) for name in ("sound", "speech"))
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]
