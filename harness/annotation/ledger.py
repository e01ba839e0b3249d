"""What the rows of a project say together: what is proposed, what each annotator chose, and what is final."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.model.annotation import (
    Accepted,
    Act,
    Adjudicated,
    AnnotationRow,
    Intents,
    Labelled,
    LabelSet,
    Proposal,
    Proposed,
    Skipped,
    Struck,
    Withdrawn,
    utterances_of,
)

Choice = Accepted | Labelled
"""What gives an utterance labels, by one annotator."""


class State(StrEnum):
    """Of one utterance. The last three are final; see docs/annotation.md.

    OPEN: nobody has chosen labels, and none are proposed. PROPOSED: nobody has chosen, and labels are proposed.
    STRUCK: nobody has chosen, and somebody struck what is proposed. WAITING: fewer annotators have chosen than are
    wanted. DISPUTED: they chose different labels. SINGLE: the one who was wanted has chosen. AGREED: two or more chose
    the same. ADJUDICATED: somebody settled it.
    """

    OPEN = "open"
    PROPOSED = "proposed"
    STRUCK = "struck"
    WAITING = "waiting"
    DISPUTED = "disputed"
    SINGLE = "single"
    AGREED = "agreed"
    ADJUDICATED = "adjudicated"

    @property
    def is_final(self) -> bool:
        return self in (State.SINGLE, State.AGREED, State.ADJUDICATED)


@dataclass(frozen=True, slots=True)
class Batched:
    """A proposal, and the batch that it is of."""

    batch: str
    proposal: Proposal


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an utterance stands. intents: the final labels; those of whoever has chosen when WAITING; else None."""

    state: State
    intents: Intents | None = None


