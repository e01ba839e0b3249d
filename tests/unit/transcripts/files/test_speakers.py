"""Speakers of utterance ids."""

from __future__ import annotations

import pytest

from harness.model.errors import InputError
from harness.transcripts.files.transcripts import speaker_scheme

CASES = [
    ("spu_id", "abc_def", "abc"),
    ("spu_id", "a_b-c", "a_b"),
    ("swb", "SW2005-a-0001", "sw2005"),
    ("rm", "a_b_c", "a"),
    ("spu_id", "bb00e1sx", ""),
    ("spu_id", "_x", ""),
    ("wsj", "4K0c0201", "4k0"),
    ("wsj", "ab", "ab"),
    ("sp", "Ab_1", "ab_1"),
    ("none", "ab_1", ""),
    ("/([a-z]+)[0-9]/", "x-Bob12", "ob"),
    ("/(?:([a-z])|9)/", "9", ""),
    ("/(q)/", "ab", ""),
]


@pytest.mark.parametrize(("scheme", "id_", "speaker"), CASES)
def test_a_scheme_takes_the_speaker_from_an_id(scheme: str, id_: str, speaker: str) -> None:
    assert speaker_scheme(scheme)([id_]) == [speaker]


@pytest.mark.parametrize("scheme", ["spu_id", "wsj", "none", "/([a-z])/"])
@pytest.mark.parametrize("ids", [["Ann_1", "ann_2", "bob", "_1"], ["Ann_1", "a-b_2", "bob", "-1"], []])
def test_many_at_once_have_the_speakers_that_they_have_one_by_one(scheme: str, ids: list[str]) -> None:
    found = speaker_scheme(scheme)
    assert found(ids) == [found([id_])[0] for id_ in ids]


@pytest.mark.parametrize(
    ("written", "what"),
    [
        ("spuid", "Did you mean 'spu_id'"),
        ("/x/", "no group"),
        ("/(/", "no regular expression"),
        ("//", "no scheme"),
        ("atis", "The schemes are"),
    ],
)
def test_what_is_no_scheme_is_told(written: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        speaker_scheme(written)


def test_an_expression_that_does_not_come_to_an_end_is_told() -> None:
    with pytest.raises(InputError, match="does not come to an end"):
        speaker_scheme("/((?:a|a|aa)+$)b/")(["a" * 40])
