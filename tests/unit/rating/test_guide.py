"""The guide beside an item: it fits where it is shown, it is complete, and its own examples agree with the aid."""

from __future__ import annotations

import pytest

from harness.model.judgment import Category, Flag, SubFlag
from harness.model.trial import Recognition
from harness.rating.aid import AID, Known
from harness.rating.guide import FLAG_TEXTS, GUIDE, KEYS, LABELS, RULES, SUB_FLAG_TEXTS

TO_THE_ANSWER = ("no", "no", "clear", "none")
WALKS: dict[str, tuple[str, ...]] = {
    "A spider has eight legs.": (*TO_THE_ANSWER, "yes", "complete"),
    "Music is stopping stopped.": ("no", "no", "clear", "right"),
    "Terry Pratchett.": (*TO_THE_ANSWER, "yes", "little"),
    "The months are January, February, March, April, May, June …": (*TO_THE_ANSWER, "yes", "much"),
    "The book or the film?": ("meaning",),
    "At what time?": ("detail",),
    "I can't tell whether your car is locked.": ("no", "nobody"),
    "Tomorrow is Sunday.": (*TO_THE_ANSWER, "yes", "inferred"),
    "Here are five pages on roses that I found.": (*TO_THE_ANSWER, "yes", "several"),
    "Sorry, I don't know that one.": ("no", "could"),
    "Warm enough to melt my circuits!": (*TO_THE_ANSWER, "amuses", "shows"),
    "Okay, the fan is off.": ("no", "no", "clear", "wrong", "hidden"),
    "Birmingham, Alabama, is four hundred miles away.": ("no", "no", "told"),
    "It is four hundred miles away.": ("no", "no", "untold"),
}


def test_every_line_of_the_key_list_fits_into_80_columns() -> None:
    name_width = max(len(name) for name in LABELS.values())
    for key, category in KEYS:
        # One column of padding at each side.
        assert len(f"{key} {LABELS[category]:<{name_width}}  {GUIDE[category].short}") <= 78
        assert len(GUIDE[category].short) <= 44


def test_every_category_has_a_question_and_an_example_of_its_own() -> None:
    assert list(GUIDE) == list(Category)
    assert len({text.test for text in GUIDE.values()}) == len(Category)
    assert all(text.test.endswith(("?", ".")) and text.examples for text in GUIDE.values())
    assert set(FLAG_TEXTS) == set(Flag)
    assert set(SUB_FLAG_TEXTS) == set(SubFlag)
    assert all(rule.endswith(".") and len(rule) <= 120 for rule in RULES)
    assert len(set(RULES)) == len(RULES)


@pytest.mark.parametrize("category", list(Category))
def test_the_examples_of_the_guide_text_come_out_of_the_aid(category: Category) -> None:
    for example in GUIDE[category].examples:
        state = AID.begin(Known(Recognition.YES, truncated=False))
        for answer in WALKS[example.response]:
            state = state.answer(answer)
        assert state.ending is not None, state.path
        assert state.ending.category is category
