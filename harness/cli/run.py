"""`harness run`, `resume`, `attach` and `stop`: run a scenario, and watch a session until it ends or you leave."""

from __future__ import annotations

import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text, shell_word
from harness.base.places import SessionFolder, lab_state
from harness.cli import INTERRUPTED
from harness.cli.options import (
    SHIPPED_FILE,
    Site,
    argument,
    choose_one,
    flag,
    json_option,
    option,
    option_group,
    seed_option,
    site_options,
    verb,
)
from harness.cli.sessions import SESSIONS, figures_of, only_unfinished, session_folder, user_name
from harness.cli.streams import standard_output
from harness.model.errors import EngineError, HarnessError, InputError, LabError, Place, UnmetNeed
from harness.model.frozen import frozen
from harness.model.numbers import seconds

if TYPE_CHECKING:
    from harness.cli.plain import JsonPrinter, PlainPrinter
    from harness.model.bench import Bench
    from harness.model.feed import Message
    from harness.session.engine.launch import EnginePlace


class RunView(Enum):
    """How a session is shown."""

    DASHBOARD = "dashboard"
    PLAIN = "plain"
    JSON = "json"


@frozen
class WatchOptions:
    """How to watch a run. report: the JUnit report to write at its end. no_watch: return as soon as it has started."""

    plain: bool
    as_json: bool
    report: Path | None = None
    no_watch: bool = False

    def __post_init__(self) -> None:
        choose_one(plain=self.plain, json=self.as_json)
        choose_one(plain=self.plain, no_watch=self.no_watch)
        choose_one(json=self.as_json, no_watch=self.no_watch)
        if self.report is not None and self.no_watch:
            raise InputError(
                "--junit is written when the run ends, and --no-watch does not wait for that",
                remedy="Write the report afterwards: harness report export SESSION --junit FILE",
            )

    @property
    def view(self) -> RunView:
        """The view that the options name, else the dashboard if there is a terminal."""
        if self.as_json:
            return RunView.JSON
        terminal = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        return RunView.PLAIN if self.plain or not terminal else RunView.DASHBOARD


VIEW = {
    "plain": flag("Print one line per event (default when there is no terminal)."),
    "as_json": json_option("Print each message as a line of JSON."),
}
YES = flag("Start the virtual lab without asking if the bench uses it and it is down.")
JUNIT = {
    "report": option("Write a JUnit report of the whole session to this file, whatever the exit status.", "--junit")
}
NO_WATCH = {"no_watch": flag("Start the engine, print the session's folder and return.")}
MAX_NOTE_CHARS = 600
STOPS_WITHIN_S = 60
sessions_option = option("Folder in which session folders are created.", "--sessions", default=SESSIONS)


def watch(place: EnginePlace, view: RunView, *, history: bool) -> int:
    """Shows a running session until it ends or the user leaves. Returns the exit status.

    Without a dashboard, an operator who is present answers questions on standard input. EngineError if the engine
    cannot be reached or is lost, and after Ctrl-C before the view could handle it.
    history: print earlier rows too.
    """
    name = shell_word(place.folder)
    if place.alive and not Path(place.socket).exists():
        raise EngineError(
            f"the engine (pid {place.pid}) is still running, but its socket {place.socket} was removed",
            remedy=f"See the results so far: harness report show {name}. "
            f"To reconnect, stop it (harness run stop {name}), then: harness run resume {name}",
        )
    try:
        return _show(place, view, history=history)
    except KeyboardInterrupt as interrupt:
        # Ctrl-C before the view could handle it. The user may not have seen the session's name yet.
        if view is RunView.DASHBOARD:
            raise EngineError(
                "you left; the run continues", remedy=f"Reattach: harness run attach {name}"
            ) from interrupt
        if place.alive:
            os.kill(place.pid, signal.SIGTERM)
        raise EngineError(
            "you left; the engine is stopping", remedy=f"Resume: harness run resume {name}"
        ) from interrupt


def _show(place: EnginePlace, view: RunView, *, history: bool) -> int:
    """Opens the dashboard, then prints the results; or prints messages until the session ends. The exit status."""
    from harness.cli.plain import JsonPrinter, PlainPrinter
    from harness.model.bench import OperatorPresence
    from harness.session.engine.assemble import read_resolved
    from harness.session.summary import end_of_session, next_steps

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
    has_operator = read_resolved(Path(place.folder)).bench.operator is OperatorPresence.PRESENT
    return _Watch(place, printer, attended=has_operator).print_until_end()


