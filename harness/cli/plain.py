"""The plain printer: one line per event, flushed at once; and JSON lines for programs."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO, TypeVar
from uuid import uuid4

from harness.base.codec import encode
from harness.base.foreign import plain_text, shell_word
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
"""The first word of a line → its colour, as a number of an ANSI escape sequence."""
_PRINTED_STATES = {StateWord.WAITING, StateWord.INTERRUPTED, StateWord.CLOSING, StateWord.PAUSED}
MAX_STALL_ROWS_PER_MINUTE = 12
"""Limit on printed rows about stalls of one link, or of the host, within a minute. One line sums up the rest."""
_COUNTS_DOWN = {StateWord.WAITING, StateWord.ASKING, StateWord.INTERRUPTED}
"""States for which the time left is printed. Other states end when something happens, not at a set time."""


class _Recurrences:
    """Sums up stalls and lost links that recur often. A source's minute begins with its first such row."""

    def __init__(self) -> None:
        self._minute_start_s: dict[str, float] = {}
        self._counts: Counter[str] = Counter()
        self._held_back: dict[str, list[Recurrent]] = {}

    def end_minutes(self, now_s: float) -> Iterator[str]:
        """Ends each source's minute that is over, and yields a line that sums up its rows that were held back.

        now_s: session seconds.
        """
        for source in [source for source, start_s in self._minute_start_s.items() if now_s - start_s >= 60.0]:
            del self._minute_start_s[source], self._counts[source]
            if source in self._held_back:
                yield recurrences_in_words(self._held_back.pop(source))

    def hold_back(self, entry: Entry) -> bool:
        """Counts a row. Returns whether it is held back for `end_minutes`, and so must not be printed.

        That is so after MAX_STALL_ROWS_PER_MINUTE rows of its source within this minute.
        """
        if not isinstance(entry.record, Observed) or not isinstance(entry.record.observation, Recurrent):
            return False
        observation = entry.record.observation
        self._minute_start_s.setdefault(observation.source, entry.at_s)
        self._counts[observation.source] += 1
        if self._counts[observation.source] <= MAX_STALL_ROWS_PER_MINUTE:
            return False
        self._held_back.setdefault(observation.source, []).append(observation)
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
        self._last_old_seq = 0
        """Rows up to this one are summed up in a line."""
        self._folder: Path | None = None
        self._printed_state: tuple[StateWord, str, str | None, int | None] | None = None

    def print_message(self, message: Message) -> None:
        """Prints a message, if it has something for people."""
        match message:
            case Welcome(session_folder=folder, last_seq=last_seq, state=state):
                self._folder = Path(folder)
                self._last_old_seq = 0 if self._history else last_seq
                self._print(f"session {folder}")
                if state.word is StateWord.PAUSED:
                    self._print_state(state, row_is_printed=self._history)
            case Logged(entry=entry):
                self._print_row(entry)
            case StateChanged():
                self._print_state(message)
            case Answered(ok=False, why=why):
                self._print(f"refused: {plain_text(why)}")
            case Goodbye():
                self._print_end(message)
            case _:
                pass

    def _print_row(self, entry: Entry) -> None:
        """Counts a row, and prints its lines unless it is an old one. After the last old row, sums all of them up."""
        self._figures.add(entry)
        line = self._rows.line(entry.record)
        if isinstance(entry.record, SessionStarted) and entry.record.listens:
            self._wake = WakeLines()
        if entry.seq > self._last_old_seq:
            for text in self._recurrences.end_minutes(entry.at_s):
                self._print(text, entry.wall_s)
            if self._recurrences.hold_back(entry):
                line = None
        lines = [] if line is None else [line]
        if self._wake:
            lines += self._wake.add(entry)
        if entry.seq > self._last_old_seq and lines:
            for text in lines:
                self._print(text, entry.wall_s)
            self._printed_state = None
        elif entry.seq == self._last_old_seq:
            self._print(f"so far {self._figures.snapshot().totals.finished_in_words} are finished")

    def _print_state(self, state: StateChanged, *, row_is_printed: bool = True) -> None:
        """Prints what the harness waits for, and how to end a pause; rows of the log cover what is played and heard.

        row_is_printed: whether the row that gives the reason of a pause is printed, too.
        """
        if not state.reason or state.word not in _PRINTED_STATES:
            return
        state_key = (state.word, state.reason, state.trial_id, state.attempt)
        if state_key == self._printed_state:  # only its end has moved, since the device said something more
            return
        self._printed_state = state_key
        # A full disk has no row.
        if state.word is not StateWord.PAUSED or not row_is_printed or state.reason.startswith("disk full"):
            self._print_reason(state)
        if state.word is StateWord.PAUSED and self._folder is not None:
            name = shell_word(self._folder)
            self._print(f"    to resume: harness run attach {name} · to stop: harness run stop {name}")

    def _print_reason(self, state: StateChanged) -> None:
        wait = ""
        if state.word in _COUNTS_DOWN and state.until_s is not None:
            wait = f" up to {seconds(max(0.0, state.until_s - state.since_s))}"
        line = f"    {state.word.in_words.lower()}{wait}: {plain_text(state.reason, 200)}"
        self._print(line, time.time())

    def _print_end(self, goodbye: Goodbye) -> None:
        """Prints the results of the session, with judgments made so far, and what to do next."""
        if self._folder is not None and SessionFolder(self._folder).judgments.is_file():
            for entry in later_rows(self._folder):
                self._figures.add_later(entry)
        for line in self._recurrences.end_minutes(math.inf):
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
        """Prints a line in the colour of its first word. wall_s: a time to print before it."""
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

    def print_message(self, message: Message) -> None:
        self._stream.write(encode(MESSAGES, message).decode("utf-8") + "\n")
        self._stream.flush()


