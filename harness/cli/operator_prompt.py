"""The operator's answers without a dashboard: a line on standard input for each question."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TextIO
from uuid import uuid4

from harness.model.errors import EngineError
from harness.model.feed import AnswerOperator, Command, Logged, Message
from harness.model.record import AttemptFinished, OperatorAsked

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
                self._say(HOW)
            case AttemptFinished():
                with self._lock:
                    self._open = None
            case _:
                pass

    def _read(self) -> None:
        for line in self._source:
            answer = parse_answer(line)
            with self._lock:
                asked = self._open
            if asked is None:
                self._say("nothing is being asked now")
            elif answer is None:
                self._say(HOW)
            else:
                recognised, heard = answer
                try:
                    self._send(AnswerOperator(uuid4().hex, self._by, asked.trial_id, asked.attempt, recognised, heard))
                except EngineError:
                    return  # the watching thread says that the engine is gone
