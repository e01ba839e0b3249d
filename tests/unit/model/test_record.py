"""Rows in the order in which they were given; keys of annotators."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.annotation import KEYS, LINE_KEYS, AnnotationAction, Label, LabelSet, action_key, label_keys
from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.record import Entry, NoteWritten
from harness.model.row_times import chronological
from harness.model.time import MeasuredDuration, Stamp, between


def judgment(status: JudgmentStatus, category: Category | None, confidence: int | None = None) -> Judgment:
    return Judgment("id", "trial", 1, "rater", status, category, "0" * 64, confidence=confidence)


@pytest.mark.parametrize("status", list(JudgmentStatus))
def test_a_category_belongs_to_a_submitted_judgment_only(status: JudgmentStatus) -> None:
    fitting, other = (Category.WRONG, None) if status is JudgmentStatus.SUBMITTED else (None, Category.WRONG)
    assert judgment(status, fitting).category is fitting
    with pytest.raises(ValueError, match="category"):
        judgment(status, other)


def test_confidence_must_be_one_to_three() -> None:
    with pytest.raises(ValueError, match="confidence"):
        judgment(JudgmentStatus.SKIPPED, None, confidence=4)


def test_the_guide_has_eleven_categories() -> None:
    assert len(Category) == 11


def row(name: str, seq: int, wall_s: float) -> Entry:
    return Entry(seq, 0, 0.0, wall_s, NoteWritten(name, "ann"))


def test_files_merge_by_time_even_if_the_clock_steps_back() -> None:
    log = [row("a", 1, 100.0), row("b", 2, 300.0)]
    later = [row("c", 1, 200.0), row("d", 2, 400.0), row("e", 3, 50.0), row("f", 4, 60.0)]
    texts = [entry.record.text for entry in chronological(log, later) if isinstance(entry.record, NoteWritten)]
    assert texts == ["a", "c", "b", "d", "e", "f"]


SECONDS = st.floats(min_value=-1e6, max_value=1e6)
ERRORS = st.floats(min_value=0, max_value=10)


@given(SECONDS, ERRORS, SECONDS, ERRORS, st.floats(-1, 1), st.floats(-1, 1))
def test_the_true_duration_lies_within_the_stated_error(
    start: float, start_error: float, end: float, end_error: float, u: float, v: float
) -> None:
    measured = between(Stamp(start, start_error), Stamp(end, end_error))
    true = (end + v * end_error) - (start + u * start_error)
    assert abs(true - measured.value_s) <= measured.error_s + 1e-9 * (1 + abs(true))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_time_must_be_finite(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Stamp(bad)
    with pytest.raises(ValueError, match="finite"):
        MeasuredDuration(0.0, bad)


def test_a_time_error_must_not_be_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        Stamp(0.0, -0.001)


PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "annotate-utterances.md"
HEAD = "| key | on a page of a group | by hand |\n|---|---|---|\n"


def test_the_page_for_annotators_has_the_keys_of_the_code() -> None:
    _, _, table = PAGE.read_text(encoding="utf-8").partition(HEAD)
    _, *rows = table.partition("\n\n")[0].splitlines()
    assert [re.findall("`([^`]+)`", row.split(" | ")[0]) for row in rows] == [list(keys) for keys in KEYS.values()]
    assert list(KEYS) == list(AnnotationAction)


def test_no_key_has_two_meanings() -> None:
    every = [*LINE_KEYS, *(key for keys in KEYS.values() for key in keys)]
    assert len(every) == len(set(every))


def test_label_keys_from_the_file_take_precedence() -> None:
    labels = LabelSet("x", "", tuple(Label(f"l{n}", key="1" if n == 2 else "") for n in range(70)))
    keys = label_keys(labels)
    assert (keys["l2"], keys["l0"], keys["l1"], keys["l3"]) == ("1", "2", "3", "4")
    line_keys = [key for key in keys.values() if key]
    assert len(line_keys) == len(set(line_keys)) == len(LINE_KEYS)


def test_an_action_is_offered_by_a_key_that_no_label_has_taken() -> None:
    labels = LabelSet("x", "", (Label("one", key="u"), Label("two", key="?")))
    assert (action_key(AnnotationAction.UNDO), action_key(AnnotationAction.UNDO, labels)) == ("u", "backspace")
    assert action_key(AnnotationAction.GUIDE, labels) == "f1"
    every = LabelSet("x", "", tuple(Label(f"l{n}", key=chr(33 + n)) for n in range(94)))
    for action in AnnotationAction:
        assert len(action_key(action, every)) > 1
