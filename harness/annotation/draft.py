"""What an annotator has done to what is in sight, and not saved yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from harness.model.annotation import Intents


class PageDraft:
    """A page of a group, with what is struck on it so far. cursor: an index into the utterances."""

    def __init__(self, intents: Intents, utterances: tuple[str, ...], struck: Iterable[str] = ()) -> None:
        self.intents = intents
        self.utterances = utterances
        self.struck = set(struck)
        self.cursor = 0

    def move(self, step: int) -> bool:
        """Whether the cursor went anywhere."""
        before = self.cursor
        self.cursor = min(max(0, before + step), len(self.utterances) - 1)
        return self.cursor != before

    def strike(self, at: int) -> bool:
        """Strikes one, or takes that back; whether it is struck now."""
        self.cursor = at
        self.struck ^= {self.utterances[at]}
        return self.utterances[at] in self.struck

    def only(self, still: Collection[str]) -> PageDraft | None:
        """The same page with what is still to be done; None when nothing is."""
        if all(one in still for one in self.utterances):
            return self
        left = tuple(one for one in self.utterances if one in still)
        if not left:
            return None
        page = PageDraft(self.intents, left, self.struck & set(left))
        page.cursor = min(self.cursor, len(left) - 1)
        return page


class HandDraft:
    """An utterance to label. seen: its proposal is in sight. saved: labels and comment as they are on the disk."""

    def __init__(self, utterance: str, *, seen: bool) -> None:
        self.utterance = utterance
        self.seen = seen
        self.chosen: set[str] = set()
        self.comment = ""
        self.saved: tuple[Intents, str] | None = None

    def toggle(self, label: str) -> None:
        self.chosen ^= {label}
