"""The plain printer: one line per event, flushed at once; and JSON lines for programs."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from harness.base.codec import encode
from harness.base.foreign import plain_text
from harness.base.places import SessionFolder
from harness.model.effect import EffectOutcome
from harness.model.errors import EngineError, InputError
from harness.model.feed import (
    Answered,
    AnswerEffect,
    AnswerOperator,
    Command,
    Goodbye,
    Logged,
    Message,
    Misspoke,
    StateChanged,
    StateWord,
    Welcome,
)
from harness.model.numbers import seconds
from harness.model.record import (
    AttemptFinished,
    EffectAnswered,
    EndReason,
    Entry,
    Observed,
    OperatorAsked,
    Question,
    SessionStarted,
    TrialFinished,
)
from harness.session.engine.feed import MESSAGES
from harness.session.figures.progress import SessionFigures
from harness.session.log.reader import later_rows
from harness.session.summary import end_of_session, next_steps
from harness.session.wording import Recurrent, RowWriter, recurrences_in_words
from harness.wake.reports.figures_text import WakeLines

_COLOURS = {"FAULT": "31", "LOST": "31", "END": "1", "TRIAL": "1", "PAUSED": "33", "ASKING": "36", "BACK": "32",
            "UNMATCHED": "33", "DECIDED": "1"}  # fmt: skip
_STATES = {StateWord.WAITING, StateWord.INTERRUPTED, StateWord.CLOSING, StateWord.PAUSED}
MAX_STALL_ROWS_PER_MINUTE = 12
"""Most rows about stalls of one link, or of the host, that are printed within a minute. One line sums up the rest."""
_COUNTS_DOWN = {StateWord.WAITING, StateWord.ASKING, StateWord.INTERRUPTED}
"""States for which the time left is printed. Other states end when something happens, not at a set time."""


class _Recurrences:
    """Sums up stalls and lost links that recur often."""

    def __init__(self) -> None:
        self._began_s: dict[str, float] = {}
        self._printed_counts: Counter[str] = Counter()
        self._waiting: dict[str, list[Recurrent]] = {}

    def due(self, now_s: float) -> Iterator[str]:
        """Ends each source's minute that is over, and yields a line that sums up its rows that were held back.

        now_s: session seconds.
        """
        for source in [source for source, since_s in self._began_s.items() if now_s - since_s >= 60.0]:
            del self._began_s[source], self._printed_counts[source]
            if source in self._waiting:
                yield recurrences_in_words(self._waiting.pop(source))

    def holds(self, entry: Entry) -> bool:
        """Whether a row is kept for `due` instead of printed.

        That is so after MAX_STALL_ROWS_PER_MINUTE rows of its source within this minute.
        """
        if not isinstance(entry.record, Observed) or not isinstance(entry.record.observation, Recurrent):
            return False
        observation = entry.record.observation
        self._began_s.setdefault(observation.source, entry.at_s)
        self._printed_counts[observation.source] += 1
        if self._printed_counts[observation.source] <= MAX_STALL_ROWS_PER_MINUTE:
            return False
        self._waiting.setdefault(observation.source, []).append(observation)
        return True


class PlainPrinter:
    """Prints a session for people.

    history: also print rows from before the connection (a run's own first rows), rather than sum them up in a line.
    """

    def __init__(self, stream: TextIO, *, history: bool, colour: bool | None = None) -> None:
        self._stream = stream
        self._history = history
        self._colour = stream.isatty() if colour is None else colour
        self._rows = RowWriter()
        self._recurrences = _Recurrences()
        self._figures = SessionFigures()
        self._wake: WakeLines | None = None
        self._old_until = 0
        self._folder: Path | None = None
        self._printed_state: tuple[StateWord, str, str | None, int | None] | None = None

    def take(self, message: Message) -> None:
        """Prints a message, if it has something for people."""
        match message:
            case Welcome(session_folder=folder, last_seq=last_seq, state=state):
                self._folder = Path(folder)
                self._old_until = 0 if self._history else last_seq
                self._print(f"session {folder}")
                if state.word is StateWord.PAUSED:
                    self._state(state, has_row=self._history)
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
        line = self._rows.line(entry.record)
        if isinstance(entry.record, SessionStarted) and entry.record.listens:
            self._wake = WakeLines()
        if entry.seq > self._old_until:
            for text in self._recurrences.due(entry.at_s):
                self._print(text, entry.wall_s)
            line = None if self._recurrences.holds(entry) else line
        lines = [] if line is None else [line]
        if self._wake:
            lines += self._wake.add(entry)
        if entry.seq > self._old_until and lines:
            for text in lines:
                self._print(text, entry.wall_s)
            self._printed_state = None
        elif entry.seq == self._old_until:
            self._print(f"so far {self._figures.snapshot().totals.finished_in_words} are finished")

    def _state(self, state: StateChanged, *, has_row: bool = True) -> None:
        """Prints what the harness waits for, and how to end a pause; rows of the log cover what is played and heard.

        has_row: whether the row that gives the reason of a pause is printed too.
        """
        if not state.reason or state.word not in _STATES:
            return
        state_key = (state.word, state.reason, state.trial_id, state.attempt)
        if state_key == self._printed_state:  # only its end has moved, since the device said something more
            return
        self._printed_state = state_key
        if state.word is not StateWord.PAUSED or not has_row or state.reason.startswith("disk full"):
            self._reason(state)
        if state.word is StateWord.PAUSED and self._folder is not None:
            self._print(f"    to resume: harness run attach {self._folder} · to stop: harness run stop {self._folder}")

    def _reason(self, state: StateChanged) -> None:
        wait = ""
        if state.word in _COUNTS_DOWN and state.until_s is not None:
            wait = f" up to {seconds(max(0.0, state.until_s - state.since_s))}"
        line = f"    {state.word.in_words.lower()}{wait}: {plain_text(state.reason, 200)}"
        self._print(line, time.time())

    def _end(self, goodbye: Goodbye) -> None:
        if self._folder is not None and SessionFolder(self._folder).judgments.is_file():
            for entry in later_rows(self._folder):
                self._figures.add_later(entry)
        for line in self._recurrences.due(math.inf):
            self._print(line)
        progress = self._figures.snapshot()
        for line in ("", *end_of_session(progress, self._wake.figures if self._wake else None, self._folder)):
            self._print(line)
        if goodbye.reason in (EndReason.ABORTED, EndReason.STOPPED):
            self._print(f"the run was {goodbye.reason}")
        elif goodbye.reason:
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


HOW = "answer y, n or ? (cannot tell), then what the device heard, if you know: n what lime is it"
_WORDS: dict[str, bool | None] = {"y": True, "yes": True, "n": False, "no": False, "?": None}


def parse_answer(line: str) -> tuple[bool | None, str] | None:
    """An answer: recognised or not (None: cannot tell), and what the device heard; None for any other line."""
    word, _, heard = line.strip().partition(" ")
    if word.lower() not in _WORDS:
        return None
    return _WORDS[word.lower()], heard.strip()


HOW_EFFECT = "answer r (right), p (partly), w (wrong) or c (cannot tell), then what the device did: w no timer runs"
_EFFECTS = {
    **{word.value: word for word in EffectOutcome},
    "r": EffectOutcome.RIGHT,
    "p": EffectOutcome.PARTIAL,
    "w": EffectOutcome.WRONG,
    "c": EffectOutcome.UNKNOWN,
    "?": EffectOutcome.UNKNOWN,
}


def parse_effect(line: str) -> tuple[EffectOutcome, str] | None:
    """An answer on an effect, and what was seen; None for any other line."""
    word, _, comment = line.strip().partition(" ")
    effect = _EFFECTS.get(word.lower())
    return None if effect is None else (effect, comment.strip())


HOW_SPEECH = "x and Enter: that was wrong, ask again"


def answer_hint(question: OperatorAsked) -> str:
    """What the operator may type."""
    match question.about:
        case Question.RECOGNITION:
            return HOW
        case Question.EFFECT:
            return HOW_EFFECT
        case Question.SPEECH:
            return HOW_SPEECH


class OperatorPrompt:
    """Sends each answer to the question that is open, if one is.

    operator: a name. say: prints a line for the operator, from any thread.
    """

    def __init__(
        self, source: TextIO, operator: str, send: Callable[[Command], None], say: Callable[[str], None]
    ) -> None:
        self._source = source
        self._operator = operator
        self._send = send
        self._print = say
        self._lock = threading.Lock()
        self._open_question: OperatorAsked | None = None
        threading.Thread(target=self._read, name="operator", daemon=True).start()

    def take(self, message: Message) -> None:
        """Notes which question is open."""
        if not isinstance(message, Logged):
            return
        match message.entry.record:
            case OperatorAsked() as question:
                with self._lock:
                    self._open_question = question
                self._print(answer_hint(question))
            case AttemptFinished():
                self._close(Question.RECOGNITION, Question.SPEECH)
            case EffectAnswered():
                self._close(Question.EFFECT)
            case TrialFinished():
                self._close(*Question)
            case _:
                pass

    def _close(self, *about: Question) -> None:
        with self._lock:
            if self._open_question is not None and self._open_question.about in about:
                self._open_question = None

    def _read(self) -> None:
        for line in self._read_lines():
            with self._lock:
                question = self._open_question
            if question is None:
                self._print("no question is open")
                continue
            command = self._command(question, line)
            if command is None:
                self._print(answer_hint(question))
                continue
            try:
                self._send(command)
            except EngineError:
                return  # the watching thread says that the engine is gone

    def _read_lines(self) -> Iterator[str]:
        with suppress(InputError, OSError):  # closed, or a terminal that is gone: nobody can answer
            yield from self._source

    def _command(self, question: OperatorAsked, line: str) -> Command | None:
        if question.about is Question.EFFECT:
            effect = parse_effect(line)
            return effect and AnswerEffect(
                uuid4().hex, self._operator, question.trial_id, question.attempt, *effect, take=question.take
            )
        if question.about is Question.SPEECH:
            wrong = line.strip().lower() == "x"
            return Misspoke(uuid4().hex, self._operator, question.trial_id, question.attempt) if wrong else None
        answer = parse_answer(line)
        return answer and AnswerOperator(uuid4().hex, self._operator, question.trial_id, question.attempt, *answer)
