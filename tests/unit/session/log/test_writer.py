"""The writer of a session log: order, acknowledgement, damage, a second writer, a full disk."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.model.errors import LogError
from harness.model.record import EngineStarted, Entry, NoteWritten
from harness.session.log.database import APPLICATION_ID
from harness.session.log.reader import LogReader
from harness.session.log.writer import SqliteLog


def note(text: str) -> NoteWritten:
    return NoteWritten(text=text, by="test")


def test_rows_are_numbered_without_gaps_and_in_order(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        written = [log.append(note(str(number))) for number in range(5)]
        assert [entry.seq for entry in written] == [1, 2, 3, 4, 5]
        assert list(log.entries()) == written
        assert list(log.entries(after_seq=3)) == written[3:]
        assert log.last_seq == 5
    with SqliteLog(tmp_path) as again:
        assert again.append(note("more")).seq == 6


def test_many_threads_share_commits_and_each_row_is_there_once(tmp_path: Path) -> None:
    seen: list[Entry] = []
    with SqliteLog(tmp_path, on_commit=seen.append) as log:

        def write(name: str) -> None:
            for number in range(50):
                log.append(note(f"{name}{number}"))

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        entries = list(log.entries())
    assert [entry.seq for entry in entries] == list(range(1, 201))
    assert {entry.record.text for entry in entries if isinstance(entry.record, NoteWritten)} == {
        f"{name}{number}" for name in "abcd" for number in range(50)
    }
    assert seen == entries


def test_a_run_begins_with_its_engine(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        assert log.append(note("before")).run == 0
        assert log.append(EngineStarted(run=1, pid=1, boot_id="b", clock_speed=1.0)).run == 1
        assert log.append(note("in run 1")).run == 1
    with SqliteLog(tmp_path) as log:
        assert log.append(note("still run 1")).run == 1
        assert log.append(EngineStarted(run=2, pid=2, boot_id="b", clock_speed=1.0)).run == 2


def test_times_are_those_of_the_clock_it_was_given(tmp_path: Path) -> None:
    with SqliteLog(tmp_path, now_s=lambda: 12.5, wall_s=lambda: 1e9) as log:
        entry = log.append(note("x"))
    assert (entry.at_s, entry.wall_s) == (12.5, 1e9)


def test_a_second_writer_is_refused_and_readers_are_not(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        log.append(note("x"))
        with pytest.raises(LogError, match="another process"):
            SqliteLog(tmp_path)
        with LogReader(tmp_path) as reader:
            assert reader.last_seq() == 1
            log.append(note("y"))
            assert [entry.seq for entry in reader.entries()] == [1, 2]
    SqliteLog(tmp_path).close()


def test_nothing_is_written_after_close(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path)
    log.close()
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.append(note("late"))


def test_rows_cannot_be_changed_or_removed(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        log.append(note("x"))
    connection = sqlite3.connect(tmp_path / "log.sqlite")
    for statement in ("UPDATE entries SET body = '{}'", "DELETE FROM entries"):
        with pytest.raises(sqlite3.IntegrityError, match="only added"):
            connection.execute(statement)
    connection.close()


def test_it_is_durable_as_designed(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        assert log._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert log._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert log._connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").write_bytes(b"not a database, but long enough to be looked at " * 40)
    with pytest.raises(LogError, match=r"damaged or no database.*recover"):
        SqliteLog(tmp_path)
    with pytest.raises(LogError, match="damaged"):
        LogReader(tmp_path)


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "log.sqlite")
    connection.execute("CREATE TABLE recipes (title TEXT)")
    connection.commit()
    connection.close()
    for kind in (SqliteLog, LogReader):
        with pytest.raises(LogError, match="no file of a session"):
            kind(tmp_path)
    connection = sqlite3.connect(tmp_path / "log.sqlite")
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("recipes",)]
    connection.close()


def test_another_version_is_refused(tmp_path: Path) -> None:
    SqliteLog(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "log.sqlite")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    for kind in (SqliteLog, LogReader):
        with pytest.raises(LogError, match="version 99"):
            kind(tmp_path)


def test_a_folder_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no session folder"):
        LogReader(tmp_path / "nothing")
    with pytest.raises(LogError, match="cannot be opened"):
        SqliteLog(tmp_path / "nothing")


FULL = """
import sys, resource, signal
from pathlib import Path
from harness.session.log.writer import SqliteLog
from harness.session.log.reader import LogReader, check
from harness.model.errors import LogFull
from harness.model.record import NoteWritten

folder, how = Path(sys.argv[1]), sys.argv[2]
acknowledged = []

def fill():
    for number in range(100_000):
        text = f"{number:06d}" + "x" * 2000
        try:
            log.append(NoteWritten(text=text, by="t"))
        except LogFull as error:
            assert "Make room" in str(error), error
            return
        acknowledged.append(text)
    raise SystemExit("never full")

log = SqliteLog(folder)
if how == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
fill()
before = len(acknowledged)
assert before > 10, before
# Still full: refused again, and nothing is stuck.
try:
    log.append(NoteWritten(text="y" * 500_000, by="t"))
except LogFull:
    pass
else:
    raise SystemExit("a row larger than the room was taken")
if how == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
else:
    (folder.parent / "ballast").unlink()
for number in range(20):
    acknowledged.append(f"again{number}")
    log.append(NoteWritten(text=acknowledged[-1], by="t"))
log.close()
with LogReader(folder) as reader:
    entries = list(reader.entries())
assert [entry.record.text for entry in entries] == acknowledged
assert [entry.seq for entry in entries] == list(range(1, len(acknowledged) + 1))
assert not check(folder).damage
print("rows", before, len(entries))
"""


def test_no_room_is_said_and_writing_goes_on_when_there_is_room(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), "limit"], capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("rows")


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """A tmpfs of 2 MB, half of it ballast, in a mount namespace of its own."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this host lets us mount nothing")
    (tmp_path / "full.py").write_text(FULL)
    mount = tmp_path / "disk"
    mount.mkdir()
    script = (
        f"mount -t tmpfs -o size=2m small {mount} && mkdir {mount}/session && "
        f"head -c 1000000 /dev/zero > {mount}/ballast && {sys.executable} {tmp_path}/full.py {mount}/session disk"
    )
    found = subprocess.run(
        [unshare, "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode == 0, found.stderr
