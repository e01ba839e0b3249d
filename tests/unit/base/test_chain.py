"""What was changed, added or taken out in the files of a session is found and named."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.annotation.project import AnnotationLog, check_annotation
from harness.base.chain import FIRST, read_seal, row_hash
from harness.base.row_store import INSERT
from harness.cli import group
from harness.model.annotation import Labelled
from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.record import EngineStarted, JudgmentGiven, NoteWritten, SessionStarted, SoundRedacted
from harness.rating.judgment_log import JudgmentLog
from harness.session.log.database import SqliteLog
from harness.session.log.reader import LogReader, check, rating_rows

UNSEALED = Path(__file__).parents[2] / "data" / "unsealed"
ROWS = 8
GUARDS = ("never_changed", "never_removed")


def note(text: str) -> NoteWritten:
    return NoteWritten(text, "t")


def judged(name: str) -> JudgmentGiven:
    return JudgmentGiven(Judgment(name, "t", 1, "ann", JudgmentStatus.SUBMITTED, Category.WRONG, "c"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A session of 8 rows and 3 judgments, sealed."""
    (tmp_path / "session.json").write_text('{"seed": 1}')
    files = (("session.json", hashlib.sha256(b'{"seed": 1}').hexdigest()),)
    with SqliteLog(tmp_path) as log:
        log.append(SessionStarted("s", "a", "A", "", "b", "", 1, "in process", (), (), files, tied=True))
        for number in range(2, ROWS + 1):
            log.append(note(f"heard {number}"))
    judgments = JudgmentLog(tmp_path)
    judgments.add([judged(name) for name in "abc"])
    judgments.close()
    return tmp_path


def altered(database: Path, *statements: str, keep_guards: bool = True) -> None:
    """What somebody does who knows SQLite: the triggers dropped, and put back afterwards."""
    with sqlite3.connect(database) as connection:
        guards = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for guard in GUARDS:
            connection.execute(f"DROP TRIGGER {guard}")
        for statement in statements:
            connection.execute(statement)
        for (sql,) in guards if keep_guards else ():
            connection.execute(sql)
    connection.close()


def test_an_untouched_session_is_intact_and_sealed(folder: Path) -> None:
    findings = check(folder)
    assert (findings.damage, findings.notes, findings.sealed, findings.rows) == ((), (), True, ROWS + 3)
    assert [(name, end.rows) for name, end in findings.ends] == [("log.sqlite", ROWS), ("judgments.sqlite", 3)]
    assert read_seal(folder / "log.sqlite") == dict(findings.ends)["log.sqlite"]


REWRITTEN = "UPDATE entries SET body = replace(body, 'heard', 'never') WHERE seq = 4"
CHANGED = "has changed since it was written: its SHA-256 differs"


@pytest.mark.parametrize(
    ("statements", "messages"),
    [
        ([REWRITTEN], [f"row 4 {CHANGED}"]),
        (["UPDATE entries SET at_s = at_s + 1 WHERE seq IN (3, 5, 6)"], [f"row 3 {CHANGED}", "rows 5 to 6 have"]),
        (["UPDATE entries SET wall_s = 0 WHERE seq = 1"], [f"row 1 {CHANGED}"]),
        (
            ["UPDATE entries SET kind = 'x' WHERE seq = 2"],
            ["row 2 (x) contains a row of the kind note_written", f"row 2 {CHANGED}"],
        ),
        (["UPDATE entries SET run = 9 WHERE seq = 8"], [f"row 8 {CHANGED}"]),
        (["DELETE FROM entries WHERE seq = 4"], ["rows 4 to 4 are missing"]),
        (
            ["DELETE FROM entries WHERE seq = 4", "UPDATE entries SET seq = seq - 1 WHERE seq > 4"],
            ["rows 4 to 7 have changed since they were written", "row 8 is missing"],
        ),
        (["DELETE FROM entries WHERE seq > 6"], ["rows 7 to 8 are missing"]),
        (["INSERT INTO entries VALUES (9, 0, 1, 1, 'note_written', '{}', zeroblob(32))"], [f"row 9 {CHANGED}"]),
        (["UPDATE entries SET chain = NULL WHERE seq > 5"], ["rows 6 to 8 have no SHA-256"]),
        (["UPDATE entries SET chain = NULL"], ["the rows were sealed, but their SHA-256 values are missing"]),
        (["UPDATE entries SET chain = x'00' WHERE seq = 8"], [f"row 8 {CHANGED}", "row 8, or an earlier row"]),
        (["ALTER TABLE entries DROP COLUMN chain"], ["the rows were sealed, but their SHA-256 values are missing"]),
    ],
)
def test_check_names_changed_rows(folder: Path, statements: list[str], messages: list[str]) -> None:
    altered(folder / "log.sqlite", *statements)
    damage = [line for line in check(folder).damage if "cannot be read" not in line]
    assert len(damage) == len(messages), damage
    assert all(line.startswith(start) for line, start in zip(damage, messages, strict=True)), damage


