"""What is said of a project's utterances: proposals of classifiers, and what annotators make of them.

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
    """An utterance of the guide. labels: what it is given, () is the label explained alone; why: the reason."""

    text: str
    labels: tuple[str, ...] = ()
    why: str = ""


@frozen
class Label:
    """id: as it stands in files. alone: it never stands beside another label. key: one character that gives it, or "".

    examples: utterances that have it; counterexamples: utterances that one might give it to, with what they have.
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

    never_together: pairs of labels that exclude each other. may_be_empty: whether an utterance may have no label.
    concepts: of slots, which are marked in the words; () means that slots are not annotated.
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
        return tuple(label.id for label in self.labels)

    def label(self, id_: str) -> Label | None:
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
                return f"{first} and {second} exclude each other"
        return ""


IMPORTED = "imported"
"""Who gave the labels that came with the data, or from a file of intents."""

Intents = tuple[str, ...]
Slots = tuple[Slot, ...]
"""Of one utterance: in the order of their places, which do not overlap, and without values.

None: nothing is said of slots, as by a file of intents, or where the label set has no concepts.
"""


class LabelProposalShown(StrEnum):
    """When who labels by hand sees what is proposed: AFTER their own choice is on the disk, or BEFORE it."""

    AFTER = "after"
    BEFORE = "before"


class SecondAnnotatorMode(StrEnum):
    """How the second annotator of an utterance works: by HAND, or by the GROUPS of proposals as the first does.

    By hand the two are independent of each other and of the proposals; by groups both lean on the same proposals.
    """

    HAND = "hand"
    GROUPS = "groups"


class LabellingOrder(StrEnum):
    """In which order utterances are labelled by hand: what a classifier DOUBTS most first, or at RANDOM."""

    DOUBT = "doubt"
    RANDOM = "random"


@frozen
class AnnotationProject:
    """What is settled for all of a project when it is made.

    - annotators: who may take part; () means anyone.
    - per_utterance: how many annotators label an utterance: 1, or 2 for a share `double_share`, drawn by the seed.
    - second: how the second of two works.
    - page_size: utterances on a page of a group.
    - order: of work by hand.
    - batch: labels after which a classifier learns again.
    - target_error: the share of wrong labels that may be left to it.
    - tied: the chain of its rows begins at the hash of its file; in projects of earlier versions it need not.
    - files: name → SHA-256 of the frozen files.
    - facts: for people (where the data came from, the version of the tool).
    """

    id: str
    utterances: int
    proposal: LabelProposalShown = LabelProposalShown.AFTER
    page_size: int = 10
    annotators: tuple[str, ...] = ()
    per_utterance: int = 1
    double_share: float = 1.0
    second: SecondAnnotatorMode = SecondAnnotatorMode.HAND
    seed: int = 0
    files: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    order: LabellingOrder = LabellingOrder.RANDOM
    batch: int = 50
    target_error: float = 0.01
    tied: bool = False

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"a batch cannot have {self.batch} utterances")
        if not 1 <= self.per_utterance <= 2:
            raise ValueError(f"an utterance cannot go to {self.per_utterance} annotators")
        if not 0 <= self.double_share <= 1:
            raise ValueError(f"{self.double_share} is not a share")
        if not 1 <= self.page_size <= MOST_ON_A_PAGE:
            raise ValueError(f"a page cannot hold {self.page_size} utterances")
        if len(set(self.annotators)) < len(self.annotators):
            raise ValueError("an annotator is named twice")
        if self.annotators and len(self.annotators) < self.per_utterance:
            raise ValueError(f"{len(self.annotators)} annotator for {self.per_utterance} labels of an utterance")


MOST_ON_A_PAGE = 50


@frozen
class LabelProposal:
    """What is proposed for an utterance. intents: None where the classifiers came to no consensus."""

    utterance: str
    intents: Intents | None
    votes: tuple[Intents, ...] = ()
    slots: Slots | None = None


@frozen
class Proposed:
    """A batch of proposals, there as a whole or not at all. id: of the batch. by: what made it.

    Of two batches that name an utterance the later one counts. facts: how it was made, for reports.
    """

    id: str
    by: str
    proposals: tuple[LabelProposal, ...]
    given_wall_s: float = 0.0
    facts: tuple[tuple[str, str], ...] = ()
    kind: Literal["proposed"] = "proposed"


@frozen
class PageRow:
    """What an annotator makes of a proposal for these utterances of a page.

    page: the same in the rows of one page, accepted and struck. intents: what was proposed. time_s: at the whole page.
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
    """An annotator finds the proposal of a batch right for them."""

    kind: Literal["accepted"] = "accepted"


@frozen
class Struck(PageRow):
    """… finds it wrong: they are to be labelled by hand."""

    kind: Literal["struck"] = "struck"


@frozen
class Labelled:
    """An annotator, or a file, labels one utterance by hand. Of several by one annotator the latest counts.

    batch: of the proposal that there was, "" where there was none. proposal_shown: whether the annotator had seen it.
    source: the file that it was read from.
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
    """Somebody settles what annotators disagree on. inputs: ids of the rows that differ."""

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
    """An annotator takes rows of their own back, all or none: those of one page, or of one utterance."""

    id: str
    annotator: str
    rows: tuple[str, ...]
    given_wall_s: float = 0.0
    kind: Literal["withdrawn"] = "withdrawn"


AnnotationRow = Proposed | Accepted | Struck | Labelled | Skipped | Adjudicated | Withdrawn
Act = Accepted | Struck | Labelled | Skipped | Adjudicated
"""What an annotator may take back."""


def utterances_of(row: Act) -> tuple[str, ...]:
    """Those that it is about."""
    return row.utterances if isinstance(row, PageRow) else (row.utterance,)


class AnnotationAction(StrEnum):
    """What an annotator can do. ENTER: accepts a page, or saves the labels. MARK: strikes a line, or gives a label.

    LEFT, RIGHT: select a word. FARTHER, NEARER: select one word more or less. CLEAR: takes slots away. TAKE: marks the
    proposed slots. LEAVE: selects nothing.
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
"""A label may take a key that is one character; the action is then offered by its next key (`action_key`)."""

# v is not an action any more, but the labels of a project keep their keys.
_TAKEN = {"v", *(key for keys in KEYS.values() for key in keys)}
LINE_KEYS = tuple(key for key in (*digits[1:], "0", *ascii_lowercase, *ascii_uppercase) if key not in _TAKEN)
"""Keys of the lines of a page, in their order; a line beyond them is struck with space."""


def label_keys(labels: LabelSet) -> dict[str, str]:
    """Label → key: those of the set first, the others in order 1 … 9, 0, letters, capitals; "" when none is left."""
    return keys_of(labels.labels)


def keys_of(labels: tuple[Label, ...]) -> dict[str, str]:
    """The same of any labels, such as concepts, whose keys apply while words are selected."""
    own_keys = {label.id: label.key for label in labels if label.key}
    free: Iterator[str] = (key for key in LINE_KEYS if key not in own_keys.values())
    return {label.id: own_keys.get(label.id) or next(free, "") for label in labels}


def action_key(action: AnnotationAction, labels: LabelSet | None = None) -> str:
    """The key by which an action is offered: the first one that no label has taken. labels: None on a page's review."""
    used_keys = set(label_keys(labels).values()) if labels is not None else set()
    return next(key for key in KEYS[action] if key not in used_keys)
