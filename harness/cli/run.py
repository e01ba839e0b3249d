"""`harness run`, `resume` and `attach`: run a scenario on a bench, and watch a session until it ends or you leave."""

from __future__ import annotations

import os
import queue
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import SHIPPED_FILE, Command, json_option, options_as
from harness.cli.sessions import SESSIONS, figures_of, session_folder, user_name
from harness.cli.streams import standard_output
from harness.cli.verbs import INTERRUPTED
from harness.model.bench import OperatorPresence
from harness.model.errors import EngineError, HarnessError, InputError, Place, UnmetNeed
from harness.model.feed import Goodbye, Hello, Message
from harness.model.record import EndReason

if TYPE_CHECKING:
    from harness.cli.plain import JsonPrinter, PlainPrinter
    from harness.session.engine.launch import EnginePlace


class RunView(Enum):
    """How a session is shown."""

    DASHBOARD = "dashboard"
    PLAIN = "plain"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class WatchAsked:
    """How a run is to be watched; report: a JUnit report to write when it is over; no_watch: not at all."""

    plain: bool
    as_json: bool
    report: Path | None = None
    no_watch: bool = False

    def __post_init__(self) -> None:
        if self.plain and self.as_json:
            raise InputError("--plain and --json exclude each other", remedy="Choose one")
        if self.report is not None and self.no_watch:
            raise InputError(
                "--junit is written when the run ends, and --no-watch does not wait for that",
                remedy="Write it afterwards: harness export SESSION --junit FILE",
            )

    @property
    def view(self) -> RunView:
        """What was asked for, else the dashboard where there is a terminal for it."""
        if self.as_json:
            return RunView.JSON
        terminal = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        return RunView.PLAIN if self.plain or not terminal else RunView.DASHBOARD


VIEW = (
    click.option("--plain", is_flag=True, help="Print one line per event (default when there is no terminal)."),
    json_option("as_json", "Every message as a line of JSON."),
)
JUNIT = click.option(
    "--junit",
    "report",
    type=click.Path(path_type=Path),
    help="Write a JUnit report of the whole session to this file, whatever the exit status.",
)
NO_WATCH = click.option("--no-watch", is_flag=True, help="Start the engine, print the session's folder, and return.")
sessions_option = click.option(
    "--sessions",
    type=click.Path(path_type=Path),
    default=SESSIONS,
    show_default=True,
    help="Where session folders are made.",
)


def watch(place: EnginePlace, view: RunView, *, history: bool) -> int:
    """Shows a running session until it ends or the person leaves; the exit status. EngineError.

    Without a dashboard, a session whose operator is present has its questions answered on standard input.
    history: print earlier rows too.
    """
    if place.alive and not Path(place.socket).exists():
        raise EngineError(
            f"the engine (pid {place.pid}) runs on, but its socket {place.socket} was removed",
            remedy=f"Look at the run: harness show {place.folder}. "
            f"Stop it in order: kill {place.pid}, then harness resume {place.folder}",
        )
    try:
        return _show(place, view, history=history)
    except KeyboardInterrupt as interrupt:
        # Before the view was there to take it; a session whose name nobody has read yet is named here.
        if view is RunView.DASHBOARD:
            raise EngineError(
                "left; the run goes on", remedy=f"Come back: harness attach {place.folder}"
            ) from interrupt
        if place.alive:
            os.kill(place.pid, signal.SIGTERM)
        raise EngineError(
            "left; the engine was asked to stop", remedy=f"Go on with: harness resume {place.folder}"
        ) from interrupt


def _show(place: EnginePlace, view: RunView, *, history: bool) -> int:
    from harness.cli.plain import JsonPrinter, PlainPrinter, end_of_session, next_steps
    from harness.session.engine.resolved import read_resolved

    if view is RunView.DASHBOARD:
        from harness.dashboard.app import run_dashboard  # Textual is slow to import, and plain output needs none of it

        status = run_dashboard(Path(place.socket), Path(place.folder), user_name())
        progress, wake = figures_of(Path(place.folder))
        if progress.finished is not None:
            lines = [*end_of_session(progress, wake, Path(place.folder)), *next_steps(progress, Path(place.folder))]
            standard_output().write("\n".join(lines) + "\n")
        return status
    stream = standard_output()
    printer = JsonPrinter(stream) if view is RunView.JSON else PlainPrinter(stream, history=history)
    present = read_resolved(Path(place.folder)).bench.operator is OperatorPresence.PRESENT
    return _Watch(place, printer, attended=present).until_it_ends()


