"""What a journal is about, and whether two are about the same."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.offline import Counting, EngineFacts, Evaluation, ListKind


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `of` parts of the lists; number counts from 1. cut: the same where the lists were cut in the same way."""

    number: int
    of: int
    cut: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise ValueError(f"there is no part {self.number} of {self.of}")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True, slots=True)
class ListFacts:
    """A list that is played: its name as given, sha256 of its bytes, which kind, how many files it has."""

    name: str
    sha256: str
    kind: ListKind
    files: int


@dataclass(frozen=True, slots=True)
class JournalHeader:
    """What a journal is about; its first line.

    planned: files of this shard, or of all lists. versions: (what, version), ours as `voice-harness`. bases: where
    relative paths were found. started_s: wall clock, seconds of the epoch. more: (name, value) for the log's INFO x-.
    """

    evaluation: Evaluation
    counting: Counting
    facts: EngineFacts
    lists: tuple[ListFacts, ...]
    planned: int
    started_s: float
    command_line: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    shard: Shard | None = None
    bases: tuple[str, ...] = ()
    more: tuple[tuple[str, str], ...] = ()


def differences(then: JournalHeader, now: JournalHeader) -> list[str]:
    """What decides outcomes or counts and is not the same; empty for the same evaluation."""
    found: list[str] = []

    def look(what: str, before: object, after: object) -> None:
        if before != after:
            found.append(f"{what} {_said(before)} then, {_said(after)} now")

    for name in ("task", "resample", "continuous", "vad", "hashes"):
        before, after = getattr(then.evaluation, name), getattr(now.evaluation, name)
        if name == "task":
            look("the task was", before.name, after.name)
            look("its settings were", before.settings, after.settings)
        else:
            look(f"--{name} was", before, after)
    for name in ("count_in_vocabulary", "normalise", "words", "lead_in_ms", "lead_in_ref"):
        look(f"{name.replace('_', ' ')} was", getattr(then.counting, name), getattr(now.counting, name))
    look("the engine's fingerprint was", then.facts.fingerprint[:12], now.facts.fingerprint[:12])
    look("the engine's version was", then.facts.version, now.facts.version)
    if then.facts != now.facts and not found:
        found.append("the engine tells other facts of itself")
    look("the lists had", [one.sha256[:12] for one in then.lists], [one.sha256[:12] for one in now.lists])
    look("the lists had files", [one.files for one in then.lists], [one.files for one in now.lists])
    look("the shard was", str(then.shard or "none"), str(now.shard or "none"))
    if then.shard and now.shard and then.shard.cut != now.shard.cut:
        found.append("files have other sizes than then, so that this part has others")
    look("versions were", then.versions, now.versions)
    return found


def _said(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{name}={one}" for name, one in value) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
