"""Reads a session log, also while it is being written."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    IMPOSSIBLE_TIME,
    ROW_TYPES,
    SESSION,
    WRONG_TYPES,
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
from harness.model.numbers import counted, data_size, exact
from harness.model.record import Entry, RatingRecord, Record, SessionStarted, SoundRedacted, SoundsRemoved
from harness.model.row_times import chronological
from harness.model.scenario import Scenario
from harness.model.stimulus import Clip, Waveform
from harness.session.log.clips import MISSING, clip_damage, clip_of, clip_samples, named_clips

T = TypeVar("T")


class LogReader:
    """Read-only view of a session log. It may be used while a writer runs, and never disturbs it.

    Raises LogError if the folder has no log of this version.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = SessionFolder(folder).demand()
        self._connection = open_for_reading(self.folder.database)

    def entries(self, after_seq: int = 0, kinds: str = "") -> Iterator[Entry]:
        """Committed rows after a seq, in order. Raises LogError, which names the row, if one cannot be read.

        kinds: SQL list of the kinds to read; "" for all.
        """
        rows = raw_rows(self._connection, self.folder.database, after_seq, kinds)
        label = f"Reading rows of {self.folder.path.name}"
        total = None if kinds else lambda: self.last_seq() - after_seq
        for row in tracked(rows, label, total):
            yield entry_of(row, self.folder.database)

    def last_seq(self) -> int:
        """`seq` of the last committed row; 0 if there is none."""
        with translate_errors(self.folder.database):
            (last,) = self._connection.execute("SELECT coalesce(max(seq), 0) FROM entries").fetchone()
        return int(last)

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
    must be readable and unaltered. Raises LogError when there is no log to check, or it is of another version.
    """
    session = SessionFolder(folder)
    log = check_file(session.demand().database, SESSION, is_kept=lambda record: clip_of(record) is not None)
    started = log.entries[0].record if log.entries else None
    damage = [*log.damage, *_files_damage(session, started, log.sealed)]
    clips = list(named_clips(log.entries))
    clip_notes = list(_leftover_notes(session, {clip.name for _, clip in clips}))
    _check_clips(session, clips, damage, clip_notes)
    tied = isinstance(started, SessionStarted) and started.tied
    judgments = _check_judgments(session, damage, tied=tied)
    files = [log] if judgments is None else [log, judgments]
    return combine_findings(files, clips=len(clips), damage=damage, notes=clip_notes)


def _check_clips(session: SessionFolder, clips: list[tuple[int, Clip]], damage: list[str], notes: list[str]) -> None:
    """Compares the clips with their rows, and adds what it finds to `damage` and `notes`.

    A clip that was removed or redacted on purpose is not damaged.
    """
    removal_by_clip, redaction_by_clip = removals(session.path), redactions(session.path)
    removed: list[str] = []
    for seq, clip in tracked(clips, "Checking clips"):
        problem = clip_damage(session.clips, _as_redacted(clip, redaction_by_clip))
        if problem == MISSING and clip.name in removal_by_clip:
            removed.append(removal_by_clip[clip.name])
        elif problem and not _is_unredacted(session, clip, redaction_by_clip):
            damage.append(f"row {seq}: clip {clip.name} {problem}")
    notes += removal_lines(removed)
    notes += [f"clip {name} {redaction.what}" for name, redaction in redaction_by_clip.items()]
    unredacted = {clip.name for _, clip in clips if _is_unredacted(session, clip, redaction_by_clip)}
    notes += [
        f"clip {name} still has the sound to be redacted. Run again: harness admin redact"
        for name in sorted(unredacted)
    ]
    if undeleted := [name for name in removal_by_clip if (session.clips / name).is_file()]:
        notes.append(f"{counted(len(undeleted), 'clip')} to be removed still exist. Run again: harness admin purge")


def _is_unredacted(session: SessionFolder, clip: Clip, redaction_by_clip: Mapping[str, Redaction]) -> bool:
    """Whether a clip is to be redacted, but its file is still the original one."""
    return clip.name in redaction_by_clip and not clip_damage(session.clips, clip)


def _check_judgments(session: SessionFolder, damage: list[str], *, tied: bool) -> CheckedFile | None:
    """Checks the file beside the log, and adds its damage to `damage`. None if it is missing or cannot be read."""
    path = session.judgments
    if not path.exists():
        if (seal := seal_of(path)).exists():
            damage.append(f"{path.name} is missing, and {seal.name} shows that there were judgments")
        return None
    try:
        file = check_file(
            path,
            SESSION,
            is_kept=lambda record: not isinstance(record, RatingRecord),
            may_be_blank=True,
            first=first_hash(session.database),
            tied=tied,
        )
    except LogError as error:
        damage.append(f"{path.name}{error.what.removeprefix(str(path))}")
        return None
    damage += [f"{path.name}: {line}" for line in file.damage]
    damage += [
        f"{path.name}: row {entry.seq} ({entry.record.kind}) does not belong in this file"
        for entry in file.entries
        if not isinstance(entry.record, RatingRecord)
    ]
    return file


def _database_damage(connection: sqlite3.Connection) -> list[str]:
    try:
        answers = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
    except sqlite3.DatabaseError as error:
        raise_signal()
        return [f"the database is damaged: {error}"]
    return [] if answers == ["ok"] else [f"the database is damaged: {answer}" for answer in answers]


@frozen
class CheckedFile:
    """A file of rows, and what is wrong with it.

    - rows: number of rows. entries: of those that can be read, the first, and those that `check_file` was to keep.
    - damage: evidence that is lost or altered. notes: remarks that are not damage.
    - sealed: whether its rows have hashes. end: its last row with the hash; None without hashes.
    """

    name: str
    rows: int
    entries: list[Entry]
    damage: list[str]
    notes: list[str]
    sealed: bool
    end: Seal | None


def check_file(
    path: Path,
    content: RowFormat[Any],
    *,
    is_kept: Callable[[Any], bool] = lambda record: False,
    may_be_blank: bool = False,
    first: bytes = FIRST,
    tied: bool = False,
) -> CheckedFile:
    """Reads all rows of a file, and checks them. Raises LogError when the file does not have the format `content`.

    - is_kept: whether to return a record.
    - may_be_blank: whether an empty file is accepted.
    - first: the hash with which its chain begins.
    - tied: whether a chain that does not begin there, or a missing chain, is damage; otherwise an earlier version may
      have written the file.
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
        count, entries, unreadable = _read_all(connection, chain, content.adapter, is_kept)
    damage += [*unreadable, *chain.damage()]
    sealed = chain.sealed_from == 1 or not count
    notes = list(chain.notes())
    if tied and not sealed:
        damage.append("the rows were sealed, but their SHA-256 values are missing")
    elif not chain.tied:
        untied = "nothing links its rows to their session"
        if tied:
            damage.append(untied)
        else:
            notes.append(f"{untied}: an earlier version of the harness created the file")
    return CheckedFile(path.name, rows=count, entries=entries, damage=damage, notes=notes, sealed=sealed, end=chain.end)


