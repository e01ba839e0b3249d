"""A reference with its hypothesis."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.choices import TranscriptFormat as Format
from harness.model.errors import InputError
from harness.transcripts.files.transcripts import format_of, read_pair, read_transcripts
from tests.unit.transcripts.files.told import assert_told, told, written


@pytest.mark.parametrize(("name", "format"), [("a.trn", "trn"), ("A.SRO", "sro"), ("a.b.csv", "csv"), ("a.Stm", "stm")])
def test_the_suffix_says_the_format(name: str, format: str) -> None:
    assert format_of(Path(name)) is Format(format)


@pytest.mark.parametrize("name", ["a.txt", "trn", "a."])
def test_a_suffix_that_says_nothing_is_answered_with_the_formats_and_the_option(name: str) -> None:
    with pytest.raises(InputError, match=r"--reference-format or --hypothesis-format trn\|ctm\|stm\|sro\|csv"):
        format_of(Path(name))
    with pytest.raises(InputError, match=r"Say it: --hypothesis-format trn\|ctm"):
        format_of(Path(name), "--hypothesis-format")


def test_a_format_that_is_named_wins_over_the_suffix(tmp_path: Path) -> None:
    assert read_transcripts(written(tmp_path, "a.txt", "hi (x_1)\n"), Format.TRN).ids == ("x_1",)
    assert read_transcripts(written(tmp_path, "a.trn", "a.wav,hi\n"), Format.CSV).ids == ("a.wav",)
    assert_told(told(read_transcripts, written(tmp_path, "a.ctm", "f A 1 1 a\n")), [(0, 0, "has times and no ids")])


def test_ids_pair_over_formats_and_whatever_their_case(tmp_path: Path) -> None:
    reference = written(tmp_path, "r.sro", "show me (Ann_001)\n[uh] flights (bob_001)\nno (bob_002)\n")
    hypothesis = written(tmp_path, "h.csv", "BOB_001,flights\nann_001,show\neve_001,x\nEVE_001,y\n")
    references, hypotheses = read_pair(reference, hypothesis)
    assert references.ids == ("Ann_001", "bob_001", "bob_002")
    assert hypotheses.ids == ("bob_001", "Ann_001", "eve_001", "EVE_001")


def test_ids_pair_with_what_a_conversion_makes_of_them(tmp_path: Path) -> None:
    reference = written(tmp_path, "r.sro", "one (straße_1)\ntwo (ıd_2)\n")
    hypothesis = written(tmp_path, "h.trn", "ONE (STRASSE_1)\nTWO (ID_2)\n")
    assert read_pair(reference, hypothesis)[1].ids == ("straße_1", "ıd_2")


def test_an_id_that_is_the_same_in_both_goes_before_one_that_differs_in_case(tmp_path: Path) -> None:
    reference = written(tmp_path, "r.csv", "a.wav,x\nA.wav,y\nb.wav,z\n")
    hypothesis = written(tmp_path, "h.csv", "A.wav,y\nB.wav,z\nb.WAV,q\n")
    _, hypotheses = read_pair(reference, hypothesis)
    assert hypotheses.ids == ("A.wav", "b.wav", "b.WAV")


def test_words_are_cut_by_segments(tmp_path: Path) -> None:
    segments = """f1 A ann 0 2 <o> turn it on
