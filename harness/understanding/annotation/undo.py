"""What an annotator may take back: their latest act, with all that belongs to it."""

from __future__ import annotations

from harness.model.annotation import Accepted, Act, Labelled, Struck
from harness.understanding.annotation.ledger import Ledger, settles


def latest(ledger: Ledger, annotator: str, *, adjudicating: bool) -> Act | None:
    """The annotator's latest row in force that belongs to this sort of sitting."""
    for row in reversed(ledger.acts):
        if row.annotator == annotator and settles(row) is adjudicating:
            return row
    return None


def taken_back_with(ledger: Ledger, last: Act) -> list[Act]:
    """All of its page; all that was chosen for the utterance, before and after the proposal was seen."""
    match last:
        case Accepted() | Struck():
            return [
                row
                for row in ledger.acts
                if isinstance(row, Accepted | Struck) and row.annotator == last.annotator and row.page == last.page
            ]
        case Labelled():
            return [
                row
                for row in ledger.acts_on(last.utterance)
                if isinstance(row, Labelled) and row.annotator == last.annotator
            ]
    return [last]
