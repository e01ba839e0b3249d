"""The command line: verbs only. A verb's module is imported when the verb is used."""

from __future__ import annotations

import difflib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

from harness import __version__
from harness.base.leaving import ASKED_TO_END, leave_soon
from harness.cli.streams import open_streams, output_fault
from harness.model.errors import HarnessError, InputError, Place

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("harness.cli.demo", "Run the demonstration in the virtual lab."),
        "init": ("harness.cli.init", "Write a commented starter scenario and bench, also for a board of yours."),
        "doctor": ("harness.cli.doctor", "Check ports, rights, sound, broker, disk and clock of this host."),
        "help": ("harness.cli:help_", "Show what a command does, as `harness COMMAND --help`."),
    },
    "Run": {
        "rehearse": (
            "harness.cli.rehearse",
            "Simulate a scenario: its duration, and whether its limits can be decided.",
        ),
        "validate": ("harness.cli.validate", "Check scenarios, benches and device profiles; plays nothing."),
        "run": ("harness.cli.run", "Run a scenario on a bench."),
        "resume": ("harness.cli.run:resume", "Resume a session that was cut off."),
        "attach": ("harness.cli.run:attach", "Watch and steer a session that is running."),
        "show": ("harness.cli.show", "Print the trials and results of a session."),
        "trend": ("harness.cli.trend", "Follow the measures of nightly sessions; find where they change."),
        "effects": ("harness.cli.effects", "List effects that nobody has observed yet; record observations."),
        "memory": ("harness.cli.memory", "Estimate how long devices remember a dialogue, from memory trials."),
        "export": ("harness.cli.export", "Write a session's results as a wake-evaluation log or as JUnit."),
    },
    "Keep": {
        "pack": ("harness.cli.archive:pack", "Pack a session into one file that can be checked."),
        "unpack": ("harness.cli.archive:unpack", "Unpack a packed session into a new folder, and check it."),
        "redact": ("harness.cli.purge:redact", "Make spans of a clip silent, with a reason; all numbers stay."),
        "purge": ("harness.cli.purge", "Remove the clips of sessions to make room; all numbers stay."),
    },
    "Devices": {"devices": ("harness.cli.devices", "List device profiles, test them, monitor a device.")},
    "Rate": {
        "rate": ("harness.cli.rate", "Judge first responses: in the terminal, in plain lines, or in a browser."),
        "categories": ("harness.cli.categories", "Count the categories of first responses; compare two devices."),
        "agreement": ("harness.cli.agreement", "Report how far raters agree, and their consensus."),
        "judgments": (
            "harness.cli.judgments",
            "Export judgments to CSV, Parquet or JSON lines; import those made elsewhere.",
        ),
        "invite": ("harness.cli.invite", "Invite raters or annotators to their site."),
    },
    "Evaluate offline": {
        "evaluate": ("harness.cli.evaluate", "Run a wake engine or a recogniser over lists of files; write the log."),
        "mix": ("harness.cli.mix", "Plant phrases in hours of background, with labels."),
        "engines": ("harness.cli.engines", "List engines for offline evaluation, their models, settings and licences."),
        "merge": ("harness.cli.merge", "Merge the shards of an evaluation."),
        "report": ("harness.cli.report", "Summarise a wake-evaluation log, of ours or of the original tool."),
        "compare": (
            "harness.cli.compare",
            "Compare sessions with a first one (builds, boards, settings), or two evaluations of files.",
        ),
        "offline": ("harness.cli.offline", "Run an engine on a session's stimuli: what did the acoustic path cost?"),
        "plan": ("harness.cli.plan", "Calculate the hours and utterances that a claim needs."),
    },
    "Transcripts": {
        "score": ("harness.cli.score", "Score transcripts against references, word by word."),
        "snor": ("harness.cli.snor", "Convert .sro transcriptions to Lexical SNOR, Expanded SNOR or .snr."),
    },
    "Understanding": {
        "understanding": ("harness.cli.understanding", "Score intents and slots; train and use a model of them."),
        "annotate": ("harness.cli.annotate", "Annotate utterances with intents: proposals, review, agreement."),
    },
    "Lab": {
        "lab": ("harness.cli.lab", "Start, stop and show the virtual lab."),
        "calibrate": ("harness.cli.calibrate", "Measure a loudspeaker's level in the room with a sound level meter."),
        "sound": ("harness.cli.sound", "List sound devices, check the sound path with a chirp, record talkers."),
        "voices": ("harness.cli.voices", "List the voices that are installed, or hear one."),
        "schema": ("harness.cli.schema", "Print or write the JSON Schemas for editors."),
    },
}
"""Section of the help: its verbs, each with its module and what it does."""
START = """\
voice-harness measures how well a voice device hears and answers.

  1. demo     a three-minute tour; needs no hardware
  2. init     write a scenario and a bench for your devices
  3. doctor   check this computer
  4. help     list all commands
"""
LONGEST_TOLD = 2000


