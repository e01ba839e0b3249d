"""The guide beside an item: it fits where it is shown, it is complete, and its own examples agree with the aid."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from harness.model.judgment import Category, Exercise, Flag, SubFlag
from harness.rating.exercises import BUILT_IN_EXERCISES
from harness.rating.guide import FLAG_TEXTS, GUIDE, KEYS, LABELS, RULES, SUB_FLAG_TEXTS
from tests.unit.rating.test_aid import EXAMPLES, HEARD, TO_THE_ANSWER, walk


def test_every_category_has_a_key_of_its_own_a_label_and_a_text() -> None:
    assert [category for _, category in KEYS] == list(Category)
    assert "".join(key for key, _ in KEYS) == "1234567890-"
    assert set(LABELS) == set(GUIDE) == set(Category)
    assert len({text.short for text in GUIDE.values()}) == len(Category)
    assert all(len(text.short) <= 54 for text in GUIDE.values()), "a short text must fit beside its key"


GUIDE_WALKS: dict[str, tuple[str, ...]] = {
    "A spider has eight legs.": (*TO_THE_ANSWER, "yes", "complete"),
    "Music is stopping stopped.": ("no", "no", "clear", "right"),
    "Terry Pratchett.": (*TO_THE_ANSWER, "yes", "little"),
    "The months are January, February, March, April, May, June …": (*TO_THE_ANSWER, "yes", "much"),
    "The book or the film?": ("meaning",),
    "At what time?": ("detail",),
    "I don't know whether your car is locked.": ("no", "nobody"),
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
        state = walk(HEARD, *GUIDE_WALKS[example.response])
        assert state.ending is not None, state.path
        assert state.ending.category is category


TO_THE_EFFECT = ("no", "no", "clear")
WALKS: dict[str, tuple[str, ...]] = {
    "leap_year": (*TO_THE_ANSWER, "yes", "complete"),
    "lamp_odd_words": (*TO_THE_EFFECT, "right"),
    "music_wrong_words": (*TO_THE_EFFECT, "right"),
    "flower_shop": (*TO_THE_ANSWER, "gap", "complete"),
    "states_of_water": (*TO_THE_ANSWER, "yes", "little"),
    "longest_river": (*TO_THE_ANSWER, "yes", "much"),
    "two_lights": (*TO_THE_EFFECT, "part", "less"),
    "call_alex": ("meaning",),
    "play_yesterday": ("meaning",),
    "book_table": ("detail",),
    "water_plants": ("detail",),
    "last_dream": ("no", "nobody"),
    "lottery": ("no", "nobody"),
    "umbrella": (*TO_THE_ANSWER, "yes", "inferred"),
    "library_open": (*TO_THE_ANSWER, "yes", "inferred"),
    "wine_stain": (*TO_THE_ANSWER, "yes", "several"),
    "doctor_number": (*TO_THE_ANSWER, "yes", "several"),
    "finnish": ("no", "could"),
    "alarm_cannot": ("no", "could"),
    "wallet": (*TO_THE_ANSWER, "amuses", "shows"),
    "milk_not_added": (*TO_THE_EFFECT, "wrong", "hidden"),
    "eggs_no_list": (*TO_THE_EFFECT, "wrong", "lacks"),
    "sunday_weather": (*TO_THE_ANSWER, "other", "shows"),
    "time_in_portland_maine": ("no", "no", "told"),
    "next_game": ("no", "no", "told"),
    "time_in_portland": ("no", "no", "untold"),
    "call_bank": ("no", "no", "untold"),
}
NOTED = {
    "flower_shop": SubFlag.WORLD_KNOWLEDGE_GAP,
    "longest_river": SubFlag.TOO_MUCH,
    "two_lights": SubFlag.TOO_LITTLE,
    "alarm_cannot": SubFlag.CORE_CAPABILITY_MISSING,
    "eggs_no_list": SubFlag.CORE_CAPABILITY_MISSING,
    "milk_not_added": SubFlag.UNRECOVERABLE,
}


@pytest.mark.parametrize("exercise", BUILT_IN_EXERCISES, ids=[exercise.id for exercise in BUILT_IN_EXERCISES])
def test_the_aid_agrees_with_every_exercise(exercise: Exercise) -> None:
    state = walk(replace(HEARD, core_capability=exercise.core_capability), *WALKS[exercise.id])
    assert state.ending is not None, state.path
    assert state.ending.category is exercise.category
    if exercise.id in NOTED:
        assert state.ending.sub_flags == (NOTED[exercise.id],)


def test_each_category_is_met_at_least_twice() -> None:
    met = Counter(exercise.category for exercise in BUILT_IN_EXERCISES)
    assert set(met) == set(Category)
    assert min(met.values()) == 2
    assert set(WALKS) == {exercise.id for exercise in BUILT_IN_EXERCISES}
    assert len(WALKS) == len(BUILT_IN_EXERCISES)


def test_exercises_can_be_spoken_and_are_explained_in_a_sentence_or_two() -> None:
    for exercise in BUILT_IN_EXERCISES:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", exercise.id)
        assert not re.search(r"[\d:/*\[\]()]", exercise.query + exercise.response), exercise.id
        assert exercise.query[0].isupper()
        assert exercise.query[-1] in ".?"
        assert 1 <= len(re.findall(r"[.?!](?:\s|$)", exercise.why)) <= 3, exercise.id
        assert len(exercise.why) <= 150, exercise.id
        assert exercise.category not in exercise.accept


def test_exercises_do_not_repeat_examples_of_the_guide() -> None:
    shown = {example.response for text in GUIDE.values() for example in text.examples}
    assert not shown & {exercise.response for exercise in BUILT_IN_EXERCISES}

    def plain(text: str) -> str:
        return re.sub(r"[^a-z ]", "", text.lower())

    theirs = {plain(example.query) for example in EXAMPLES}
    ours = [exercise.query for exercise in BUILT_IN_EXERCISES] + [
        example.query for text in GUIDE.values() for example in text.examples
    ]
    assert not theirs & {plain(query) for query in ours}
