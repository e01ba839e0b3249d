"""Concept errors are word errors as NIST's sclite counts them, concepts being words; 10,000 random utterances."""

import random
from pathlib import Path

from harness.model.transcript import WordCounts
from harness.model.understanding import Slot, Utterance
from harness.transcripts.alignment import count
from harness.understanding.counts import Rule, count_frame
from harness.understanding.figures import figures
from tests.conformance.scoring import sclite
from tests.conformance.scoring.sclite import needs_sclite
from tests.unit.understanding.arithmetic.conlleval_reading import conlleval_chunks
from tests.unit.understanding.arithmetic.random_frames import CONCEPTS, counted, pairs

CASES = 10_000


@needs_sclite
def test_concept_errors_of_every_utterance(tmp_path: Path) -> None:
    cases = pairs(random.Random(5), CASES)
    lists = [[" ".join(of for of, _, _ in conlleval_chunks(one.tags or ())) for one in pair] for pair in cases]
    theirs = sclite.align(tmp_path, [of for of, _ in lists], [said for _, said in lists])
    totals = WordCounts()
    for (gold, predicted), utterance in zip(cases, theirs, strict=True):
        expected = count(utterance.path)
        assert count_frame(gold, predicted, Rule()).slots.edits == expected
        totals = totals + expected
    assert figures(counted(cases)).slots.cer == totals.errors / totals.words


@needs_sclite
def test_lists_without_places_and_with_values(tmp_path: Path) -> None:
    source = random.Random(6)
    sides = [[source.choices(CONCEPTS, k=source.randint(0, 8)) for _ in range(2)] for _ in range(2_000)]
    valued = [[[(one, source.choice("xyz")) for one in concepts] for concepts in pair] for pair in sides]
    texts = [[" ".join(f"{one}={value}" for one, value in concepts) for concepts in pair] for pair in valued]
    theirs = sclite.align(tmp_path, [of for of, _ in texts], [said for _, said in texts])
    for pair, utterance in zip(valued, theirs, strict=True):
        gold, said = (Utterance("1", intents=(), slots=tuple(Slot(*one) for one in side)) for side in pair)
        assert count_frame(gold, said, Rule()).valued.edits == count(utterance.path)
