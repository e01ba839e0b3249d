"""The decision aid: short questions that lead from a first response to its category. The questions are in aid.toml.

Every path ends in one `AidEnding`, after at most `MAX_QUESTIONS` questions, including those that the harness answers.
An ending is a category, with four exceptions. Three answers put the item aside with a flag: not recognised, cut or not
the first response, and bad sound. An effect that is not known yet holds the item.
"""

from __future__ import annotations

import itertools
import textwrap
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from harness.base.plain_json import from_plain
from harness.model.effect import EffectEvidence, EffectOutcome, EffectSource
from harness.model.frozen import frozen
from harness.model.judgment import SUB_FLAGS_OF, Category, Flag, JudgmentStatus, SubFlag
from harness.model.trial import Recognition
from harness.rating.guide import FLAG_TEXTS, KEYS, LABELS, SUB_FLAG_TEXTS


@frozen
class AidEnding:
    """The end of a path: a category, or a flag that puts the item aside. With neither, the item is held until its
    effect is known."""

    category: Category | None = None
    sub_flags: tuple[SubFlag, ...] = ()
    flag: Flag | None = None

    def __post_init__(self) -> None:
        if self.category is not None and self.flag is not None:
            raise ValueError("an ending is a category or a reason to put the item aside, not both")
        if not set(self.sub_flags) <= set(self._allowed):
            raise ValueError(f"{self.category} does not carry the sub-flags {self.sub_flags}")

    @property
    def status(self) -> JudgmentStatus:
        """The status of the resulting judgment."""
        if self.category is not None:
            return JudgmentStatus.SUBMITTED
        return JudgmentStatus.HELD if self.flag is None else JudgmentStatus.FLAGGED

    @property
    def _allowed(self) -> tuple[SubFlag, ...]:
        return () if self.category is None else SUB_FLAGS_OF.get(self.category, ())

    def with_sub_flags(self, sub_flags: tuple[SubFlag, ...]) -> AidEnding:
        """The ending with these sub-flags, as far as the category allows them."""
        noted = (*self.sub_flags, *(sub_flag for sub_flag in sub_flags if sub_flag in self._allowed))
        return AidEnding(self.category, tuple(dict.fromkeys(noted)), self.flag)


@frozen
class AidAnswer:
    """An answer. key: one character that selects it. leads: id of the next question, or the ending. notes: sub-flags
    that it adds to the ending.

    leads_if_core: replaces `leads` if the scenario marks the query as a core capability; None if it does not matter.
    """

    id: str
    key: str
    text: str
    leads: str | AidEnding
    leads_if_core: str | AidEnding | None = None
    notes: tuple[SubFlag, ...] = ()

    def to(self, *, core_capability: bool) -> str | AidEnding:
        """The id of the next question, or the ending."""
        if core_capability and self.leads_if_core is not None:
            return self.leads_if_core
        return self.leads


@frozen
class AidQuestion:
    """A question. topic: its subject in up to three words, for summaries."""

    id: str
    topic: str
    text: str
    answers: tuple[AidAnswer, ...]

    def answer(self, answer_id: str) -> AidAnswer | None:
        return next((answer for answer in self.answers if answer.id == answer_id), None)

    def answer_of(self, key: str) -> AidAnswer | None:
        """The answer with this key; None for other keys."""
        return next((answer for answer in self.answers if answer.key == key), None)


def _leads(target: Any) -> str | AidEnding:
    return target if isinstance(target, str) else from_plain(AidEnding, target)


def _answer(entry: Mapping[str, Any]) -> AidAnswer:
    core = entry.get("leads_if_core")
    notes = tuple(map(SubFlag, entry.get("notes", ())))
    return AidAnswer(
        entry["id"], entry["key"], entry["text"], _leads(entry["leads"]), None if core is None else _leads(core), notes
    )


_FILE = tomllib.loads(resources.files(__package__).joinpath("aid.toml").read_text("utf-8"))
QUESTIONS: tuple[AidQuestion, ...] = tuple(
    AidQuestion(entry["id"], entry["topic"], entry["text"], tuple(map(_answer, entry["answers"])))
    for entry in _FILE["questions"]
)
"""The questions in the order of asking, side questions last. The first one begins the aid."""
_BY_ID = {question.id: question for question in QUESTIONS}

