"""Phrases that count as others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.transcript import MOST_PAIRS, Normalisation, Rewriting
from harness.transcripts.readings import rewrite

Pair = tuple[tuple[str, ...], tuple[str, ...]]


def rewriting(**same: str) -> Rewriting:
    pairs = tuple((tuple(written.split("_")), tuple(meant.split())) for written, meant in same.items())
    return Rewriting("list", Normalisation.PLAIN, pairs)


@pytest.mark.parametrize(
    ("said", "counts_as"),
    [
        ("turn the light bulb on", "turn the lightbulb on"),
        ("light", "lamp"),
        ("light light bulb", "lamp lightbulb"),
        ("light bulb socket", "fitting of it"),
        ("uh light uh", "lamp"),
        ("bulb", "bulb"),
        ("", ""),
    ],
)
def test_the_longest_phrase_that_fits_counts_as_its_other(said: str, counts_as: str) -> None:
    list_ = rewriting(light="lamp", light_bulb="lightbulb", light_bulb_socket="fitting of it", uh="", lamp="never")
    assert " ".join(rewrite(said.split(), list_)) == counts_as


def test_what_was_rewritten_is_not_looked_at_again() -> None:
    assert rewrite(("a", "a", "b"), rewriting(a="b", b="a", b_b="c")) == ("b", "b", "a")


words = st.lists(st.sampled_from("abc"), max_size=4).map(tuple)
pairs = st.dictionaries(words.filter(bool), words, max_size=6)


@given(st.lists(st.sampled_from("abc"), max_size=12), pairs)
def test_it_is_what_trying_every_pair_from_left_to_right_gives(said: list[str], same: dict[Pair, Pair]) -> None:
    left, wanted = tuple(said), []
    while left:
        fitting = [written for written in same if left[: len(written)] == written]
        longest = max(fitting, key=len, default=None)
        wanted += same[longest] if longest else left[:1]
        left = left[len(longest or left[:1]) :]
    assert rewrite(said, Rewriting("list", Normalisation.PLAIN, tuple(same.items()))) == tuple(wanted)  # type: ignore[arg-type]


def test_a_list_that_says_two_things_of_one_phrase_is_none() -> None:
    with pytest.raises(ValueError, match="two meanings"):
        Rewriting("list", Normalisation.PLAIN, ((("a",), ("b",)), (("a",), ("c",))))
    with pytest.raises(ValueError, match="without words"):
        Rewriting("list", Normalisation.PLAIN, (((), ("b",)),))
    with pytest.raises(ValueError, match="201 pairs"):
        Rewriting("list", Normalisation.PLAIN, tuple(((str(n),), ()) for n in range(MOST_PAIRS + 1)))
