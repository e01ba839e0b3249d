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


def differences(
    one: JournalHeader, other: JournalHeader, called: tuple[str, str] = ("then", "now"), *, parts: bool = False
) -> list[str]:
    """What decides outcomes or counts and is not the same; empty for the same evaluation.

    called: what to call the two. parts: they are to be different parts of the same cut.
    """
    found: list[str] = []

    def look(what: str, before: object, after: object) -> None:
        if before != after:
            found.append(f"{what} {_said(before)} {called[0]}, {_said(after)} {called[1]}")

    for name in ("resample", "continuous", "vad", "hashes"):
        look(f"{name} is", getattr(one.evaluation, name), getattr(other.evaluation, name))
    look("the task is", one.evaluation.task.name, other.evaluation.task.name)
    look("settings are", one.evaluation.task.settings, other.evaluation.task.settings)
    for name in ("count_in_vocabulary", "normalise", "words", "lead_in_ms", "lead_in_ref"):
        look(f"{name.replace('_', ' ')} is", getattr(one.counting, name), getattr(other.counting, name))
    look("the engine's fingerprint is", one.facts.fingerprint[:12], other.facts.fingerprint[:12])
    look("the engine's version is", one.facts.version, other.facts.version)
    if one.facts != other.facts and not found:
        found.append("the engine tells other facts of itself")
    look("lists have sha256", [each.sha256[:12] for each in one.lists], [each.sha256[:12] for each in other.lists])
    look("lists have files", [each.files for each in one.lists], [each.files for each in other.lists])
    look("versions are", one.versions, other.versions)
    if parts:
        look("parts are", one.shard.of if one.shard else 1, other.shard.of if other.shard else 1)
    else:
        look("the shard is", str(one.shard or "none"), str(other.shard or "none"))
    if one.shard and other.shard and one.shard.cut != other.shard.cut:
        found.append("files had other sizes, so that the lists were cut in another way")
    return found


def _said(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{name}={one}" for name, one in value) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