def _read_all(
    connection: sqlite3.Connection, chain: ChainCheck, adapter: TypeAdapter[Any], is_kept: Callable[[Any], bool]
) -> tuple[int, list[Entry], list[str]]:
    """Returns the number of rows, the first one that can be read and those to keep, and what is wrong with others.

    chain: gets all rows, to check their hashes.
    """
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
            types = tuple(map(type, (seq, run, at_s, wall_s, body)))
            if types != ROW_TYPES or not isinstance(kind, str) or not isinstance(link, bytes | None):
                damage.append(f"row {seq} {WRONG_TYPES}")
                continue
            chain.add_row((seq, run, at_s, wall_s, kind, body), link)
            if not is_time(at_s, wall_s):
                damage.append(f"row {seq} ({kind}) {IMPOSSIBLE_TIME}")
                continue
            try:
                record = decode(adapter, body)
            except CodecError as error:
                damage.append(f"row {seq} ({kind}) cannot be read: {error.what}")
                continue
            if record.kind != kind:
                damage.append(f"row {seq} ({kind}) contains a row of the kind {record.kind}")
            if not entries or is_kept(record):
                entries.append(Entry(seq, run, at_s, wall_s, record))
    except sqlite3.DatabaseError as error:
        raise_signal()
        damage.append(f"rows from {expected} on cannot be read: {error}")
    return count, entries, damage


