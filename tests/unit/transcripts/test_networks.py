"""Networks of words aligned; that sclite aligns them so is held in tests/conformance."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.model.errors import InputError, Place
from harness.model.transcript import AlignedWord, Edit
from harness.transcripts.alignment import align, side_by_side
from harness.transcripts.chosen_readings import choose_readings
from harness.transcripts.networks import (
    MAX_CELLS,
    MAX_DEPTH,
    MAX_WORDS,
    WordNetwork,
    align_networks,
    align_readings,
    chain,
    is_plain,
    parse,
)
from harness.transcripts.readings import Readings, is_single
from tests.unit.transcripts.network_texts import pairs

PRICES = {Edit.CORRECT: 0, Edit.SUBSTITUTION: 4, Edit.DELETION: 3, Edit.INSERTION: 3}
PIECES = st.lists(
    st.sampled_from("aabbc")
    | st.lists(st.lists(st.sampled_from("abc"), max_size=3).map(tuple), min_size=2, max_size=3).map(tuple),
    max_size=8,
).map(tuple)
WORDS = st.lists(st.sampled_from(["a", "b", "c", "ab", "-", "(see", "/"]), max_size=12)


def verbatim(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def network(text: str) -> WordNetwork:
    return parse(text, verbatim)


def shown(words: tuple[AlignedWord, ...]) -> str:
    return " ".join(f"{word.edit.value}:{word.reference}|{word.hypothesis}" for word in words)


def written_ways(network: WordNetwork) -> set[tuple[str, ...]]:
    """Every way through a network, in words; nothing is an @."""
    ways_to_node: list[set[tuple[str, ...]]] = [{()}]
    for arc in network.arcs:
        before = {way for number in network.entering[arc.node] for way in ways_to_node[number]}
        ways_to_node.append({(*way, arc.written) for way in before})
    return {way for number in network.entering[-1] for way in ways_to_node[number]}


def ways(word_network: WordNetwork) -> set[tuple[str, ...]]:
    """Every way through a network, in words, without nothing."""
    return {tuple(word for word in way if word != "@") for way in written_ways(word_network)}


def price(words: tuple[AlignedWord, ...]) -> int:
    return sum(PRICES[word.edit] for word in words)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "expected"),
    [
        ("a { b / c d } e", "a c d e", "C:a|a C:c|c C:d|d C:e|e"),
        ("{ a / b }", "x", "S:a|x"),
        ("{ a b / c }", "x", "S:c|x"),
        ("{ a b / c }", "", "D:c|"),
        ("{ a / @ }", "", ""),
        ("{ @ / a }", "a", "C:a|a"),
        ("a { uh / @ } b", "a b", "C:a|a C:b|b"),
        ("a b", "a { b / c } { d / @ }", "C:a|a C:b|b"),
        ("{ a / b }", "{ c / b }", "C:b|b"),
        # Of equally good ways the reference's first, then the hypothesis's.
        ("{ a / b } c", "{ b / a } c", "C:a|a C:c|c"),
        ("a { b / { c / d } }", "a d", "C:a|a C:d|d"),
        ("a b;tag", "a b", "C:a|a C:b|b"),
        ("a @ b", "@ a b @", "C:a|a C:b|b"),
        ("", "{ a / b c }", "I:|a"),
        ("{ x y / a }", "z y", "S:x|z C:y|y"),
        # Brackets and hyphens are letters until they are asked to mean something.
        ("a (b)", "a b", "C:a|a S:(b)|b"),
        ("sho-", "show", "S:sho-|show"),
    ],
)
def test_the_cheapest_way_is_taken(reference: str, hypothesis: str, expected: str) -> None:
    assert shown(align_networks(network(reference), network(hypothesis))) == expected


@pytest.mark.parametrize(
    ("reference", "hypothesis", "expected"),
    [
        ("a (b) c", "a c", "C:a|a C:(b)| C:c|c"),
        ("a (b) c", "a b c", "C:a|a C:(b)|b C:c|c"),
        ("a (b) c", "a x c", "C:a|a S:(b)|x C:c|c"),
        ("a c", "a (b) c", "C:a|a C:|(b) C:c|c"),
        ("{ (a) b / c } d", "b d", "C:(a)| C:b|b C:d|d"),
        ("a (b c) d", "a d", "C:a|a D:(b| D:c)| C:d|d"),
    ],
)
def test_words_in_brackets_may_be_left_out(reference: str, hypothesis: str, expected: str) -> None:
    assert shown(align_networks(network(reference), network(hypothesis), optional_words=True)) == expected


@pytest.mark.parametrize(
    ("reference", "hypothesis", "edit"),
    [
        ("sho-", "show", "C"),
        ("-ow", "show", "C"),
        ("show", "sho-", "C"),
        ("show", "-ow", "C"),
        ("sho-", "shot-", "C"),
        ("sho-", "sh", "S"),
        ("-ow", "w", "S"),
        ("sh-ow", "sh", "S"),
        ("-", "show", "S"),
        ("{ x / sho- }", "show", "C"),
        ("(sho-)", "show", "C"),
        ("(-ow)", "show", "S"),
    ],
)
def test_a_fragment_is_correct_against_a_word_that_begins_or_ends_so(
    reference: str, hypothesis: str, edit: str
) -> None:
    words = align_networks(network(reference), network(hypothesis), optional_words=True, fragments=True)
    assert [word.edit for word in words] == [edit]


def test_words_that_count_as_one_steer_the_alignment() -> None:
    def same(word: str, other: str) -> bool:
        return word.strip("<>") == other.strip("<>")

    reference, hypothesis = network("<WHAT> { IS / <WAS> } @ NO"), network("WHAT WAS")
    assert shown(align_networks(reference, hypothesis, same)) == "C:<WHAT>|WHAT C:<WAS>|WAS D:NO|"
    assert shown(align_networks(reference, hypothesis)) == "D:<WHAT>| S:IS|WHAT S:NO|WAS"


def test_equivalent_words_never_match_an_empty_alternative() -> None:
    words = align_networks(network("{ a / @ } b"), network("x b"), lambda word, other: "@" in (word, other))
    assert shown(words) == "I:|x C:b|b"


def test_brackets_outlive_a_normalisation_that_takes_them_off_only_where_they_count() -> None:
    def plain(text: str) -> tuple[str, ...]:
        return tuple(text.replace("(", " ").replace(")", " ").lower().split())

    reference, hypothesis = parse("A (B) C", plain), parse("A C", plain)
    assert shown(align_networks(reference, hypothesis)) == "C:a|a D:b| C:c|c"
    assert shown(align_networks(reference, hypothesis, optional_words=True)) == "C:a|a C:(b)| C:c|c"


@given(WORDS, WORDS, st.booleans())
def test_texts_without_marks_align_as_everywhere(reference: list[str], hypothesis: list[str], optional: bool) -> None:
    alignment = align_networks(network(" ".join(reference)), network(" ".join(hypothesis)), optional_words=optional)
    assert alignment == side_by_side(reference, hypothesis, align(reference, hypothesis))


@pytest.mark.parametrize("depth", [1, 2])
def test_no_other_alignment_is_cheaper(depth: int) -> None:
    references, hypotheses = pairs(depth, 250, depth=depth, longest=4)
    for reference, hypothesis in zip(map(network, references), map(network, hypotheses), strict=True):
        words = align_networks(reference, hypothesis)
        through, heard_ways = ways(reference), ways(hypothesis)
        assert tuple(word.reference for word in words if word.reference) in through
        assert tuple(word.hypothesis for word in words if word.hypothesis) in heard_ways
        least = min(price(side_by_side(way, other, align(way, other))) for way in through for other in heard_ways)
        assert price(words) == least


def test_more_pairs_of_words_than_the_limit_are_refused_with_the_place_of_the_reference() -> None:
    hypothesis = network("{ a / b }")
    few = parse("a " * 30_000, verbatim, Place("ref.trn", 4))
    assert len(align_networks(few, hypothesis)) == 30_000
    long = network("b " * (MAX_CELLS // 30_000))
    with pytest.raises(InputError, match="too many") as caught:
        align_networks(few, long)
    assert caught.value.place == Place("ref.trn", 4)
    assert "Split" in caught.value.remedy


MARKS = st.text(st.sampled_from("{}/@();\\ ab-\n\xa0é"), max_size=60)


def shouted(text: str) -> tuple[str, ...]:
    return tuple(text.upper().replace("7", "SE VEN").replace("UH", "").split())


@pytest.mark.parametrize(
    "text",
    ["", "what does C U mean", "and/or", "a / b", "me@home", "(see below", "below)", "( a )", "sho- -ow", "%hes", "a*"],
)
def test_a_text_without_marks_is_plain(text: str) -> None:
    assert is_plain(text)
    assert written_ways(parse(text, verbatim)) == {verbatim(text)}
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
def test_every_wording_of_a_text_is_listed(text: str, expected: set[str]) -> None:
    assert {" ".join(way) for way in written_ways(parse(text, verbatim))} == expected


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
    assert {" ".join(way) for way in written_ways(parse(text, shouted))} == expected


def test_words_between_marks_are_normalised_together() -> None:
    normalised: list[str] = []

    def normalise(text: str) -> tuple[str, ...]:
        normalised.append(text)
        return verbatim(text)

    parse("one hundred  and five { o clock / a m } (uh) sharp now;t", normalise)
    assert normalised == ["one hundred  and five", "o clock", "a m", "(uh)", "uh", "sharp", "now"]


@pytest.mark.parametrize(
    ("text", "column", "message"),
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
        ("x{ a / b }", 2, "attached"),
        ("{ a x{b} / c }", 6, "attached"),
        ("/{ a / b }", 2, "attached"),
        ("{ " * (MAX_DEPTH + 1), 2 * MAX_DEPTH + 1, "deep"),
        ("{" * 1_000_000, MAX_DEPTH + 1, "deep"),
    ],
)
def test_network_mistakes_are_reported_with_column_and_remedy(text: str, column: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse(text, verbatim, Place("ref.trn", 7))
    assert caught.value.place == Place("ref.trn", 7, column)
    assert caught.value.remedy


def test_braces_may_lie_as_deep_as_the_limit() -> None:
    network = parse("{ " * MAX_DEPTH + "a" + " / b }" * MAX_DEPTH, verbatim)
    assert written_ways(network) == {("a",), ("b",)}
    assert len(network.entering[-1]) == MAX_DEPTH + 1


def test_more_words_than_the_limit_are_refused() -> None:
    alternatives = "{ a / b } " * (MAX_WORDS // 2)
    assert len(parse(alternatives, verbatim).arcs) == MAX_WORDS
    with pytest.raises(InputError, match=f"{MAX_WORDS:,}"):
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
    with pytest.raises(InputError, match=r"b.trn:3: a text with marks or fragments has more than"):
        chain(("a",) * (MAX_WORDS + 1), Place("b.trn", 3))


@given(PIECES, PIECES, PIECES, PIECES)
@example(("a", "b"), ("b",), (), ("c",))
@example(("a",), ("a", (("b",), ("c",))), (("c",),), ("a",))
def test_only_the_window_between_common_words_is_read(
    before: Readings, window: Readings, heard: Readings, behind: Readings
) -> None:
    reference, hypothesis = before + window + behind, before + heard + behind
    if not (is_single(reference) and is_single(hypothesis)):
        assert align_readings(reference, hypothesis) == align_networks(chain(reference), chain(hypothesis))


@given(st.lists(st.tuples(PIECES, PIECES), max_size=4))
@example([((("a",), ("b",)), ("c",)), (("a",), ((("b",), ("a", "c")),))])
@example([(("b", (("a", "c"), ("c",), ("c", "a"))), ((("c",), ("b",)), "a"))])
def test_chosen_readings_are_those_of_the_cheapest_way_through_both_networks(
    texts: list[tuple[Readings, Readings]],
) -> None:
    for (reference, hypothesis), chosen in zip(texts, choose_readings(texts), strict=True):
        if chosen is not None:
            words, heard = map(verbatim, chosen)
            steps = side_by_side(words, heard, align(words, heard))
            assert steps == align_networks(chain(reference), chain(hypothesis))


def test_networks_align_readings_without_words_and_many_choices() -> None:
    choices = ((("a",), ("b",)),) * 7
    assert list(choose_readings([(("a", ((), ("b",))), ("b",)), (choices, ("a",)), (choices[:6], ("a",))])) == [
        None,
        None,
        ("a a a a a a", "a"),
    ]