class _InterruptedAgain(Exception):
    """The user pressed Ctrl-C again."""


class _Watch:
    """Prints on this thread what the client's thread receives, and turns Ctrl-C into an orderly stop."""

    def __init__(self, place: EnginePlace, printer: PlainPrinter | JsonPrinter, *, attended: bool) -> None:
        from harness.cli.plain import OperatorPrompt
        from harness.model.feed import Hello
        from harness.session.engine.feed import EngineClient

        self._place = place
        self._printer = printer
        self._arrivals: queue.SimpleQueue[Message | str] = queue.SimpleQueue()
        # The bench says whether an operator is present (see `run`). A plain client must not keep a finished run open.
        hello = Hello(client="plain", since_seq=0, attended=False)
        self._client = EngineClient(Path(place.socket), hello, self._arrivals.put, self._arrivals.put)
        self._prompt = OperatorPrompt(sys.stdin, user_name(), self._client.send, self._print_hint) if attended else None
        self._is_stopping = False

    def print_until_end(self) -> int:
        """Prints what arrives, and closes the connection at the end. Returns the engine's exit status.

        It is INTERRUPTED if the user left first. EngineError if the engine is lost. Only for the main thread, which
        handles Ctrl-C.
        """
        previous_handler = signal.signal(signal.SIGINT, self._handle_interrupt)
        try:
            return self._print_all()
        except _InterruptedAgain:
            return INTERRUPTED
        finally:
            signal.signal(signal.SIGINT, previous_handler)
            self._client.close()

    def _print_all(self) -> int:
        """Prints messages until the connection ends. The exit status is that of Goodbye; EngineError without one."""
        from harness.model.feed import Goodbye
        from harness.session.engine.feed import RESUME

        status: int | None = None
        while True:
            arrival = self._arrivals.get()
            if isinstance(arrival, str):  # why the connection ended, which is normal after Goodbye
                if status is None:
                    raise EngineError(
                        arrival.removesuffix(RESUME) or "the connection was closed", remedy=self._remedy()
                    )
                return status
            self._printer.print_message(arrival)
            if self._prompt is not None:
                self._prompt.note_message(arrival)
            if isinstance(arrival, Goodbye):
                status = arrival.exit_code

    def _handle_interrupt(self, number: int, frame: object) -> None:
        """Asks the engine to stop at the first Ctrl-C, and leaves at the second.

        A signal handler: it may interrupt a print, so it writes to the descriptor directly.
        """
        text = "you left; the engine may still be stopping"
        if not self._is_stopping:
            text = "stopping the run; press Ctrl-C again to leave immediately"
        with suppress(OSError):  # a terminal that is gone
            os.write(2, f"harness: {text}. {self._remedy()}\n".encode())
        if self._is_stopping:
            raise _InterruptedAgain
        self._is_stopping = True
        if self._place.alive:
            os.kill(self._place.pid, signal.SIGTERM)

    def _remedy(self) -> str:
        return f"Resume: harness run resume {shell_word(self._place.folder)}"

    @staticmethod
    def _print_hint(text: str) -> None:
        sys.stderr.write(f"harness: {text}\n")
        sys.stderr.flush()


def only_running() -> EnginePlace:
    """The one session that is running; EngineError when there is none, or more than one."""
    from harness.session.engine.launch import list_running

    places = list_running()
    if len(places) == 1:
        return places[0]
    if not places:
        raise EngineError("no session is running", remedy="Start a session: harness run SCENARIO --bench BENCH")
    names = "\n  ".join(place.folder for place in places)
    raise EngineError(f"{len(places)} sessions are running", remedy=f"Choose a session:\n  {names}")


@contextmanager
def _report_start(report: Path | None, name: str) -> Iterator[None]:
    """Writes a report that the run did not finish, and replaces it by the reason if the block cannot start the run.

    So an old report is never taken for this run's. InputError when the report cannot be written. report: None for no
    report.
    """
    if report is None:
        yield
        return
    from harness.report import junit

    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        junit.write(report, junit.not_begun(name, "the run did not finish"))
    except (OSError, HarnessError) as error:
        raise InputError(
            f"the JUnit report cannot be written: {error}", place=Place(str(report)), remedy="Choose another file"
        ) from error
    try:
        yield
    except HarnessError as error:
        junit.write(report, junit.not_begun(name, error))
        raise


