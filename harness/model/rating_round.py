"""A round of rating: which responses are judged, in which order, and what raters are shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness.model.judgment import Category, ProposalShown

EXERCISE = "exercise:"
"""Begins the trial id of an exercise's rows."""


class TranscriptPolicy(StrEnum):
    """When a rater sees what was said in writing: at once, on a key (which is stored), or not at all."""

    SHOWN = "shown"
    ON_REQUEST = "on_request"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Which first responses are drawn; an empty part takes all. conditions: (axis, label), one of each axis's must fit.

    limit: at most so many, drawn by the round's seed; None: all.
    """

    devices: tuple[str, ...] = ()
    query_classes: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class GoldItem:
    """A response whose category is known. session: its id. accept: further categories that count as right."""

    session: str
    trial: str
    category: Category
    accept: tuple[Category, ...] = ()
    why: str = ""

    def is_right(self, category: Category | None) -> bool:
        """Whether a rater who gives that category is right."""
        return category in (self.category, *self.accept)


@dataclass(frozen=True, slots=True)
class Exercise:
    """An item of the training round: spoken by voices, judged, and explained at once."""

    id: str
    query: str
    response: str
    category: Category
    why: str
    accept: tuple[Category, ...] = ()
    effect: str = ""
    core_capability: bool = False

    @property
    def trial_id(self) -> str:
        """Of its rows."""
        return f"{EXERCISE}{self.id}"

    def is_right(self, category: Category | None) -> bool:
        """Whether a rater who gives that category is right."""
        return category in (self.category, *self.accept)


@dataclass(frozen=True, slots=True)
class ProposalRule:
    """Whose judgments a classifier learns from to propose categories, and when raters see what it proposes.

    sessions: absolute paths of session folders, none of them the round's own. classifier: a plug-in's name; settings:
    (name, value) of it, the others as they are by default.
    """

    sessions: tuple[str, ...]
    classifier: str = "tfidf"
    show: ProposalShown = ProposalShown.AFTER
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StopRule:
    """A rater who has answered `after` known answers, and fewer than `below` (0 to 1) of them right, is stopped."""

    after: int
    below: float

    def stops(self, right: int, answered: int) -> bool:
        """Whether who has so many right of so many answered gets no more responses."""
        return answered >= self.after and right < self.below * answered


@dataclass(frozen=True, slots=True)
class RatingRound:
    """How a round is run; `harness rate SESSION…` without a round file uses the defaults.

    sessions: absolute paths of session folders. seed: of the order, which differs for each rater, and of what is drawn.
    raters_per_item: with `raters`, each response is given to so many of them; None: everybody judges all.
    training: exercises before the first item ("" none, "built_in", or the path of a file). pass_share: of exercises.
    gold: known answers, mixed in unseen. stop: who fails them gets no more; None: nobody is stopped. must_hear: no
    response gets a category before it was heard to its end. break_after_min: a break is suggested after so many
    minutes; 0 never. proposals: None when no classifier proposes.
    """

    id: str = "open"
    title: str = ""
    path: str = ""
    sessions: tuple[str, ...] = ()
    seed: int = 0
    items: ItemFilter = field(default_factory=ItemFilter)
    transcript: TranscriptPolicy = TranscriptPolicy.ON_REQUEST
    raters: tuple[str, ...] = ()
    raters_per_item: int | None = None
    exercises: tuple[Exercise, ...] = ()
    pass_share: float = 0.8
    gold: tuple[GoldItem, ...] = ()
    stop: StopRule | None = None
    must_hear: bool = False
    break_after_min: float = 25.0
    proposals: ProposalRule | None = None
