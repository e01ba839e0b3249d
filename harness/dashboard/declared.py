"""What the scenario of a session wants to be true, read from the session's folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from harness.base.folder import SessionFolder
from harness.model.scenario import Limits, Scenario, Stopping

_SCENARIO: TypeAdapter[Scenario] = TypeAdapter(Scenario)


@dataclass(frozen=True, slots=True)
class Declared:
    """Limits and sequential tests; none of them where the folder cannot be read from here."""

    limits: Limits = field(default_factory=Limits)
    stopping: Stopping = field(default_factory=Stopping)


def read_declared(folder: Path) -> Declared:
    """Of the session in `folder`. The bench beside the scenario is left alone: its drivers are slow to import."""
    try:
        stored = json.loads(SessionFolder(folder).resolved.read_bytes())
        scenario = _SCENARIO.validate_python(stored["scenario"])
    except (OSError, ValueError, KeyError, TypeError):
        return Declared()
    return Declared(scenario.limits, scenario.stopping)
