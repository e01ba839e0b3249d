"""`harness rate`: judge first responses, in the terminal, in plain lines, or in a browser."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.places import config_folder
from harness.base.user_text import name_key, person_name
from harness.cli import INTERRUPTED
from harness.cli.options import Site, argument, choose_one, flag, option, option_group, repeatable, site_options, verb
from harness.cli.sessions import named_round, session_folder, user_name
from harness.cli.streams import print_lines
from harness.model.errors import InputError, SoundError
from harness.model.frozen import frozen
from harness.model.judgment import ItemFilter, RaterKeys, RatingRound, TranscriptPolicy
from harness.model.numbers import fixed
from harness.rating.guide import LABELS

if TYPE_CHECKING:
    from harness.rating.desk import Desk
    from harness.rating.program_rater import ProgramRater
    from harness.rating.rater_player import RaterPlayer
    from harness.rating.rating_room import RatingRoom


FAULT = 3  # Exit status, as for any fault.


def _parse_conditions(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """A callback: the axis and label of each text `AXIS=LABEL`. Raises InputError for another text."""
    conditions = []
    for text in texts:
        axis, _, label = text.partition("=")
        if not (axis and label):
            raise InputError(f"--condition {text!r} is not AXIS=LABEL", remedy="For example: --condition noise=quiet")
        conditions.append((axis, label))
    return tuple(conditions)


_filters = option_group(
    devices=repeatable(
        "Judge only responses of this device (repeatable, like --class, --query, --trial and --condition).", "--device"
    ),
    query_classes=repeatable("Judge only responses to this class of queries.", "--class"),
    queries=repeatable("Judge only responses to the query with this id.", "--query"),
    trials=repeatable("Judge only the response of the trial with this id.", "--trial"),
    conditions=repeatable(
        "Judge only responses under this condition.", "--condition", metavar="AXIS=LABEL", callback=_parse_conditions
    ),
    limit=option("Maximum number of responses, selected at random with --seed.", within=(1, None)),
)


@frozen
class ProgramOptions:
    """The command of a program that judges; None for a person.

    - timeout_s: for each response.
    - per_minute: limit on the number of responses; None for no limit.
    """

    command: str | None = option(
        "Let this program judge instead of a person (docs/how-to/let-a-program-rate.md).", "--program", metavar="CMD"
    )
    timeout_s: float = option(
        "Time limit for --program, per response.", "--timeout", within=(0.1, 86_400), default=60.0, metavar="S"
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
    round_id: str | None = option("Name of the round; overrides the round file.", "--round"),
    seed: int | None = option("Seed for the order and the random selection of responses.", within=(0, None)),
    filters: ItemFilter = _filters,
    transcript: TranscriptPolicy | None = option("When raters see the transcript."),
    training: bool | None = option(
        "Begin with or without exercises: the round's own, or else the built-in ones.",
        "--training/--no-training",
        default=None,
        show_default="the round file; without one, no exercises",
    ),
    keys_file: Path | None = option("YAML file with other key assignments.", "--keys"),
    adjudicate: bool = flag("Settle the responses on which raters disagree. Their judgments are shown."),
    names: bool = flag("Show raters' names to adjudicators.", show_default="hidden"),
    listing: bool = flag("Print how many responses each rater (or --rater) has left, then exit.", "--list"),
    plain: bool = flag("Print lines instead of a screen (default when there is no terminal)."),
    sound_device: str | None = option(
        "Sound device that plays responses, as `harness admin sound list` names it.",
        "--speaker",
        former=("--sound-device",),
        show_default="chosen by the host",
    ),
    silent: bool = flag("Open no sound device.", "--no-sound", former=("--silent",)),
    by_program: ProgramOptions,
    site: Site = site_options("raters'"),
) -> None:
    """Judge first responses, one key per response. Each judgment is saved before the next response is shown.

    SESSION: a folder, or a name in ./sessions. Several sessions are judged together, shuffled. ROUND.yaml: a file
    that names the sessions, raters, training and known answers. Options take precedence over the file. See
    docs/how-to/coordinate-raters.md and docs/reference/rounds.md.

    Exit status: 0 done · 2 wrong usage or input · 3 a file fault, or --program left responses open · 130 interrupted.
    """
    from harness.cli.rate_lines import list_lines
    from harness.rating.rating_room import RatingRoom

    round_ = _read_round(named, round_id, seed, filters, transcript, training)
    site.demand_web("raters'")
    if site.web and (plain or listing or adjudicate or rater is not None or sound_device or silent):
        raise InputError(
            "--web cannot be combined with --rater, --adjudicate, --list, --plain, --speaker or --no-sound",
            remedy="Raters log in with their links. Invite adjudicators with: harness rate invite --adjudicator RATER",
        )
    if names and not (adjudicate or site.web):
        raise InputError("--names works only with --adjudicate or --web", remedy="Add --adjudicate, or --web")
    choose_one(no_sound=silent, speaker=sound_device is not None)
    if silent and round_.must_hear and not listing:
        raise InputError("this round requires that each response be heard to the end", remedy="Remove --no-sound")
    if by_program.command is not None:
        if site.web or adjudicate or plain or training or rater is not None or keys_file or sound_device or silent:
            raise InputError(
                "--program cannot be combined with --web, --rater, --adjudicate, --plain, --training, --keys, "
                "--speaker or --no-sound",
                remedy="Remove these options: a program judges all responses of a round under its own name",
            )
        sys.exit(_judge_by_program(by_program, by_program.command, round_, listing=listing))
    if by_program.per_minute is not None:
        raise InputError("--rate-limit works only with --program", remedy="Add --program, or remove --rate-limit")
    keys = _read_keys(keys_file)
    is_for_all = rater is None and not adjudicate
    rater = person_name(rater if rater is not None else user_name(), "rater name")
    with closing(RatingRoom(round_)) as room:
        _warn_of_unmatched_gold(room)
        if site.web:
            from harness.web.server import WebOptions, serve

            sys.exit(serve(room, WebOptions(keys=keys, names=names, **site.web_options)))
        if listing and is_for_all:
            print_lines(list_lines(room, room.progress([rater])))
            return
        desk = room.adjudication(rater) if adjudicate else room.desk(rater)
        if listing:
            print_lines(list_lines(room, [desk.view], adjudicating=adjudicate))
            return
        sys.exit(_judge_in_person(room, desk, keys, sound_device, plain=plain, silent=silent, names=names))


def _read_round(
    named: tuple[str, ...],
    round_id: str | None,
    seed: int | None,
    filters: ItemFilter,
    transcript: TranscriptPolicy | None,
    training: bool | None,
) -> RatingRound:
    """The round of a file, or a new one for the sessions, changed by the options that are given."""
    from harness.rating.exercises import BUILT_IN_EXERCISES

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
    if training is None:
        return round_
    # Exercises that the round file names take precedence.
    return replace(round_, exercises=(round_.exercises or BUILT_IN_EXERCISES) if training else ())


def _read_keys(chosen: Path | None) -> RaterKeys:
    """The keys of a file: the chosen one, otherwise the user's own, if there is one. The usual keys without a file."""
    own_path = config_folder() / "rater_keys.yaml"
    if chosen is None and not own_path.is_file():
        return RaterKeys()
    from harness.rating.files.rounds import load_rater_keys  # here: slow to import

    return load_rater_keys(chosen or own_path)


