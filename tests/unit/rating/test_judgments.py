"""Judgment rows, and what raters read."""

from harness.model.judgment import Category, Flag, JudgmentStatus
from harness.rating.guide import GUIDE, KEYS, LABELS, category_of
from harness.rating.items import Sitting, Subject, withdrawal

SITTING = Sitting("ann", Subject("time-1", 2, "abc"), comment="mumbled", plays=2, time_to_answer_s=3.5)


def test_every_category_has_a_key_of_its_own_a_label_and_a_text() -> None:
    assert [category for _, category in KEYS] == list(Category)
    assert "".join(key for key, _ in KEYS) == "1234567890-"
    assert set(LABELS) == set(GUIDE) == set(Category)
    assert len({text.short for text in GUIDE.values()}) == len(Category)
    assert all(len(text.short) <= 54 for text in GUIDE.values()), "a short text must fit beside its key"


def test_keys_stand_for_categories() -> None:
    assert category_of("1") is Category.CORRECT
    assert category_of("-") is Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE
    assert category_of("z") is None


def test_a_submitted_row_says_what_was_judged_and_how() -> None:
    row = SITTING.submit(Category.WRONG)
    assert (row.trial_id, row.attempt, row.clip_sha256, row.rater) == ("time-1", 2, "abc", "ann")
    assert (row.status, row.category) == (JudgmentStatus.SUBMITTED, Category.WRONG)
    assert (row.comment, row.plays, row.time_to_answer_s) == ("mumbled", 2, 3.5)
    assert row.tool_version
    assert row.id != SITTING.submit(Category.WRONG).id


def test_skips_and_flags_have_no_category() -> None:
    assert SITTING.skip().category is None
    flagged = SITTING.flag((Flag.PRIVACY, Flag.CUT_RESPONSE))
    assert flagged.status is JudgmentStatus.FLAGGED
    assert flagged.flags == ("privacy", "cut_response")


def test_an_undo_names_what_it_takes_back() -> None:
    row = SITTING.submit(Category.WRONG)
    undo = withdrawal(row)
    assert (undo.status, undo.replaces, undo.category) == (JudgmentStatus.WITHDRAWN, row.id, None)
    assert undo.id != row.id
