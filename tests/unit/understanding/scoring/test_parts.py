"""What was understood beside what was expected."""

from __future__ import annotations

import pytest

from harness.model.record import Understood
from harness.model.scenario import Normalisation, Recognised
from harness.model.understanding import Expected, Slot
from harness.understanding.understood import compared, parts, verdict_in_words, written

RULE = Recognised()


def slots(*named: str) -> tuple[Slot, ...]:
    """Of "concept=value", or "concept"."""
    pairs = (one.partition("=") for one in named)
    return tuple(Slot(concept, value if given else None) for concept, given, value in pairs)


@pytest.mark.parametrize(
    ("wanted", "told", "said"),
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
def test_each_part_has_its_sign(wanted: tuple[str, ...], told: tuple[str, ...], said: str) -> None:
    expected = Expected(tuple(filter(None, wanted[0].split("#"))), slots(*wanted[1:]))
    understood = Understood(tuple(filter(None, told[0].split("#"))), slots(*told[1:]))
    assert compared(parts(expected, understood, RULE)) == said


def test_slots_that_nobody_looks_at_are_neither_right_nor_wrong() -> None:
    expected = Expected(("set_timer",), None)
    assert compared(parts(expected, Understood(("set_timer",), slots("x=1")), RULE)) == '= set_timer, · x "1"'


def test_values_are_compared_as_the_scenario_compares_words() -> None:
    expected = Expected(("set_timer",), slots("duration=10 minutes"))
    told = Understood(("set_timer",), slots("duration=ten minutes"))
    assert "≠" in compared(parts(expected, told, Recognised(Normalisation.PLAIN)))


def test_where_the_device_told_nothing_there_are_no_parts() -> None:
    assert parts(Expected(("set_timer",)), Understood(right=True, intents_right=True), RULE) == ()


def test_a_frame_on_one_line_is_harmless() -> None:
    assert written((), ()) == "nothing"
    assert written(None, None) == "nothing"
    assert written(("a", "b"), slots("x=1", "y")) == "a#b (x: 1, y)"
    assert written(("a\x1b[31m",), slots("x=\x07")) == r"a\e[31m (x: \x07)"
    assert "\x1b" not in compared(parts(Expected(("a",)), Understood(("\x1b]0;x\x07",)), RULE))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Understood(("a",), (), True, True), "understood"),
        (Understood(("a",), (), True, False), "intents right, slots not"),
        (Understood(("a",), (), False, False), "not understood"),
        (Understood(), "nothing says what it understood"),
    ],
)
def test_the_verdict_in_words(told: Understood, words: str) -> None:
    assert verdict_in_words(told) == words
