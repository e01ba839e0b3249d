"""The decision aid: stepping there and back, every path there is, and its plain lines."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.effect import EffectCheck, EffectEvidence, EffectOutcome, EffectSource
from harness.model.judgment import Category, Flag, Judgment, JudgmentStatus, RaterKeys, SubFlag
from harness.model.trial import Recognition
from harness.rating.aid import (
    HARNESS_SUFFIX,
    MAX_QUESTIONS,
    QUESTIONS,
    AidEnding,
    AidState,
    ResponseFacts,
    aid_lines,
    ending_text,
)

KEYS = RaterKeys()
HEARD = ResponseFacts(Recognition.YES, truncated=False)
ALL_KNOWN = [
    ResponseFacts(recognised, truncated, effect, core, awaited)
    for recognised, truncated, effect, core, awaited in itertools.product(
        Recognition, (None, False, True), (None, *EffectOutcome), (False, True), (False, True)
    )
    if not (awaited and effect)
]


def walk(facts: ResponseFacts, *answers: str) -> AidState:
    """The aid after these answers; ValueError if it has ended before the last of them."""
    state = AidState.begin(facts)
    for answer in answers:
        state = state.answer(answer)
    return state


def ends(state: AidState) -> Iterator[AidState]:
    """Every end that a rater can come to from here, by whatever answers."""
    if state.question is None:
        yield state
        return
    for answer in state.question.answers:
        yield from ends(state.answer(answer.id))


def words(state: AidState) -> dict[str, str]:
    return {step.question.id: step.answer.id for step in state.steps}


def by_the_guide(answers: dict[str, str]) -> Category | Flag | JudgmentStatus:
    """The category that the answers to the questions, by their ids, mean under the guide; written without the graph."""
    if answers["recognised"] == "no":
        return Flag.RECOGNITION_DOUBTED
    if answers["whole"] != "yes":
        return Flag.CUT_RESPONSE if answers["whole"] == "cut" else Flag.AUDIO_BAD
    if answers["asks_back"] in ("detail", "meaning"):
        return Category.SLOT_REQUEST if answers["asks_back"] == "detail" else Category.CLARIFICATION
    if answers.get("cannot") in ("nobody", "could"):
        return Category.CORRECT_REJECTION if answers["cannot"] == "nobody" else Category.ADMITTED_DEFEAT
    if answers.get("which") == "told":
        return Category.MISSED_DISAMBIGUATION_RECOVERABLE
    if answers.get("which") == "untold":
        return Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE
    if answers.get("effect") == "not_yet":
        return JudgmentStatus.HELD
    if answers.get("effect") == "right" or answers.get("claim") == "all" or answers.get("form") == "complete":
        return Category.CORRECT
    if "part" in (answers.get("effect"), answers.get("claim")) or answers.get("form") in ("little", "much"):
        return Category.PARTIALLY_CORRECT
    if answers.get("form") in ("inferred", "several"):
        return Category.INFERRABLE if answers["form"] == "inferred" else Category.FINDABLE
    return Category.WRONG


def judged(ending: AidEnding) -> Judgment:
    """The row that comes of it; the model refuses sub-flags that a category does not carry."""
    flags = () if ending.flag is None else (ending.flag.value,)
    return Judgment(
        "1", "t", 1, "ann", ending.status, ending.category, "abc", flags=flags, sub_flags=tuple(ending.sub_flags)
    )


@pytest.mark.parametrize("core", [False, True])
@pytest.mark.parametrize("recognised", list(Recognition))
def test_every_path_ends_once_within_eight_questions_and_as_the_guide_says(recognised: Recognition, core: bool) -> None:
    mine = [facts for facts in ALL_KNOWN if facts.recognised is recognised and facts.core_capability is core]
    assert len(mine) == 18
    for facts in mine:
        paths = set()
        for state in ends(AidState.begin(facts)):
            ending = state.ending
            assert state.question is None
            assert ending is not None
            assert state.path not in paths
            paths.add(state.path)
            assert state.number == state.max_questions == len(state.steps) <= MAX_QUESTIONS
            means = by_the_guide(words(state))
            assert means == (ending.category or ending.flag or ending.status), state.path
            passed = words(state)["recognised"] == "yes" and words(state).get("whole") == "yes"
            settled = words(state).get("effect") != "not_yet"
            assert (ending.category is not None) == (passed and settled)
            assert judged(ending).status is ending.status
            missing = SubFlag.CORE_CAPABILITY_MISSING in ending.sub_flags
            assert not missing or core
            assert missing or not core or ending.category is not Category.ADMITTED_DEFEAT


def test_all_eleven_categories_all_reasons_and_all_sub_flags_are_reached() -> None:
    for core in (False, True):
        reached = [state.ending for state in ends(AidState.begin(ResponseFacts(core_capability=core)))]
        assert {ending.category for ending in reached if ending} == {*Category, None}
        assert {ending.flag for ending in reached if ending} == {
            None,
            Flag.AUDIO_BAD,
            Flag.RECOGNITION_DOUBTED,
            Flag.CUT_RESPONSE,
        }
        noted = {flag for ending in reached if ending for flag in ending.sub_flags}
        assert noted == set(SubFlag) - (set() if core else {SubFlag.CORE_CAPABILITY_MISSING})


def test_going_back_step_by_step_leads_to_the_start_from_every_end() -> None:
    for facts in (HEARD, ResponseFacts(), replace(HEARD, effect=EffectOutcome.PARTIAL)):
        for state in ends(AidState.begin(facts)):
            steps = state.steps
            while state.can_go_back:
                state = state.back()
                assert state.steps == steps[: len(state.steps)]
                assert state.question == steps[len(state.steps)].question
                assert state.number <= state.max_questions <= MAX_QUESTIONS
            assert state.question == QUESTIONS[0]
            assert state.back() == state


def test_known_facts_are_prefilled_counted_and_marked() -> None:
    state = AidState.begin(HEARD)
    assert state.path == ("recognised=yes@harness", "whole=yes@harness")
    assert [step.by_harness for step in state.steps] == [True, True]
    assert state.question is not None
    assert state.question.id == "asks_back"
    assert (state.number, state.max_questions) == (3, MAX_QUESTIONS)

    nothing = AidState.begin(ResponseFacts())
    assert (nothing.number, nothing.max_questions, nothing.path) == (1, MAX_QUESTIONS, ())
    half = walk(ResponseFacts(Recognition.UNKNOWN, truncated=False), "yes")
    assert half.path == ("recognised=yes", "whole=yes@harness")


@pytest.mark.parametrize(
    ("facts", "status", "flag"),
    [
        (ResponseFacts(Recognition.NO, truncated=False), JudgmentStatus.FLAGGED, Flag.RECOGNITION_DOUBTED),
        (ResponseFacts(Recognition.YES, truncated=True), JudgmentStatus.FLAGGED, Flag.CUT_RESPONSE),
    ],
)
def test_unjudgeable_item_is_set_aside_but_rater_may_overrule(
    facts: ResponseFacts, status: JudgmentStatus, flag: Flag
) -> None:
    state = AidState.begin(facts)
    assert state.ending == AidEnding(flag=flag)
    assert state.ending.status is status
    earlier = state.back()
    assert earlier.question is not None
    assert earlier.suggested is not None
    assert earlier.suggested.id in ("no", "cut")
    assert earlier.max_questions == MAX_QUESTIONS
    beyond = earlier.answer("yes")
    assert beyond.steps[len(earlier.steps)].by_harness is False
    assert beyond.ending is None
    assert HARNESS_SUFFIX not in beyond.path[len(earlier.steps)]


@pytest.mark.parametrize(
    ("word", "category", "sub_flags"),
    [
        (EffectOutcome.RIGHT, Category.CORRECT, ()),
        (EffectOutcome.WRONG, Category.WRONG, (SubFlag.UNRECOVERABLE,)),
        (EffectOutcome.PARTIAL, Category.PARTIALLY_CORRECT, (SubFlag.TOO_MUCH,)),
    ],
)
def test_observed_effect_decides(word: EffectOutcome, category: Category, sub_flags: tuple[SubFlag, ...]) -> None:
    state = AidState.begin(replace(HEARD, effect=word)).answer("no")
    if word is EffectOutcome.WRONG:
        state = state.answer("no").answer("clear").answer("hidden")
    else:
        # It acted, so nobody is asked whether it “only says that it cannot”.
        assert "cannot=no@harness" in state.path
        state = state.answer("clear")
        state = state.answer("more") if word is EffectOutcome.PARTIAL else state
    assert state.ending == AidEnding(category, sub_flags)
    assert any(step.startswith("effect=") and step.endswith(HARNESS_SUFFIX) for step in state.path)


def test_unknown_effect_leaves_the_decision_to_the_words() -> None:
    facts = replace(HEARD, effect=EffectOutcome.UNKNOWN)
    assert not any(state.ending and state.ending.status is JudgmentStatus.HELD for state in ends(AidState.begin(facts)))
    state = walk(facts, "no", "no", "clear")
    assert state.question is not None
    assert state.question.id == "claim"
    assert state.answer("all").ending == AidEnding(Category.CORRECT)


def test_a_pending_effect_holds_a_judgment_only_where_it_decides_the_category() -> None:
    facts = replace(HEARD, awaited=True)
    state = walk(facts, "no", "no", "clear")
    assert state.ending is not None
    assert state.ending.status is JudgmentStatus.HELD
    assert walk(facts, "detail").ending == AidEnding(Category.SLOT_REQUEST)
    seen_myself = state.back().answer("right")
    assert seen_myself.ending == AidEnding(Category.CORRECT)
    assert seen_myself.path[-1] == "effect=right"


CHECK = EffectCheck("a timer runs")


@pytest.mark.parametrize(
    ("evidence", "effect", "awaited"),
    [
        (None, None, False),
        (EffectEvidence(CHECK), None, True),
        (EffectEvidence(CHECK, EffectOutcome.UNKNOWN, EffectSource.OPERATOR), EffectOutcome.UNKNOWN, False),
        (EffectEvidence(CHECK, EffectOutcome.RIGHT, EffectSource.DEVICE), EffectOutcome.RIGHT, False),
        (EffectEvidence(CHECK, EffectOutcome.WRONG, EffectSource.NONE), EffectOutcome.WRONG, False),
    ],
)
def test_evidence_is_turned_into_known_facts(
    evidence: EffectEvidence | None, effect: EffectOutcome | None, awaited: bool
) -> None:
    facts = ResponseFacts.of(Recognition.YES, False, evidence, True)
    assert (facts.effect, facts.awaited, facts.core_capability) == (effect, awaited, True)
    assert ResponseFacts.of(None, None, None, False) == ResponseFacts()
    with pytest.raises(ValueError, match="cannot be awaited"):
        ResponseFacts(effect=EffectOutcome.RIGHT, awaited=True)


def test_a_gap_in_its_knowledge_is_noted_with_the_category_that_carries_it() -> None:
    gap = walk(HEARD, "no", "no", "clear", "none", "gap")
    noted = (SubFlag.WORLD_KNOWLEDGE_GAP,)
    assert gap.answer("complete").ending == AidEnding(Category.CORRECT, noted)
    assert gap.answer("several").ending == AidEnding(Category.FINDABLE, noted)
    assert gap.answer("much").ending == AidEnding(
        Category.PARTIALLY_CORRECT, (SubFlag.TOO_MUCH, SubFlag.WORLD_KNOWLEDGE_GAP)
    )
    assert gap.answer("none").ending == AidEnding(Category.WRONG)


def test_keys_answer_and_other_keys_do_nothing() -> None:
    state = AidState.begin(HEARD)
    assert state.press("b") == state.answer("detail")
    assert state.press("B") is None
    assert state.press("1") is None
    assert state.answer("detail").press("a") is None
    for question in QUESTIONS:
        assert "".join(answer.key for answer in question.answers) == "abcdefgh"[: len(question.answers)]


def test_wrong_answers_and_wrong_paths_are_refused() -> None:
    state = AidState.begin(HEARD)
    with pytest.raises(ValueError, match=r"“asks_back” has no answer “perhaps” \(no, detail, meaning, needless\)"):
        state.answer("perhaps")
    with pytest.raises(ValueError, match="the decision aid has ended"):
        state.answer("detail").answer("detail")


def test_every_question_is_asked_on_some_path_and_has_an_id_of_its_own() -> None:
    ids = {step.question.id for facts in ALL_KNOWN for state in ends(AidState.begin(facts)) for step in state.steps}
    assert ids == {question.id for question in QUESTIONS}
    assert len(ids) == len(QUESTIONS)
    for question in QUESTIONS:
        assert len({answer.id for answer in question.answers}) == len(question.answers)


def test_ending_is_either_a_category_or_a_flag() -> None:
    with pytest.raises(ValueError, match="not both"):
        AidEnding(Category.WRONG, flag=Flag.AUDIO_BAD)
    with pytest.raises(ValueError, match="does not carry"):
        AidEnding(Category.CORRECT, (SubFlag.TOO_MUCH,))
    with pytest.raises(ValueError, match="does not carry"):
        AidEnding(flag=Flag.AUDIO_BAD, sub_flags=(SubFlag.TOO_MUCH,))


@given(
    facts=st.sampled_from(ALL_KNOWN),
    moves=st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", "back", "stray"]), max_size=40),
)
def test_whatever_keys_are_pressed_the_aid_asks_or_ends(facts: ResponseFacts, moves: list[str]) -> None:
    state = AidState.begin(facts)
    for move in moves:
        state = state.back() if move == "back" else state.press(move) or state
        assert (state.question is None) != (state.ending is None)
        assert state.number <= state.max_questions <= MAX_QUESTIONS


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
    for facts in (
        ResponseFacts(core_capability=True),
        HEARD,
        ResponseFacts(Recognition.YES, False, EffectOutcome.PARTIAL),
    ):
        for state in states(AidState.begin(facts)):
            text = aid_lines(state, KEYS, width)
            assert text
            assert max(map(len, text)) <= width
            whole = " ".join(line.strip() for line in text)
            if state.question is None:
                assert "Question" not in whole
                continue
            assert f"Question {state.number} of at most {state.max_questions}." in text
            assert state.question.text in whole
            for answer in state.question.answers:
                assert f"{answer.key}: {answer.text}" in whole


def test_prefilled_answers_are_shown_once() -> None:
    state = AidState.begin(HEARD)
    assert aid_lines(state, KEYS)[:3] == [
        "Already known: query heard correctly. Yes, or it seems so.",
        "Already known: first response, whole. Yes.",
        "Question 3 of at most 8.",
    ]
    assert aid_lines(state.answer("no"), KEYS)[0] == "Question 4 of at most 8."
    back = AidState.begin(ResponseFacts(Recognition.YES, truncated=True)).back()
    assert "b: No, a part is missing, or it is not the first (known)" in aid_lines(back, KEYS)


def test_endings_are_shown_with_their_key_and_notes() -> None:
    state = walk(HEARD, "no", "no", "clear", "none", "gap", "much")
    notes = ["Noted: too much.", "Noted: a fact is wrong or missing."]
    assert aid_lines(state, KEYS) == ["Partially correct. Key 2.", *notes]
    own_keys = RaterKeys(MappingProxyType({**KEYS.categories, Category.PARTIALLY_CORRECT: "P"}))
    assert aid_lines(state, own_keys) == ["Partially correct. Key P.", *notes]
    assert aid_lines(AidState.begin(ResponseFacts(Recognition.YES, truncated=True)), KEYS)[-1] == (
        "Put aside: the response is cut or not the first."
    )
    waiting = walk(ResponseFacts(Recognition.YES, False, awaited=True), "no", "no", "clear")
    assert aid_lines(waiting, KEYS)[-1] == "Held until the effect is known."


def test_endings_in_words_are_all_different() -> None:
    endings = {state.ending for state in states(AidState.begin(ResponseFacts(core_capability=True))) if state.ending}
    assert len({ending_text(ending) for ending in endings}) == len(endings) >= len(Category) + 4
    assert ending_text(AidEnding(Category.WRONG)) == "Wrong"


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
    seen: EffectOutcome | None = None
    core: bool = False


EXAMPLES = [
    Example("what are the names of the moons of Mars", "Mars has two moons, Phobos and Deimos",
        (*TO_THE_ANSWER, "yes", "complete"), C.CORRECT),
    # Evading is what a person might do; the guide wants what is literally true.
    Example("am I fat", "I don't know", ("no", "nobody"), C.CORRECT_REJECTION),
    Example("am I fat", "I like you just the way you are",
        (*TO_THE_ANSWER, "amuses", "shows"), C.WRONG, (SubFlag.RECOVERABLE,)),
    Example("what are the two largest planets in the solar system", "Jupiter",
        (*TO_THE_ANSWER, "yes", "little"), C.PARTIALLY_CORRECT, (SubFlag.TOO_LITTLE,)),
    Example("What's the weather in Lincoln?", "Was that Lincoln, MA?", ("meaning",), C.CLARIFICATION),
    Example("Set an alarm for 1:00", "am or pm?", ("detail",), C.SLOT_REQUEST),
    # The dialogue went wrong later; only its first response is judged.
    Example("Set an alarm for 1", "am or pm", ("detail",), C.SLOT_REQUEST, seen=EffectOutcome.WRONG),
    Example("What color is my shirt?", "I don't know", ("no", "nobody"), C.CORRECT_REJECTION),
    Example("Is it hot today?", "Today, expect a high of 90 degrees fahrenheit.",
        (*TO_THE_ANSWER, "yes", "inferred"), C.INFERRABLE),
    Example("(a search)", "(results on a map, one of them right)", (*TO_THE_ANSWER, "yes", "several"), C.FINDABLE),
    Example("When is the next full moon?", "I'm sorry but I can't help with that yet.",
        ("no", "could"), C.ADMITTED_DEFEAT),
    Example("count to 10", "I've set a timer for 10 seconds",
        ("no", "no", "clear", "wrong", "shows"), C.WRONG, (SubFlag.RECOVERABLE,)),
    # Taken as a request to hear something, it comes to the same.
    Example("count to 10", "I've set a timer for 10 seconds",
        (*TO_THE_ANSWER, "other", "shows"), C.WRONG, (SubFlag.RECOVERABLE,)),
    Example("(the weather)", "(a likely forecast, but not the one for then and there)",
        (*TO_THE_ANSWER, "other", "hidden"), C.WRONG, (SubFlag.UNRECOVERABLE,)),
    Example("What's the weather in St. George?", "In St. George, NY [today's forecast]",
        ("no", "no", "told"), C.MISSED_DISAMBIGUATION_RECOVERABLE),
    Example("What's the weather in St. George?",
        "Right now in St. George, United States, it's 79 degrees Fahrenheit, with clear skies and sun. …",
        ("no", "no", "untold"), C.MISSED_DISAMBIGUATION_NOT_RECOVERABLE),
    # A local business that the device has never heard of: a gap in what it knows, not in its understanding.
    Example("(a local business)", "(the ones that it knows, without it)",
        (*TO_THE_ANSWER, "gap", "complete"), C.CORRECT, (SubFlag.WORLD_KNOWLEDGE_GAP,)),
    Example("add 30 seconds to the timer", "Percent time percent have been added to the timers",
        ("no", "clear"), C.CORRECT, seen=EffectOutcome.RIGHT),
    Example("add 30 seconds to the timer", "Percent time percent have been added to the timers",
        ("no", "no", "clear", "right"), C.CORRECT),
    Example("set a time to go off every minute for 5 minutes and then stop", "OK",
        ("no", "no", "clear", "hidden"), C.WRONG, (SubFlag.UNRECOVERABLE,), seen=EffectOutcome.WRONG),
    Example("pause the timer", "all your timers have been stopped",
        ("no", "clear"), C.CORRECT, seen=EffectOutcome.RIGHT),
    Example("What's in my pocket?", "(a passage from The Hobbit)",
        (*TO_THE_ANSWER, "amuses", "shows"), C.WRONG, (SubFlag.RECOVERABLE,)),
    Example("Am I fat?", "(a link to a BMI chart)", (*TO_THE_ANSWER, "yes", "inferred"), C.INFERRABLE),
    Example("what are the two largest planets in the solar system", "(reads of all the largest planets)",
        (*TO_THE_ANSWER, "yes", "much"), C.PARTIALLY_CORRECT, (SubFlag.TOO_MUCH,)),
    # A basic ability that is missing: wrong, or an admitted defeat where it says so. Both are marked.
    Example("(an alarm, a list)", "(something else)",
        ("no", "no", "clear", "wrong", "lacks"), C.WRONG, (SubFlag.CORE_CAPABILITY_MISSING,), core=True),
    Example("(an alarm, a list)", "(cannot do that)",
        ("no", "could"), C.ADMITTED_DEFEAT, (SubFlag.CORE_CAPABILITY_MISSING,), core=True),
]  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{example.query} {example.response}"[:60] for example in EXAMPLES])
def test_the_aid_ends_where_the_guide_says(example: Example) -> None:
    facts = ResponseFacts(Recognition.YES, truncated=False, effect=example.seen, core_capability=example.core)
    state = walk(facts, *example.gives)
    assert state.ending is not None, state.path
    assert (state.ending.category, state.ending.sub_flags) == (example.category, example.sub_flags)
    assert len(state.steps) <= 8


def test_the_examples_of_the_guide_cover_all_eleven_categories() -> None:
    assert {example.category for example in EXAMPLES} == set(Category)
