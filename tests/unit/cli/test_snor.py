"""`harness snor`, as a user types it: files, pipes, errors, and outputs that are whole or not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.cli import group
from harness.model.errors import HarnessError, InputError
from harness.transcripts.snor import SnorForm
from tests.files import file_with
from tests.seen import until

COMMAND = [sys.executable, "-c", "from harness.cli import main; main()", "snor"]
GOOD = "<what> . is [uh] *this*, tr- (ab1)\n\nok (1) fine (1 now) (ab2)\n"
FAULTY = b"one (ab1)\ntwo <three (ab2)\nfour caf\xe9 (ab3)\nfive (AB1)\nsix\0 (ab4)\nseven (ab5)\n"


def snor(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(group, ["snor", *(str(argument) for argument in arguments)], input=stdin)


@pytest.fixture
def valid_file(tmp_path: Path) -> Path:
    return file_with(tmp_path / "good.sro", GOOD)


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return file_with(tmp_path / "faulty.sro", FAULTY)


@pytest.mark.parametrize(
    ("form", "output"),
    [
        ("lsn", "WHAT IS THIS (AB1)\n\nOK FINE NOW (AB2)\n"),
        ("esn", "<WHAT> PAUSE IS [UH] =THIS= TR- (AB1)\n\nOK FINE NOW (AB2)\n"),
        ("snr", "IS THIS (AB1)\n\nOK FINE NOW (AB2)\n"),
    ],
)
def test_files_and_standard_input_give_one_line_per_line(valid_file: Path, form: str, output: str) -> None:
    for result in (
        snor("--output-format", form, valid_file),
        snor("--output-format", form, stdin=GOOD),
        snor("--output-format", form, "-", stdin=GOOD),
        snor("--output-format", form, stdin="\ufeff" + GOOD.replace("\n", "\r\n").removesuffix("\r\n")),
    ):
        assert (result.exit_code, result.stdout, result.stderr) == (0, output, "")
    assert snor("--output-format", form, stdin=output).stdout == output


def test_comments_are_copied_and_have_no_ids_or_pairs(tmp_path: Path) -> None:
    text = ";; made <by hand> (ab1)\n  ;; (ab1)\n<it> is (ab1)\n;c (ab2)\n"
    pairs = tmp_path / "pairs"
    result = snor("--output-format", "esn", "--homophones", pairs, stdin=text)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == ";; made <by hand> (ab1)\n  ;; (ab1)\n<IT> IS (AB1)\n;C (AB2)\n"
    assert pairs.read_text(encoding="utf-8") == "IT <IT>\n"
    assert snor("--output-format", "esn", stdin=result.stdout).stdout == result.stdout


def test_edited_words_are_placed_on_request_in_snr_only(valid_file: Path) -> None:
    assert snor("--output-format", "snr", "--place-edits", valid_file).stdout == "IS THIS (AB1)\n\nOK NOW FINE (AB2)\n"
    assert isinstance(snor("--output-format", "lsn", "--place-edits", valid_file).exception, InputError)


def test_every_faulty_line_is_reported_and_the_others_are_converted(faulty: Path) -> None:
    result = snor("--output-format", "lsn", faulty)
    assert result.exit_code == 2
    assert result.stdout == "ONE (AB1)\nSEVEN (AB5)\n"
    messages = result.stderr.splitlines()
    assert [line.partition(": ")[0] for line in messages[:-1]] == [
        f"{faulty}:{place}" for place in ("2:5", "3:9", "4:6", "5:4")
    ]
    assert "byte 0xe9 is not UTF-8" in messages[1]
    assert "--encoding latin-1" in messages[1]
    assert f"the id AB1 already occurs at {faulty}:1" in messages[2]
    assert messages[-1] == "4 problems in 1 file"
    latin = snor("--output-format", "lsn", "--encoding", "latin-1", faulty)
    assert latin.stdout == "ONE (AB1)\nFOUR CAFÉ (AB3)\nSEVEN (AB5)\n"
    assert latin.exit_code == 2


def test_an_output_file_is_replaced_completely_or_not_at_all(valid_file: Path, faulty: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.lsn"
    before = sorted(path.name for path in tmp_path.iterdir())
    result = snor("--output-format", "lsn", "--output", out, valid_file, faulty)
    assert result.exit_code == 2
    assert "not written" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert snor("--output-format", "lsn", "--output", out, valid_file).exit_code == 0
    assert out.read_text(encoding="utf-8") == "WHAT IS THIS (AB1)\n\nOK FINE NOW (AB2)\n"
    assert snor("--output-format", "lsn", "--output", out, faulty).exit_code == 2
    assert out.read_text(encoding="utf-8") == "WHAT IS THIS (AB1)\n\nOK FINE NOW (AB2)\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "out.lsn"])


def test_a_file_may_be_converted_in_place_through_a_link_and_keeps_its_rights(valid_file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.sro"
    link.symlink_to(valid_file)
    valid_file.chmod(0o640)
    assert snor("--output-format", "lsn", "--output", link, link).exit_code == 0
    assert link.is_symlink()
    assert valid_file.read_text(encoding="utf-8").startswith("WHAT IS THIS (AB1)")
    assert valid_file.stat().st_mode & 0o777 == 0o640


def test_homophone_pairs_are_listed_once_and_sorted(tmp_path: Path, faulty: Path) -> None:
    pairs = tmp_path / "pairs"
    text = "<where> <what day> <Where> <tr->\n<a>- is *<b>* it\n"
    result = snor("--output-format", "esn", "--homophones", pairs, stdin=text)
    assert result.exit_code == 0
    assert pairs.read_text(encoding="utf-8") == (
        "=B= =<B>=\nA- <A>-\nDAY <DAY>\nTR- <TR->\nWHAT <WHAT>\nWHERE <WHERE>\n"
    )
    to_stdout = snor("--output-format", "esn", "--homophones", "-", "--output", tmp_path / "x", stdin="<b> <a>\n")
    assert to_stdout.stdout == "A <A>\nB <B>\n"
    pairs.unlink()
    assert snor("--output-format", "esn", "--homophones", pairs, faulty).exit_code == 2
    assert not pairs.exists()
    assert isinstance(snor("--output-format", "lsn", "--homophones", pairs, stdin=text).exception, InputError)
    assert isinstance(snor("--output-format", "esn", "--homophones", "-", stdin=text).exception, InputError)
    refusal = snor("--output-format", "esn", "--homophones", tmp_path / "x", "--output", f"{tmp_path}/./x", stdin=text)
    assert "name the same file" in str(refusal.exception)
    before = faulty.read_bytes()
    assert "both an input and an output" in str(
        snor("--output-format", "esn", "--homophones", faulty, faulty).exception
    )
    assert faulty.read_bytes() == before


def test_repeated_ids_are_refused_unless_allowed(valid_file: Path, tmp_path: Path) -> None:
    other = file_with(tmp_path / "other.sro", "hi (AB2)\n")
    result = snor("--output-format", "lsn", valid_file, other)
    assert result.exit_code == 2
    assert f"{other}:1:4: the id AB2 already occurs at {valid_file}:3" in result.stderr
    assert snor("--output-format", "lsn", "--repeated-ids", valid_file, other, valid_file).exit_code == 0


def test_problems_after_the_fiftieth_are_only_counted(tmp_path: Path) -> None:
    result = snor("--output-format", "lsn", stdin="<a\n" * 73 + "b\n")
    assert result.exit_code == 2
    assert result.stdout == "B\n"
    messages = result.stderr.splitlines()
    assert len(messages) == 52
    assert messages[49].startswith("<stdin>:50:1: ")
    assert messages[50:] == ["<stdin>: and 23 more", "73 problems in 1 file"]


def test_unreadable_files_are_reported_and_the_others_converted(valid_file: Path, tmp_path: Path) -> None:
    result = snor("--output-format", "snr", tmp_path / "none", tmp_path, valid_file)
    assert result.exit_code == 2
    assert result.stdout.startswith("IS THIS")
    assert "none: the file cannot be read: No such file" in result.stderr
    assert "2 problems in 2 files" in result.stderr
    assert isinstance(snor("--output-format", "snr", "--encoding", "rot13", valid_file).exception, InputError)
    for target, status in ((tmp_path / "none" / "x", 2), (tmp_path, 3)):
        unwritten = snor("--output-format", "snr", "--output", target, valid_file).exception
        assert isinstance(unwritten, HarnessError)
        assert unwritten.exit_code == status


def test_problem_messages_cannot_control_the_terminal(tmp_path: Path) -> None:
    path = file_with(tmp_path / "a\x1b]0;b\x07.sro", b"\x1b[31m\n")
    result = snor("--output-format", "lsn", path)
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
    assert "a\\e]0;b\\x07.sro:1:1" in result.stderr


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.sampled_from(SnorForm), st.sampled_from(["utf-8", "latin-1", "utf-16", "cp1252"]))
def test_any_bytes_give_text_or_reported_problems(
    tmp_path: Path, content: bytes, form: SnorForm, encoding: str
) -> None:
    path = file_with(tmp_path / "any.sro", content)
    result = snor("--output-format", form.value, "--encoding", encoding, path)
    assert result.exit_code in (0, 2)
    assert (result.exit_code == 2) == bool(result.stderr)
    if result.exit_code == 0:
        repeated = snor("--output-format", form.value, stdin=result.stdout_bytes)
        assert (repeated.exit_code, repeated.stdout_bytes) == (0, result.stdout_bytes)


def test_output_lines_appear_before_input_ends() -> None:
    with subprocess.Popen(
        [*COMMAND, "--output-format", "lsn"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in (b"one", b"two"):
            process.stdin.write(word + b".\n")
            process.stdin.flush()
            assert process.stdout.readline() == word.upper() + b"\n"
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.mark.parametrize(("signum", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_termination_leaves_no_temporary_file(tmp_path: Path, signum: signal.Signals, status: int) -> None:
    out = file_with(tmp_path / "out.lsn", "before\n")
    command = [*COMMAND, "--output-format", "lsn", "--output", str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(b"one (ab1)\n")
        process.stdin.flush()
        until(lambda: len(list(tmp_path.iterdir())) == 2)
        process.send_signal(signum)
        assert process.wait(30) == status
        process.stdin.close()
    assert list(tmp_path.iterdir()) == [out]
    assert out.read_text(encoding="utf-8") == "before\n"


def test_a_closed_reader_ends_conversion_of_standard_input(tmp_path: Path) -> None:
    lines = file_with(tmp_path / "many.sro", "a b c\n" * 200_000)
    with (
        lines.open("rb") as endless,
        subprocess.Popen([*COMMAND, "--output-format", "lsn"], stdin=endless, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"A B C\n"
        process.stdout.close()
        assert process.wait(30) == 141


@pytest.mark.parametrize(("last", "status"), [("a b c\n", 0), ("a <b c\n", 2)])
def test_the_status_of_a_file_survives_a_reader_that_leaves(last: str, status: int, tmp_path: Path) -> None:
    endless = file_with(tmp_path / "many.sro", "a b c\n" * 100_000 + last)
    with subprocess.Popen(
        [*COMMAND, "--output-format", "lsn", endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"A B C\n"
        process.stdout.close()
        assert (process.stderr.read() == b"") == (status == 0)
        assert process.wait(30) == status


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_reported_once(valid_file: Path) -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [*COMMAND, "--output-format", "lsn", valid_file], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert result.returncode == 3
    assert result.stderr == (
        b"harness: standard output cannot be written: No space left on device. "
        b"Free disk space, or redirect standard output\n"
    )
    error = snor("--output-format", "lsn", "--output", "/dev/full", valid_file).exception
    assert isinstance(error, HarnessError)
    assert os.path.exists("/dev/full")
