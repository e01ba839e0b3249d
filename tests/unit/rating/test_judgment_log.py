"""The file of judgments beside a log: many writers, kills, repeated rows, and files that are none."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from harness.model.effect import EffectOutcome
from harness.model.errors import LogError, LogFull
from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.record import EffectAnswered, JudgmentGiven, NoteWritten
from harness.rating.judgment_log import JudgmentLog
from harness.session.log.database import SqliteLog
from harness.session.log.reader import check, rating_rows
from tests.unit.session.log.records import KILLS, killed, together

WRITERS = 8
ROWS = 25
SAVES = """
from harness.rating.judgment_log import JudgmentLog as opened
from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.record import JudgmentGiven

def save(log, name):
    log.append(JudgmentGiven(Judgment(name, "t", 1, "ann", JudgmentStatus.SUBMITTED, Category.WRONG, "c")))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    SqliteLog(tmp_path).close()
    return tmp_path


def given(name: str, trial: str = "t") -> JudgmentGiven:
    return JudgmentGiven(Judgment(name, trial, 1, "ann", JudgmentStatus.SUBMITTED, Category.WRONG, "c"))


def ids(folder: Path) -> list[str]:
    return [row.record.judgment.id for row in rating_rows(folder) if isinstance(row.record, JudgmentGiven)]


def test_eight_processes_at_once_lose_nothing(folder: Path) -> None:
    acknowledged = together(folder, SAVES, WRITERS, ROWS)
    assert len(acknowledged) == WRITERS * ROWS
    assert sorted(ids(folder)) == sorted(acknowledged)
    assert [row.seq for row in rating_rows(folder)] == list(range(1, WRITERS * ROWS + 1)), "numbers without gaps"
    findings = check(folder)
    assert (findings.damage, findings.sealed, findings.rows) == ((), True, WRITERS * ROWS), "one chain of all writers"


def test_kills_lose_no_acknowledged_row(folder: Path) -> None:
    acknowledged = killed(folder, SAVES)
    stored = ids(folder)
    assert len({name.split("-")[0] for name in acknowledged}) > KILLS * 0.9
    assert set(acknowledged) <= set(stored)
    assert len(stored) == len(set(stored))
    findings = check(folder)
    assert (findings.damage, findings.sealed, findings.rows) == ((), True, len(stored))
    assert check(folder).damage == ()


def test_rows_that_are_sent_again_are_written_once(folder: Path) -> None:
    records = [given(name) for name in "abbc"]
    log, other = JudgmentLog(folder), JudgmentLog(folder)
    rows = log.add(records)
    assert [row[0] for row in rows] == [1, 2, 2, 3]
    assert log.add(records) == rows
    assert other.add(records) == rows, "by another process, too"
    assert [row[0] for row in other.add([*records, given("d")])][-1] == 4
    assert ids(folder) == ["a", "b", "c", "d"]
    assert log.add([]) == []


def test_an_effect_answered_twice_has_two_rows(folder: Path) -> None:
    log = JudgmentLog(folder)
    answer = EffectAnswered("t", 1, 1, EffectOutcome.RIGHT, "ann")
    log.append(answer)
    log.append(answer)
    assert [row.record for row in rating_rows(folder)] == [answer, answer]


def test_bench_and_later_judgments_are_merged_by_time(tmp_path: Path) -> None:
    times = iter((10.0, 4e9))
    with SqliteLog(tmp_path, wall_s=lambda: next(times)) as log:
        log.append(given("at the bench"))
        JudgmentLog(tmp_path).append(given("later"))
        log.append(given("at the bench again"))
    assert ids(tmp_path) == ["at the bench", "later", "at the bench again"]


def test_a_batch_that_cannot_be_written_leaves_nothing(folder: Path) -> None:
    log = JudgmentLog(folder)
    with pytest.raises(LogError, match="cannot be written as text"):
        log.add([given("a"), given("\udcff")])
    assert ids(folder) == []
    assert [row[0] for row in log.add([given("a")])] == [1]


@pytest.mark.parametrize("inside", ["nothing", "a file"])
def test_a_folder_that_is_no_session_is_refused(tmp_path: Path, inside: str) -> None:
    place = tmp_path / "none"
    if inside == "a file":
        place.mkdir()
        (place / "notes.txt").write_text("hello")
    with pytest.raises(LogError, match="not a session folder"):
        JudgmentLog(place)
    assert not (place / "judgments.sqlite").exists()


