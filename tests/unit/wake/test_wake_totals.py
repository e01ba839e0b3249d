"""Totals from counts of lines, by the manual's own figures."""

import pytest

from harness.wake.reports.wake_log import StatedWords, wake_totals

NO_WORDS = StatedWords()


def test_the_manuals_example() -> None:
    found = wake_totals({"OOVFA": 118, "INVTA": 2525, "INVFR": 87, "INVFA": 9}, 142.984, count_in_vocabulary=False,
                        words=NO_WORDS)  # fmt: skip
    assert found["FACOUNT"] == 118
    assert f"{found['FARATE']:.2f}" == "0.83"
    assert f"{found['FRRATIO']:.2f}" == "3.33"
    assert list(found) == ["FACOUNT", "FARATE", "FRCOUNT", "FRRATIO", "TACOUNT"]


def test_in_vocabulary_false_accepts_count_where_that_is_asked_for() -> None:
    lines = {"OOVFA": 1, "INVFA": 2}
    assert wake_totals(lines, 2.0, count_in_vocabulary=True, words=NO_WORDS) == {"FACOUNT": 3, "FARATE": 1.5}


def test_substitutions_are_no_false_rejects_and_words_have_a_rate_of_their_own() -> None:
    found = wake_totals({"STTTA": 2, "STTSB": 1, "STTFR": 1}, 0.0, count_in_vocabulary=False,
                        words=StatedWords(9174, 833, 198, 120))  # fmt: skip
    assert (found["FRCOUNT"], found["FR+SBCOUNT"], found["FR+SBRATIO"]) == (1, 2, 50)
    assert found["WER"] == pytest.approx(12.546, abs=5e-4)
    assert "FACOUNT" not in found


def test_nothing_has_no_totals() -> None:
    assert wake_totals({}, 0.0, count_in_vocabulary=True, words=NO_WORDS) == {}
    assert wake_totals({"OOVFA": 1}, 0.0, count_in_vocabulary=False, words=NO_WORDS) == {"FACOUNT": 1}
