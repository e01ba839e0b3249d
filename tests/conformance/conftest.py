"""Far ends that are real: a private sound server, a browser."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.lab.lab import Lab
from harness.lab.sound_server import LabSoundServer
from harness.session.wording import RowWriter
from tests.conformance.browsing import Inviting, Window, chromium, windows
from tests.conformance.engine_runs import Runs
from tests.conformance.lab_runs import lab_of_its_own
from tests.written_sessions import rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser


LINES_SHOWN = 60


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A test that fails shows what its sessions have logged."""
    report = yield
    runs = getattr(item, "funcargs", {}).get("runs")
    if report.failed and isinstance(runs, Runs):
        for folder in filter(Path.exists, runs.folders):
            report.longrepr = f"{report.longrepr}\n\n{folder.name}:\n{_last_lines(folder)}"
    return report


def _last_lines(folder: Path) -> str:
    writer = RowWriter()
    lines = [(entry.at_s, writer.line(entry.record)) for entry in rows(folder)]
    return "\n".join([f"{at_s:10.2f}  {line}" for at_s, line in lines if line][-LINES_SHOWN:])


@pytest.fixture(scope="session")
def lab_sound() -> Iterator[LabSoundServer]:
    """A sound server of our own, found by `sound_server="virtual_lab"` for as long as the session lasts.

    A test that kills or freezes it leaves it running.
    """
    # Short: a socket path has at most 107 bytes, and pytest's own folders can be long.
    folder = Path(tempfile.mkdtemp(prefix="vh-"))
    before = os.environ.get("HARNESS_LAB")
    os.environ["HARNESS_LAB"] = str(folder)
    server = LabSoundServer(folder)
    try:
        environment = server.start()
        state = {
            "environment": environment,
            "mqtt_host": "127.0.0.1",
            "mqtt_port": 0,
            "pids": {"sound_server": server.pid},
        }
        (folder / "lab.json").write_text(json.dumps(state), encoding="utf-8")
        yield server
    finally:
        server.stop()
        if before is None:
            del os.environ["HARNESS_LAB"]
        else:
            os.environ["HARNESS_LAB"] = before
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A whole lab of the module's own, with the assistant as it is shipped."""
    with lab_of_its_own() as own_lab:
        yield own_lab


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless chromium; it is closed with its module, since others want event loops of their own."""
    with chromium() as chrome:
        yield chrome


@pytest.fixture
def window(browser: Browser, site: Inviting) -> Iterator[Callable[[str], Window]]:
    """Opens windows of the module's `site`, for whom it is told."""
    with windows(browser, site) as page:
        yield page
