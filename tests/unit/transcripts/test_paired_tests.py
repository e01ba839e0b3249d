"""Two systems under every test: what is compared, and who is better."""

from __future__ import annotations

import pytest

from harness.transcripts.groups import compare
from harness.transcripts.paired_tests import PairedBy, PairedTest, segment_errors
from tests.unit.transcripts.reports.scorings import scored


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("CCCC", "CCCC", []),
        ("SCCC", "CCCS", [(1, 0), (0, 1)]),  # two correct words between them
        ("SCSC", "CCCC", [(2, 0)]),  # one is too few
        ("SCC", "CSC", [(1, 1)]),
        ("SCICS", "CCCC", [(3, 0)]),  # words put in part the correct ones
        ("SCCIS", "CCCC", [(1, 0), (2, 0)]),
        ("CC", "CCI", [(0, 1)]),  # also at the end, where only the second has it
        ("ISC", "CDII", [(2, 3)]),
        ("", "II", [(0, 2)]),
        ("DCC", "SCCS", [(1, 2)]),  # references of different lengths
    ],
)
def test_segments_end_with_two_words_that_both_have(first: str, second: str, expected: list[tuple[int, int]]) -> None:
    assert list(segment_errors(first, second)) == expected
    assert list(segment_errors(second, first)) == [(right, left) for left, right in expected]


def test_two_systems_are_compared_by_every_test() -> None:
    references = {"a_1": "one two three four five", "a_2": "one two", "b_1": "one", "b_2": "", "b_3": "one two"}
    (pair,) = compare(
        [
            scored(
                references, {"a_1": "x two three four x", "a_2": "one two", "b_1": "one", "b_2": "", "b_3": "one two"}
            ),
            scored(references, {"a_1": "x two three four five", "a_2": "x x", "b_2": "x", "b_3": "one two"}),
        ]
    )
    tests = {test.by: test for test in pair.tests}
    assert (pair.recognised.both, pair.recognised.only_first) == (1, 3)
    assert (pair.recognised.only_second, pair.recognised.neither) == (0, 1)
    assert tests[PairedBy.RECOGNISED] == PairedTest(PairedBy.RECOGNISED, "utterances", 5, 3, 0, 0.25, 0.25)
    # Errors 1 : 1, 1 : 0, 0 : 2, 0 : 1 and 0 : 1.
    segment_test = tests[PairedBy.SEGMENTS]
    assert (segment_test.units, segment_test.first_better, segment_test.second_better) == (5, 3, 1)
    # Of the four with words: one better, two worse.
    signs = tests[PairedBy.SIGNS]
    assert (signs.units, signs.first_better, signs.second_better, signs.p) == (4, 2, 1, 1.0)
    assert tests[PairedBy.RANKS].p == pytest.approx(0.5)  # ranks -1, 2.5 and 2.5; as far as 4 in 4 of 8 ways
    assert tests[PairedBy.WORDS].p == pair.p


def test_speakers_are_units_where_there_are_five() -> None:
    references = {f"{speaker}_{number}": "one two" for speaker in "abcde" for number in range(2)}
    worse = {id_: "one" if id_.endswith("0") else text for id_, text in references.items()}
    (pair,) = compare([scored(references, references), scored(references, worse)])
    signs = {test.by: test for test in pair.tests}[PairedBy.SIGNS]
    assert (signs.unit, signs.units, signs.first_better, signs.p) == ("speakers", 5, 5, 2 / 32)


def test_several_systems_are_corrected_for_all_pairs() -> None:
    references = {f"a_{number}": "one two" for number in range(8)}
    worse = {id_: "one" if id_ < "a_6" else text for id_, text in references.items()}
    pairs = compare([scored(references, references), scored(references, worse), scored(references, references)])
    tests = [{test.by: test for test in pair.tests}[PairedBy.RECOGNISED] for pair in pairs]
    assert [test.p for test in tests] == [2 / 64, None, 2 / 64]
    assert [test.adjusted for test in tests] == [4 / 64, None, 4 / 64]  # of the two pairs that differ


def test_empty_scorings_have_no_p_values() -> None:
    (pair,) = compare([scored({}, {}), scored({}, {})])
    assert [(test.units, test.p, test.adjusted) for test in pair.tests] == [(0, None, None)] * 5
