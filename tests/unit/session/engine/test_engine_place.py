"""Which engine runs which session: found while it lives, forgotten when it does not."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.errors import EngineError, InputError, LogError
from harness.model.record import NoteWritten
from harness.session.engine.launch import find, list_running, publish, start_engine, this_process, withdraw
from tests.known import known
from tests.written_sessions import written


@pytest.fixture(autouse=True)
def _runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="vh") as short:  # a socket's path must be short
        monkeypatch.setenv("HARNESS_RUNTIME", short)
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    long_folder = tmp_path / ("a session with a long name " * 6)
    long_folder.mkdir()
    return long_folder


def test_a_living_engine_is_found_by_its_session_and_among_all(folder: Path) -> None:
    place = this_process(folder)
    assert len(place.socket) < 107
    publish(place)
    assert find(folder) == place
    assert list_running() == (place,)
    withdraw(place)
    assert find(folder) is None
    assert list_running() == ()


def test_the_engine_of_a_running_session_is_not_that_of_a_copy(folder: Path, tmp_path: Path) -> None:
    place = this_process(folder)
    publish(place)
    copy = shutil.copytree(folder, tmp_path / "copy")
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert find(copy) is None
    assert find(link) == place
    moved = folder.rename(tmp_path / "moved")
    assert find(moved) == place


def test_an_engine_does_not_start_in_a_folder_whose_name_no_message_can_hold(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"night\xff")
    written(folder, [NoteWritten("x", "t")])
    with pytest.raises(InputError, match="is not UTF-8"):
        start_engine(folder)


def test_an_engine_that_ends_after_its_runtime_folder_was_removed_leaves_no_new_one(folder: Path) -> None:
    place = this_process(folder)
    publish(place)
    runtime = Path(place.socket).parent
    shutil.rmtree(runtime)
    withdraw(place)
    assert not runtime.exists()


@pytest.mark.parametrize("change", [{"started": 1}, {"boot_id": "another"}, {"pid": 2**22 - 1}])
def test_a_process_that_is_gone_is_not_taken_for_another_with_its_id(folder: Path, change: dict[str, object]) -> None:
    place = replace(this_process(folder), **change)  # type: ignore[arg-type]
    publish(place)
    assert find(folder) is None
    assert list_running() == ()
    assert not list(Path(place.socket).parent.glob("engine-*"))


def test_a_process_that_ended_and_was_not_waited_for_is_gone(folder: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    stat = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    place = replace(this_process(folder), pid=child.pid, started=int(stat[19]))
    assert place.alive
    known(child.stdin).close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not place.alive
    child.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', json.dumps({"unknown": 1})])
def test_a_damaged_file_does_not_name_an_engine(folder: Path, text: str) -> None:
    (folder / "engine.json").write_text(text)
    assert find(folder) is None


def test_an_engine_cannot_start_in_a_folder_without_a_session(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="not a session folder"):
        start_engine(tmp_path)


def test_an_engine_that_ends_at_once_is_quoted(folder: Path) -> None:
    (folder / "log.sqlite").write_bytes(b"")
    with pytest.raises(EngineError, match=r"ended immediately: .*resolved\.json cannot be read"):
        start_engine(folder)
