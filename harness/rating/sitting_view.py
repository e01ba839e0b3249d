"""What a front-end shows of a rater's sitting: frozen, made anew after every key."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness.model.judgment import Category, Exercise, Judgment, SubFlag
from harness.rating.categories import LABELS
from harness.rating.items import Item
from harness.rating.proposals import Proposal


class Phase(StrEnum):
    """TRAINING: exercises, each explained. JUDGING: first responses. FINISHED: nothing is left that can be judged."""

    TRAINING = "training"
    JUDGING = "judging"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Draft:
    """What a rater has said of the item in sight besides a category; kept with the key that labels it.

    heard_ms: of the response, all plays together; heard_to_end: one of them was whole. transcript_shown: asked for,
    or shown at once.
    """

    comment: str = ""
    confidence: int | None = None
    sub_flags: tuple[SubFlag, ...] = ()
    effect_claimed: bool | None = None
    transcript_shown: bool = False
    plays: int = 0
    heard_ms: int = 0
    heard_to_end: bool = False
    aid_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """An item that may be opened again. row: the rater's own in force; None where an adjudicator has given none yet."""

    item: Item
    row: Judgment | None

    def has(self, words: str) -> bool:
        """Whether its query, its category or the comment holds all of these words."""
        row = self.row
        label = LABELS[row.category] if row is not None and row.category is not None else ""
        text = f"{self.item.query} {label} {row.comment if row is not None else ''}".casefold()
        return all(word in text for word in words.casefold().split())


@dataclass(frozen=True, slots=True)
class Explained:
    """The answer to an exercise, shown before the next one."""

    exercise: Exercise
    given: Category
    right: bool


@dataclass(frozen=True, slots=True)
class Count:
    """Where a rater stands. total: items of their queue; done: with a category or put aside; left: can be judged now.

    skipped: left for the end, and among those left. held: wait for what the device did, and not among those left.
    """

    total: int = 0
    done: int = 0
    left: int = 0
    skipped: int = 0
    held: int = 0
    flagged: int = 0


@dataclass(frozen=True, slots=True)
class SittingView:
    """position: of the item in sight, from 1. own: the rater's row in force on it. again: they had dealt with it, and
    have opened it to look at it again; can_go_back: there are such items.

    exercises: (done, all). pace_s: median time to an answer; left_s: what is left at that pace. explained: waits for
    `go_on`. break_due: they have judged for long without a rest. said: what the last key did. stopped: the rater failed
    known answers, and gets no more. proposal: of a classifier, where the rater may see it before they choose.
    """

    phase: Phase
    rater: str
    item: Item | None = None
    own: Judgment | None = None
    again: bool = False
    can_go_back: bool = False
    position: int = 0
    count: Count = field(default_factory=Count)
    exercises: tuple[int, int] = (0, 0)
    pace_s: float | None = None
    left_s: float | None = None
    draft: Draft = field(default_factory=Draft)
    explained: Explained | None = None
    can_undo: bool = False
    stopped: bool = False
    break_due: bool = False
    said: str = ""
    proposal: Proposal | None = None
