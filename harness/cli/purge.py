"""`harness admin purge` and `redact`: remove clips, or make spans of them silent, and keep all numbers."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.base.user_text import required_text
from harness.cli.archive import parse_size
from harness.cli.options import argument, choose_one, flag, option, repeatable, verb
from harness.cli.sessions import session_folder, user_name
from harness.model.errors import InputError
from harness.model.numbers import counted, exact
from harness.model.time import DAY_S


def _parse_age(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A click callback: the days of `30d` or `8w`. Raises InputError for another text."""
    if value is None:
        return None
    number, unit = value[:-1], {"d": 1, "w": 7}.get(value[-1:])
    if unit is None or not number.isascii() or not number.isdecimal() or len(number) > 5:
        raise InputError(f"{plain_text(value, 40)!r} is not an age", remedy="Write an age such as 30d or 8w")
    return float(number) * unit


@verb("purge")
def command(
    *,
    folder: Path = argument(type=click.Path(path_type=Path, exists=True, file_okay=False)),
    older_than: float | None = option(
        "Purge sessions that ended more than AGE ago (30d, 8w).", callback=_parse_age, metavar="AGE"
    ),
    larger_than: int | None = option(
        "Purge the oldest sessions until FOLDER is no larger than SIZE.", callback=parse_size, metavar="SIZE"
    ),
    reason: str | None = option("Reason to record for the removal.", show_default="the rule applied"),
    rounds: tuple[str, ...] = repeatable(
        "Keep the sessions of this round until it is done.", "--keep-round", former=("--round",), metavar="FILE"
    ),
    unjudged: bool = flag("Also remove clips of sessions with responses that nobody has judged."),
    dry_run: bool = flag("Print what would be removed, and remove nothing."),
    yes: bool = flag("Skip the confirmation prompt."),
) -> None:
    """Delete the clips of sessions, oldest first. Results do not change, and a row records who removed them and why.

    Keeps the clips of sessions that are running, are damaged, or have responses that nobody has judged.

    FOLDER: a folder of sessions, or one session.
    """
    from harness.rating.files.rounds import read_round
    from harness.rating.purging import PurgeRule, purge, purge_plan

    choose_one(older_than=older_than is not None, larger_than=larger_than is not None)
    if older_than is None and larger_than is None:
        raise InputError("purge needs a rule", remedy="Add --older-than 30d or --larger-than 20GB")
    if reason is not None:
        reason = required_text(reason, "--reason")
    age_s = None if older_than is None else older_than * DAY_S
    rule = PurgeRule(age_s, larger_than, unjudged, tuple(read_round(Path(path)) for path in rounds))
    if reason is None and older_than is not None:
        reason = f"older than {exact(older_than)} days"
    elif reason is None:
        reason = f"larger than {larger_than} bytes"
    sessions = list(purge_plan(folder, rule, time.time()))
    for session in sessions:
        action = f"keep: {plain_text(session.kept_because)}" if session.kept_because else "remove"
        day = time.strftime("%Y-%m-%d", time.gmtime(session.wall_s))
        unreviewed = f" ({session.unreviewed} of unreviewed wake events)" if session.unreviewed else ""
        size = f"{counted(len(session.clips), 'clip')}{unreviewed}  {session.bytes} bytes"
        click.echo(f"{plain_text(str(session.folder))}  {day}  {size}  {action}")
    due_sessions = [session for session in sessions if not session.kept_because]
    clip_count = sum(len(session.clips) for session in due_sessions)
    summary = f"{counted(clip_count, 'clip')}, {sum(session.bytes for session in due_sessions)} bytes"
    if not due_sessions or dry_run:
        click.echo(f"{summary} would be removed" if due_sessions else "nothing to remove")
        return
    if not yes:
        _confirm(f"Remove {summary}?", "purge asks before it removes clips")
    for session in due_sessions:
        refusal = purge(session, rule, reason, user_name())
        click.echo(f"{plain_text(str(session.folder))}: {f'kept: {plain_text(refusal)}' if refusal else 'removed'}")


@verb("redact")
def redact(
    *,
    session: str = argument(),
    clip: str = argument(),
    spans: tuple[tuple[float, float], ...] = repeatable(
        "Span to silence, in seconds from the start of the clip. Repeat for several.",
        "--span",
        type=(float, float),
        required=True,
        metavar="FROM TO",
    ),
    reason: str = option("Reason to record for the redaction.", required=True),
    yes: bool = flag("Skip the confirmation prompt."),
) -> None:
    """Silence parts of a clip permanently. A row records who did it and why; results and transcripts do not change.

    SESSION: its folder, or its name in ./sessions. CLIP: the name of a file in its clips/ folder.
    """
    from harness.rating import purging

    reason = required_text(reason, "--reason")
    folder = session_folder(session)
    if not yes and not purging.is_silent(folder, clip, spans):
        _confirm(f"Permanently silence these parts of {plain_text(clip, 80)}?", "redact asks before it removes sound")
    click.echo(f"clip {clip} {purging.redact(folder, clip, spans, reason, user_name()).what}")
    click.echo("Transcripts and judgments do not change, nor do other clips of the same moment.")


def _confirm(question: str, rule: str) -> None:
    """Asks, and ends the command unless the answer is yes. InputError without a terminal; it begins with the rule."""
    if not sys.stdin.isatty():
        raise InputError(f"{rule}, but there is no terminal", remedy="Add --yes")
    click.confirm(question, abort=True, err=True)
