"""What one annotator has to do in a sitting: the queue after each row, drafts, undo, what is brought back."""

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

Stood = tuple[Intents, Slots | None, str]
"""Labels and slots, and the comment that came with them."""


def may_label_again(
    ledger: Ledger, shares: UtteranceAssignment, annotator: str, utterance: str, *, adjudicating: bool
) -> bool:
    """Whether it is the annotator's own, labelled or not. An adjudicator may change every labelled utterance."""
    chosen = ledger.choices(utterance)
    if adjudicating:
        return bool(chosen) or ledger.adjudication(utterance) is not None
    return annotator in chosen or shares.is_for(annotator, utterance, chosen)


def current_labels(
    ledger: Ledger, annotator: str, utterance: str, annotator_count: int, *, adjudicating: bool
) -> Stood | None:
    """The annotator's own labels, or the final ones for an adjudicator; None for none."""
    own_choice = ledger.choices(utterance).get(annotator)
    choice = ledger.adjudication(utterance) if adjudicating else own_choice
    if choice is not None:
        comment = "" if isinstance(choice, Accepted) else choice.comment
        return tuple(sorted(choice.intents)), ledger.slots(utterance, choice), comment
    status = ledger.standing(utterance, annotator_count)
    if not (adjudicating and status.state.is_final and status.intents is not None):
        return None
    return tuple(sorted(status.intents)), status.slots, ""


@frozen
class FoundUtterance:
    """intents: the labels that it is shown with when it is opened; None when there are none."""

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
    shares: UtteranceAssignment,
    annotator: str,
    *,
    adjudicating: bool,
) -> tuple[FoundUtterance, ...]:
    """Utterances with these words in their text, or as their id, that the annotator may label again.

    In the order of the data, with the annotator's own labels; for an adjudicator with the final ones.
    """
    matches = []
    for utterance in utterances:
        if utterance.id != words and not has_words(utterance.text, words):
            continue
        if may_label_again(ledger, shares, annotator, utterance.id, adjudicating=adjudicating):
            labels = current_labels(
                ledger, annotator, utterance.id, shares.annotators_needed(utterance.id), adjudicating=adjudicating
            )
            matches.append(FoundUtterance(utterance.id, utterance.text, None if labels is None else labels[0]))
    return tuple(matches)


SaveRows = Callable[[Sequence[AnnotationRow]], None]
"""Puts rows on the disk, all or none, and returns then; raises LogError or LogFull when it cannot."""


