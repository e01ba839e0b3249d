"""`harness rate`: judge first responses, in the terminal, in plain lines, or in a browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import counted, plain_text
from harness.cli.options import Site, WordOf, options_as, site_options
from harness.cli.sessions import named_round, session_folder, user_name
from harness.cli.streams import standard_output
from harness.model.errors import InputError
from harness.model.judgment import ItemFilter, RaterKeys, RatingRound, TranscriptPolicy

if TYPE_CHECKING:
    from harness.rating.desk import Desk
    from harness.rating.rating_room import RatingRoom

LONGEST_NAME = 64


def _condition(ctx: click.Context, param: click.Parameter, written: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [(one, one.partition("=")) for one in written]
    for one, (axis, _, label) in pairs:
        if not (axis and label):
            raise InputError(f"--condition {one!r} is not AXIS=LABEL", remedy="Write it like --condition noise=quiet")
    return tuple((axis, label) for _, (axis, _, label) in pairs)


_filters = options_as(
    "filters",
    ItemFilter,
    click.option(
        "--device", "devices", multiple=True, help="Only this device; may be repeated, as all of these filters."
    ),
    click.option("--class", "query_classes", multiple=True, help="Only this query class."),
    click.option("--query", "queries", multiple=True, help="Only this query, by its id."),
    click.option("--trial", "trials", multiple=True, help="Only this trial, by its id."),
    click.option(
        "--condition", "conditions", multiple=True, metavar="AXIS=LABEL", callback=_condition,
        help="Only under this condition.",
    ),
    click.option("--limit", type=click.IntRange(min=1), help="At most so many responses, drawn by the seed."),
)  # fmt: skip


@click.command("rate")
@click.argument("named", nargs=-1, required=True, metavar="SESSION… | ROUND.yaml")
@click.option("--rater", help="Your pseudonym, which stands in every judgment. Default: your user name.")
@click.option("--round", "round_id", help="Name of the round, when no file says it.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the orders and of what is drawn.")
@_filters
@click.option("--transcript", type=WordOf(TranscriptPolicy), help="When you see what was said in writing.")
@click.option("--training/--no-training", default=None, help="With or without the built-in exercises first.")
@click.option("--keys", "keys_file", type=click.Path(path_type=Path), help="File of rater keys.")
@click.option("--adjudicate", is_flag=True, help="Settle what raters disagree on, with their judgments in view.")
@click.option("--names", is_flag=True, help="When settling: with the raters' names, which are left out otherwise.")
@click.option("--list", "listing", is_flag=True, help="Print how much there is to judge, and quit.")
@click.option("--plain", is_flag=True, help="Lines instead of a screen; by itself without a terminal.")
@click.option("--sound-device", help="Where responses are played. Default: the host's own choice.")
@click.option("--silent", is_flag=True, help="Open no sound device.")
@site_options("raters")
def command(
    named: tuple[str, ...],
    rater: str | None,
    round_id: str | None,
    seed: int | None,
    filters: ItemFilter,
    transcript: TranscriptPolicy | None,
    training: bool | None,
    keys_file: Path | None,
    adjudicate: bool,
    names: bool,
    listing: bool,
    plain: bool,
    sound_device: str | None,
    silent: bool,
    site: Site,
) -> None:
    """Judge first responses: one key labels and goes on, and every judgment is saved before the next response shows.

    SESSION: a folder, or a name below ./sessions; several are judged together, shuffled. ROUND.yaml: a file that says
    which sessions, whose raters, which training and known answers; options go before what it says. docs/rating.md,
    docs/round.md.
    """
    from harness.rating.exercises import BUILT_IN_EXERCISES
    from harness.rating.rating_room import RatingRoom

    round_ = named_round(named) or RatingRound(sessions=tuple(str(session_folder(one).resolve()) for one in named))
    asked = {one.name: getattr(filters, one.name) for one in fields(filters)}
    round_ = replace(
        round_,
        id=round_.id if round_id is None else _name(round_id, "round"),
        seed=round_.seed if seed is None else seed,
        items=replace(round_.items, **{name: value for name, value in asked.items() if value}),
        transcript=transcript or round_.transcript,
    )
    if training is not None:
        # A round keeps exercises of its own.
        round_ = replace(round_, exercises=(round_.exercises or BUILT_IN_EXERCISES) if training else ())
    site.demand_web("raters'")
    if site.web and (plain or listing or adjudicate or rater is not None or sound_device or silent):
        raise InputError(
            "--web goes with none of --rater, --adjudicate, --list, --plain, --sound-device and --silent",
            remedy="Raters say in the browser who they are; invite adjudicators with: harness invite --adjudicator",
        )
    if names and not (adjudicate or site.web):
        raise InputError("--names is for who settles what raters disagree on", remedy="Add --adjudicate, or --web")
    if silent and sound_device is not None:
        raise InputError("--silent and --sound-device exclude each other", remedy="Choose one")
    if silent and round_.must_hear and not listing:
        raise InputError("this round wants every response heard to its end", remedy="Leave --silent out")
    keys = _keys(keys_file)
    rater = _name(rater if rater is not None else user_name(), "rater")
    room = RatingRoom(round_)
    try:
        if site.web:
            from harness.web.server import WebOptions, serve

            sys.exit(serve(room, WebOptions(keys=keys, names=names, **site.given)))
        desk = room.adjudication(rater) if adjudicate else room.desk(rater)
        for line in _notes(room):
            click.echo(line, err=True)
        if listing:
            standard_output().write("\n".join(_listed(room, desk, adjudicating=adjudicate)) + "\n")
            return
        sys.exit(_sit(room, desk, keys, plain, sound_device, silent=silent, adjudicating=adjudicate, names=names))
    finally:
        room.close()


def _name(written: str, what: str) -> str:
    name = written.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"{written!r} is no name of a {what}", remedy=f"Write 1 to {LONGEST_NAME} printable characters"
        )
    return name


def keys_place() -> Path:
    """Where a rater's own keys are looked for."""
    root = os.environ.get("XDG_CONFIG_HOME")
    return (Path(root) if root else Path.home() / ".config") / "voice-harness" / "rater_keys.yaml"


