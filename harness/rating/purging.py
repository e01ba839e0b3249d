"""Removes clips, or redacts spans of them. The numbers stay, with a row that says who did it and why."""

from __future__ import annotations

import hashlib
import io
import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import soundfile

from harness.base.foreign import plain_text
from harness.base.places import SessionFolder
from harness.base.whole_file import disk_errors, sync_to_disk, write_atomically
from harness.model.errors import InputError, LogError, nearest
from harness.model.frozen import frozen
from harness.model.judgment import RatingRound
from harness.model.numbers import exact, moment
from harness.model.record import (
    EventClipped,
    EventReviewed,
    ReviewVerdict,
    SoundRedacted,
    SoundsRemoved,
    StimulusStored,
)
from harness.rating.judgment_log import JudgmentLog
from harness.rating.rating_room import RatingRoom
from harness.rating.session_items import RatingSource
from harness.session.log.clips import clip_of
from harness.session.log.database import resume_lock, writer_lock
from harness.session.log.reader import LogReader, Redaction, check, redactions, removals


@frozen
class PurgeRule:
    """Which sessions lose their clips.

    - older_than_s: those older than this; None for no such limit.
    - max_bytes: the oldest ones, until the rest has at most this many bytes; None for no such limit.
    - unjudged: whether this includes sessions with responses that nobody has judged.
    - rounds: sessions of these rounds keep their clips until the round is done.
    """

    older_than_s: float | None = None
    max_bytes: int | None = None
    unjudged: bool = False
    rounds: tuple[RatingRound, ...] = ()


@frozen
class Purgeable:
    """A session with clips.

    - wall_s: Unix time of its last row.
    - clips: names of the clips.
    - bytes: size of the clips together.
    - kept_because: why they are kept; "" if they are to be removed.
    - unreviewed: number of clips to be removed whose wake event nobody has reviewed.
    """

    folder: Path
    wall_s: float
    clips: tuple[str, ...]
    bytes: int
    kept_because: str
    unreviewed: int = 0


def purge_plan(folder: Path, rule: PurgeRule, now_wall_s: float) -> Iterator[Purgeable]:
    """The sessions in a folder to which the rule applies, or the folder itself if it is one; oldest first.

    Raises LogError or InputError.
    """
    with disk_errors(f"{folder} cannot be read"):
        paths = [folder, *(path for path in folder.iterdir() if not path.is_symlink())]
        sessions = [SessionFolder(path) for path in paths if SessionFolder(path).database.is_file()]
        # The name decides between equal times.
        dated = sorted((_last_row_wall_s(session.path), session.path.name, session) for session in sessions)
        # SQLite deletes its shared memory when nobody has the file open.
        total_bytes = sum(
            _file_bytes(path)
            for session in sessions
            for path in session.path.rglob("*")
            if path.suffix != ".sqlite-shm"
        )
        awaited_paths = {path for round_ in rule.rounds if _has_work(round_) for path in round_.sessions}
        for wall_s, _, session in dated:
            is_old = rule.older_than_s is not None and now_wall_s - wall_s > rule.older_than_s
            is_too_large = rule.max_bytes is not None and total_bytes > rule.max_bytes
            clips = tuple(sorted(path.name for path in session.clips.glob("*.flac") if path.is_file()))
            if not clips or not (is_old or is_too_large):
                continue
            clip_bytes = sum(_file_bytes(session.clips / name) for name in clips)
            reason = _reason_to_keep(session, rule, awaited_paths)
            unreviewed = 0
            if not reason:
                total_bytes -= clip_bytes
                unreviewed = _count_unreviewed(session.path, clips)
            yield Purgeable(session.path, wall_s, clips, clip_bytes, reason, unreviewed)


def purge(purgeable: Purgeable, rule: PurgeRule, reason: str, by: str) -> str:
    """Removes the clips of a session, after a row that names them is on the disk. by: the person who does it.

    Returns why they are kept, if that has changed since the plan; "" if they were removed. Raises LogError or LogFull.
    """
    session = SessionFolder(purgeable.folder)
    with disk_errors(f"{session.clips} cannot be emptied"):
        reason_to_keep = _reason_to_keep(session, rule, ())
        if reason_to_keep:
            return reason_to_keep
        with writer_lock(session):
            removed = removals(purgeable.folder)  # by a call that was killed before it deleted all
            new_names = tuple(name for name in purgeable.clips if name not in removed)
            if new_names:
                with closing(JudgmentLog(purgeable.folder)) as log:
                    log.append(SoundsRemoved(new_names, reason, by))
            for name in purgeable.clips:
                (session.clips / name).unlink(missing_ok=True)
            sync_to_disk(session.clips)
    return ""


