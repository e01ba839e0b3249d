"""What the rows of a project say together.

For each utterance: who labels it, what is proposed, what was chosen, and what is final. For the project: its progress.
"""

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
"""A row with which one annotator gives an utterance labels."""


class UtteranceState(StrEnum):
    """The state of an utterance. The last three are final; see docs/how-to/annotate-utterances.md.

    - OPEN: nobody has chosen labels, and none are proposed.
    - PROPOSED: nobody has chosen labels, and some are proposed.
    - STRUCK: nobody has chosen labels, and somebody struck the proposal.
    - WAITING: fewer annotators have chosen labels than are needed.
    - DISPUTED: annotators chose different labels or slots.
    - SINGLE: one annotator is needed, and one has chosen labels.
    - AGREED: two or more annotators chose the same labels.
    - ADJUDICATED: an adjudicator settled the labels.
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
    """What a batch proposes for an utterance.

    - batch: id of the batch; "" if no batch contains the utterance.
    - intents: None if there was no consensus.
    - slots: None if none are proposed.
    """

    batch: str = ""
    intents: Intents | None = None
    slots: Slots | None = None


NOTHING_PROPOSED = BatchedProposal()


@frozen
class LabelStatus:
    """State of an utterance, with its labels.

    `intents` and `slots` are the final ones, or those so far if the state is WAITING. In other states they are None.
    `slots` is also None if nobody annotated slots.
    """

    state: UtteranceState
    intents: Intents | None = None
    slots: Slots | None = None


class Ledger:
    """All rows of a project that are on the disk, in the order of the file.

    A row with a known id changes nothing, so rows may be sent and read more than once. A proposal that the rules of
    `label_set` forbid counts as no consensus. Spellings of a name that differ only slightly (`name_key`) are one
    annotator, with the spelling that came first. A row is in force unless a later row withdrew it.
    An act is a row of an annotator. Not thread-safe.
    """

    def __init__(self, label_set: LabelSet, rows: Iterable[AnnotationRow] = ()) -> None:
        self._label_set = label_set
        self._ids: set[str] = set()
        self._spellings: dict[str, str] = {}
        self._acts_in_order: list[Act] = []
        self._positions: dict[str, int] = {}
        self._withdrawn_ids: set[str] = set()
        self._acts: dict[str, list[Act]] = defaultdict(list)
        self._proposals: dict[str, BatchedProposal] = {}
        self._slots: dict[tuple[str, str], Slots | None] = {}
        self._batches: list[Proposed] = []
        self._changed_utterances: list[str] = []
        self.add_all(rows)

    def __contains__(self, row_id: object) -> bool:
        """Whether there is a row with this id, in force or not."""
        return row_id in self._ids

    def add_all(self, rows: Iterable[AnnotationRow]) -> bool:
        """Adds the next rows, in order. Returns whether any of them was new."""
        return sum(self.add(row) for row in rows) > 0  # `any` would stop at the first new one

    def add(self, row: AnnotationRow) -> bool:
        """Adds the next row. Returns False if a row with its id is known already."""
        if row.id in self._ids:
            return False
        self._ids.add(row.id)
        if not isinstance(row, Proposed):
            name = self._spellings.setdefault(name_key(row.annotator), row.annotator)
            row = row if name == row.annotator else replace(row, annotator=name)
        match row:
            case Proposed():
                self._batches.append(row)
                self._changed_utterances.extend(proposal.utterance for proposal in row.proposals)
                self._proposals.update(
                    (proposal.utterance, BatchedProposal(row.id, self._allowed_intents(proposal), proposal.slots))
                    for proposal in row.proposals
                )
                self._slots.update(((row.id, proposal.utterance), proposal.slots) for proposal in row.proposals)
            case Withdrawn():
                self._withdrawn_ids.update(row.rows)
                withdrawn_acts = [
                    self._acts_in_order[self._positions[id_]] for id_ in row.rows if id_ in self._positions
                ]
                self._changed_utterances.extend(utterance for act in withdrawn_acts for utterance in utterances_of(act))
            case _:
                self._positions[row.id] = len(self._acts_in_order)
                self._acts_in_order.append(row)
                self._changed_utterances.extend(utterances_of(row))
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
        return tuple(row for row in self._acts_in_order if row.id not in self._withdrawn_ids)

    @property
    def annotators(self) -> tuple[str, ...]:
        """Names of annotators with labels in force, in the order of their first such row.

        Imported labels count as those of the annotator IMPORTED.
        """
        return tuple(dict.fromkeys(row.annotator for row in self.acts if isinstance(row, Accepted | Labelled)))

    def position_of(self, act: Act) -> int:
        """The position of a row among all rows of annotators, from 0, in the order of the file."""
        return self._positions[act.id]

    @property
    def change_count(self) -> int:
        """How many times a row was about an utterance so far. Pass it to `changed_since` later."""
        return len(self._changed_utterances)

    def changed_since(self, earlier_count: int) -> set[str]:
        """Ids of the utterances of all rows that came since `change_count` was earlier_count."""
        return set(self._changed_utterances[earlier_count:])

    # Of an utterance

    def proposal(self, utterance: str) -> BatchedProposal:
        """The proposal of the latest batch that contains the utterance; NOTHING_PROPOSED if no batch does."""
        return self._proposals.get(utterance, NOTHING_PROPOSED)

    def acts_on(self, utterance: str) -> tuple[Act, ...]:
        """Rows of annotators about the utterance that are in force, in the order of the file."""
        acts = self._acts.get(utterance)
        return () if acts is None else tuple(row for row in acts if row.id not in self._withdrawn_ids)

    def is_taken_back(self, utterance: str, annotator: str) -> bool:
        """Whether the annotator once labelled the utterance by hand and took that back."""
        return any(
            isinstance(row, Labelled) and row.annotator == annotator and row.id in self._withdrawn_ids
            for row in self._acts.get(utterance, ())
        )

    def choices(self, utterance: str) -> dict[str, Choice]:
        """Maps each annotator of the utterance to the latest row in force with which they gave it labels."""
        return {row.annotator: row for row in self.acts_on(utterance) if isinstance(row, Accepted | Labelled)}

    def slots(self, utterance: str, choice: Choice | Adjudicated) -> Slots | None:
        """The slots that came with a choice: marked by hand, or proposed and accepted. None without annotated slots."""
        return self._slots.get((choice.batch, utterance)) if isinstance(choice, Accepted) else choice.slots

    def independent_choices(self, utterance: str) -> dict[str, Choice]:
        """Like `choices`, but with the labels that an annotator gave by hand before the proposal was shown.

        This applies only if the annotator's latest choice was made by hand.
        """
        choices = self.choices(utterance)
        for row in self.acts_on(utterance):
            if isinstance(row, Labelled) and not row.proposal_shown:
                latest = choices[row.annotator]
                if isinstance(latest, Labelled) and (latest.proposal_shown or latest.id == row.id):
                    choices[row.annotator] = row
        return choices

    def adjudication(self, utterance: str) -> Adjudicated | None:
        """The latest adjudication of the utterance in force; None without one."""
        return next((row for row in reversed(self.acts_on(utterance)) if isinstance(row, Adjudicated)), None)

    def is_changed_since_adjudication(self, utterance: str) -> bool:
        """Whether choices of annotators have changed since an adjudicator settled the utterance.

        A choice may be new, or taken back. False if the utterance is not settled.
        """
        adjudication = self.adjudication(utterance)
        if adjudication is None:
            return False
        return {row.id for row in self.choices(utterance).values()} != set(adjudication.inputs)

    def has_struck(self, utterance: str, annotator: str | None = None) -> bool:
        """Whether this annotator struck the current proposal of the utterance. annotator: None for anybody."""
        proposed = self.proposal(utterance).intents
        return any(
            isinstance(row, Struck) and (annotator is None or row.annotator == annotator) and row.intents == proposed
            for row in self.acts_on(utterance)
        )

    def status_of(self, utterance: str, annotator_count: int) -> LabelStatus:
        """The state and labels of the utterance. annotator_count: how many annotators are to label it."""
        adjudication = self.adjudication(utterance)
        if adjudication is not None:
            return LabelStatus(UtteranceState.ADJUDICATED, adjudication.intents, adjudication.slots)
        choices = self.choices(utterance).values()
        intent_sets = [choice.intents for choice in choices]
        slot_sets = [slots for choice in choices if (slots := self.slots(utterance, choice)) is not None]
        if not intent_sets:
            return LabelStatus(self._state_without_labels(utterance))
        if len(set(intent_sets)) > 1 or len(set(slot_sets)) > 1:
            return LabelStatus(UtteranceState.DISPUTED)
        final = UtteranceState.AGREED if len(intent_sets) > 1 else UtteranceState.SINGLE
        state = UtteranceState.WAITING if len(intent_sets) < annotator_count else final
        return LabelStatus(state, intent_sets[0], slot_sets[0] if slot_sets else None)

    def _allowed_intents(self, proposal: LabelProposal) -> Intents | None:
        """The proposed labels; None if there are none, or if the rules of the label set forbid them."""
        if proposal.intents is None or self._label_set.refusal(proposal.intents):
            return None
        return proposal.intents

    def _state_without_labels(self, utterance: str) -> UtteranceState:
        if self.has_struck(utterance):
            return UtteranceState.STRUCK
        return UtteranceState.OPEN if self.proposal(utterance).intents is None else UtteranceState.PROPOSED


def is_adjudication(row: Act) -> bool:
    """Whether the row is an adjudicator's, made while settling disagreements; False for an annotator's own work."""
    return isinstance(row, Adjudicated) or (isinstance(row, Skipped) and row.adjudicating)


@frozen
class AnnotatorCount:
    """How many utterances one annotator has labelled: by accepting a proposal, and by hand."""

    annotator: str
    accepted: int
    by_hand: int


@frozen
class ProjectOutcome:
    """The progress of a project.

    - statuses: state and labels by utterance, in the order of the data.
    - states: number of utterances in each state.
    - batches: number of batches of proposals.
    - double_count: number of utterances that two annotators are to label.
    - changed: settled utterances whose annotators have changed their choices since. The settled labels stay.
    """

    statuses: Mapping[str, LabelStatus]
    states: Mapping[UtteranceState, int]
    annotators: tuple[AnnotatorCount, ...]
    batches: int
    double_count: int
    changed: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return len(self.statuses)

    @property
    def final(self) -> int:
        """Number of utterances with final labels."""
        return sum(count for state, count in self.states.items() if state.is_final)


def project_outcome(utterances: Sequence[Utterance], assignment: UtteranceAssignment, ledger: Ledger) -> ProjectOutcome:
    """The progress of a project, from the rows so far."""
    statuses = {
        utterance.id: ledger.status_of(utterance.id, assignment.annotators_needed(utterance.id))
        for utterance in utterances
    }
    state_counts = Counter(status.state for status in statuses.values())
    choice_counts = Counter(
        (annotator, type(choice)) for id_ in statuses for annotator, choice in ledger.choices(id_).items()
    )
    return ProjectOutcome(
        statuses=statuses,
        states={state: state_counts[state] for state in UtteranceState},
        annotators=tuple(
            AnnotatorCount(name, choice_counts[name, Accepted], choice_counts[name, Labelled])
            for name in ledger.annotators
        ),
        batches=len(ledger.batches),
        double_count=sum(assignment.annotators_needed(utterance.id) > 1 for utterance in utterances),
        changed=tuple(id_ for id_ in statuses if ledger.is_changed_since_adjudication(id_)),
    )


def with_proposals(progress: ProjectOutcome, ledger: Ledger) -> tuple[ProjectOutcome, frozenset[str]]:
    """The outcome, where unreviewed utterances have their proposals as labels. Also the ids of these utterances."""
    proposals = {
        id_: ledger.proposal(id_)
        for id_, status in progress.statuses.items()
        if status.state is UtteranceState.PROPOSED
    }
    proposed = {
        id_: LabelStatus(UtteranceState.PROPOSED, proposal.intents, proposal.slots)
        for id_, proposal in proposals.items()
    }
    return replace(progress, statuses={**progress.statuses, **proposed}), frozenset(proposed)


def with_labels(
    utterances: Sequence[Utterance], progress: ProjectOutcome, also: Collection[str] = (), *, with_state: bool
) -> tuple[Utterance, ...]:
    """Utterances with their final labels.

    If `with_state` is False, those without final labels are left out, except those whose id is in `also`. If it is
    True, all utterances come, and each gets its state as the group `state`. An utterance in the state WAITING has the
    labels so far.
    """
    labelled: list[Utterance] = []
    for utterance in utterances:
        status = progress.statuses[utterance.id]
        with_status = _labelled_utterance(utterance, status)
        if with_state:
            other_groups = (group for group in utterance.groups if group[0] != STATE_GROUP)
            labelled.append(replace(with_status, groups=(*other_groups, (STATE_GROUP, status.state))))
        elif status.state.is_final or utterance.id in also:
            labelled.append(with_status)
    return tuple(labelled)


def _labelled_utterance(utterance: Utterance, status: LabelStatus) -> Utterance:
    """The utterance with the labels of `status`.

    If `status` has slots, they replace those of the data. The value of each slot is its words.
    """
    if status.slots is None:
        return replace(utterance, intents=status.intents)
    tags = tags_of(replace(utterance, tags=None, slots=status.slots))
    tagged = replace(utterance, intents=status.intents, tags=tags)
    return replace(tagged, slots=slots_of(tagged))


STATE_GROUP = "state"
"""Name of the group that `with_labels` adds."""


def seeded_number(seed: int, purpose: str, utterance: str) -> int:
    """A 64-bit number that depends only on these three: the same on every machine and in every version."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{purpose}\0{utterance}".encode()).digest()[:8], "big")