def _keys(named: Path | None) -> RaterKeys:
    place = keys_place()
    if named is None and not place.is_file():
        return RaterKeys()
    from harness.rating.files.rounds import load_rater_keys  # here, since it takes long to import

    return load_rater_keys(named or place)


def _sit(
    room: RatingRoom,
    desk: Desk,
    keys: RaterKeys,
    plain: bool,
    sound_device: str | None,
    *,
    silent: bool,
    adjudicating: bool,
    names: bool,
) -> int:
    from harness.rating.rater_player import open_player  # PyAudio is slow to import, and a list needs none of it

    if sys.stdin is None:
        raise InputError("standard input is closed", remedy="Leave it open: what you say comes from there")
    terminal = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    player = None if silent else open_player(sound_device)
    try:
        if plain or not terminal:
            from harness.cli.rate_plain import sit_plainly

            return sit_plainly(room, desk, keys, player, adjudicating=adjudicating, names=names)
        from harness.dashboard.sitting_app import run_rating_app

        return run_rating_app(room, desk, keys, player, adjudicating=adjudicating, names=names)
    finally:
        if player is not None:
            player.close()


def _notes(room: RatingRoom) -> Iterator[str]:
    missed = room.unmatched_gold
    if missed:
        first = plain_text(f"{missed[0].trial} of {missed[0].session}", 120)
        yield f"harness: {len(missed)} of {len(room.round.gold)} known answers are of no response here, such as {first}"


def _listed(room: RatingRoom, desk: Desk, *, adjudicating: bool) -> list[str]:
    """How much there is, in total and for the rater."""
    view, count = desk.view, desk.view.count
    responses = f"{counted(len(room.items), 'response')} of {counted(len(room.round.sessions), 'session')}"
    own = f"{count.total} {'to settle' if adjudicating else 'to judge'}, {count.done} done, {count.left} left"
    apart = f"{count.skipped} of them left for the end, {count.held} held, {count.flagged} put aside"
    lines = [
        f"round {plain_text(room.round.id)}: {responses}",
        f"raters disagree on {counted(len(room.disputed), 'response')}",
        f"{plain_text(view.rater)}: {own}, {apart}",
    ]
    if room.round.exercises and not adjudicating:
        done, every = view.exercises
        lines.append(f"exercises: {done} of {every} done")
    return lines
