"""Utterances that are brought back, to be looked at again: who may change which, and a sitting at just these."""

from __future__ import annotations

from collections.abc import Sequence

from harness.annotation.draft import HandDraft
from harness.annotation.ledger import Ledger
from harness.annotation.queue import Queue
from harness.annotation.shares import Shares
from harness.annotation.view import AnnotationCount
from harness.model.annotation import Accepted, AnnotationRow, Intents, Labelled

Stood = tuple[Intents, str]
"""Labels and the comment that came with them."""


class Again:
    """Given utterances, in their order. What was saved, kept or skipped in this sitting is done; it alone is undone.

    given: ids of the rows of this sitting.
    """

    def __init__(self, utterances: Sequence[str]) -> None:
        self._utterances = tuple(utterances)
        self._done: set[str] = set()
        self.given: set[str] = set()

    def queue(self) -> Queue:
        """All of it by hand, also where labels are proposed."""
        left = tuple(one for one in self._utterances if one not in self._done)
        total = len(self._utterances)
        return Queue((), left, AnnotationCount(total, total - len(left), len(left), to_label=len(left)))

    def wrote(self, rows: Sequence[AnnotationRow]) -> None:
        self.given.update(row.id for row in rows)

    def leave(self, utterance: str) -> None:
        self._done.add(utterance)

    def come_back(self, utterance: str) -> None:
        self._done.discard(utterance)


def may_label_again(ledger: Ledger, shares: Shares, annotator: str, utterance: str, *, adjudicating: bool) -> bool:
    """Whether it is the annotator's own, labelled or not; who settles may change all that has been labelled."""
    chosen = ledger.choices(utterance)
    if adjudicating:
        return bool(chosen) or ledger.adjudication(utterance) is not None
    return annotator in chosen or shares.is_for(annotator, utterance, chosen)


def show_what_stands(hand: HandDraft, ledger: Ledger, annotator: str, wanted: int, *, adjudicating: bool) -> None:
    """Gives it the annotator's own labels, or who settles the final ones: they count as saved: a change is written.

    What was settled before annotators changed their labels is written anew, so that it is settled again.
    """
    stood = what_stands(ledger, annotator, hand.utterance, wanted, adjudicating=adjudicating)
    if stood is None:
        return
    hand.chosen, hand.comment, hand.seen = set(stood[0]), stood[1], not adjudicating
    hand.saved = None if adjudicating and ledger.is_changed_since_settled(hand.utterance) else stood


def what_stands(ledger: Ledger, annotator: str, utterance: str, wanted: int, *, adjudicating: bool) -> Stood | None:
    """The annotator's own labels, or for who settles the final ones; None when there are none."""
    if not adjudicating:
        return _of(ledger.choices(utterance).get(annotator))
    settled = ledger.adjudication(utterance)
    if settled is not None:
        return tuple(sorted(settled.intents)), settled.comment
    standing = ledger.standing(utterance, wanted)
    return (tuple(sorted(standing.intents)), "") if standing.state.is_final and standing.intents is not None else None


def _of(choice: Accepted | Labelled | None) -> Stood | None:
    if choice is None:
        return None
    return tuple(sorted(choice.intents)), choice.comment if isinstance(choice, Labelled) else ""
