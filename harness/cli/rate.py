"""`harness rate`: judge first responses, in the terminal, in plain lines, or in a browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.places import config_folder
from harness.base.user_text import name_key, person_name
from harness.cli.options import Site, argument, flag, option, option_group, repeatable, site_options, verb
from harness.cli.sessions import named_round, session_folder, user_name
from harness.cli.streams import print_lines
from harness.model.errors import InputError, SoundError
from harness.model.frozen import frozen
from harness.model.judgment import ItemFilter, RaterKeys, RatingRound, TranscriptPolicy
from harness.model.numbers import counted, fixed
from harness.rating.guide import LABELS

if TYPE_CHECKING:
    from harness.rating.desk import Desk, SittingView
    from harness.rating.rater_player import RaterPlayer
    from harness.rating.rater_queue import RaterQueue
    from harness.rating.rating_room import RatingRoom


def _condition(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [(text, text.partition("=")) for text in texts]
    for text, (axis, _, label) in pairs:
        if not (axis and label):
            raise InputError(f"--condition {text!r} is not AXIS=LABEL", remedy="Write it like --condition noise=quiet")
    return tuple((axis, label) for _, (axis, _, label) in pairs)


_filters = option_group(
    devices=repeatable("Only this device (repeatable, like --class, --query, --trial and --condition).", "--device"),
    query_classes=repeatable("Only this query class.", "--class"),
    queries=repeatable("Only this query, by its id.", "--query"),
    trials=repeatable("Only this trial, by its id.", "--trial"),
    conditions=repeatable("Only under this condition.", "--condition", metavar="AXIS=LABEL", callback=_condition),
    limit=option("Maximum number of responses, selected at random with --seed.", within=(1, None)),
)


@frozen
class ProgramOptions:
    """A program that judges: its command, None for none. timeout_s: per item. per_minute: most items; None for any."""

    command: str | None = option(
        "Let this program judge instead of a person (docs/how-to/let-a-program-rate.md).", "--program", metavar="CMD"
    )
    timeout_s: float = option(
        "Longest time that --program may take for a response.",
        "--timeout",
        within=(0.1, 86_400),
        default=60.0,
        metavar="S",
    )
    per_minute: float | None = option(
        "Send --program at most N responses per minute.",
        "--rate-limit",
        show_default="no limit",
        within=(0.01, 60_000),
        metavar="N",
    )


@verb(
    "rate",
    sections={
        "Which responses": "devices query_classes queries trials conditions limit",
        "Rounds": "round_id seed transcript adjudicate names",
        "Screen and sound": "keys_file plain sound_device silent",
        "Programs that rate": "command timeout_s per_minute",
    },
)
def command(
    *,
    named: tuple[str, ...] = argument("SESSION… | ROUND.yaml", required=True),
    rater: str | None = option("Your pseudonym, stored with every judgment.", show_default="your user name"),
    round_id: str | None = option("Name of the round; overrides the file.", "--round"),
    seed: int | None = option("Seed for the order and the random selection of responses.", within=(0, None)),
    filters: ItemFilter = _filters,
    transcript: TranscriptPolicy | None = option("When raters see the transcript."),
    training: bool | None = option(
        "Begin with exercises: those of the round, else the built-in ones; or without.",
        "--training/--no-training",
        default=None,
        show_default="the round file; without one, no exercises",
    ),
    keys_file: Path | None = option("YAML file that assigns other keys.", "--keys"),
    adjudicate: bool = flag("Settle the responses that raters disagree on; shows their judgments."),
    names: bool = flag("Show raters' names to adjudicators.", show_default="hidden"),
    listing: bool = flag("Print how many responses each rater (or --rater) has left, then exit.", "--list"),
    plain: bool = flag("Print lines instead of a screen (default when there is no terminal)."),
    sound_device: str | None = option(
        "Sound device that plays responses, as `harness admin sound list` names it.",
        "--speaker",
        former=("--sound-device",),
        show_default="the host's choice",
    ),
    silent: bool = flag("Open no sound device.", "--no-sound", former=("--silent",)),
    by_program: ProgramOptions,
    site: Site = site_options("raters'"),
) -> None:
    """Judge first responses, one key per response. Each judgment is saved before the next response is shown.

    SESSION: a folder, or a name below ./sessions. Several sessions are judged together, shuffled. ROUND.yaml: a file
    that names the sessions, raters, training and known answers. Options take precedence over the file. See
    docs/how-to/coordinate-raters.md and docs/reference/rounds.md.

    Exit status: 0 done · 2 wrong usage or input · 3 a file fault, or --program left responses open · 130 interrupted.
    """
    from harness.rating.exercises import BUILT_IN_EXERCISES
    from harness.rating.rating_room import RatingRoom

    round_ = named_round(named) or RatingRound(
        sessions=tuple(str(session_folder(session).resolve()) for session in named)
    )
    requested_filters = {field.name: getattr(filters, field.name) for field in fields(filters)}
    round_ = replace(
        round_,
        id=round_.id if round_id is None else person_name(round_id, "round name"),
        seed=round_.seed if seed is None else seed,
        items=replace(round_.items, **{name: value for name, value in requested_filters.items() if value}),
        transcript=transcript or round_.transcript,
    )
    if training is not None:
        # Exercises that the round file names take precedence.
        round_ = replace(round_, exercises=(round_.exercises or BUILT_IN_EXERCISES) if training else ())
    site.demand_web("raters'")
    if site.web and (plain or listing or adjudicate or rater is not None or sound_device or silent):
        raise InputError(
            "--web cannot be combined with --rater, --adjudicate, --list, --plain, --speaker or --no-sound",
            remedy="Raters log in with their links. Invite adjudicators with: harness rate invite --adjudicator RATER",
        )
    if names and not (adjudicate or site.web):
        raise InputError("--names works only with --adjudicate or --web", remedy="Add --adjudicate, or --web")
    if silent and sound_device is not None:
        raise InputError("--no-sound and --speaker cannot be combined", remedy="Choose one")
    if silent and round_.must_hear and not listing:
        raise InputError("this round requires that each response be heard to the end", remedy="Remove --no-sound")
    if by_program.command is not None:
        if site.web or adjudicate or plain or training or rater is not None or keys_file or sound_device or silent:
            raise InputError(
                "--program cannot be combined with --web, --rater, --adjudicate, --plain, --training, --keys, "
                "--speaker or --no-sound",
                remedy="Omit them: a program judges all responses of a round under its own name",
            )
        sys.exit(_judge_by_program(by_program, by_program.command, round_, listing=listing))
    if by_program.per_minute is not None:
        raise InputError("--rate-limit works only with --program", remedy="Add --program, or remove it")
    keys = _keys(keys_file)
    everyone = rater is None and not adjudicate
    rater = person_name(rater if rater is not None else user_name(), "rater name")
    with closing(RatingRoom(round_)) as room:
        if site.web:
            from harness.web.server import WebOptions, serve

            sys.exit(serve(room, WebOptions(keys=keys, names=names, **site.web_options)))
        for line in _notes(room):
            click.echo(line, err=True)
        if listing and everyone:
            print_lines(_list_raters(room, room.progress([rater])))
            return
        desk = room.adjudication(rater) if adjudicate else room.desk(rater)
        if listing:
            print_lines(_list_raters(room, [desk.view], adjudicating=adjudicate))
            return
        sys.exit(_sit(room, desk, keys, plain, sound_device, silent=silent, names=names))


def _keys(chosen: Path | None) -> RaterKeys:
    place = config_folder() / "rater_keys.yaml"
    if chosen is None and not place.is_file():
        return RaterKeys()
    from harness.rating.files.rounds import load_rater_keys  # here: slow to import

    return load_rater_keys(chosen or place)


def _sit(
    room: RatingRoom, desk: Desk, keys: RaterKeys, plain: bool, sound_device: str | None, *, silent: bool, names: bool
) -> int:
    from harness.rating.rater_player import open_player  # here: PyAudio is slow to import

    terminal = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    player = None if silent else open_player(sound_device)
    try:
        if player is not None and sound_device is not None:
            player.check()
        if plain or not terminal:
            if player is not None and sys.stdin.isatty():
                _warn_without_sound(player)
            from harness.cli.rate_plain import run_plain_sitting

            return run_plain_sitting(room, desk, keys, player, names=names)
        from harness.cli.rate_lines import ending_line
        from harness.dashboard.sitting_app import run_rating_app

        status = run_rating_app(room, desk, keys, player, names=names)
        print_lines([f"{ending_line(desk.view, saved=status == 0)}. Run the same command to continue"])
        return status
    finally:
        if player is not None:
            player.close()


def _warn_without_sound(player: RaterPlayer) -> None:
    """Warns at once if no sound can be played. In lines, nothing would show that before the command `play`."""
    try:
        player.check()
    except SoundError as error:
        click.echo(f"harness: no sound: {error.what}. Connect a sound device, then `play`", err=True)


FAULT, INTERRUPTED = 3, 130  # Exit statuses. 130 is 128 + SIGINT, as in shells.


def _judge_by_program(request: ProgramOptions, command_text: str, round_: RatingRound, *, listing: bool) -> int:
    """Judges by a program until nothing is left; returns the exit status."""
    from harness.base.program_pipe import program_command
    from harness.rating.program_rater import ProgramRater, UnjudgedItem, sitting
    from harness.rating.rating_room import RatingRoom

    if round_.must_hear:
        raise InputError(
            "this round requires that each response be heard to the end, which a program cannot show",
            remedy="Name the sessions instead of the round file, and give the round another name with --round",
        )
    arguments = program_command(
        "--program", command_text, "--program './their-rater --model x'", "--program 'python3 …'"
    )
    # Training, shares and proposals of the round are for people.
    round_ = replace(round_, exercises=(), raters=(), raters_per_item=None, proposals=None)
    room = RatingRoom(round_)
    with (
        closing(room),
        closing(ProgramRater(arguments, timeout_s=request.timeout_s, per_minute=request.per_minute)) as program,
    ):
        rater = program.rater
        if any(name_key(row.rater) == name_key(rater) and not row.program for row in room.rows):
            raise InputError(f"{rater!r} is already used by a person", remedy="Change the name in the program's hello")
        desk = room.desk(rater, program=True)
        for line in _notes(room):
            click.echo(line, err=True)
        if listing:
            print_lines(_list_raters(room, [desk.view]))
            return 0
        judged, left_open, status = 0, 0, 0
        click.echo(f"round {plain_text(round_.id)}: {desk.view.count.left} left for {plain_text(rater)}")
        try:
            with closing(sitting(room, desk, program)) as results:
                for outcome in results:
                    if isinstance(outcome, UnjudgedItem):
                        left_open += 1
                        click.echo(f"harness: response {outcome.item.id} stays open: {outcome.why}", err=True)
                        if outcome.last:
                            click.echo("harness: several in a row failed, so no more are sent", err=True)
                        continue
                    judged += 1
                    answer = outcome.answer
                    reason = plain_text(answer.reason, 200)
                    response = f"response {outcome.position} of {desk.view.count.total} ({outcome.item.id})"
                    click.echo(f"{response}: {LABELS[answer.category]}, {fixed(answer.confidence, 2)}, {reason}")
        except KeyboardInterrupt:
            click.echo("harness: interrupted", err=True)
            status = INTERRUPTED
        count = desk.view.count
        click.echo(
            f"ended: {count.done} of {count.total} done, {judged} of them in this run; {left_open} failed, "
            f"{count.left} open, {count.held} held"
        )
        if desk.view.stopped:
            click.echo("harness: too many answers differ from the known ones, so no more are sent", err=True)
    return status or (FAULT if left_open or count.left else 0)


def _notes(room: RatingRoom) -> Iterator[str]:
    missed = room.unmatched_gold
    if missed:
        first = plain_text(f"{missed[0].trial} of {missed[0].session}", 120)
        yield f"harness: {len(missed)} of {len(room.round.gold)} known answers match no response, for example {first}"


def _list_raters(
    room: RatingRoom, raters: Iterable[RaterQueue | SittingView], *, adjudicating: bool = False
) -> Iterator[str]:
    """How many responses there are, in total and for each rater."""
    from harness.cli.rate_lines import counts_in_words

    responses = f"{counted(len(room.items), 'response')} of {counted(len(room.round.sessions), 'session')}"
    yield f"round {plain_text(room.round.id)}: {responses}"
    yield f"raters disagree on {counted(len(room.disputed), 'response')}"
    for summary in raters:
        to_do = "to settle" if adjudicating else "to judge"
        exercises = ""
        if room.round.exercises and not adjudicating:
            done_count, exercise_count = summary.exercises
            exercises = f"; exercises: {done_count} of {exercise_count} done"
        yield f"{plain_text(summary.rater)}: {summary.count.total} {to_do}, {counts_in_words(summary.count)}{exercises}"
