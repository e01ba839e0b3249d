"""Reads a session log, also while it is being written."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from harness.base.chain import COLUMN, FIRST, ChainCheck, Seal, is_chained, read_seal, seal_of
from harness.base.codec import CodecError, decode
from harness.base.foreign import plain_text
from harness.base.places import SessionFolder
from harness.base.progress import tracked
from harness.base.row_store import (
    OF_NO_CLOCK,
    SESSION,
    RowFormat,
    entry_of,
    first_hash,
    is_time,
    missing_guards,
    open_for_reading,
    raise_signal,
    raw_rows,
    read_entries,
    translate_errors,
)
from harness.base.whole_file import disk_errors
from harness.model.errors import LogError, SoundGone
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact
from harness.model.record import (
    Entry,
    RatingRecord,
    Record,
    SessionStarted,
    SoundRedacted,
    SoundsRemoved,
    chronological,
)
from harness.model.scenario import Scenario
from harness.model.stimulus import Clip, Waveform
from harness.session.log.clips import MISSING, ClipFinding, clip_damage, clip_samples, named_clips

T = TypeVar("T")


class LogReader:
    """Read-only view of a session log; may be used while a writer runs, and never disturbs it. LogError."""

    def __init__(self, folder: Path) -> None:
        self.folder = SessionFolder(folder).demand()
        self._connection = open_for_reading(self.folder.database)

    def entries(self, after_seq: int = 0) -> Iterator[Entry]:
        """Committed rows after a seq, in order; LogError, which names the row, if one cannot be read."""
        rows = raw_rows(self._connection, self.folder.database, after_seq)
        label = f"Reading rows of {self.folder.path.name}"
        for row in tracked(rows, label, lambda: self.last_seq() - after_seq):
            yield entry_of(row, self.folder.database)

    def last_seq(self) -> int:
        """`seq` of the last committed row; 0 if there is none."""
        with translate_errors(self.folder.database):
            (last,) = self._connection.execute("SELECT coalesce(max(seq), 0) FROM entries").fetchone()
        return int(last)

    def records(self) -> Iterator[Record]:
        for entry in self.entries():
            yield entry.record

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@frozen
class LogFindings:
    """The result of `check`.

    - rows: number of rows. clips: number of clips; None for a file without clips.
    - damage: evidence that is lost or altered, in sentences.
    - notes: left-over files that do no damage, and what cannot be checked, in sentences.
    - sealed: whether every row has its hash.
    - ends: (name of a file of rows, its last row with the hash), for each file with hashes.
    """

    rows: int
    clips: int | None
    damage: tuple[str, ...]
    notes: tuple[str, ...]
    sealed: bool
    ends: tuple[tuple[str, Seal], ...]


def check(folder: Path) -> LogFindings:
    """Checks a complete session folder, and changes nothing.

    The databases must be intact, and `seq` must have no gaps. Rows, clips and the files that the session began with
    must be readable and unaltered. LogError when there is no log to check, or it is of another version.
    """
    session = SessionFolder(folder)
    log = checked(session.demand().database, SESSION)
    damage, entries = list(log.damage), log.entries
    started = entries[0].record if entries else None
    tied = isinstance(started, SessionStarted) and started.tied
    damage += _files_damage(session, entries, log.sealed)
    clips = list(named_clips(entries))
    removal_by_clip, silenced = removals(folder), redactions(folder)
    wrong = [
        ClipFinding(seq, clip.name, problem)
        for seq, clip in tracked(clips, "Checking clips")
        if (problem := clip_damage(session.clips, _as_redacted(clip, silenced)))
    ]
    open_ = {clip.name for _, clip in clips if clip.name in silenced and not clip_damage(session.clips, clip)}
    removed = [
        removal_by_clip[finding.name]
        for finding in wrong
        if finding.what == MISSING and finding.name in removal_by_clip
    ]
    wrong = [
        finding
        for finding in wrong
        if (finding.what != MISSING or finding.name not in removal_by_clip) and finding.name not in open_
    ]
    damage += [f"row {finding.seq}: clip {finding.name} {finding.what}" for finding in wrong]
    of_files = [log]
    if session.judgments.exists():
        try:
            first = first_hash(session.database)
            judged = checked(session.judgments, SESSION, may_be_blank=True, first=first, tied=tied)
        except LogError as error:
            damage.append(f"{session.judgments.name}{error.what.removeprefix(str(session.judgments))}")
        else:
            foreign = [entry for entry in judged.entries if not isinstance(entry.record, RatingRecord)]
            wrong_place = [f"row {entry.seq} ({entry.record.kind}) does not belong there" for entry in foreign]
            damage += [f"{session.judgments.name}: {line}" for line in (*judged.damage, *wrong_place)]
            of_files.append(judged)
    elif (seal := seal_of(session.judgments)).exists():
        damage.append(f"{session.judgments.name} is missing, and {seal.name} shows that there were judgments")
    remarks = [*notes(of_files), *_left_overs(folder, {clip.name for _, clip in clips})]
    remarks += [*removal_lines(removed), *(f"clip {name} {redaction.what}" for name, redaction in silenced.items())]
    remarks += [
        f"clip {name} still has the sound to be redacted: run harness admin redact again" for name in sorted(open_)
    ]
    if undeleted := [name for name in removal_by_clip if (session.clips / name).is_file()]:
        remarks.append(f"{counted(len(undeleted), 'clip')} to be removed still exist: run harness admin purge again")
    return findings(of_files, len(clips), damage, remarks)


def _database_damage(connection: sqlite3.Connection) -> list[str]:
    try:
        answers = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
    except sqlite3.DatabaseError as error:
        raise_signal()
        return [f"the database is damaged: {error}"]
    return [] if answers == ["ok"] else [f"the database is damaged: {answer}" for answer in answers]


@frozen
class _File:
    """A file of rows: the rows that can be read, and its damage. sealed: whether its rows have hashes.

    end: its last row with the hash; None without hashes.
    """

    name: str
    rows: int
    entries: list[Entry]
    damage: list[str]
    notes: list[str]
    sealed: bool
    end: Seal | None


def checked(
    path: Path, content: RowFormat[Any], *, may_be_blank: bool = False, first: bytes = FIRST, tied: bool = False
) -> _File:
    """The rows of a file, with its damage; LogError when the file does not have the format `content`.

    first: the hash with which its chain begins. tied: whether a chain that does not begin there, or a missing chain, is
    damage; otherwise an earlier version may have written the file.
    """
    damage: list[str] = []
    seal = None
    try:
        seal = read_seal(path)  # before the rows, because a writer may be active
    except LogError as error:
        damage.append(f"{seal_of(path).name} cannot be read: {error.what}")
    with closing(open_for_reading(path, may_be_blank=may_be_blank, content=content)) as connection:
        damage += _database_damage(connection)
        chain = ChainCheck(seal, first)
        count, entries, unreadable = _read_all(connection, chain, content.adapter)
    damage += [*unreadable, *chain.damage()]
    sealed = chain.sealed_from == 1 or not count
    remarks = list(chain.notes())
    if tied and not sealed:
        damage.append("the rows were sealed, but their SHA-256 values are missing")
    elif not chain.tied:
        untied = "nothing links its rows to their session"
        (damage if tied else remarks).append(untied if tied else f"{untied}: an earlier version began the file")
    return _File(path.name, rows=count, entries=entries, damage=damage, notes=remarks, sealed=sealed, end=chain.end)


def _read_all(
    connection: sqlite3.Connection, chain: ChainCheck, adapter: TypeAdapter[Any]
) -> tuple[int, list[Entry], list[str]]:
    """The number of rows, those that can be read, and what is wrong with the others. chain: gets all rows to check."""
    damage: list[str] = []
    entries: list[Entry] = []
    count = 0
    expected = 1
    try:
        damage += [
            f"the trigger {name}, which protects rows against changes, is missing"
            for name in missing_guards(connection)
        ]
        column = COLUMN if is_chained(connection) else "NULL"
        ordered = connection.execute(f"SELECT seq, run, at_s, wall_s, kind, body, {column} FROM entries ORDER BY seq")
        for seq, run, at_s, wall_s, kind, body, link in tracked(ordered, "Checking rows"):
            if seq < expected:
                damage.append(f"row {seq} comes after row {expected - 1}")
                break  # pages that name each other again and again would never end
            count += 1
            if seq != expected:
                damage.append(f"rows {expected} to {seq - 1} are missing")
            expected = seq + 1
            chain.take((seq, run, at_s, wall_s, kind, body), link)
            if not is_time(at_s, wall_s):
                damage.append(f"row {seq} ({kind}) {OF_NO_CLOCK}")
                continue
            try:
                record = decode(adapter, body)
            except CodecError as error:
                damage.append(f"row {seq} ({kind}) cannot be read: {error.what}")
                continue
            if record.kind != kind:
                damage.append(f"row {seq} ({kind}) holds a row of the kind {record.kind}")
            entries.append(Entry(seq, run, at_s, wall_s, record))
    except sqlite3.DatabaseError as error:
        raise_signal()
        damage.append(f"rows from {expected} on cannot be read: {error}")
    return count, entries, damage


def _files_damage(session: SessionFolder, entries: list[Entry], sealed: bool) -> Iterator[str]:
    started = entries[0].record if entries else None
    if not isinstance(started, SessionStarted):
        return
    if started.files and not sealed:
        yield "the rows were sealed, but their SHA-256 values are missing"
    within = session.path.resolve()
    for name, sha256 in started.files:
        path = session.path / name
        with disk_errors(f"{path} cannot be read"):
            if not name.isprintable() or not path.resolve().is_relative_to(within):
                yield f"{plain_text(name, 120)} points outside the session"
            elif not path.is_file():
                yield f"{name} is missing"
            elif _sha256(path) != sha256:
                yield f"{name} is not what the session began with: its SHA-256 differs"
    session_files = {session.path / name for name, _ in started.files}
    for path in sorted(session.inputs.rglob("*")) if session_files else ():
        if path not in session_files and (path.is_symlink() or not path.is_dir()):
            yield f"{path.relative_to(session.path)} was added: the session began without it"


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def notes(files: list[_File]) -> Iterator[str]:
    for file in files:
        yield from (f"{file.name}: {note}" for note in file.notes)


def findings(files: list[_File], clips: int | None, damage: list[str], remarks: list[str]) -> LogFindings:
    ends = tuple((file.name, file.end) for file in files if file.end is not None)
    sealed = all(file.sealed for file in files)
    return LogFindings(sum(file.rows for file in files), clips, tuple(damage), tuple(remarks), sealed, ends)


def _left_overs(folder: Path, clip_names: set[str]) -> Iterator[str]:
    clips = SessionFolder(folder).clips
    for path in sorted(clips.glob("*.flac")):
        if path.name not in clip_names:
            yield f"clip {path.name} has no row: the engine ended before writing it"
    for path in sorted(clips.glob(".*.part")):
        yield f"{path.name} is an incomplete clip: the engine ended while writing it; the next run removes it"


_RATINGS = "'judgment_given', 'effect_answered'"


def rating_rows(folder: Path) -> tuple[Entry, ...]:
    """Judgments and effect answers of a session, both those given at the bench and those given later, oldest first.

    LogError. The rows are from two files, and `seq` can only be compared between rows of the same file.
    """
    given_at_bench = read_entries(SessionFolder(folder).demand().database, kinds=_RATINGS)
    return tuple(chronological(given_at_bench, later_rows(folder)))


def later_rows(folder: Path) -> tuple[Entry, ...]:
    """Judgments and effect answers that were given later, from the file beside the log, in order; LogError."""
    return tuple(_beside(SessionFolder(folder).demand(), _RATINGS))


def rows_beside(folder: Path) -> tuple[Entry, ...]:
    """All rows of the file beside the log, in order; LogError."""
    return tuple(_beside(SessionFolder(folder).demand()))


def _beside(session: SessionFolder, kinds: str = "") -> Iterator[Entry]:
    if session.judgments.is_file():
        yield from read_entries(session.judgments, kinds=kinds, may_be_blank=True)


def removals(folder: Path) -> dict[str, str]:
    """Name of a clip that was removed on purpose → when, by whom and why, as the end of a sentence.

    Empty if the file beside the log cannot be read, which `check` reports.
    """
    removal_by_clip: dict[str, str] = {}
    try:
        for entry in _beside(SessionFolder(folder), "'sounds_removed'"):
            if not isinstance(row := entry.record, SoundsRemoved):
                continue  # `check` reports it
            day = time.strftime("%Y-%m-%d", time.gmtime(entry.wall_s))
            removal = f"was removed on {day} by {plain_text(row.by, 80)} because: {plain_text(row.reason, 200)}"
            removal_by_clip |= dict.fromkeys(row.clips, removal)
    except LogError:
        return {}
    return removal_by_clip


@frozen
class Redaction:
    """The parts of a clip that were silenced.

    spans_s: (start, end) in seconds. sha256: hash of the changed file. what: when, who and why, to end a sentence.
    """

    spans_s: tuple[tuple[float, float], ...]
    sha256: str
    what: str


def redactions(folder: Path) -> dict[str, Redaction]:
    """Name of a clip → its silenced parts. Empty if the file beside the log cannot be read, which `check` reports."""
    redaction_by_clip: dict[str, Redaction] = {}
    try:
        for entry in _beside(SessionFolder(folder), "'sound_redacted'"):
            if not isinstance(row := entry.record, SoundRedacted):
                continue
            day = time.strftime("%Y-%m-%d", time.gmtime(entry.wall_s))
            spans = ", ".join(f"{exact(start_s)} to {exact(end_s)} s" for start_s, end_s in row.spans_s)
            person, why = plain_text(row.by, 80), plain_text(row.reason, 200)
            description = f"was redacted ({spans}) on {day} by {person} because: {why}"
            before = redaction_by_clip.get(row.clip)
            spans_s = row.spans_s if before is None else (*before.spans_s, *row.spans_s)
            history = description if before is None else f"{before.what}; it {description}"
            redaction_by_clip[row.clip] = Redaction(tuple(sorted({*spans_s})), row.sha256, history)
    except LogError:
        return {}
    return redaction_by_clip


def _as_redacted(clip: Clip, redacted: Mapping[str, Redaction]) -> Clip:
    redaction = redacted.get(clip.name)
    return clip if redaction is None else replace(clip, sha256=redaction.sha256)


def sound_changes(folder: Path) -> list[str]:
    """One line for each group of clips that people removed, and for each clip that they redacted."""
    redacted = [f"clip {plain_text(name, 80)} {redaction.what}" for name, redaction in redactions(folder).items()]
    return [*removal_lines(removals(folder).values()), *redacted]


def removal_lines(clip_removals: Iterable[str]) -> list[str]:
    """One line for all clips that were removed together. clip_removals: values of `removals`."""
    return [f"the sound of {counted(count, 'clip')} {removal}" for removal, count in Counter(clip_removals).items()]


def read_clip(folder: Path, clip: Clip) -> Waveform:
    """A clip's samples. SoundGone if it was removed on purpose; LogError if it is missing, altered or not FLAC."""
    wrong = clip_damage(folder, clip)
    if wrong == MISSING and (removal := removals(folder.parent).get(clip.name)):
        raise SoundGone(f"the sound {removal}", remedy="All numbers of the session remain")
    if wrong and clip_damage(folder, _as_redacted(clip, redactions(folder.parent))):
        raise LogError(
            f"{folder / clip.name} {wrong}", remedy="See all damage with: harness report show SESSION --check"
        )
    try:
        return Waveform(samples=clip_samples(folder, clip), rate_hz=clip.rate_hz)
    except LogError as error:
        raise LogError(f"{folder / clip.name} {error.what}") from error