def test_check_names_removed_triggers(folder: Path) -> None:
    altered(folder / "log.sqlite", REWRITTEN, keep_guards=False)
    gone = [f"the trigger {name}, which protects rows against changes, is missing" for name in GUARDS]
    assert list(check(folder).damage) == [*gone, f"row 4 {CHANGED}"]


def test_a_row_rewritten_with_its_own_hash_breaks_the_chain_behind_it(folder: Path) -> None:
    with sqlite3.connect(folder / "log.sqlite") as connection:
        (before,) = connection.execute("SELECT chain FROM entries WHERE seq = 3").fetchone()
        row = connection.execute("SELECT seq, run, at_s, wall_s, kind, body FROM entries WHERE seq = 4").fetchone()
    connection.close()
    body = row[5].replace("heard", "never")
    altered(
        folder / "log.sqlite",
        f"UPDATE entries SET body = '{body}', chain = x'{row_hash(before, (*row[:5], body)).hex()}' WHERE seq = 4",
    )
    assert list(check(folder).damage) == [f"row 5 {CHANGED}"]


def test_seal_reveals_rows_rewritten_with_new_hashes(folder: Path) -> None:
    with sqlite3.connect(folder / "log.sqlite") as connection:
        rows = connection.execute("SELECT seq, run, at_s, wall_s, kind, body FROM entries ORDER BY seq").fetchall()
    connection.close()
    link, statements = bytes(32), []
    for row in rows:
        body = row[5].replace("heard", "never")
        link = row_hash(link, (*row[:5], body))
        statements.append(f"UPDATE entries SET body = '{body}', chain = x'{link.hex()}' WHERE seq = {row[0]}")
    altered(folder / "log.sqlite", *statements)
    (damage,) = check(folder).damage
    assert damage.startswith("row 8, or an earlier row, has changed since it was sealed")
    (folder / "log.seal").unlink()
    assert any("the end is not sealed" in line for line in check(folder).notes), "what no longer can be shown is said"


def test_judgments_are_chained_and_sealed(folder: Path) -> None:
    altered(folder / "judgments.sqlite", "UPDATE entries SET body = replace(body, 'wrong', 'correct') WHERE seq = 2")
    assert list(check(folder).damage) == [f"judgments.sqlite: row 2 {CHANGED}"]
    altered(folder / "judgments.sqlite", "DELETE FROM entries WHERE seq > 1")
    assert list(check(folder).damage) == ["judgments.sqlite: rows 2 to 3 are missing"]


def _another_session(folder: Path) -> None:
    other = folder / "other"
    other.mkdir()
    with SqliteLog(other) as log:
        log.append(SessionStarted("other", "a", "A", "", "b", "", 1, "in process", (), (), tied=True))
    judgments = JudgmentLog(other)
    judgments.add([judged(name) for name in "abc"])
    judgments.close()
    for name in ("judgments.sqlite", "judgments.seal"):
        (other / name).rename(folder / name)


def _as_an_earlier_version_began_it(folder: Path) -> None:
    link, statements = FIRST, []
    with sqlite3.connect(folder / "judgments.sqlite") as connection:
        for row in connection.execute("SELECT seq, run, at_s, wall_s, kind, body FROM entries ORDER BY seq"):
            link = row_hash(link, row)
            statements.append(f"UPDATE entries SET chain = x'{link.hex()}' WHERE seq = {row[0]}")
    connection.close()
    altered(folder / "judgments.sqlite", *statements)
    (folder / "judgments.seal").unlink()


def _without_hashes(folder: Path) -> None:
    altered(folder / "judgments.sqlite", "UPDATE entries SET chain = NULL")
    (folder / "judgments.seal").unlink()


