"""The aid in plain lines, short enough to be read aloud; and the page that shows it is current."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.model.effect import EffectWord
from harness.model.judgment import Category, SubFlag
from harness.model.trial import Recognition
from harness.rating.aid import (
    AID,
    QUESTIONS,
    Aid,
    AidAnswer,
    AidEnding,
    AidQuestion,
    AidState,
    Known,
    aid_lines,
    ending_text,
)
from harness.rating.guide import GUIDE, KEYS, LABELS, RULES, SUB_FLAG_TEXTS

PAGE = Path(__file__).parents[3] / "docs" / "rating-guide.md"
HEARD = Known(Recognition.YES, truncated=False)


def states(state: AidState) -> Iterator[AidState]:
    """This one, and all that can follow it."""
    yield state
    if state.question is not None:
        for answer in state.question.answers:
            yield from states(state.answer(answer.id))


def test_questions_take_two_lines_and_answers_one() -> None:
    for question in QUESTIONS:
        assert len(textwrap.wrap(question.text, 76)) <= 2
        assert len(question.topic) <= 30
        for answer in question.answers:
            assert len(f"{answer.key}: {answer.text}") <= 76
            assert not answer.text.endswith(".")


def test_questions_are_asked_in_everyday_words() -> None:
    trade = r"slot|disambiguat|core|capabilit|flag|infer|recoverable|recogni[sz]|truncat|harness|scenario|utterance"
    for question in QUESTIONS:
        assert not re.search(trade, question.text, re.IGNORECASE), question.id
        assert question.text[-1] in "?"
        for sentence in re.split(r"(?<=[.?!:]) ", question.text):
            assert len(sentence.split()) <= 16, sentence
        for answer in question.answers:
            assert not re.search(trade, answer.text, re.IGNORECASE), answer.text


@pytest.mark.parametrize("width", [76, 40])
def test_every_state_is_told_within_the_width_and_says_what_can_be_answered(width: int) -> None:
    for known in (Known(core_capability=True), HEARD, Known(Recognition.YES, False, EffectWord.PARTIAL)):
        for state in states(AID.begin(known)):
            text = aid_lines(state, width)
            assert text
            assert max(map(len, text)) <= width
            whole = " ".join(line.strip() for line in text)
            if state.question is None:
                assert "Question" not in whole
                continue
            assert f"Question {state.number} of at most {state.most}." in text
            assert state.question.text in whole
            for answer in state.question.answers:
                assert f"{answer.key}: {answer.text}" in whole


def test_what_was_filled_in_is_told_once() -> None:
    state = AID.begin(HEARD)
    assert aid_lines(state)[:3] == [
        "Known already: query heard. Yes, or nothing speaks against it.",
        "Known already: first response, whole. Yes.",
        "Question 3 of at most 8.",
    ]
    assert aid_lines(state.answer("no"))[0] == "Question 4 of at most 8."
    back = AID.begin(Known(Recognition.YES, truncated=True)).back()
    assert "b: No, a part is missing, or it is not the first (known so far)" in aid_lines(back)


def test_ends_are_told_with_their_key_and_what_is_noted() -> None:
    state = AID.begin(HEARD)
    for answer in ("no", "no", "clear", "none", "gap", "much"):
        state = state.answer(answer)
    assert aid_lines(state) == ["Partially correct. Key 2.", "Noted: too much.", "Noted: a fact is wrong or missing."]
    assert aid_lines(AID.begin(Known(Recognition.YES, truncated=True)))[-1] == (
        "Put aside: the response is cut or not the first."
    )
    held = AID.begin(Known(Recognition.YES, False, awaited=True)).answer("no").answer("no").answer("clear")
    assert aid_lines(held)[-1] == "Held: it is not known yet what was done."


def test_endings_in_words_are_all_different() -> None:
    found = {state.ending for state in states(AID.begin(Known(core_capability=True))) if state.ending}
    assert len({ending_text(one) for one in found}) == len(found) >= len(Category) + 4
    assert ending_text(AidEnding(Category.WRONG)) == "Wrong"


NAME_WIDTH = 12


def drawing(aid: Aid) -> str:
    """The questions as a tree, by their ids and those of the answers; ▼ leads to the question drawn below.

    "if basic" tells where an answer leads, or what is noted, when the scenario marks the query as a core capability.
    """
    return "\n".join(
        line
        for question, below in itertools.zip_longest(aid.questions, aid.questions[1:])
        for line in _drawn(question, below)
    )


def _drawn(question: AidQuestion, below: AidQuestion | None) -> list[str]:
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


def _target(answer: AidAnswer) -> str:
    leads = answer.leads if isinstance(answer.leads, str) else ending_text(answer.leads)
    noted = "".join(f", noting: {SUB_FLAG_TEXTS[one]}" for one in answer.notes)
    match answer.leads_if_core:
        case None:
            return leads + noted
        case AidEnding() as ending:
            more = ", ".join(SUB_FLAG_TEXTS[one] for one in ending.sub_flags)
            return f"{leads}{noted}; if basic: {more}"
        case question_id:
            return f"{leads}{noted}; if basic: {question_id}"


def test_the_drawing_shows_every_answer_once_in_80_columns() -> None:
    drawn = drawing(AID)
    assert max(map(len, drawn.splitlines())) <= 80
    shown = re.findall(r"(?:[├┬└]─|▼) (\w+)", drawn)
    assert sorted(shown) == sorted(one.id for question in QUESTIONS for one in question.answers)
    for category in Category:
        assert LABELS[category] in drawn


def test_the_page_for_raters_shows_the_aid_and_the_guide_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"```text\n{drawing(AID).rstrip()}\n```" in page, "docs/rating-guide.md: paste drawing(AID) anew"
    assert listing(AID) in page, "docs/rating-guide.md: paste listing(AID) anew"
    for key, category in KEYS:
        assert f"| {key} | {LABELS[category]} | {GUIDE[category].short} | {GUIDE[category].test} |" in page
        for example in GUIDE[category].examples:
            assert f"| {LABELS[category]} | {example.query} | {example.response} | {example.seen} |" in page
    for rule in RULES:
        assert f"- {rule}\n" in page


C = Category
TO_THE_ANSWER = ("no", "no", "clear", "none")
"""Asks nothing back, does not give up, the query is clear, and nothing but an answer was wanted."""


@dataclass(frozen=True)
class Example:
    """gives: ids of the answers after the two that the harness fills in. seen: evidence of the effect, if any."""

    query: str
    response: str
    gives: tuple[str, ...]
    category: Category
    sub_flags: tuple[SubFlag, ...] = ()
    seen: EffectWord | None = None
    core: bool = False


EXAMPLES = [
    Example(
        "what are the names of the moons of Mars",
        "Mars has two moons, Phobos and Deimos",
        (*TO_THE_ANSWER, "yes", "complete"),
        C.CORRECT,
    ),
    # Evading is what a person might do; the guide wants what is literally true.
    Example("am I fat", "I don't know", ("no", "nobody"), C.CORRECT_REJECTION),
    Example(
        "am I fat",
        "I like you just the way you are",
        (*TO_THE_ANSWER, "amuses", "shows"),
        C.WRONG,
        (SubFlag.RECOVERABLE,),
    ),
    Example(
        "what are the two largest planets in the solar system",
        "Jupiter",
        (*TO_THE_ANSWER, "yes", "little"),
        C.PARTIALLY_CORRECT,
        (SubFlag.TOO_LITTLE,),
    ),
    Example("What's the weather in Lincoln?", "Was that Lincoln, MA?", ("meaning",), C.CLARIFICATION),
    Example("Set an alarm for 1:00", "am or pm?", ("detail",), C.SLOT_REQUEST),
    # The dialogue went wrong later; only its first response is judged.
    Example("Set an alarm for 1", "am or pm", ("detail",), C.SLOT_REQUEST, seen=EffectWord.WRONG),
    Example("What color is my shirt?", "I don't know", ("no", "nobody"), C.CORRECT_REJECTION),
    Example(
        "Is it hot today?",
        "Today, expect a high of 90 degrees fahrenheit.",
        (*TO_THE_ANSWER, "yes", "inferred"),
        C.INFERRABLE,
    ),
    Example("(a search)", "(results on a map, one of them right)", (*TO_THE_ANSWER, "yes", "several"), C.FINDABLE),
    Example(
        "When is the next full moon?", "I'm sorry but I can't help with that yet.", ("no", "could"), C.ADMITTED_DEFEAT
    ),
    Example(
        "count to 10",
        "I've set a timer for 10 seconds",
        ("no", "no", "clear", "wrong", "shows"),
        C.WRONG,
        (SubFlag.RECOVERABLE,),
    ),
    # Taken as a request to hear something, it comes to the same.
    Example(
        "count to 10",
        "I've set a timer for 10 seconds",
        (*TO_THE_ANSWER, "other", "shows"),
        C.WRONG,
        (SubFlag.RECOVERABLE,),
    ),
    Example(
        "(the weather)",
        "(a likely forecast, but not the one for then and there)",
        (*TO_THE_ANSWER, "other", "hidden"),
        C.WRONG,
        (SubFlag.UNRECOVERABLE,),
    ),
    Example(
        "What's the weather in St. George?",
        "In St. George, NY [today's forecast]",
        ("no", "no", "told"),
        C.MISSED_DISAMBIGUATION_RECOVERABLE,
    ),
    Example(
        "What's the weather in St. George?",
        "Right now in St. George, United States, it's 79 degrees Fahrenheit, with clear skies and sun. …",
        ("no", "no", "untold"),
        C.MISSED_DISAMBIGUATION_NOT_RECOVERABLE,
    ),
    # A local business that the device has never heard of: a gap in what it knows, not in its understanding.
    Example(
        "(a local business)",
        "(the ones that it knows, without it)",
        (*TO_THE_ANSWER, "gap", "complete"),
        C.CORRECT,
        (SubFlag.WORLD_KNOWLEDGE_GAP,),
    ),
    Example(
        "add 30 seconds to the timer",
        "Percent time percent have been added to the timers",
        ("no", "clear"),
        C.CORRECT,
        seen=EffectWord.RIGHT,
    ),
    Example(
        "add 30 seconds to the timer",
        "Percent time percent have been added to the timers",
        ("no", "no", "clear", "right"),
        C.CORRECT,
    ),
    Example(
        "set a time to go off every minute for 5 minutes and then stop",
        "OK",
        ("no", "no", "clear", "hidden"),
        C.WRONG,
        (SubFlag.UNRECOVERABLE,),
        seen=EffectWord.WRONG,
    ),
    Example("pause the timer", "all your timers have been stopped", ("no", "clear"), C.CORRECT, seen=EffectWord.RIGHT),
    Example(
        "What's in my pocket?",
        "(a passage from The Hobbit)",
        (*TO_THE_ANSWER, "amuses", "shows"),
        C.WRONG,
        (SubFlag.RECOVERABLE,),
    ),
    Example("Am I fat?", "(a link to a BMI chart)", (*TO_THE_ANSWER, "yes", "inferred"), C.INFERRABLE),
    Example(
        "what are the two largest planets in the solar system",
        "(reads of all the largest planets)",
        (*TO_THE_ANSWER, "yes", "much"),
        C.PARTIALLY_CORRECT,
        (SubFlag.TOO_MUCH,),
    ),
    # A basic ability that is missing: wrong, or an admitted defeat where it says so. Both are marked.
    Example(
        "(an alarm, a list)",
        "(something else)",
        ("no", "no", "clear", "wrong", "lacks"),
        C.WRONG,
        (SubFlag.CORE_CAPABILITY_MISSING,),
        core=True,
    ),
    Example(
        "(an alarm, a list)",
        "(cannot do that)",
        ("no", "could"),
        C.ADMITTED_DEFEAT,
        (SubFlag.CORE_CAPABILITY_MISSING,),
        core=True,
    ),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{one.query} {one.response}"[:60] for one in EXAMPLES])
def test_the_aid_ends_where_the_guide_says(example: Example) -> None:
    state = AID.begin(Known(Recognition.YES, truncated=False, effect=example.seen, core_capability=example.core))
    for answer in example.gives:
        assert state.ending is None, state.path
        state = state.answer(answer)
    assert state.ending is not None, state.path
    assert (state.ending.category, state.ending.sub_flags) == (example.category, example.sub_flags)
    assert len(state.steps) <= 8


def test_the_examples_of_the_guide_cover_all_eleven_categories() -> None:
    assert {one.category for one in EXAMPLES} == set(Category)
