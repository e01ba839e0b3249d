"""Slot figures are those of seqeval: its default is our conlleval reading, its strict IOB2 is ours."""

import random
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from seqeval.metrics import sequence_labeling, v1
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, Entities

from harness.model.understanding import Chunking
from harness.understanding.counts import Rule, chunks
from harness.understanding.figures import Averages, figures
from tests.unit.understanding.arithmetic.random_frames import Pair, counted, pairs

CASES = 10_000
THEIRS: dict[Chunking, Callable[..., Any]] = {
    Chunking.CONLLEVAL: sequence_labeling.precision_recall_fscore_support,
    Chunking.IOB2: partial(v1.precision_recall_fscore_support, scheme=IOB2),
}


@pytest.fixture(scope="module")
def cases() -> list[Pair]:
    return pairs(random.Random(11), CASES)


def tags(of: list[Pair], side: int) -> list[list[str]]:
    return [list(pair[side].tags or ()) for pair in of]


def corpora(of: list[Pair], number: int) -> Iterator[list[Pair]]:
    ends = [0, *sorted(random.Random(2).sample(range(1, len(of)), number - 1)), len(of)]
    return (of[begin:end] for begin, end in pairwise(ends))


@pytest.mark.parametrize("side", [0, 1])
def test_every_utterance_has_the_chunks_of_seqeval(cases: list[Pair], side: int) -> None:
    # What they call an entity ends with its last word; we end behind it.
    for pair in cases:
        of = list(pair[side].tags or ())
        theirs = [(concept, start, end + 1) for concept, start, end in get_entities(of)]
        assert list(chunks(of, Chunking.CONLLEVAL)) == theirs
        strict = [(one.tag, one.start, one.end) for one in Entities([of], IOB2).entities[0]] if of else []
        assert list(chunks(of, Chunking.IOB2)) == strict


@pytest.mark.parametrize("chunking", list(Chunking))
def test_figures_of_corpora(cases: list[Pair], chunking: Chunking) -> None:
    compared = 0
    for some in corpora(cases, 200):
        found = figures(counted(some, Rule(chunking=chunking))).slots
        gold, predicted = tags(some, 0), tags(some, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = THEIRS[chunking](gold, predicted, average="micro", zero_division=0)
            each = THEIRS[chunking](gold, predicted, average=None, zero_division=0)
        if found.micro == Averages():
            continue
        compared += 1
        ours = (found.micro.precision, found.micro.recall, found.micro.f1)
        assert ours == pytest.approx(theirs[:3], abs=1e-12)
        mine = [[one.precision, one.recall, one.f1] for _, _, one in found.per_concept]
        assert np.allclose(np.array(mine, float), np.array(each[:3]).T, rtol=0, atol=1e-12)
        assert [one.gold for _, one, _ in found.per_concept] == list(each[3])
    assert compared > 150


def test_the_readings_differ_where_tags_are_not_well_formed(cases: list[Pair]) -> None:
    loose, strict = (figures(counted(cases, Rule(chunking=one))).slots.micro.f1 for one in Chunking)
    assert loose is not None
    assert strict is not None
    assert abs(loose - strict) > 0.01
