"""What a front-end shows of an annotator's sitting: frozen, made anew after every key."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness.model.annotation import Intents


class AnnotationPhase(StrEnum):
    """REVIEWING: proposals, by groups. LABELLING: one utterance by hand. FINISHED: nothing is left to do."""

    REVIEWING = "reviewing"
    LABELLING = "labelling"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class GroupView:
    """Utterances that have the same proposal. number: of the group, from 1, of `groups`; left of total utterances."""

    intents: Intents
    number: int
    groups: int
    left: int
    total: int


@dataclass(frozen=True, slots=True)
class PageLine:
    """An utterance on a page. number: from 1, what `strike_number` takes."""

    number: int
    utterance: str
    text: str
    struck: bool


@dataclass(frozen=True, slots=True)
class AnnotationInput:
    """An annotator's labels for an adjudicator, without a name."""

    intents: Intents
    comment: str = ""


@dataclass(frozen=True, slots=True)
class LabellingItem:
    """An utterance to label. `chosen`: labels so far, in the order of the label set. `saved`: they are on the disk.

    `proposal`: None if there is none, or if the annotator may not see it yet. `struck`: this annotator struck the
    proposal. `refusal`: why `chosen` cannot be saved, "" if it can. `inputs`: for adjudicators.
    """

    utterance: str
    text: str
    chosen: Intents = ()
    saved: bool = False
    proposal: Intents | None = None
    struck: bool = False
    refusal: str = ""
    comment: str = ""
    inputs: tuple[AnnotationInput, ...] = ()


@dataclass(frozen=True, slots=True)
class AnnotationCount:
    """Counts of an annotator's utterances. `total`: the queue. `done`: with a choice by them. `left`: without.

    `to_review`: left, with a proposal to accept or strike. `to_label`: left, by hand, including `skipped`. `struck`:
    utterances whose proposal this annotator struck, labelled since or not.
    """

    total: int = 0
    done: int = 0
    left: int = 0
    to_review: int = 0
    to_label: int = 0
    struck: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class AnnotationView:
    """group, page, cursor: when reviewing; cursor is an index into `page`. item: when labelling.

    pace_s: median seconds for one utterance; left_s: what is left at that pace. said: what the last key did.
    """

    phase: AnnotationPhase
    annotator: str
    adjudicating: bool = False
    group: GroupView | None = None
    page: tuple[PageLine, ...] = ()
    cursor: int = 0
    item: LabellingItem | None = None
    count: AnnotationCount = field(default_factory=AnnotationCount)
    pace_s: float | None = None
    left_s: float | None = None
    said: str = ""
    can_undo: bool = False