class _Left(Exception):
    """The person pressed Ctrl-C again."""


class _Watch:
    """Prints on this thread what the client's thread receives, and turns Ctrl-C into an orderly stop."""

    def __init__(self, place: EnginePlace, printer: PlainPrinter | JsonPrinter, *, attended: bool) -> None:
        from harness.cli.plain import OperatorPrompt
        from harness.session.engine.feed import EngineClient

        self._place = place
        self._printer = printer
        self._arrived: queue.SimpleQueue[Message | str] = queue.SimpleQueue()
        # Who is there to answer is said by the bench (see `run`): a plain client must not keep a finished run open.
        hello = Hello(client="plain", since_seq=0, attended=False)
        self._client = EngineClient(Path(place.socket), hello, self._arrived.put, self._arrived.put)
        self._prompt = OperatorPrompt(sys.stdin, user_name(), self._client.send, self._say) if attended else None
        self._stopping = False

    def until_it_ends(self) -> int:
        """The exit status that the engine gave, or 130 when the person left first; EngineError when it is gone."""
        before = signal.signal(signal.SIGINT, self._interrupted)
        try:
            return self._print_all()
        except _Left:
            return INTERRUPTED
        finally:
            signal.signal(signal.SIGINT, before)
            self._client.close()

    def _print_all(self) -> int:
        status: int | None = None
        while True:
            arrived = self._arrived.get()
            if isinstance(arrived, str):
                if status is None:
                    raise EngineError(arrived or "the connection was closed", remedy=self._remedy())
                return status
            self._printer.take(arrived)
            if self._prompt is not None:
                self._prompt.take(arrived)
            if isinstance(arrived, Goodbye):
                status = arrived.exit_code

    def _interrupted(self, number: int, frame: object) -> None:
        """Runs wherever the program is, also while it prints: hence the bare write."""
        if self._stopping:
            os.write(2, f"harness: left; the engine may still be stopping. {self._remedy()}\n".encode())
            raise _Left
        self._stopping = True
        os.write(2, f"harness: stopping in order; Ctrl-C again to leave at once. {self._remedy()}\n".encode())
        if self._place.alive:
            os.kill(self._place.pid, signal.SIGTERM)

    def _remedy(self) -> str:
        return f"Go on with: harness resume {self._place.folder}"

    @staticmethod
    def _say(text: str) -> None:
        sys.stderr.write(f"harness: {text}\n")
        sys.stderr.flush()


def only_running() -> EnginePlace:
    """The one session that is running; EngineError when there is none, or more than one."""
    from harness.session.engine.launch import running

    found = running()
    if len(found) == 1:
        return found[0]
    if not found:
        raise EngineError("no session is running", remedy="Start one: harness run SCENARIO --bench BENCH")
    names = "\n  ".join(place.folder for place in found)
    raise EngineError(f"{len(found)} sessions are running", remedy=f"Name one of them:\n  {names}")


@contextmanager
def until_watched(report: Path | None, name: str) -> Iterator[None]:
    """What comes before the run can be watched: it leaves a report that says that it is not over, or why it never was.

    Nobody reads an old report as that of this run. InputError when none can be written.
    """
    from harness.report import junit

    if report is None:
        yield
        return
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        junit.write(report, junit.not_begun(name, "the run did not come to its end"))
    except (OSError, HarnessError) as error:
        raise InputError(
            f"the JUnit report cannot be written: {error}", place=Place(str(report)), remedy="Name another file"
        ) from error
    try:
        yield
    except HarnessError as error:
        junit.write(report, junit.not_begun(name, error))
        raise


def watch_to_report(place: EnginePlace, asked: WatchAsked, *, history: bool = False) -> int:
    """As `watch`, and writes the report of the session when that is over, whatever came of it."""
    try:
        return watch(place, asked.view, history=history)
    finally:
        _write_report(asked.report, Path(place.folder))


def _write_report(report: Path | None, folder: Path) -> None:
    """The report of the session as it stands; LogFull, LogError."""
    from harness.report import junit

    if report is not None:
        junit.write(report, junit.junit(folder))


