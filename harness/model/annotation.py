"""Rows of an annotation project: the labels that classifiers propose for utterances, and what annotators decide.

Rows are only ever added to a project's file. A row that withdraws another one names it. The state of an utterance
follows from all rows (docs/how-to/annotate-utterances.md, "States").
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Literal

from harness.model.frozen import frozen
from harness.model.understanding import Slot


@frozen
class Example:
    """An example in the guide.

    - labels: its right labels; () means only the label that it explains.
    - why: the reason.
    """

    text: str
    labels: tuple[str, ...] = ()
    why: str = ""


@frozen
class Label:
    """A label (an intent, or a concept of slots).

    - id: its name in files.
    - alone: it excludes every other label.
    - key: the character that gives it; "" if not specified.
    - examples: utterances with this label.
    - counterexamples: utterances that one might wrongly give it to, with their right labels.
    """

    id: str
    title: str = ""
    description: str = ""
    alone: bool = False
    key: str = ""
    examples: tuple[Example, ...] = ()
    counterexamples: tuple[Example, ...] = ()


@frozen
class LabelSet:
    """The labels of an annotation project, in the order in which they are shown.

    - never_together: pairs of labels that exclude each other.
    - may_be_empty: whether an utterance may have no label.
    - concepts: labels of slots, which annotators mark in the words; () means that slots are not annotated.
    """

    id: str
    title: str
    labels: tuple[Label, ...]
    never_together: tuple[tuple[str, str], ...] = ()
    may_be_empty: bool = False
    intro: str = ""
    concepts: tuple[Label, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its labels, in their order."""
        return tuple(label.id for label in self.labels)

    def label(self, id_: str) -> Label | None:
        """The label of that id; None if there is none."""
        return next((label for label in self.labels if label.id == id_), None)

    def refusal(self, intents: tuple[str, ...]) -> str:
        """Why these labels cannot stand together; "" when they can."""
        unknown = next((intent for intent in intents if intent not in self.ids), None)
        if unknown is not None:
            return f"there is no label {unknown!r}"
        if not intents and not self.may_be_empty:
            return "an utterance needs at least one label"
        for label in self.labels:
            if label.alone and label.id in intents and len(intents) > 1:
                return f"{label.id} must be the only label"
        for first, second in self.never_together:
            if first in intents and second in intents:
                return f"{first} and {second} are mutually exclusive"
        return ""


IMPORTED = "imported"
"""The annotator of labels that came with the data, or from a file of intents."""

Intents = tuple[str, ...]
Slots = tuple[Slot, ...]
"""The slots of one utterance, in the order of their words, not overlapping, and without values.

None instead of slots: not annotated, as in a file of intents, or where the label set has no concepts.
"""


class LabelProposalShown(StrEnum):
    """When annotators who label by hand see the proposal: AFTER their own choice is on the disk, or BEFORE it."""

    AFTER = "after"
    BEFORE = "before"


class SecondAnnotatorMode(StrEnum):
    """How the second annotator of an utterance works: by HAND, or on GROUPS of equal proposals, as the first does.

    By hand, the second is independent of the first and of the proposals. On groups, both see the same proposals.
    """

    HAND = "hand"
    GROUPS = "groups"


class LabellingOrder(StrEnum):
    """In which order utterances are labelled by hand: those that a classifier is least sure of first, or at RANDOM."""

    DOUBT = "doubt"
    RANDOM = "random"


