"""trn files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.model.choices import TranscriptFormat as Format
from harness.model.errors import InputError, InputProblems
from harness.model.transcript import Transcripts
from harness.transcripts.files.transcripts import (
    format_of,
    read_pair,
    read_transcripts,
    read_trn,
    speaker_scheme,
    split_by_line,
    split_tidy_text,
)
from tests.known import known
from tests.unit.transcripts.files.told import Told, assert_told, problems_of, read_or_refused, told, written


def test_each_line_is_a_text_and_its_id(tmp_path: Path) -> None:
    path = written(tmp_path, "a.trn", "what day  is\tit (spk1_001)\n(spk1_002)\n  Play MUSIC(Spk2_001)  \n")
    assert read_trn(path) == Transcripts(
        str(path),
        ids=("spk1_001", "spk1_002", "Spk2_001"),
        texts=("what day is it", "", "Play MUSIC"),
        lines=(1, 2, 3),
        speakers=("", "", ""),
    )


def test_blank_lines_and_comments_are_skipped_and_lines_still_count(tmp_path: Path) -> None:
    read = read_trn(written(tmp_path, "a.trn", ";; made (yesterday)\n\na b (x_1)\n \t\n;;\nc (x_2)"))
    assert (read.ids, read.texts, read.lines) == (("x_1", "x_2"), ("a b", "c"), (3, 6))


def test_marks_of_networks_stay_in_the_text(tmp_path: Path) -> None:
    read = read_trn(written(tmp_path, "a.trn", "i (uh) { want / need / @ } it (x_1)\nso;; (x) y (x_2)\n"))
    assert read.texts == ("i (uh) { want / need / @ } it", "so;; (x) y")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_ends_of_any_system_and_a_byte_order_mark(tmp_path: Path, ending: str) -> None:
    read = read_trn(written(tmp_path, "a.trn", f"\ufeffa b (x_1){ending}ñ (x_2){ending}"))
    assert (read.ids, read.texts, read.lines) == (("x_1", "x_2"), ("a b", "ñ"), (1, 2))


WRONG: list[tuple[str, Told]] = [
    ("a b\nc (x_1)\n", [(1, 4, "no id")]),
    ("a b (x_1\n", [(1, 5, "not closed")]),
    ("a b x_1)\n", [(1, 9, "not balanced")]),
    ("a b (x_1))\n", [(1, 5, "not balanced")]),
    ("\ta  b ( )  \n", [(1, 7, "the id is empty")]),
    ("a (x\t1)\n", [(1, 3, "contains a space")]),
    ("a b (x_1) c\n", [(1, 5, "does not end with its id, but with 'c'")]),
    ("a b ()\n", [(1, 5, "the id is empty")]),
    ("a b ( )\n", [(1, 5, "the id is empty")]),
    ("a b (x 1)\n", [(1, 5, "the id 'x 1' contains a space")]),
    ("a (x_1)\nb (x_2)\nc (X_1)\n", [(3, 4, "'X_1' occurs twice, first on line 1")]),
    ("a (x_1)\nb\nc (x_1)\n", [(2, 2, "no id"), (3, 4, "on line 1")]),
    (";; nothing\n", [(0, 0, "no transcripts")]),
    ("", [(0, 0, "empty")]),
    ("\n \r\n", [(0, 0, "empty")]),
    ("a (b (id1)\nid2)\n", [(2, 5, "not balanced")]),
]


@pytest.mark.parametrize(("content", "expected"), WRONG)
def test_transcript_mistakes_are_reported_with_their_place(tmp_path: Path, content: str, expected: Told) -> None:
    assert_told(told(read_trn, written(tmp_path, "a.trn", content)), expected)


def test_at_most_fifty_problems_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    problems = problems_of(read_trn, written(tmp_path, "a.trn", "no id\n" * 173))
    assert len(problems) == 51
    assert problems[-1].what == "and 123 more problems"


LINES = st.lists(
    st.text(st.sampled_from("ab ()_;1\t"), max_size=12)
    | st.from_regex(r" \([ab][0-9]{1,2}\)", fullmatch=True)
    | st.from_regex(r"[ab\u00e4\u00a0]{0,3} ?\(?[ab] ?\([abA\u00c4][0-9]{1,2}\)[ \t]?", fullmatch=True),
    min_size=1,
    max_size=6,
)


@given(LINES)
@example(["a (a1)", " (b(b1)"])
@example(["a (a1)", " (b1)", " (b2)", "(b (b3)"])
def test_a_file_is_the_same_parted_at_once_or_line_by_line(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    try:
        expected = split_by_line(text, "a.trn")
    except InputProblems:
        assert split_tidy_text(text) is None
        return
    parts = known(split_tidy_text(text))
    assert tuple(map(list, parts)) == expected


@given(st.binary(max_size=80) | st.text(max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "a.trn", content)
        transcripts = read_or_refused(read_trn, path)
    assert transcripts is None or (len(set(transcripts.ids)) == len(transcripts) > 0)


@pytest.mark.parametrize(
    ("name", "format"), [("a.trn", "trn"), ("A.SRO", "sro"), ("a.b.csv", "csv"), ("a.TSV", "csv"), ("a.Stm", "stm")]
)
def test_the_suffix_decides_the_format(name: str, format: str) -> None:
    assert format_of(Path(name)) is Format(format)


@pytest.mark.parametrize("name", ["a.txt", "trn", "a."])
def test_an_unknown_suffix_is_refused_with_formats_and_option(name: str) -> None:
    with pytest.raises(InputError, match="with --reference-format or --hypothesis-format: trn, ctm, stm, sro, csv"):
        format_of(Path(name))
    with pytest.raises(InputError, match=r"Specify the format with --hypothesis-format: trn, ctm.* with its id: what"):
        format_of(Path(name), "--hypothesis-format")


def test_a_format_that_is_named_wins_over_the_suffix(tmp_path: Path) -> None:
    assert read_transcripts(written(tmp_path, "a.txt", "hi (x_1)\n"), Format.TRN).ids == ("x_1",)
    assert read_transcripts(written(tmp_path, "a.trn", "a.wav,hi\n"), Format.CSV).ids == ("a.wav",)
    assert_told(told(read_transcripts, written(tmp_path, "a.ctm", "f A 1 1 a\n")), [(0, 0, "has times instead of ids")])


def test_ids_pair_across_formats_in_any_case(tmp_path: Path) -> None:
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
    segments = "".join(f"f A ann {number} {number + 1} {text}\n" for number, text in enumerate(lines))
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
    assert_told(told(lambda path: read_pair(segments, path), words), [(3, 5, "begins before the one on line 1")])


@pytest.mark.parametrize("nothing", ["", " \n\n", ";; crashed\n"])
@pytest.mark.parametrize(("first", "second"), [("trn", "trn"), ("csv", "csv"), ("trn", "sro"), ("ctm", "ctm")])
def test_empty_hypothesis_file_matches_no_reference(tmp_path: Path, first: str, second: str, nothing: str) -> None:
    texts = {"trn": "a b (x_1)\n", "csv": "x,a b\n", "ctm": "f A 0 1 a\n"}
    if second == "csv" and nothing.startswith(";"):
        nothing = "audio,text\n"
    empty = written(tmp_path, f"h.{second}", nothing)
    references, hypotheses = read_pair(written(tmp_path, f"r.{first}", texts[first]), empty)
    assert (len(references), hypotheses.ids) == (1, ())
    with pytest.raises(InputError):
        read_pair(empty, empty)


def test_unknown_places_are_reported_once_each(tmp_path: Path) -> None:
    reference = written(tmp_path, "r.stm", "f1 A ann 0 2 a\n")
    hypothesis = written(tmp_path, "h.ctm", "f1 A 0 1 a\nf1 1 0 1 b\nf1 1 1 1 b\nf2 A 0 1 c\n")
    expected = [(2, 1, "nothing for file 'f1', channel '1'"), (4, 1, "nothing for file 'f2', channel 'A'")]
    assert_told(told(lambda path: read_pair(reference, path), hypothesis), expected)


def test_two_ctm_files_have_an_utterance_for_each_file_and_channel(tmp_path: Path) -> None:
    content = "f A 0 1 a\nf A * * <ALT_BEGIN>\nf A 1 1 b\nf A * * <ALT>\nf A * * <ALT_END>\nf B 0 1 c\ng A 0 1 d\n"
    reference = written(tmp_path, "r.ctm", content)
    hypothesis = written(tmp_path, "h.ctm", "g a 5 1 d\nF a 2 1 x\ng A 6 1 e\n")
    references, hypotheses = read_pair(reference, hypothesis)
    assert references.ids == ("f-A-0000", "f-B-0000", "g-A-0000")
    assert references.texts == ("a { b / @ }", "c", "d")
    assert dict(zip(hypotheses.ids, hypotheses.texts, strict=True)) == {"g-A-0000": "d e", "f-A-0000": "x"}


@pytest.mark.parametrize(("first", "second"), [("stm", "trn"), ("trn", "ctm"), ("ctm", "stm"), ("stm", "stm")])
def test_formats_that_do_not_go_together_are_refused(tmp_path: Path, first: str, second: str) -> None:
    with pytest.raises(InputError, match=f"in {second} cannot be scored against a reference in {first}"):
        read_pair(tmp_path / f"r.{first}", tmp_path / f"h.{second}")


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
def test_speakers_of_many_ids_equal_those_of_single_ids(scheme: str, ids: list[str]) -> None:
    speakers_of = speaker_scheme(scheme)
    assert speakers_of(ids) == [speakers_of([id_])[0] for id_ in ids]


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        ("spuid", "Did you mean 'spu_id'"),
        ("/x/", "no capturing group"),
        ("/(/", "not a regular expression"),
        ("//", "no speaker scheme"),
        ("atis", "The schemes are"),
    ],
)
def test_invalid_speaker_scheme_is_refused(scheme: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        speaker_scheme(scheme)


def test_an_endless_expression_is_reported() -> None:
    with pytest.raises(InputError, match="takes too long"):
        speaker_scheme("/((?:a|a|aa)+$)b/")(["a" * 40])


def test_the_text_file_of_a_kaldi_recipe_needs_no_format(tmp_path: Path) -> None:
    file = written(tmp_path, "text", "utt1  turn it\ton\n\nutt2\nUtt3 (thank) you\n")
    read = read_transcripts(file)
    assert (read.ids, read.texts) == (("utt1", "utt2", "Utt3"), ("turn it on", "", "(thank) you"))
    assert read.lines == (1, 3, 4)
    with pytest.raises(InputProblems, match="the id 'UTT1' occurs twice, first on line 1"):
        read_transcripts(written(tmp_path, "twice", "utt1 a\nUTT1 b\n"), Format.KALDI)
    with pytest.raises(InputError, match="the file is empty"):
        read_transcripts(written(tmp_path, "blank", "\n\n"), Format.KALDI)


def test_json_lines_may_hold_reference_and_hypothesis(tmp_path: Path) -> None:
    lines = (
        '{"audio_filepath": "a.wav", "duration": 1.5, "text": "turn  it on", "pred_text": "turn it"}\n\n'
        '{"audio_filepath": "b.wav", "text": "", "prediction": ""}\n'
    )
    file = written(tmp_path, "manifest.jsonl", lines)
    reference, heard = read_pair(file, file)
    assert (reference.ids, reference.texts) == (("a.wav", "b.wav"), ("turn it on", ""))
    assert (heard.ids, heard.texts) == (("a.wav", "b.wav"), ("turn it", ""))
    numbered = read_transcripts(written(tmp_path, "n.jsonl", '{"id": 7, "transcript": "hi"}'))
    assert numbered.ids == ("7",)


def test_json_lines_with_hypotheses_lack_one_where_only_the_reference_stands(tmp_path: Path) -> None:
    lines = '{"id": "a", "text": "play", "pred_text": "pay"}\n{"id": "b", "text": "stop", "pred_txt": "top"}\n'
    file = written(tmp_path, "manifest.jsonl", lines)
    reference, hypothesis = read_pair(file, file)
    assert (reference.ids, hypothesis.ids, hypothesis.texts) == (("a", "b"), ("a",), ("pay",))
    other = written(tmp_path, "recognised.jsonl", '{"id": "a", "text": "pay"}')
    assert read_pair(file, other)[1].texts == ("pay",)


def test_json_lines_without_hypotheses_are_not_scored_against_themselves(tmp_path: Path) -> None:
    file = written(tmp_path, "manifest.jsonl", '{"id": "a", "text": "play", "asr_output": "banana"}')
    with pytest.raises(InputProblems, match="also the reference, and no line has any of these keys: pred_text"):
        read_pair(file, file)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "a"}', "none of these keys has a text: text, transcript"),
        ('{"text": "a"}', "none of these keys has a text: id, utt_id"),
        ('{"id": "a", "text": ["b"]}', "none of these keys has a text"),
        ('{"id": "c", "text": true}', "none of these keys has a text: text, transcript"),
        ('{"id": false, "text": "b"}', "none of these keys has a text: id, utt_id"),
        ('["a", "b"]', "is not a JSON object"),
        ('{"id": "a", "text"', "not JSON"),
        ('{"id": "A", "text": "b"}', "A"),
    ],
)
def test_a_line_that_is_wrong_is_named_with_its_place(tmp_path: Path, line: str, message: str) -> None:
    file = written(tmp_path, "a.jsonl", f'{{"id": "a", "text": "b"}}\n{line}\n')
    with pytest.raises(InputProblems) as refused:
        read_transcripts(file)
    (problem,) = refused.value.problems
    assert message in problem.what
    assert problem.place is not None
    assert problem.place.line == 2
