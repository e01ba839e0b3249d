"""The plain printer: what happens, one line each, flushed at once; and JSON lines for programs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from harness.base.codec import MESSAGES, encode
from harness.base.foreign import counted, plain_text
from harness.cli.effects import HOW_EFFECT, checked_in, effect_lines, parse_effect
from harness.model.errors import EngineError, HarnessError
from harness.model.feed import (
    Answered,
    AnswerEffect,
    AnswerOperator,
    Command,
    Goodbye,
    Logged,
    Message,
    StateChanged,
    StateWord,
    Welcome,
)
from harness.model.record import AttemptFinished, EffectAnswered, Entry, OperatorAsked, Question, TrialFinished
from harness.session.engine.resolved import read_resolved
from harness.session.figures.effects import right_of_known
from harness.session.figures.memory import one_line
from harness.session.figures.progress import Progress, SessionFigures, check_limits, normalisation_of, words_of_session
from harness.session.summary import finished_line, frame_table, heard_lines, limit_lines, totals_lines, trial_table
from harness.session.wording import Happenings, described_in_words
from harness.wake.reports.figures_text import WakeLines, wake_summary
from harness.wake.wake import WakeFigures

_COLOURS = {"FAULT": "31", "LOST": "31", "END": "1", "TRIAL": "1", "PAUSED": "33", "ASKING": "36", "BACK": "32",
            "UNMATCHED": "33", "DECIDED": "1"}  # fmt: skip
_STATES = {StateWord.WAITING, StateWord.INTERRUPTED, StateWord.CLOSING}
_COUNTS_DOWN = {StateWord.WAITING, StateWord.ASKING, StateWord.INTERRUPTED}
"""States whose end is worth a number; the others end with what they wait for."""


class PlainPrinter:
    """Prints a session for people.

    history: also print rows from before the connection (a run's own first rows), rather than sum them up in a line.
    """

    def __init__(self, stream: TextIO, *, history: bool, colour: bool | None = None) -> None:
        self._stream = stream
        self._history = history
        self._colour = stream.isatty() if colour is None else colour
        self._happenings = Happenings()
        self._figures = SessionFigures()
        self._wake = WakeLines()
        self._old_until = 0
        self._folder: Path | None = None
        self._told: tuple[StateWord, str, str | None, int | None] | None = None

    def take(self, message: Message) -> None:
        """Prints what a message says, if it says anything to people."""
        match message:
            case Welcome(session_folder=folder, last_seq=last_seq):
                self._folder = Path(folder)
                self._old_until = 0 if self._history else last_seq
                self._print(f"session {folder}")
            case Logged(entry=entry):
                self._row(entry)
            case StateChanged():
                self._state(message)
            case Answered(ok=False, why=why):
                self._print(f"refused: {plain_text(why)}")
            case Goodbye():
                self._end(message)
            case _:
                pass

    def _row(self, entry: Entry) -> None:
        self._figures.add(entry)
        line = self._happenings.line(entry.record)
        lines = [*([] if line is None else [line]), *self._wake.add(entry)]
        if entry.seq > self._old_until and lines:
            for one in lines:
                self._print(one, entry.wall_s)
            self._told = None
        elif entry.seq == self._old_until:
            figures = self._figures.snapshot().totals
            self._print(f"so far {figures.finished} of {figures.planned} trials are finished")

    def _state(self, state: StateChanged) -> None:
        """Says what is waited for; what is played and heard has rows of its own."""
        if not state.reason or (state.word not in _STATES and not state.reason.startswith("disk full")):
            return
        told = (state.word, state.reason, state.trial_id, state.attempt)
        if told == self._told:  # only its end has moved, since the device said something more
            return
        self._told = told
        wait = ""
        if state.word in _COUNTS_DOWN and state.until_s is not None:
            wait = f" {max(0.0, state.until_s - state.since_s):.1f} s"
        line = f"    {state.word.value.lower()}{wait}: {plain_text(state.reason, 200)}"
        self._print(line, time.time())

    def _end(self, goodbye: Goodbye) -> None:
        progress = self._figures.snapshot()
        for line in ("", *end_of_session(progress, self._wake.figures, self._folder)):
            self._print(line)
        if goodbye.reason:
            self._print(plain_text(goodbye.reason))
        for line in next_steps(progress, self._folder):
            self._print(line)

    def _print(self, line: str, wall_s: float | None = None) -> None:
        if wall_s is not None:
            line = f"{time.strftime('%H:%M:%S', time.localtime(wall_s))}  {line}"
        if self._colour:
            word = line.split("  ", 1)[-1].lstrip().partition(" ")[0]
            if word in _COLOURS:
                line = f"\x1b[{_COLOURS[word]}m{line}\x1b[0m"
        self._stream.write(line + "\n")
        self._stream.flush()


class JsonPrinter:
    """Prints every message of the feed as a line of JSON, for programs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def take(self, message: Message) -> None:
        self._stream.write(encode(MESSAGES, message).decode("utf-8") + "\n")
        self._stream.flush()


def end_of_session(progress: Progress, wake: WakeFigures, folder: Path | None) -> list[str]:
    """Table of queries, totals, wake figures of each device, and limits."""
    lines: list[str] = []
    if any(one.trial.listening is None for one in progress.trials) or not progress.trials:
        lines += trial_table([one for one in progress.trials if one.trial.listening is None])
        if frames := frame_table(progress):
            lines += ["", *frames]
        lines += ["", *totals_lines(progress.totals)]
    else:
        lines.append(finished_line(progress.totals))
    snapshot = wake.snapshot()
    lines += heard_lines(*words_of_session(progress.totals, snapshot), normalisation_of(progress))
    if figures := wake_summary(wake):
        lines += ["", *figures]
    lines += one_line(progress, folder)
    for number, board in enumerate(progress.boards):
        lines.append(f"{'' if number else 'boards':21}{described_in_words(board)}")
    if progress.overruns:
        lines.append(f"sound                {progress.overruns} blocks were late or lost")
    if progress.unread:
        lines.append(f"NOT READ             {counted(progress.unread, 'line')} of devices (console: max_line_bytes)")
    if folder is not None:
        effects = checked_in(progress, folder)
        lines += effect_lines(effects)
        # With what people have said of them since.
        right = right_of_known(one.evidence for one in effects if one.trial.effect is not None)
        try:
            scenario = read_resolved(folder).scenario
        except HarnessError as error:
            return [*lines, f"limits: {error}"]
        totals = replace(progress.totals, effects=right)
        lines += limit_lines(check_limits(scenario.limits, totals, snapshot, scenario.stopping))
    return lines


def next_steps(progress: Progress, folder: Path | None) -> list[str]:
    """Where everything lies, and what to type next."""
    if folder is None:
        return []
    name = _as_typed(folder)
    lines = ["", f"session folder: {name}"]
    if progress.left:
        lines.append(f"go on with:     harness resume {name}")
    lines.append(f"look at it:     harness show {name}")
    if progress.totals.judged < progress.totals.to_judge:
        lines.append(f"judge it:       harness rate {name}")
    return lines


def _as_typed(folder: Path) -> str:
    """The shortest path that can be typed from here."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)


HOW = "answer y, n, or ? (cannot tell), and behind it what it heard, if you know: n what lime is it"
_WORDS: dict[str, bool | None] = {"y": True, "yes": True, "n": False, "no": False, "?": None}


def parse_answer(line: str) -> tuple[bool | None, str] | None:
    """What a line says: recognised or not (None: cannot tell), and what was heard; None when it is no answer."""
    word, _, heard = line.strip().partition(" ")
    if word.lower() not in _WORDS:
        return None
    return _WORDS[word.lower()], heard.strip()


class OperatorPrompt:
    """Sends each answer to the question that is open, if one is.

    by: the operator's name. say: prints a line for the operator, from any thread.
    """

    def __init__(self, source: TextIO, by: str, send: Callable[[Command], None], say: Callable[[str], None]) -> None:
        self._source = source
        self._by = by
        self._send = send
        self._say = say
        self._lock = threading.Lock()
        self._open: OperatorAsked | None = None
        threading.Thread(target=self._read, name="operator", daemon=True).start()

    def take(self, message: Message) -> None:
        """Notes which question is open."""
        if not isinstance(message, Logged):
            return
        match message.entry.record:
            case OperatorAsked() as asked:
                with self._lock:
                    self._open = asked
                self._say(HOW if asked.about is Question.RECOGNITION else HOW_EFFECT)
            case AttemptFinished():
                self._close(Question.RECOGNITION)
            case EffectAnswered():
                self._close(Question.EFFECT)
            case TrialFinished():
                self._close(*Question)
            case _:
                pass

    def _close(self, *about: Question) -> None:
        with self._lock:
            if self._open is not None and self._open.about in about:
                self._open = None

    def _read(self) -> None:
        for line in self._source:
            with self._lock:
                asked = self._open
            if asked is None:
                self._say("nothing is being asked now")
                continue
            command = self._command(asked, line)
            if command is None:
                self._say(HOW if asked.about is Question.RECOGNITION else HOW_EFFECT)
                continue
            try:
                self._send(command)
            except EngineError:
                return  # the watching thread says that the engine is gone

    def _command(self, asked: OperatorAsked, line: str) -> Command | None:
        if asked.about is Question.EFFECT:
            effect = parse_effect(line)
            return effect and AnswerEffect(
                uuid4().hex, self._by, asked.trial_id, asked.attempt, *effect, take=asked.take
            )
        answer = parse_answer(line)
        return answer and AnswerOperator(uuid4().hex, self._by, asked.trial_id, asked.attempt, *answer)