def _files_damage(session: SessionFolder, started: Record | None, sealed: bool) -> Iterator[str]:
    """What is wrong with the files that the session began with. started: first row of the log, which lists them."""
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
                yield f"{name} has changed since the session began: its SHA-256 differs"
    if not started.files:
        return  # an earlier version listed none
    session_files = {session.path / name for name, _ in started.files}
    for path in sorted(session.inputs.rglob("*")):
        if path not in session_files and (path.is_symlink() or not path.is_dir()):
            yield f"{path.relative_to(session.path)} was added after the session began"


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def combine_findings(
    files: Sequence[CheckedFile], *, clips: int | None, damage: Iterable[str], notes: Iterable[str] = ()
) -> LogFindings:
    """The findings on files of rows that belong together.

    - damage: all damage, including that of the files.
    - notes: further ones, which follow those of the files.
    """
    file_notes = [f"{file.name}: {note}" for file in files for note in file.notes]
    return LogFindings(
        rows=sum(file.rows for file in files),
        clips=clips,
        damage=tuple(damage),
        notes=(*file_notes, *notes),
        sealed=all(file.sealed for file in files),
        ends=tuple((file.name, file.end) for file in files if file.end is not None),
    )


def _leftover_notes(session: SessionFolder, clip_names: set[str]) -> Iterator[str]:
    """Notes on files among the clips that no row names."""
    for path in sorted(session.clips.glob("*.flac")):
        if path.name not in clip_names:
            yield f"clip {path.name} has no row: the engine ended before writing it"
    for path in sorted(session.clips.glob(".*.part")):
        yield f"{path.name} is an incomplete clip: the engine ended while writing it; the next run removes it"


_RATINGS = "'judgment_given', 'effect_answered'"
"""Kinds of rows, as SQL writes them in a list."""


def rating_rows(folder: Path) -> tuple[Entry, ...]:
    """Judgments and effect answers of a session, both those given at the bench and those given later, oldest first.

    The rows are from two files, and `seq` can only be compared between rows of the same file.
    """
    given_at_bench = read_entries(SessionFolder(folder).demand().database, kinds=_RATINGS)
    return tuple(chronological(given_at_bench, later_rows(folder)))


def later_rows(folder: Path) -> tuple[Entry, ...]:
    """Judgments and effect answers that were given later, from the file beside the log, in order."""
    return tuple(_entries_beside(SessionFolder(folder).demand(), _RATINGS))


def rows_beside(folder: Path) -> tuple[Entry, ...]:
    """All rows of the file beside the log, in order."""
    return tuple(_entries_beside(SessionFolder(folder).demand()))


def _entries_beside(session: SessionFolder, kinds: str = "") -> Iterator[Entry]:
    """Rows of the file beside the log; none if there is no such file. kinds: kinds of rows, as SQL; "" means all."""
    if session.judgments.is_file():
        yield from read_entries(session.judgments, kinds=kinds, may_be_blank=True)


