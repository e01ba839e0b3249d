"""The table by speaker and what stands below it."""

import pytest
from rich.cells import cell_len

from harness.model.transcript import WordCounts
from harness.transcripts.groups import compare
from harness.transcripts.reports import text
from tests.unit.transcripts.reports.scorings import every_sort, foreign, reported, scored


def test_a_line_for_each_speaker_and_what_they_are_together() -> None:
    assert list(text.summary(every_sort(), 100)) == [
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


def test_below_it_stands_what_the_figures_rest_on() -> None:
    assert list(text.notes(every_sort(), (0.25, 0.9), 100)) == [
        "normalisation        verbatim",
        "WER                  7 of 12 = 58.33 % (95 % interval 25.00–90.00 %)",
        "interval             for further utterances of these speakers",
        "missing hypotheses   1 (bob_2); each word counts as deleted",
        "surplus hypotheses   1 (dog_1); counted nowhere",
        "empty references     1",
    ]
    dropped = scored({"a_1": "x", "a_2": "y"}, {"a_1": "x"}, drop=True)
    assert "missing hypotheses   1 (a_2); left out" in text.notes(dropped, None, 100)


def test_over_no_words_nothing_is_a_number() -> None:
    empty = scored({"a_1": "", "a_2": ""}, {"a_1": "uh oh"})
    lines = [line.split() for line in text.summary(empty, 100)]
    assert ["a", "2", "0", *5 * ["n/a"], "50.0"] in lines
    assert ["S.D.", *8 * ["n/a"]] in lines
    assert "WER                  n/a (of no words; 2 inserted)" in text.notes(empty, None, 100)
    nobody = scored({}, {})
    assert ["Sum", "/", "avg", "0", "0", *6 * ["n/a"]] in [line.split() for line in text.summary(nobody, 100)]
    assert text.wer_in_words(WordCounts(1), None) == "0 of 1 = 0.00 % (95 % interval n/a)"


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_columns_hold_whatever_the_names_are(width: int) -> None:
    for scoring in (foreign(), every_sort()):
        lines = list(text.summary(scoring, width))
        rows = [line for line in lines if not line.startswith("(no room")]
        assert len({cell_len(line) for line in rows}) == 1
        assert cell_len(rows[0]) <= width
        assert all(line.isprintable() for line in (*lines, *text.notes(scoring, None, width)))
        assert "err" in rows[0].split()


def test_a_narrow_terminal_says_which_columns_it_has_no_room_for() -> None:
    *_, last = text.summary(every_sort(), 40)
    assert last == "(no room for: sentences, correct, sent.err)"
    assert not any("no room" in line for line in text.summary(every_sort(), 70))


def test_systems_are_set_side_by_side() -> None:
    scorings = [every_sort("first"), every_sort("second one"), foreign()]
    systems = [reported(one, interval) for one, interval in zip(scorings, [(0.1, 0.2), None, None], strict=True)]
    lines = list(text.compared(systems, compare(scorings), 100))
    assert lines[0] == "first" + " " * (cell_len(lines[0].partition("  WER")[0]) - 5) + (
        "  WER 7 of 12 = 58.33 % (95 % interval 10.00–20.00 %)"
    )
    assert lines[4] == "first against second one"
    assert lines[5:8] == [
        "  on the same 5 utterances: 58.33 % against 58.33 %",
        "  first has no hypothesis for 1 of them: each word counts as deleted",
        "  second one has no hypothesis for 1 of them: each word counts as deleted",
    ]
    assert lines[8].startswith("  difference +0.00 points (95 % interval -")
    assert lines[8].endswith("), p = 1.000")
    assert "  difference n/a (of no words)" in lines
    assert all(line.isprintable() for line in lines)
