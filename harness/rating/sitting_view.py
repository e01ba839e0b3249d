"""What a front-end shows of a rater's sitting: frozen, made anew after every key."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness.model.judgment import Category, Judgment, SubFlag
from harness.model.rating_round import Exercise
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

    heard_ms: of the response, all plays together. transcript_shown: asked for, or shown at once.
    """

    comment: str = ""
    confidence: int | None = None
    sub_flags: tuple[SubFlag, ...] = ()
    effect_claimed: bool | None = None
    transcript_shown: bool = False
    plays: int = 0
    heard_ms: int = 0
    aid_path: tuple[str, ...] = ()


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
    """position: of the item in sight, from 1. own: the rater's row in force on it (a skip, a hold).

    exercises: (done, all). pace_s: median time to an answer; left_s: what is left at that pace. explained: waits for
    `go_on`. break_due: they have judged for long without a rest. said: what the last key did.
    proposal: of a classifier, where the rater may see it before they choose.
    """

    phase: Phase
    rater: str
    item: Item | None = None
    own: Judgment | None = None
    position: int = 0
    count: Count = field(default_factory=Count)
    exercises: tuple[int, int] = (0, 0)
    pace_s: float | None = None
    left_s: float | None = None
    draft: Draft = field(default_factory=Draft)
    explained: Explained | None = None
    can_undo: bool = False
    break_due: bool = False
    said: str = ""
    proposal: Proposal | None = None
