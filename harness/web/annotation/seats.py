"""An annotator's desk in the site, what they look for to label it again, and the name of what is in sight."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from harness.annotation.again import may_label_again
from harness.annotation.annotation_room import AnnotationRoom
from harness.annotation.desk import AnnotationDesk
from harness.annotation.finding import Found, find
from harness.annotation.view import AnnotationPhase
from harness.web.turns import Turns


@dataclass(slots=True)
class Finding:
    """An annotator looks for utterances of theirs. words: "" before they say which.

    opened: the utterance that was opened last. again: the sitting at it, over once its labels are saved or kept.
    """

    words: str = ""
    opened: str = ""
    again: AnnotationDesk | None = None

    @property
    def is_open(self) -> bool:
        """Whether an utterance that was found is in sight, and not the list."""
        return self.again is not None and self.again.view.phase is not AnnotationPhase.FINISHED


@dataclass(slots=True)
class AnnotationSeat(Turns):
    """An annotator's. own: their sitting at what is still to be done; it waits while they look for something."""

    room: AnnotationRoom
    own: AnnotationDesk
    finding: Finding | None = None

    @property
    def desk(self) -> AnnotationDesk:
        """What the keys of the page are for."""
        return self.own if self.finding is None or self.finding.again is None else self.finding.again

    @property
    def is_listing(self) -> bool:
        """Whether what was found is in sight."""
        return self.finding is not None and not self.finding.is_open

    @property
    def sight(self) -> str:
        """Names the utterances of a group's page, the one to be labelled, or what is looked for."""
        view = self.desk.view
        if self.finding is not None and self.is_listing:
            parts = ["found", self.finding.words]
        else:
            parts = [view.phase.value, *(line.utterance for line in view.page)]
            parts += [view.item.utterance, str(view.item.saved)] if view.item is not None else []
            parts += ["again"] if self.finding is not None else []
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def waits(self) -> bool:
        return self.finding is None and self.own.view.phase is AnnotationPhase.FINISHED

    def present(self) -> None:
        self.desk.present()

    def wrote(self, request: str) -> bool:
        return self.own.wrote(request) or self.desk.wrote(request)

    def refresh(self) -> None:
        """Takes in what was given elsewhere."""
        for desk in {id(one): one for one in (self.own, self.desk)}.values():
            desk.refresh(self.room.rows)

    # Labels looked at again

    def found(self) -> tuple[Found, ...]:
        """What has the words that are looked for, of what the annotator may label again."""
        if self.finding is None or not self.finding.words:
            return ()
        room, who = self.room, self.own.annotator
        words, settles = self.finding.words, self.own.adjudicating
        return find(room.utterances, words, room.ledger, room.shares, who, adjudicating=settles)

    def find(self, words: str) -> None:
        """Lists what has the words."""
        self.finding = Finding(words)

    def open(self, utterance: str) -> bool:
        """Brings an utterance in sight with the labels that it has; False when it may not be labelled again."""
        room, who, settles = self.room, self.own.annotator, self.own.adjudicating
        if self.finding is None or all(one.id != utterance for one in room.utterances):
            return False
        if not may_label_again(room.ledger, room.shares, who, utterance, adjudicating=settles):
            return False
        sitting = room.adjudication if settles else room.desk
        self.finding.opened, self.finding.again = utterance, sitting(who, (utterance,))
        return True

    def back(self) -> bool:
        """From an utterance to what was found, from there to what is still to be done; False when that is in sight."""
        if self.finding is None:
            return False
        if self.finding.is_open:
            self.finding.again = None
        else:
            self.finding = None
            self.refresh()
        return True
