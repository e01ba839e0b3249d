"""An evaluation that is killed, interrupted or stopped: what was acknowledged stays, and --resume goes on."""

from __future__ import annotations

import signal
import subprocess
import threading
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.offline import ListKind
from harness.offline.journal import JournalFile
from harness.offline.journal_lines import JournalMark
from tests.conformance.offline.conftest import Sounds
from tests.conformance.offline.loudness import Wrong
from tests.conformance.offline.offline_runs import (
    COMMAND,
    Played,
    comparable,
    evaluation_of,
    list_of,
    listed,
    untimed,
    wait_for,
    workers_of,
)

pytestmark = pytest.mark.usefixtures("loudness_plugin")


def begun(*arguments: object, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(*arguments: object, folder: Path, status: int = 0) -> str:
    child = begun(*arguments, folder=folder)
    out, err = child.communicate(timeout=120)
    assert child.returncode == status, out + err
    return out + err


def test_a_run_that_is_killed_and_interrupted_ends_as_if_it_had_not_been(sounds: Sounds, tmp_path: Path) -> None:
    """With a file that hangs the engine while `flag` is not there, so that a run is caught in its middle."""
    flag = tmp_path / "flag"
    inv = [sounds(f"in{number:03}.wav", 2 + number % 3, [1.5] * (number % 5 > 0)) for number in range(40)]
    inv[20] = sounds("hang.wav", 1.5, [1.2], wrong=Wrong.HANG_ONCE)
    inv[21] = sounds("short.wav", 0.5)
    oov = [sounds(f"out{number}.wav", 40 + 10 * number, [12.0, 20.5]) for number in range(4)]
    for name, files in (("in.txt", inv), ("out.txt", oov)):
        list_of(tmp_path / name, files)
    arguments = ("evaluate", "-t", "loudness:boom", "-i", "in.txt", "-o", "out.txt", "-j", "2", "-u")
    arguments += ("-s", f"flag={flag}", "-l")
    flag.touch()
    ended(*arguments, "whole.log", folder=tmp_path)

    flag.unlink()
    journal = tmp_path / "a.log.jsonl"
    child = begun(*arguments, "a.log", folder=tmp_path)
    wait_for(lambda: flag.exists() and _outcomes(journal) > 0, 60)
    workers = workers_of(child.pid)
    child.kill()
    child.communicate()
    assert len(workers) == 2
    wait_for(lambda: not any(Path(f"/proc/{worker}/exe").exists() for worker in workers), 60)
    # Torn in the middle of a line, as a power cut leaves it.
    with journal.open("ab") as file:
        file.write(b'{"k":"inv","n":20,"file":"/a')
    done = len(JournalFile(journal))
    assert 0 < done < 44

    flag.unlink()
    child = begun(*arguments, "a.log", "--resume", folder=tmp_path)
    wait_for(flag.exists, 60)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "the log is partial" in err
    interrupted = JournalFile(journal)
    assert interrupted.ending is JournalMark.PARTIAL
    assert done <= len(interrupted) < 44
    assert f"INFO x-partial {len(interrupted)} of 44 files" in (tmp_path / "a.log").read_text()

    ended(*arguments, "a.log", "--resume", folder=tmp_path)
    assert untimed(tmp_path / "a.log") == untimed(tmp_path / "whole.log")
    assert JournalFile(journal).complete
    assert _outcomes(journal) == 44
    both = [JournalFile(tmp_path / f"{name}.log.jsonl").outcomes() for name in ("a", "whole")]
    assert [comparable(one) for one in both[0]] == [comparable(one) for one in both[1]]


def _outcomes(journal: Path) -> int:
    return journal.read_bytes().count(b'\n{"k":') if journal.exists() else 0


def test_a_second_ctrl_c_does_not_wait(sounds: Sounds, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(f"{sounds('a.wav', 2)}\n{sounds('b.wav', 3, wrong=Wrong.HANG_DEAF)}\n")
    child = begun("evaluate", "-t", "loudness:boom", "-i", "in.txt", "-l", "a.log", folder=tmp_path)
    journal = tmp_path / "a.log.jsonl"
    wait_for(lambda: journal.exists() and bool(workers_of(child.pid)))
    workers = workers_of(child.pid)
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert child.returncode == 130
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def test_continuous_goes_on_with_the_engine_having_heard_all(sounds: Sounds, tmp_path: Path) -> None:
    """The engine's state cannot be kept, so that what was played is played again, and its outcomes stay."""
    files = listed(oov=[sounds(f"{number}.wav", 3, [1.0]) for number in range(60)])
    evaluation = evaluation_of("loudness_spots", continuous=True)
    stop = threading.Event()
    first = Played(evaluation, files, tmp_path / "a.jsonl", stop=stop, on_outcome=lambda *_: stop.set())
    assert first.ran.partial
    assert 0 < first.ran.done < 60
    second = Played(evaluation, files, tmp_path / "a.jsonl", resume=True)
    assert first.ran.done + second.ran.done == 60
    at_once = Played(evaluation, files, tmp_path / "b.jsonl")
    assert at_once.ran.done == 60
    both = [[comparable(one) for one in JournalFile(tmp_path / name).outcomes()] for name in ("a.jsonl", "b.jsonl")]
    assert both[0] == both[1]
    assert {len(one.spots) for one in at_once.outcomes} == {1}


def test_a_journal_of_another_run_is_refused_before_a_file_is_played(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds("a.wav", 2)])
    Played(evaluation_of(), files, tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="resample is off then, on now"):
        Played(evaluation_of(resample=True), files, tmp_path / "a.jsonl", resume=True)
    assert JournalFile(tmp_path / "a.jsonl").complete
    assert ListKind.INV in {one.outcome.kind for one in JournalFile(tmp_path / "a.jsonl").outcomes()}
