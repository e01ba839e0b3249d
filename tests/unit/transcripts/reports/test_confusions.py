"""Confusions as lists for people."""

import pytest
from rich.cells import cell_len

from harness.transcripts.reports.text import confused
from harness.transcripts.scoring import confusions
from tests.unit.transcripts.reports.scorings import every_sort, foreign, scored


def test_each_sort_has_its_list() -> None:
    assert list(confused(confusions(every_sort()), 0, 80)) == [
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


def test_what_is_not_listed_is_counted() -> None:
    found = confusions(scored({"a_1": "a b c d d"}, {"a_1": ""}))
    assert list(confused(found, 2, 80))[4:8] == [
        "deleted words: 5 in all, 4 different",
        "  2  d",
        "  1  a",
        "  … and 2 more",
    ]


@pytest.mark.parametrize("width", [30, 80])
def test_foreign_words_keep_within_the_terminal(width: int) -> None:
    found = list(confused(confusions(foreign()), 0, width))
    assert all(line.isprintable() for line in found)
    assert all(cell_len(line) <= width for line in found if line.startswith("  "))
