"""Generated corpora: the same from the same seed, each sentence once, and as difficult as the grammar asks."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.understanding import Chunking, Corpus, Utterance
from harness.understanding.counts import chunks
from harness.understanding.files.grammar_file import load_grammar, load_grammars
from harness.understanding.grammar import fingerprint, generate

GRAMMARS = Path(__file__).parents[3] / "scenarios" / "understanding"
SIZES = {"train": 4000, "dev": 500, "test": 1000}
DEFAULT = "147e194cc6d8e318c819853c17e30fb748309fddf2687c2d9c4357c7a1542e2f"
"""sha256 of the corpus that `harness understanding generate scenarios/understanding` makes with seed 1."""


@cache
def default() -> Corpus:
    return generate(load_grammars(sorted(GRAMMARS.glob("*.yaml"))), 1, SIZES)


def of(split: str) -> list[Utterance]:
    return [one for one in default().utterances if dict(one.groups)["split"] == split]


def small(folder: Path, text: str, seed: int = 1, **sizes: int) -> Corpus:
    path = folder / "grammar.yaml"
    path.write_text(text, encoding="utf-8")
    return generate((load_grammar(path),), seed, sizes)


NUMBERS = """\
grammar: numbers
habits: {two_intents: 0, corrected: CORRECTED, corrections: [rather], false_starts: STARTS, restarts: [again]}
values: {n: {spoken: number, from: 1, to: 999}}
intents: [{intent: count, say: ["count to {n} now"]}]
"""


def test_the_default_corpus_is_pinned() -> None:
    assert fingerprint(default()) == DEFAULT


def test_a_split_does_not_depend_on_the_size_of_those_after_it(tmp_path: Path) -> None:
    text = NUMBERS.replace("CORRECTED", "0.5").replace("STARTS", "0.5")
    some = small(tmp_path, text, train=50, test=20)
    more = small(tmp_path, text, train=50, test=200)
    assert some.utterances == more.utterances[:70]
    assert small(tmp_path, text, seed=2, train=50).utterances[:50] != some.utterances[:50]


def test_no_sentence_is_there_twice() -> None:
    texts = Counter(one.text for one in default().utterances)
    assert texts.most_common(1)[0][1] == 1
    assert Counter(dict(one.groups)["split"] for one in default().utterances) == SIZES


def test_every_label_is_learned_and_some_are_rare() -> None:
    learned, tested = (
        Counter(label for one in of(split) for label in one.intents or ()) for split in ("train", "test")
    )
    assert set(tested) <= set(learned)
    assert len(learned) == 51
    assert max(learned.values()) > 30 * min(learned.values())


def test_a_share_has_two_intents_and_what_stands_alone_does() -> None:
    share = sum(len(one.intents or ()) > 1 for one in default().utterances) / len(default().utterances)
    assert 0.12 < share < 0.17
    assert all(
        one.intents == ("discourse_marker",)
        for one in default().utterances
        if "discourse_marker" in (one.intents or ())
    )


def test_slots_say_what_the_tags_say() -> None:
    for one in default().utterances:
        found = [(it.concept, it.start, it.end) for it in chunks(one.tags or (), Chunking.IOB2)]
        assert found == [(slot.concept, slot.start, slot.end) for slot in one.slots or ()]


def test_numbers_are_normalised_and_specifiers_told_apart() -> None:
    values = {
        (slot.concept, " ".join(one.words[slot.start : slot.end])): slot.value
        for one in default().utterances
        for slot in one.slots or ()
    }
    assert values["level", "sixty"] == "60"
    assert values["time-start", "half past seven"] == "7:30"
    assert values["room", "lounge"] == "living room"
    concepts = {concept for concept, _ in values}
    assert {"time-start", "time-end", "city-from", "city-to", "date-start", "date-end"} <= concepts


def test_some_values_come_in_the_test_split_alone() -> None:
    said = {split: {" ".join(one.words) for one in of(split)} for split in SIZES}
    for unseen in ("winter tyres", "saint malo", "violet hill choir"):
        assert not any(unseen in text for text in said["train"] | said["dev"])
        assert any(unseen in text for text in said["test"])


def test_a_value_that_is_taken_back_is_no_slot(tmp_path: Path) -> None:
    corpus = small(tmp_path, NUMBERS.replace("CORRECTED", "1").replace("STARTS", "0"), test=60)
    both = [one for one in corpus.utterances if "rather" in one.words]
    assert len(both) > 50
    for one in both:
        (slot,) = one.slots or ()
        assert slot.start == one.words.index("rather") + 1
        assert slot.end == len(one.words) - 1


def test_a_false_start_is_no_slot(tmp_path: Path) -> None:
    corpus = small(tmp_path, NUMBERS.replace("CORRECTED", "0").replace("STARTS", "1"), test=60)
    for one in corpus.utterances:
        assert one.words.count("count") == 2
        begins = len(one.words) - 1 - one.words[::-1].index("count")
        (slot,) = one.slots or ()
        assert slot.start == begins + 2


def test_a_grammar_that_cannot_give_so_many_is_refused(tmp_path: Path) -> None:
    text = NUMBERS.replace("CORRECTED", "0").replace("STARTS", "0").replace("999", "40")
    with pytest.raises(InputError, match="hardly give more than 40 different sentences"):
        small(tmp_path, text, train=30, test=20)
    assert len(small(tmp_path, text, train=30).utterances) == 30