def _judge_in_person(
    room: RatingRoom, desk: Desk, keys: RaterKeys, sound_device: str | None, *, plain: bool, silent: bool, names: bool
) -> int:
    """Opens the screen, or reads lines, until the rater leaves. Returns the exit status.

    silent: open no sound device. Raises SoundError if the chosen one cannot be opened; without a choice, only a
    warning.
    """
    from harness.rating.rater_player import open_player  # here: PyAudio is slow to import

    has_terminal = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    player = None if silent else open_player(sound_device)
    try:
        if player is not None and sound_device is not None:
            player.check()
        if plain or not has_terminal:
            if player is not None and sys.stdin.isatty():
                _warn_without_sound(player)
            from harness.cli.rate_plain import PlainSitting

            return PlainSitting(room, desk, keys, player, names=names).run()
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
        click.echo(f"harness: no sound: {error.what}. Connect a sound device, then type `play`", err=True)


def _judge_by_program(options: ProgramOptions, command_text: str, round_: RatingRound, *, listing: bool) -> int:
    """Judges by a program until nothing is left, or only lists what is left. Returns the exit status."""
    from harness.base.program_pipe import program_command
    from harness.cli.rate_lines import list_lines
    from harness.rating.program_rater import ProgramRater
    from harness.rating.rating_room import RatingRoom

    if round_.must_hear:
        raise InputError(
            "this round requires that each response be heard to the end, which a program cannot show",
            remedy="Pass the sessions instead of the round file, and choose another round with --round",
        )
    arguments = program_command(
        "--program", command_text, "--program './their-rater --model x'", "--program 'python3 …'"
    )
    # Training, shares and proposals of the round are for people.
    round_ = replace(round_, exercises=(), raters=(), raters_per_item=None, proposals=None)
    room = RatingRoom(round_)
    with (
        closing(room),
        closing(ProgramRater(arguments, timeout_s=options.timeout_s, per_minute=options.per_minute)) as program,
    ):
        rater = program.rater
        if any(name_key(row.rater) == name_key(rater) and not row.program for row in room.rows):
            raise InputError(
                f"{rater!r} is already the name of a person who rates",
                remedy="Change the name in the hello message of the program",
            )
        desk = room.desk(rater, program=True)
        _warn_of_unmatched_gold(room)
        if listing:
            print_lines(list_lines(room, [desk.view]))
            return 0
        click.echo(f"round {plain_text(round_.id)}: {desk.view.count.left} left for {plain_text(rater)}")
        return _run_program(room, desk, program)


