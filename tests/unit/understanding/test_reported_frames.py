"""Frames of devices against what was expected."""

from __future__ import annotations

import pytest

from harness.model.observation import Intent
from harness.model.record import UnderstandingResult
from harness.model.scenario import RecognitionRule
from harness.model.time import Stamp
from harness.model.transcript import Normalisation
from harness.model.trial import EvidenceSource
from harness.model.understanding import ExpectedFrame, Slot
from harness.understanding.reported_frames import (
    frame_line,
    merge_slots,
    parts,
    parts_line,
    slots_match,
    understanding_result,
    verdict_in_words,
)

RULE = RecognitionRule()


def told(name: str, *slots: tuple[str, str]) -> Intent:
    return Intent("dut", Stamp(1.0), name, slots)


@pytest.mark.parametrize(
    ("events", "intents", "frame"),
    [
        ([told("a#b", ("city", "Lyon"))], True, True),
        ([told("b#a", ("city", "lyon"))], True, True),
        ([told("a"), told("b", ("city", "Lyon"))], True, True),
        ([told("a", ("city", "Lyon")), told("b", ("city", "Lyon"))], True, True),
        ([told(""), told("a#b", ("city", "Lyon"))], True, True),
        ([told("a", ("city", "Lyon"))], False, False),
        ([told("a#b#c", ("city", "Lyon"))], False, False),
        ([told("A#b", ("city", "Lyon"))], False, False),
        ([told("a#b", ("City", "Lyon"))], True, False),
        ([told("a#b", ("city", "Paris"))], True, False),
        ([told("a#b")], True, False),
        ([told("a#b", ("city", "Lyon"), ("city", "Lyon"))], True, False),
        ([told("a#b", ("city", "Lyon"), ("day", "today"))], True, False),
        ([told("")], False, False),
    ],
)
def test_all_intents_and_all_slots_and_no_other(events: list[Intent], intents: bool, frame: bool) -> None:
    verdict = understanding_result(ExpectedFrame(("a", "b"), (Slot("city", "Lyon"),)), events, RULE)
    assert (verdict.intents_right, verdict.right, verdict.source) == (intents, frame, EvidenceSource.DEVICE)


def test_unspecified_slots_are_ignored_and_forbidden_slots_fail() -> None:
    event = told("a", ("city", "Lyon"))
    assert understanding_result(ExpectedFrame(("a",)), [event], RULE).right
    assert not understanding_result(ExpectedFrame(("a",), ()), [event], RULE).right
    assert understanding_result(ExpectedFrame(("a",), ()), [told("a")], RULE).right
    assert understanding_result(ExpectedFrame(()), [told("")], RULE).right, "nothing was to be understood"


def test_missing_intent_report_is_unknown_and_not_wrong() -> None:
    verdict = understanding_result(ExpectedFrame(("a",)), [], RULE)
    assert (verdict.intents, verdict.slots, verdict.intents_right, verdict.right) == (None, None, None, None)


def test_values_are_compared_after_the_normalisation_of_the_scenario() -> None:
    expected, event = ExpectedFrame(("t",), (Slot("duration", "ten minutes"),)), told("t", ("duration", "10 Minutes"))
    assert understanding_result(expected, [event], RULE).right
    assert not understanding_result(expected, [event], RecognitionRule(Normalisation.VERBATIM)).right
    assert understanding_result(
        ExpectedFrame(("t",), (Slot("n", "845"),)), [told("t", ("n", "eight forty five"))], RULE
    ).right
    assert not understanding_result(
        ExpectedFrame(("t",), (Slot("n", "845"),)), [told("t", ("n", "eight fifty four"))], RULE
    ).right
    signs = ExpectedFrame(("t",), (Slot("mark", "!"),))  # no words are left of them: they are compared as they are
    assert understanding_result(signs, [told("t", ("mark", "!"))], RULE).right
    assert not understanding_result(signs, [told("t", ("mark", "?"))], RULE).right


def test_a_concept_that_comes_twice_and_any_value() -> None:
    lyon, paris, some = Slot("city", "Lyon"), Slot("city", "Paris"), Slot("city")
    assert slots_match((lyon, paris), (paris, lyon), RULE)
    assert not slots_match((lyon, paris), (lyon, lyon), RULE)
    assert slots_match((lyon, some), (paris, lyon), RULE)
    assert slots_match((some, lyon), (lyon, lyon), RULE)
    assert not slots_match((some,), (), RULE)
    assert not slots_match((some,), (lyon, paris), RULE)


