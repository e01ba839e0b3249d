"""Several speakers at once, and words by their times, against what meeteval 0.4.3 and sclite count."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.model.choices import SpeakerPairing, TranscriptFormat
from harness.model.errors import InputError, InputProblems
from harness.model.transcript import Normalisation, Segment, WordCounts
from harness.transcripts.alignment import count
from harness.transcripts.by_time import align_rows_by_time
from harness.transcripts.files.timed import Segments, read_seglst
from harness.transcripts.files.transcripts import read_pair, read_segments
from harness.transcripts.scoring import score
from harness.transcripts.talkers import PairedTalkers, TalkerPair, pair_talkers
from harness.transcripts.words import WordRules
from tests.files import file_with

CASES = json.loads((Path(__file__).parents[2] / "data" / "meeteval_counts.json").read_text("utf-8"))
VERBATIM = WordRules(Normalisation.VERBATIM)


def talk(*rows: tuple[str, float, float, str], file: str = "m") -> Segments:
    segments = [
        Segment(file, "", name, start_s, end_s, text, (), False, line)
        for line, (name, start_s, end_s, text) in enumerate(rows, 1)
    ]
    return Segments(f"{file}.json", tuple(sorted(segments, key=lambda segment: segment.start_s)), ())


def counted(pairing: PairedTalkers) -> WordCounts:
    return WordCounts.total(count("".join(word.edit.value for word in words)) for words in pairing.aligned.values())


@pytest.mark.parametrize(
    ("rule", "collar_s", "key"),
    [
        (SpeakerPairing.CP, 5, "cp"),
        (SpeakerPairing.TCP, 2, "tcp2"),
        (SpeakerPairing.TCP, 5, "tcp5"),
        (SpeakerPairing.ORC, 5, "orc"),
    ],
)
def test_errors_match_meeteval(rule: SpeakerPairing, collar_s: float, key: str) -> None:
    """Made-up talk of one to three speakers, chosen so that the four rates of each differ."""
    for case in CASES:
        counts = counted(pair_talkers(talk(*case["reference"]), talk(*case["hypothesis"]), VERBATIM, rule, collar_s))
        assert [counts.errors, counts.words] == case["counts"][key][:2]


def test_talkers_are_paired_and_surplus_ones_stay_unpaired() -> None:
    reference = talk(("ann", 0, 2, "turn it on"), ("bob", 1, 3, "what time is it"), ("cem", 4, 5, "hello"))
    hypothesis = talk(("2", 0, 2, "turn it on"), ("1", 1, 3, "what time it is"))
    pairing = pair_talkers(reference, hypothesis, VERBATIM, SpeakerPairing.CP)
    assert pairing.pairs == (TalkerPair("m", "ann", "2"), TalkerPair("m", "bob", "1"), TalkerPair("m", "cem", None))
    assert (pairing.references.ids, pairing.hypotheses.ids) == (("m-ann", "m-bob", "m-cem"), ("m-ann", "m-bob"))
    more = pair_talkers(hypothesis, reference, VERBATIM, SpeakerPairing.CP)
    assert more.pairs[-1] == TalkerPair("m", None, "cem")
    assert (counted(more).insertions, more.references.texts[-1]) == (2, "")


def test_a_surplus_talker_is_no_talker_of_another_recording() -> None:
    reference = Segments(
        "r", (*talk(("1", 0, 1, "hi"), file="m").segments, *talk(("2", 0, 1, "ho"), file="n").segments), ()
    )
    hypothesis = Segments("h", (*reference.segments, *talk(("2", 2, 3, "one more"), file="m").segments), ())
    pairing = pair_talkers(reference, hypothesis, VERBATIM, SpeakerPairing.CP)
    assert pairing.references.speakers == ("1", "2 (hypothesis)", "2")


def test_words_are_paired_only_within_the_collar() -> None:
    reference, hypothesis = talk(("ann", 0, 1, "good morning")), talk(("1", 20, 21, "good morning"))
    assert counted(pair_talkers(reference, hypothesis, VERBATIM, SpeakerPairing.TCP, 5)).errors == 4
    assert counted(pair_talkers(reference, hypothesis, VERBATIM, SpeakerPairing.TCP, 30)).errors == 0


def test_a_recording_that_nobody_knows_and_one_that_is_too_long_are_refused() -> None:
    with pytest.raises(InputError, match="the reference contains nothing for recording 'other'"):
        pair_talkers(talk(("a", 0, 1, "a")), talk(("a", 0, 1, "a"), file="other"), VERBATIM, SpeakerPairing.CP)
    long = talk(*((str(speaker), 0.0, 60.0, "word " * 300) for speaker in range(4)))
    with pytest.raises(InputError, match="too much memory or time for streams of 300, 300, 300, 300 words"):
        pair_talkers(long, long, VERBATIM, SpeakerPairing.ORC)


def test_a_reference_of_which_every_segment_is_ignored_is_refused_as_such() -> None:
    hypothesis = talk(("ann", 0, 1, "one two"))
    ignored = tuple(replace(segment, ignored=True) for segment in hypothesis.segments)
    with pytest.raises(InputError, match="every segment of the reference is marked to be ignored"):
        pair_talkers(Segments("r", ignored, ()), hypothesis, VERBATIM, SpeakerPairing.CP)


def test_a_recording_without_hypothesis_is_deleted() -> None:
    reference = talk(("ann", 0, 1, "one two"))
    for rule in SpeakerPairing:
        assert counted(pair_talkers(reference, Segments("h", (), ()), VERBATIM, rule)).deletions == 2


SEGMENT: dict[str, Any] = {"session_id": "m", "speaker": "ann", "start_time": 1, "end_time": "2.5", "words": " a  b"}


def test_segments_of_seglst_have_their_lines(tmp_path: Path) -> None:
    path = file_with(
        tmp_path / "a.json", json.dumps([SEGMENT, SEGMENT | {"start_time": 0, "speaker": "ANN"}], indent=1)
    )
    assert [segment.line for segment in read_seglst(path).segments] == [2, 9]
    first, _ = read_segments(path, TranscriptFormat.SEGLST).segments
    assert first == Segment("m", "", "ann", 0.0, 2.5, "a b", (), False, 9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "1:1: the file is not a JSON list"),
        ("[\n{]", "2:1: not JSON"),
        ("[1]", "contains something other than an object"),
        (json.dumps([SEGMENT])[:-1], "not closed"),
        (json.dumps([SEGMENT | {"words": None, "end_time": "x"}]), "no valid words, end_time"),
        (json.dumps([SEGMENT | {"end_time": 0}]), r"ends \(0\) before it begins \(1\)"),
        ("[]", "the file has no segments"),
        (f"{json.dumps([SEGMENT])}\n{json.dumps([SEGMENT])}", "2:1: there is more text after the list"),
    ],
)
def test_seglst_mistakes_are_reported(text: str, message: str, tmp_path: Path) -> None:
    path = file_with(tmp_path / "a.json", text)
    with pytest.raises(InputProblems, match=message):
        read_seglst(path)


def test_words_by_their_times_are_paired_as_sclite_pairs_them(tmp_path: Path) -> None:
    """The counts are those of sclite -T of SCTK 2.4.10."""
    words = {
        "r": "0.90 0.59 a,1.56 0.12 d,1.99 0.35 d,2.34 0.11 d,2.45 0.58 d",
        "h": "0.90 0.53 a,1.74 0.22 b,2.86 0.11 c,2.97 0.06 a,3.93 0.05 d,3.98 0.32 a,"
        "5.20 0.19 d,5.70 0.40 b,6.17 0.19 b",
    }
    for name, text in words.items():
        lines = "".join(f"f A {word}\n" for word in text.split(","))
        (tmp_path / f"{name}.ctm").write_text(lines, "utf-8")
    references, hypotheses = read_pair(tmp_path / "r.ctm", tmp_path / "h.ctm")
    totals = score(references, hypotheses, VERBATIM, aligner=align_rows_by_time).totals
    assert (totals.correct, totals.substitutions, totals.deletions, totals.insertions) == (1, 1, 3, 7)
    with pytest.raises(InputError, match="so their times are lost"):
        align_rows_by_time(references, hypotheses, (["a"], ["a"]))
    with pytest.raises(InputError, match="so their times are lost"):
        align_rows_by_time(references, hypotheses, (["{ a / b }"], ["a"]))
    (tmp_path / "h.ctm").write_text("", "utf-8")  # as a recogniser that crashed leaves it
    silent = score(*read_pair(tmp_path / "r.ctm", tmp_path / "h.ctm"), VERBATIM, aligner=align_rows_by_time)
    assert (silent.totals.deletions, silent.missing) == (5, 1)


def test_alternatives_are_chosen_by_their_times_as_sclite_chooses_them(tmp_path: Path) -> None:
    """The paths are those of sclite -T of SCTK 2.4.10."""
    reference = "0.1 0.2 a,* * <ALT_BEGIN>,0.4 0.3 b,* * <ALT>,0.4 0.1 c,0.5 0.2 d,* * <ALT>,* * <ALT_END>,0.8 0.1 e"
    (tmp_path / "r.ctm").write_text("".join(f"f A {word}\n" for word in reference.split(",")))
    for heard, path in (
        ("0.1 0.2 a,0.4 0.3 b,0.8 0.1 e", "CCC"),
        ("0.1 0.2 a,0.4 0.1 c,0.52 0.2 d,0.8 0.1 e", "CCCC"),
        ("0.1 0.2 x,0.8 0.1 e", "SC"),
        ("0.1 0.2 a,* * <ALT_BEGIN>,0.4 0.3 x,* * <ALT>,0.4 0.1 c,* * <ALT_END>,0.8 -0.1 e", "CSID"),
    ):
        (tmp_path / "h.ctm").write_text("".join(f"f A {word}\n" for word in heard.split(",")))
        scoring = score(*read_pair(tmp_path / "r.ctm", tmp_path / "h.ctm"), VERBATIM, aligner=align_rows_by_time)
        assert ["".join(word.edit.value for word in utterance.words) for utterance in scoring.utterances()] == [path], (
            heard
        )
