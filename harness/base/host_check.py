"""Results of checks."""

from __future__ import annotations

from enum import StrEnum

from harness.model.frozen import frozen


class Level(StrEnum):
    """OK. WARN: may disturb a measurement, or is needed only sometimes. FAIL: does not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@frozen
class Check:
    """One result. remedy: what to do if it is not OK."""

    name: str
    level: Level
    says: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        return {"name": self.name, "level": self.level.value, "says": self.says, "remedy": self.remedy}
