"""The command line: verbs only. A verb's module is imported when the verb is used.

    harness ENTRY [VERB] …     `ENTRIES`: what the help lists. `VERBS`: what stands below each entry.
    harness VERB …             `FORMER`: how a verb was called before there were entries.

`Program` finds entries and former names. Below an entry that is a verb itself, `SubcommandGroup` finds the verbs, else
`OnlyVerbs`. `main` turns what fails into a message and an exit status.
"""

from __future__ import annotations

import difflib
import errno
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

from harness import __version__
from harness.base.garbage_collection import collect_rarely
from harness.base.signals import END_SIGNALS, exit_soon
from harness.cli.streams import open_streams, output_fault
from harness.model.errors import HarnessError, InputError, InputProblems, Place

VERBS: dict[str, dict[str, tuple[str, str]]] = {
    "init": {"demo": ("harness.cli.demo", "Run the demonstration in the virtual lab.")},
    "check": {
        "validate": ("harness.cli.validate", "Check scenarios, benches and device profiles without playing anything."),
        "doctor": ("harness.cli.doctor", "Check this host's ports, permissions, sound, broker, disk and clock."),
        "rehearse": (
            "harness.cli.rehearse",
            "Simulate a scenario: how long it takes, and whether its limits can be decided.",
        ),
        "sound": ("harness.cli.sound:check", "Check the sound path with chirps."),
    },
    "run": {
        "resume": ("harness.cli.run:resume", "Resume an interrupted session."),
        "attach": ("harness.cli.run:attach", "Watch and control a running session."),
        "stop": ("harness.cli.run:stop", "Stop a running session so that it can be resumed."),
    },
    "report": {
        "page": ("harness.cli.report", "Write a page about sessions or evaluations, or summarise a log."),
        "show": ("harness.cli.show", "Print the trials and results of a session."),
        "compare": (
            "harness.cli.compare",
            "Compare sessions (builds, boards, settings) with a baseline, or two evaluations of files.",
        ),
        "trend": ("harness.cli.trend", "Track measures over nightly sessions; find when they change."),
        "export": ("harness.cli.export", "Write a session's results as a wake-evaluation log or as JUnit."),
        "categories": ("harness.cli.categories", "Count the categories of first responses; compare two devices."),
        "agreement": ("harness.cli.agreement", "Report how well raters agree, and their consensus."),
        "effects": ("harness.cli.effects", "List effects that nobody has observed yet; record observations."),
        "memory": ("harness.cli.memory", "Estimate how long devices remember a dialogue, from memory trials."),
    },
    "rate": {
        "invite": ("harness.cli.invite", "Invite raters or annotators to their site."),
        "judgments": (
            "harness.cli.judgments",
            "Export judgments to CSV, Parquet or JSON lines; import judgments made elsewhere.",
        ),
    },
    "evaluate": {
        "mix": ("harness.cli.mix", "Mix phrases into hours of background sound, with labels."),
        "merge": ("harness.cli.merge", "Merge the shards of an evaluation."),
        "engines": ("harness.cli.engines", "List engines for offline evaluation, their models, settings and licences."),
        "offline": (
            "harness.cli.offline",
            "Run an engine on a session's stimuli, to see how much accuracy the acoustic path costs.",
        ),
        "plan": ("harness.cli.plan", "Calculate how many hours and utterances a claim needs."),
    },
    "score": {"snor": ("harness.cli.snor", "Convert .sro transcriptions to Lexical SNOR, Expanded SNOR or .snr.")},
    "understand": {
        "annotate": ("harness.cli.annotate", "Annotate utterances with intents: proposals, review, agreement."),
        "score": (
            "harness.cli.understanding.score:score",
            "Score predictions, or the devices of a session, against gold.",
        ),
        "merge": ("harness.cli.understanding.score:merge", "Add up the counts of scored shards."),
        "distribution": ("harness.cli.understanding.corpora:distribution", "Count the labels of a corpus by split."),
        "generate": (
            "harness.cli.understanding.corpora:generate",
            "Generate an annotated corpus from a grammar and a seed.",
        ),
        "split": (
            "harness.cli.understanding.corpora:split_corpus",
            "Split a corpus into parts for training, dev and test.",
        ),
        "speak": ("harness.cli.understanding.corpora:speak", "Speak the texts of a corpus with synthetic voices."),
        "train": (
            "harness.cli.understanding.models:train",
            "Train an understander on a folder of annotated utterances.",
        ),
        "predict": ("harness.cli.understanding.models:predict", "Predict intents and slots from texts or sounds."),
        "bench": ("harness.cli.understanding.models:bench", "Train and score several understanders on a corpus."),
        "cascade": (
            "harness.cli.understanding.cascade",
            "Measure what recognition errors cost; compare systems that start from sound.",
        ),
    },
    "admin": {
        "lab": ("harness.cli.lab", "Start, stop and show the virtual lab."),
        "voices": ("harness.cli.voices", "List the installed voices, or listen to one."),
        "devices": ("harness.cli.devices", "List device profiles, test them, monitor a device."),
        "sound": ("harness.cli.sound", "List sound devices, check the sound path with a chirp, record talkers."),
        "calibrate": ("harness.cli.calibrate", "Measure a loudspeaker's level in the room with a sound level meter."),
        "pack": ("harness.cli.archive:pack", "Pack a session into one file that can be checked."),
        "unpack": ("harness.cli.archive:unpack", "Unpack a packed session into a new folder, and check it."),
        "redact": ("harness.cli.purge:redact", "Silence parts of a clip and record the reason; results do not change."),
        "purge": ("harness.cli.purge", "Delete the clips of sessions to free disk space; results do not change."),
        "schema": ("harness.cli.schema", "Print or write the JSON Schemas for editors."),
    },
}
"""Entry → the verbs below it, each with its module and what it does."""
ENTRIES = {
    "init": ("harness.cli.init", "Write a first scenario, bench and board profile; run the demo."),
    "check": ("harness.cli.validate", "Check files, this computer and the sound path before a run."),
    "run": ("harness.cli.run", "Run a scenario on a bench; resume or watch a session."),
    "report": ("harness.cli.report", "Write a page about sessions; show, compare, trend, export."),
    "rate": ("harness.cli.rate", "Judge first responses, invite raters, export and import judgments."),
    "evaluate": ("harness.cli.evaluate", "Run a wake engine or a recogniser over lists of files."),
    "score": ("harness.cli.score", "Score transcripts against references, word by word."),
    "understand": ("", "Score intents and slots, train models, annotate utterances."),
    "admin": ("", "Prepare devices, voices and the lab; pack or purge sessions."),
}
"""The commands that the help lists: the module of the verb itself, "" without one, and what the entry is for."""
FORMER = {
    **{
        name: f"{entry} {name}"
        for entry, verbs in VERBS.items()
        if entry != "understand"
        for name in verbs
        if name != "page"
    },
    "understanding": "understand",
    "annotate": "understand annotate",
}
"""Names of verbs before there were entries → their names now. They work; no list has them."""
START = """\
voice-harness measures how well a voice device hears and answers.

  1. init demo      a three-minute tour; needs no hardware
  2. init           write a scenario and a bench for your devices
  3. check doctor   check this computer
  4. help           find the command that answers your question
"""
MAX_ERROR_LINE_CHARS = 2000
"""Limit on a line of an error: paths and messages of libraries fit."""
MAX_SAME_PROBLEMS = 5
"""Up to this many problems of a file with the same words are printed; the others are counted."""
INTERRUPTED = 130  # The exit status that shells report after Ctrl-C.


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Turns SIGTERM and SIGHUP into an orderly exit, so that temporary files are removed.

    The exit status is the one that shells report for a program ended by that signal. A signal that was ignored, as
    under `nohup`, stays ignored.
    """
    handled_signals: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():  # no other thread may set handlers
        handled_signals = [signum for signum in END_SIGNALS if signal.getsignal(signum) is signal.SIG_DFL]
    for signum in handled_signals:
        signal.signal(signum, _exit_on_signal)
    try:
        yield
    finally:
        for signum in handled_signals:
            signal.signal(signum, signal.SIG_DFL)


def _exit_on_signal(number: int, frame: FrameType | None) -> NoReturn:
    for signum in END_SIGNALS:  # a second signal must not interrupt the clean-up
        signal.signal(signum, signal.SIG_IGN)
    sys.exit(exit_soon(number))


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show which command answers which question. With COMMAND: show its help, like `harness COMMAND --help`."""
    if not words:
        from harness.cli.questions import answers

        click.echo(answers(ctx.make_formatter()), nl=False)
        return
    assert ctx.parent is not None
    parent, remaining_words = ctx.parent, list(words)
    while remaining_words:
        if not isinstance(parent.command, click.Group):
            problem = f"{parent.command_path!r} has no command {remaining_words[0]!r}"
            raise click.UsageError(f"{problem}. See harness help", ctx)
        try:
            name, command, remaining_words = parent.command.resolve_command(parent, remaining_words)
        except click.UsageError as error:
            error.ctx = ctx
            raise
        assert command is not None
        parent = click.Context(command, info_name=name, parent=parent)
    click.echo(parent.get_help())