def _redaction_without_a_reason(folder: Path) -> None:
    log = JudgmentLog(folder)
    log.append(SoundRedacted("c.flac", "0" * 64, ((0.0, 1.0),), "why", "ann"))
    log.close()
    with closing(sqlite3.connect(folder / "judgments.sqlite")) as connection:
        (before,) = connection.execute("SELECT chain FROM entries WHERE seq = 3").fetchone()
        row = connection.execute("SELECT seq, run, at_s, wall_s, kind, body FROM entries WHERE seq = 4").fetchone()
    body = row[5].replace('"why"', '" "')
    link = row_hash(before, (*row[:5], body)).hex()
    altered(folder / "judgments.sqlite", f"UPDATE entries SET body = '{body}', chain = x'{link}' WHERE seq = 4")
    (folder / "judgments.seal").unlink()


def test_check_names_a_row_of_the_wrong_kind(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "judgments.sqlite")) as connection, connection:
        (link,) = connection.execute("SELECT chain FROM entries WHERE seq = 3").fetchone()
        (body,) = connection.execute("SELECT body FROM entries WHERE seq = 3").fetchone()
        for seq, kind in ((4, "sounds_removed"), (5, "sound_redacted")):
            row = (seq, 0, 1.0, 1.0, kind, body)
            link = row_hash(link, row)
            connection.execute(INSERT, (*row, link))
    kind = "contains a row of the kind judgment_given"
    assert check(folder).damage == (
        f"judgments.sqlite: row 4 (sounds_removed) {kind}",
        f"judgments.sqlite: row 5 (sound_redacted) {kind}",
    )


@pytest.mark.parametrize(
    ("strike", "message"),
    [
        (lambda folder: (folder / "judgments.sqlite").unlink(), "judgments.sqlite is missing, and judgments.seal"),
        (lambda folder: os.truncate(folder / "judgments.sqlite", 0), "judgments.sqlite: rows 1 to 3 are missing"),
        (_another_session, "judgments.sqlite: row 1 has changed since it was written, or the file belongs to another"),
        (_as_an_earlier_version_began_it, "judgments.sqlite: nothing links its rows to their session"),
        (_without_hashes, "judgments.sqlite: the rows were sealed, but their SHA-256 values are missing"),
        (_redaction_without_a_reason, "judgments.sqlite: row 4 (sound_redacted) cannot be read"),
    ],
)
def test_missing_judgments_and_those_of_another_session_are_found(
    folder: Path, strike: Callable[[Path], None], message: str
) -> None:
    strike(folder)
    (damage,) = check(folder).damage
    assert damage.startswith(message)


def test_a_file_added_to_the_inputs_is_found(folder: Path) -> None:
    (folder / "inputs" / "profiles").mkdir(parents=True)
    (folder / "inputs" / "profiles" / "more.yaml").touch()
    assert list(check(folder).damage) == ["inputs/profiles/more.yaml was added after the session began"]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER more AFTER INSERT ON entries BEGIN SELECT 1; END",
        "ALTER TABLE entries ADD COLUMN more TEXT",
        "CREATE VIEW more AS SELECT 1",
        "CREATE INDEX more ON entries (kind)",
    ],
)
@pytest.mark.parametrize("name", ["log", "judgments"])
def test_a_foreign_table_is_found(folder: Path, name: str, statement: str) -> None:
    with closing(sqlite3.connect(folder / f"{name}.sqlite")) as connection:
        connection.execute(statement)
    shown = CliRunner().invoke(group, ["show", "--check", str(folder)])
    message = shown.output if name == "judgments" else str(shown.exception)
    assert f"{name}.sqlite contains the" in message
    assert "which the harness does not write" in message


def test_check_covers_files_the_session_started_with(folder: Path) -> None:
    (folder / "session.json").write_text('{"seed": 2}')
    assert list(check(folder).damage) == ["session.json has changed since the session began: its SHA-256 differs"]
    (folder / "session.json").unlink()
    assert list(check(folder).damage) == ["session.json is missing"]


