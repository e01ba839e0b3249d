"""Archives whose databases attack their reader: each verb refuses them within seconds, in little memory."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.base.chain import row_hash
from harness.base.foreign import plain_text
from harness.base.row_store import APPLICATION_ID, INSERT
from harness.model.errors import InputError, LogError
from harness.model.record import NoteWritten, Record, ResponseFrozen, SessionStarted
from harness.model.stimulus import Clip, Waveform
from harness.model.time import Stamp
from harness.session.archive import UnpackLimits, unpack
from harness.session.log import clips, reader
from harness.session.log.database import SqliteLog
from harness.session.log.reader import LogReader, check, stored_bytes
from tests.seen import until

KEPT = Path(__file__).parents[2] / "data" / "kept" / "queries"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
ROW = "x AS seq, 1 AS run, 0.0 AS at_s, 0.0 AS wall_s, 'note_written' AS kind"
INTERIOR_TABLE_PAGE = 5
"""Type of a page of SQLite. Its header: type (1 byte), first free block (2), number of cells (2), start of the cells
(2), free bytes (1), rightmost child (4). Then 2 bytes for the place of each cell."""
CPU_S, MEMORY_MB = 30.0, 500
"""For five verbs in one process."""


def _tables(*statements: str) -> Callable[[Path], None]:
    """The kept log with other tables under its name."""

    def attack(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "log.sqlite", isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
            for statement in statements:
                connection.execute(statement)
            connection.execute("PRAGMA journal_mode=WAL")

    return attack


def _schema_of_megabytes(folder: Path) -> None:
    _tables(f"CREATE VIEW more AS SELECT '{'x' * 8_000_000}'")(folder)


def _many_tables(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "log.sqlite")) as connection, connection:
        connection.execute("PRAGMA writable_schema=ON")
        views = ((f"v{number}", f"CREATE VIEW v{number} AS SELECT 1") for number in range(100_000))
        connection.executemany("INSERT INTO sqlite_schema VALUES ('view', ?1, ?1, 0, ?2)", views)


def _journal_that_names_a_file(folder: Path) -> None:
    """A hot journal: playing it back would remove the file that it names as its super-journal."""
    victim = str(folder.parent / "precious").encode()
    # Rollback journal (sqlite.org/fileformat): magic, number of records, nonce, pages, bytes of a sector and of a page.
    # At the end of the file: page number, name of the super-journal, its length, its checksum, magic.
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">5I", 0, 0, 1, 512, 4096)
    end = struct.pack(">I", 1) + victim + struct.pack(">II", len(victim), sum(victim)) + magic
    (folder / "log.sqlite-journal").write_bytes(header.ljust(512, b"\0") + end)


def _rewrite(folder: Path, change: Callable[[bytearray, int, int], None]) -> None:
    """Changes bytes of the table: its content, the size of a page, and where the table's root page begins."""
    with closing(sqlite3.connect(folder / "log.sqlite")) as connection:
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        (root_page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'entries'").fetchone()
    content = bytearray((folder / "log.sqlite").read_bytes())
    change(content, page_bytes, (root_page - 1) * page_bytes)
    (folder / "log.sqlite").write_bytes(content)


def _pages_in_a_circle(folder: Path) -> None:
    """Each of 400 children of the root is the same page, three times over."""

    def change(content: bytearray, page_bytes: int, root_offset: int) -> None:
        assert content[root_offset] == INTERIOR_TABLE_PAGE, "the table has pages below its root"
        leaf = content[root_offset + 8 : root_offset + 12]
        cells = struct.unpack(">H", content[root_offset + 3 : root_offset + 5])[0]
        first = struct.unpack(">H", content[root_offset + 12 : root_offset + 14])[0]
        for number in range(cells):
            content[root_offset + 12 + 2 * number : root_offset + 14 + 2 * number] = struct.pack(">H", first)
        content[root_offset + first : root_offset + first + 4] = leaf

    _rewrite(folder, change)


def _length_of_a_gigabyte(folder: Path) -> None:
    """The first cell of the first leaf says that its row has 2**30 bytes."""

    def change(content: bytearray, page_bytes: int, root_offset: int) -> None:
        first = struct.unpack(">H", content[root_offset + 12 : root_offset + 14])[0]
        leaf = (struct.unpack(">I", content[root_offset + first : root_offset + first + 4])[0] - 1) * page_bytes
        cell = leaf + struct.unpack(">H", content[leaf + 8 : leaf + 10])[0]
        content[cell : cell + 5] = bytes([0x84, 0x80, 0x80, 0x80, 0x00])  # 2**30 as a varint of SQLite

    _rewrite(folder, change)


def _view_in_the_write_ahead_log(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "log.sqlite", isolation_level=None)) as connection:
        connection.execute("DROP TABLE entries")
        connection.execute(f"CREATE VIEW entries AS {ENDLESS} SELECT {ROW}, '' AS body, NULL AS chain FROM n")
        copy = (folder / "log.sqlite-wal").read_bytes()
    shutil.copy(KEPT / "log.sqlite", folder / "log.sqlite")
    (folder / "log.sqlite-wal").write_bytes(copy)


