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
from harness.model.judgment import SUB_FLAGS_OF, Category, Flag, JudgmentStatus, RaterKeys, SubFlag
from harness.model.trial import Recognition
from harness.rating.guide import FLAG_TEXTS, LABELS, SUB_FLAG_TEXTS


@frozen
class AidEnding:
    """The end of a path: a category with sub-flags, or a flag that puts the item aside.

    With neither, the item is held until its effect is known.
    """

    category: Category | None = None
    sub_flags: tuple[SubFlag, ...] = ()
    flag: Flag | None = None

    def __post_init__(self) -> None:
        if self.category is not None and self.flag is not None:
            raise ValueError("an ending is a category or a reason to put the item aside, not both")
        if not set(self.sub_flags) <= set(self._allowed_sub_flags):
            raise ValueError(f"{self.category} does not carry the sub-flags {self.sub_flags}")

    @property
    def status(self) -> JudgmentStatus:
        """The status of the resulting judgment."""
        if self.category is not None:
            return JudgmentStatus.SUBMITTED
        return JudgmentStatus.HELD if self.flag is None else JudgmentStatus.FLAGGED

    @property
    def _allowed_sub_flags(self) -> tuple[SubFlag, ...]:
        return () if self.category is None else SUB_FLAGS_OF.get(self.category, ())

    def with_sub_flags(self, sub_flags: tuple[SubFlag, ...]) -> AidEnding:
        """The ending with these sub-flags too, as far as the category allows them."""
        allowed = [sub_flag for sub_flag in sub_flags if sub_flag in self._allowed_sub_flags]
        all_sub_flags = tuple(dict.fromkeys((*self.sub_flags, *allowed)))
        return AidEnding(self.category, all_sub_flags, self.flag)


@frozen
class AidAnswer:
    """An answer.

    - key: one character that selects it.
    - target: id of the next question, or the ending.
    - target_if_core: replaces `target` if the scenario marks the query as a core capability; None if it does not
      matter.
    - sub_flags: those that it adds to the ending.
    """

    id: str
    key: str
    text: str
    target: str | AidEnding
    target_if_core: str | AidEnding | None = None
    sub_flags: tuple[SubFlag, ...] = ()

    def next(self, *, core_capability: bool) -> str | AidEnding:
        """The id of the next question, or the ending."""
        if core_capability and self.target_if_core is not None:
            return self.target_if_core
        return self.target


@frozen
class AidQuestion:
    """A question. topic: its subject in up to three words, for summaries."""

    id: str
    topic: str
    text: str
    answers: tuple[AidAnswer, ...]

    def answer(self, answer_id: str) -> AidAnswer | None:
        """The answer with this id; None for other ids."""
        return next((answer for answer in self.answers if answer.id == answer_id), None)

    def answer_with_key(self, key: str) -> AidAnswer | None:
        """The answer with this key; None for other keys."""
        return next((answer for answer in self.answers if answer.key == key), None)


def _parse_target(target: Any) -> str | AidEnding:
    return target if isinstance(target, str) else from_plain(AidEnding, target)


def _parse_answer(entry: Mapping[str, Any]) -> AidAnswer:
    return AidAnswer(
        id=entry["id"],
        key=entry["key"],
        text=entry["text"],
        target=_parse_target(entry["leads"]),
        target_if_core=_parse_target(entry["leads_if_core"]) if "leads_if_core" in entry else None,
        sub_flags=tuple(map(SubFlag, entry.get("notes", ()))),
    )


_FILE = tomllib.loads(resources.files(__package__).joinpath("aid.toml").read_text("utf-8"))
QUESTIONS: tuple[AidQuestion, ...] = tuple(
    AidQuestion(entry["id"], entry["topic"], entry["text"], tuple(map(_parse_answer, entry["answers"])))
    for entry in _FILE["questions"]
)
"""The questions in the order of asking, side questions last. The first one begins the aid."""
_BY_ID = {question.id: question for question in QUESTIONS}