def test_slots_of_several_events_are_united_with_their_counts() -> None:
    a, b = Slot("a", "1"), Slot("b", "2")
    assert merge_slots([(a, b), (b, a)]) == (a, b)
    assert merge_slots([(a,), (a, a), (b,)]) == (a, a, b)
    assert merge_slots([]) == ()


def slots(*texts: str) -> tuple[Slot, ...]:
    """Of "concept=value", or "concept"."""
    pairs = (text.partition("=") for text in texts)
    return tuple(Slot(concept, value if sign else None) for concept, sign, value in pairs)


@pytest.mark.parametrize(
    ("expected_texts", "understood_texts", "signs"),
    [
        (
            ("set_timer", "duration=10 minutes"),
            ("set_timer", "duration=ten minutes"),
            '= set_timer, = duration "ten minutes"',
        ),
        (
            ("set_timer", "duration=10 minutes"),
            ("set_timer", "duration=15 minutes"),
            '= set_timer, ≠ duration "15 minutes" (wanted "10 minutes")',
        ),
        (("set_timer", "duration=10 minutes"), ("set_timer",), '= set_timer, − duration "10 minutes"'),
        (("set_timer", "duration"), ("set_timer", "duration=3 s"), '= set_timer, = duration "3 s"'),
        (("a", "x", "x=2"), ("a", "x=2", "x=1"), '= a, = x "1", = x "2"'),
        (("set_timer",), ("read_list", "item=milk"), '− set_timer, + read_list, + item "milk"'),
        (("a#b", "x=1"), ("b#c", "x=1", "x=1"), '− a, = b, + c, = x "1", + x "1"'),
        # The second milk stands for the missing bread, and not for the milk that is there.
        (
            ("add", "item=bread", "item=milk"),
            ("add", "item=milk", "item=eggs"),
            '= add, ≠ item "eggs" (wanted "bread"), = item "milk"',
        ),
        (("",), ("read_list",), "+ read_list"),
        (("read_list",), ("",), "− read_list"),
        (("",), ("",), ""),
    ],
)
def test_each_part_has_its_sign(expected_texts: tuple[str, ...], understood_texts: tuple[str, ...], signs: str) -> None:
    expected = ExpectedFrame(tuple(filter(None, expected_texts[0].split("#"))), slots(*expected_texts[1:]))
    understood = UnderstandingResult(tuple(filter(None, understood_texts[0].split("#"))), slots(*understood_texts[1:]))
    assert parts_line(parts(expected, understood, RULE)) == signs


def test_ignored_slots_are_neither_right_nor_wrong() -> None:
    expected = ExpectedFrame(("set_timer",), None)
    assert (
        parts_line(parts(expected, UnderstandingResult(("set_timer",), slots("x=1")), RULE)) == '= set_timer, · x "1"'
    )


def test_values_are_compared_as_the_scenario_compares_words() -> None:
    expected = ExpectedFrame(("set_timer",), slots("duration=10 minutes"))
    understanding = UnderstandingResult(("set_timer",), slots("duration=ten minutes"))
    assert "≠" in parts_line(parts(expected, understanding, RecognitionRule(Normalisation.PLAIN)))


def test_missing_intent_report_has_no_parts() -> None:
    assert parts(ExpectedFrame(("set_timer",)), UnderstandingResult(right=True, intents_right=True), RULE) == ()


def test_a_frame_on_one_line_is_escaped() -> None:
    assert frame_line((), ()) == "nothing"
    assert frame_line(None, None) == "nothing"
    assert frame_line(("a", "b"), slots("x=1", "y")) == "a#b (x: 1, y)"
    assert frame_line(("a\x1b[31m",), slots("x=\x07")) == r"a\e[31m (x: \x07)"
    assert "\x1b" not in parts_line(parts(ExpectedFrame(("a",)), UnderstandingResult(("\x1b]0;x\x07",)), RULE))


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (UnderstandingResult(("a",), (), True, True), "understood"),
        (UnderstandingResult(("a",), (), True, False), "intents right, slots not"),
        (UnderstandingResult(("a",), (), False, False), "not understood"),
        (UnderstandingResult(), "what it understood is unknown"),
    ],
)
def test_the_verdict_is_worded(result: UnderstandingResult, words: str) -> None:
    assert verdict_in_words(result) == words
