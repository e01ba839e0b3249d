"""A judgment has a category exactly when it was submitted."""

import pytest

from harness.model.judgment import Category, Judgment, JudgmentStatus


def judgment(status: JudgmentStatus, category: Category | None, confidence: int | None = None) -> Judgment:
    return Judgment("id", "trial", 1, "rater", status, category, "0" * 64, confidence=confidence)


@pytest.mark.parametrize("status", list(JudgmentStatus))
def test_a_category_belongs_to_a_submitted_judgment_only(status: JudgmentStatus) -> None:
    fitting, other = (Category.WRONG, None) if status is JudgmentStatus.SUBMITTED else (None, Category.WRONG)
    assert judgment(status, fitting).category is fitting
    with pytest.raises(ValueError, match="category"):
        judgment(status, other)


def test_confidence_is_one_to_three() -> None:
    with pytest.raises(ValueError, match="confidence"):
        judgment(JudgmentStatus.SKIPPED, None, confidence=4)


def test_the_guide_has_eleven_categories() -> None:
    assert len(Category) == 11