@frozen
class AnnotationProject:
    """The choices that are made for a whole project when it is created."""

    id: str
    utterances: int
    proposal: LabelProposalShown = LabelProposalShown.AFTER
    """When annotators who label by hand see the proposals."""
    page_size: int = 10
    annotators: tuple[str, ...] = ()
    """Who may take part; () means anyone."""
    per_utterance: int = 1
    """How many annotators label an utterance: 1, or 2."""
    double_share: float = 1.0
    """Share of the utterances, drawn with the seed, that two annotators label."""
    second: SecondAnnotatorMode = SecondAnnotatorMode.HAND
    """How the second of two works."""
    seed: int = 0
    files: tuple[tuple[str, str], ...] = ()
    """(name, SHA-256) of the files that must not change."""
    facts: tuple[tuple[str, str], ...] = ()
    """(name, value), for people: where the data came from, the version of the tool."""
    order: LabellingOrder = LabellingOrder.RANDOM
    batch: int = 50
    """Number of labels after which a classifier is trained again."""
    target_error: float = 0.01
    """Largest share of wrong labels among the utterances that are left to the classifier."""
    tied: bool = False
    """True if the hash chain of its rows begins with the hash of its file. It may be False in projects of earlier
    versions."""

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"a batch cannot have {self.batch} utterances")
        if not 1 <= self.per_utterance <= 2:
            raise ValueError(f"an utterance cannot go to {self.per_utterance} annotators")
        if not 0 <= self.double_share <= 1:
            raise ValueError(f"a share must be from 0 to 1, not {self.double_share}")
        if not 1 <= self.page_size <= MAX_ON_A_PAGE:
            raise ValueError(f"a page cannot hold {self.page_size} utterances")
        if len(set(self.annotators)) < len(self.annotators):
            raise ValueError("an annotator is listed twice")
        if self.annotators and len(self.annotators) < self.per_utterance:
            raise ValueError(f"an utterance needs {self.per_utterance} annotators, but there is only one")


MAX_ON_A_PAGE = 50
"""Most utterances on a page of a group."""


@frozen
class LabelProposal:
    """The labels proposed for an utterance.

    - intents: None if the classifiers did not agree.
    - votes: the intents that each of them proposed.
    - slots: None if none are proposed.
    """

    utterance: str
    intents: Intents | None
    votes: tuple[Intents, ...] = ()
    slots: Slots | None = None


@frozen
class Proposed:
    """A batch of proposals, stored as a whole or not at all. If two batches name an utterance, the later one counts.

    - id: id of the batch.
    - by: what made the proposals.
    - facts: (name, value), for reports: how they were made.
    """

    id: str
    by: str
    proposals: tuple[LabelProposal, ...]
    given_wall_s: float = 0.0
    facts: tuple[tuple[str, str], ...] = ()
    kind: Literal["proposed"] = "proposed"


@frozen
class PageRow:
    """What an annotator decides about the proposal for some utterances of a page.

    - batch: id of the batch of proposals.
    - page: id of the page, the same in its rows of accepted and struck utterances.
    - intents: the proposed labels.
    - time_s: time that the annotator spent on the whole page; None if not measured.
    """

    id: str
    annotator: str
    batch: str
    page: str
    intents: Intents
    utterances: tuple[str, ...]
    shown_wall_s: float = 0.0
    given_wall_s: float = 0.0
    time_s: float | None = None


@frozen
class Accepted(PageRow):
    """The annotator accepts the proposal for these utterances."""

    kind: Literal["accepted"] = "accepted"


@frozen
class Struck(PageRow):
    """The annotator rejects the proposal for these utterances: they are to be labelled by hand."""

    kind: Literal["struck"] = "struck"


@frozen
class Labelled:
    """An annotator labels one utterance by hand, or a file gives its labels. The latest row of an annotator counts.

    - batch: id of the batch with the proposal for it; "" if there was none.
    - proposal_shown: whether the annotator had seen that.
    - source: the file that the labels were read from; "" for an annotator.
    """

    id: str
    annotator: str
    utterance: str
    intents: Intents
    batch: str = ""
    proposal_shown: bool = False
    comment: str = ""
    source: str = ""
    shown_wall_s: float = 0.0
    given_wall_s: float = 0.0
    time_s: float | None = None
    slots: Slots | None = None
    kind: Literal["labelled"] = "labelled"


@frozen
class Skipped:
    """An annotator leaves an utterance for the end."""

    id: str
    annotator: str
    utterance: str
    adjudicating: bool = False
    comment: str = ""
    shown_wall_s: float = 0.0
    given_wall_s: float = 0.0
    kind: Literal["skipped"] = "skipped"


@frozen
class Adjudicated:
    """Somebody settles a disagreement of annotators. inputs: ids of the rows that differ."""

    id: str
    annotator: str
    utterance: str
    intents: Intents
    inputs: tuple[str, ...] = ()
    comment: str = ""
    shown_wall_s: float = 0.0
    given_wall_s: float = 0.0
    time_s: float | None = None
    slots: Slots | None = None
    kind: Literal["adjudicated"] = "adjudicated"


