from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from harness.base.child_process import describe, read_process, save_process, start_detached

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_a_process_is_known_again_and_ended(tmp_path: Path) -> None:
    child = start_detached(SLEEPER, os.environ, tmp_path / "log")
    started = describe(child)
    assert started is not None
    save_process(tmp_path / "x.pid", started)
    again = read_process(tmp_path / "x.pid")
    assert again == started
    assert again.alive()
    assert 0 <= again.uptime_s() < 60
    assert again.end()
    assert not again.alive()


def test_a_pid_that_somebody_else_has_now_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(SLEEPER) as stranger:
        found = describe(stranger.pid)
        assert found is not None
        for stale in (replace(found, start_ticks=found.start_ticks - 1), replace(found, boot_id="another boot")):
            assert not stale.alive()
            assert stale.end()
        assert stranger.poll() is None
        stranger.kill()


def test_one_that_ignores_the_request_is_made_to_end(tmp_path: Path) -> None:
    told = tmp_path / "ready"
    stubborn = (
        "import pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
    )
    child = start_detached([sys.executable, "-c", stubborn, str(told)], os.environ, tmp_path / "log")
    deadline = time.monotonic() + 10
    while not told.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    started = describe(child)
    assert started is not None
    assert started.end(patience_s=0.2)


def test_one_that_was_killed_a_moment_ago_is_outlasted(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    # To give its memory back takes longer than to come here.
    large = "import pathlib, sys, time; held = b'x' * 200_000_000; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
    for _ in range(3):
        child = start_detached([sys.executable, "-c", large, str(ready)], os.environ, tmp_path / "log")
        deadline = time.monotonic() + 30
        while not ready.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        ready.unlink()
        started = describe(child)
        assert started is not None
        assert not started.ending()
        started.outlast()
        assert started.alive()
        os.kill(child, signal.SIGKILL)
        started.outlast()
        assert not started.alive()
        os.waitpid(child, 0)


def test_damaged_files_are_nobody(tmp_path: Path) -> None:
    path = tmp_path / "x.pid"
    assert read_process(path) is None
    for text in ("", "{}", "[1]", '{"pid": "x", "start_ticks": 1, "boot_id": "b"}'):
        path.write_text(text, encoding="utf-8")
        assert read_process(path) is None
