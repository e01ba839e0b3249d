"""Path for path, our alignments are sclite's."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.model.choices import TextUnit
from harness.model.transcript import Normalisation
from harness.transcripts.alignment import Alignments, align
from harness.transcripts.words import WordRules
from tests.conformance.scoring import sclite
from tests.conformance.scoring.sclite import needs_sclite
from tests.unit.transcripts.reports.scorings import scored

pytestmark = needs_sclite

SHORT_PAIRS = 24_000


def _pairs(seed: int) -> tuple[list[str], list[str]]:
    """Few different words, so that many alignments cost the same; every tenth hypothesis is its reference, hurt."""
    source = random.Random(seed)
    references, hypotheses = [], []
    for number in range(SHORT_PAIRS):
        words = "abcdef"[: source.randint(2, 6)]
        reference = source.choices(words, k=source.randint(0, 14))
        hypothesis = source.choices(words, k=source.randint(0, 14))
        if number % 10 == 0:
            hypothesis = [
                source.choice(words) if source.random() < 0.2 else word for word in reference if source.random() > 0.1
            ]
        references.append(" ".join(reference))
        hypotheses.append(" ".join(hypothesis))
    for longest in (62, 63, 64, 80, 200, 400):
        for words in ("ab", "abc", "abcdefghij"):
            references.append(" ".join(source.choices(words, k=longest)))
            hypotheses.append(" ".join(source.choices(words, k=source.randint(longest // 2, longest))))
    return references, hypotheses


@pytest.fixture(scope="module")
def aligned(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], ...]:
    """References, hypotheses, and sclite's paths."""
    references, hypotheses = _pairs(seed=1)
    utterances = sclite.align(tmp_path_factory.mktemp("sclite"), references, hypotheses)
    return references, hypotheses, [utterance.path for utterance in utterances]


def test_single_alignments_match_sclite(aligned: tuple[list[str], ...]) -> None:
    references, hypotheses, paths = aligned
    ours = [
        align(reference.split(), hypothesis.split())
        for reference, hypothesis in zip(references, hypotheses, strict=True)
    ]
    assert [pair for pair in zip(*aligned, ours, strict=True) if pair[2] != pair[3]] == []
    assert len(paths) > SHORT_PAIRS


def test_batch_alignments_match_sclite(aligned: tuple[list[str], ...]) -> None:
    references, hypotheses, paths = aligned
    ours = Alignments(references, hypotheses)
    assert ours.paths(range(len(paths))) == paths
    edits = ours.columns
    by_letter = {"C": edits.correct, "S": edits.substitutions, "D": edits.deletions, "I": edits.insertions}
    for letter, column in by_letter.items():
        assert column.tolist() == [path.count(letter) for path in paths]


def test_words_of_letters_beyond_ascii_are_bytes_to_sclite(tmp_path: Path) -> None:
    source = random.Random(3)
    words = ("für", "fur", "naïveté", "Überraschungen", "Überraschungem", "日本語", "日本", "œ", "FÜR")
    references = [" ".join(source.choices(words, k=source.randint(0, 9))) for _ in range(2000)]
    hypotheses = [" ".join(source.choices(words, k=source.randint(0, 9))) for _ in range(2000)]
    utterances = sclite.align(tmp_path, references, hypotheses)
    assert Alignments(references, hypotheses).paths(range(2000)) == [utterance.path for utterance in utterances]


def test_an_utterance_without_words_counts_on_either_side(tmp_path: Path) -> None:
    utterances = sclite.align(tmp_path, ["", "a", "", "a b"], ["", "", "a b", "a"])
    assert [utterance.path for utterance in utterances] == ["", "D", "II", "CD"]


def test_by_character_as_with_sclite_c(tmp_path: Path) -> None:
    source = random.Random(4)
    words = ("light", "lights", "on", "off", "für", "打开", "客厅", "の", "éa")
    references = {f"s_{n:05d}": " ".join(source.choices(words, k=source.randint(0, 6))) for n in range(1000)}
    hypotheses = {id_: " ".join(source.choices(words, k=source.randint(0, 6))) for id_ in references}
    utterances = sclite.align(
        tmp_path, list(references.values()), list(hypotheses.values()), "-s", "-c", "-e", "utf-8", ids=list(references)
    )
    ours = scored(references, hypotheses, WordRules(Normalisation.VERBATIM, unit=TextUnit.CHAR))
    assert list(ours.paths(range(1000))) == [utterance.path for utterance in utterances]
