"""A scoring as a table and as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len

from harness.base.text_table import shown
from harness.model.transcript import WordCounts
from harness.transcripts.groups import compare
from harness.transcripts.reports import scoring_json, text
from harness.transcripts.reports.scoring_json import SourcedScoring, SourceFile, json_chunks
from harness.transcripts.reports.text import alignment_lines, confusions_section
from tests.unit.transcripts.reports.scorings import HOSTILE, every_sort, foreign, reported, scored


def test_summary_has_a_line_per_speaker_and_totals() -> None:
    assert list(text.summary(every_sort()).lines(100)) == [
        "speaker    sentences  words  correct   sub   del   ins   err  sent.err",
        "─" * 70,
        "amy                3      6     66.7  16.7  16.7  33.3  66.7     100.0",
        "bob                2      6     50.0  16.7  33.3   0.0  50.0     100.0",
        "─" * 70,
        "Sum / avg          5     12     58.3  16.7  25.0  16.7  58.3     100.0",
        "Mean             2.5    6.0     58.3  16.7  25.0  16.7  58.3     100.0",
        "S.D.             0.7    0.0     11.8   0.0  11.8  23.6  11.8       0.0",
        "Median           2.5    6.0     58.3  16.7  25.0  16.7  58.3     100.0",
    ]


def test_notes_explain_what_the_figures_rest_on() -> None:
    assert list(text.notes(every_sort(), (0.25, 0.9), 100).lines(100)) == [
        "normalisation        verbatim",
        "WER                  7 of 12 = 58.33 % (95 % interval 25.00–90.00 %)",
        "interval             applies to further utterances of these speakers",
        "missing hypotheses   1 (bob_2); each word counts as deleted",
        "surplus hypotheses   1 (dog_1); counted nowhere",
        "empty references     1",
    ]
    nameless = replace(every_sort(), by_speaker=(("", every_sort().totals),))
    like_these = "interval             applies to further utterances like these"
    assert like_these in text.notes(nameless, (0.25, 0.9), 100).lines(100)
    dropped = scored({"a_1": "x", "a_2": "y"}, {"a_1": "x"}, drop=True)
    assert "missing hypotheses   1 (a_2); left out" in text.notes(dropped, None, 100).lines(100)


def test_scores_without_words_are_na() -> None:
    empty = scored({"a_1": "", "a_2": ""}, {"a_1": "uh oh"})
    lines = [line.split() for line in text.summary(empty).lines(100)]
    assert ["a", "2", "0", *5 * ["n/a"], "50.0"] in lines
    assert ["S.D.", *8 * ["n/a"]] in lines
    assert "WER                  n/a (no words; 2 inserted)" in text.notes(empty, None, 100).lines(100)
    nobody = scored({}, {})
    assert ["Sum", "/", "avg", "0", "0", *6 * ["n/a"]] in [line.split() for line in text.summary(nobody).lines(100)]
    assert text.wer_in_words(WordCounts(1), None) == "0 of 1 = 0.00 % (95 % interval n/a)"


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_table_columns_stay_aligned_with_any_names(width: int) -> None:
    for scoring in (foreign(), every_sort()):
        lines = list(text.summary(scoring).lines(width))
        rows = [line for line in lines if not line.startswith("(no room")]
        assert len({cell_len(line) for line in rows}) == 1
        assert cell_len(rows[0]) <= width
        assert all(line.isprintable() for line in (*lines, *text.notes(scoring, None, width).lines(width)))
        assert "err" in rows[0].split()


def test_a_narrow_terminal_says_which_columns_it_has_no_room_for() -> None:
    *_, last = text.summary(every_sort()).lines(40)
    assert last == "(no room for: sentences, correct, sent.err)"
    assert not any("no room" in line for line in text.summary(every_sort()).lines(70))


def test_systems_are_set_side_by_side() -> None:
    scorings = [every_sort("first"), every_sort("second one"), foreign()]
    systems = [
        reported(scoring, interval) for scoring, interval in zip(scorings, [(0.1, 0.2), None, None], strict=True)
    ]
    lines = list(text.comparison_lines(systems, compare(scorings), 100))
    assert lines[0] == "first" + " " * (cell_len(lines[0].partition("  WER")[0]) - 5) + (
        "  WER 7 of 12 = 58.33 % (95 % interval 10.00–20.00 %)"
    )
    assert lines[4] == "first against second one"
    assert lines[5:8] == [
        "  on the same 5 utterances: 58.33 % against 58.33 %",
        "  first has no hypothesis for 1 of them: each word counts as deleted",
        "  second one has no hypothesis for 1 of them: each word counts as deleted",
    ]
    differ = "second one is not shown to differ from first: second one minus first"
    assert lines[8].startswith(f"  {differ} +0.00 points (-")
    assert lines[8].endswith("), p = 1.000")
    assert f"  {shown(foreign().title, 33)} minus first n/a" in lines
    assert all(line.isprintable() for line in lines)


def test_each_kind_of_confusion_has_its_list() -> None:
    assert list(confusions_section(every_sort()).lines(80)) == [
        "substitution pairs, reference → hypothesis: 2 in all, 2 different",
        "  1  to → two",
        "  1  へ → に",
        "",
        "inserted words: 2 in all, 2 different",
        "  1  please",
        "  1  uh",
        "",
        "deleted words: 3 in all, 3 different",
        "  1  heard",
        "  1  never",
        "  1  the",
        "",
        "substituted words of the references: 2 in all, 2 different",
        "  1  to",
        "  1  へ",
        "",
        "falsely recognised words of the hypotheses: 2 in all, 2 different",
        "  1  two",
        "  1  に",
    ]


def test_unlisted_confusions_are_counted() -> None:
    section = confusions_section(scored({"a_1": "a b c d d"}, {"a_1": ""}))
    assert list(section.lines(80, 2))[4:8] == [
        "deleted words: 5 in all, 4 different",
        "  2  d",
        "  1  a",
        "  … and 2 more",
    ]


@pytest.mark.parametrize("width", [30, 80])
def test_foreign_words_keep_within_the_terminal(width: int) -> None:
    lines = list(confusions_section(foreign()).lines(width))
    assert all(line.isprintable() for line in lines)
    assert all(cell_len(line) <= width for line in lines if line.startswith("  "))


COLOUR = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m")


def plain(index: int, width: int = 80) -> list[str]:
    return list(alignment_lines(*every_sort().utterances([index]), width, colour=False))


def test_each_error_has_its_letter_below() -> None:
    assert plain(0) == [
        "id: amy_1   speaker: amy   C 3  S 0  D 1  I 0",
        "REF:  show me the flights",
        "HYP:  show me *** flights",
        "Eval:         D",
    ]
    assert plain(1) == [
        "id: amy_2   speaker: amy   C 1  S 1  D 0  I 1",
        "REF:  to  boston ******",
        "HYP:  two boston please",
        "Eval: S          I",
    ]
    assert plain(4)[0].endswith("(no hypothesis)")


def test_wide_letters_take_two_columns_and_combining_ones_none() -> None:
    *_, reference, hypothesis, marks = plain(3)
    assert cell_len(reference) == cell_len(hypothesis) == len("REF:  ") + 4 + 1 + 2 + 1 + 4 + 1 + 2
    assert marks.index("S") == cell_len("REF:  東京 ")


def test_all_correct_has_no_line_of_marks() -> None:
    scoring = scored({"a_1": "yes", "a_2": ""}, {"a_1": "yes", "a_2": ""})
    assert list(alignment_lines(*scoring.utterances([0]), 80, colour=False))[1:] == ["REF:  yes", "HYP:  yes"]
    assert list(alignment_lines(*scoring.utterances([1]), 80, colour=False))[1:] == ["REF:", "HYP:"]


def test_coloured_output_has_the_same_text() -> None:
    shown = set()
    for index in range(5):
        coloured = list(alignment_lines(*every_sort().utterances([index]), 80, colour=True))
        assert [COLOUR.sub(r"\2", line).rstrip() for line in coloured] == plain(index)
        for line in coloured:
            if line.startswith("Eval"):
                shown |= set(COLOUR.findall(line))
    assert shown == {("31", "S"), ("33", "D"), ("34", "I")}


@pytest.mark.parametrize("width", [20, 33, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for utterance in (*foreign().utterances(), *every_sort().utterances()):
        lines = list(alignment_lines(utterance, width, colour=False))
        assert max(map(cell_len, lines)) <= width or utterance.missing
        assert max(map(cell_len, lines[1:])) <= max(width, 40)
        assert all(line.isprintable() for line in lines)
        assert sum(line.startswith("REF:") for line in lines) == sum(line.startswith("HYP:") for line in lines)


def test_wrapped_rows_contain_every_word_once() -> None:
    words = [f"w{number}" for number in range(100)]
    scoring = scored({"a_1": " ".join(words)}, {"a_1": " ".join(words[1:])})
    rows = list(alignment_lines(*scoring.utterances([0]), 50, colour=False))
    ref_words = [word for row in rows if row.startswith("REF:") for word in row.split()[1:]]
    assert ref_words == words


FILES = SourceFile(HOSTILE, "trn", "utf-8", "00"), SourceFile("hyp.trn", "csv", "latin-1", "ff")


def read(*systems: SourcedScoring) -> Any:
    text = "".join(json_chunks(systems, compare([system.scoring for system in systems])))
    assert text.isascii()
    assert text.endswith("}\n")
    return json.loads(text)


def test_one_system_is_one_object() -> None:
    report = read(SourcedScoring(every_sort("mine"), *FILES, (0.25, 0.75), like_sclite=True))
    assert list(report) == [
        "format", "harness", "title", "normalisation", "unit", "like_sclite", "optional_words", "fragments",
        "reference", "hypothesis", "totals", "wer", "interval", "interval_over", "speakers", "missing",
        "missing_counted", "surplus", "empty_references", "confidence", "entities", "talkers", "groups_file", "groups",
        "crossed",
        "groups_left_out", "without_group", "groups_of_no_utterance", "utterances",
    ]  # fmt: skip
    assert report["totals"] == {
        "sentences": 5,
        "sentences_with_error": 5,
        "words": 12,
        "correct": 7,
        "substitutions": 2,
        "deletions": 3,
        "insertions": 2,
    }
    assert (report["wer"], report["interval"], report["title"]) == (7 / 12, [0.25, 0.75], "mine")
    assert (report["missing"], report["missing_counted"], report["surplus"]) == (["bob_2"], 1, ["dog_1"])
    assert [speaker["speaker"] for speaker in report["speakers"]] == ["amy", "bob"]
    assert report["reference"] == {"file": HOSTILE, "format": "trn", "encoding": "utf-8", "sha256": "00"}
    assert report["utterances"][1] == {
        "id": "amy_2",
        "correct": 1,
        "substitutions": 1,
        "deletions": 0,
        "insertions": 1,
        "path": "SCI",
    }
    assert [utterance["path"] for utterance in report["utterances"]] == ["CCDC", "SCI", "I", "CSCC", "DD"]


def test_rates_over_nothing_are_null() -> None:
    report = read(SourcedScoring(scored({"a_1": ""}, {}), *FILES, None))
    assert (report["wer"], report["interval"], report["speakers"][0]["wer"]) == (None, None, None)
    assert report["utterances"] == [
        {"id": "a_1", "correct": 0, "substitutions": 0, "deletions": 0, "insertions": 0, "path": ""}
    ]
    assert read(SourcedScoring(scored({}, {}), *FILES, None))["utterances"] == []


def test_several_systems_are_compared() -> None:
    report = read(
        SourcedScoring(every_sort("a"), *FILES, None),
        SourcedScoring(foreign(), *FILES, None),
        SourcedScoring(every_sort("b"), *FILES, None),
    )
    assert list(report) == ["systems", "comparisons"]
    assert len(report["systems"]) == len(report["comparisons"]) == 3
    pair = report["comparisons"][1]
    assert (pair["first"], pair["second"], pair["utterances"], pair["difference"]) == ("a", "b", 5, 0.0)
    assert (pair["first_missing"], pair["second_missing"]) == (1, 1)


def test_chunks_of_json_join_without_gaps() -> None:
    for utterances in (
        scoring_json.UTTERANCES_PER_CHUNK - 1,
        scoring_json.UTTERANCES_PER_CHUNK,
        scoring_json.UTTERANCES_PER_CHUNK + 1,
        2 * scoring_json.UTTERANCES_PER_CHUNK,
    ):
        texts = {f"a_{number}": "x" for number in range(utterances)}
        assert [
            utterance["id"] for utterance in read(SourcedScoring(scored(texts, texts), *FILES, None))["utterances"]
        ] == list(texts)
