"""Results of intents and slots in a file; shards that are put together."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.model.understanding import Corpus, Detail, Slot, Utterance
from harness.understanding.counts import Rule
from harness.understanding.figures import SEED
from harness.understanding.reports.score_json import read_score_json, score_json
from harness.understanding.reports.score_text import SystemReport
from harness.understanding.scoring import SystemCounts, add_system_counts, count_system, score
from tests.files import file_with
from tests.unit.understanding.reports.frames import INTENTS, made

RULES = tuple(Rule(detail=detail) for detail in Detail)


def counts_of(gold: Corpus, predicted: Corpus, rules: tuple[Rule, ...] = RULES) -> SystemCounts:
    return count_system([score(gold, predicted, rule) for rule in rules])


def written(counts: SystemCounts) -> str:
    return score_json([SystemReport(replace(counts, gold="g", predicted="p"), zero=SEED, labels=INTENTS)])


def cut(gold: Corpus, predicted: Corpus, parts: int, seed: int) -> list[tuple[Corpus, Corpus]]:
    """At random; none of the parts is empty. A prediction goes with its gold, one without gold to the first part."""
    draw = random.Random(seed)
    part_of = {utterance.id: draw.randrange(parts) for utterance in gold.utterances}
    # One utterance for each part, so that none is empty.
    part_of |= {utterance.id: part for part, utterance in enumerate(gold.utterances[:parts])}
    return [
        (
            Corpus(f"g{part}", tuple(utterance for utterance in gold.utterances if part_of[utterance.id] == part)),
            Corpus(
                f"p{part}",
                tuple(prediction for prediction in predicted.utterances if part_of.get(prediction.id, 0) == part),
            ),
        )
        for part in range(parts)
    ]


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), parts=st.integers(2, 6))
def test_shards_put_together_in_any_order_are_the_whole_byte_for_byte(seed: int, parts: int) -> None:
    gold, predicted = made(seed, 120)
    shards = [counts_of(*pair) for pair in cut(gold, predicted, parts, seed)]
    whole = written(counts_of(gold, predicted))
    random.Random(seed).shuffle(shards)
    assert written(add_system_counts(shards)) == whole


def test_a_written_shard_is_read_back(tmp_path: Path) -> None:
    counts = counts_of(*made(1, 80))
    path = file_with(tmp_path / "a.json", score_json([SystemReport(counts, zero=SEED, labels=INTENTS)]))
    report = read_score_json(path, "a.json")
    assert report.systems == (counts,)
    assert (report.zero, report.labels) == (SEED, INTENTS)


def test_a_shard_whose_predictions_tell_no_slots_is_refused() -> None:
    first, (other_gold, other_predicted) = cut(*made(1, 40, slots=False), 2, 1)
    without_slots = Corpus("p", tuple(replace(utterance, tags=None) for utterance in other_predicted.utterances))
    with pytest.raises(ValueError, match="slots are predicted in the first file, but not in this file"):
        add_system_counts([counts_of(*first), counts_of(other_gold, without_slots)])


def test_a_shard_whose_predictions_have_no_values_is_refused() -> None:
    """Its gold values would count as wrong in the whole, and not at all in the shard."""
    first, (other_gold, other_predicted) = (
        tuple(
            Corpus(side, (Utterance(id_, ("play", id_), ("play",), slots=slots),))
            for side, slots in (("g", (Slot("genre", id_),)), ("p", predicted))
        )
        for id_, predicted in (("jazz", (Slot("genre", "jazz"),)), ("rock", ()))
    )
    without_slots = Corpus("g", (Utterance("quiet", ("quiet",), ("quiet",)),))
    shards = [
        counts_of(without_slots, Corpus("p", (Utterance("quiet", intents=("quiet",), slots=()),))),
        counts_of(*first),
    ]
    assert add_system_counts(shards).values_given
    with pytest.raises(ValueError, match="in the first file, but not in this file"):
        add_system_counts([add_system_counts(shards), counts_of(other_gold, other_predicted)])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not JSON"),
        ("[]", "this file does not contain understanding scores"),
        ('{"kind": "understanding", "format": 99}', "the file has format 99, but this version reads 1"),
        (
            '{"kind": "understanding", "format": 1}',
            "the file has no key 'details': it is damaged, or an earlier version wrote it",
        ),
        ("\xff", "the file is damaged"),
    ],
)
def test_files_that_are_not_shards_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = file_with(tmp_path / "a.json", text.encode("latin-1"))
    with pytest.raises(InputError, match=problem):
        read_score_json(path, "a.json")


@given(data=st.data())
def test_a_file_with_one_value_changed_is_read_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = json.loads(score_json([SystemReport(counts_of(*made(1, 6)), zero=SEED)]))
    node = tree  # from the root, a random way down; the value at its end is changed
    while True:
        key = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.integers(0, 9)) == 0:
            break
        node = node[key]
    node[key] = data.draw(
        st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=2) | st.just([]) | st.just({})
    )
    path = file_with(tmp_path_factory.getbasetemp() / "changed.json", json.dumps(tree))
    try:
        report = read_score_json(path, "a.json")
    except InputError:
        return
    assert report.systems
