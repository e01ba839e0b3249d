"""Which page is the one in sight: a post of an older one does nothing, and the same post twice is done once."""

from __future__ import annotations

import hashlib
import secrets
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum


class Fate(Enum):
    """DONE: as asked. REPEATED: it was done before, by the same post. STALE: the page was old, and nothing was done.

    UNKNOWN: its page has no such button.
    """

    DONE = "done"
    REPEATED = "repeated"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(slots=True, kw_only=True)
class Turns(ABC):
    """A seat: what is in sight at it, and whether a page still shows that. `lock` is held whenever it is asked or used.

    turn: changes whenever something else comes in sight, so that a page of before is known as old. done: the turn and
    the content of the last post that changed the turn, so that its repetition is known as one. read: the number of the
    reading of what comes from elsewhere that the desk has taken in.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    start: str = field(default_factory=lambda: secrets.token_hex(4))
    number: int = 0
    done: tuple[str, str] | None = None
    read: int = 0

    @property
    @abstractmethod
    def sight(self) -> str:
        """Names what is in sight, the same whenever the site is started; "" when nothing is."""

    @property
    @abstractmethod
    def waits(self) -> bool:
        """Whether all is done that there is to do."""

    @abstractmethod
    def present(self) -> None:
        """Whoever sits here is there: they asked for a page, or pressed a button."""

    @abstractmethod
    def wrote(self, request: str) -> bool:
        """Whether the rows of a request are on the disk, also from before the site was started again."""

    @property
    def turn(self) -> str:
        return f"{self.start}.{self.number}"

    def next_turn(self, done: tuple[str, str] | None = None) -> None:
        self.number += 1
        self.done = done

    def standing(self, turn: str, sight: str, mark: str, *, outlasts: bool) -> Fate:
        """Whether a post may be done: it comes from a page of this turn and sight, and is told from others by its mark.

        outlasts: it means the same on a page of before the site was started again, when the same is in sight.
        """
        if (turn, mark) == self.done or self.wrote(request_name(turn, mark)):
            return Fate.REPEATED
        if (turn, sight) == (self.turn, self.sight):
            return Fate.DONE
        start, _, _ = turn.partition(".")
        return Fate.DONE if outlasts and start != self.start and sight == self.sight else Fate.STALE


def request_name(turn: str, mark: str) -> str:
    """Names a post: the ids of its rows follow from this."""
    return f"{turn}\n{mark}"


def content_mark(fields: dict[str, str]) -> str:
    """Tells one post from another."""
    whole = "\n".join(
        f"{name}={fields[name]}" for name in sorted(fields) if name not in ("plays", "heard_ms", "heard_end", "page")
    )
    return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()