def _watch_and_report(place: EnginePlace, options: WatchOptions, *, history: bool = False) -> int:
    """Like `watch`, and writes the session's report afterwards, also after an error."""
    try:
        return watch(place, options.view, history=history)
    finally:
        _write_report(options.report, Path(place.folder))


def _write_report(report: Path | None, folder: Path) -> None:
    """Writes the report of the session, from its rows so far; nothing if `report` is None. LogFull, LogError."""
    if report is not None:
        from harness.report import junit

        junit.write(report, junit.junit(folder))


def demand_sound(bench: Bench, *, start: bool) -> None:
    """Raises when the bench's sound server or one of its sound devices is missing; LabError, SoundError.

    start: starts the virtual lab without asking if it is down. Otherwise a person at a terminal decides.
    """
    from harness.sound.sound_devices import find_part, sound_devices, sound_parts

    if bench.sound_server == "virtual_lab":
        _demand_lab(bench, start=start)
    parts = sound_parts(bench)
    devices = sound_devices(bench.sound_server) if parts else ()
    for part in parts:
        find_part(devices, part, bench)


def _demand_lab(bench: Bench, *, start: bool) -> None:
    """Starts the virtual lab if it is down. start: without asking. LabError if the user refuses or cannot be asked."""
    try:
        lab_state()
    except LabError as error:
        if not start and sys.stdin.isatty() and sys.stderr.isatty():
            start = click.confirm("The virtual lab is down. Start it now?", default=True, err=True)
        if not start:
            raise LabError(
                error.what,
                place=Place(bench.path),
                remedy="Start the lab: harness admin lab up. Or add --yes to start the lab with this command",
            ) from error
        from harness.lab.lab import Lab  # here, since it takes long to import
        from harness.lab.sound_server import ROOMS

        click.echo("Starting the virtual lab. To stop it later: harness admin lab down", err=True)
        Lab().up(room=bench.room if bench.room in ROOMS else None)


def print_undecidable(folder: Path, *, has_dashboard: bool) -> None:
    """Prints, before anything plays, which trials nobody will answer and which limits cannot hold.

    has_dashboard: whether the dashboard will open. It makes its user the operator, unless the bench says whether there
    is one. Trials that wait for an operator are not named then.
    """
    from harness.model.bench import OperatorPresence
    from harness.session.engine.assemble import read_resolved
    from harness.session.plan import plan
    from harness.session.plan_notes import evidence_notes, percentile_notes

    resolved = read_resolved(folder)
    scenario, bench = resolved.scenario, resolved.bench
    trials = plan(scenario, bench)
    notes = [*percentile_notes(trials, scenario.limits)]
    if not (has_dashboard and bench.operator is OperatorPresence.AUTO):
        notes = [*evidence_notes(trials, scenario.limits, bench.operator), *notes]
    for note in notes:
        click.echo(plain_text(f"note: {note}", MAX_NOTE_CHARS), err=True)


def _demand_one_view(site: Site, options: WatchOptions) -> None:
    """InputError for options of the site without --web, and for --web together with another view."""
    site.demand_web("live")
    if site.web and (options.plain or options.as_json or options.report is not None or options.no_watch):
        raise InputError(
            "--web cannot be combined with --plain, --json, --junit or --no-watch",
            remedy="Watch in a second terminal: harness run attach --plain",
        )


def _serve(begin: Callable[[], Path | None], site: Site) -> int:
    """Serves the live site until Ctrl-C, and returns the exit status. begin: see `serve_live`."""
    from harness.web.server import WebOptions, serve_live

    return serve_live(begin, WebOptions(**site.web_options))


