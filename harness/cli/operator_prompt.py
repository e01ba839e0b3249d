"""The operator's answers without a dashboard: a line on standard input for each question."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TextIO
from uuid import uuid4

from harness.model.effect import EffectWord
from harness.model.errors import EngineError
from harness.model.feed import AnswerEffect, AnswerOperator, Command, Logged, Message
from harness.model.record import AttemptFinished, EffectAnswered, OperatorAsked, Question, TrialFinished

HOW = "answer y, n, or ? (cannot tell), and behind it what it heard, if you know: n what lime is it"
HOW_EFFECT = "answer r (right), p (partly), w (wrong) or c (cannot tell), and behind it what it did: w no timer runs"
_WORDS: dict[str, bool | None] = {"y": True, "yes": True, "n": False, "no": False, "?": None}
_EFFECTS = {
    **{word.value: word for word in EffectWord},
    "r": EffectWord.RIGHT,
    "p": EffectWord.PARTIAL,
    "w": EffectWord.WRONG,
    "c": EffectWord.UNKNOWN,
    "?": EffectWord.UNKNOWN,
}


def parse_answer(line: str) -> tuple[bool | None, str] | None:
    """What a line says: recognised or not (None: cannot tell), and what was heard; None when it is no answer."""
    word, _, heard = line.strip().partition(" ")
    if word.lower() not in _WORDS:
        return None
    return _WORDS[word.lower()], heard.strip()


def parse_effect(line: str) -> tuple[EffectWord, str] | None:
    """What a line says of an effect, and what was seen; None when it is no answer."""
    word, _, seen = line.strip().partition(" ")
    found = _EFFECTS.get(word.lower())
    return None if found is None else (found, seen.strip())


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
