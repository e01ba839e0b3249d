"""What a front-end shows of a rater's sitting: the view of the desk, and rows as text."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from harness.base.foreign import plain_text
from harness.model.effect import EffectEvidence
from harness.model.frozen import frozen
from harness.model.judgment import Category, Exercise, Judgment, JudgmentStatus, SubFlag
from harness.rating.guide import LABELS, SUB_FLAG_TEXTS, effect_text
from harness.rating.items import CategoryProposal, Item
from harness.rating.rater_queue import QueueCounts, ReopenableItem
from harness.statistics.intervals import is_exact_enough


class SittingPhase(StrEnum):
    """What a rater does now.

    - TRAINING: exercises, each explained.
    - JUDGING: first responses.
    - FINISHED: nothing, since no item is left.
    """

    TRAINING = "training"
    JUDGING = "judging"
    FINISHED = "finished"


@frozen
class Draft:
    """Notes of a rater on the current item, saved with the category."""

    comment: str = ""
    confidence: int | None = None
    """1 is unsure, 3 is sure; None if not given."""
    sub_flags: tuple[SubFlag, ...] = ()
    effect_claimed: bool | None = None
    """Whether the response claims that an action was done; None if not given."""
    transcript_shown: bool = False
    plays: int = 0
    heard_ms: int = 0
    """Sum over all plays."""
    heard_to_end: bool = False
    """Whether a play was complete."""
    aid_path: tuple[str, ...] = ()
    """The answers in the decision aid."""
    program_confidence: float | None = None
    """A program's confidence, 0 to 1; None for a person."""


@frozen
class ExerciseResult:
    """The answer to an exercise.

    - category: the one that the rater chose.
    - right: whether the exercise accepts it.
    """

    exercise: Exercise
    category: Category
    right: bool


@frozen
class SittingView:
    """What a front-end shows."""

    phase: SittingPhase
    rater: str
    adjudicating: bool = False
    """Whether the rater settles items on which raters differ."""
    item: Item | None = None
    """The current item; None if no item is left."""
    own_row: Judgment | None = None
    """The rater's row in force on the item; None without one."""
    is_reopened: bool = False
    """Whether the rater reopened the item."""
    can_go_back: bool = False
    """Whether items can be reopened."""
    position: int = 0
    """Position of the item in the rater's order, from 1; 0 without an item."""
    count: QueueCounts = field(default_factory=QueueCounts)
    exercises: tuple[int, int] = (0, 0)
    """Number of exercises that are done, and of all."""
    pace_s: float | None = None
    """Median time to an answer; None before the first."""
    left_s: float | None = None
    """Time left at that pace."""
    draft: Draft = field(default_factory=Draft)
    explanation: ExerciseResult | None = None
    """The explanation that waits for `go_on`; None without one."""
    can_undo: bool = False
    stopped: bool = False
    """Whether the rater failed known answers, and gets no more items."""
    break_due: bool = False
    """Whether the rater has judged for long without a rest."""
    message: str = ""
    """The effect of the last key, in words; "" for none."""
    proposal: CategoryProposal | None = None
    """The classifier's proposal, if the rater may see it before choosing; else None."""
    hides_text: bool = False
    """Whether the round never shows the transcript."""
    growing: bool = False
    """Whether items may still be added, which changes positions and counts."""


def repetition_text(view: SittingView) -> str:
    """Text after the number of the current exercise that says why it is repeated; "" if it is not."""
    was_answered = (
        view.own_row is not None and view.explanation is None
    )  # an answer that is explained now is the current one
    if view.item is None or view.item.exercise is None or not was_answered:
        return ""
    return "again, since too few of your answers were right"


def visible_latency_s(item: Item) -> float | None:
    """The latency that raters may see, to 0.1 s. None if it is unknown or too uncertain.

    Its error depends on how the device is connected, so it would reveal the device.
    """
    if item.latency is None or not is_exact_enough(item.latency):
        return None
    return round(item.latency.value_s, 1)


CONFIDENCE_TEXTS: dict[int, str] = {1: "unsure", 2: "fairly sure", 3: "sure"}


def effect_in_words(evidence: EffectEvidence) -> tuple[str, str]:
    """The wanted effect, escaped, and whether it occurred."""
    return plain_text(evidence.check.wanted, 200) or "an effect", effect_text(evidence)


def reopenable_in_words(reopenable: ReopenableItem) -> str:
    """An item that can be reopened, as one line of escaped text."""
    answer = "agreed" if reopenable.row is None else judgment_in_words(reopenable.row)
    return f"{plain_text(reopenable.item.query, 120)}: {answer}"


def judgment_in_words(row: Judgment) -> str:
    """A row as one line of escaped text: category, sub-flags, confidence, comment, path in the decision aid."""
    if row.category is None:
        return {
            JudgmentStatus.SKIPPED: "left for later",
            JudgmentStatus.HELD: "held until the effect is known",
            JudgmentStatus.FLAGGED: "put aside",
        }.get(row.status, row.status.value)
    parts = [LABELS[row.category]]
    flag_texts = {flag.value: words for flag, words in SUB_FLAG_TEXTS.items()}
    if row.sub_flags:
        parts[0] += f" ({', '.join(flag_texts.get(name, plain_text(name, 40)) for name in row.sub_flags)})"
    if row.confidence is not None:
        parts.append(CONFIDENCE_TEXTS[row.confidence])
    if row.comment:
        parts.append(f"“{plain_text(row.comment, 300)}”")
    if row.aid_path:
        parts.append(f"aid: {plain_text(', '.join(row.aid_path), 300)}")
    return " · ".join(parts)
