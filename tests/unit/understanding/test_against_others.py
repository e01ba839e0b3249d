"""Another reading of BIO tags, written from what conlleval says of two neighbouring tags, to check chunks against.

A chunk ends between two words, and a chunk starts between two words: each is a rule of its own over (tag, type) of the
word before and of the word after; chunks are what lies between. The rules are those for B, I and O.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from seqeval.metrics import sequence_labeling, v1
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, Entities
from sklearn.metrics import accuracy_score, jaccard_score, precision_recall_fscore_support

from harness.model.transcript import WordCounts
from harness.model.understanding import Chunking, Slot, Utterance
from harness.transcripts.alignment import count
from harness.understanding.counts import Rule, count_frame
from harness.understanding.figures import ONE, ZERO, Averages, ZeroDivision, frame_figures
from harness.understanding.tag_chunks import chunks
from tests.conformance.scoring import sclite
from tests.conformance.scoring.sclite import needs_sclite
from tests.known import known
from tests.unit.understanding.random_frames import CONCEPTS, INTENTS, Pair, counted, pairs

ENDS = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")}
STARTS = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I")}


def conlleval_chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    spans = []
    began = -1
    before, current = "O", ""
    for index, tag in enumerate([*tags, "O"]):
        prefix, _, concept = tag.partition("-")
        changed = concept != current
        if (before, prefix) in ENDS or (before != "O" and changed):
            spans.append((current, began, index))
        if (before, prefix) in STARTS or (prefix != "O" and changed):
            began = index
        before, current = prefix, concept
    return spans


def iob2_chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """From each B- as far as its own I- reach."""
    spans = []
    for index, tag in enumerate(tags):
        if tag.startswith("B-"):
            end = index + 1
            while end < len(tags) and tags[end] == "I" + tag[1:]:
                end += 1
            spans.append((tag[2:], index, end))
    return spans


CASES = 10_000


@pytest.fixture(scope="module")
def cases_of_intents() -> list[Pair]:
    return pairs(random.Random(7), CASES, longest=0)


def matrix(frames: list[Pair], side: int) -> np.ndarray[Any, Any]:
    return np.array([[name in (pair[side].intents or ()) for name in INTENTS] for pair in frames], dtype=int)


def theirs(frames: list[Pair], average: str | None, zero: float) -> list[Any]:
    scores = precision_recall_fscore_support(matrix(frames, 0), matrix(frames, 1), average=average, zero_division=zero)
    return [np.asarray(column).tolist() for column in scores[:3]]


def ours(averages: Averages) -> tuple[float | None, ...]:
    return averages.precision, averages.recall, averages.f1


def close(actual: Any, other: Any) -> bool:
    return np.shape(actual) == np.shape(other) and np.allclose(np.asarray(actual, float), other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("zero", [ZERO, ONE])
def test_single_utterances_match_scikit_learn(cases_of_intents: list[Pair], zero: ZeroDivision) -> None:
    gold, predicted = matrix(cases_of_intents, 0), matrix(cases_of_intents, 1)
    # A row's figures are those of a label once rows are columns.
    per_utterance = precision_recall_fscore_support(gold.T, predicted.T, average=None, zero_division=zero.precision)
    accuracies = jaccard_score(gold.T, predicted.T, average=None, zero_division=zero.accuracy)
    # There are only so many different pairs of labels: each is compared once.
    rows = {(frame.intents, prediction.intents): row for row, (frame, prediction) in enumerate(cases_of_intents)}
    assert len(rows) > 600
    for row in rows.values():
        intent_figures = frame_figures(counted([cases_of_intents[row]]), zero).intents
        assert close(ours(intent_figures.samples), [column[row] for column in per_utterance[:3]])
        assert close(intent_figures.accuracy, accuracies[row])
        assert intent_figures.exact.count == int((gold[row] == predicted[row]).all())


@pytest.mark.parametrize("zero", [ZERO, ONE])
def test_corpora_of_any_size_match_scikit_learn(cases_of_intents: list[Pair], zero: ZeroDivision) -> None:
    source = random.Random(1)
    ends = [0, *sorted(source.sample(range(1, CASES), 60)), CASES]
    for begin, end in pairwise(ends):
        some = cases_of_intents[begin:end]
        with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            intent_figures = frame_figures(counted(some), zero, INTENTS).intents
            assert close(ours(intent_figures.samples), theirs(some, "samples", zero.precision))
            assert close(ours(intent_figures.macro), theirs(some, "macro", zero.precision))
            if any(pair[0].intents for pair in some):
                assert close(ours(intent_figures.weighted), theirs(some, "weighted", zero.precision))
            if intent_figures.micro != Averages():
                assert close(ours(intent_figures.micro), theirs(some, "micro", zero.precision))
            by_label = np.array([ours(averages) for _, _, averages in intent_figures.labels]).T
            assert close(by_label.tolist(), theirs(some, None, zero.precision))
            gold, predicted = matrix(some, 0), matrix(some, 1)
            jaccard = jaccard_score(gold, predicted, average="samples", zero_division=zero.accuracy)
            assert close(intent_figures.accuracy, jaccard)
            assert close(intent_figures.exact.value, accuracy_score(gold, predicted))


def test_macro_over_labels_seen_is_over_the_columns_that_occur() -> None:
    source = random.Random(3)
    for _ in range(40):
        some = pairs(source, source.randint(1, 4), longest=0)
        gold, predicted = matrix(some, 0), matrix(some, 1)
        used = (gold + predicted).any(axis=0)
        intent_figures = frame_figures(counted(some)).intents
        assert not intent_figures.declared
        assert len(intent_figures.labels) == used.sum()
        if used.any():
            macro = precision_recall_fscore_support(
                gold[:, used], predicted[:, used], average="macro", zero_division=0.0
            )
            assert close(ours(intent_figures.macro), macro[:3])
        else:
            assert intent_figures.macro == Averages()


def test_empty_data_has_no_micro_average() -> None:
    gold = np.zeros((3, 2), dtype=int)
    scores = precision_recall_fscore_support(gold, gold, average="micro", zero_division=0.0)
    assert scores[:3] == (0, 0, 0)
    assert frame_figures(counted(pairs(random.Random(0), 0))).intents.micro == Averages()


THEIRS: dict[Chunking, Callable[..., Any]] = {
    Chunking.CONLLEVAL: sequence_labeling.precision_recall_fscore_support,
    Chunking.IOB2: partial(v1.precision_recall_fscore_support, scheme=IOB2),
}


@pytest.fixture(scope="module")
def cases_of_slots() -> list[Pair]:
    return pairs(random.Random(11), CASES)


def tags(frames: list[Pair], side: int) -> list[list[str]]:
    return [list(pair[side].tags or ()) for pair in frames]


def corpora(frames: list[Pair], number: int) -> Iterator[list[Pair]]:
    ends = [0, *sorted(random.Random(2).sample(range(1, len(frames)), number - 1)), len(frames)]
    return (frames[begin:end] for begin, end in pairwise(ends))


@pytest.mark.parametrize("side", [0, 1])
def test_every_utterance_has_the_chunks_of_seqeval(cases_of_slots: list[Pair], side: int) -> None:
    # What they call an entity ends with its last word; we end behind it.
    for pair in cases_of_slots:
        iob_tags = list(pair[side].tags or ())
        theirs = [(concept, start, end + 1) for concept, start, end in get_entities(iob_tags)]
        assert list(chunks(iob_tags, Chunking.CONLLEVAL)) == theirs
        entities = Entities([iob_tags], IOB2).entities[0] if iob_tags else []
        strict = [(entity.tag, entity.start, entity.end) for entity in entities]
        assert list(chunks(iob_tags, Chunking.IOB2)) == strict


@pytest.mark.parametrize("chunking", list(Chunking))
def test_slot_figures_of_corpora_match_seqeval(cases_of_slots: list[Pair], chunking: Chunking) -> None:
    compared = 0
    for some in corpora(cases_of_slots, 200):
        slot_figures = frame_figures(counted(some, Rule(chunking=chunking))).slots
        gold, predicted = tags(some, 0), tags(some, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = THEIRS[chunking](gold, predicted, average="micro", zero_division=0)
            per_concept = THEIRS[chunking](gold, predicted, average=None, zero_division=0)
        if slot_figures.micro == Averages():
            continue
        compared += 1
        ours = (slot_figures.micro.precision, slot_figures.micro.recall, slot_figures.micro.f1)
        assert ours == pytest.approx(theirs[:3], abs=1e-12)
        if any(counts.gold for _, counts, _ in slot_figures.per_concept):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                weighted = THEIRS[chunking](gold, predicted, average="weighted", zero_division=0)
            mean = slot_figures.weighted
            assert (mean.precision, mean.recall, mean.f1) == pytest.approx(weighted[:3], abs=1e-12)
        mine = [[averages.precision, averages.recall, averages.f1] for _, _, averages in slot_figures.per_concept]
        assert np.allclose(np.array(mine, float), np.array(per_concept[:3]).T, rtol=0, atol=1e-12)
        assert [counts.gold for _, counts, _ in slot_figures.per_concept] == list(per_concept[3])
    assert compared > 150


def test_the_readings_differ_where_tags_are_not_well_formed(cases_of_slots: list[Pair]) -> None:
    loose, strict = (
        known(frame_figures(counted(cases_of_slots, Rule(chunking=chunking))).slots.micro.f1) for chunking in Chunking
    )
    assert abs(loose - strict) > 0.01


@needs_sclite
def test_concept_errors_of_every_utterance(tmp_path: Path) -> None:
    cases = pairs(random.Random(5), CASES)
    lists = [
        [" ".join(concept for concept, _, _ in conlleval_chunks(frame.tags or ())) for frame in pair] for pair in cases
    ]
    theirs = sclite.align(tmp_path, [reference for reference, _ in lists], [hypothesis for _, hypothesis in lists])
    totals = WordCounts()
    for (gold, predicted), utterance in zip(cases, theirs, strict=True):
        expected = count(utterance.path)
        assert count_frame(gold, predicted, Rule()).slots.edits == expected
        totals = totals + expected
    assert frame_figures(counted(cases)).slots.cer == totals.errors / totals.words


@needs_sclite
def test_edits_of_slot_lists_match_sclite(tmp_path: Path) -> None:
    source = random.Random(6)
    sides = [[source.choices(CONCEPTS, k=source.randint(0, 8)) for _ in range(2)] for _ in range(2_000)]
    valued = [[[(concept, source.choice("xyz")) for concept in concepts] for concepts in pair] for pair in sides]
    texts = [[" ".join(f"{concept}={value}" for concept, value in concepts) for concepts in pair] for pair in valued]
    theirs = sclite.align(tmp_path, [reference for reference, _ in texts], [hypothesis for _, hypothesis in texts])
    for pair, utterance in zip(valued, theirs, strict=True):
        gold, prediction = (Utterance("1", intents=(), slots=tuple(Slot(*slot) for slot in side)) for side in pair)
        assert count_frame(gold, prediction, Rule()).valued.edits == count(utterance.path)
