"""An annotator's desk in the site, and the name of what is in sight at it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from harness.understanding.annotation.desk import AnnotationDesk
from harness.web.seats import Turns


@dataclass(slots=True)
class AnnotationSeat(Turns):
    """An annotator's."""

    desk: AnnotationDesk

    @property
    def sight(self) -> str:
        """Names what the page shows: the utterances of a group's page, or the one to be labelled."""
        view = self.desk.view
        parts = [view.phase.value, *(line.utterance for line in view.page)]
        parts += [view.item.utterance, str(view.item.saved)] if view.item is not None else []
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
