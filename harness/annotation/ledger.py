"""What the rows of a project say together: whose it is, what is proposed and chosen, what is final, how far it is."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from harness.base.user_text import name_key
from harness.model.annotation import (
    IMPORTED,
    Accepted,
    Act,
    Adjudicated,
    AnnotationProject,
    AnnotationRow,
    Intents,
    Labelled,
    LabelProposal,
    LabelSet,
    Proposed,
    Skipped,
    Slots,
    Struck,
    Withdrawn,
    utterances_of,
)
from harness.model.frozen import frozen
from harness.model.understanding import Utterance
from harness.understanding.files.corpus_writing import slots_of, tags_of

Choice = Accepted | Labelled
"""What gives an utterance labels, by one annotator."""


class UtteranceState(StrEnum):
    """The state of an utterance. The last three are final; see docs/how-to/annotate-utterances.md.

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
        return self in (UtteranceState.SINGLE, UtteranceState.AGREED, UtteranceState.ADJUDICATED)


@frozen
class BatchedProposal:
    """A proposal, and the batch that it is of."""

    batch: str
    proposal: LabelProposal


@frozen
class LabelStatus:
    """State of an utterance. `intents`, `slots`: the final ones. Those so far when WAITING, else None."""

    state: UtteranceState
    intents: Intents | None = None
    slots: Slots | None = None


class Ledger:
    """All rows of a project that are on the disk, in the order of the file.

    A row with a known id changes nothing, so rows may be sent and read more than once. `label_set`: a proposal that
    breaks its rules counts as no consensus. An annotator has one name, in its first spelling.
    """

    def __init__(self, label_set: LabelSet, rows: Iterable[AnnotationRow] = ()) -> None:
        self._label_set = label_set
        self._ids: set[str] = set()
        self._names: dict[str, str] = {}
        self._order: list[Act] = []
        self._number: dict[str, int] = {}
        self._withdrawn: set[str] = set()
        self._acts: dict[str, list[Act]] = defaultdict(list)
        self._proposals: dict[str, BatchedProposal] = {}
        self._slots: dict[tuple[str, str], Slots | None] = {}
        self._batches: list[Proposed] = []
        self._touched_utterances: list[str] = []
        self.add_all(rows)

    def __contains__(self, row_id: object) -> bool:
        """Whether there is a row with this id, in force or not."""
        return row_id in self._ids

    def add_all(self, rows: Iterable[AnnotationRow]) -> bool:
        """Whether any of them was new."""
        return sum(self.add(row) for row in rows) > 0

    def add(self, row: AnnotationRow) -> bool:
        """Takes the next row; False when it is known already."""
        if row.id in self._ids:
            return False
        self._ids.add(row.id)
        if not isinstance(row, Proposed):
            name = self._names.setdefault(name_key(row.annotator), row.annotator)
            row = row if name == row.annotator else replace(row, annotator=name)
        match row:
            case Proposed():
                self._batches.append(row)
                self._touched_utterances.extend(proposal.utterance for proposal in row.proposals)
                self._proposals.update(
                    (proposal.utterance, BatchedProposal(row.id, self._allowed(proposal))) for proposal in row.proposals
                )
                self._slots.update(((row.id, proposal.utterance), proposal.slots) for proposal in row.proposals)
            case Withdrawn():
                self._withdrawn.update(row.rows)
                withdrawn_acts = [self._order[self._number[id_]] for id_ in row.rows if id_ in self._number]
                self._touched_utterances.extend(utterance for act in withdrawn_acts for utterance in utterances_of(act))
            case _:
                self._number[row.id] = len(self._order)
                self._order.append(row)
                self._touched_utterances.extend(utterances_of(row))
                for utterance in utterances_of(row):
                    self._acts[utterance].append(row)
        return True

    # Of the project

    @property
    def batches(self) -> tuple[Proposed, ...]:
        """The batches, in the order in which they came."""
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
        return len(self._touched_utterances)

    def touched(self, after: int) -> set[str]:
        """Utterances that rows are about that came since `touches` was `after`."""
        return set(self._touched_utterances[after:])

    # Of an utterance

    def proposal(self, utterance: str) -> BatchedProposal | None:
        """What the latest batch that names it says of it; its intents are None where there was no consensus."""
        return self._proposals.get(utterance)

    def acts_on(self, utterance: str) -> tuple[Act, ...]:
        """Rows in force on it, in the order of the file."""
        acts = self._acts.get(utterance)
        return () if acts is None else tuple(row for row in acts if row.id not in self._withdrawn)

    def is_taken_back(self, utterance: str, annotator: str) -> bool:
        """Whether the annotator has labelled it by hand and taken that back."""
        return any(
            isinstance(row, Labelled) and row.annotator == annotator and row.id in self._withdrawn
            for row in self._acts.get(utterance, ())
        )

    def choices(self, utterance: str) -> dict[str, Choice]:
        """Annotator → the latest row with labels that they gave it, in force."""
        return {row.annotator: row for row in self.acts_on(utterance) if isinstance(row, Accepted | Labelled)}

    def slots(self, utterance: str, choice: Choice | Adjudicated) -> Slots | None:
        """The slots that came with a choice: marked, or proposed and accepted."""
        return self._slots.get((choice.batch, utterance)) if isinstance(choice, Accepted) else choice.slots

    def independent(self, utterance: str) -> dict[str, Choice]:
        """The same, but with the labels from before an annotator saw the proposal, for work by hand."""
        choices = self.choices(utterance)
        for row in self.acts_on(utterance):
            if isinstance(row, Labelled) and not row.proposal_shown:
                latest = choices[row.annotator]
                if isinstance(latest, Labelled) and (latest.proposal_shown or latest.id == row.id):
                    choices[row.annotator] = row
        return choices

    def adjudication(self, utterance: str) -> Adjudicated | None:
        """The latest one in force."""
        return next((row for row in reversed(self.acts_on(utterance)) if isinstance(row, Adjudicated)), None)

    def is_changed_since_adjudication(self, utterance: str) -> bool:
        """Whether it is settled, and what annotators chose is not what was settled: given or taken back since."""
        settled = self.adjudication(utterance)
        return settled is not None and {row.id for row in self.choices(utterance).values()} != set(settled.inputs)

    def has_struck(self, utterance: str, annotator: str | None = None) -> bool:
        """Whether somebody, or this annotator, has struck what is proposed for it now."""
        batched = self.proposal(utterance)
        if batched is None:
            return False
        return any(
            isinstance(row, Struck)
            and (annotator is None or row.annotator == annotator)
            and row.intents == batched.proposal.intents
            for row in self.acts_on(utterance)
        )

    def standing(self, utterance: str, annotator_count: int) -> LabelStatus:
        """Where it stands. annotator_count: how many are to label it."""
        settled = self.adjudication(utterance)
        if settled is not None:
            return LabelStatus(UtteranceState.ADJUDICATED, settled.intents, settled.slots)
        rows = self.choices(utterance).values()
        intent_sets = [row.intents for row in rows]
        slot_sets = [slots for row in rows if (slots := self.slots(utterance, row)) is not None]
        if not intent_sets:
            return LabelStatus(self._state_without_labels(utterance))
        if len(set(intent_sets)) > 1 or len(set(slot_sets)) > 1:
            return LabelStatus(UtteranceState.DISPUTED)
        final = UtteranceState.AGREED if len(intent_sets) > 1 else UtteranceState.SINGLE
        state = UtteranceState.WAITING if len(intent_sets) < annotator_count else final
        return LabelStatus(state, intent_sets[0], slot_sets[0] if slot_sets else None)

    def _allowed(self, proposal: LabelProposal) -> LabelProposal:
        if proposal.intents is None or not self._label_set.refusal(proposal.intents):
            return proposal
        return replace(proposal, intents=None)

    def _state_without_labels(self, utterance: str) -> UtteranceState:
        if self.has_struck(utterance):
            return UtteranceState.STRUCK
        batched = self.proposal(utterance)
        return UtteranceState.OPEN if batched is None or batched.proposal.intents is None else UtteranceState.PROPOSED


