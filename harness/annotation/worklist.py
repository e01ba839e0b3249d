"""The work of one annotator in a sitting: the queue after each row, drafts, undo, and utterances to label again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from harness.annotation.ledger import Ledger, UtteranceAssignment, is_adjudication
from harness.annotation.queue import Queue, Queues, next_group
from harness.annotation.view import AnnotationCount
from harness.base.user_text import to_nfc
from harness.model.annotation import (
    Accepted,
    Act,
    AnnotationProject,
    AnnotationRow,
    Intents,
    Labelled,
    LabelProposalShown,
    LabelSet,
    Slots,
    Struck,
)
from harness.model.frozen import frozen
from harness.model.numbers import percent
from harness.model.understanding import Slot, Utterance

CurrentLabels = tuple[Intents, Slots | None, str]
"""The labels, slots and comment of an utterance. The slots are None if they are not annotated."""


def may_label_again(
    ledger: Ledger, assignment: UtteranceAssignment, annotator: str, utterance: str, *, adjudicating: bool
) -> bool:
    """Whether the annotator may label the utterance, even if it is labelled already.

    An annotator may do so for utterances of their own. An adjudicator may do so for all labelled utterances.
    """
    chosen = ledger.choices(utterance)
    if adjudicating:
        return bool(chosen) or ledger.adjudication(utterance) is not None
    return annotator in chosen or assignment.is_for(annotator, utterance, chosen)


def current_labels(
    ledger: Ledger, annotator: str, utterance: str, annotator_count: int, *, adjudicating: bool
) -> CurrentLabels | None:
    """The annotator's own labels, or the final ones for an adjudicator; None if there are no such labels.

    annotator_count: how many annotators are to label the utterance.
    """
    own_choice = ledger.choices(utterance).get(annotator)
    choice = ledger.adjudication(utterance) if adjudicating else own_choice
    if choice is not None:
        comment = "" if isinstance(choice, Accepted) else choice.comment
        return tuple(sorted(choice.intents)), ledger.slots(utterance, choice), comment
    status = ledger.status_of(utterance, annotator_count)
    if not (adjudicating and status.state.is_final and status.intents is not None):
        return None
    return tuple(sorted(status.intents)), status.slots, ""


@frozen
class FoundUtterance:
    """An utterance that a search found. intents: its labels from `current_labels`; None if there are none."""

    utterance: str
    text: str
    intents: Intents | None


def has_words(text: str, words: str) -> bool:
    """Whether a text contains these words, in any case."""
    return to_nfc(words).casefold() in to_nfc(text).casefold()


def find(
    utterances: Iterable[Utterance],
    words: str,
    ledger: Ledger,
    assignment: UtteranceAssignment,
    annotator: str,
    *,
    adjudicating: bool,
) -> tuple[FoundUtterance, ...]:
    """Utterances with these words in their text, or with this id, that the annotator may label again.

    They come in the order of the data, with their labels from `current_labels`.
    """
    matches = []
    for utterance in utterances:
        if utterance.id != words and not has_words(utterance.text, words):
            continue
        if may_label_again(ledger, assignment, annotator, utterance.id, adjudicating=adjudicating):
            labels = current_labels(
                ledger, annotator, utterance.id, assignment.annotators_needed(utterance.id), adjudicating=adjudicating
            )
            matches.append(FoundUtterance(utterance.id, utterance.text, None if labels is None else labels[0]))
    return tuple(matches)


SaveRows = Callable[[Sequence[AnnotationRow]], None]
"""Writes rows, all or none, and returns when they are on the disk. Raises LogError or LogFull if it cannot."""


class Worklist:
    """The work of one annotator in a sitting. Not thread-safe.

    `ledger` has all rows of the project. `queue` is the work left, renewed after each change.

    - rows: all rows of the project so far.
    - save_rows: writes rows.
    - adjudicating: whether the annotator settles disagreements.
    - again: the utterances that the sitting is about, with the labels that they have; empty for the usual queue.
    """

    def __init__(
        self,
        annotator: str,
        project: AnnotationProject,
        label_set: LabelSet,
        utterances: Sequence[Utterance],
        rows: Iterable[AnnotationRow],
        save_rows: SaveRows,
        *,
        adjudicating: bool = False,
        again: Sequence[str] = (),
    ) -> None:
        self.annotator, self.adjudicating = annotator, adjudicating
        self.label_set, self.utterances = label_set, utterances
        self._project = project
        self._given_ids = tuple(again)
        self._done_ids: set[str] = set()
        self._written_ids: set[str] = set()
        self._queues = Queues(project, label_set, utterances)
        self._save_rows = save_rows
        self.ledger = Ledger(label_set, rows)
        self.queue = self._read_queue()

    @property
    def estimate(self) -> str:
        """A text for people on the estimated error of the classifier that orders the work; "" without one."""
        error, target = self.queue.error, self._project.target_error
        if error is None:
            return ""
        words = f"estimated label error in the remaining utterances: {percent(error, 1)}"
        return f"{words}: the target is reached" if error <= target else f"{words}, target {percent(target, 1)}"

    def write(self, rows: Sequence[AnnotationRow]) -> None:
        """Writes rows of this sitting. If that fails, nothing has changed here."""
        self._save_rows(rows)
        self.ledger.add_all(rows)
        self._written_ids.update(row.id for row in rows)
        self.queue = self._read_queue()

    def add_rows(self, rows: Iterable[AnnotationRow]) -> bool:
        """Adds rows that were written elsewhere. Returns whether any of them was new."""
        if not self.ledger.add_all(rows):
            return False
        self.queue = self._read_queue()
        return True

    def mark_done(self, utterance: str) -> None:
        """Marks an utterance as done. This matters only in a sitting at given utterances; elsewhere the rows decide."""
        self._done_ids.add(utterance)
        self.queue = self._read_queue()

    def reopen(self, utterance: str) -> None:
        """Marks an utterance as not done, the reverse of `mark_done`."""
        self._done_ids.discard(utterance)
        self.queue = self._read_queue()

    @property
    def last_act(self) -> Act | None:
        """The annotator's latest row in force that this sitting may undo; None without one.

        It is an adjudicator's row if this sitting settles disagreements, and else a row of own work.
        """
        own_acts = (row for row in reversed(self.ledger.acts) if self._is_own(row))
        return next((row for row in own_acts if is_adjudication(row) is self.adjudicating), None)

    def rows_to_withdraw(self, last_act: Act) -> list[Act]:
        """The rows to withdraw in order to undo `last_act`.

        For a review, these are all rows of its page. For labels by hand, these are all such rows of the annotator for
        the utterance, before and after the proposal was shown. Else it is `last_act` alone.
        """
        match last_act:
            case Accepted() | Struck():
                return [
                    row
                    for row in self.ledger.acts
                    if isinstance(row, Accepted | Struck) and self._is_own(row) and row.page == last_act.page
                ]
            case Labelled():
                acts = self.ledger.acts_on(last_act.utterance)
                return [row for row in acts if isinstance(row, Labelled) and self._is_own(row)]
        return [last_act]

    def _is_own(self, row: Act) -> bool:
        """Whether the annotator wrote the row. In a sitting at given utterances, only rows of this sitting count."""
        return row.annotator == self.annotator and (not self._given_ids or row.id in self._written_ids)

    def unreviewed_with(self, intents: Intents) -> set[str]:
        """Ids of utterances with this proposal that are still to be reviewed."""
        return {utterance for group in self.queue.groups if group.intents == intents for utterance in group.open}

    def next_page(self, postponed: Sequence[Intents]) -> PageDraft | None:
        """The next page to review, of the largest group; None if nothing is left to review.

        postponed: the labels of groups that were left for the end.
        """
        group = next_group(self.queue.groups, postponed)
        return None if group is None else PageDraft(group.intents, group.open[: self._project.page_size])

    def new_draft(self, utterance: str) -> HandDraft:
        """A draft for an utterance to label, with the labels and slots that it begins with."""
        ledger = self.ledger
        proposal_seen = (
            self._project.proposal is LabelProposalShown.BEFORE
            or ledger.has_struck(utterance, self.annotator)
            or ledger.is_taken_back(utterance, self.annotator)
        )
        draft = HandDraft(utterance, proposal_seen=proposal_seen and not self.adjudicating)
        annotator_count = self._queues.assignment.annotators_needed(utterance)
        current = current_labels(ledger, self.annotator, utterance, annotator_count, adjudicating=self.adjudicating)
        if self._given_ids and current is not None:
            # The draft counts as saved, so only a change is written. If annotators changed their labels after the
            # utterance was settled, even an unchanged draft is written, so that the utterance is settled again.
            intents, slots, draft.comment = current
            draft.chosen, draft.slots, draft.proposal_seen = set(intents), slots or (), not self.adjudicating
            draft.saved = None if self.adjudicating and ledger.is_changed_since_adjudication(utterance) else current
        elif self.adjudicating:
            # Begin with everything on which all annotators agree, so that saving at once keeps it. An annotator without
            # slots, such as a file of intents, does not disagree about them.
            choices = ledger.choices(utterance).values()
            slot_sets = [set(slots) for choice in choices if (slots := ledger.slots(utterance, choice)) is not None]
            if choices:
                draft.chosen = set.intersection(*(set(choice.intents) for choice in choices))
            if slot_sets:
                draft.slots = tuple(sorted(set.intersection(*slot_sets), key=_place))
        elif draft.proposal_seen:
            draft.slots = self.proposed_slots(utterance)
        return draft

    def proposed_slots(self, utterance: str) -> Slots:
        """The slots of the proposal for the utterance; () without any."""
        return self.ledger.proposal(utterance).slots or ()

    def proposal(self, utterance: str) -> Intents | None:
        """The proposed labels of the utterance; None if there is no proposal, or no consensus."""
        return self.ledger.proposal(utterance).intents

    def _read_queue(self) -> Queue:
        if self._given_ids:
            open_ids = tuple(utterance for utterance in self._given_ids if utterance not in self._done_ids)
            total, left = len(self._given_ids), len(open_ids)
            return Queue((), open_ids, AnnotationCount(total=total, done=total - left, left=left, to_label=left))
        if self.adjudicating:
            return self._queues.disputed_queue(self.annotator, self.ledger)
        return self._queues.queue_of(self.annotator, self.ledger)


class PageDraft:
    """A page of a group.

    - intents: the proposal.
    - struck: ids of the utterances that are struck on it so far.
    """

    def __init__(self, intents: Intents, utterances: tuple[str, ...], struck: Iterable[str] = ()) -> None:
        self.intents = intents
        self.utterances = utterances
        self.struck = set(struck)

    def restricted_to(self, open_ids: Collection[str]) -> PageDraft | None:
        """The page with only those of its utterances that are in `open_ids`; None if there are none."""
        if all(utterance in open_ids for utterance in self.utterances):
            return self
        remaining = tuple(utterance for utterance in self.utterances if utterance in open_ids)
        if not remaining:
            return None
        return PageDraft(self.intents, remaining, self.struck & set(remaining))


def _place(slot: Slot) -> int:
    return slot.start or 0


class HandDraft:
    """An utterance that is being labelled.

    - proposal_seen: whether its proposal is shown.
    - saved: its labels, slots and comment on the disk; None if nothing is there.
    """

    def __init__(self, utterance: str, *, proposal_seen: bool) -> None:
        self.utterance = utterance
        self.proposal_seen = proposal_seen
        self.chosen: set[str] = set()
        self.slots: Slots = ()
        self.comment = ""
        self.saved: CurrentLabels | None = None

    def mark(self, slot: Slot) -> bool:
        """Marks a slot, or removes it if it is marked already. Returns whether it is marked now.

        Other slots that share a word with it are removed.
        """
        is_new = slot not in self.slots
        self.clear(_place(slot), slot.end or 0)
        if is_new:
            self.slots = tuple(sorted([*self.slots, slot], key=_place))
        return is_new

    def clear(self, start: int, end: int) -> bool:
        """Removes all slots that contain one of these words. Returns whether there were any.

        Words are numbered from 0, and `end` is exclusive.
        """
        previous = self.slots
        self.slots = tuple(slot for slot in previous if (slot.end or 0) <= start or _place(slot) >= end)
        return self.slots != previous
