"""The work of an annotator: groups of proposals to review, and utterances to label by hand, in their order."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.annotation.ledger import Ledger, UtteranceAssignment, UtteranceState, is_adjudication, seeded_number
from harness.annotation.uncertainty import UncertaintyOrder
from harness.annotation.view import AnnotationCount
from harness.model.annotation import (
    Accepted,
    Act,
    AnnotationProject,
    Intents,
    Labelled,
    LabellingOrder,
    LabelSet,
    SecondAnnotatorMode,
    Skipped,
    Struck,
    utterances_of,
)
from harness.model.frozen import frozen
from harness.model.understanding import Utterance


@frozen
class ProposalGroup:
    """Utterances with the same proposal.

    - intents: the proposed labels.
    - open: ids of those still to be reviewed, sorted by text.
    - total: number of open and reviewed ones.
    """

    intents: Intents
    open: tuple[str, ...]
    total: int


@frozen
class Queue:
    """The queue of one annotator.

    - groups: groups of proposals, the largest first, including those with nothing open.
    - by_hand: ids of utterances to label by hand, in order; skipped ones come last.
    - error: estimated error of the classifier that orders `by_hand`, between 0 and 1; None without one.
    """

    groups: tuple[ProposalGroup, ...]
    by_hand: tuple[str, ...]
    count: AnnotationCount
    error: float | None = None


@frozen
class _QueuePart:
    """The state of an utterance in one annotator's queue.

    - is_chosen: the annotator has chosen labels.
    - is_struck: the annotator's last review struck the proposal.
    - reviewed: the labels that the annotator accepted or struck last; None without a review.
    - proposed: the proposal to review now. If it is None and nothing is chosen, the utterance is labelled by hand.
    - skipped: position of the row that skipped the utterance, if that is the annotator's last row; else None.
    """

    is_chosen: bool
    is_struck: bool = False
    reviewed: Intents | None = None
    proposed: Intents | None = None
    skipped: int | None = None


@dataclass(slots=True)
class _CachedQueue:
    """The parts of one annotator's queue.

    - parts: id of an utterance → its part, in the order of the texts; None if it is not for this annotator.
    - change_count: `Ledger.change_count` when the parts were last updated.
    """

    ledger: Ledger
    parts: dict[str, _QueuePart | None]
    change_count: int


class Queues:
    """The queues of one project. A second call for the same ledger reads only utterances that have new rows."""

    def __init__(self, project: AnnotationProject, label_set: LabelSet, utterances: Sequence[Utterance]) -> None:
        self._project = project
        by_doubt = project.order is LabellingOrder.DOUBT
        self._uncertainty = UncertaintyOrder(project, label_set, utterances) if by_doubt else None
        self._text = {utterance.id: utterance.text for utterance in utterances}
        self._ids_by_text = sorted(self._text, key=lambda id_: (self._text[id_].casefold(), id_))
        self._turns: dict[str, dict[str, int]] = {}
        self._cached: dict[str, _CachedQueue] = {}
        self.assignment = UtteranceAssignment(project, utterances)

    def queue_of(self, annotator: str, ledger: Ledger) -> Queue:
        """The annotator's own queue. It does not depend on the labels that others have chosen."""
        open_by_intents: dict[Intents, list[str]] = defaultdict(list)
        totals: dict[Intents, int] = defaultdict(int)
        by_hand: list[str] = []
        skipped: dict[str, int] = {}
        total = chosen_count = struck = 0
        for utterance, part in self._queue_parts(annotator, ledger).items():
            if part is None:
                continue
            total += 1
            if part.is_chosen:
                chosen_count += 1
            if part.is_struck:
                struck += 1
            if part.reviewed is not None:
                totals[part.reviewed] += 1
            if part.is_chosen:
                continue
            if part.proposed is not None:
                open_by_intents[part.proposed].append(utterance)
                if part.reviewed != part.proposed:  # else it was counted above
                    totals[part.proposed] += 1
                continue
            by_hand.append(utterance)
            if part.skipped is not None:
                skipped[utterance] = part.skipped
        groups = tuple(
            ProposalGroup(intents, tuple(open_by_intents.get(intents, ())), size)
            for intents, size in sorted(totals.items(), key=lambda total: (-total[1], total[0]))
        )
        to_review = sum(len(group.open) for group in groups)
        count = AnnotationCount(
            total, chosen_count, total - chosen_count, to_review, len(by_hand), struck=struck, skipped=len(skipped)
        )
        doubts = self._uncertainty.turns(annotator, ledger) if self._uncertainty is not None and by_hand else {}
        error = self._uncertainty.error(annotator) if doubts and self._uncertainty is not None else None
        return Queue(groups, self._in_order(by_hand, skipped, annotator, doubts), count, error)

    def _queue_parts(self, annotator: str, ledger: Ledger) -> dict[str, _QueuePart | None]:
        """The parts of the annotator's queue, updated for rows that are new since the last call."""
        queue = self._cached.get(annotator)
        if queue is None or queue.ledger is not ledger:
            parts = {utterance: self._queue_part(annotator, utterance, ledger) for utterance in self._ids_by_text}
            queue = self._cached[annotator] = _CachedQueue(ledger, parts, ledger.change_count)
        for utterance in ledger.changed_since(queue.change_count):
            if utterance in queue.parts:
                queue.parts[utterance] = self._queue_part(annotator, utterance, ledger)
        queue.change_count = ledger.change_count
        return queue.parts

    def _queue_part(self, annotator: str, utterance: str, ledger: Ledger) -> _QueuePart | None:
        """The state of the utterance in the annotator's queue; None if the utterance is not for this annotator."""
        all_acts = ledger.acts_on(utterance)
        acts = [row for row in all_acts if row.annotator == annotator and not is_adjudication(row)]
        annotators = {row.annotator for row in all_acts if isinstance(row, Accepted | Labelled)}
        if annotator not in annotators and not self.assignment.is_for(annotator, utterance, annotators):
            return None
        last_review = next((row for row in reversed(acts) if isinstance(row, Accepted | Struck)), None)
        is_chosen = annotator in annotators
        part = _QueuePart(
            is_chosen,
            is_struck=isinstance(last_review, Struck),
            reviewed=None if last_review is None else last_review.intents,
        )
        if is_chosen:
            return part
        return replace(
            part,
            proposed=self._proposal_to_review(annotator, utterance, last_review, annotators, ledger),
            skipped=ledger.position_of(acts[-1]) if acts and isinstance(acts[-1], Skipped) else None,
        )

    def disputed_queue(self, annotator: str, ledger: Ledger) -> Queue:
        """The queue of an adjudicator: the utterances on which annotators disagree, and which nobody has settled.

        The counts include those that this adjudicator has settled.
        """
        open_ids: list[str] = []
        skipped: dict[str, int] = {}
        settled_count = 0
        for utterance in self._text:
            state = ledger.status_of(utterance, self.assignment.annotators_needed(utterance)).state
            if state is UtteranceState.ADJUDICATED:
                adjudication = ledger.adjudication(utterance)
                if adjudication is not None and adjudication.annotator == annotator:
                    settled_count += 1
            elif state is UtteranceState.DISPUTED:
                open_ids.append(utterance)
                acts = [row for row in ledger.acts_on(utterance) if row.annotator == annotator and is_adjudication(row)]
                if acts:
                    skipped[utterance] = ledger.position_of(acts[-1])
        count = AnnotationCount(
            settled_count + len(open_ids), settled_count, len(open_ids), to_label=len(open_ids), skipped=len(skipped)
        )
        return Queue((), self._in_order(open_ids, skipped, annotator), count)

    def _proposal_to_review(
        self, annotator: str, utterance: str, last_review: Act | None, annotators: Collection[str], ledger: Ledger
    ) -> Intents | None:
        """The proposal that the annotator is to accept or strike; None if the utterance is to be labelled by hand.

        - last_review: the annotator's last one.
        - annotators: those who have chosen labels for the utterance.
        """
        proposed = ledger.proposal(utterance).intents
        if proposed is None or (isinstance(last_review, Struck) and last_review.intents == proposed):
            return None
        is_second = self.assignment.is_second(annotator, utterance, annotators)
        if is_second and self._project.second is SecondAnnotatorMode.HAND:
            return None
        return proposed

    def _in_order(
        self, utterances: list[str], skipped: dict[str, int], annotator: str, doubts: Mapping[str, int] = {}
    ) -> tuple[str, ...]:
        """The utterances in the order in which they come up.

        First come those without a turn in `doubts`, in a random order that is the annotator's own. Then come the
        others, with the most doubtful first. Skipped ones are last, with the one that was skipped first at their head.

        - doubts: turns that a classifier gives.
        - skipped: positions of the rows that skipped.
        """
        if annotator not in self._turns:
            seed = self._project.seed
            self._turns[annotator] = {utterance: seeded_number(seed, annotator, utterance) for utterance in self._text}
        turn = self._turns[annotator]
        return tuple(
            sorted(
                utterances,
                key=lambda utterance: (skipped.get(utterance, -1), doubts.get(utterance, -1), turn[utterance]),
            )
        )


