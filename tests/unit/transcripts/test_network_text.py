"""Texts with alternatives, optional words and tags, read as networks."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.model.errors import InputError, Place
from harness.transcripts.networks import MAX_DEPTH, MAX_WORDS, WordNetwork, chain, is_plain, parse

MARKS = st.text(st.sampled_from("{}/@();\\ ab-\n\xa0é"), max_size=60)


def verbatim(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def shouted(text: str) -> tuple[str, ...]:
    return tuple(text.upper().replace("7", "SE VEN").replace("UH", "").split())


def ways(network: WordNetwork) -> set[tuple[str, ...]]:
    """Every way through a network, in words."""
    found: list[set[tuple[str, ...]]] = [{()}]
    for arc in network.arcs:
        before = {way for number in network.entering[arc.node] for way in found[number]}
        found.append({(*way, arc.written) for way in before})
    return {way for number in network.entering[-1] for way in found[number]}


@pytest.mark.parametrize(
    "text",
    ["", "what does C U mean", "and/or", "a / b", "me@home", "(see below", "below)", "( a )", "sho- -ow", "%hes", "a*"],
)
def test_a_text_without_marks_is_plain(text: str) -> None:
    assert is_plain(text)
    assert ways(parse(text, verbatim)) == {verbatim(text)}
    assert parse(text, verbatim) == chain(verbatim(text))


@pytest.mark.parametrize("text", ["{ a / b }", "a}", "a {b/c}", "@", "a @ b", "(uh) a", "a (uh)", "w;tag", "w;"])
def test_a_text_with_marks_is_not(text: str) -> None:
    assert not is_plain(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a { b / c d } e", {"a b e", "a c d e"}),
        ("{a/b}", {"a", "b"}),
        ("{ and/or / @ } x", {"and x", "or x", "@ x"}),
        ("{a/b}{c/d}", {"a c", "a d", "b c", "b d"}),
        ("{a/b}c", {"a c", "b c"}),
        ("{ a { b / { c / d } } / e }", {"a b", "a c", "a d", "e"}),
        ("{ { a / b } c }", {"a c", "b c"}),
        ("and/or { x }", {"and/or x"}),
        ("a (b) c", {"a (b) c"}),
        ("w;tag;more x", {"w x"}),
        ("w; x;", {"w x"}),
        ("; ;tag", {"; ;tag"}),
        (r"a\;b c\d", {r"a;b c\d"}),
    ],
)
def test_every_way_through_a_text(text: str, expected: set[str]) -> None:
    assert {" ".join(way) for way in ways(parse(text, verbatim))} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at 7 { uh / (maybe) 7 } x", {"AT SE VEN @ X", "AT SE VEN (MAYBE) SE VEN X"}),
        ("uh { uh uh } (uh) uh;t", {"@"}),
        ("(7) uh", {"(SE VEN)"}),
    ],
)
def test_words_are_normalised_and_an_alternative_of_which_nothing_is_left_is_nothing(
    text: str, expected: set[str]
) -> None:
    assert {" ".join(way) for way in ways(parse(text, shouted))} == expected


def test_words_between_marks_are_normalised_together() -> None:
    seen: list[str] = []

    def normalise(text: str) -> tuple[str, ...]:
        seen.append(text)
        return verbatim(text)

    parse("one hundred  and five { o clock / a m } (uh) sharp now;t", normalise)
    assert seen == ["one hundred  and five", "o clock", "a m", "(uh)", "uh", "sharp", "now"]


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("a { b / c", 3, "never closed"),
        ("a { b { c } d", 3, "never closed"),
        ("a b } c", 5, "closes nothing"),
        ("a b} c", 4, "closes nothing"),
        ("{ a / b } }", 11, "closes nothing"),
        ("{ }", 3, "no word"),
        ("{ / a }", 3, "no word"),
        ("{ a / / b }", 7, "no word"),
        ("{ a / }", 7, "no word"),
        ("x{ a / b }", 2, "glued"),
        ("{ a x{b} / c }", 6, "glued"),
        ("/{ a / b }", 2, "glued"),
        ("{ " * (MAX_DEPTH + 1), 2 * MAX_DEPTH + 1, "deep"),
        ("{" * 1_000_000, MAX_DEPTH + 1, "deep"),
    ],
)
def test_what_is_wrong_is_told_with_its_column_and_what_to_do(text: str, column: int, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        parse(text, verbatim, Place("ref.trn", 7))
    assert caught.value.place == Place("ref.trn", 7, column)
    assert caught.value.remedy


def test_braces_may_lie_as_deep_as_the_limit() -> None:
    network = parse("{ " * MAX_DEPTH + "a" + " / b }" * MAX_DEPTH, verbatim)
    assert ways(network) == {("a",), ("b",)}
    assert len(network.entering[-1]) == MAX_DEPTH + 1


def test_more_words_than_the_limit_are_refused() -> None:
    alternatives = "{ a / b } " * (MAX_WORDS // 2)
    assert len(parse(alternatives, verbatim).arcs) == MAX_WORDS
    with pytest.raises(InputError, match=str(MAX_WORDS)):
        parse(alternatives + "a", verbatim)


def test_a_normalisations_error_is_moved_to_where_its_words_stand() -> None:
    def refuses(text: str) -> tuple[str, ...]:
        if "<" in text:
            raise InputError("a `<` is never closed", place=Place("<text>", 1, text.index("<") + 1), remedy="Close it")
        return verbatim(text)

    with pytest.raises(InputError, match="never closed") as caught:
        parse("{ a / b <c }", refuses, Place("ref.trn", 3, 10))
    assert caught.value.place == Place("ref.trn", 3, 18)
    assert caught.value.remedy == "Close it"


@given(MARKS | st.text())
@example("{a;/b}")
@example("{;}")
@example("(;)")
def test_any_text_is_read_or_refused_with_a_column_within_it(text: str) -> None:
    refused: list[Place | None] = []
    network = WordNetwork((), ((0,),))
    try:
        network = parse(text, verbatim)
    except InputError as error:
        refused.append(error.place)
    assert all(place is not None and 1 <= place.column <= len(text) for place in refused)
    assert not (refused and is_plain(text))
    assert all(number <= len(network.arcs) for node in network.entering for number in node)
    if is_plain(text):
        assert [arc.written for arc in network.arcs] == text.split()


def test_a_chain_may_not_have_too_many_words() -> None:
    assert len(chain(("a",) * MAX_WORDS).arcs) == MAX_WORDS
    with pytest.raises(InputError, match=r"b.trn:3: more than"):
        chain(("a",) * (MAX_WORDS + 1), Place("b.trn", 3))
