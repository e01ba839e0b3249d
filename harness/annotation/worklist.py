"""What one annotator has to do in a sitting, and has done: the queue as it stands after each row. No screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness.annotation.again import Again, show_what_stands
from harness.annotation.draft import HandDraft, PageDraft
from harness.annotation.ledger import Ledger
from harness.annotation.queue import Queue, Queues, next_group
from harness.annotation.undo import latest, taken_back_with
from harness.model.annotation import Act, AnnotationProject, AnnotationRow, Intents, LabelSet, ProposalShown
from harness.model.understanding import Utterance

Keep = Callable[[Sequence[AnnotationRow]], None]
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
        keep: Keep,
        *,
        adjudicating: bool,
        again: Sequence[str],
    ) -> None:
        self._annotator = annotator
        self._adjudicating = adjudicating
        self._project = project
        self._again = Again(again) if again else None
        self._queues = Queues(project, utterances)
        self._keep = keep
        self.ledger = Ledger(label_set, rows)
        self.queue = self._read()

    def write(self, rows: Sequence[AnnotationRow]) -> None:
        """Rows of this sitting; nothing has changed when they cannot be kept."""
        self._keep(rows)
        self.ledger.add_all(rows)
        if self._again is not None:
            self._again.wrote(rows)
        self.queue = self._read()

    def take_in(self, rows: Iterable[AnnotationRow]) -> bool:
        """Rows that were given elsewhere; whether any of them was new."""
        if not self.ledger.add_all(rows):
            return False
        self.queue = self._read()
        return True

    def leave(self, utterance: str) -> None:
        """Done with, in a sitting at given utterances; elsewhere the rows alone say so."""
        if self._again is not None:
            self._again.leave(utterance)
            self.queue = self._read()

    def come_back(self, utterance: str) -> None:
        """To be done once more, in a sitting at given utterances."""
        if self._again is not None:
            self._again.come_back(utterance)
            self.queue = self._read()

    @property
    def last(self) -> Act | None:
        """The annotator's latest act that may be undone here."""
        return latest(self.ledger, self._annotator, self._of_sitting, adjudicating=self._adjudicating)

    def taken_back_with(self, last: Act) -> list[Act]:
        """All that is undone together with it."""
        return taken_back_with(self.ledger, last, self._of_sitting)

    def open_of(self, intents: Intents) -> set[str]:
        """Utterances with that proposal that are still to be reviewed."""
        return {one for group in self.queue.groups if group.intents == intents for one in group.open}

    def next_page(self, later: Sequence[Intents]) -> PageDraft | None:
        """Of the largest group; later: the groups that were left for the end."""
        group = next_group(self.queue.groups, later)
        return None if group is None else PageDraft(group.intents, group.open[: self._project.page_size])

    def hand(self, utterance: str) -> HandDraft:
        """An utterance to label, with what is in sight of it from the beginning."""
        ledger = self.ledger
        seen = (
            self._project.proposal is ProposalShown.BEFORE
            or ledger.has_struck(utterance, self._annotator)
            or ledger.is_taken_back(utterance, self._annotator)
        )
        hand = HandDraft(utterance, seen=seen and not self._adjudicating)
        if self._again is not None:
            wanted = self._queues.shares.wanted(utterance)
            show_what_stands(hand, ledger, self._annotator, wanted, adjudicating=self._adjudicating)
        return hand

    def proposal(self, utterance: str) -> Intents | None:
        """What is proposed for it; None without consensus, too."""
        found = self.ledger.proposal(utterance)
        return None if found is None else found.proposal.intents

    @property
    def _of_sitting(self) -> set[str] | None:
        """What may be undone: ids of rows, None for all of the annotator's."""
        return None if self._again is None else self._again.given

    def _read(self) -> Queue:
        if self._again is not None:
            return self._again.queue()
        read = self._queues.of_disputed if self._adjudicating else self._queues.of
        return read(self._annotator, self.ledger)
