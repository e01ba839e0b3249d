"""What `run`, `resume` and `attach` share: the client that shows a session, and how it ends."""

from __future__ import annotations

import os
import queue
import signal
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from harness.cli.operator_prompt import OperatorPrompt
from harness.cli.options import json_option
from harness.cli.sessions import figures_of, user_name
from harness.cli.streams import standard_output
from harness.cli.verbs import INTERRUPTED
from harness.model.bench import OperatorPresence
from harness.model.errors import EngineError, InputError
from harness.model.feed import Goodbye, Hello, Message

if TYPE_CHECKING:
    from harness.cli.plain import JsonPrinter, PlainPrinter
    from harness.session.engine.launch import EnginePlace

LEFT_AT_ONCE = INTERRUPTED

F = TypeVar("F", bound=Callable[..., object])


class View(Enum):
    """How a session is shown."""

    DASHBOARD = "dashboard"
    PLAIN = "plain"
    JSON = "json"


def view_options(command: F) -> F:
    """The options --plain and --json."""
    plain = click.option("--plain", is_flag=True, help="One line per happening; by itself without a terminal.")
    return plain(json_option("as_json", "Every message as a line of JSON.")(command))


def chosen_view(plain: bool, as_json: bool) -> View:
    """What was asked for, else the dashboard where there is a terminal for it."""
    if plain and as_json:
        raise InputError("--plain and --json exclude each other", remedy="Choose one")
    if as_json:
        return View.JSON
    terminal = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return View.PLAIN if plain or not terminal else View.DASHBOARD


def watch(place: EnginePlace, view: View, *, history: bool) -> int:
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
        if view is View.DASHBOARD:
            raise EngineError(
                "left; the run goes on", remedy=f"Come back: harness attach {place.folder}"
            ) from interrupt
        if place.alive:
            os.kill(place.pid, signal.SIGTERM)
        raise EngineError(
            "left; the engine was asked to stop", remedy=f"Go on with: harness resume {place.folder}"
        ) from interrupt


def _show(place: EnginePlace, view: View, *, history: bool) -> int:
    from harness.cli.plain import JsonPrinter, PlainPrinter, end_of_session, next_steps
    from harness.session.engine.resolved import read_resolved

    if view is View.DASHBOARD:
        from harness.dashboard.app import run_dashboard  # Textual is slow to import, and plain output needs none of it

        status = run_dashboard(Path(place.socket), Path(place.folder), user_name())
        progress, wake = figures_of(Path(place.folder))
        if progress.finished is not None:
            lines = [*end_of_session(progress, wake, Path(place.folder)), *next_steps(progress, Path(place.folder))]
            standard_output().write("\n".join(lines) + "\n")
        return status
    stream = standard_output()
    printer = JsonPrinter(stream) if view is View.JSON else PlainPrinter(stream, history=history)
    present = read_resolved(Path(place.folder)).bench.operator is OperatorPresence.PRESENT
    return _Watch(place, printer, attended=present).until_it_ends()


class _Left(Exception):
    """The person pressed Ctrl-C again."""


class _Watch:
    """Prints on this thread what the client's thread receives, and turns Ctrl-C into an orderly stop."""

    def __init__(self, place: EnginePlace, printer: PlainPrinter | JsonPrinter, *, attended: bool) -> None:
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
            return LEFT_AT_ONCE
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
