"""Reading a session log, while it is being written or long after."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.log.clips import ClipFinding, clip_damage, named_clips
from harness.log.database import explained, open_for_reading, rows
from harness.log.folder import SessionFolder
from harness.model.errors import LogError
from harness.model.record import EffectAnswered, Entry, JudgmentGiven, Record
from harness.wire.codec import RECORDS, CodecError, decode


class LogReader:
    """Read-only view of a session log; may be used while a writer runs, and never disturbs it. LogError."""

    def __init__(self, folder: Path) -> None:
        self.folder = SessionFolder(folder).demand()
        self._connection = open_for_reading(self.folder.database)

    def entries(self, after_seq: int = 0) -> Iterator[Entry]:
        """Committed rows after a seq, in order; LogError naming a row that cannot be read."""
        return rows(self._connection, self.folder.database, after_seq)

    def last_seq(self) -> int:
        """seq of the last committed row; 0 when there is none."""
        with explained(self.folder.database):
            (last,) = self._connection.execute("SELECT coalesce(max(seq), 0) FROM entries").fetchone()
        return int(last)

    def records(self) -> Iterator[Record]:
        """The rows' records."""
        for entry in self.entries():
            yield entry.record

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Findings:
    """What `check` found. damage: evidence is lost or altered. notes: left-overs that mean nothing bad."""

    rows: int
    clips: int
    damage: tuple[str, ...]
    notes: tuple[str, ...]


def check(folder: Path) -> Findings:
    """Checks a session folder whole: databases, seq without gaps, readable rows, clips as stored. Changes nothing.

    LogError when there is no log to check, or it is of another version.
    """
    with LogReader(folder) as reader:
        damage = _database_damage(reader._connection)
        count, entries, unreadable = _read_all(reader._connection)
        damage += unreadable
    clips = list(named_clips(entries))
    wrong = [
        ClipFinding(seq, clip.name, what)
        for seq, clip in clips
        if (what := clip_damage(SessionFolder(folder).clips, clip))
    ]
    damage += [f"row {finding.seq}: clip {finding.name} {finding.what}" for finding in wrong]
    judgments, of_judgments = _judgments_damage(SessionFolder(folder).judgments)
    count += judgments
    damage += of_judgments
    return Findings(count, len(clips), tuple(damage), tuple(_left_overs(folder, {clip.name for _, clip in clips})))


def clips_without_rows(folder: Path) -> tuple[str, ...]:
    """Names of whole clips that no row names (the process ended between the two); LogError."""
    with LogReader(folder) as reader:
        named = {clip.name for _, clip in named_clips(reader.entries())}
        found = reader.folder.clips.glob("*.flac")
    return tuple(sorted(path.name for path in found if path.name not in named))


def _database_damage(connection: sqlite3.Connection) -> list[str]:
    try:
        answers = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
    except sqlite3.DatabaseError as error:
        return [f"the database is damaged: {error}"]
    return [] if answers == ["ok"] else [f"the database is damaged: {answer}" for answer in answers]


def _judgments_damage(path: Path) -> tuple[int, list[str]]:
    """How many rows raters added in their file, and what is wrong with it."""
    if not path.exists():
        return 0, []
    try:
        connection = open_for_reading(path, may_be_blank=True)
    except LogError as error:
        return 0, [f"{path.name}{error.what.removeprefix(str(path))}"]
    try:
        damage = _database_damage(connection)
        count, entries, unreadable = _read_all(connection)
    finally:
        connection.close()
    foreign = [one for one in entries if not isinstance(one.record, JudgmentGiven | EffectAnswered)]
    damage += unreadable + [f"row {one.seq} ({one.record.kind}) has no place there" for one in foreign]
    return count, [f"{path.name}: {line}" for line in damage]


def _read_all(connection: sqlite3.Connection) -> tuple[int, list[Entry], list[str]]:
    """Every row that can be read, and what is wrong with the others."""
    damage: list[str] = []
    entries: list[Entry] = []
    count = 0
    expected = 1
    try:
        for seq, run, at_s, wall_s, kind, body in connection.execute(
            "SELECT seq, run, at_s, wall_s, kind, body FROM entries ORDER BY seq"
        ):
            count += 1
            if seq != expected:
                damage.append(f"rows {expected} to {seq - 1} are missing")
            expected = seq + 1
            try:
                record = decode(RECORDS, body)
            except CodecError as error:
                damage.append(f"row {seq} ({kind}) cannot be read: {error.what}")
                continue
            entries.append(Entry(seq, run, at_s, wall_s, record))
    except sqlite3.DatabaseError as error:
        damage.append(f"rows from {expected} on cannot be read: {error}")
    return count, entries, damage


def _left_overs(folder: Path, named: set[str]) -> Iterator[str]:
    clips = SessionFolder(folder).clips
    for path in sorted(clips.glob("*.flac")):
        if path.name not in named:
            yield f"clip {path.name} is named by no row: the engine ended before it could"
    for path in sorted(clips.glob(".*.part")):
        yield f"{path.name} is half of a clip: the engine ended while it was written; the next run removes it"