def _judgments(folder: Path) -> None:
    (folder / "judgments.sqlite").rename(folder / "log.aside")
    with closing(sqlite3.connect(folder / "judgments.sqlite", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute("PRAGMA user_version=1")
        connection.execute(f"CREATE VIEW entries AS {ENDLESS} SELECT {ROW}, '' AS body, NULL AS chain FROM n")
    (folder / "log.aside").unlink()


ATTACKS: dict[str, Callable[[Path], None]] = {
    "endless view": _tables(
        "DROP TABLE entries", f"CREATE VIEW entries AS {ENDLESS} SELECT {ROW}, '{{}}' AS body, NULL AS chain FROM n"
    ),
    "view that never gives a row": _tables(
        "DROP TABLE entries",
        f"CREATE VIEW entries AS {ENDLESS} SELECT {ROW}, '{{}}' AS body, NULL AS chain FROM n WHERE x < 0",
    ),
    "generated column": _tables(
        "ALTER TABLE entries RENAME TO kept",
        "CREATE TABLE entries (seq INTEGER PRIMARY KEY, run, at_s, wall_s, kind, chain,"
        " body TEXT GENERATED ALWAYS AS (hex(zeroblob(400000000))) VIRTUAL)",
        "INSERT INTO entries (seq, run, at_s, wall_s, kind, chain) SELECT seq, 1, 1, 1, kind, chain FROM kept",
    ),
    "zeroblob": _tables(
        "DROP TABLE entries",
        f"CREATE VIEW entries AS {ENDLESS} SELECT {ROW}, CAST(zeroblob(900000000) AS TEXT) AS body,"
        " NULL AS chain FROM n LIMIT 9",
    ),
    "expression in an index": _tables("CREATE INDEX more ON entries (length(hex(zeroblob(seq * 100000))))"),
    "endless trigger": _tables(
        f"CREATE TRIGGER more AFTER INSERT ON entries BEGIN SELECT count(*) FROM ({ENDLESS} SELECT x FROM n); END"
    ),
    "virtual table": _tables("DROP TABLE entries", "CREATE VIRTUAL TABLE entries USING fts5(kind, body)"),
    "schema of megabytes": _schema_of_megabytes,
    "100,000 tables": _many_tables,
    "journal": _journal_that_names_a_file,
    "pages in a circle": _pages_in_a_circle,
    "length of a gigabyte": _length_of_a_gigabyte,
    "view in the write-ahead log": _view_in_the_write_ahead_log,
    "judgments": _judgments,
}

VERB_RUNNER = """
import json, os, resource, sys
from importlib import import_module
from click.testing import CliRunner
from harness.cli import group

for name in ("cli.plain", "report.session_page", "session.archive", "session.engine.prepare", "session.summary"):
    import_module(f"harness.{name}")
for folder in sys.stdin:  # each in a process of its own, which need not import all this again
    if os.fork():
        os.wait()
        continue
    os.chdir(folder.rstrip())
    output_by_verb = {}
    for verb in ("unpack a.zip -o back", "show s", "show --check s", "resume s --plain", "report s --html r.html"):
        result = CliRunner().invoke(group, verb.split())
        output_by_verb[verb] = str(result.exception if result.exception and not result.output else result.output)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    peak_kb = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    outcome = {"output_by_verb": output_by_verb, "cpu_s": usage.ru_utime + usage.ru_stime, "mb": peak_kb / 1024}
    print(json.dumps(outcome), flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def verb_runner() -> Iterator[subprocess.Popen[str]]:
    """Runs the verbs in each folder that it is sent."""
    with subprocess.Popen(
        [sys.executable, "-c", VERB_RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        yield run


def write_archive(folder: Path, archive: Path) -> None:
    """Packs the folder with a manifest that fits, as an attacker would."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    files = [(name, (folder / name).read_bytes()) for name in names if not name.endswith("-shm")]
    entries = [{"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files]
    manifest = {"harness": "0", "rows": 1, "clips": 1, "sealed": True, "files": entries}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as stream:
        stream.writestr("session/manifest.json", json.dumps(manifest))
        for name, data in files:
            stream.writestr(f"session/{name}", data)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_archive_is_refused_by_every_verb(
    attack: str, tmp_path: Path, verb_runner: subprocess.Popen[str]
) -> None:
    folder = shutil.copytree(KEPT, tmp_path / "s")
    (tmp_path / "precious").write_bytes(b"precious")
    ATTACKS[attack](folder)
    write_archive(folder, tmp_path / "a.zip")
    before = sorted(path.name for path in tmp_path.iterdir())
    assert verb_runner.stdin is not None
    assert verb_runner.stdout is not None
    print(tmp_path, file=verb_runner.stdin, flush=True)
    outcome = json.loads(verb_runner.stdout.readline())
    assert outcome["cpu_s"] < CPU_S
    assert outcome["mb"] < MEMORY_MB
    refusals = ("does not write", "damaged", "not part of a session log", "journal")
    if attack == "judgments":
        del outcome["output_by_verb"]["resume s --plain"]  # it reads none
    for verb, output in outcome["output_by_verb"].items():
        assert any(refusal in output for refusal in refusals), (verb, output)
    assert sorted(path.name for path in tmp_path.iterdir()) == before, "nothing is left, and nothing is removed"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_check_of_a_large_archive_and_leaves_nothing(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    (folder := tmp_path / "s").mkdir()
    SqliteLog(folder).close()
    link = bytes(32)
    with closing(sqlite3.connect(folder / "log.sqlite")) as connection, connection:
        for seq in range(1, 120_001):
            row = (seq, 1, 0.0, 0.0, "note_written", json.dumps({"kind": "note_written", "text": "x" * 30, "by": "t"}))
            link = row_hash(link, row)
            connection.execute(INSERT, (*row, link))
    write_archive(folder, tmp_path / "a.zip")
    (work := tmp_path / "work").mkdir()
    harness = [sys.executable, "-c", "from harness.cli import main; main()"]
    command = [*harness, "unpack", str(tmp_path / "a.zip"), "-o", "back", "--max-ratio", "1000"]
    with subprocess.Popen(command, cwd=work, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: any(work.glob(".back.*/log.sqlite-shm")), 60, "the check did not begin")
        os.kill(process.pid, number)
        assert process.wait(30) == status, process.stderr and process.stderr.read()
    assert not any(work.iterdir())


def _write_log(folder: Path, *records: Record) -> Path:
    with SqliteLog(folder) as log:
        for record in records:
            log.append(record)
    return folder


def _session_with_input(name: str) -> SessionStarted:
    return SessionStarted(
        session_id="s",
        scenario_id="a",
        title="A",
        scenario_sha256="",
        bench_id="b",
        bench_sha256="",
        seed=1,
        sound_path="in process",
        versions=(),
        trials=(),
        files=((name, "0" * 64),),
        tied=True,
    )


@pytest.mark.parametrize("name", ["/proc/kmsg", "../elsewhere", "inputs/out", "a\0b"])
def test_session_input_outside_its_folder_is_damage(name: str, tmp_path: Path) -> None:
    """Reading /proc/kmsg never ends, and a hash would tell whether a file of this host is a known one."""
    (tmp_path / "elsewhere").touch()
    (folder := tmp_path / "s").mkdir()
    _write_log(folder, _session_with_input(name))
    (folder / "inputs").mkdir()
    (folder / "inputs" / "out").symlink_to(tmp_path / "elsewhere")
    assert f"{plain_text(name)} points outside the session" in check(folder).damage


def test_files_of_any_size_are_checked_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MAX_STORED_BYTES", 1000)
    sound = Waveform(np.zeros(480, np.float32), 48000)
    with SqliteLog(tmp_path) as log:
        log.append(_session_with_input("session.json"))
        clip = log.save_clip(sound, 0.0)
        log.append(ResponseFrozen("t", 1, 1, clip, Stamp(0.0), Stamp(0.1)))
    for path in (tmp_path / "log.seal", tmp_path / "session.json", tmp_path / "clips" / clip.name):
        path.touch()
        os.truncate(path, 20_000_000)
    (tmp_path / "resolved.json").touch()
    os.truncate(tmp_path / "resolved.json", 1001)
    tracemalloc.start()
    damage = check(tmp_path).damage
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
    assert [len([line for line in damage if name in line]) for name in ("log.seal", "session.json", clip.name)] == [
        1
    ] * 3
    with pytest.raises(LogError, match="larger than 1,000 bytes"):
        stored_bytes(tmp_path)


@pytest.mark.parametrize(
    ("name", "samples", "why"),
    [
        ("../s/clips/a.flac", 480, "is not a clip name"),
        ("a\0.flac", 480, "is not a clip name"),
        ("link.flac", 480, "is not a regular file"),
        ("a.flac", 481, "is not as long as its row says"),
        ("n" * 300, 480, "cannot be read"),
        ("a.flac", 480, ""),
        ("long.flac", 1000, "has 1,000 samples; at most 480 are read"),
    ],
)
def test_only_the_sound_that_a_row_names_is_decoded(
    name: str, samples: int, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FLAC of silence has a thousandth of the bytes that its samples take in memory."""
    monkeypatch.setattr(clips, "MAX_SAMPLES", 480)
    (folder := tmp_path / "s" / "clips").mkdir(parents=True)
    for file, length in (("a", 480), ("long", 1000)):
        soundfile.write(folder / f"{file}.flac", np.zeros(length, np.float32), 48000)
    (folder / "link.flac").symlink_to(folder / "a.flac")
    clip = Clip(name, "", 48000, samples, 0.0)
    if why:
        with pytest.raises(LogError, match=why):
            clips.clip_samples(folder, clip)
    else:
        assert len(clips.clip_samples(folder, clip)) == 480


@pytest.mark.parametrize("column", ["at_s", "wall_s"])
def test_a_row_of_a_time_that_no_clock_shows_is_named(column: str, tmp_path: Path) -> None:
    _write_log(tmp_path, NoteWritten("x", "t"))
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as connection, connection:
        connection.execute("DROP TRIGGER never_changed")
        connection.execute(f"UPDATE entries SET {column} = 9e999")
    assert "row 1 (note_written) has an impossible time" in check(tmp_path).damage
    with LogReader(tmp_path) as log, pytest.raises(LogError, match="row 1 has an impossible time"):
        list(log.entries())


@pytest.mark.parametrize("column", ["run", "at_s", "wall_s", "kind", "body", "chain"])
def test_a_damaged_row_whose_value_has_another_type_is_named(column: str, tmp_path: Path) -> None:
    _write_log(tmp_path, NoteWritten("x", "t"), NoteWritten("y", "t"))
    rewrite = "UPDATE sqlite_schema SET sql = ? WHERE type = 'table'"
    with closing(sqlite3.connect(tmp_path / "log.sqlite", isolation_level=None)) as connection:
        (table,) = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'table'").fetchone()
        connection.execute("DROP TRIGGER never_changed")
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(rewrite, (table.replace("STRICT", "").replace(" NOT NULL", "").replace("BLOB", ""),))
        connection.execute("PRAGMA writable_schema=RESET")
        connection.execute(f"UPDATE entries SET {column} = ? WHERE seq = 1", ("x" if column == "chain" else b"x",))
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(rewrite, (table,))
    assert "row 1 is damaged: a value in it has the wrong type" in check(tmp_path).damage
    if column not in ("kind", "chain"):
        with LogReader(tmp_path) as log, pytest.raises(LogError, match="row 1 is damaged"):
            list(log.entries())


@pytest.mark.parametrize(
    ("text", "damaged"), [(b"changed BEFORE", b"changed B\xfcFORE"), (b"only added", b"only \xfcdded")]
)
def test_a_schema_with_damaged_letters_is_refused(text: bytes, damaged: bytes, tmp_path: Path) -> None:
    _write_log(tmp_path, NoteWritten("x", "t"))
    database = tmp_path / "log.sqlite"
    content = database.read_bytes()
    assert text in content
    database.write_bytes(content.replace(text, damaged))
    with pytest.raises(LogError, match=database.name):
        check(tmp_path)


@pytest.mark.parametrize("name", ["", "session/é.json"])
def test_a_zip_member_whose_name_is_damaged_is_refused(name: str, tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as packed, packed.open(zipfile.ZipInfo(name), "w") as member:
        member.write(b"{}")
    archive.write_bytes(archive.read_bytes().replace("é".encode(), b"\xff\xfe"))
    with pytest.raises(InputError) as refused:
        unpack(archive, tmp_path / "back", UnpackLimits())
    assert str(archive) in str(refused.value)
    assert not (tmp_path / "back").exists()