@contextmanager
def orderly_end() -> Iterator[None]:
    """Turns SIGTERM and SIGHUP into an orderly exit, so that temporary files are removed.

    The exit status is the one that shells report for a program ended by that signal. A signal that was ignored, as
    under `nohup`, stays ignored.
    """
    mine = threading.current_thread() is threading.main_thread()
    taken = [one for one in ASKED_TO_END if mine and signal.getsignal(one) is signal.SIG_DFL]
    for one in taken:
        signal.signal(one, _leave)
    try:
        yield
    finally:
        for one in taken:
            signal.signal(one, signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    for one in ASKED_TO_END:  # a second signal must not interrupt the clean-up
        signal.signal(one, signal.SIG_IGN)
    sys.exit(leave_soon(number))


INTERRUPTED = 130  # the status that shells report after Ctrl-C


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command: `harness help run` is `harness run --help`."""
    assert ctx.parent is not None
    above = ctx.parent
    for word in words:
        found = above.command.get_command(above, word) if isinstance(above.command, click.Group) else None
        if found is None:
            known = above.command.list_commands(above) if isinstance(above.command, click.Group) else []
            near = difflib.get_close_matches(word, known, n=1)
            raise click.UsageError(
                f"There is no command {word!r}." + (f" Did you mean {near[0]!r}?" if near else ""), ctx
            )
        above = click.Context(found, info_name=word, parent=above)
    click.echo(above.get_help())


class Verbs(click.Group):
    """Commands by name, imported on use. An unknown name gets the nearest known one as a suggestion.

    verbs: name → (module, line in the list). The module defines `command`; `module:name` names another object.
    sections: heading → the commands below it in the list. Default: one section.
    """

    def __init__(
        self,
        verbs: dict[str, tuple[str, str]],
        sections: Mapping[str, Collection[str]] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(**attributes)
        self._verbs = verbs
        self._sections = sections or {"Commands": verbs}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._verbs:
            return None
        module, _, name = self._verbs[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._verbs and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self._verbs, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._verbs))
        for heading, names in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), self._verbs[name][1]) for name in names])


@click.command(
    cls=Verbs,
    verbs={name: verb for verbs in SECTIONS.values() for name, verb in verbs.items()},
    sections=SECTIONS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", prog_name="voice-harness")
@click.pass_context
def group(ctx: click.Context) -> None:
    """A live test harness for voice devices.

    Exit status: 0 done · 1 a declared limit failed · 2 wrong usage or input · 3 a device, engine or file fault.
    """
    if ctx.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        click.echo(ctx.get_help())
        ctx.exit(2)
    click.echo(START)
    choices = {"1": "demo", "2": "init", "3": "doctor", "4": "help"}
    chosen = click.prompt("Choose 1–4, or press Enter to leave", default="", show_default=False).strip()
    if verb := choices.get(chosen, chosen if chosen in choices.values() else ""):
        group(["--help"] if verb == "help" else [verb], prog_name="harness")


def main() -> None:
    """Entry point: what fails is a message and an exit status; only a fault of the harness itself is a traceback."""
    open_streams()
    try:
        with orderly_end():
            status = group.main(prog_name="harness", standalone_mode=False)
    except SystemExit as leaving:
        status = leaving.code
    except Exception as error:  # noqa: BLE001 (the net: what nothing else has caught)
        status = _report(error)
    try:
        fault = output_fault()
    except (HarnessError, BrokenPipeError):  # raised before, to end the command
        fault = None
    sys.exit(_report(fault) if fault and not status else status)


def _report(error: Exception) -> int:
    """Writes what a failure says to standard error. The exit status: never 1, which means that a limit failed."""
    if isinstance(error, click.Abort):  # Ctrl-C, or the end of the input, at a question
        _complain("harness: interrupted")
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        text = io.StringIO()
        error.show(text)
        _complain(text.getvalue().rstrip("\n"))
        return 2
    ours = error if isinstance(error, HarnessError) else _fault_of_host(error)
    if ours is None:
        import traceback

        traceback.print_exception(error)
        ours = HarnessError(f"{type(error).__name__}: a fault of the harness", remedy="Please report it")
    _complain(f"harness: {ours}")
    return ours.exit_code


def _complain(text: str) -> None:
    from harness.base.foreign import plain_text  # here, since few need it

    click.echo("\n".join(plain_text(line, LONGEST_TOLD) for line in text.split("\n")), err=True)


def _fault_of_host(error: BaseException) -> HarnessError | None:
    """What the surroundings lack, where that is why something failed; None for a fault of the harness."""
    if isinstance(error, MemoryError):
        return HarnessError("there is not enough memory")
    if not isinstance(error, OSError):  # an import, SQLite: a descriptor was missing below
        cause = error.__cause__ or error.__context__
        return None if cause is None else _fault_of_host(cause)
    what = error.strerror or str(error)
    place = Place(str(error.filename)) if error.filename else None
    match error.errno:
        case errno.EMFILE | errno.ENFILE:
            return HarnessError(what, remedy="Raise the limit of open files: ulimit -n 1024")
        case errno.ENAMETOOLONG | errno.ELOOP:
            return InputError(what, place=place, remedy="Name another file")
        case errno.ENOENT if not _has_folder():
            return HarnessError("the working folder was removed", remedy="Change to another")
    return HarnessError(what, place=place)


def _has_folder() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:
        return False
