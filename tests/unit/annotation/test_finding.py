"""Utterances found by their words: in any case, in their order, with the labels that may be seen."""

from __future__ import annotations

from harness.annotation.ledger import Shares
from harness.annotation.worklist import FoundUtterance, find, has_words
from harness.model.annotation import Adjudicated, Labelled
from tests.unit.annotation.sittings import Bench, imported, utterances


def found(bench: Bench, words: str, who: str = "ann", *, settles: bool = False) -> tuple[FoundUtterance, ...]:
    shares = Shares(bench.project, utterances(bench.count))
    return find(utterances(bench.count), words, bench.ledger, shares, who, adjudicating=settles)


def test_words_are_a_piece_of_the_text_in_any_case() -> None:
    assert has_words("Grüße aus der Straße", "STRASSE")
    assert has_words("yes please", "s p")
    assert not has_words("yes please", "please yes")


def test_ones_own_are_found_by_words_or_id_in_the_order_of_the_data() -> None:
    rows = [Labelled("a", "ann", "u3", ("play",)), Labelled("b", "ben", "u2", ("stop",))]
    bench = Bench(count=12, rows=[*rows])
    assert [one.utterance for one in found(bench, "SAY 0")] == ["u1", "u3", "u4", "u5", "u6", "u7", "u8", "u9"]
    assert [one.utterance for one in found(bench, "u1")] == ["u1"], "an id is meant as a whole"
    assert found(bench, "u2") == (), "ben has labelled it"
    assert found(bench, "03") == (FoundUtterance("u3", "say 03", ("play",)),)
    assert found(bench, "u1")[0].intents is None
    assert found(bench, "nothing") == ()


def test_who_settles_finds_what_anybody_labelled_with_the_final_labels() -> None:
    bench = Bench(count=4, rows=[imported("u1", "play"), imported("u2", "stop"), imported("u4", "play")])
    bench.rows += [Labelled("b", "ben", "u4", ("stop",)), Adjudicated("c", "cem", "u2", ("thank",), ("imported u2",))]
    assert {one.utterance: one.intents for one in found(bench, "say", "dan", settles=True)} == {
        "u1": ("play",),
        "u2": ("thank",),
        "u4": None,
    }
