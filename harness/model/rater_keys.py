"""Which key does what for a rater; the same keys in the terminal, in plain output and in the browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from harness.model.judgment import Category


class RaterAction(StrEnum):
    """What a rater can do besides labelling. PLAY again stops and starts from the beginning.

    EARLIER, LATER: to what was judged before and after it, to look at it and change it. FIND: any of them, from a list.
    """

    PLAY = "play"
    PLAY_QUERY = "play_query"
    PLAY_SLOWER = "play_slower"
    STOP = "stop"
    TRANSCRIPT = "transcript"
    UNDO = "undo"
    EARLIER = "earlier"
    LATER = "later"
    FIND = "find"
    SKIP = "skip"
    HOLD = "hold"
    FLAG = "flag"
    COMMENT = "comment"
    CONFIDENCE = "confidence"
    SUB_FLAG = "sub_flag"
    AID = "aid"
    GUIDE = "guide"
    RELEASE_HELD = "release_held"
    QUIT = "quit"


_CATEGORY_KEYS = dict(zip(Category, "1234567890-", strict=True))
_ACTION_KEYS = {
    RaterAction.PLAY: "space",
    RaterAction.PLAY_QUERY: "a",
    RaterAction.PLAY_SLOWER: "s",
    RaterAction.STOP: ".",
    RaterAction.TRANSCRIPT: "t",
    RaterAction.UNDO: "u",
    RaterAction.EARLIER: "left",
    RaterAction.LATER: "right",
    RaterAction.FIND: "e",
    RaterAction.SKIP: "x",
    RaterAction.HOLD: "h",
    RaterAction.FLAG: "f",
    RaterAction.COMMENT: "c",
    RaterAction.CONFIDENCE: "k",
    RaterAction.SUB_FLAG: "b",
    RaterAction.AID: "?",
    RaterAction.GUIDE: "g",
    RaterAction.RELEASE_HELD: "w",
    RaterAction.QUIT: "q",
}


NEWER = (RaterAction.EARLIER, RaterAction.LATER, RaterAction.FIND)
"""Files of keys that were written before these actions were there may give their keys to other things."""


@dataclass(frozen=True, slots=True)
class RaterKeys:
    """A key is one printable character, or one of space, enter, tab, backspace, left, right, up, down, f1 … f12.

    ValueError when a key stands for two things.
    """

    categories: MappingProxyType[Category, str] = field(default_factory=lambda: MappingProxyType(dict(_CATEGORY_KEYS)))
    actions: MappingProxyType[RaterAction, str] = field(default_factory=lambda: MappingProxyType(dict(_ACTION_KEYS)))

    def __post_init__(self) -> None:
        keys = [*self.categories.values(), *self.actions.values()]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ValueError(f"the key {twice[0]!r} stands for two things")

    def category(self, key: str) -> Category | None:
        """The category that a key labels with."""
        return next((one for one, its in self.categories.items() if its == key), None)

    def action(self, key: str) -> RaterAction | None:
        """What else a key does."""
        return next((one for one, its in self.actions.items() if its == key), None)
