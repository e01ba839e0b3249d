"""A session's folder: what lies where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import LogError


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """Names of the files in one session's folder; creates nothing."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "log.sqlite"

    @property
    def lock(self) -> Path:
        return self.path / "writer.lock"

    @property
    def clips(self) -> Path:
        return self.path / "clips"

    @property
    def judgments(self) -> Path:
        """What raters said of its responses; not there before one has."""
        return self.path / "judgments.sqlite"

    @property
    def inputs(self) -> Path:
        """Copies of the scenario, the bench and the device profiles, for people."""
        return self.path / "inputs"

    @property
    def resolved(self) -> Path:
        """Scenario and bench as they were read, for the engine."""
        return self.path / "resolved.json"

    @property
    def summary(self) -> Path:
        """Versions, hashes and seeds."""
        return self.path / "session.json"

    @property
    def engine(self) -> Path:
        """Which process runs the session, and its socket; gone when none does."""
        return self.path / "engine.json"

    @property
    def engine_output(self) -> Path:
        return self.path / "engine.log"

    def demand(self) -> SessionFolder:
        """Itself; LogError when there is no session log here."""
        if not self.database.is_file():
            raise LogError(
                f"{self.path} is no session folder: it holds no {self.database.name}",
                remedy="Name the folder that `harness run` printed, e.g. sessions/2026-01-31-kitchen",
            )
        return self