class UtteranceAssignment:
    """Decides which annotators label which utterances of a project."""

    def __init__(self, project: AnnotationProject, utterances: Sequence[Utterance]) -> None:
        self._project = project
        ids = [utterance.id for utterance in utterances]
        double_ids = sorted(ids, key=lambda id_: seeded_number(project.seed, "double", id_))
        double_count = round(project.double_share * len(ids)) if project.per_utterance > 1 else 0
        self._double = frozenset(double_ids[:double_count])
        self._turns = {
            id_: turn
            for turn, id_ in enumerate(sorted(ids, key=lambda id_: seeded_number(project.seed, "annotator", id_)))
        }

    def annotators_needed(self, utterance: str) -> int:
        """How many annotators are to label the utterance: 1 or 2."""
        return 2 if utterance in self._double else 1

    def is_for(self, annotator: str, utterance: str, chosen: Collection[str]) -> bool:
        """Whether the annotator is to label the utterance. chosen: annotators who have chosen labels for it.

        If the project names annotators, the utterances are assigned to them in turn. Otherwise an utterance is for
        anyone, until enough others have chosen labels. Imported labels count as those of one annotator.
        """
        if not self._project.annotators:
            other_count = len(chosen) - 1 if annotator in chosen else len(chosen)
            return other_count < self.annotators_needed(utterance)
        annotator_count = self.annotators_needed(utterance)
        if IMPORTED in chosen:
            annotator_count -= 1
        return annotator in self._annotators_of(utterance)[:annotator_count]

    def is_second(self, annotator: str, utterance: str, chosen: Collection[str]) -> bool:
        """Whether the annotator is the second of two for the utterance. chosen: as for `is_for`.

        If the project names annotators, the turn decides. Otherwise the second is the one who comes after another.
        """
        if self.annotators_needed(utterance) < 2:
            return False
        if not self._project.annotators:
            return len(chosen) > (annotator in chosen)
        return IMPORTED in chosen or self._annotators_of(utterance)[1] == annotator

    def _annotators_of(self, utterance: str) -> tuple[str, ...]:
        """All annotators that the project names, in their order of turn for this utterance."""
        names, turn = self._project.annotators, self._turns[utterance] % len(self._project.annotators)
        return (*names[turn:], *names[:turn])