class Worklist:
    """ledger: all rows of the project. queue: what is left, read anew after each change.

    rows: all of the project so far. adjudicating: settles what annotators disagree on. again: just these utterances,
    with the labels that they have. Not thread-safe.
    """

    def __init__(
        self,
        annotator: str,
        project: AnnotationProject,
        label_set: LabelSet,
        utterances: Sequence[Utterance],
        rows: Iterable[AnnotationRow],
        keep: SaveRows,
        *,
        adjudicating: bool = False,
        again: Sequence[str] = (),
    ) -> None:
        self.annotator, self.adjudicating = annotator, adjudicating
        self.label_set, self.utterances = label_set, utterances
        self._project = project
        self._reopened = tuple(again)
        self._done_again: set[str] = set()
        self._written_ids: set[str] = set()
        self._queues = Queues(project, label_set, utterances)
        self._keep = keep
        self.ledger = Ledger(label_set, rows)
        self.queue = self._read()

    @property
    def estimate(self) -> str:
        """How wrong the classifier that orders the work would be about the rest; "" without one."""
        error, target = self.queue.error, self._project.target_error
        if error is None:
            return ""
        words = f"estimated error of the rest {percent(error, 1)}"
        return f"{words}: the target is reached" if error <= target else f"{words}, target {percent(target, 1)}"

    def write(self, rows: Sequence[AnnotationRow]) -> None:
        """Rows of this sitting; nothing has changed when they cannot be kept."""
        self._keep(rows)
        self.ledger.add_all(rows)
        self._written_ids.update(row.id for row in rows)
        self.queue = self._read()

    def take_in(self, rows: Iterable[AnnotationRow]) -> bool:
        """Rows that were given elsewhere; whether any of them was new."""
        if not self.ledger.add_all(rows):
            return False
        self.queue = self._read()
        return True

    def leave(self, utterance: str) -> None:
        """Done with, in a sitting at given utterances; elsewhere the rows alone say so."""
        self._done_again.add(utterance)
        self.queue = self._read()

    def come_back(self, utterance: str) -> None:
        """To be done once more, in a sitting at given utterances."""
        self._done_again.discard(utterance)
        self.queue = self._read()

    @property
    def last(self) -> Act | None:
        """The annotator's latest act of this sort of sitting in force that may be undone here."""
        own_acts = (row for row in reversed(self.ledger.acts) if self._is_own(row))
        return next((row for row in own_acts if is_adjudication(row) is self.adjudicating), None)

    def taken_back_with(self, last: Act) -> list[Act]:
        """All of its page; all that was chosen for the utterance, before and after the proposal was seen."""
        match last:
            case Accepted() | Struck():
                return [
                    row
                    for row in self.ledger.acts
                    if isinstance(row, Accepted | Struck) and self._is_own(row) and row.page == last.page
                ]
            case Labelled():
                acts = self.ledger.acts_on(last.utterance)
                return [row for row in acts if isinstance(row, Labelled) and self._is_own(row)]
        return [last]

    def _is_own(self, row: Act) -> bool:
        """The annotator's; in a sitting at given utterances, of this sitting."""
        return row.annotator == self.annotator and (not self._reopened or row.id in self._written_ids)

    def unreviewed_with(self, intents: Intents) -> set[str]:
        """Utterances with that proposal that are still to be reviewed."""
        return {utterance for group in self.queue.groups if group.intents == intents for utterance in group.open}

    def next_page(self, postponed: Sequence[Intents]) -> PageDraft | None:
        """The page of the largest group. postponed: the groups that were left for the end."""
        group = next_group(self.queue.groups, postponed)
        return None if group is None else PageDraft(group.intents, group.open[: self._project.page_size])

    def hand(self, utterance: str) -> HandDraft:
        """An utterance to label, with what is in sight of it from the beginning."""
        ledger = self.ledger
        seen = (
            self._project.proposal is LabelProposalShown.BEFORE
            or ledger.has_struck(utterance, self.annotator)
            or ledger.is_taken_back(utterance, self.annotator)
        )
        hand = HandDraft(utterance, seen=seen and not self.adjudicating)
        annotator_count = self._queues.shares.annotators_needed(utterance)
        stood = current_labels(ledger, self.annotator, utterance, annotator_count, adjudicating=self.adjudicating)
        if self._reopened and stood is not None:
            # It counts as saved: a change is written. What was settled before annotators changed their labels is
            # written anew, so that it is settled again.
            hand.chosen, hand.comment, hand.seen = set(stood[0]), stood[2], not self.adjudicating
            hand.slots = stood[1] or ()
            hand.saved = None if self.adjudicating and ledger.is_changed_since_adjudication(utterance) else stood
        elif self.adjudicating:
            # What all agree on, so that Enter never drops it.
            choices = ledger.choices(utterance).values()
            slot_sets = [set(ledger.slots(utterance, choice) or ()) for choice in choices]
            if slot_sets:
                hand.chosen = set.intersection(*(set(choice.intents) for choice in choices))
                hand.slots = tuple(sorted(set.intersection(*slot_sets), key=_place))
        elif hand.seen:
            hand.slots = self.proposed_slots(utterance)
        return hand

    def proposed_slots(self, utterance: str) -> Slots:
        """Slots of the proposal."""
        batched = self.ledger.proposal(utterance)
        return () if batched is None else batched.proposal.slots or ()

    def proposal(self, utterance: str) -> Intents | None:
        """What is proposed for it; None without consensus, too."""
        batched = self.ledger.proposal(utterance)
        return None if batched is None else batched.proposal.intents

    def _read(self) -> Queue:
        if self._reopened:
            open_ids = tuple(utterance for utterance in self._reopened if utterance not in self._done_again)
            total = len(self._reopened)
            return Queue(
                (), open_ids, AnnotationCount(total, total - len(open_ids), len(open_ids), to_label=len(open_ids))
            )
        read_queue = self._queues.of_disputed if self.adjudicating else self._queues.queue_of
        return read_queue(self.annotator, self.ledger)


class PageDraft:
    """A page of a group, with what is struck on it so far."""

    def __init__(self, intents: Intents, utterances: tuple[str, ...], struck: Iterable[str] = ()) -> None:
        self.intents = intents
        self.utterances = utterances
        self.struck = set(struck)

    def only(self, open_ids: Collection[str]) -> PageDraft | None:
        """The same page with what is still to be done; None when nothing is."""
        if all(utterance in open_ids for utterance in self.utterances):
            return self
        remaining = tuple(utterance for utterance in self.utterances if utterance in open_ids)
        if not remaining:
            return None
        return PageDraft(self.intents, remaining, self.struck & set(remaining))


def _place(slot: Slot) -> int:
    return slot.start or 0


class HandDraft:
    """An utterance to label. seen: its proposal is in sight. saved: what is on the disk of it."""

    def __init__(self, utterance: str, *, seen: bool) -> None:
        self.utterance = utterance
        self.seen = seen
        self.chosen: set[str] = set()
        self.slots: Slots = ()
        self.comment = ""
        self.saved: Stood | None = None

    def mark(self, slot: Slot) -> bool:
        """Marks a slot instead of all that share a word with it, or takes it away; whether it is marked now."""
        is_new = slot not in self.slots
        self.clear(_place(slot), slot.end or 0)
        if is_new:
            self.slots = tuple(sorted([*self.slots, slot], key=_place))
        return is_new

    def clear(self, start: int, end: int) -> bool:
        """Takes all slots away that have one of these words; whether there were any."""
        before = self.slots
        self.slots = tuple(slot for slot in before if (slot.end or 0) <= start or _place(slot) >= end)
        return self.slots != before
