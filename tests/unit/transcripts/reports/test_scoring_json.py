"""A scoring as JSON, and what is in it."""

import json
from typing import Any

from harness.transcripts.groups import compare
from harness.transcripts.reports import scoring_json
from harness.transcripts.reports.scoring_json import Scored, Source, SourceFile, pieces
from tests.unit.transcripts.reports.scorings import HOSTILE, every_sort, foreign, scored

SOURCE = Source(
    SourceFile(HOSTILE, "trn", "utf-8", "00"), SourceFile("hyp.trn", "csv", "latin-1", "ff"), True, False, False
)


def read(*systems: Scored) -> Any:
    text = "".join(pieces(systems, compare([one.scoring for one in systems])))
    assert text.isascii()
    assert text.endswith("}\n")
    return json.loads(text)


def test_one_system_is_one_object() -> None:
    found = read(Scored(every_sort("mine"), SOURCE, (0.25, 0.75)))
    assert list(found) == [
        "format", "harness", "title", "normalisation", "like_sclite", "optional_words", "fragments", "reference",
        "hypothesis", "totals", "wer", "interval", "interval_over", "speakers", "missing", "missing_counted", "surplus",
        "empty_references", "groups_file", "groups", "crossed", "groups_left_out", "without_group",
        "groups_of_no_utterance", "utterances",
    ]  # fmt: skip
    assert found["totals"] == {
        "sentences": 5,
        "sentences_with_error": 5,
        "words": 12,
        "correct": 7,
        "substitutions": 2,
        "deletions": 3,
        "insertions": 2,
    }
    assert (found["wer"], found["interval"], found["title"]) == (7 / 12, [0.25, 0.75], "mine")
    assert (found["missing"], found["missing_counted"], found["surplus"]) == (["bob_2"], 1, ["dog_1"])
    assert [one["speaker"] for one in found["speakers"]] == ["amy", "bob"]
    assert found["reference"] == {"file": HOSTILE, "format": "trn", "encoding": "utf-8", "sha256": "00"}
    assert found["utterances"][1] == {
        "id": "amy_2",
        "correct": 1,
        "substitutions": 1,
        "deletions": 0,
        "insertions": 1,
        "path": "SCI",
    }
    assert [one["path"] for one in found["utterances"]] == ["CCDC", "SCI", "I", "CSCC", "DD"]


def test_over_nothing_a_rate_is_null() -> None:
    found = read(Scored(scored({"a_1": ""}, {}), SOURCE, None))
    assert (found["wer"], found["interval"], found["speakers"][0]["wer"]) == (None, None, None)
    assert found["utterances"] == [
        {"id": "a_1", "correct": 0, "substitutions": 0, "deletions": 0, "insertions": 0, "path": ""}
    ]
    assert read(Scored(scored({}, {}), SOURCE, None))["utterances"] == []


def test_several_systems_are_compared() -> None:
    found = read(
        Scored(every_sort("a"), SOURCE, None), Scored(foreign(), SOURCE, None), Scored(every_sort("b"), SOURCE, None)
    )
    assert list(found) == ["systems", "comparisons"]
    assert len(found["systems"]) == len(found["comparisons"]) == 3
    both = found["comparisons"][1]
    assert (both["first"], both["second"], both["utterances"], both["difference"]) == ("a", "b", 5, 0.0)
    assert (both["first_missing"], both["second_missing"]) == (1, 1)


def test_pieces_join_at_their_seams() -> None:
    for utterances in (scoring_json.CHUNK - 1, scoring_json.CHUNK, scoring_json.CHUNK + 1, 2 * scoring_json.CHUNK):
        texts = {f"a_{number}": "x" for number in range(utterances)}
        assert [one["id"] for one in read(Scored(scored(texts, texts), SOURCE, None))["utterances"]] == list(texts)
