"""Session folders with all that raters said in them, for figures and for files of judgments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.model.errors import InputError
from harness.model.judgment import Judgment
from harness.model.record import JudgmentGiven
from harness.rating.figures.judged import judged_in
from harness.rating.figures.rated_trials import rows_asked_for
from harness.rating.figures.raters import RatedSession
from harness.session.figures.progress import Progress, SessionFigures
from harness.session.log.judgment_log import rating_rows
from harness.session.log.reader import LogReader


@dataclass(frozen=True, slots=True)
class SessionRead:
    """A session as it stands. rated: its responses and judgment rows; probes of memory are not judged."""

    folder: Path
    progress: Progress
    rated: RatedSession


def read_sessions(folders: Sequence[Path]) -> tuple[SessionRead, ...]:
    """Every session, in the order given; LogError. InputError when two folders hold the same session."""
    found: dict[str, SessionRead] = {}
    for folder in folders:
        one = _read(folder)
        known = found.setdefault(one.rated.session_id, one)
        if known is not one:
            raise InputError(
                f"{known.folder} and {folder} hold the same session, {one.rated.session_id}",
                remedy="Name one of them: the other is a copy, and would count twice",
            )
    return tuple(found.values())


def of_round(found: Sequence[SessionRead], round_id: str) -> tuple[SessionRead, ...]:
    """The same sessions with the judgments of one round alone, and what corrects and settles them."""
    return tuple(_with_rows(one, rows_asked_for(one.rated.rows, round_id=round_id)) for one in found)


def _with_rows(one: SessionRead, rows: Sequence[Judgment]) -> SessionRead:
    responses = judged_in(one.progress, rows)
    return replace(one, rated=replace(one.rated, responses=responses, rows=tuple(rows)))


def _read(folder: Path) -> SessionRead:
    figures = SessionFigures()
    with LogReader(folder) as reader:
        for entry in reader.entries():
            figures.add(entry)
    progress = figures.snapshot()
    rows = tuple(entry.record.judgment for entry in rating_rows(folder) if isinstance(entry.record, JudgmentGiven))
    session_id = progress.session.session_id if progress.session else folder.resolve().name
    return SessionRead(folder, progress, RatedSession(session_id, judged_in(progress, rows), rows))