f1 A ann 2 3 IGNORE_TIME_SEGMENT_IN_SCORING
f1 A Ann 3 4 now
f1 B bob 0 1
f2 A bob 0 9 hello
"""
    words = "f1 a 0.1 0.2 Turn\nf1 A 1.8 0.2 it\nf1 A 2.5 0.1 cough\nf1 A 8 1 now\nF1 B 0 1 uh\n"
    references, hypotheses = read_pair(written(tmp_path, "r.stm", segments), written(tmp_path, "h.ctm", words))
    assert references.ids == hypotheses.ids == ("ann-000", "ann-001", "bob-000", "bob-001")
    assert references.speakers == ("ann", "ann", "bob", "bob")
    assert references.texts == ("turn it on", "now", "", "hello")
    assert references.lines == (1, 3, 4, 5)
    assert hypotheses.texts == ("Turn it", "now", "uh", "")
    assert hypotheses.lines == (1, 4, 5, 0)


@pytest.mark.parametrize("spelling", ["IGNORE_TIME_SEGMENT_IN_SCORING", "IGNORETIMESEGMENTINSCORING"])
def test_a_segment_is_ignored_in_either_spelling_and_any_case_within_any_word(tmp_path: Path, spelling: str) -> None:
    """As sclite 2.4.10 does; only the case of A-Z does not count."""
    lines = [spelling, spelling.lower(), f"bye x{spelling.title()}y now", spelling.replace("I", "ı"), "now"]
    segments = "".join(f"f A ann {at} {at + 1} {text}\n" for at, text in enumerate(lines))
    references, hypotheses = read_pair(
        written(tmp_path, "r.stm", segments), written(tmp_path, "h.ctm", "f A 4 1 now\n")
    )
    assert references.texts == (lines[3], "now")
    assert hypotheses.texts == ("", "now")


@pytest.mark.parametrize("spelling", ["IGNORE_TIME_SEGMENT_IN_SCORING", "IGNORETIMESEGMENTINSCORING"])
def test_without_segments_both_spellings_are_words(tmp_path: Path, spelling: str) -> None:
    """As in sclite, which looks for them in stm files alone."""
    assert read_transcripts(written(tmp_path, "r.trn", f"{spelling} (a_1)\n")).texts == (spelling,)
    words = written(tmp_path, "r.ctm", f"f A 0 1 {spelling}\n")
    assert read_pair(words, words)[0].texts == (spelling,)


def test_words_of_two_ctm_files_count_in_the_order_of_the_file(tmp_path: Path) -> None:
    """As in sclite; cut by segments, they must be in that of their times."""
    words = written(tmp_path, "h.ctm", "f A 2 1 a\ng A 0 1 x\nf A 1 1 b\n")
    references, hypotheses = read_pair(words, words)
    assert references.texts == hypotheses.texts == ("a b", "x")
    segments = written(tmp_path, "r.stm", "f A ann 0 9 b a\ng A ann 0 9 x\n")
    assert_told(told(lambda path: read_pair(segments, path), words), [(3, 5, "begins before the one in line 1")])


@pytest.mark.parametrize("nothing", ["", " \n\n", ";; crashed\n"])
@pytest.mark.parametrize(("first", "second"), [("trn", "trn"), ("csv", "csv"), ("trn", "sro"), ("ctm", "ctm")])
def test_an_empty_hypothesis_has_none_for_any_reference(tmp_path: Path, first: str, second: str, nothing: str) -> None:
    texts = {"trn": "a b (x_1)\n", "csv": "x,a b\n", "ctm": "f A 0 1 a\n"}
    if second == "csv" and nothing.startswith(";"):
        nothing = "audio,text\n"
    empty = written(tmp_path, f"h.{second}", nothing)
    references, hypotheses = read_pair(written(tmp_path, f"r.{first}", texts[first]), empty)
    assert (len(references), hypotheses.ids) == (1, ())
    with pytest.raises(InputError):
        read_pair(empty, empty)


def test_an_empty_hypothesis_leaves_every_word_of_a_segment_out(tmp_path: Path) -> None:
    segments = written(tmp_path, "r.stm", "f A ann 0 9 b a\n")
    assert read_pair(segments, written(tmp_path, "h.ctm", ""))[1].texts == ("",)


def test_words_of_a_place_that_the_reference_has_not_are_told_once_for_each_place(tmp_path: Path) -> None:
    reference = written(tmp_path, "r.stm", "f1 A ann 0 2 a\n")
    hypothesis = written(tmp_path, "h.ctm", "f1 A 0 1 a\nf1 1 0 1 b\nf1 1 1 1 b\nf2 A 0 1 c\n")
    wanted = [(2, 1, "nothing of file 'f1', channel '1'"), (4, 1, "nothing of file 'f2', channel 'A'")]
    assert_told(told(lambda path: read_pair(reference, path), hypothesis), wanted)


def test_two_ctm_files_have_an_utterance_for_each_file_and_channel(tmp_path: Path) -> None:
    said = "f A 0 1 a\nf A * * <ALT_BEGIN>\nf A 1 1 b\nf A * * <ALT>\nf A * * <ALT_END>\nf B 0 1 c\ng A 0 1 d\n"
    reference = written(tmp_path, "r.ctm", said)
    hypothesis = written(tmp_path, "h.ctm", "g a 5 1 d\nF a 2 1 x\ng A 6 1 e\n")
    references, hypotheses = read_pair(reference, hypothesis)
    assert references.ids == ("f-A-0000", "f-B-0000", "g-A-0000")
    assert references.texts == ("a { b / @ }", "c", "d")
    assert dict(zip(hypotheses.ids, hypotheses.texts, strict=True)) == {"g-A-0000": "d e", "f-A-0000": "x"}


@pytest.mark.parametrize(("first", "second"), [("stm", "trn"), ("trn", "ctm"), ("ctm", "stm"), ("stm", "stm")])
def test_formats_that_do_not_go_together_are_refused(tmp_path: Path, first: str, second: str) -> None:
    with pytest.raises(InputError, match=f"in {second} cannot be scored against a reference in {first}"):
        read_pair(tmp_path / f"r.{first}", tmp_path / f"h.{second}")