MAX_QUESTIONS = 8
"""Number of questions on the longest path."""
FILLED = "@harness"
"""Suffix of a stored answer that the harness gave: "recognised=yes@harness"."""


_EFFECT_ANSWERS = {
    None: None,
    EffectOutcome.RIGHT: "right",
    EffectOutcome.PARTIAL: "part",
    EffectOutcome.WRONG: "wrong",
    EffectOutcome.UNKNOWN: "unknown",
}


@frozen
class ResponseFacts:
    """What the harness knows about a response, and from which it answers questions.

    truncated: whether the recording was cut at the time limit; None if unknown. effect: the observed effect; UNKNOWN if
    an observer could not tell, None without evidence. core_capability: whether the scenario requires this of every such
    device. awaited: whether evidence may still come.
    """

    recognised: Recognition = Recognition.NOT_ASSESSED
    truncated: bool | None = None
    effect: EffectOutcome | None = None
    core_capability: bool = False
    awaited: bool = False

    def __post_init__(self) -> None:
        if self.awaited and self.effect is not None:
            raise ValueError(f"the effect is {self.effect}, so it cannot be awaited")

    @classmethod
    def of(
        cls,
        recognised: Recognition | None,
        truncated: bool | None,
        evidence: EffectEvidence | None,
        core_capability: bool,
    ) -> ResponseFacts:
        """From the evidence of a trial. Each may be None if there is none. An effect that nobody has observed yet is
        awaited."""
        unknown = evidence is not None and evidence.word is EffectOutcome.UNKNOWN
        awaited = unknown and evidence is not None and evidence.source is EffectSource.NONE
        return cls(
            recognised=recognised or Recognition.NOT_ASSESSED,
            truncated=truncated,
            effect=None if evidence is None or awaited else evidence.word,
            core_capability=core_capability,
            awaited=awaited,
        )

    def answer_to(self, question_id: str) -> str | None:
        """The id of the answer to a question that follows from the facts; None if a person must answer."""
        match question_id:
            case "recognised":
                return {Recognition.YES: "yes", Recognition.NO: "no"}.get(self.recognised)
            case "whole":
                if self.truncated is None:
                    return None
                return "cut" if self.truncated else "yes"
            case "cannot":
                # The device acted, so unexpected words must not hide a right effect.
                return "no" if self.effect in (EffectOutcome.RIGHT, EffectOutcome.PARTIAL) else None
            case "effect":
                return "not_yet" if self.awaited else _EFFECT_ANSWERS[self.effect]
            case _:
                return None


@frozen
class AidStep:
    """An answered question. filled: whether the harness gave the answer."""

    question: AidQuestion
    answer: AidAnswer
    filled: bool = False

    @property
    def word(self) -> str:
        """The text that stands for this step in the aid_path of a judgment."""
        return f"{self.question.id}={self.answer.id}{FILLED if self.filled else ''}"