def removals(folder: Path) -> dict[str, str]:
    """Name of a clip that was removed on purpose → when, by whom and why, as the end of a sentence.

    Empty if the file beside the log cannot be read, which `check` reports.
    """
    removal_by_clip: dict[str, str] = {}
    try:
        for entry in _entries_beside(SessionFolder(folder), "'sounds_removed'"):
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

    - spans_s: (start, end) in seconds.
    - sha256: hash of the changed file.
    - what: when, who and why, to end a sentence.
    """

    spans_s: tuple[tuple[float, float], ...]
    sha256: str
    what: str


def redactions(folder: Path) -> dict[str, Redaction]:
    """Name of a clip → its silenced parts. Empty if the file beside the log cannot be read, which `check` reports."""
    redaction_by_clip: dict[str, Redaction] = {}
    try:
        for entry in _entries_beside(SessionFolder(folder), "'sound_redacted'"):
            if not isinstance(row := entry.record, SoundRedacted):
                continue
            day = time.strftime("%Y-%m-%d", time.gmtime(entry.wall_s))
            spans = ", ".join(f"{exact(start_s)} to {exact(end_s)} s" for start_s, end_s in row.spans_s)
            person, why = plain_text(row.by, 80), plain_text(row.reason, 200)
            description = f"was redacted ({spans}) on {day} by {person} because: {why}"
            spans_s, history = row.spans_s, description
            if (earlier := redaction_by_clip.get(row.clip)) is not None:
                spans_s, history = (*earlier.spans_s, *row.spans_s), f"{earlier.what}; it {description}"
            redaction_by_clip[row.clip] = Redaction(tuple(sorted({*spans_s})), row.sha256, history)
    except LogError:
        return {}
    return redaction_by_clip


def _as_redacted(clip: Clip, redaction_by_clip: Mapping[str, Redaction]) -> Clip:
    """The clip with the hash that its file has after its redaction, if there was one."""
    redaction = redaction_by_clip.get(clip.name)
    return clip if redaction is None else replace(clip, sha256=redaction.sha256)


def sound_changes(folder: Path) -> list[str]:
    """One line for each group of clips that people removed, and for each clip that they redacted."""
    redacted = [f"clip {plain_text(name, 80)} {redaction.what}" for name, redaction in redactions(folder).items()]
    return [*removal_lines(removals(folder).values()), *redacted]


def removal_lines(clip_removals: Iterable[str]) -> list[str]:
    """One line for all clips that were removed together. clip_removals: values of `removals`."""
    return [f"the sound of {counted(count, 'clip')} {removal}" for removal, count in Counter(clip_removals).items()]


def read_clip(folder: Path, clip: Clip) -> Waveform:
    """A clip's samples. folder: the session's folder of clips.

    Raises SoundGone if the clip was removed on purpose, and LogError if it is missing, altered or not FLAC.
    """
    problem = clip_damage(folder, clip)
    if problem == MISSING and (removal := removals(folder.parent).get(clip.name)):
        raise SoundGone(f"the sound {removal}", remedy="The results of the session are still available")
    if problem and clip_damage(folder, _as_redacted(clip, redactions(folder.parent))):
        raise LogError(
            f"{folder / clip.name} {problem}", remedy="See all damage with: harness report show SESSION --check"
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
    """The scenario of a session. The bench is not read, since it is long and results do not need it."""
    return read_stored(folder, _stored_inputs()).scenario


@cache
def _stored_inputs() -> TypeAdapter[_StoredInputs]:
    """The adapter of stored scenarios, created on first use: that takes longer than reading most sessions."""
    return TypeAdapter(_StoredInputs)


_MAX_STORED_BYTES = 1 << 28


def stored_bytes(folder: Path) -> bytes:
    """The stored scenario and bench as bytes. Raises LogError, also if they are larger than 268 MB."""
    path = SessionFolder(folder).resolved
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_STORED_BYTES + 1)
    except OSError as error:
        raise LogError(f"{path} cannot be read: {error.strerror}", remedy="Start a new session") from error
    if len(content) > _MAX_STORED_BYTES:
        raise LogError(
            f"{path} is damaged: it is larger than {data_size(_MAX_STORED_BYTES)}", remedy="Start a new session"
        )
    return content


def read_stored(folder: Path, adapter: TypeAdapter[T]) -> T:
    """The stored scenario and bench of a session. Raises LogError when the file is damaged."""
    path = SessionFolder(folder).resolved
    try:
        return adapter.validate_json(stored_bytes(folder))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field_path = ".".join(str(part) for part in first["loc"])
        raise LogError(f"{path} is damaged: {field_path}: {first['msg']}", remedy="Start a new session") from error
