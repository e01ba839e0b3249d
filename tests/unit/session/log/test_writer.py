"""The writer of a session log: order, acknowledgement, damage, a second writer, a full disk."""

from __future__ import annotations

import os
import queue
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.base.codec import RECORDS, decode, encode
from harness.base.places import SessionFolder
from harness.base.row_store import APPLICATION_ID
from harness.model.errors import LogError
from harness.model.record import EngineStarted, Entry, NoteWritten, ResponseFrozen
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.session.log.database import SqliteLog, restore_rescued_log
from harness.session.log.reader import LogReader, check, read_clip
from tests.unit.session.log.records import KINDS, rows_of
from tests.written_sessions import records


def note(text: str) -> NoteWritten:
    return NoteWritten(text=text, by="test")


def altered(folder: Path, statement: str) -> list[tuple[object, ...]]:
    """What comes of a statement on the database, past every guard of ours."""
    with closing(sqlite3.connect(folder / "log.sqlite")) as connection, connection:
        return connection.execute(statement).fetchall()


def test_rows_are_numbered_without_gaps_and_in_order(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        entries = [log.append(note(str(number))) for number in range(5)]
        assert [entry.seq for entry in entries] == [1, 2, 3, 4, 5]
        assert list(log.entries()) == entries
        assert list(log.entries(after_seq=3)) == entries[3:]
        assert log.last_seq == 5
    with SqliteLog(tmp_path) as reopened:
        assert reopened.append(note("more")).seq == 6


def test_a_closed_log_is_not_locked_by_a_child_that_has_yet_to_become_its_program(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        log.append(note("first"))
        copy = os.dup(log._lock_fd)  # as such a child has of every open file
    with SqliteLog(tmp_path) as reopened:
        assert reopened.append(note("second")).seq == 2
    os.close(copy)


def test_many_threads_share_commits_and_each_row_is_there_once(tmp_path: Path) -> None:
    committed: list[Entry] = []
    with SqliteLog(tmp_path, on_commit=committed.append) as log:

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
    assert {row.text for row in records(entries, NoteWritten)} == {
        f"{name}{number}" for name in "abcd" for number in range(50)
    }
    assert committed == entries


def test_a_run_begins_with_its_engine(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        assert log.append(note("before")).run == 0
        assert log.append(EngineStarted(run=1, pid=1, boot_id="b", clock_speed=1.0)).run == 1
        assert log.append(note("in run 1")).run == 1
    with SqliteLog(tmp_path) as log:
        assert log.append(note("still run 1")).run == 1
        assert log.append(EngineStarted(run=2, pid=2, boot_id="b", clock_speed=1.0)).run == 2


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


def test_a_lock_that_is_a_link_leaves_its_target_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "writer.lock").symlink_to(precious)
    with pytest.raises(LogError, match=r"writer\.lock cannot be opened"):
        SqliteLog(tmp_path)
    assert precious.read_text() == "mine"


def test_nothing_is_written_after_close(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path)
    log.close()
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.append(note("late"))


def test_rows_cannot_be_changed_or_removed(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        log.append(note("x"))
    for statement in ("UPDATE entries SET body = '{}'", "DELETE FROM entries"):
        with pytest.raises(sqlite3.IntegrityError, match="only added"):
            altered(tmp_path, statement)


def test_log_uses_durable_database_settings(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        assert log._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert log._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert log._connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").write_bytes(b"not a database, but long enough to be looked at " * 40)
    with pytest.raises(LogError, match=r"damaged or not a database.*recover"):
        SqliteLog(tmp_path)
    with pytest.raises(LogError, match="damaged"):
        LogReader(tmp_path)


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    altered(tmp_path, "CREATE TABLE recipes (title TEXT)")
    for kind in (SqliteLog, LogReader):
        with pytest.raises(LogError, match="does not belong to a session"):
            kind(tmp_path)
    assert altered(tmp_path, "SELECT name FROM sqlite_schema") == [("recipes",)]


def test_another_version_is_refused(tmp_path: Path) -> None:
    SqliteLog(tmp_path).close()
    altered(tmp_path, "PRAGMA user_version=99")
    for kind in (SqliteLog, LogReader):
        with pytest.raises(LogError, match="version 99"):
            kind(tmp_path)


def test_a_folder_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="not a session folder"):
        LogReader(tmp_path / "nothing")
    with pytest.raises(LogError, match="cannot be opened"):
        SqliteLog(tmp_path / "nothing")


FULL = """
import sys, resource, signal
from pathlib import Path
from harness.session.log.database import SqliteLog
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
            assert "Free space on that disk" in str(error), error
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


def test_a_full_disk_is_reported_and_writing_resumes_with_room(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), "limit"], capture_output=True, text=True, timeout=60, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("rows")


def test_a_full_file_system_loses_no_acknowledged_row(tmp_path: Path) -> None:
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
    process = subprocess.run(
        [unshare, "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert process.returncode == 0, process.stderr


def _delete(folder: Path) -> None:
    for path in folder.glob("log.sqlite*"):
        path.unlink()


def _move_and_put_an_empty_file(folder: Path) -> None:
    (folder / "log.sqlite").rename(folder.parent / "elsewhere")
    (folder / "log.sqlite").touch()


def _delete_only_the_write_ahead_log(folder: Path) -> None:
    (folder / "log.sqlite-wal").unlink()


def _overwrite(folder: Path) -> None:
    os.truncate(folder / "log.sqlite", 0)


@pytest.mark.parametrize("strike", [_delete, _move_and_put_an_empty_file, _delete_only_the_write_ahead_log, _overwrite])
@pytest.mark.parametrize("idle", [False, True])
def test_a_log_that_is_gone_acknowledges_nothing_and_its_rows_are_rescued(
    strike: Callable[[Path], None], idle: bool, tmp_path: Path
) -> None:
    (folder := tmp_path / "s").mkdir()
    log = SqliteLog(folder)
    for number in range(300):
        log.append(NoteWritten(f"{number} {'x' * 2000}", "t"))  # more than one checkpoint
    strike(folder)
    with pytest.raises(LogError, match="was deleted, moved or replaced"):
        log.demand_place()
    for late in () if idle else ("first", "second"):
        with pytest.raises(LogError, match=r"Its rows are in log\.rescue\.sqlite"):
            log.append(NoteWritten(late, "t"))
    log.close()
    with pytest.raises(LogError, match="Continue with these rows: harness run resume"):
        check(folder)
    assert "Its rows were rescued" in restore_rescued_log(SessionFolder(folder))
    assert restore_rescued_log(SessionFolder(folder)) == ""
    findings = check(folder)
    assert (findings.damage, findings.notes, findings.rows) == ((), (), 300 if idle else 302)


def test_a_moved_folder_keeps_its_rows(tmp_path: Path) -> None:
    (folder := tmp_path / "s").mkdir()
    log = SqliteLog(folder)
    log.append(NoteWritten("first", "t"))
    folder.rename(tmp_path / "moved")
    for end in (lambda: log.append(NoteWritten("second", "t")), log.close):
        with pytest.raises(LogError, match="If the folder was moved, resume the session from the new folder"):
            end()
    findings = check(tmp_path / "moved")
    assert (findings.damage, findings.rows) == ((), 2)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(
    max_examples=settings.default.max_examples // 3,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(drawn=st.data())
def test_any_row_survives_encoding_and_decoding(kind: type, drawn: st.DataObject) -> None:
    record = drawn.draw(rows_of(kind))
    text = encode(RECORDS, record)
    assert b"\n" not in text
    back = decode(RECORDS, text)
    assert type(back) is kind
    assert back == record


KILLS = 100

# One process imports everything once, then forks a writer for each kill: the writer's acknowledgements go into a pipe.
NURSERY = """
import os, random, signal, sys, threading, time
from pathlib import Path
import numpy as np
from harness.session.log.database import SqliteLog
from harness.model.record import NoteWritten, ResponseFrozen
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

def write(folder, kill, out):
    log = SqliteLog(folder)
    sound = Waveform(np.linspace(-0.5, 0.5, 4800, dtype=np.float32), 48000)
    def notes(name):
        number = 0
        while True:
            text = f"{kill}-{name}-{number}"
            log.append(NoteWritten(text=text, by="t"))
            os.write(out, f"note {text}\\n".encode())
            number += 1
    def clips():
        while True:
            clip = log.save_clip(sound, 0.0)
            log.append(ResponseFrozen("t", 1, 1, clip, Stamp(0.0), Stamp(0.1)))
            os.write(out, f"clip {clip.name}\\n".encode())
    for target, args in ((notes, ("a",)), (notes, ("b",)), (clips, ())):
        threading.Thread(target=target, args=args, daemon=True).start()
    signal.pause()

folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
for kill in range(kills):
    into, out = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(into)
        try:
            write(folder, kill, out)
        finally:
            os._exit(9)
    os.close(out)
    said = os.read(into, 1)  # the first acknowledgement: from here on, any moment will do
    time.sleep(chance.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    while piece := os.read(into, 65536):
        said += piece
    os.close(into)
    os.waitpid(child, 0)
    sys.stdout.write(said.decode())
"""


def test_100_kills_lose_no_acknowledged_row(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NURSERY, str(tmp_path), str(KILLS), "7"],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    acknowledged = set(process.stdout.splitlines())
    assert len({line.split(" ")[1].split("-")[0] for line in acknowledged if line.startswith("note")}) > KILLS * 0.9
    stored: list[str] = []
    with LogReader(tmp_path) as reader:
        for entry in reader.entries():
            match entry.record:
                case NoteWritten(text=text):
                    stored.append(f"note {text}")
                case ResponseFrozen(clip=clip):
                    stored.append(f"clip {clip.name}")
    assert acknowledged <= set(stored)
    assert len(stored) == len(set(stored))
    findings = check(tmp_path)
    assert findings.damage == ()
    assert findings.rows == len(stored)


def tone(hz: float = 440.0, rate_hz: int = 48000) -> Waveform:
    time = np.arange(rate_hz // 10) / rate_hz
    return Waveform((0.5 * np.sin(2 * np.pi * hz * time)).astype(np.float32), rate_hz)


def frozen(log: SqliteLog, hz: float = 440.0) -> ResponseFrozen:
    clip = log.save_clip(tone(hz), 3.25)
    row = ResponseFrozen("t1", 1, 1, clip, Stamp(3.25), Stamp(3.35))
    log.append(row)
    return row


def test_a_clip_comes_back_to_16_bits(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        clip = log.save_clip(tone(), 3.25)
    back = read_clip(tmp_path / "clips", clip)
    assert (clip.samples, clip.rate_hz, clip.start_s) == (4800, 48000, 3.25)
    assert back.rate_hz == 48000
    assert np.max(np.abs(back.samples - tone().samples)) <= 1 / 32768
    assert not list((tmp_path / "clips").glob(".*"))


def test_sound_above_full_scale_is_clipped_and_not_wrapped(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        clip = log.save_clip(Waveform(np.full(480, 1.7, dtype=np.float32), 48000), 0.0)
    assert read_clip(tmp_path / "clips", clip).samples.min() > 0.99


def test_a_clip_without_samples_is_refused(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log, pytest.raises(LogError, match="without samples"):
        log.save_clip(Waveform(np.zeros(0, dtype=np.float32), 48000), 0.0)


def test_names_go_on_after_a_resume(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        first = log.save_clip(tone(), 0.0)
    with SqliteLog(tmp_path) as log:
        second = log.save_clip(tone(), 0.0)
    assert (first.name[:6], second.name[:6]) == ("00001-", "00002-")


def test_missing_altered_and_unnamed_clips_are_reported(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        whole, missing, altered = (frozen(log, hz) for hz in (300.0, 400.0, 500.0))
        unnamed = log.save_clip(tone(600.0), 0.0)
    clips = tmp_path / "clips"
    assert check(tmp_path).damage == ()
    (clips / missing.clip.name).unlink()
    content = bytearray((clips / altered.clip.name).read_bytes())
    content[-20] ^= 1
    (clips / altered.clip.name).write_bytes(content)
    (clips / ".00009-x.flac.1.part").write_bytes(b"fLaC")
    findings = check(tmp_path)
    assert findings.damage == (
        f"row 2: clip {missing.clip.name} is missing",
        f"row 3: clip {altered.clip.name} is not what was stored: its SHA-256 differs",
    )
    assert [unnamed.name in findings.notes[0], "incomplete clip" in findings.notes[1]] == [True, True]
    read_clip(clips, whole.clip)
    for clip in (missing.clip, altered.clip):
        with pytest.raises(LogError, match=clip.name):
            read_clip(clips, clip)
    SqliteLog(tmp_path).close()  # the next writer removes the half
    assert not list(clips.glob(".*"))


@pytest.mark.parametrize("name", ["../log.sqlite", "/etc/passwd", ".hidden", "a/b.flac"])
def test_a_row_cannot_name_a_file_elsewhere(tmp_path: Path, name: str) -> None:
    with SqliteLog(tmp_path) as log:
        row = frozen(log)
        log.append(replace(row, clip=replace(row.clip, name=name)))
    assert check(tmp_path).damage == (f"row 2: clip {name} is not a clip name",)


def test_gaps_and_unreadable_rows_are_reported(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        log.append(NoteWritten("a", "t"))
        log._connection.execute(
            "INSERT INTO entries (seq, run, at_s, wall_s, kind, body)"
            " VALUES (3, 0, 0.0, 0.0, 'note_written', '{\"kind\":\"no_such\"}')"
        )
    findings = check(tmp_path)
    assert findings.damage[0] == "rows 2 to 2 are missing"
    assert findings.damage[1].startswith("row 3 (note_written) cannot be read")
    with LogReader(tmp_path) as reader, pytest.raises(LogError, match="row 3 cannot be read"):
        list(reader.entries())


def test_a_damaged_page_is_reported(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        for number in range(200):
            log.append(NoteWritten(f"{number}" * 50, "t"))
    database = tmp_path / "log.sqlite"
    content = bytearray(database.read_bytes())
    content[3 * 4096 : 3 * 4096 + 600] = b"\xff" * 600
    database.write_bytes(content)
    assert any("damaged" in damage for damage in check(tmp_path).damage)


def test_an_error_of_a_subscriber_reaches_who_appended_and_the_log_goes_on(tmp_path: Path) -> None:
    committed: list[Entry] = []

    def take(entry: Entry) -> None:
        committed.append(entry)
        if entry.seq == 1:
            raise ZeroDivisionError

    outcomes: queue.SimpleQueue[object] = queue.SimpleQueue()

    def append() -> None:
        try:
            outcomes.put(log.append(note("x")).seq)
        except ZeroDivisionError as error:
            outcomes.put(type(error))

    with SqliteLog(tmp_path, on_commit=take) as log:
        for expected in (ZeroDivisionError, 2):
            threading.Thread(target=append, daemon=True).start()
            assert outcomes.get(timeout=30) == expected
    assert [entry.seq for entry in committed] == [1, 2]
