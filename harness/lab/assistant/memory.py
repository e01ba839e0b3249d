"""What the assistant keeps in mind between two queries: the subject of the last answer, for a while."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from harness.lab.assistant.frame import ToldFrame

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Moment:
    """Now: monotonic seconds, and the local wall clock beside it.

    called_s: when the one who speaks began (the wake phrase, or the question back that is answered); None: now.
    """

    now_s: float
    wall: datetime
    called_s: float | None = None

    @property
    def began_s(self) -> float:
        return self.now_s if self.called_s is None else self.called_s


@dataclass(frozen=True, slots=True)
class SkillAnswer:
    """What a skill says, and what it understood before (`frame`).

    subject: what a follow-up may refer to. asks: a question back; the dialogue stays open.
    """

    text: str
    frame: ToldFrame
    subject: object = None
    asks: bool = False


class Memory:
    """The last subject, forgotten a while after the answer about it was given (or at once by `forget`)."""

    def __init__(self, memory_s: float) -> None:
        self._memory_s = memory_s
        self._wait_s = memory_s
        self._subject: object = None
        self._until_s = float("-inf")

    def keep(self, subject: object, now_s: float, wait_s: float | None = None) -> None:
        """Keeps it in mind for wait_s, else for as long as the memory reaches."""
        self._subject = subject
        self._wait_s = self._memory_s if wait_s is None else wait_s
        self._until_s = now_s + self._wait_s

    def attend(self, moment: Moment) -> None:
        """Somebody speaks: what was forgotten when they began is gone for good, the rest stays meanwhile."""
        if moment.began_s > self._until_s:
            self.forget()
        else:
            self._until_s = moment.now_s + self._wait_s

    def renew(self, now_s: float) -> None:
        """Counts from now what has not been forgotten before."""
        self._until_s = now_s + self._wait_s

    def forget(self) -> None:
        self._subject = None

    def recall(self, kind: type[T], now_s: float) -> T | None:
        """The subject when it is of that kind and not forgotten yet."""
        if now_s <= self._until_s and isinstance(self._subject, kind):
            return self._subject
        return None
