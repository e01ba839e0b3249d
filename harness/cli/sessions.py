"""Sessions on the command line: by path, by name or by a round file; and how far they have come."""

from __future__ import annotations

import getpass
import os
from collections.abc import Collection, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.foreign import plain_text, shell_word
from harness.base.places import SessionFolder
from harness.base.text_table import first_lines
from harness.cli.streams import drawn_progress
from harness.model.errors import HarnessError, InputError, did_you_mean, nearest
from harness.model.frozen import frozen
from harness.model.judgment import RatingRound

if TYPE_CHECKING:
    from harness.cli.options import RatedSessionOptions
    from harness.session.figures.progress import Progress
    from harness.wake.wake import WakeFigures

SESSIONS = Path("sessions")
ROUND_SUFFIXES = (".yaml", ".yml")
MAX_LISTED_SESSIONS = 20


@frozen
class RatedSessions:
    """The sessions whose judgments a report counts.

    - round: from a round file; None if sessions were named.
    - round_id: the round whose judgments count; None counts all.
    """

    folders: tuple[Path, ...]
    round: RatingRound | None
    round_id: str | None


def figures_of(folder: Path, *, silent: bool = False) -> tuple[Progress, WakeFigures | None]:
    """The progress of a session, from its log and later judgments, and its wake results if devices listen in it.

    It may still be running. silent: draw no progress of the reading, for callers that read again and again.
    """
    # Here, since the help of a verb needs no rows.
    from harness.base.garbage_collection import gc_paused
    from harness.model.record import SessionStarted
    from harness.session.figures.progress import SessionFigures
    from harness.session.log.reader import LogReader, later_rows
    from harness.wake.wake import WakeFigures

    figures = SessionFigures()
    wake: WakeFigures | None = None
    with LogReader(folder) as reader, gc_paused(), nullcontext() if silent else drawn_progress():
        for entry in reader.entries():
            figures.add(entry)
            if isinstance(entry.record, SessionStarted) and entry.record.listens:
                wake = WakeFigures()
            if wake is not None:
                wake.add(entry)
    for entry in later_rows(folder):
        figures.add_later(entry)
    return figures.snapshot(), wake


def progress_of(folder: Path) -> Progress:
    """The progress of its trials, read silently."""
    return figures_of(folder, silent=True)[0]


def user_name() -> str:
    """The name that is stored with an answer, judgment or note."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in containers
        return f"user-{os.getuid()}"


def session_folder(name: str) -> Path:
    """The folder of a session that is named by path, or by its name in ./sessions.

    Raises InputError, with the nearest name, if there is no such session.
    """
    for path in (Path(name), SESSIONS / name):
        folder = SessionFolder(path)
        if folder.database.is_file() or folder.rescue.is_file():
            return path
    names = sorted(path.name for path in SESSIONS.glob("*") if SessionFolder(path).database.is_file())
    hint = f"The newest in ./{SESSIONS}: {names[-1]}" if names else "Use the path that `harness run` printed"
    raise InputError(
        f"{plain_text(name, 200)} is not a session", remedy=f"{did_you_mean(Path(name).name, names)}{hint}"
    )


def only_unfinished() -> Path:
    """The only session in ./sessions with trials to play. Raises InputError if there is none, or more than one."""
    from harness.model.record import EndReason
    from harness.session.resumption import read_takes

    unfinished = []
    for path in sorted(SESSIONS.glob("*"), reverse=True):
        with suppress(HarnessError):  # not a session, or a damaged one, whose error appears when it is named
            resumption = read_takes(path)
            if resumption.ended is not EndReason.ABORTED and resumption.pending():
                unfinished.append(path)
    if len(unfinished) == 1:
        return unfinished[0]
    if not unfinished:
        raise InputError(
            f"there is no unfinished session in ./{SESSIONS}",
            remedy="To resume a session elsewhere: harness run resume SESSION. To start a session: harness run",
        )
    names = [plain_text(str(path), 200) for path in unfinished]
    names_text = "\n  ".join(first_lines(names, MAX_LISTED_SESSIONS))
    raise InputError(
        f"{len(unfinished)} sessions in ./{SESSIONS} are unfinished",
        remedy=f"Choose a session, such as: harness run resume {shell_word(unfinished[0])}\n  {names_text}",
    )


def named_round(names: Sequence[str]) -> RatingRound | None:
    """The round of a round file; None if sessions are named. Raises InputError for a round file and any other name."""
    files = [path_text for path_text in names if path_text.endswith(ROUND_SUFFIXES) or Path(path_text).is_file()]
    if not files:
        return None
    if len(names) > 1:
        raise InputError(
            f"{files[0]} is a round file, which already names its sessions", remedy="Pass only the round file"
        )
    from harness.rating.files.rounds import read_round  # here, since it takes long to import

    return read_round(Path(files[0]))


def rated_sessions(options: RatedSessionOptions) -> RatedSessions:
    """The sessions, and the round whose judgments count: the one on the command line, otherwise that of the file."""
    round_, round_id = named_round(options.named), options.round_id
    if round_ is not None and round_id is None:
        round_id = round_.id
    names = options.named if round_ is None else round_.sessions
    return RatedSessions(tuple(session_folder(name) for name in names), round_, round_id)


def demand_known(name: str, names: Collection[str], noun: str) -> None:
    """Raises InputError, with the nearest name, for a name that is not one of the names. noun: such as "rater"."""
    if name not in names:
        raise InputError(
            f"there is no {noun} {plain_text(name, 80)!r}",
            remedy=nearest(name, sorted(names)) if names else "Nothing has been judged yet",
        )
