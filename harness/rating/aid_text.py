"""The decision aid in plain lines: for screen readers and scripts, and for the page that explains it."""

from __future__ import annotations

import itertools
import textwrap

from harness.model.judgment import JudgmentStatus
from harness.rating.aid import Aid, AidState, Step
from harness.rating.aid_questions import Answer, Ending, Question
from harness.rating.categories import KEYS, LABELS
from harness.rating.guide import FLAG_TEXTS, SUB_FLAG_TEXTS

NAME_WIDTH = 12


def ending_text(ending: Ending) -> str:
    """An ending in words: the category and what is noted beside it, or why the item is put aside."""
    match ending.status:
        case JudgmentStatus.HELD:
            return "held: it is not known yet what was done"
        case JudgmentStatus.FLAGGED if ending.flag is not None:
            return f"put aside: {FLAG_TEXTS[ending.flag]}"
        case _ if ending.category is not None:
            noted = ", ".join(SUB_FLAG_TEXTS[one] for one in ending.sub_flags)
            return LABELS[ending.category] + (f" ({noted})" if noted else "")
        case _:
            raise AssertionError(f"an ending without a meaning: {ending}")


def lines(state: AidState, width: int = 76) -> list[str]:
    """What a rater is to read now, in lines of at most `width` columns: what was filled in, then question or ending."""
    wrapped = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    text: list[str] = []
    for step in _just_filled(state):
        text += wrapped.wrap(f"Known already: {step.question.topic}. {step.answer.text}.")
    if state.question is not None:
        text.append(f"Question {state.number} of at most {state.most}.")
        text += wrapped.wrap(state.question.text)
        hanging = textwrap.TextWrapper(width, subsequent_indent="   ", break_on_hyphens=False)
        for answer in state.question.answers:
            known = " (known so far)" if answer == state.suggested else ""
            text += hanging.wrap(f"{answer.key}: {answer.text}{known}")
        return text
    ending = state.ending
    if ending is not None:
        keys = {category: key for key, category in KEYS}
        if ending.category is None:
            text += wrapped.wrap(ending_text(ending).capitalize() + ".")
        else:
            text += wrapped.wrap(f"{LABELS[ending.category]}. Key {keys[ending.category]}.")
            text += [f"Noted: {SUB_FLAG_TEXTS[one]}." for one in ending.sub_flags]
    return text


def _just_filled(state: AidState) -> list[Step]:
    """What the harness filled in since a person last answered."""
    return list(itertools.takewhile(lambda step: step.filled, reversed(state.steps)))[::-1]


def drawing(aid: Aid) -> str:
    """The questions as a tree, by their ids and those of the answers; ▼ leads to the question drawn below.

    "if basic" tells where an answer leads, or what is noted, when the scenario marks the query as a core capability.
    """
    return "\n".join(
        line
        for question, below in itertools.zip_longest(aid.questions, aid.questions[1:])
        for line in _drawn(question, below)
    )


def _drawn(question: Question, below: Question | None) -> list[str]:
    onward = next((one for one in question.answers if below is not None and one.leads == below.id), None)
    sideways = [one for one in question.answers if one is not onward]
    text = []
    for number, answer in enumerate(sideways):
        head = f"{question.id} ".ljust(NAME_WIDTH, "─") if number == 0 else " " * NAME_WIDTH
        last = onward is None and number == len(sideways) - 1
        turn = "┬" if number == 0 else ("└" if last else "├")
        text.append(f"{head}{turn}─ {answer.id} ".ljust(NAME_WIDTH + 13, "─") + f"► {_target(answer)}")
    text.append(" " * NAME_WIDTH + f"▼ {onward.id}" if onward else "")
    return text


def listing(aid: Aid) -> str:
    """All questions with their answers and where these lead, as Markdown."""
    text = []
    for question in aid.questions:
        text += [f"**{question.id}** {question.text}", ""]
        text += [f"- `{one.key}` {one.text} → {_target(one)} (`{one.id}`)" for one in question.answers]
        text.append("")
    return "\n".join(text).strip()


def _target(answer: Answer) -> str:
    leads = answer.leads if isinstance(answer.leads, str) else ending_text(answer.leads)
    noted = "".join(f", noting: {SUB_FLAG_TEXTS[one]}" for one in answer.notes)
    match answer.leads_if_core:
        case None:
            return leads + noted
        case Ending() as ending:
            more = ", ".join(SUB_FLAG_TEXTS[one] for one in ending.sub_flags)
            return f"{leads}{noted}; if basic: {more}"
        case question_id:
            return f"{leads}{noted}; if basic: {question_id}"
