"""Judgment rows, and what raters read."""

from harness.model.judgment import Category, JudgmentStatus
from harness.rating.guide import GUIDE, KEYS, LABELS
from harness.rating.items import Subject, new_row, withdrawal

SUBJECT = Subject("time-1", 2, "abc")


def test_every_category_has_a_key_of_its_own_a_label_and_a_text() -> None:
    assert [category for _, category in KEYS] == list(Category)
    assert "".join(key for key, _ in KEYS) == "1234567890-"
    assert set(LABELS) == set(GUIDE) == set(Category)
    assert len({text.short for text in GUIDE.values()}) == len(Category)
    assert all(len(text.short) <= 54 for text in GUIDE.values()), "a short text must fit beside its key"


def test_a_row_says_what_was_judged_and_an_undo_what_it_takes_back() -> None:
    row, other = (new_row(SUBJECT, "ann", JudgmentStatus.SUBMITTED, Category.WRONG, plays=2) for _ in range(2))
    assert (row.trial_id, row.attempt, row.clip_sha256, row.rater, row.plays) == ("time-1", 2, "abc", "ann", 2)
    assert row.tool_version
    undo = withdrawal(row)
    assert (undo.status, undo.replaces, undo.category) == (JudgmentStatus.WITHDRAWN, row.id, None)
    assert len({row.id, other.id, undo.id}) == 3
