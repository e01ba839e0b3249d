"""Counts of shards, put together, are those of the whole; files of anything else are refused."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.model.understanding import Chunking, Corpus, Detail
from harness.understanding.counts import Rule
from harness.understanding.figures import SEED
from harness.understanding.reports.score_json import read_score_json, score_json
from harness.understanding.reports.score_text import Reported
from harness.understanding.scoring import SystemCounts, added, counted, score
from tests.unit.understanding.reports.frames import INTENTS, made

RULES = tuple(Rule(detail=detail) for detail in Detail)


def counts_of(gold: Corpus, predicted: Corpus, rules: tuple[Rule, ...] = RULES) -> SystemCounts:
    return counted([score(gold, predicted, rule) for rule in rules])


def written(counts: SystemCounts) -> str:
    return score_json([Reported(replace(counts, gold="g", predicted="p"), SEED, INTENTS)])


def cut(gold: Corpus, predicted: Corpus, parts: int, seed: int) -> list[tuple[Corpus, Corpus]]:
    """At random; none of the parts is empty. A prediction goes with its gold, one without gold to the first part."""
    draw = random.Random(seed)
    part = {one.id: draw.randrange(parts) for one in gold.utterances}
    part |= {one.id: at for at, one in enumerate(gold.utterances[:parts])}
    return [
        (
            Corpus(f"g{at}", tuple(one for one in gold.utterances if part[one.id] == at)),
            Corpus(f"p{at}", tuple(one for one in predicted.utterances if part.get(one.id, 0) == at)),
        )
        for at in range(parts)
    ]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), parts=st.integers(2, 6))
def test_shards_put_together_in_any_order_are_the_whole_byte_for_byte(seed: int, parts: int) -> None:
    gold, predicted = made(seed, 120)
    shards = [counts_of(*one) for one in cut(gold, predicted, parts, seed)]
    whole = written(counts_of(gold, predicted))
    random.Random(seed).shuffle(shards)
    assert written(added(shards)) == whole


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    counts = counts_of(*made(1, 80))
    path = tmp_path / "a.json"
    path.write_text(score_json([Reported(counts, SEED, INTENTS)]), encoding="ascii")
    found = read_score_json(path, "a.json")
    assert found.systems == (counts,)
    assert (found.zero, found.labels) == (SEED, INTENTS)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule(chunking=Chunking.IOB2), "it was scored under another rule"),
        (Rule(separator="_"), "it was scored under another rule"),
    ],
)
def test_shards_scored_otherwise_are_refused(rule: Rule, said: str) -> None:
    one, other = cut(*made(1, 40), 2, 1)
    with pytest.raises(ValueError, match=said):
        added([counts_of(*one, (RULES[0],)), counts_of(*other, (rule,))])


def test_a_shard_whose_predictions_tell_no_slots_is_refused() -> None:
    one, other = cut(*made(1, 40, slots=False), 2, 1)
    mute = Corpus("p", tuple(replace(said, tags=None) for said in other[1].utterances))
    with pytest.raises(ValueError, match="slots are predicted in the first and not in the other"):
        added([counts_of(*one), counts_of(other[0], mute)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "this is no file of scored understanding"),
        ('{"kind": "understanding", "format": 99}', "the file has format 99, and this version reads 1"),
        ('{"kind": "understanding", "format": 1}', "the file is damaged: KeyError"),
        ("\xff", "the file is damaged"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=said):
        read_score_json(path, "a.json")


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_file_with_one_value_changed_is_read_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = json.loads(score_json([Reported(counts_of(*made(1, 6)), SEED)]))
    node = tree
    while True:
        key = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.integers(0, 9)) == 0:
            break
        node = node[key]
    node[key] = data.draw(
        st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=2) | st.just([]) | st.just({})
    )
    path = tmp_path_factory.getbasetemp() / "changed.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    try:
        found = read_score_json(path, "a.json")
    except InputError:
        return
    assert found.systems