@frozen
class AidState:
    """A rater's progress in the aid. Every answer leads to a new state. Either `question` or `ending` is None. known:
    what the harness knows. steps: the answers so far."""

    known: ResponseFacts
    steps: tuple[AidStep, ...] = ()

    @classmethod
    def begin(cls, facts: ResponseFacts) -> AidState:
        """The state before the first question that a person must answer; the end if there is none."""
        return cls(facts).filled_in()

    @property
    def question(self) -> AidQuestion | None:
        """The current question."""
        leads = self._leads
        return _BY_ID[leads] if isinstance(leads, str) else None

    @property
    def ending(self) -> AidEnding | None:
        """The end of the path, with the sub-flags noted on the way."""
        leads = self._leads
        if isinstance(leads, str):
            return None
        return leads.with_sub_flags(tuple(note for step in self.steps for note in step.answer.notes))

    @property
    def path(self) -> tuple[str, ...]:
        """The answers so far, as stored."""
        return tuple(step.word for step in self.steps)

    @property
    def number(self) -> int:
        """Number of the current question, from 1; at the end, the number of answers."""
        return len(self.steps) if self.question is None else len(self.steps) + 1

    @property
    def most(self) -> int:
        """Largest number of questions that this path may have, including those answered and the current one."""
        return len(self.steps) + (self._longest_path(self.question, asked=True) if self.question else 0)

    @property
    def suggested(self) -> AidAnswer | None:
        """The answer that the harness suggests for the current question; None if it has none. A rater who went back may
        choose another."""
        answer_id = self.known.answer_to(self.question.id) if self.question else None
        return self.question.answer(answer_id) if self.question and answer_id else None

    @property
    def can_go_back(self) -> bool:
        return bool(self.steps)

    def answer(self, answer_id: str) -> AidState:
        """The state after the rater's answer, and after further answers of the harness.

        ValueError at the end, or for an unknown answer.
        """
        if self.question is None:
            raise ValueError("the decision aid has ended")
        answer = self.question.answer(answer_id)
        if answer is None:
            answer_ids = ", ".join(option.id for option in self.question.answers)
            raise ValueError(f"“{self.question.id}” has no answer “{answer_id}” ({answer_ids})")
        return self._with_step(AidStep(self.question, answer)).filled_in()

    def press(self, key: str) -> AidState | None:
        """The state after the answer with this key; None if no answer has it."""
        answer = self.question.answer_of(key) if self.question else None
        return self.answer(answer.id) if answer else None

    def back(self) -> AidState:
        """The state before the last answer, even if the harness gave it. At the start, the same state."""
        return AidState(self.known, self.steps[:-1])

    def filled_in(self) -> AidState:
        """The state after all answers that the harness can give."""
        state = self
        while state.question is not None and (answer := state.suggested) is not None:
            state = state._with_step(AidStep(state.question, answer, filled=True))
        return state

    def _with_step(self, step: AidStep) -> AidState:
        return AidState(self.known, (*self.steps, step))

    @property
    def _leads(self) -> str | AidEnding:
        if not self.steps:
            return QUESTIONS[0].id
        return self.steps[-1].answer.to(core_capability=self.known.core_capability)

    def _longest_path(self, question: AidQuestion, asked: bool = False) -> int:
        """Number of questions on the longest path from this one, given the answers of the harness. asked: whether a
        person answers this one."""
        answer_id = None if asked else self.known.answer_to(question.id)
        ways = [answer for answer in question.answers if answer_id in (None, answer.id)]
        ends = [answer.to(core_capability=self.known.core_capability) for answer in ways]
        return 1 + max(self._longest_path(_BY_ID[end]) if isinstance(end, str) else 0 for end in ends)


def ending_text(ending: AidEnding) -> str:
    """An ending in words: category with sub-flags, or why the item is put aside."""
    match ending.status:
        case JudgmentStatus.HELD:
            return "held until the effect is known"
        case JudgmentStatus.FLAGGED if ending.flag is not None:
            return f"put aside: {FLAG_TEXTS[ending.flag]}"
        case _ if ending.category is not None:
            noted = ", ".join(SUB_FLAG_TEXTS[sub_flag] for sub_flag in ending.sub_flags)
            return LABELS[ending.category] + (f" ({noted})" if noted else "")
        case _:
            raise AssertionError(f"an ending without a meaning: {ending}")


def aid_lines(state: AidState, width: int = 76) -> list[str]:
    """What a rater reads now, in lines of at most `width` characters: answers of the harness, then the question or the
    ending."""
    wrapped = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    text: list[str] = []
    just_filled = list(itertools.takewhile(lambda step: step.filled, reversed(state.steps)))
    for step in reversed(just_filled):
        text += wrapped.wrap(f"Already known: {step.question.topic}. {step.answer.text}.")
    if state.question is not None:
        text.append(f"Question {state.number} of at most {state.most}.")
        text += wrapped.wrap(state.question.text)
        hanging = textwrap.TextWrapper(width, subsequent_indent="   ", break_on_hyphens=False)
        for answer in state.question.answers:
            mark = " (known)" if answer == state.suggested else ""
            text += hanging.wrap(f"{answer.key}: {answer.text}{mark}")
        return text
    ending = state.ending
    if ending is not None:
        keys = {category: key for key, category in KEYS}
        if ending.category is None:
            text += wrapped.wrap(ending_text(ending).capitalize() + ".")
        else:
            text += wrapped.wrap(f"{LABELS[ending.category]}. Key {keys[ending.category]}.")
            text += [f"Noted: {SUB_FLAG_TEXTS[sub_flag]}." for sub_flag in ending.sub_flags]
    return text
