"""What a command leaves with, whoever reads its output; standard output that is closed or knows ASCII alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.model.errors import HarnessError
from harness.session.engine.prepare import prepare
from tests.files import file_with
from tests.known import known

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
    ("profile", "connection", "message", "status"),
    [
        ("vh_board", "driver: serial, port: /dev/ttyNOT_THERE", "/dev/ttyNOT_THERE does not exist", 3),
        ("vh_board", "driver: serial, usb: NOT_THERE", "no port matches `usb: NOT_THERE`", 3),
        (
            "vh_board_mqtt",
            "driver: mqtt, address: '127.0.0.1:1', username: ann, password_env: NOT_SET",
            "the environment variable NOT_SET",
            2,
        ),
    ],
)
def test_missing_host_requirement_creates_no_session(
    profile: str, connection: str, message: str, status: int, tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    (tmp_path / "b.yaml").write_text(BENCH.replace("PROFILE", profile).replace("CONNECTION", connection))
    with pytest.raises(HarnessError) as refused:
        prepare(tmp_path / "s.yaml", tmp_path / "b.yaml", tmp_path / "sessions")
    assert message in str(refused.value)
    assert refused.value.exit_code == status
    assert not (tmp_path / "sessions").exists()


def test_a_missing_session_is_an_input_fault(tmp_path: Path) -> None:
    result = subprocess.run([*HARNESS, "show", "nowhere"], cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stderr[:30]) == (2, "harness: nowhere is not a session"[:30])


def test_exit_status_survives_a_reader_that_has_gone(tmp_path: Path) -> None:
    """The files are more than a pipe holds, so that the command writes to nobody."""
    for number in range(400):
        name = f"{number:03}-{'x' * 200}.yaml"
        (tmp_path / name).write_text("scenario: a\n" if number == 399 else "normalisation: plain\nremove: [a]\n")
    command = [*HARNESS, "validate", "--json", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        known(child.stdout).close()
        stderr = known(child.stderr).read()
        assert child.wait(60) == 2, stderr
    assert b"Traceback" not in stderr
    assert b"Exception" not in stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_during_file_creation_leaves_no_file(number: signal.Signals, tmp_path: Path) -> None:
    """It is sent as soon as the folder has an entry: between making the file and entering its clean-up, often."""
    for _ in range(3):
        command = [*HARNESS, "snor", "--output-format", "lsn", "--output", str(tmp_path / "out.lsn")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            known(child.stdin).write(b"the cat (a_1)\n" * 50_000)
            deadline = time.monotonic() + 60
            while not list(tmp_path.iterdir()) and child.poll() is None:
                assert time.monotonic() < deadline
            child.send_signal(number)
            assert child.wait(60) == 128 + number
        assert list(tmp_path.iterdir()) == []


def test_endless_thread_does_not_block_exit_when_terminal_closes() -> None:
    code = (
        "import threading, time\nfrom harness import cli\nfrom harness.base import signals\n"
        "signals.FORCED_EXIT_S = 0.5\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "with cli.exit_on_signals():\n    print('ready', flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert known(child.stdout).readline() == b"ready\n"
        child.send_signal(signal.SIGHUP)
        assert child.wait(60) == 128 + signal.SIGHUP


COMMAND = [sys.executable, "-c", "from harness.cli import main; main()"]
TRN = "one → two (s_1)\n"


def run(*arguments: str, shell: str = '"$@"', **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = ["sh", "-c", f"exec {shell}", "sh", *COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=os.environ | environment)


@pytest.fixture
def scored(tmp_path: Path) -> list[str]:
    path = file_with(tmp_path / "a.trn", TRN)
    return ["score", "-r", str(path), "-H", str(path), "--alignments", "all"]


def test_closed_standard_streams_are_reported(scored: list[str]) -> None:
    closed = run(*scored, shell='"$@" >&-')
    assert closed.returncode == 3
    assert closed.stderr.startswith(b"harness: standard output is closed")
    assert run(*scored[:3], "-H", "none.trn", shell='"$@" 2>&-').returncode == 2
    no_input = run("score", "-r", "-", "--reference-format", "trn", "-H", scored[2], shell='"$@" <&-')
    assert no_input.returncode == 2
    assert no_input.stderr.startswith(b"harness: standard input is closed")


def test_symbols_degrade_to_ascii_and_other_characters_are_escaped(scored: list[str]) -> None:
    printed = run(*scored, PYTHONIOENCODING="ascii").stdout.decode("ascii")
    assert "HYP:  one > two" in printed
    assert "\n-----" in printed
    assert "\\u" not in printed


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="no limit of file sizes here")
def test_write_error_without_buffer_is_not_silent(tmp_path: Path) -> None:
    big = file_with(tmp_path / "big.sro", "".join(f"word word (a{number})\n" for number in range(10_000)))
    limited = f'sh -c \'trap "" XFSZ; ulimit -f 64; exec "$@" > {tmp_path}/out\' sh "$@"'
    for verb in (
        ["snor", "--output-format", "lsn", str(big)],
        ["score", "-r", str(big), "-H", str(big), "--json", "-"],
    ):
        result = run(*verb, shell=limited, PYTHONUNBUFFERED="1")
        assert result.returncode == 3
        assert result.stderr.startswith(b"harness: standard output cannot be written: File too large")


def test_file_names_cannot_control_the_terminal(scored: list[str]) -> None:
    result = run(*scored[:3], "-H", "a\x1b[31m.trn")
    assert result.returncode == 2
    assert b"a\\e[31m.trn: there is no such file" in result.stderr


@pytest.mark.parametrize("verb", [["validate", "scenarios"], ["schema"], ["demo", "--help"]])
def test_a_full_disk_behind_standard_output_is_reported_in_one_sentence(verb: list[str]) -> None:
    result = run(*verb, shell='"$@" > /dev/full')
    assert (result.returncode, result.stderr.count(b"\n")) == (3, 1)
    assert result.stderr.startswith(b"harness: standard output cannot be written: No space left on device")


def test_a_failed_limit_decides_the_exit_status_on_a_full_disk(scored: list[str], tmp_path: Path) -> None:
    (tmp_path / "b.trn").write_text("two (s_1)\n")
    limited = ["score", "-r", scored[2], "-H", str(tmp_path / "b.trn"), "--max-wer", "1%"]
    assert run(*limited, shell='"$@" > /dev/full').returncode == 1


def test_a_script_of_lines_ends_at_a_full_disk(tmp_path: Path) -> None:
    """It reads from a source without an end."""
    endless = "yes 'word (a_1)' | \"$@\" > /dev/full"
    result = run("snor", "--output-format", "lsn", "--repeated-ids", shell=endless)
    assert result.returncode == 3


def test_usage_errors_cannot_control_the_terminal() -> None:
    result = run("schema", "a\u202eb")
    assert result.returncode == 2
    assert b"too many arguments: a\\u202eb" in result.stderr


def test_a_fault_of_the_harness_is_never_the_status_of_a_failed_limit() -> None:
    program = "from harness import cli\ncli.group = None\ncli.main()"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 3
    assert "Traceback" in result.stderr
    assert result.stderr.endswith("harness: AttributeError: a bug in the harness. Please report this bug\n")


def test_an_endless_device_file_is_refused(scored: list[str]) -> None:
    for verb in (["report", "/dev/zero"], ["snor", "--output-format", "lsn", "/dev/zero"], [*scored[:4], "/dev/zero"]):
        result = run(*verb)
        assert result.returncode == 2
        assert b"/dev/zero: this device never ends. Use a file" in result.stderr


def test_a_mistake_that_many_rows_share_is_printed_five_times_and_counted(tmp_path: Path) -> None:
    data = tmp_path / "b.jsonl"
    rows = [f'{{"id": "u{number}", "text": "on", "intent": "on"}}\n' for number in range(45)]
    data.write_text("".join([*rows, '{"id": "last", "text": 3}\n']))
    refused = subprocess.run(
        [*HARNESS, "understand", "distribution", str(data)], capture_output=True, text=True, timeout=60, check=False
    )
    lines = refused.stderr.splitlines()
    assert refused.returncode == 2
    assert lines[0].startswith(f"harness: {data}:1: there is no key 'intent'. Did you mean 'intents'?")
    assert lines[4].startswith(f"{data}:5: there is no key 'intent'.")
    assert lines[5].startswith(f"{data}:46: "), "another mistake is printed"
    assert lines[6:] == [f"{data}: this problem occurs in 40 more places: there is no key 'intent'"]