def next_group(groups: Sequence[ProposalGroup], postponed: Sequence[Intents]) -> ProposalGroup | None:
    """The largest group with something open; None without one.

    Groups that were left for later come last, in the order in which they were left.

    - groups: the largest first.
    - postponed: the labels of groups that were left for later.
    """
    open_groups = [group for group in groups if group.open]
    current_groups = [group for group in open_groups if group.intents not in postponed]
    if current_groups:
        return current_groups[0]
    turns = {intents: turn for turn, intents in enumerate(postponed)}
    return min(open_groups, key=lambda group: turns[group.intents], default=None)


def group_by_batch(ledger: Ledger, utterances: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Pairs of a batch and the utterances for which it proposes, since two batches may propose the same labels.

    The batch is "" for utterances without a proposal.
    """
    utterances_by_batch: dict[str, list[str]] = defaultdict(list)
    for utterance in utterances:
        utterances_by_batch[ledger.proposal(utterance).batch].append(utterance)
    return list(utterances_by_batch.items())


PACE_ACTS = 30
"""The number of last pages and utterances over which `pace_s` takes the median."""


def pace_s(acts: Sequence[Act], annotator: str, *, adjudicating: bool) -> float | None:
    """The annotator's pace: the median time for an utterance, in seconds, over the last PACE_ACTS pages and utterances.

    Each utterance of a page counts with an equal share of the page's time. If an utterance was saved again while it was
    shown, its last time counts, which includes the earlier ones. None if no act has a time yet.

    - acts: rows in force.
    - adjudicating: whether to take acts of settling disagreements instead of own labels.
    """
    times: dict[object, tuple[float, int]] = {}  # id of a page, or a showing → (time in s, number of utterances)
    for row in reversed(acts):
        if row.annotator != annotator or isinstance(row, Skipped) or is_adjudication(row) is not adjudicating:
            continue
        if row.time_s is None:
            continue
        key = row.page if isinstance(row, Accepted | Struck) else (row.utterance, row.shown_wall_s)
        if key not in times and len(times) == PACE_ACTS:
            break
        if key not in times or isinstance(row, Accepted | Struck):
            _, count = times.get(key, (0.0, 0))
            times[key] = (row.time_s, count + len(utterances_of(row)))
    act_times = [seconds / count for seconds, count in times.values() for _ in range(count)]
    return statistics.median(act_times) if act_times else None
