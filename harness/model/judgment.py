"""What a rater says of a first response (source: response-assessment guide; spec of ratings)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.model.effect import EffectWord


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


class SubFlag(StrEnum):
    """What may be said beside a category, where it goes with it (`SUB_FLAGS_OF`).

    TOO_LITTLE, TOO_MUCH of partially correct. RECOVERABLE, UNRECOVERABLE of wrong: can the user tell that it is wrong.
    WORLD_KNOWLEDGE_GAP: a fact is off and was set aside. CORE_CAPABILITY_MISSING: it lacks what every device must have.
    """

    TOO_LITTLE = "too_little"
    TOO_MUCH = "too_much"
    RECOVERABLE = "recoverable"
    UNRECOVERABLE = "unrecoverable"
    WORLD_KNOWLEDGE_GAP = "world_knowledge_gap"
    CORE_CAPABILITY_MISSING = "core_capability_missing"


SUB_FLAGS_OF: dict[Category, tuple[SubFlag, ...]] = {
    Category.CORRECT: (SubFlag.WORLD_KNOWLEDGE_GAP,),
    Category.PARTIALLY_CORRECT: (SubFlag.TOO_LITTLE, SubFlag.TOO_MUCH, SubFlag.WORLD_KNOWLEDGE_GAP),
    Category.INFERRABLE: (SubFlag.WORLD_KNOWLEDGE_GAP,),
    Category.FINDABLE: (SubFlag.WORLD_KNOWLEDGE_GAP,),
    Category.ADMITTED_DEFEAT: (SubFlag.CORE_CAPABILITY_MISSING,),
    Category.WRONG: (SubFlag.RECOVERABLE, SubFlag.UNRECOVERABLE, SubFlag.CORE_CAPABILITY_MISSING),
}
"""Which sub-flags a category may carry; none where it is not named."""


class Flag(StrEnum):
    """Why an item is put aside."""

    AUDIO_BAD = "audio_bad"
    RECOGNITION_DOUBTED = "recognition_doubted"
    CUT_RESPONSE = "cut_response"
    PRIVACY = "privacy"


class JudgmentStatus(StrEnum):
    """SKIPPED: left for the end. FLAGGED: put aside, with reasons. HELD: waits for the effect to be known."""

    SUBMITTED = "submitted"
    SKIPPED = "skipped"
    FLAGGED = "flagged"
    HELD = "held"
    WITHDRAWN = "withdrawn"


class ProposalShown(StrEnum):
    """When a classifier's proposal is, or was, shown: after the rater's choice, before it, or never."""

    AFTER = "after"
    BEFORE = "before"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Judgment:
    """One judgment row; rows are only ever added, and a change or an undo names the row that it replaces.

    id: a UUID made by the client, so that a repeated send is seen. category is None unless status is SUBMITTED.
    rater: a pseudonym. clip_sha256: what was judged. time_to_answer_s: from the response being shown to the key.
    sub_flags: values of SubFlag; flags: of Flag. confidence: 1 unsure to 3 sure. item_id, round, position: where in
    whose queue it was met (position from 1). plays, heard_ms: of the response. span_s: start and end of the response on
    the host's clock. aid_path: answers given in the decision aid, "question=answer". effect_claimed: whether the
    response says that something was done; effect: what was known of it. shown_wall_s, given_wall_s: Unix times.
    adjudicates: ids of the judgments that this one settles. imported_from: the file it came from, if elsewhere.
    proposed, proposed_probability: what a classifier says of the response, shown or not. proposal_shown: before or
    after this choice. unaided: what the rater had chosen before they saw it; figures of agreement take that.
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
    session_id: str = ""
    take: int = 1
    item_id: str = ""
    round: str = ""
    position: int | None = None
    sub_flags: tuple[str, ...] = ()
    aid_path: tuple[str, ...] = ()
    heard_ms: int | None = None
    span_s: tuple[float, float] | None = None
    effect_claimed: bool | None = None
    effect: EffectWord | None = None
    shown_wall_s: float | None = None
    given_wall_s: float | None = None
    adjudicates: tuple[str, ...] = ()
    imported_from: str = ""
    proposed: Category | None = None
    proposed_probability: float | None = None
    proposal_shown: ProposalShown = ProposalShown.NEVER
    unaided: Category | None = None

    @property
    def independent(self) -> Category | None:
        """The category that they gave without having been told what a classifier says, where there is one."""
        return self.unaided or self.category

    def __post_init__(self) -> None:
        if (self.category is not None) != (self.status is JudgmentStatus.SUBMITTED):
            raise ValueError("a submitted judgment has a category, and no other has one")
        if self.confidence is not None and self.confidence not in (1, 2, 3):
            raise ValueError(f"confidence is 1, 2 or 3, not {self.confidence}")
        allowed = SUB_FLAGS_OF.get(self.category, ()) if self.category is not None else ()
        if not set(self.sub_flags) <= set(allowed):
            raise ValueError(f"{self.category} does not carry the sub-flags {self.sub_flags}")


def in_force(judgments: list[Judgment]) -> tuple[Judgment, ...]:
    """The rows that no other row replaces, less withdrawals; what a withdrawal replaces does not come back."""
    replaced = {one.replaces for one in judgments}
    return tuple(one for one in judgments if one.id not in replaced and one.status is not JudgmentStatus.WITHDRAWN)