class LazyGroup(click.Group):
    """Commands by name, imported on use. An unknown name gets the nearest known one as a suggestion.

    verbs: name → (module, line in the list). The module defines `command`; `module:name` names another object.
    """

    former: Mapping[str, str] = {}
    """Other names under which commands are found → their names now."""
    below: Mapping[str, str] = {}
    """Names of commands further down, for suggestions → what to write."""

    def __init__(self, verbs: Mapping[str, tuple[str, str]], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._verbs = verbs

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
        commands = {**self.former, **{name: name for name in self._verbs}}
        if args and args[0] not in commands and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {args[0]!r}. {self._hint(ctx, args[0], commands)}")
        return super().resolve_command(ctx, args)

    def _hint(self, ctx: click.Context, word: str, commands: Mapping[str, str]) -> str:
        """Which command the word may stand for: by its meaning, otherwise by its spelling."""
        from harness.cli.questions import SYNONYMS  # here, since few need it

        synonyms = {name: f"harness {command}" for name, command in SYNONYMS.items()}
        suggestion = synonyms.get(word.lower(), "")
        own_verb = next((name for name in suggestion.split() if name in self._verbs), None)
        # Below an entry, a synonym of another entry's command does not help.
        if not suggestion.startswith(f"{ctx.command_path} "):
            suggestion = f"{ctx.command_path} {own_verb}" if own_verb else ""
        if suggestion:
            return f"Did you mean {suggestion!r}?"
        names = {**self.below, **commands}
        if self.below:  # the program, below which is everything
            names = synonyms | names
        similar = difflib.get_close_matches(word, names, n=1)
        return f"Did you mean {names[similar[0]]!r}?" if similar else f"See {ctx.command_path} --help"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._verbs.items()])


