"""The one reader of comma-separated text, and what it reads of what we write."""

from __future__ import annotations

import pytest

from harness.base.text_file import CsvRows, Problems, safe_csv, without_mark


def rows_of(text: str, separator: str = ",") -> list[tuple[int, list[str]]]:
    problems = Problems("x.csv")
    rows = list(CsvRows.of(text, problems, separator))
    problems.refuse()
    return rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\r\n\r\n1,2\r\n", [(1, ["a", "b"]), (3, ["1", "2"])]),
        ('a,b\r\n"1\r\n,x",2\r\n3,4\r\n', [(1, ["a", "b"]), (2, ["1\r\n,x", "2"]), (4, ["3", "4"])]),
        ("a\rb\r", [(1, ["a"]), (2, ["b"])]),
        ("sep=,\r\na,b\n", [(2, ["a", "b"])]),
        ('"sep=;"\na;b,c\n', [(2, ["a", "b,c"])]),
        ('SEP=;\na;"b;\nc"\n', [(2, ["a", "b;\nc"])]),
        ("sep=\t\na\tb\n", [(2, ["a", "b"])]),
        ("#TYPE System.Data\r\na,b\n", [(2, ["a", "b"])]),
        ("\n , \na,b\n", [(3, ["a", "b"])]),
        ("sep=,\n", []),
        ("", []),
    ],
)
def test_rows_have_the_line_in_which_they_begin(text: str, rows: list[tuple[int, list[str]]]) -> None:
    assert rows_of(text) == rows


def test_tabs_separate_cells_with_quotes_of_either_kind() -> None:
    common_voice = 'path\tsentence\na.mp3\the said ""hi""\nb.mp3\t""Hi"" he said\nc.mp3\t""Hi""\n'
    assert [row[1] for _, row in rows_of(common_voice, "\t")][1:] == ['he said "hi"', '"Hi" he said', '"Hi"']
    spreadsheet = 'a\tb\r\n1\t"say ""hi"""\r\n2\t"two\r\nlines"\t3\r\n4\t5" disk\r\n'
    assert rows_of(spreadsheet, "\t") == [
        (1, ["a", "b"]), (2, ["1", 'say "hi"']), (3, ["2", "two\r\nlines", "3"]), (5, ["4", '5" disk']),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "separator", "words"),
    [
        ("a;b\n1;2\n", ",", "x.csv:1:1: the columns are separated by semicolons, not by commas.*sep=;"),
        ("\na\tb\n", ",", "x.csv:2:1: the columns are separated by tabs, not by commas"),
        ("a,b\n", "\t", "x.csv:1:1: the columns are separated by commas, not by tabs"),
        ("sep=;\na,b\n", ",", "x.csv:2:1: the columns are separated by commas, not by semicolons"),
        ('a,b\n1,"2\n3,4\n', ",", "x.csv:2:1: a quote is not closed"),
        ('a\tb\n1\t"2\n3\t4\n', "\t", "x.csv:2:1: a quote is not closed"),
    ],
)
def test_another_separator_is_named_not_guessed(text: str, separator: str, words: str) -> None:
    with pytest.raises(Exception, match=words):
        rows_of(text, separator)


def test_a_decimal_comma_is_read_where_commas_do_not_separate_cells() -> None:
    assert CsvRows.of("sep=;\n", Problems("x")).number("1,5") == "1.5"
    assert CsvRows.of("", Problems("x"), "\t").number("-0,25") == "-0.25"
    assert CsvRows.of("", Problems("x")).number("1,234") == "1,234"
    assert CsvRows.of("sep=;\n", Problems("x")).number("1.234,5") == "1.234,5"


@pytest.mark.parametrize(
    "cell", ["a\rb", "a\r\nb", "\r", "=1+1", "'x", "''x", '"', "a,b", ";", "\t", "é\u200d", "sep=;"]
)
def test_written_csv_reads_back_unchanged(cell: str) -> None:
    (_, header), (_, row) = rows_of(safe_csv([["a", "b"], [cell, "1"]]))
    assert (header, [without_mark(field) for field in row]) == (["a", "b"], [cell, "1"])
