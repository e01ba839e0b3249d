"""What a command leaves with: 2 for what a person wrote, also where nobody reads its output; and nothing half made."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.session.engine.prepare import prepare

HARNESS = [sys.executable, "-c", "from harness.cli import main; main()"]
SCENARIO = """\
scenario: calls
voices: {anna: {engine: espeak, name: en-us}}
defaults: {voice: anna}
trials: [{id: call, kind: wake}]
"""
BENCH = """\
bench: desk
operator: absent
devices:
  board:
    profile: PROFILE
    connection: {CONNECTION}
"""


@pytest.mark.parametrize(
    ("profile", "connection", "what"),
    [
        ("vh_board", "driver: serial, port: /dev/ttyNOT_THERE", "there is no /dev/ttyNOT_THERE"),
        ("vh_board", "driver: serial, usb: NOT_THERE", "no port is NOT_THERE"),
        (
            "vh_board_mqtt",
            "driver: mqtt, address: '127.0.0.1:1', username: ann, password_env: NOT_SET",
            "the environment has no NOT_SET",
        ),
    ],
)
def test_what_this_host_lacks_makes_no_session(profile: str, connection: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    (tmp_path / "b.yaml").write_text(BENCH.replace("PROFILE", profile).replace("CONNECTION", connection))
    with pytest.raises(InputError) as refused:
        prepare(tmp_path / "s.yaml", tmp_path / "b.yaml", tmp_path / "sessions")
    assert what in str(refused.value)
    assert not (tmp_path / "sessions").exists()


def test_a_session_that_is_not_there_is_an_input_fault(tmp_path: Path) -> None:
    done = subprocess.run([*HARNESS, "show", "nowhere"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr[:30]) == (2, "harness: nowhere is no session"[:30])


def test_the_status_survives_a_reader_that_has_gone(tmp_path: Path) -> None:
    """The files are more than a pipe holds, so that the command writes to nobody."""
    for number in range(400):
        name = f"{number:03}-{'x' * 200}.yaml"
        (tmp_path / name).write_text("scenario: a\n" if number == 399 else "normalisation: plain\nremove: [a]\n")
    command = [*HARNESS, "validate", "--json", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.close()
        assert child.stderr is not None
        said = child.stderr.read()
        assert child.wait(60) == 2, said
    assert b"Traceback" not in said
    assert b"Exception" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_as_soon_as_there_is_a_file_leaves_none(number: signal.Signals, tmp_path: Path) -> None:
    """It is sent as soon as the folder has an entry: between making the file and entering its clean-up, often."""
    for _ in range(3):
        command = [*HARNESS, "snor", "--to", "lsn", "--output", str(tmp_path / "out.lsn")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            assert child.stdin is not None
            child.stdin.write(b"the cat (a_1)\n" * 50_000)
            deadline = time.monotonic() + 60
            while not list(tmp_path.iterdir()) and child.poll() is None:
                assert time.monotonic() < deadline
            child.send_signal(number)
            assert child.wait(60) == 128 + number
        assert list(tmp_path.iterdir()) == []