def redact(folder: Path, name: str, spans_s: Sequence[tuple[float, float]], reason: str, by: str) -> Redaction:
    """Makes spans of a clip silent for good, after a row that says so is on the disk. spans_s: from the clip's start.

    The file keeps its name, length and rate, and other rows still name it by the SHA-256 that it had. A repeated call
    completes one that was killed. Raises InputError for an unknown clip, a stimulus or a wrong span, LogError and
    LogFull.
    """
    session = SessionFolder(folder).demand()
    with disk_errors(f"{session.clips / name} cannot be redacted"), writer_lock(session):
        _check_redactable(folder, name)
        samples, rate_hz = soundfile.read(session.clips / name, dtype="int16")
        length_s = len(samples) / rate_hz
        for start_s, end_s in spans_s:
            if not 0 <= start_s < end_s <= length_s:
                problem = (
                    f"{name} has no span from {exact(start_s)} to {exact(end_s)} s: the clip is {moment(length_s)} long"
                )
                raise InputError(problem, remedy="Choose a start before the end, both within the clip")
        earlier = redactions(folder).get(name)
        earlier_spans_s = earlier.spans_s if earlier else ()
        new_spans_s = {span_s for span_s in spans_s if not _is_covered(span_s, earlier_spans_s)}
        for start_s, end_s in (*earlier_spans_s, *new_spans_s):
            samples[math.floor(start_s * rate_hz) : math.ceil(end_s * rate_hz)] = 0
        buffer = io.BytesIO()
        soundfile.write(buffer, samples, rate_hz, format="FLAC", subtype="PCM_16")
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()
        if new_spans_s or earlier is None or earlier.sha256 != digest:
            with closing(JudgmentLog(folder)) as log:
                log.append(SoundRedacted(name, digest, tuple(sorted(new_spans_s or {*spans_s})), reason, by))
        write_atomically(session.clips / name, buffer.getvalue())
    return redactions(folder)[name]


def is_silent(folder: Path, name: str, spans_s: Sequence[tuple[float, float]]) -> bool:
    """Whether earlier redactions have already made all of these spans of a clip silent, so that no sound is removed."""
    earlier, path = redactions(folder).get(name), SessionFolder(folder).clips / name
    if earlier is None or not all(_is_covered(span_s, earlier.spans_s) for span_s in spans_s):
        return False
    with disk_errors(f"{path} cannot be read"):
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == earlier.sha256


def _is_covered(span_s: tuple[float, float], earlier_spans_s: Sequence[tuple[float, float]]) -> bool:
    """Whether a span lies within earlier ones together. earlier_spans_s: in order."""
    covered_to_s, end_s = span_s
    for earlier_start_s, earlier_end_s in earlier_spans_s:
        if earlier_start_s <= covered_to_s:
            covered_to_s = max(covered_to_s, earlier_end_s)
    return covered_to_s >= end_s


def _check_redactable(folder: Path, name: str) -> None:
    """Raises LogError for a damaged session, and InputError if it has no recorded sound of this name."""
    damage = check(folder).damage
    if damage:
        raise LogError(f"{folder} is damaged: {damage[0]}", remedy="See: harness report show SESSION --check")
    with LogReader(folder) as reader:
        rows = {clip.name: entry.record for entry in reader.entries() if (clip := clip_of(entry.record))}
    if name not in rows:
        raise InputError(f"{folder} has no clip {plain_text(name, 80)!r}", remedy=nearest(name, list(rows)))
    if isinstance(rows[name], StimulusStored):
        raise InputError(
            f"{name} is a stimulus, which a resumed run plays again",
            remedy="Change the recording before the run, or remove all sound: harness admin purge",
        )
    removal = removals(folder).get(name)
    if removal:
        raise InputError(f"the sound of {name} {removal}", remedy="There is nothing to redact")


def _last_row_wall_s(folder: Path) -> float:
    """Unix time of the last row. If the log cannot be read, that of its file: the session is listed, and stays."""
    try:
        with LogReader(folder) as reader:
            return next((entry.wall_s for entry in reader.entries(reader.last_seq() - 1)), time.time())
    except LogError:
        return SessionFolder(folder).database.stat().st_mtime


def _count_unreviewed(folder: Path, clips: Collection[str]) -> int:
    """How many of these clips hold a wake event that has no review, or whose review was taken back."""
    clip_names: dict[int, str] = {}
    reviews: dict[int, ReviewVerdict | None] = {}
    with LogReader(folder) as reader:
        for entry in reader.entries(kinds="'event_clipped', 'event_reviewed'"):
            match entry.record:
                case EventClipped(event_seq=event, clip=clip):
                    clip_names[event] = clip.name
                case EventReviewed(event_seq=event, word=verdict):
                    reviews[event] = verdict
                case _:
                    pass
    return sum(1 for event, name in clip_names.items() if name in clips and reviews.get(event) is None)


def _file_bytes(path: Path) -> int:
    return 0 if path.is_symlink() or not path.is_file() else path.stat().st_size


def _has_work(round_: RatingRound) -> bool:
    """Whether a rater has open or held responses, or no rater has begun."""
    raters = RatingRoom(round_).progress()
    return not raters or any((rater.count.left or rater.count.held) and not rater.stopped for rater in raters)


def _reason_to_keep(session: SessionFolder, rule: PurgeRule, awaited_paths: Collection[str]) -> str:
    """Why the clips of a session are kept; "" if they may be removed. awaited_paths: sessions that raters need."""
    if session.clips.is_symlink():
        return f"{session.clips.name} is a link"
    try:
        with resume_lock(session):
            damage = check(session.path).damage
            responses = RatingSource(session.path, RatingRound()).read().responses
    except LogError as error:
        return error.what
    if damage:
        return f"the session is damaged: {damage[0]}"
    open_count = sum(1 for response in responses if not response.submitted and response.settled is None)
    if open_count and not rule.unjudged:
        return f"{open_count} of {len(responses)} responses are not judged"
    return "raters of a round have responses left" if str(session.path.resolve()) in awaited_paths else ""