@verb("run", sections={"Output": "as_json no_watch"})
def command(
    *,
    scenario: Path = argument(type=SHIPPED_FILE),
    bench: Path = option("The bench file.", required=True, type=SHIPPED_FILE),
    sessions: Path = sessions_option,
    seed: int | None = seed_option(
        "Random seed for noise, simulated devices, and orders other than `listed`.", show_default="the scenario's"
    ),
    options: WatchOptions = option_group(**VIEW, **JUNIT, **NO_WATCH),
    only_prepare: bool = flag(
        "Plan the session, print its folder and return. `harness run resume` plays it.", "--prepare"
    ),
    attended: bool | None = option(
        "Whether an operator answers questions.",
        "--attended/--unattended",
        show_default="as the bench says, else while the dashboard is open",
        default=None,
    ),
    yes: bool = YES,
    site: Site = site_options("live"),
) -> None:
    """Run a scenario on a bench. The engine runs as a separate process and continues when you leave.

    Prints SKIP, with status 0, when the bench lacks what the scenario needs.

    With --web, others watch in a browser. Ctrl-C ends the site, with status 0, and the run continues.

    Exit status: 0 done · 1 a limit failed or undecided · 2 wrong usage or input · 3 a fault, abort or stop.
    """
    from harness.model.bench import OperatorPresence
    from harness.session.engine.launch import start_engine
    from harness.session.engine.prepare import prepare

    presence = None
    if attended is not None:
        presence = OperatorPresence.PRESENT if attended else OperatorPresence.ABSENT
    _demand_one_view(site, options)
    choose_one(prepare=only_prepare, web=site.web, no_watch=options.no_watch)
    choose_one(prepare=only_prepare, junit=options.report is not None)

    def demand(bench: Bench) -> None:
        if not only_prepare:
            demand_sound(bench, start=yes)

    def start(*, watched: bool) -> EnginePlace | None:
        """Plans the session and starts its engine; only prints its folder with --prepare."""
        folder = prepare(scenario, bench, sessions, seed=seed, operator=presence, demand=demand)
        if only_prepare:
            click.echo(folder.resolve())
            return None
        print_undecidable(folder, has_dashboard=watched and options.view is RunView.DASHBOARD)
        return start_engine(folder, watched=watched)

    def start_for_site() -> None:
        if (place := start(watched=False)) is not None:
            click.echo(place.folder)

    try:
        if site.web:
            sys.exit(_serve(start_for_site, site))
        with _report_start(options.report, scenario.stem):
            place = start(watched=not options.no_watch)
    except UnmetNeed as need:
        click.echo(f"SKIP {need}")
        return
    if place is None:
        return
    if options.no_watch:
        click.echo(place.folder)
        return
    sys.exit(_watch_and_report(place, options, history=True))


@verb("resume", sections={"Output": "plain as_json report no_watch"})
def resume(
    *,
    session: str | None = argument(required=False),
    options: WatchOptions = option_group(**VIEW, **JUNIT, **NO_WATCH),
    unattended: bool = flag("Ask no questions, even if the session started with an operator."),
    trust: bool = flag("Run the programs named in a session that was unpacked from an archive."),
    yes: bool = YES,
    site: Site = site_options("live"),
) -> None:
    """Continue a session that was stopped or interrupted. Finished trials are kept, and not played again.

    In the dashboard you can also open a complete session, to judge its responses or play trials again.

    SESSION: its folder, or its name in ./sessions; optional when only one there is unfinished. If it is running,
    you watch it, as with `harness run attach`.

    The exit status covers the whole session, even when nothing is left to play.

    With --web, others watch in a browser. Ctrl-C ends the site, with status 0, and the run continues.

    Exit status: 0 done · 1 a limit failed or undecided · 2 wrong input or aborted session · 3 a fault, abort or stop.
    """
    from harness.model.record import EndReason
    from harness.session.engine.assemble import demand_trust, read_resolved, with_typed_options
    from harness.session.engine.launch import find, start_engine
    from harness.session.log.database import restore_rescued_log
    from harness.session.resumption import read_takes

    _demand_one_view(site, options)
    with _report_start(options.report, "resume" if session is None else Path(session).name):
        folder = only_unfinished() if session is None else session_folder(session)
        if session is None:
            click.echo(f"resuming {folder}", err=True)
        if find(folder) is None and (rescued := restore_rescued_log(SessionFolder(folder))):
            click.echo(rescued, err=True)
        resumption = read_takes(folder)
        if resumption.ended is EndReason.ABORTED:
            raise InputError(f"{folder} was aborted", remedy="Start a new session: harness run")
        is_complete = resumption.ended is EndReason.COMPLETED and not resumption.pending()
        if is_complete and (site.web or options.view is not RunView.DASHBOARD):
            click.echo(f"nothing is left to play. See the results: harness report show {shell_word(folder)}")
            _write_report(options.report, folder)
            sys.exit(_print_failed_limits(folder))
        if not trust:
            demand_trust(folder)

        def start(*, watched: bool) -> EnginePlace:
            if not is_complete and find(folder) is None:
                # Ports are left to the engine: those of devices without power appear only once it has switched it on.
                demand_sound(with_typed_options(read_resolved(folder).bench), start=yes)
            return start_engine(folder, unattended=unattended, watched=watched)

        def start_for_site() -> None:
            click.echo(start(watched=False).folder)

        if site.web:
            sys.exit(_serve(start_for_site, site))
        place = start(watched=not options.no_watch)
    if options.no_watch:
        click.echo(place.folder)
        return
    sys.exit(_watch_and_report(place, options))


