"""The examples of docs/transcript-formats.md are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.transcripts.files.normalisation_file import NormalisationKeys, load_normalisation
from harness.transcripts.files.timed import read_ctm, read_stm
from harness.transcripts.files.transcripts import read_pair, read_transcripts
from tests.unit.transcripts.files.told import written

PAGE = (Path(__file__).parents[4] / "docs" / "transcript-formats.md").read_text(encoding="utf-8")


def example(folder: Path, format: str) -> Path:
    (text,) = re.findall(rf"```{format}\n(.*?)```", PAGE, re.DOTALL)
    return written(folder, f"example.{format}", text)


@pytest.mark.parametrize(
    ("format", "ids"),
    [
        ("trn", ("ann_001", "ann_002", "bob_001")),
        ("sro", ("bn0051sx", "bb00e1sx")),
        ("csv", ("kitchen/001.wav", "kitchen/002.wav")),
    ],
)
def test_transcripts(tmp_path: Path, format: str, ids: tuple[str, ...]) -> None:
    assert read_transcripts(example(tmp_path, format)).ids == ids


def test_words_and_segments(tmp_path: Path) -> None:
    words, segments = example(tmp_path, "ctm"), example(tmp_path, "stm")
    assert [word.text for word in read_ctm(words)] == ["turn", "it", "{ on / up }"]
    assert [label.id for label in read_stm(segments).labels] == ["o"]
    references, hypotheses = read_pair(segments, words)
    assert references.ids == ("ann-000", "bob-000")
    assert hypotheses.texts == ("turn it { on / up }", "")


def test_a_named_normalisation(tmp_path: Path) -> None:
    assert len(load_normalisation(example(tmp_path, "yaml")).same) == 3
    assert all(f"`{key}`" in PAGE for key in NormalisationKeys.model_fields)