def is_adjudication(row: Act) -> bool:
    """Whether it belongs to settling disagreements, and not to somebody's own labels."""
    return isinstance(row, Adjudicated) or (isinstance(row, Skipped) and row.adjudicating)


@frozen
class AnnotatorCount:
    """What stands of one annotator: accepted and by hand are utterances with labels of theirs."""

    annotator: str
    accepted: int
    by_hand: int


@frozen
class ProjectOutcome:
    """standing: of every utterance, in the order of the data. double: how many are wanted from two annotators.

    changed: settled ones whose annotators' labels are not those any more that were settled; the settled labels stay.
    """

    standing: Mapping[str, LabelStatus]
    states: Mapping[UtteranceState, int]
    annotators: tuple[AnnotatorCount, ...]
    batches: int
    double: int
    changed: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return len(self.standing)

    @property
    def final(self) -> int:
        """Utterances with final labels."""
        return sum(count for state, count in self.states.items() if state.is_final)


def outcome(utterances: Sequence[Utterance], shares: UtteranceAssignment, ledger: Ledger) -> ProjectOutcome:
    """The outcome of a project as it stands."""
    statuses = {example.id: ledger.standing(example.id, shares.annotators_needed(example.id)) for example in utterances}
    state_counts = Counter(status.state for status in statuses.values())
    accepted: Counter[str] = Counter()
    by_hand: Counter[str] = Counter()
    for utterance in statuses:
        for annotator, row in ledger.choices(utterance).items():
            (by_hand if isinstance(row, Labelled) else accepted)[annotator] += 1
    names = ledger.annotators
    return ProjectOutcome(
        statuses,
        {state: state_counts[state] for state in UtteranceState},
        tuple(AnnotatorCount(name, accepted[name], by_hand[name]) for name in names),
        len(ledger.batches),
        sum(shares.annotators_needed(example.id) > 1 for example in utterances),
        tuple(id_ for id_ in statuses if ledger.is_changed_since_adjudication(id_)),
    )


