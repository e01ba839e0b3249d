"""Every example of the guide, tricky cases included, walked as a careful rater would: the aid agrees with the guide.

Queries, responses and categories: Dahl & Doran, Response Assessment for Voice Assistant Test (2020-09-20).
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from harness.model.effect import EffectWord
from harness.model.judgment import Category, SubFlag
from harness.model.trial import Recognition
from harness.rating.aid import AID, Known

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
