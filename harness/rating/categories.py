"""The eleven categories: their keys, in the guide's order, and how they are called on screen."""

from __future__ import annotations

from harness.model.judgment import Category

GUIDELINE_VERSION = "2020-09-20"

KEYS: tuple[tuple[str, Category], ...] = tuple(zip("1234567890-", Category, strict=True))
"""Key → category; the keys lie in one row of the keyboard."""

LABELS: dict[Category, str] = {
    Category.CORRECT: "Correct",
    Category.PARTIALLY_CORRECT: "Partially correct",
    Category.CLARIFICATION: "Clarification",
    Category.SLOT_REQUEST: "Slot request",
    Category.CORRECT_REJECTION: "Correct rejection",
    Category.INFERRABLE: "Inferrable",
    Category.FINDABLE: "Findable",
    Category.ADMITTED_DEFEAT: "Admitted defeat",
    Category.WRONG: "Wrong",
    Category.MISSED_DISAMBIGUATION_RECOVERABLE: "Missed disamb., recoverable",
    Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE: "Missed disamb., unrecoverable",
}


def category_of(key: str) -> Category | None:
    """The category that a key stands for; None for any other key."""
    return dict(KEYS).get(key)