def with_proposals(progress: ProjectOutcome, ledger: Ledger) -> tuple[ProjectOutcome, frozenset[str]]:
    """The outcome with proposals as labels where nobody has looked at them, and the ids of those."""
    proposed = {
        id_: LabelStatus(status.state, now.proposal.intents, now.proposal.slots)
        for id_, status in progress.standing.items()
        if status.state is UtteranceState.PROPOSED and (now := ledger.proposal(id_)) is not None
    }
    return replace(progress, standing={**progress.standing, **proposed}), frozenset(proposed)


def with_labels(
    utterances: Sequence[Utterance], progress: ProjectOutcome, also: Collection[str] = (), *, marked: bool
) -> tuple[Utterance, ...]:
    """Utterances with their final labels; those without are left out, but for `also`.

    marked: all of them, with a group `state`: what is not final has the labels of the one who has chosen so far, or
    none.
    """
    labelled = [_labelled_utterance(utterance, progress.standing[utterance.id]) for utterance in utterances]
    if not marked:
        return tuple(
            utterance
            for utterance in labelled
            if progress.standing[utterance.id].state.is_final or utterance.id in also
        )
    return tuple(
        replace(
            utterance,
            groups=(
                *(group for group in utterance.groups if group[0] != STATE),
                (STATE, progress.standing[utterance.id].state),
            ),
        )
        for utterance in labelled
    )


def _labelled_utterance(utterance: Utterance, status: LabelStatus) -> Utterance:
    """With labels that stand; where slots do, they replace those of the data, and their words are their values."""
    if status.slots is None:
        return replace(utterance, intents=status.intents)
    tagged = replace(utterance, intents=status.intents, tags=tags_of(replace(utterance, tags=None, slots=status.slots)))
    return replace(tagged, slots=slots_of(tagged))


STATE = "state"


def seeded_number(seed: int, purpose: str, utterance: str) -> int:
    """A number of 64 bits that only these three decide: the same on every machine and in every version."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{purpose}\0{utterance}".encode()).digest()[:8], "big")


class UtteranceAssignment:
    """Who labels the utterances of a project, in the order of the file."""

    def __init__(self, project: AnnotationProject, utterances: Sequence[Utterance]) -> None:
        self._project = project
        ids = [utterance.id for utterance in utterances]
        double = sorted(ids, key=lambda id_: seeded_number(project.seed, "double", id_))
        double_count = round(project.double_share * len(ids)) if project.per_utterance > 1 else 0
        self._double = frozenset(double[:double_count])
        self._turn = {
            id_: turn
            for turn, id_ in enumerate(sorted(ids, key=lambda id_: seeded_number(project.seed, "annotator", id_)))
        }

    def annotators_needed(self, utterance: str) -> int:
        """How many annotators are to label it."""
        return 2 if utterance in self._double else 1

    def is_for(self, annotator: str, utterance: str, chosen: Collection[str]) -> bool:
        """Whether it is in the annotator's queue. chosen: who has chosen labels for it.

        If the project names annotators, each utterance is assigned in turn. Otherwise it is for anyone, until the
        wanted number of others has chosen labels. Imported labels count as those of one annotator.
        """
        if not self._project.annotators:
            other_count = len(chosen) - 1 if annotator in chosen else len(chosen)
            return other_count < self.annotators_needed(utterance)
        annotator_count = self.annotators_needed(utterance)
        if IMPORTED in chosen:
            annotator_count -= 1
        return annotator in self._annotators_of(utterance)[:annotator_count]

    def is_second(self, annotator: str, utterance: str, chosen: Collection[str]) -> bool:
        """Whether the annotator is the second of two: by turn if the project names annotators, else by time."""
        if self.annotators_needed(utterance) < 2:
            return False
        if not self._project.annotators:
            return len(chosen) > (annotator in chosen)
        return IMPORTED in chosen or self._annotators_of(utterance)[1] == annotator

    def _annotators_of(self, utterance: str) -> tuple[str, ...]:
        """The annotators of an utterance, in order."""
        names, turn = self._project.annotators, self._turn[utterance] % len(self._project.annotators)
        return (*names[turn:], *names[:turn])
