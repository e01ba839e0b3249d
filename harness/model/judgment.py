"""What a rater says of a first response (source: response-assessment guide; spec of ratings)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Category(StrEnum):
    """The eleven categories of the response-assessment guide, in its order."""

    CORRECT = "correct"
    PARTIALLY_CORRECT = "partially_correct"
    CLARIFICATION = "clarification"
    SLOT_REQUEST = "slot_request"
    CORRECT_REJECTION = "correct_rejection"
    INFERRABLE = "inferrable"
    FINDABLE = "findable"
    ADMITTED_DEFEAT = "admitted_defeat"
    WRONG = "wrong"
    MISSED_DISAMBIGUATION_RECOVERABLE = "missed_disambiguation_recoverable"
    MISSED_DISAMBIGUATION_NOT_RECOVERABLE = "missed_disambiguation_not_recoverable"


class JudgmentStatus(StrEnum):
    SUBMITTED = "submitted"
    SKIPPED = "skipped"
    FLAGGED = "flagged"
    HELD = "held"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Judgment:
    """One judgment row; rows are only ever added, and a change or an undo names the row that it replaces.

    id: a UUID made by the client, so that a repeated send is seen. category is None unless status is SUBMITTED.
    clip_sha256: what was judged. time_to_answer_s: from the response being shown to the key.
    """

    id: str
    trial_id: str
    attempt: int
    rater: str
    status: JudgmentStatus
    category: Category | None
    clip_sha256: str
    replaces: str | None = None
    confidence: int | None = None
    comment: str = ""
    flags: tuple[str, ...] = ()
    plays: int = 0
    time_to_answer_s: float | None = None
    transcript_shown: bool = True
    guideline_version: str = "2020-09-20"
    tool_version: str = ""

    def __post_init__(self) -> None:
        if (self.category is not None) != (self.status is JudgmentStatus.SUBMITTED):
            raise ValueError("a submitted judgment has a category, and no other has one")
        if self.confidence is not None and self.confidence not in (1, 2, 3):
            raise ValueError(f"confidence is 1, 2 or 3, not {self.confidence}")