MAX_QUESTIONS = 8
"""Number of questions on the longest path."""
HARNESS_SUFFIX = "@harness"
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

    - truncated: whether the recording was cut at the time limit; None if unknown.
    - effect: the observed effect; UNKNOWN if an observer could not tell, None without evidence.
    - core_capability: whether the scenario requires this of every such device.
    - awaited: whether evidence of the effect may still come.
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
        """The facts from the evidence of a trial, of which each may be None. An effect that nobody has observed yet is
        awaited."""
        effect, awaited = None, False
        if evidence is not None:
            awaited = evidence.word is EffectOutcome.UNKNOWN and evidence.source is EffectSource.NONE
            effect = None if awaited else evidence.word
        return cls(
            recognised=recognised or Recognition.NOT_ASSESSED,
            truncated=truncated,
            effect=effect,
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
    """An answered question. by_harness: whether the harness gave the answer."""

    question: AidQuestion
    answer: AidAnswer
    by_harness: bool = False

    @property
    def stored_text(self) -> str:
        """The text that stands for this step in the aid_path of a judgment."""
        return f"{self.question.id}={self.answer.id}{HARNESS_SUFFIX if self.by_harness else ''}"


@frozen
class AidState:
    """A rater's progress in the aid. Every answer leads to a new state. Either `question` or `ending` is None.

    - known: what the harness knows.
    - steps: the answers so far.
    """

    known: ResponseFacts
    steps: tuple[AidStep, ...] = ()

    @classmethod
    def begin(cls, facts: ResponseFacts) -> AidState:
        """The state before the first question that a person must answer; the end if there is none."""
        return cls(facts)._with_known_answers()

    @property
    def question(self) -> AidQuestion | None:
        """The current question; None at the end."""
        target = self._target
        return _BY_ID[target] if isinstance(target, str) else None

    @property
    def ending(self) -> AidEnding | None:
        """The end of the path, with the sub-flags of the answers; None before it."""
        target = self._target
        if isinstance(target, str):
            return None
        return target.with_sub_flags(tuple(sub_flag for step in self.steps for sub_flag in step.answer.sub_flags))

    @property
    def path(self) -> tuple[str, ...]:
        """The answers so far, as stored."""
        return tuple(step.stored_text for step in self.steps)

    @property
    def number(self) -> int:
        """Number of the current question, from 1; at the end, the number of answers."""
        return len(self.steps) if self.question is None else len(self.steps) + 1

    @property
    def max_questions(self) -> int:
        """Largest number of questions that this path may have, including those answered and the current one."""
        if self.question is None:
            return len(self.steps)
        return len(self.steps) + self._longest_path(self.question, asks_person=True)

    @property
    def suggested(self) -> AidAnswer | None:
        """The answer that the harness suggests for the current question; None if it has none. A rater who went back may
        choose another."""
        if self.question is None:
            return None
        answer_id = self.known.answer_to(self.question.id)
        return None if answer_id is None else self.question.answer(answer_id)

    @property
    def can_go_back(self) -> bool:
        return bool(self.steps)

    def answer(self, answer_id: str) -> AidState:
        """The state after the rater's answer, and after further answers of the harness.

        Raises ValueError at the end, or for an unknown answer.
        """
        if self.question is None:
            raise ValueError("the decision aid has ended")
        answer = self.question.answer(answer_id)
        if answer is None:
            answer_ids = ", ".join(option.id for option in self.question.answers)
            raise ValueError(f"“{self.question.id}” has no answer “{answer_id}” ({answer_ids})")
        return self._with_step(AidStep(self.question, answer))._with_known_answers()

    def press(self, key: str) -> AidState | None:
        """The state after the answer with this key; None if no answer has it."""
        answer = self.question.answer_with_key(key) if self.question else None
        return self.answer(answer.id) if answer else None

    def back(self) -> AidState:
        """The state before the last answer, even if the harness gave it. At the start, the same state."""
        return AidState(self.known, self.steps[:-1])

    def _with_known_answers(self) -> AidState:
        """The state after all answers that the harness can give."""
        state = self
        while state.question is not None and (answer := state.suggested) is not None:
            state = state._with_step(AidStep(state.question, answer, by_harness=True))
        return state

    def _with_step(self, step: AidStep) -> AidState:
        return AidState(self.known, (*self.steps, step))

    @property
    def _target(self) -> str | AidEnding:
        """The id of the current question, or the ending."""
        if not self.steps:
            return QUESTIONS[0].id
        return self.steps[-1].answer.next(core_capability=self.known.core_capability)

    def _longest_path(self, question: AidQuestion, *, asks_person: bool = False) -> int:
        """Number of questions on the longest path from this one, given the answers of the harness.

        asks_person: whether a person answers this one, even if the harness knows the answer.
        """
        answer_id = None if asks_person else self.known.answer_to(question.id)
        answers = [answer for answer in question.answers if answer_id in (None, answer.id)]
        targets = [answer.next(core_capability=self.known.core_capability) for answer in answers]
        return 1 + max(self._longest_path(_BY_ID[target]) if isinstance(target, str) else 0 for target in targets)


def ending_text(ending: AidEnding) -> str:
    """An ending in words: category with sub-flags, or why the item is put aside."""
    match ending.status:
        case JudgmentStatus.HELD:
            return "held until the effect is known"
        case JudgmentStatus.FLAGGED if ending.flag is not None:
            return f"put aside: {FLAG_TEXTS[ending.flag]}"
        case _ if ending.category is not None:
            sub_flags = ", ".join(SUB_FLAG_TEXTS[sub_flag] for sub_flag in ending.sub_flags)
            return f"{LABELS[ending.category]} ({sub_flags})" if sub_flags else LABELS[ending.category]
        case _:
            raise AssertionError(f"an ending without a meaning: {ending}")


def aid_lines(state: AidState, keys: RaterKeys, width: int = 76) -> list[str]:
    """What a rater reads now, in lines of at most `width` characters: answers of the harness, then the question or the
    ending. keys: of the rater."""
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines: list[str] = []
    last_known_steps = list(itertools.takewhile(lambda step: step.by_harness, reversed(state.steps)))
    for step in reversed(last_known_steps):
        lines += wrapper.wrap(f"Already known: {step.question.topic}. {step.answer.text}.")
    if state.question is not None:
        lines.append(f"Question {state.number} of at most {state.max_questions}.")
        lines += wrapper.wrap(state.question.text)
        hanging_wrapper = textwrap.TextWrapper(width, subsequent_indent="   ", break_on_hyphens=False)
        for answer in state.question.answers:
            mark = " (known)" if answer == state.suggested else ""
            lines += hanging_wrapper.wrap(f"{answer.key}: {answer.text}{mark}")
    ending = state.ending
    if ending is not None and ending.category is None:
        lines += wrapper.wrap(ending_text(ending).capitalize() + ".")
    elif ending is not None and ending.category is not None:
        lines += wrapper.wrap(f"{LABELS[ending.category]}. Key {keys.categories[ending.category]}.")
        lines += [f"Noted: {SUB_FLAG_TEXTS[sub_flag]}." for sub_flag in ending.sub_flags]
    return lines