@frozen
class _StoredInputs:
    """The stored inputs of a session, without the bench."""

    scenario: Scenario


def read_scenario(folder: Path) -> Scenario:
    """The scenario of a session; LogError. The bench is not read, since it is long and results do not need it."""
    return read_stored(folder, _stored_inputs()).scenario


@cache
def _stored_inputs() -> TypeAdapter[_StoredInputs]:
    """The adapter of stored scenarios, created on first use: that takes longer than reading most sessions."""
    return TypeAdapter(_StoredInputs)


_STORED_BYTES = 1 << 28


def stored_bytes(folder: Path) -> bytes:
    """The stored scenario and bench as bytes; LogError, also if they are larger than 268 MB."""
    path = SessionFolder(folder).resolved
    try:
        with path.open("rb") as stream:
            content = stream.read(_STORED_BYTES + 1)
    except OSError as error:
        raise LogError(f"{path} cannot be read: {error.strerror}", remedy="Start a new session") from error
    if len(content) > _STORED_BYTES:
        raise LogError(f"{path} is damaged: it is larger than {_STORED_BYTES} bytes", remedy="Start a new session")
    return content


def read_stored(folder: Path, adapter: TypeAdapter[T]) -> T:
    """The stored scenario and bench of a session; LogError when the file is damaged."""
    path = SessionFolder(folder).resolved
    try:
        return adapter.validate_json(stored_bytes(folder))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field_path = ".".join(str(part) for part in first["loc"])
        raise LogError(f"{path} is damaged: {field_path}: {first['msg']}", remedy="Start a new session") from error