@frozen
class Withdrawn:
    """An annotator takes back their own rows of one page or of one utterance, all of them together."""

    id: str
    annotator: str
    rows: tuple[str, ...]
    given_wall_s: float = 0.0
    kind: Literal["withdrawn"] = "withdrawn"


AnnotationRow = Proposed | Accepted | Struck | Labelled | Skipped | Adjudicated | Withdrawn
Act = Accepted | Struck | Labelled | Skipped | Adjudicated
"""What an annotator may take back."""


def utterances_of(row: Act) -> tuple[str, ...]:
    """The ids of the utterances that a row is about."""
    return row.utterances if isinstance(row, PageRow) else (row.utterance,)


class AnnotationAction(StrEnum):
    """What an annotator can do.

    ENTER: accepts a page, or saves the labels. MARK: strikes a line, or gives a label.
    LEFT, RIGHT: select a word. FARTHER, NEARER: select one word more or less. LEAVE: ends the selection.
    CLEAR: removes slots. TAKE: marks the proposed slots.
    """

    ENTER = "enter"
    MARK = "mark"
    UP = "up"
    DOWN = "down"
    UNDO = "undo"
    SKIP = "skip"
    COMMENT = "comment"
    GUIDE = "guide"
    FIND = "find"
    REVIEW = "review"
    LABEL = "label"
    QUIT = "quit"
    LEFT = "left"
    RIGHT = "right"
    FARTHER = "farther"
    NEARER = "nearer"
    CLEAR = "clear"
    TAKE = "take"
    LEAVE = "leave"


KEYS: dict[AnnotationAction, tuple[str, ...]] = {
    AnnotationAction.ENTER: ("enter",),
    AnnotationAction.MARK: ("space",),
    AnnotationAction.UP: ("up", "k"),
    AnnotationAction.DOWN: ("down", "j"),
    AnnotationAction.UNDO: ("u", "backspace"),
    AnnotationAction.SKIP: ("x", "f8"),
    AnnotationAction.COMMENT: ("c", "f2"),
    AnnotationAction.GUIDE: ("?", "f1"),
    AnnotationAction.FIND: ("/", "f3"),
    AnnotationAction.REVIEW: ("r", "f9"),
    AnnotationAction.LABEL: ("l", "f7"),
    AnnotationAction.QUIT: ("q", "f4"),
    AnnotationAction.LEFT: ("left",),
    AnnotationAction.RIGHT: ("right",),
    AnnotationAction.FARTHER: ("shift+right", ">"),
    AnnotationAction.NEARER: ("shift+left", "<"),
    AnnotationAction.CLEAR: ("delete", "-"),
    AnnotationAction.TAKE: ("=", "f6"),
    AnnotationAction.LEAVE: ("escape",),
}
"""The keys of each action. A label may take one that is a single character; the action is then offered by its next key
(`action_key`)."""

# v is not an action any more, but the labels of a project keep their keys.
_TAKEN = {"v", *(key for keys in KEYS.values() for key in keys)}
LINE_KEYS = tuple(key for key in (*digits[1:], "0", *ascii_lowercase, *ascii_uppercase) if key not in _TAKEN)
"""Keys that strike the lines of a page, in their order; further lines are struck with space."""


def label_keys(labels: LabelSet) -> dict[str, str]:
    """Label id → key. Labels without a key of their own get a free one, in the order 1 … 9, 0, letters, capitals.

    "" when none is left.
    """
    return keys_of(labels.labels)


def keys_of(labels: tuple[Label, ...]) -> dict[str, str]:
    """As `label_keys`, for any labels, such as concepts, whose keys apply while words are selected."""
    own_keys = {label.id: label.key for label in labels if label.key}
    free: Iterator[str] = (key for key in LINE_KEYS if key not in own_keys.values())
    return {label.id: own_keys.get(label.id) or next(free, "") for label in labels}


def action_key(action: AnnotationAction, labels: LabelSet | None = None) -> str:
    """The key by which an action is offered: its first one that no label has taken.

    labels: None on a page of proposals, where labels have no keys.
    """
    used_keys = set(label_keys(labels).values()) if labels is not None else set()
    return next(key for key in KEYS[action] if key not in used_keys)