class OnlyVerbs(LazyGroup):
    """Commands below a word that is not a verb itself. An error says where an option belongs that stands before one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            names = {*self._verbs, *self.former}
            position = next((index for index, word in enumerate(words) if word in names), None)
            if position is None:
                error.ctx = ctx
                raise
            has_verb = len(words) > position + 1 and words[position + 1] in VERBS.get(words[position], {})
            hint = command_first(ctx, words, position, 2 if has_verb else 1)
            raise click.UsageError(f"there is no option {error.option_name} here. {hint}", ctx) from None


def command_first(ctx: click.Context, words: Sequence[str], position: int, count: int = 1) -> str:
    """A hint for a command of `count` words that stands after an option."""
    import shlex  # here, since few need it

    from harness.base.foreign import plain_text

    command = words[position : position + count]
    line = shlex.join((*ctx.command_path.split(), *command, *words[:position], *words[position + count :]))
    return f"The command {' '.join(command)!r} comes before its options: {plain_text(line, 200)}"


class SubcommandGroup(LazyGroup):
    """The verbs below an entry that is a verb too. An error says how to name a file that a verb has the name of."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except (click.UsageError, InputError) as error:
            name = ctx.invoked_subcommand or ""
            if not os.path.lexists(name):
                raise
            hint = f"{name!r} was read as a command. To use the file with this name, write ./{name}"
            raise add_hint(error, hint) from None


def add_hint(error: click.UsageError | InputError, hint: str) -> click.UsageError | InputError:
    """The error, followed by a hint."""
    if isinstance(error, click.UsageError):
        from harness.cli.usage import reworded_error  # here, since few need it

        return reworded_error(error, hint)
    error.remedy = f"{error.remedy}. {hint}" if error.remedy else hint
    return error


