"""Reference and hypothesis word below word."""

import re

import pytest
from rich.cells import cell_len

from harness.transcripts.reports.text import aligned
from tests.unit.transcripts.reports.scorings import every_sort, foreign, scored

COLOUR = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m")


def plain(index: int, width: int = 80) -> list[str]:
    return list(aligned(*every_sort().utterances([index]), width, colour=False))


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
    found = scored({"a_1": "yes", "a_2": ""}, {"a_1": "yes", "a_2": ""})
    assert list(aligned(*found.utterances([0]), 80, colour=False))[1:] == ["REF:  yes", "HYP:  yes"]
    assert list(aligned(*found.utterances([1]), 80, colour=False))[1:] == ["REF:", "HYP:"]


def test_colour_adds_nothing_but_colour() -> None:
    shown = set()
    for index in range(5):
        coloured = list(aligned(*every_sort().utterances([index]), 80, colour=True))
        assert [COLOUR.sub(r"\2", line).rstrip() for line in coloured] == plain(index)
        for line in coloured:
            if line.startswith("Eval"):
                shown |= set(COLOUR.findall(line))
    assert shown == {("31", "S"), ("33", "D"), ("34", "I")}


@pytest.mark.parametrize("width", [20, 33, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for utterance in (*foreign().utterances(), *every_sort().utterances()):
        found = list(aligned(utterance, width, colour=False))
        assert max(map(cell_len, found)) <= width or utterance.missing
        assert max(map(cell_len, found[1:])) <= max(width, 40)
        assert all(line.isprintable() for line in found)
        assert sum(line.startswith("REF:") for line in found) == sum(line.startswith("HYP:") for line in found)


def test_rows_together_have_every_word_once() -> None:
    words = [f"w{number}" for number in range(100)]
    found = scored({"a_1": " ".join(words)}, {"a_1": " ".join(words[1:])})
    rows = list(aligned(*found.utterances([0]), 50, colour=False))
    said = [word for row in rows if row.startswith("REF:") for word in row.split()[1:]]
    assert said == words
