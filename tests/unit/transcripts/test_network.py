"""Networks of words aligned; that sclite aligns them so is held in tests/conformance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import InputError, Place
from harness.model.transcript import AlignedWord, Edit
from harness.transcripts.alignment import align, side_by_side
from harness.transcripts.networks import MAX_CELLS, WordNetwork, align_networks, parse
from tests.unit.transcripts.network_texts import pairs

PRICES = {Edit.CORRECT: 0, Edit.SUBSTITUTION: 4, Edit.DELETION: 3, Edit.INSERTION: 3}
WORDS = st.lists(st.sampled_from(["a", "b", "c", "ab", "-", "(see", "/"]), max_size=12)


def verbatim(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def network(text: str) -> WordNetwork:
    return parse(text, verbatim)


def shown(words: tuple[AlignedWord, ...]) -> str:
    return " ".join(f"{word.edit.value}:{word.reference}|{word.hypothesis}" for word in words)


def ways(of: WordNetwork) -> set[tuple[str, ...]]:
    """Every way through a network, in words, without nothing."""
    found: list[set[tuple[str, ...]]] = [{()}]
    for arc in of.arcs:
        before = {way for number in of.entering[arc.node] for way in found[number]}
        found.append({way if arc.nothing else (*way, arc.written) for way in before})
    return {way for number in of.entering[-1] for way in found[number]}


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


def test_words_that_count_as_one_never_count_as_nothing() -> None:
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
    found = align_networks(network(" ".join(reference)), network(" ".join(hypothesis)), optional_words=optional)
    assert found == side_by_side(reference, hypothesis, align(reference, hypothesis))


@pytest.mark.parametrize("depth", [1, 2])
def test_no_way_through_both_is_cheaper(depth: int) -> None:
    references, hypotheses = pairs(depth, 250, depth=depth, longest=4)
    for reference, hypothesis in zip(map(network, references), map(network, hypotheses), strict=True):
        words = align_networks(reference, hypothesis)
        through, said = ways(reference), ways(hypothesis)
        assert tuple(word.reference for word in words if word.reference) in through
        assert tuple(word.hypothesis for word in words if word.hypothesis) in said
        least = min(price(side_by_side(one, other, align(one, other))) for one in through for other in said)
        assert price(words) == least


def test_more_pairs_of_words_than_the_limit_are_refused_with_the_place_of_the_reference() -> None:
    hypothesis = network("{ a / b }")
    few = parse("a " * 30_000, verbatim, Place("ref.trn", 4))
    assert len(align_networks(few, hypothesis)) == 30_000
    many = network("b " * (MAX_CELLS // 30_000))
    with pytest.raises(InputError, match="too many") as caught:
        align_networks(few, many)
    assert caught.value.place == Place("ref.trn", 4)
    assert "Split" in caught.value.remedy
