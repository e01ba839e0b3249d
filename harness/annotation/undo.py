"""What an annotator may take back: their latest act, with all that belongs to it."""

from __future__ import annotations

from collections.abc import Collection

from harness.annotation.ledger import Ledger, settles
from harness.model.annotation import Accepted, Act, Labelled, Struck


def latest(ledger: Ledger, annotator: str, among: Collection[str] | None = None, *, adjudicating: bool) -> Act | None:
    """The annotator's latest row in force that belongs to this sort of sitting. among: only rows of these ids."""
    for row in reversed(ledger.acts):
        if row.annotator == annotator and settles(row) is adjudicating and (among is None or row.id in among):
            return row
    return None


def taken_back_with(ledger: Ledger, last: Act, among: Collection[str] | None = None) -> list[Act]:
    """All of its page; all that was chosen for the utterance, before and after the proposal was seen."""
    together = _together(ledger, last)
    return together if among is None else [row for row in together if row.id in among]


def _together(ledger: Ledger, last: Act) -> list[Act]:
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