RECOGNITION_HINT = "answer y, n or ? (cannot tell), then what the device heard, if you know: n what lime is it"
ANSWERS: dict[str, bool | None] = {"y": True, "yes": True, "n": False, "no": False, "?": None}
"""Whether the device recognised the query. What it heard follows."""
EFFECT_HINT = "answer r (right), p (partly), w (wrong) or c (cannot tell), then what the device did: w no timer runs"
EFFECTS = {
    **{outcome.value: outcome for outcome in EffectOutcome},
    "r": EffectOutcome.RIGHT,
    "p": EffectOutcome.PARTIAL,
    "w": EffectOutcome.WRONG,
    "c": EffectOutcome.UNKNOWN,
    "?": EffectOutcome.UNKNOWN,
}
"""The effect of a query. What was seen follows."""
Meaning = TypeVar("Meaning")


def parse_reply(line: str, meanings: Mapping[str, Meaning]) -> tuple[Meaning, str] | None:
    """The meaning of the first word of a line, and the remaining text; None for a word that is not in `meanings`."""
    word, _, remaining_text = line.strip().partition(" ")
    if word.lower() not in meanings:
        return None
    return meanings[word.lower()], remaining_text.strip()


SPEECH_HINT = "x and Enter: I misspoke"


def answer_hint(question: OperatorAsked) -> str:
    """What the operator may type."""
    match question.about:
        case Question.RECOGNITION:
            return RECOGNITION_HINT
        case Question.EFFECT:
            return EFFECT_HINT
        case Question.SPEECH:
            return SPEECH_HINT


class OperatorPrompt:
    """Reads lines in a thread of its own, and sends each as the answer to the open question, if there is one.

    - operator: a name.
    - print_hint: prints a line for the operator, from any thread.
    """

    def __init__(
        self, source: TextIO, operator: str, send: Callable[[Command], None], print_hint: Callable[[str], None]
    ) -> None:
        self._source = source
        self._operator = operator
        self._send = send
        self._print_hint = print_hint
        self._lock = threading.Lock()
        """Guards the open question, which the caller's thread sets and the own thread reads."""
        self._open_question: OperatorAsked | None = None
        threading.Thread(target=self._send_answers, name="operator", daemon=True).start()

    def note_message(self, message: Message) -> None:
        """Notes which question is open, and prints how to answer it."""
        if not isinstance(message, Logged):
            return
        match message.entry.record:
            case OperatorAsked() as question:
                with self._lock:
                    self._open_question = question
                self._print_hint(answer_hint(question))
            case AttemptFinished():
                self._close_question(Question.RECOGNITION, Question.SPEECH)
            case EffectAnswered():
                self._close_question(Question.EFFECT)
            case TrialFinished():
                self._close_question(*Question)
            case _:
                pass

    def _close_question(self, *about: Question) -> None:
        """Closes the open question if it is one of these."""
        with self._lock:
            if self._open_question is not None and self._open_question.about in about:
                self._open_question = None

    def _send_answers(self) -> None:
        """Sends answers until the input or the engine ends."""
        for line in self._read_lines():
            with self._lock:
                question = self._open_question
            if question is None:
                self._print_hint("no question is open")
                continue
            command = self._parse_command(question, line)
            if command is None:
                self._print_hint(answer_hint(question))
                continue
            try:
                self._send(command)
            except EngineError:
                return  # the thread that prints messages reports that the engine is gone

    def _read_lines(self) -> Iterator[str]:
        with suppress(InputError, OSError):  # closed, or a terminal that is gone: nobody can answer
            yield from self._source

    def _parse_command(self, question: OperatorAsked, line: str) -> Command | None:
        """The answer that a line gives to the question; None if it is not an answer to it."""
        subject = (uuid4().hex, self._operator, question.trial_id, question.attempt)
        match question.about:
            case Question.EFFECT:
                effect = parse_reply(line, EFFECTS)
                return None if effect is None else AnswerEffect(*subject, *effect, take=question.take)
            case Question.SPEECH:
                return Misspoke(*subject) if line.strip().lower() == "x" else None
            case Question.RECOGNITION:
                answer = parse_reply(line, ANSWERS)
                return None if answer is None else AnswerOperator(*subject, *answer)
