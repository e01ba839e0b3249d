"""Children that answer, end, hang, leave others behind, or lose their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.child_process import (
    ChildProcess,
    ended_words,
    process_of_pid,
    python_command,
    read_process,
    save_process,
    start_detached,
)
from harness.base.guard import NOT_STARTED
from tests.known import known
from tests.seen import gone, until

LIMIT_S = 20.0


def program(text: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", f"import os, signal, sys, time\n{text}", *arguments]


def test_last_stderr_lines_are_kept_however_the_child_ends(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("from a run before\n")
    for stderr in (None, log):
        child = ChildProcess(program("sys.stderr.write('one\\ntwo\\n'); sys.exit(3)"), stderr=stderr)
        until(lambda process=child: not process.alive)
        assert (child.status, ended_words(3), child.end(), child.end()) == (3, "ended with status 3", "two", "two")
    assert log.read_text() == "from a run before\none\ntwo\n"


@pytest.mark.parametrize(
    ("text", "limit_s", "expected"),
    [
        ("open(sys.argv[1], 'w'); time.sleep(60)", LIMIT_S, ""),
        ("sys.exit('no such model')", LIMIT_S, "ended immediately: no such model"),
        ("time.sleep(60)", 0.1, "did not answer within 0.1 s: it printed nothing"),
    ],
)
def test_await_ready_waits_until_the_child_is_ready(text: str, limit_s: float, expected: str, tmp_path: Path) -> None:
    child = ChildProcess(program(text, str(tmp_path / "ready")))
    assert child.await_ready((tmp_path / "ready").exists, limit_s) == expected
    child.end()


def test_ending_a_child_kills_its_stubborn_descendants() -> None:
    stubborn = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); below = os.fork()\nprint(below, flush=True) if below else 0"
    )
    child = ChildProcess(program(f"{stubborn}\ntime.sleep(60)"))
    below = int(child.stdout.readline())
    child.end(grace_s=0.1)
    until(lambda: gone(below))
    assert (child.status, ended_words(-9)) == (-signal.SIGKILL, "was ended by SIGKILL")


def test_several_threads_may_end_a_child_at_once() -> None:
    for _ in range(20):
        child = ChildProcess(program("sys.stderr.write('on'); sys.stderr.flush(); time.sleep(60)"))
        with ThreadPoolExecutor(4) as threads:
            ends = [threads.submit(child.end, grace_s) for grace_s in (0.0, 0.5, 0.0, 0.5)]
        assert len({end.result() for end in ends}) == 1


def test_detached_child_outlives_its_parent() -> None:
    child = ChildProcess(program("time.sleep(60)"), stdin=subprocess.DEVNULL, stdout=None)
    child.leave()
    child.end()
    assert not gone(child.pid)
    os.kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)


@pytest.mark.parametrize(
    "module", ["harness.sound.child", "harness.sound.recogniser_process", "harness.offline.worker"]
)
def test_modules_in_the_working_folder_are_not_run(module: str, tmp_path: Path) -> None:
    """Somebody else's folder of recordings may hold a soundfile.py."""
    for name in ("soundfile", "numpy", "pyaudio", "random", "pydantic", "soxr", "harness"):
        tmp_path.joinpath(f"{name}.py").write_text("open('ran', 'w').close()\n")
    subprocess.run(
        python_command(f"harness.{module}"),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert not (tmp_path / "ran").exists()


def test_a_guarded_program_ends_when_its_parent_dies_in_any_way() -> None:
    parent = ChildProcess(
        program(
            "from harness.base.child_process import ChildProcess\n"
            "below = 'import os, time; print(os.getpid(), flush=True); time.sleep(3600)'\n"
            "child = ChildProcess([sys.executable, '-c', below], guarded=True)\n"
            "print(child.stdout.readline().decode(), flush=True); time.sleep(60)"
        )
    )
    below = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    until(lambda: gone(below))
    parent.end()


def test_a_missing_guarded_program_is_reported() -> None:
    child = ChildProcess(["/no/such/program"], guarded=True)
    until(lambda: not child.alive)
    assert (child.status, child.end()) == (NOT_STARTED, "/no/such/program: No such file or directory")


SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_saved_process_is_recognised_and_ended(tmp_path: Path) -> None:
    child = start_detached(SLEEPER, os.environ, tmp_path / "log")
    started = known(process_of_pid(child))
    save_process(tmp_path / "x.pid", started)
    saved = read_process(tmp_path / "x.pid")
    assert saved == started
    assert saved.alive()
    assert 0 <= saved.uptime_s() < 60
    assert saved.end()
    assert not saved.alive()


def test_a_pid_reused_by_another_process_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(SLEEPER) as stranger:
        process = known(process_of_pid(stranger.pid))
        for stale in (replace(process, start_ticks=process.start_ticks - 1), replace(process, boot_id="another boot")):
            assert not stale.alive()
            assert stale.end()
        assert stranger.poll() is None
        stranger.kill()


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    stubborn = (
        "import pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
    )
    child = start_detached([sys.executable, "-c", stubborn, str(ready)], os.environ, tmp_path / "log")
    until(ready.exists)
    started = known(process_of_pid(child))
    assert started.end(patience_s=0.2)


def test_recently_killed_process_is_waited_out(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    # To give its memory back takes longer than to come here.
    large = "import pathlib, sys, time; held = b'x' * 200_000_000; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
    for _ in range(3):
        child = start_detached([sys.executable, "-c", large, str(ready)], os.environ, tmp_path / "log")
        until(ready.exists)
        ready.unlink()
        started = known(process_of_pid(child))
        assert not started.ending()
        started.await_exit()
        assert started.alive()
        os.kill(child, signal.SIGKILL)
        started.await_exit()
        assert not started.alive()
        os.waitpid(child, 0)


def test_damaged_pid_files_name_no_process(tmp_path: Path) -> None:
    path = tmp_path / "x.pid"
    assert read_process(path) is None
    for text in ("", "{}", "[1]", '{"pid": "x", "start_ticks": 1, "boot_id": "b"}'):
        path.write_text(text, encoding="utf-8")
        assert read_process(path) is None
