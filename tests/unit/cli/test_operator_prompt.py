"""The operator's answers on standard input."""

import io
import threading

import pytest

from harness.cli.plain import HOW_EFFECT, OperatorPrompt, parse_answer, parse_effect
from harness.model.effect import EffectWord
from harness.model.feed import AnswerEffect, AnswerOperator, Command, Logged
from harness.model.record import EffectAnswered, Entry, OperatorAsked, Question, Record


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y\n", (True, "")),
        ("YES", (True, "")),
        ("n  what dime is it \n", (False, "what dime is it")),
        ("?", (None, "")),
        ("", None),
        ("maybe", None),
        ("yn", None),
    ],
)
def test_parse_answer(line: str, answer: tuple[bool | None, str] | None) -> None:
    assert parse_answer(line) == answer


class Lines(io.TextIOBase):
    """Standard input of which each line is typed when the test says so."""

    def __init__(self, count: int) -> None:
        self.typed: list[str] = []
        self.may_type = [threading.Event() for _ in range(count)]
        self._at = 0

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        if self._at == len(self.may_type):
            return ""
        self.may_type[self._at].wait(5)
        self._at += 1
        return self.typed[self._at - 1]


def test_answers_go_to_the_question_that_is_open() -> None:
    sent: list[Command] = []
    said: list[str] = []
    done = threading.Event()
    source = Lines(3)

    def say(text: str) -> None:
        said.append(text)
        if len(said) in (1, 3):
            done.set()

    prompt = OperatorPrompt(source, "ann", lambda command: (sent.append(command), done.set())[0], say)
    source.typed = ["y\n", "hm\n", "n play jazz\n"]
    source.may_type[0].set()
    assert done.wait(5)
    prompt.take(Logged(Entry(1, 1, 0.0, 0.0, OperatorAsked("t1", 1, 2, "did it?"))))
    done.clear()
    source.may_type[1].set()
    assert done.wait(5)
    done.clear()
    source.may_type[2].set()
    assert done.wait(5)
    assert said[0] == "nothing is being asked now"
    assert said[1].startswith("answer y, n")
    assert said[2] == said[1]
    (answer,) = sent
    assert isinstance(answer, AnswerOperator)
    assert (answer.trial_id, answer.attempt, answer.recognised, answer.heard, answer.by) == (
        "t1", 2, False, "play jazz", "ann",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("r\n", (EffectWord.RIGHT, "")),
        ("W  no timer runs \n", (EffectWord.WRONG, "no timer runs")),
        ("partial half of it", (EffectWord.PARTIAL, "half of it")),
        ("c", (EffectWord.UNKNOWN, "")),
        ("y", None),
        ("", None),
    ],
)
def test_parse_effect(line: str, answer: tuple[EffectWord, str] | None) -> None:
    assert parse_effect(line) == answer


def test_an_effect_question_takes_its_own_words_and_closes_when_it_is_answered() -> None:
    sent: list[Command] = []
    said: list[str] = []
    came = threading.Event()
    source = Lines(3)
    prompt = OperatorPrompt(
        source,
        "ann",
        lambda command: (sent.append(command), came.set())[0],
        lambda text: (said.append(text), came.set())[0],
    )

    def told(record: Record) -> None:
        prompt.take(Logged(Entry(1, 1, 0.0, 0.0, record)))

    def types(number: int) -> None:
        came.clear()
        source.may_type[number].set()
        assert came.wait(5)

    source.typed = ["y\n", "p half a timer\n", "r\n"]
    told(OperatorAsked("t1", 2, 1, "did it?", Question.EFFECT))
    types(0)
    assert said == [HOW_EFFECT, HOW_EFFECT]
    types(1)
    (answer,) = sent
    assert isinstance(answer, AnswerEffect)
    assert (answer.trial_id, answer.take, answer.attempt, answer.word, answer.detail, answer.by) == (
        "t1", 2, 1, EffectWord.PARTIAL, "half a timer", "ann",
    )  # fmt: skip
    told(EffectAnswered("t1", 2, 1, EffectWord.PARTIAL, "ann"))
    types(2)
    assert said[-1] == "nothing is being asked now"