@click.command("run", cls=Command)
@click.argument("scenario", type=SHIPPED_FILE)
@click.option("--bench", required=True, type=SHIPPED_FILE, help="The bench file.")
@sessions_option
@click.option("--seed", type=int, help="Seed of the order and of simulated parts, instead of the scenario's.")
@options_as("asked", WatchAsked, *VIEW, JUNIT, NO_WATCH)
@click.option(
    "--attended/--unattended",
    default=None,
    help="Whether an operator is there to answer; by itself: while the dashboard is open, unless the bench says.",
)
def command(
    scenario: Path, bench: Path, sessions: Path, seed: int | None, attended: bool | None, asked: WatchAsked
) -> None:
    """Run a scenario on a bench. The run is a process of its own: leaving this one does not end it.

    Exit status: 0 done (or SKIP: the bench lacks what the scenario needs) · 1 a declared limit failed ·
    2 wrong usage or input · 3 a fault, an abort or a stop.
    """
    from harness.report import junit
    from harness.session.engine.launch import start_engine
    from harness.session.engine.prepare import prepare

    presence = {None: None, True: OperatorPresence.PRESENT, False: OperatorPresence.ABSENT}[attended]
    with until_watched(asked.report, scenario.stem):
        try:
            folder = prepare(scenario, bench, sessions, seed=seed, operator=presence)
        except UnmetNeed as need:
            click.echo(f"SKIP {need}")
            if asked.report is not None:
                junit.write(asked.report, junit.not_begun(scenario.stem, need))
            return
        place = start_engine(folder)
    if asked.no_watch:
        click.echo(place.folder)
        return
    sys.exit(watch_to_report(place, asked, history=True))


@click.command("resume", cls=Command)
@click.argument("session")
@options_as("asked", WatchAsked, *VIEW, JUNIT, NO_WATCH)
@click.option("--unattended", is_flag=True, help="Ask nobody, whatever the session began with.")
def resume(session: str, unattended: bool, asked: WatchAsked) -> None:
    """Go on with a session that was stopped or cut off: every trial is finished once, none is lost.

    In the dashboard also a session that is complete: to judge its responses, and to play trials again.

    SESSION: its folder, or its name below ./sessions. One that runs is watched, as by `harness attach`.

    Exit status, over the whole session, also where nothing is left to play: 0 done · 1 a declared limit failed ·
    2 wrong usage or input, or it was aborted · 3 a fault, an abort or a stop.
    """
    from harness.session.engine.launch import start_engine
    from harness.session.log.reader import LogReader
    from harness.session.resumption import Resumption

    with until_watched(asked.report, Path(session).name):
        folder = session_folder(session)
        with LogReader(folder) as reader:
            standing = Resumption.of(reader.entries())
        if standing.ended is EndReason.ABORTED:
            raise InputError(f"{folder} was aborted", remedy="Begin a new session: harness run")
        complete = standing.ended is EndReason.COMPLETED and not standing.pending()
        if complete and asked.view is not RunView.DASHBOARD:
            click.echo(f"nothing is left to play; look at it: harness show {folder}")
            _write_report(asked.report, folder)
            sys.exit(_verdict(folder))
        place = start_engine(folder, unattended=unattended)
    if asked.no_watch:
        click.echo(place.folder)
        return
    sys.exit(watch_to_report(place, asked))


def _verdict(folder: Path) -> int:
    """What a run that ended here would have left with; says which limits failed."""
    from harness.session.engine.resolved import read_resolved
    from harness.session.figures.progress import check_limits

    progress, wake = figures_of(folder)
    scenario = read_resolved(folder).scenario
    verdicts = check_limits(scenario.limits, progress.totals, wake.snapshot(), scenario.stopping)
    failed = [one.name for one in verdicts if not one.ok]
    if failed:
        click.echo(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


@click.command("attach", cls=Command)
@click.argument("session", required=False)
@options_as("asked", WatchAsked, *VIEW, JUNIT)
def attach(session: str | None, asked: WatchAsked) -> None:
    """Watch and steer a session that is running.

    SESSION: its folder, or its name below ./sessions; not needed when only one is running.

    Exit status, over the whole session: 0 done · 1 a declared limit failed · 2 wrong usage or input · 3 a fault, an
    abort or a stop, or nothing is running.
    """
    with until_watched(asked.report, "attach" if session is None else Path(session).name):
        place = only_running() if session is None else _running(session)
    sys.exit(watch_to_report(place, asked))


def _running(session: str) -> EnginePlace:
    from harness.session.engine.launch import find

    folder = session_folder(session)
    found = find(folder)
    if found is None:
        raise EngineError(f"{folder} is not running", remedy=f"Go on with it: harness resume {folder}")
    return found