class Ledger:
    """All rows of a project, in the order of the file; a row is added when it is on the disk.

    A row that is known already, by its id, changes nothing: rows may be sent and read more than once. label_set: a
    proposal that breaks its rules counts as no consensus.
    """

    def __init__(self, label_set: LabelSet, rows: Iterable[AnnotationRow] = ()) -> None:
        self._label_set = label_set
        self._ids: set[str] = set()
        self._order: list[Act] = []
        self._number: dict[str, int] = {}
        self._withdrawn: set[str] = set()
        self._acts: dict[str, list[Act]] = defaultdict(list)
        self._proposals: dict[str, Batched] = {}
        self._batches: list[Proposed] = []
        self._touched: list[str] = []
        self.add_all(rows)

    def __contains__(self, row_id: object) -> bool:
        """Whether there is a row of that id, in force or not."""
        return row_id in self._ids

    def add_all(self, rows: Iterable[AnnotationRow]) -> bool:
        """Whether any of them was new."""
        return sum(self.add(row) for row in rows) > 0

    def add(self, row: AnnotationRow) -> bool:
        """Takes the next row; False when it is known already."""
        if row.id in self._ids:
            return False
        self._ids.add(row.id)
        match row:
            case Proposed():
                self._batches.append(row)
                self._touched.extend(one.utterance for one in row.proposals)
                self._proposals.update((one.utterance, Batched(row.id, self._allowed(one))) for one in row.proposals)
            case Withdrawn():
                self._withdrawn.update(row.rows)
                known = [self._order[self._number[id_]] for id_ in row.rows if id_ in self._number]
                self._touched.extend(utterance for act in known for utterance in utterances_of(act))
            case _:
                self._number[row.id] = len(self._order)
                self._order.append(row)
                self._touched.extend(utterances_of(row))
                for utterance in utterances_of(row):
                    self._acts[utterance].append(row)
        return True

    # Of the project

    @property
    def batches(self) -> tuple[Proposed, ...]:
        """In the order in which they came."""
        return tuple(self._batches)

    @property
    def acts(self) -> tuple[Act, ...]:
        """Rows of annotators that are in force, in the order of the file."""
        return tuple(row for row in self._order if row.id not in self._withdrawn)

    @property
    def annotators(self) -> tuple[str, ...]:
        """Who has chosen labels that stand, in the order of their first; those labels that were imported, too."""
        return tuple(dict.fromkeys(row.annotator for row in self.acts if isinstance(row, Accepted | Labelled)))

    def number(self, act: Act) -> int:
        """Which row of annotators it is, from 0, in the order of the file."""
        return self._number[act.id]

    @property
    def touches(self) -> int:
        """How often rows have touched an utterance so far: what `touched` counts from."""
        return len(self._touched)

    def touched(self, after: int) -> set[str]:
        """Utterances that rows are about that came since `touches` was `after`."""
        return set(self._touched[after:])

    # Of an utterance

    def proposal(self, utterance: str) -> Batched | None:
        """What the latest batch that names it says of it; its intents are None where there was no consensus."""
        return self._proposals.get(utterance)

    def acts_on(self, utterance: str) -> tuple[Act, ...]:
        """Rows in force on it, in the order of the file."""
        found = self._acts.get(utterance)
        return () if found is None else tuple(row for row in found if row.id not in self._withdrawn)

    def is_taken_back(self, utterance: str, annotator: str) -> bool:
        """Whether the annotator has labelled it by hand and taken that back."""
        return any(
            isinstance(row, Labelled) and row.annotator == annotator and row.id in self._withdrawn
            for row in self._acts.get(utterance, ())
        )

    def choices(self, utterance: str) -> dict[str, Choice]:
        """Annotator → the latest row with labels that they gave it, in force."""
        return {row.annotator: row for row in self.acts_on(utterance) if isinstance(row, Accepted | Labelled)}

    def independent(self, utterance: str) -> dict[str, Choice]:
        """The same, but of who labelled by hand the labels from before they saw what is proposed."""
        found = self.choices(utterance)
        for row in self.acts_on(utterance):
            if isinstance(row, Labelled) and not row.proposal_shown:
                latest = found[row.annotator]
                if isinstance(latest, Labelled) and (latest.proposal_shown or latest.id == row.id):
                    found[row.annotator] = row
        return found

    def adjudication(self, utterance: str) -> Adjudicated | None:
        """The latest one in force."""
        return next((row for row in reversed(self.acts_on(utterance)) if isinstance(row, Adjudicated)), None)

    def is_changed_since_settled(self, utterance: str) -> bool:
        """Whether it is settled, and what annotators chose is not what was settled: given or taken back since."""
        settled = self.adjudication(utterance)
        return settled is not None and {row.id for row in self.choices(utterance).values()} != set(settled.inputs)

    def has_struck(self, utterance: str, annotator: str | None = None) -> bool:
        """Whether somebody, or this annotator, has struck what is proposed for it now."""
        now = self.proposal(utterance)
        if now is None:
            return False
        return any(
            isinstance(row, Struck)
            and (annotator is None or row.annotator == annotator)
            and row.intents == now.proposal.intents
            for row in self.acts_on(utterance)
        )

    def standing(self, utterance: str, wanted: int) -> Standing:
        """Where it stands. wanted: how many annotators are to label it."""
        settled = self.adjudication(utterance)
        if settled is not None:
            return Standing(State.ADJUDICATED, settled.intents)
        chosen = [row.intents for row in self.choices(utterance).values()]
        if not chosen:
            return Standing(self._unchosen(utterance))
        if len(set(chosen)) > 1:
            return Standing(State.DISPUTED)
        if len(chosen) < wanted:
            return Standing(State.WAITING, chosen[0])
        return Standing(State.AGREED if len(chosen) > 1 else State.SINGLE, chosen[0])

    def _allowed(self, proposal: Proposal) -> Proposal:
        if proposal.intents is None or not self._label_set.refusal(proposal.intents):
            return proposal
        return replace(proposal, intents=None)

    def _unchosen(self, utterance: str) -> State:
        if self.has_struck(utterance):
            return State.STRUCK
        now = self.proposal(utterance)
        return State.OPEN if now is None or now.proposal.intents is None else State.PROPOSED


def settles(row: Act) -> bool:
    """Whether it belongs to settling disagreements, and not to somebody's own labels."""
    return isinstance(row, Adjudicated) or (isinstance(row, Skipped) and row.adjudicating)
