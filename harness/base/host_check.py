"""The results of checks of a host or a bench."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TypeVar

from harness.model.errors import HarnessError
from harness.model.frozen import frozen

T = TypeVar("T")


class Level(StrEnum):
    """The level of a result. WARN: it may disturb a measurement, or matters only sometimes. FAIL: it does not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@frozen
class Check:
    """The result of one check.

    - says: the result in words.
    - remedy: what to do if it is not OK; "" otherwise.
    """

    name: str
    level: Level
    says: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        """The result as an object of JSON."""
        return {"name": self.name, "level": self.level.value, "says": self.says, "remedy": self.remedy}


def check_each(name: str, connections: Iterable[tuple[str, T]], attempt: Callable[[T], str]) -> Iterator[Check]:
    """Checks connections, each an id with its options. A check is OK, with the text that `attempt` returns, or FAIL if
    that raises."""
    for id, options in connections:
        try:
            answer = attempt(options)
        except HarnessError as error:
            yield Check(name, Level.FAIL, f"{id}: {error.what}", error.remedy)
        else:
            yield Check(name, Level.OK, f"{id}: {answer}")
