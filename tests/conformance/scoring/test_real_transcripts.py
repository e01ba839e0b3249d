"""What recognisers made of speech in noise (tests/data/asr): our paths are sclite's, utterance by utterance."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.scenario import Normalisation
from harness.model.transcript import Edit
from harness.transcripts.files.transcripts import read_pair
from harness.transcripts.scoring import Scoring, score
from harness.transcripts.words import WordRules, normalise
from tests.conformance.scoring import sclite

DATA = Path(__file__).parents[2] / "data" / "asr"
REFERENCE = DATA / "reference.trn"
SYSTEMS = ("whisper", "pocketsphinx")
MIN_UTTERANCES = 1200
NORMALISATIONS = (Normalisation.VERBATIM, Normalisation.PLAIN)

pytestmark = sclite.needs_sclite
by_system = pytest.mark.parametrize("system", SYSTEMS)


def scored(system: str, normalisation: Normalisation) -> Scoring:
    reference, hypothesis = read_pair(REFERENCE, DATA / f"{system}.trn")
    return score(reference, hypothesis, WordRules(normalisation))


@by_system
@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_every_path_matches_sclite(system: str, normalisation: Normalisation, tmp_path: Path) -> None:
    reference, hypothesis = read_pair(REFERENCE, DATA / f"{system}.trn")
    assert reference.ids == hypothesis.ids
    texts = [
        [" ".join(normalise(text, normalisation)) for text in transcripts.texts]
        for transcripts in (reference, hypothesis)
    ]
    theirs = sclite.align(tmp_path, *texts, ids=reference.ids)
    ours = scored(system, normalisation)
    assert len(ours) == len(theirs) >= MIN_UTTERANCES
    apart = [
        (utterance.id, path, other.path)
        for utterance, path, other in zip(ours.utterances(), ours.paths(range(len(ours))), theirs, strict=True)
        if (path, utterance.words) != (other.path, other.words)
    ]
    assert apart == []


@by_system
def test_there_are_errors_of_every_kind_for_the_paths_to_differ_in(system: str) -> None:
    ours = scored(system, Normalisation.PLAIN)
    paths = list(ours.paths(ours.with_errors()))
    assert len(paths) > MIN_UTTERANCES / 4
    for edit in Edit:
        assert sum(edit.value in path for path in paths) > MIN_UTTERANCES / 10


@by_system
def test_case_folding_matches_default_sclite(system: str, tmp_path: Path) -> None:
    reference, hypothesis = read_pair(REFERENCE, DATA / f"{system}.trn")
    wording = WordRules(Normalisation.VERBATIM, fold_case=True)
    ours = score(reference, hypothesis, wording, drop_missing=True)
    theirs = {
        utterance.id: utterance.path
        for utterance in sclite.utterances(sclite.output(REFERENCE, DATA / f"{system}.trn"))
    }
    assert dict(zip(ours.ids, ours.paths(range(len(ours))), strict=True)) == theirs
