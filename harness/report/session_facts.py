"""What differs between sessions beside their results: builds, settings, scenario and bench."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic_core import from_json

from harness.base.places import SessionFolder
from harness.model.errors import LogError
from harness.model.frozen import frozen
from harness.model.record import EndReason
from harness.report.session import WholeSession
from harness.session.figures.progress import normalisation_of
from harness.session.log.reader import stored_bytes


def letter(index: int) -> str:
    """The name of a session in tables: A for the baseline, then B, C and so on."""
    return chr(ord("A") + index)


def labels_of(session: WholeSession) -> dict[str, set[str]]:
    """The labels that occur on each axis."""
    labels_by_axis: dict[str, set[str]] = defaultdict(set)
    for trial in session.progress.trials:
        for axis, label in trial.trial.conditions:
            labels_by_axis[axis].add(label)
    return labels_by_axis


@frozen
class DifferingFact:
    """A fact that differs between sessions.

    - what: its name.
    - values: its value in each session; "" if there is none.
    """

    what: str
    values: tuple[str, ...]


def facts_of(session: WholeSession, folder: Path) -> dict[str, str]:
    """The facts of a session by name: builds, boards, settings, versions, processor, scenario, bench.

    Raises LogError for a bench that cannot be read.
    """
    started = session.started
    facts = {
        "scenario": started.scenario_id,
        "scenario file": started.scenario_sha256[:12],
        "bench": started.bench_id,
        "bench file": started.bench_sha256[:12],
        "seed": str(started.seed),
        "sound path": started.sound_path,
    }
    for board in session.progress.boards:
        for name, value in (("firmware", board.firmware), ("serial number", board.serial)):
            key = f"{name} of {board.source}"
            facts[key] = ", ".join(filter(None, (facts.get(key), value)))
    facts |= {f"setting {name} of {source}": value for source, name, value in session.settings}
    facts |= {axis: next(iter(labels)) for axis, labels in labels_of(session).items() if len(labels) == 1}
    facts |= dict(_bench_facts("bench", _read_bench(folder)))
    return facts | {f"version of {package}": version for package, version in started.versions} | dict(started.host)


def facts_that_differ(session_facts: Sequence[Mapping[str, str]]) -> tuple[DifferingFact, ...]:
    """The facts that are not the same in all sessions."""
    names = dict.fromkeys(name for facts in session_facts for name in facts)
    rows = (DifferingFact(name, tuple(facts.get(name, "") for facts in session_facts)) for name in names)
    return tuple(row for row in rows if len(set(row.values)) > 1)


def _read_bench(folder: Path) -> object:
    try:
        return from_json(stored_bytes(folder))["bench"]
    except (ValueError, KeyError, TypeError) as error:
        path = SessionFolder(folder).resolved
        raise LogError(
            f"{path} cannot be read: {error}", remedy="Check the session: harness report show SESSION --check"
        ) from error


_SKIPPED_FIELDS = ("sha256", "path", "id", "place")
"""Fields of a bench that other facts already contain, or that only give the place of its files."""
_UNORDERED_FIELDS = (".reports", ".listening_states")
"""Fields whose values have no fixed order."""


def _bench_facts(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Name and text of each value in a part of a bench. name: of that part."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _SKIPPED_FIELDS:
                yield from _bench_facts(f"{name}.{key}", inner)
    elif isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value):
        for index, inner in enumerate(value):
            key = inner.get("id", index) if isinstance(inner, dict) else index
            yield from _bench_facts(f"{name}.{key}", inner)
    elif isinstance(value, list) and value:
        yield name, ", ".join(map(str, sorted(value) if name.endswith(_UNORDERED_FIELDS) else value))
    elif value not in (None, "", [], {}):
        yield name, str(value)


def difference_notes(sessions: Sequence[WholeSession]) -> Iterator[str]:
    """Notes on whatever makes the results of sessions hard to compare with those of the first."""
    first = sessions[0]
    for number, session in enumerate(sessions):
        name, progress = letter(number), session.progress
        if progress.finished is not EndReason.COMPLETED:
            yield f"{name} is not complete: {progress.totals.finished_in_words} are finished"
        if session.started.scenario_sha256 != first.started.scenario_sha256:
            yield f"the scenario of {name} differs from that of A: differences may come from its trials"
        if session.wake.settings != first.wake.settings:
            yield f"{name} counts wake events with different settings from A"
        if normalisation_of(progress) != normalisation_of(first.progress):
            yield f"{name} compares words with a different normalisation from A"
        if _is_reviewed(session) != _is_reviewed(first):
            yield f"wake events are reviewed in only one of A and {name}, which changes false accepts"
    if not any(board.firmware for session in sessions for board in session.progress.boards):
        yield "no device reported its firmware, so the builds cannot be identified"


def _is_reviewed(session: WholeSession) -> bool:
    return any(event.reviewed_by for device in session.devices for event in session.wake.unmatched(device))