def _run_program(room: RatingRoom, desk: Desk, program: ProgramRater) -> int:
    """Sends responses to a program and prints its answers, until nothing is left or Ctrl-C. Returns the exit status."""
    from harness.rating.program_rater import UnjudgedItem, judge_all

    judged_count = failed_count = 0
    interrupted = False
    try:
        with closing(judge_all(room, desk, program)) as outcomes:
            for outcome in outcomes:
                if isinstance(outcome, UnjudgedItem):
                    failed_count += 1
                    click.echo(f"harness: response {outcome.item.id} stays open: {outcome.why}", err=True)
                    if outcome.last:
                        click.echo("harness: several responses in a row failed, so no more are sent", err=True)
                    continue
                judged_count += 1
                answer = outcome.answer
                reason = plain_text(answer.reason, 200)
                response = f"response {outcome.position} of {desk.view.count.total} ({outcome.item.id})"
                click.echo(f"{response}: {LABELS[answer.category]}, {fixed(answer.confidence, 2)}, {reason}")
    except KeyboardInterrupt:
        click.echo("harness: interrupted", err=True)
        interrupted = True
    count = desk.view.count
    click.echo(
        f"ended: {count.done} of {count.total} done, {judged_count} of them in this run; {failed_count} failed, "
        f"{count.left} open, {count.held} held"
    )
    if desk.view.stopped:
        click.echo("harness: too many answers differ from the known ones, so no more are sent", err=True)
    if interrupted:
        return INTERRUPTED
    return FAULT if failed_count or count.left else 0


def _warn_of_unmatched_gold(room: RatingRoom) -> None:
    unmatched = room.unmatched_gold
    if unmatched:
        example = plain_text(f"{unmatched[0].trial} of {unmatched[0].session}", 120)
        counts = f"{len(unmatched)} of {len(room.round.gold)} known answers"
        click.echo(f"harness: {counts} match no response, for example {example}", err=True)