def test_a_resumed_session_continues_the_chain_and_moves_the_seal(folder: Path) -> None:
    first = read_seal(folder / "log.sqlite")
    with SqliteLog(folder) as log:
        log.append(EngineStarted(2, 1, "b", 1.0))
        assert any("the end is not sealed" in line for line in check(folder).notes)
    assert check(folder).damage == ()
    second = read_seal(folder / "log.sqlite")
    assert first is not None
    assert second is not None
    assert (first.rows, second.rows) == (ROWS, ROWS + 1)


@pytest.mark.parametrize("more", [0, 1, 5])
def test_rows_cut_off_before_a_session_is_resumed_stay_visible(folder: Path, more: int) -> None:
    """A writer does not seal what an earlier seal contradicts."""
    altered(folder / "log.sqlite", "DELETE FROM entries WHERE seq > 6")
    with SqliteLog(folder) as log:
        for number in range(more):
            log.append(note(f"later {number}"))
    (damage,) = check(folder).damage
    missing = {0: "rows 7 to 8 are missing", 1: "row 8 is missing"}
    assert damage.startswith(missing.get(more, "row 8, or an earlier row, has changed since it was sealed"))


def test_a_seal_that_cannot_be_read_is_damage(folder: Path) -> None:
    (folder / "log.seal").write_text("{")
    assert check(folder).damage[0].startswith("log.seal cannot be read")


@dataclass(frozen=True)
class Old:
    """A file of rows that the earlier version wrote. rows: how many; add: one more, by this version."""

    name: str
    rows: int
    add: Callable[[Path], None]


def _add_row(folder: Path) -> None:
    with SqliteLog(folder) as log:
        log.append(note("more"))


def _add_judgment(folder: Path) -> None:
    log = JudgmentLog(folder)
    log.append(judged("more"))
    log.close()


def _add_label(folder: Path) -> None:
    log = AnnotationLog(folder)
    log.add([Labelled("more", "ann", "u1", ("brew",))])
    log.close()


@pytest.mark.parametrize(
    "old",
    [Old("log", 15, _add_row), Old("judgments", 2, _add_judgment), Old("annotation", 2, _add_label)],
    ids=lambda old: old.name,
)
def test_files_of_an_earlier_version_are_continued_without_a_seal(tmp_path: Path, old: Old) -> None:
    annotation = old.name == "annotation"
    folder = tmp_path / "old"
    shutil.copytree(UNSEALED / ("annotation" if annotation else "session"), folder)
    checked = check_annotation if annotation else check
    before = checked(folder)
    assert (before.damage, before.sealed, before.ends) == ((), False, ())
    assert any(line.startswith(f"{old.name}.sqlite: not sealed") for line in before.notes)
    old.add(folder)
    after = checked(folder)
    assert (after.damage, after.rows, after.sealed) == ((), before.rows + 1, False)
    assert any(f"rows 1 to {old.rows} were not sealed" in line for line in after.notes)
    altered(folder / f"{old.name}.sqlite", "UPDATE entries SET at_s = at_s + 1 WHERE seq = 2")
    (damage,) = checked(folder).damage
    assert f"row {old.rows + 1}, or an earlier row, {CHANGED}" in damage


def test_session_of_an_earlier_version_reads_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    shutil.copytree(UNSEALED / "session", folder)
    with LogReader(folder) as reader:
        rows = list(reader.entries())
    assert len(rows) == 15
    assert isinstance(rows[0].record, SessionStarted)
    assert len(rating_rows(folder)) == 2


def test_an_annotation_project_is_checked(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    shutil.copytree(UNSEALED / "annotation", folder)
    (folder / "annotation.sqlite").unlink()
    log = AnnotationLog(folder)
    log.add([Labelled(name, "ann", "u1", ("brew",)) for name in "abc"])
    log.close()
    assert check_annotation(folder).sealed
    assert check_annotation(folder).damage == ()
    project = (folder / "project.json").read_bytes()
    (folder / "project.json").write_bytes(project + b" ")
    assert check_annotation(folder).damage == (
        "row 1 has changed since it was written, or the file belongs to another session",
    )
    (folder / "project.json").write_bytes(project)
    altered(folder / "annotation.sqlite", "UPDATE entries SET body = replace(body, 'brew', 'stop') WHERE seq = 2")
    (folder / "labels.yaml").write_text("labels: []\n")
    files, row = check_annotation(folder).damage
    assert "labels.yaml is not the file" in files
    assert row == f"row 2 {CHANGED}"
