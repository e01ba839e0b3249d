"""Tables in a terminal."""

from __future__ import annotations

from harness.base.text_table import Column, text_table

COLUMNS = (Column("voice"), Column("words"), Column("errors", gives_way=1), Column("note", left=True, gives_way=2))
ROWS = (("amy", "12", "1", "quiet"), ("a speaker with a very long name", "1200", "17", ""))


def test_numbers_are_aligned_right_and_notes_left() -> None:
    assert list(text_table(COLUMNS, ROWS, 80, ends=[("all", "1212", "18", "")])) == [
        "voice                            words  errors  note",
        "─" * 53,
        "amy                                 12       1  quiet",
        "a speaker with a very long name   1200      17",
        "─" * 53,
        "all                               1212      18",
    ]


def test_narrow_table_drops_columns_and_names_them() -> None:
    lines = list(text_table(COLUMNS, ROWS, 23))
    assert lines[0] == "voice     words  errors"
    assert lines[-1] == "(no room for: note)"
    assert lines[3].endswith("…   1200      17")


def test_labels_are_never_cut_so_far_that_they_look_the_same() -> None:
    rows = [("microwakeword:alexa", "12", "1", ""), ("microwakeword:jarvis", "1200", "17", "")]
    lines = list(text_table(COLUMNS, rows, 23))
    assert [line.split()[0] for line in lines[2:4]] == ["microwakeword:a…", "microwakeword:j…"]
    assert (max(map(len, lines[:4])), lines[-1]) == (23, "(no room for: errors, note)")


def test_a_number_is_never_cut() -> None:
    assert list(text_table(COLUMNS[:2], [("amy", "123456789012")], 10))[2].endswith("123456789012")


def test_hostile_names_and_wide_letters_keep_columns_aligned() -> None:
    lines = list(text_table(COLUMNS[:2], [("\x1b[2Jamy", "1"), ("東京", "2")], 40))
    assert "\x1b" not in lines[2]
    assert lines[3] == "東京" + " " * (lines[2].index("1") - 4) + "2"


def test_rows_above_the_limit_are_counted() -> None:
    assert list(text_table(COLUMNS[:2], [("a", "1")] * 5, 40, max_rows=2))[-1] == "… and 3 more"


def test_a_last_column_of_words_is_folded_before_labels_are_cut() -> None:
    columns = (Column("metric"), Column("value"), Column("counts", left=True, folds=True))
    rows = [("precision, weighted", "62.50 %", "mean over labels, each weighted"), ("F1", "66.67 %", "2 of 3")]
    assert list(text_table(columns, rows, 54, max_rows=1)) == [
        "metric                 value  counts",
        "─" * 52,
        "precision, weighted  62.50 %  mean over labels, each",
        "                              weighted",
        "… and 1 more",
    ]
    assert [len(line) for line in text_table(columns, rows, 80)] == [36, 61, 61, 36]
