"""Frames of devices against what was expected."""

from __future__ import annotations

import pytest

from harness.model.observation import Intent
from harness.model.scenario import Recognised
from harness.model.time import Stamp
from harness.model.transcript import Normalisation
from harness.model.trial import EvidenceSource
from harness.model.understanding import Expected, Slot
from harness.understanding.understood import fits, understood, united

RULE = Recognised()


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
    found = understood(Expected(("a", "b"), (Slot("city", "Lyon"),)), events, RULE)
    assert (found.intents_right, found.right, found.source) == (intents, frame, EvidenceSource.DEVICE)


def test_slots_that_are_not_looked_at_and_slots_that_must_not_be() -> None:
    event = told("a", ("city", "Lyon"))
    assert understood(Expected(("a",)), [event], RULE).right
    assert not understood(Expected(("a",), ()), [event], RULE).right
    assert understood(Expected(("a",), ()), [told("a")], RULE).right
    assert understood(Expected(()), [told("")], RULE).right, "nothing was to be understood"


def test_nothing_told_is_unknown_and_never_wrong() -> None:
    found = understood(Expected(("a",)), [], RULE)
    assert (found.intents, found.slots, found.intents_right, found.right) == (None, None, None, None)


def test_values_are_compared_after_the_normalisation_of_the_scenario() -> None:
    expected, event = Expected(("t",), (Slot("duration", "ten minutes"),)), told("t", ("duration", "10 Minutes"))
    assert understood(expected, [event], RULE).right
    assert not understood(expected, [event], Recognised(Normalisation.VERBATIM)).right
    assert understood(Expected(("t",), (Slot("n", "845"),)), [told("t", ("n", "eight forty five"))], RULE).right
    assert not understood(Expected(("t",), (Slot("n", "845"),)), [told("t", ("n", "eight fifty four"))], RULE).right
    signs = Expected(("t",), (Slot("mark", "!"),))  # no words are left of them: they are compared as they are
    assert understood(signs, [told("t", ("mark", "!"))], RULE).right
    assert not understood(signs, [told("t", ("mark", "?"))], RULE).right


def test_a_concept_that_comes_twice_and_any_value() -> None:
    lyon, paris, some = Slot("city", "Lyon"), Slot("city", "Paris"), Slot("city")
    assert fits((lyon, paris), (paris, lyon), RULE)
    assert not fits((lyon, paris), (lyon, lyon), RULE)
    assert fits((lyon, some), (paris, lyon), RULE)
    assert fits((some, lyon), (lyon, lyon), RULE)
    assert not fits((some,), (), RULE)
    assert not fits((some,), (lyon, paris), RULE)


def test_slots_of_several_events_are_united_with_their_counts() -> None:
    a, b = Slot("a", "1"), Slot("b", "2")
    assert united([(a, b), (b, a)]) == (a, b)
    assert united([(a,), (a, a), (b,)]) == (a, a, b)
    assert united([]) == ()