def _print_failed_limits(folder: Path) -> int:
    """Prints which limits a complete session fails. Returns the exit status: 1 if there is one, else 0."""
    from harness.session.figures.limits import check_limits
    from harness.session.log.reader import read_scenario
    from harness.statistics.verdict import unmet_limits_text

    progress, wake = figures_of(folder)
    scenario = read_scenario(folder)
    limits = check_limits(scenario.limits, progress.totals, wake.snapshot() if wake else None, scenario.stopping)
    if failed := unmet_limits_text(limits):
        click.echo(failed)
    return 1 if failed else 0


@verb("attach")
def attach(
    *,
    session: str | None = argument(required=False),
    options: WatchOptions = option_group(**VIEW, **JUNIT),
    site: Site = site_options("live"),
) -> None:
    """Watch and control a running session.

    SESSION: its folder, or its name in ./sessions; optional when only one is running.

    The exit status covers the whole session.

    With --web, others watch all running sessions in a browser, or only SESSION. Ctrl-C ends the site, with status 0.

    Exit status: 0 done · 1 a limit failed or undecided · 2 wrong input · 3 a fault, abort, stop or nothing running.
    """
    _demand_one_view(site, options)
    if site.web:
        only_folder = None if session is None else Path(_find_engine(session).folder)
        sys.exit(_serve(lambda: only_folder, site))
    with _report_start(options.report, "attach" if session is None else Path(session).name):
        place = only_running() if session is None else _find_engine(session)
    sys.exit(_watch_and_report(place, options))


def _find_engine(session: str) -> EnginePlace:
    """The engine of a session. EngineError, with what to do instead, if the session is not running."""
    from harness.session.engine.launch import find

    folder = session_folder(session)
    place = find(folder)
    if place is None:
        progress, _ = figures_of(folder)
        ended = f": it has ended ({progress.finished.value})" if progress.finished else ""
        remedy = f"Resume the session: harness run resume {shell_word(folder)}"
        if progress.finished and not progress.can_resume:
            remedy = f"See the results: harness report show {shell_word(folder)}"
        raise EngineError(f"{folder} is not running{ended}", remedy=remedy)
    return place


def _still_running_error(place: EnginePlace) -> EngineError:
    """The error for an engine that does not stop, with the last row that it stored."""
    from harness.session.log.reader import LogReader
    from harness.session.wording import RowWriter

    folder = Path(place.folder)
    with LogReader(folder) as reader:
        last_entry = list(reader.entries(reader.last_seq() - 1))[-1]
    row_text = RowWriter().text(last_entry.record) or last_entry.record.kind
    age = seconds(max(0.0, time.time() - last_entry.wall_s))
    return EngineError(
        f"the run (pid {place.pid}) was asked to stop, but has not ended after {STOPS_WITHIN_S} s. "
        f"Its last row is {age} old: {plain_text(row_text, 200)}",
        remedy="All stored rows are safe. The engine stores what happened before this request, and plays nothing new. "
        f"Wait, and watch it: harness run attach {shell_word(folder)} --plain. If no row appears for several minutes, "
        f"see {SessionFolder(folder).engine_output} and docs/how-to/resume-a-session.md, “A run that does not stop”",
    )


@verb("stop")
def stop(*, session: str | None = argument(required=False)) -> None:
    """Stop a running session cleanly, as Ctrl-C in its plain output does.

    SESSION: its folder, or its name in ./sessions; optional when only one is running.

    Finished trials are kept. The trial that is being played is cut off, and `harness run resume` plays it again.

    Exit status: 0 the session ended properly · 2 wrong input · 3 nothing is running, or it does not end properly.
    """
    from harness.session.summary import next_steps

    place = only_running() if session is None else _find_engine(session)
    folder = Path(place.folder)
    with suppress(ProcessLookupError):  # it ended just now
        os.kill(place.pid, signal.SIGTERM)
    deadline_s = time.monotonic() + STOPS_WITHIN_S
    while place.alive:
        if time.monotonic() > deadline_s:
            raise _still_running_error(place)
        time.sleep(0.05)
    progress, _ = figures_of(folder)
    ended = progress.finished.value if progress.finished else "did not end properly"
    click.echo(f"{ended}: {progress.totals.finished_in_words} finished")
    click.echo("\n".join(next_steps(progress, folder)))
    if progress.finished is None:
        sys.exit(EngineError.exit_code)
