"""`harness report memory`: how long devices remember, from sessions with memory trials."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.foreign import plain_text
from harness.base.places import demand_distinct
from harness.base.plain_json import picked
from harness.base.text_file import safe_csv
from harness.cli.options import OutputFormat, option, printed_options, sessions_argument, verb
from harness.cli.sessions import session_folder
from harness.cli.streams import drawn_progress
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.scenario import AxisName

if TYPE_CHECKING:
    from harness.session.figures.memory import MemoryFinding, MemoryLength, MemoryPoint

COLUMNS = (
    "session", "trial", "device", "conditions", "planned_s", "waited_s", "error_s", "to_wake_s",
    "shown", "answer", "answer_by", "why",
)  # fmt: skip


@frozen
class _SessionPairs:
    """The pairs of a session.

    - planned: how many its plan has.
    - points: those that have ended.
    """

    folder: Path
    planned: int
    points: tuple[MemoryPoint, ...]


@verb("memory")
def command(
    *,
    sessions: tuple[str, ...] = sessions_argument(),
    printed: OutputFormat = printed_options(
        "Print results and pairs as JSON.", "Print one row per pair, for a spreadsheet."
    ),
    axis: AxisName | None = option("Group by this axis of the matrix.", "--by", metavar="AXIS"),
) -> None:
    """Report how long devices remember, and recommend a `context_wait_s`.

    SESSION: a session with memory trials, as a folder or a name in ./sessions. Pairs of several sessions are pooled.
    Works while a session is running.
    """
    from harness.session.figures.memory import find_memories
    from harness.session.summary import memory_blocks

    folders = [session_folder(session) for session in sessions]
    demand_distinct(folders)
    session_pairs = [_read_pairs(folder) for folder in folders]
    memory_findings = find_memories((point for pairs in session_pairs for point in pairs.points), axis)
    planned = sum(pairs.planned for pairs in session_pairs)
    content = {
        "sessions": [
            {"folder": str(pairs.folder), "planned": pairs.planned, "ended": len(pairs.points)}
            for pairs in session_pairs
        ],
        "by": axis,
        "devices": [_finding_json(finding) for finding in memory_findings],
    }
    printed.print(
        json=lambda: json.dumps(content, indent=2, ensure_ascii=False),
        csv=lambda: _csv(session_pairs),
        lines=lambda: memory_blocks(memory_findings, axis) or [f"0 of {planned} pairs have finished"],
    )


def _read_pairs(folder: Path) -> _SessionPairs:
    """The pairs of a session. Raises InputError if its plan has none."""
    from harness.session.figures.memory import MemoryFigures
    from harness.session.log.reader import LogReader

    with LogReader(folder) as reader, drawn_progress():
        figures = MemoryFigures.of(reader.entries())
    if not figures.planned:
        raise InputError(
            "the session has no memory trial",
            place=Place(str(folder)),
            remedy="Run a scenario with a trial of kind memory, such as scenarios/memory.yaml",
        )
    return _SessionPairs(folder, figures.planned, figures.points())


def _csv(session_pairs: Iterable[_SessionPairs]) -> str:
    rows: list[Sequence[str]] = [COLUMNS]
    for pairs in session_pairs:
        session_name = plain_text(pairs.folder.resolve().name, 120)
        for point in pairs.points:
            rows.append([session_name, *("" if cell is None else str(cell) for cell in _cells(point))])
    return safe_csv(rows)


def _cells(point: MemoryPoint) -> tuple[object, ...]:
    """The values of COLUMNS after the session. None if a value is not known."""
    return (
        point.trial.id,
        plain_text(point.trial.device, 80),
        " ".join(f"{axis}={plain_text(label, 80)}" for axis, label in point.trial.conditions),
        point.planned_s,
        None if point.waited_s is None else round(point.waited_s, 3),
        round(point.error_s, 3),
        None if point.woke_s is None else round(point.woke_s, 3),
        None if point.shown is None else int(point.shown),
        plain_text(point.answer),
        point.source.value if point.source else None,
        plain_text(point.why),
    )


def _finding_json(finding: MemoryFinding) -> dict[str, object]:
    """The results of a device or group. Values are null if the pairs do not allow a statement."""
    forgotten = finding.forgotten
    return {
        **picked(finding, "device", "group"),
        "pairs": len(finding.points),
        "counted": finding.counted,
        "left_out": dict(finding.left_out),
        "waits": [
            {
                "wait_s": level.wait_s,
                "shown": level.shown.count,
                "pairs": level.shown.total,
                **picked(level, "interval", "fitted"),
            }
            for level in finding.levels
        ],
        "length": _length_json(finding.length),
        "length_to_wake": _length_json(finding.to_wake),
        "context_wait_s": None if forgotten is None else forgotten.wait_s,
        "left": None if forgotten is None else [forgotten.left.count, forgotten.left.total],
        "left_at_most": None if forgotten is None else forgotten.at_most,
        "surer": None if forgotten is None or forgotten.surer is None else list(forgotten.surer),
        "why": finding.why,
        "points": [dict(zip(COLUMNS[1:], _cells(point), strict=True)) for point in finding.points],
    }


def _length_json(length: MemoryLength | None) -> dict[str, object] | None:
    """The length as JSON; None without one. An upper end of null means: longer than the longest wait."""
    return None if length is None else picked(length, "value_s", "bracket", "interval")
