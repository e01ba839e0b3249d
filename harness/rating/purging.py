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

    older_than_s: those older than this; None for no such limit. larger_than: the oldest ones, until the rest has at
    most this many bytes; None for no such limit. unjudged: whether this includes sessions with responses that nobody
    has judged. rounds: sessions of these rounds keep their clips until the round is done.
    """

    older_than_s: float | None = None
    larger_than: int | None = None
    unjudged: bool = False
    rounds: tuple[RatingRound, ...] = ()


@frozen
class Purgeable:
    """A session with clips. wall_s: Unix time of its last row. clips: their names. bytes: their size together.
    kept_because: why they are kept; "" if they are to be removed. unreviewed: the number of clips to be removed whose
    wake event nobody has reviewed."""

    folder: Path
    wall_s: float
    clips: tuple[str, ...]
    bytes: int
    kept_because: str
    unreviewed: int = 0


def purge_plan(folder: Path, rule: PurgeRule, now_wall_s: float) -> Iterator[Purgeable]:
    """The sessions below a folder to which the rule applies, oldest first; LogError, InputError."""
    with disk_errors(f"{folder} cannot be read"):
        places = [folder, *(path for path in folder.iterdir() if not path.is_symlink())]
        sessions = [SessionFolder(path) for path in places if SessionFolder(path).database.is_file()]
        dated = sorted((_last_row_wall_s(session.path), session.path.name, session) for session in sessions)
        total = sum(
            _bytes(path) for session in sessions for path in session.path.rglob("*") if path.suffix != ".sqlite-shm"
        )
        waiting = {path for round_ in rule.rounds if _has_work(round_) for path in round_.sessions}
        for wall_s, _, session in dated:
            old = rule.older_than_s is not None and now_wall_s - wall_s > rule.older_than_s
            large = rule.larger_than is not None and total > rule.larger_than
            clips = tuple(sorted(path.name for path in session.clips.glob("*.flac") if path.is_file()))
            if not clips or not (old or large):
                continue
            size = sum(_bytes(session.clips / name) for name in clips)
            why = _reason_to_keep(session, rule, waiting)
            if why:
                yield Purgeable(session.path, wall_s, clips, size, why)
            else:
                total -= size
                yield Purgeable(session.path, wall_s, clips, size, "", _unreviewed(session.path, clips))


def purge(purgeable: Purgeable, rule: PurgeRule, reason: str, by: str) -> str:
    """Removes the clips of a session, after a row that names them is on the disk; LogError, LogFull.

    Returns why they are kept, if that has changed since the plan; "" if they were removed.
    """
    session = SessionFolder(purgeable.folder)
    with disk_errors(f"{session.clips} cannot be emptied"):
        if why := _reason_to_keep(session, rule, ()):
            return why
        with writer_lock(session):
            removed = removals(purgeable.folder)
            if fresh := tuple(name for name in purgeable.clips if name not in removed):
                with closing(JudgmentLog(purgeable.folder)) as log:
                    log.append(SoundsRemoved(fresh, reason, by))
            for name in purgeable.clips:
                (session.clips / name).unlink(missing_ok=True)
            sync_to_disk(session.clips)
    return ""


def redact(folder: Path, name: str, spans_s: Sequence[tuple[float, float]], reason: str, by: str) -> Redaction:
    """Makes spans of a clip silent for good, after a row that says so is on the disk. spans_s: in seconds from its
    start.

    The file keeps its name, length and rate, and other rows still name it by the SHA-256 that it had. A repeated call
    completes one that was killed. InputError for an unknown clip, a stimulus or a wrong span; LogError, LogFull.
    """
    session = SessionFolder(folder).demand()
    with disk_errors(f"{session.clips / name} cannot be redacted"), writer_lock(session):
        if damage := check(folder).damage:
            raise LogError(f"{folder} is damaged: {damage[0]}", remedy="See: harness report show SESSION --check")
        with LogReader(folder) as reader:
            rows = {clip.name: entry.record for entry in reader.entries() if (clip := clip_of(entry.record))}
        if name not in rows:
            raise InputError(
                f"no clip of {folder} is called {plain_text(name, 80)!r}", remedy=nearest(name, list(rows))
            )
        if isinstance(rows[name], StimulusStored):
            problem = f"{name} is a stimulus, which a resumed run plays again"
            raise InputError(
                problem, remedy="Change the recording before the run, or remove all sound: harness admin purge"
            )
        if removal := removals(folder).get(name):
            raise InputError(f"the sound of {name} {removal}", remedy="There is nothing to redact")
        samples, rate_hz = soundfile.read(session.clips / name, dtype="int16")
        length_s = len(samples) / rate_hz
        for start_s, end_s in spans_s:
            if not 0 <= start_s < end_s <= length_s:
                problem = f"{name} has no span from {exact(start_s)} to {exact(end_s)} s: it is {moment(length_s)} long"
                raise InputError(problem, remedy="Write the start before the end, both within the clip")
        earlier = redactions(folder).get(name)
        earlier_spans_s = earlier.spans_s if earlier else ()
        all_spans_s = tuple(sorted({*spans_s, *earlier_spans_s}))
        for start_s, end_s in all_spans_s:
            samples[math.floor(start_s * rate_hz) : math.ceil(end_s * rate_hz)] = 0
        buffer = io.BytesIO()
        soundfile.write(buffer, samples, rate_hz, format="FLAC", subtype="PCM_16")
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()
        if earlier is None or earlier.spans_s != all_spans_s or earlier.sha256 != digest:
            with closing(JudgmentLog(folder)) as log:
                log.append(SoundRedacted(name, digest, tuple(sorted({*spans_s})), reason, by))
        write_atomically(session.clips / name, buffer.getvalue())
    return redactions(folder)[name]


def _last_row_wall_s(folder: Path) -> float:
    """Unix time of the last row; of a log that cannot be read, that of its file: the session is listed, and stays."""
    try:
        with LogReader(folder) as reader:
            return next((entry.wall_s for entry in reader.entries(reader.last_seq() - 1)), time.time())
    except LogError:
        return SessionFolder(folder).database.stat().st_mtime


def _unreviewed(folder: Path, clips: Collection[str]) -> int:
    """How many of these clips hold a wake event that has no review, or whose review was taken back."""
    events: dict[int, str] = {}
    reviews: dict[int, ReviewVerdict | None] = {}
    with LogReader(folder) as reader:
        for entry in reader.entries():
            match entry.record:
                case EventClipped(event_seq=event, clip=clip):
                    events[event] = clip.name
                case EventReviewed(event_seq=event, word=verdict):
                    reviews[event] = verdict
                case _:
                    pass
    return sum(1 for event, name in events.items() if name in clips and reviews.get(event) is None)


def _bytes(path: Path) -> int:
    return 0 if path.is_symlink() or not path.is_file() else path.stat().st_size


def _has_work(round_: RatingRound) -> bool:
    """Whether a rater has open or held responses, or no rater has begun."""
    raters = RatingRoom(round_).progress()
    return not raters or any((rater.count.left or rater.count.held) and not rater.stopped for rater in raters)


def _reason_to_keep(session: SessionFolder, rule: PurgeRule, waiting: Collection[str]) -> str:
    if session.clips.is_symlink():
        return f"{session.clips.name} is a link"
    try:
        with resume_lock(session):
            damage = check(session.path).damage
            responses = RatingSource(session.path, RatingRound()).read().responses
    except LogError as error:
        return error.what
    if damage:
        return f"it is damaged: {damage[0]}"
    open_ = sum(1 for response in responses if not response.submitted and response.settled is None)
    if open_ and not rule.unjudged:
        return f"{open_} of {len(responses)} responses are not judged"
    return "raters of a round have responses left" if str(session.path.resolve()) in waiting else ""