@contextmanager
def _reword_usage_errors() -> Iterator[None]:
    """Words click's usage errors as ours. Where the help is the answer, it stays."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        from harness.cli.usage import reworded_error  # here, since few need it

        raise reworded_error(error) from None


class Program(OnlyVerbs):
    """The entries. Every verb is also found by its former name.

    The first word names an entry, `help`, or a former name. If it is an entry with a verb of its own, the second word
    decides between that verb and one below it.
    """

    former: Mapping[str, str] = FORMER | {"help": "help"}
    below: Mapping[str, str] = {name: f"{entry} {name}" for entry, verbs in VERBS.items() for name in verbs}

    def make_context(self, *args: Any, **attributes: Any) -> click.Context:
        with _reword_usage_errors():
            return super().make_context(*args, **attributes)

    def invoke(self, ctx: click.Context) -> Any:
        with _reword_usage_errors():
            return super().invoke(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "help":
            return help_
        entry, _, name = FORMER.get(cmd_name, cmd_name).partition(" ")
        if entry not in ENTRIES:
            return None
        if name:
            return LazyGroup(VERBS[entry]).get_command(ctx, name)
        module, line = ENTRIES[entry]
        if not module:
            return OnlyVerbs(VERBS[entry], name=entry, help=line)
        from harness.cli.entry import EntryVerb  # here, since it imports what the list of commands does not need

        verb = super().get_command(ctx, entry)
        assert verb is not None
        return EntryVerb(verb, VERBS[entry])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if len(args) > 1 and args[1] in VERBS.get(args[0], {}) and ENTRIES[args[0]][0]:
            return args[0], SubcommandGroup(VERBS[args[0]], name=args[0]), args[1:]
        return super().resolve_command(ctx, args)


@click.command(
    cls=Program, verbs=ENTRIES, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "-V", "--version", prog_name="voice-harness")
@click.pass_context
def group(ctx: click.Context) -> None:
    """A live test harness for voice devices. `harness help` lists which command answers which question.

    Exit status: 0 done · 1 a declared limit failed · 2 wrong usage or input · 3 a device, engine or file fault.
    """
    if ctx.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        click.echo(ctx.get_help())
        ctx.exit(2)
    click.echo(START)
    choices = {"1": "init demo", "2": "init", "3": "check doctor", "4": "help"}
    chosen = click.prompt("Choose 1–4, or press Enter to leave", default="", show_default=False).strip()
    command = choices.get(chosen, chosen)
    if command in {*choices.values(), "demo", "doctor"}:
        group(command.split(), prog_name="harness")


def main() -> None:
    """Entry point. A failure gives a message and an exit status; only a fault of the harness also gives a traceback."""
    collect_rarely()
    open_streams()
    try:
        with exit_on_signals():
            status = group.main(prog_name="harness", standalone_mode=False)
    except SystemExit as exit_request:
        status = exit_request.code
    except Exception as error:  # noqa: BLE001 (the net: what nothing else has caught)
        status = _report_failure(error)
    try:
        fault = output_fault()
    except (HarnessError, BrokenPipeError):  # raised before, to end the command
        fault = None
    if fault and not status:
        status = _report_failure(fault)
    gc.freeze()  # otherwise Python searches all objects for cycles at its end, which takes as long as importing NumPy
    sys.exit(status)


def _report_failure(error: Exception) -> int:
    """Writes an error to standard error. Returns the exit status, which is never 1: that means that a limit failed."""
    if isinstance(error, click.Abort):  # Ctrl-C, or the end of the input, at a question
        _print_error("harness: interrupted")
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        text = io.StringIO()
        error.show(text)
        _print_error(text.getvalue().rstrip("\n"))
        return 2
    harness_error = error if isinstance(error, HarnessError) else _fault_of_host(error)
    if harness_error is None:
        import traceback

        traceback.print_exception(error)
        harness_error = HarnessError(f"{type(error).__name__}: a bug in the harness", remedy="Please report this bug")
    _print_error(f"harness: {_error_text(harness_error)}")
    return harness_error.exit_code


def _error_text(error: HarnessError) -> str:
    """The text of an error, with a line for each of several problems, see MAX_SAME_PROBLEMS."""
    if not isinstance(error, InputProblems):
        return str(error)
    lines: list[str] = []
    counts: dict[tuple[str, str], int] = {}
    for problem in error.problems:
        file = problem.place.file if problem.place else ""
        count = counts.get((file, problem.what), 0) + 1
        counts[file, problem.what] = count
        if count <= MAX_SAME_PROBLEMS:
            lines.append(str(problem))
    for (file, problem_text), count in counts.items():
        if count > MAX_SAME_PROBLEMS:
            prefix = f"{file}: " if file else ""
            lines.append(f"{prefix}this problem occurs in {count - MAX_SAME_PROBLEMS} more places: {problem_text}")
    return "\n".join(lines)


def _print_error(text: str) -> None:
    from harness.base.foreign import plain_text  # here, since few need it

    click.echo("\n".join(plain_text(line, MAX_ERROR_LINE_CHARS) for line in text.split("\n")), err=True)


def _fault_of_host(error: BaseException) -> HarnessError | None:
    """The error to show if the host caused the failure, such as a full disk; None if the harness itself is at fault."""
    if isinstance(error, MemoryError):
        return HarnessError("there is not enough memory")
    if not isinstance(error, OSError):  # such as an import or SQLite, for which no file could be opened
        cause = error.__cause__ or error.__context__
        return None if cause is None else _fault_of_host(cause)
    problem = error.strerror or str(error)
    place = Place(str(error.filename)) if error.filename else None
    match error.errno:
        case errno.EMFILE | errno.ENFILE:
            return HarnessError(problem, remedy="Raise the limit on open files: ulimit -n 1024")
        case errno.ENAMETOOLONG | errno.ELOOP:
            return InputError(problem, place=place, remedy="Choose another file")
        case errno.ENOENT if not _has_working_folder():
            return HarnessError("the working folder was removed", remedy="Change to another folder")
    return HarnessError(problem, place=place)


def _has_working_folder() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:
        return False