def test_a_foreign_database_is_refused_and_left_alone(folder: Path) -> None:
    path = folder / "judgments.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE birds (name TEXT)")
    connection.close()
    for read in (lambda: JudgmentLog(folder), lambda: rating_rows(folder)):
        with pytest.raises(LogError, match=r"judgments.sqlite does not belong to a session"):
            read()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("birds",)]
    connection.close()


def test_another_version_is_refused(folder: Path) -> None:
    JudgmentLog(folder).append(given("a"))
    with sqlite3.connect(folder / "judgments.sqlite") as connection:
        connection.execute("PRAGMA user_version=9")
    connection.close()
    with pytest.raises(LogError, match=", version 9"):
        JudgmentLog(folder)


def test_invalid_database_is_refused_and_reported_as_damage(folder: Path) -> None:
    (folder / "judgments.sqlite").write_bytes(b"hello" * 1000)
    for read in (JudgmentLog, rating_rows):
        with pytest.raises(LogError, match="damaged or not a database"):
            read(folder)
    (damage,) = check(folder).damage
    assert damage.startswith("judgments.sqlite is damaged or not a database")


def test_a_row_that_cannot_be_read_is_named(folder: Path) -> None:
    log = JudgmentLog(folder)
    log.append(given("a"))
    log._connection.execute(
        "INSERT INTO entries (seq, run, at_s, wall_s, kind, body)"
        " VALUES (3, 0, 0.0, 0.0, 'judgment_given', '{\"kind\":\"no_such\"}')"
    )
    with pytest.raises(LogError, match="row 3 cannot be read"):
        rating_rows(folder)
    assert [line.partition(" cannot")[0] for line in check(folder).damage] == [
        "judgments.sqlite: rows 2 to 2 are missing",
        "judgments.sqlite: row 3 (judgment_given)",
        "judgments.sqlite: row 3 has no SHA-256",
    ]


def test_rows_of_other_kinds_count_as_damage(folder: Path) -> None:
    log = JudgmentLog(folder)
    log.append(NoteWritten("hello", "ann"))  # type: ignore[arg-type]
    assert check(folder).damage == ("judgments.sqlite: row 1 (note_written) does not belong in this file",)


def test_an_unwritable_folder_is_reported(folder: Path) -> None:
    (folder / "judgments.sqlite").mkdir()
    with pytest.raises(LogError, match=r"judgments\.sqlite"):
        JudgmentLog(folder)
    if os.getuid():  # root may write anywhere
        (folder / "judgments.sqlite").rmdir()
        folder.chmod(0o500)
        with pytest.raises(LogError, match=r"judgments\.sqlite"):
            JudgmentLog(folder)
        folder.chmod(0o700)


def test_closed_judgment_log_refuses_rows(folder: Path) -> None:
    log = JudgmentLog(folder)
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.append(given("a"))


def test_a_full_disk_is_reported_and_later_rows_are_stored(folder: Path) -> None:
    log = JudgmentLog(folder)
    log.append(given("a"))
    (pages,) = log._connection.execute("PRAGMA page_count").fetchone()
    log._connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(LogFull, match="no disk space"):
        log.append(given("b", "t" * 50_000))
    assert ids(folder) == ["a"]
    log._connection.execute("PRAGMA max_page_count=1000000")
    log.append(given("b", "t" * 50_000))
    assert ids(folder) == ["a", "b"]


def test_removed_folder_takes_no_rows_until_it_is_restored(tmp_path: Path) -> None:
    folder, aside = tmp_path / "s", tmp_path / "aside"
    folder.mkdir()
    SqliteLog(folder).close()
    log = JudgmentLog(folder)
    log.append(given("a"))
    folder.rename(aside)
    with pytest.raises(LogError, match="not a session folder"):
        log.append(given("b"))
    shutil.copytree(aside, folder)
    log.append(given("c"))
    log.close()
    assert ids(folder) == ["a", "c"]


def test_a_file_whose_maker_was_killed_reads_as_empty_and_is_made_by_the_next(folder: Path) -> None:
    (folder / "judgments.sqlite").touch()
    assert rating_rows(folder) == ()
    assert check(folder).damage == ()
    JudgmentLog(folder).append(given("a"))
    assert ids(folder) == ["a"]
