"""What is said of a project's utterances: proposals of classifiers, and what annotators make of them.

A project's file of rows is only ever added to. What is taken back is named by a row that takes it back; what an
utterance is in the end follows from all rows (docs/annotation.md, "States").
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

IMPORTED = "imported"
"""Who gave the labels that came with the data, or from a file of intents."""

Intents = tuple[str, ...]


class ProposalShown(StrEnum):
    """When who labels by hand sees what is proposed: AFTER their own choice is on the disk, or BEFORE it."""

    AFTER = "after"
    BEFORE = "before"


class SecondWork(StrEnum):
    """How the second annotator of an utterance works: by HAND, or by the GROUPS of proposals as the first does.

    By hand the two are independent of each other and of the proposals; by groups both lean on the same proposals.
    """

    HAND = "hand"
    GROUPS = "groups"


@dataclass(frozen=True, slots=True)
class AnnotationProject:
    """What is settled for all of a project when it is made.

    annotators: who may take part, () for whoever comes. per_utterance: so many annotators label an utterance: 1, or 2
    of the `double_share` of the utterances that is drawn by the seed. second: how the second of two works.
    page_size: utterances on a page of a group.
    files: name → SHA-256 of the frozen files. facts: for people (where the data came from, the version of the tool).
    """

    id: str
    utterances: int
    proposal: ProposalShown = ProposalShown.AFTER
    page_size: int = 10
    annotators: tuple[str, ...] = ()
    per_utterance: int = 1
    double_share: float = 1.0
    second: SecondWork = SecondWork.HAND
    seed: int = 0
    files: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.per_utterance <= 2:
            raise ValueError(f"an utterance cannot go to {self.per_utterance} annotators")
        if not 0 <= self.double_share <= 1:
            raise ValueError(f"{self.double_share} is no share")
        if not 1 <= self.page_size <= MOST_ON_A_PAGE:
            raise ValueError(f"a page cannot hold {self.page_size} utterances")
        if len(set(self.annotators)) < len(self.annotators):
            raise ValueError("an annotator is named twice")
        if self.annotators and len(self.annotators) < self.per_utterance:
            raise ValueError(f"{len(self.annotators)} annotator for {self.per_utterance} labels of an utterance")


MOST_ON_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is proposed for an utterance. intents: None where the classifiers came to no consensus."""

    utterance: str
    intents: Intents | None
    votes: tuple[Intents, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposed:
    """A batch of proposals, there as a whole or not at all. id: of the batch. by: what made it.

    Of two batches that name an utterance the later one counts. facts: how it was made, for reports.
    """

    id: str
    by: str
    proposals: tuple[Proposal, ...]
    given_wall_s: float = 0.0
    facts: tuple[tuple[str, str], ...] = ()
    kind: Literal["proposed"] = "proposed"


@dataclass(frozen=True, slots=True)
class Accepted:
    """An annotator finds the proposal of a batch right for these utterances of a page.

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
    kind: Literal["accepted"] = "accepted"


@dataclass(frozen=True, slots=True)
class Struck:
    """… finds it wrong for these: they are to be labelled by hand. Fields as of `Accepted`."""

    id: str
    annotator: str
    batch: str
    page: str
    intents: Intents
    utterances: tuple[str, ...]
    shown_wall_s: float = 0.0
    given_wall_s: float = 0.0
    time_s: float | None = None
    kind: Literal["struck"] = "struck"


@dataclass(frozen=True, slots=True)
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
    kind: Literal["labelled"] = "labelled"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    kind: Literal["adjudicated"] = "adjudicated"


@dataclass(frozen=True, slots=True)
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
    return row.utterances if isinstance(row, Accepted | Struck) else (row.utterance,)
