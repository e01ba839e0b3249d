"""`harness report memory`: how long devices remember, from sessions with memory trials."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from harness.base.foreign import plain_text
from harness.base.plain_json import picked
from harness.base.text_file import safe_csv
from harness.cli.options import OutputFormat, option, printed_options, sessions_argument, verb
from harness.cli.sessions import session_folder
from harness.cli.streams import drawn_progress, standard_output
from harness.model.errors import InputError, Place

if TYPE_CHECKING:
    from harness.session.figures.memory import MemoryFinding, MemoryLength, MemoryPoint

AXES = ("voice", "level_dbfs", "gap_ms", "position", "noise")
COLUMNS = (
    "session", "trial", "device", "conditions", "planned_s", "waited_s", "error_s", "to_wake_s",
    "shown", "answer", "answer_by", "why",
)  # fmt: skip


PairsOfSession = tuple[Path, int, "tuple[MemoryPoint, ...]"]
"""A session's folder, how many pairs its plan has, and those that have ended."""


@verb("memory")
def command(
    *,
    sessions: tuple[str, ...] = sessions_argument(),
    printed: OutputFormat = printed_options(
        "Print results and pairs as JSON.", "Print one row per pair, for a spreadsheet."
    ),
    axis: str | None = option("Group by this axis of the matrix.", "--by", type=click.Choice(AXES)),
) -> None:
    """Report how long devices remember, and recommend a `context_wait_s`.

    SESSION: a session with memory trials, as a folder or a name below ./sessions. Pairs of several are pooled.
    Works while a session is running.
    """
    from harness.session.figures.memory import blocks, find_memories

    folders = [session_folder(session) for session in sessions]
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError("a session is named twice, and its pairs would count twice", remedy="Name each only once")
    read = [_read(folder) for folder in folders]
    memory_findings = find_memories((point for _, _, points in read for point in points), axis)
    stream = standard_output()
    if printed.as_csv:
        _write_csv(read, stream)
    elif printed.as_json:
        content = {
            "sessions": [
                {"folder": str(folder), "planned": planned, "ended": len(points)} for folder, planned, points in read
            ],
            "by": axis,
            "devices": [_device(finding) for finding in memory_findings],
        }
        stream.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    else:
        lines = blocks(memory_findings, axis) or [f"0 of {sum(total for _, total, _ in read)} pairs have finished"]
        stream.write("\n".join(lines) + "\n")
    stream.flush()


def _read(folder: Path) -> PairsOfSession:
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
    return folder, figures.planned, figures.points()


def _write_csv(read: Iterable[PairsOfSession], stream: TextIO) -> None:
    rows = (
        [plain_text(folder.resolve().name, 120), *("" if cell is None else str(cell) for cell in _row(point))]
        for folder, _, points in read
        for point in points
    )
    stream.write(safe_csv([COLUMNS, *rows]))


def _row(point: MemoryPoint) -> tuple[object, ...]:
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


def _device(finding: MemoryFinding) -> dict[str, object]:
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
        "length": _length(finding.length),
        "length_to_wake": _length(finding.to_wake),
        "context_wait_s": None if forgotten is None else forgotten.wait_s,
        "left": None if forgotten is None else [forgotten.left.count, forgotten.left.total],
        "left_at_most": None if forgotten is None else forgotten.at_most,
        "surer": None if forgotten is None or forgotten.surer is None else list(forgotten.surer),
        "why": finding.why,
        "points": [dict(zip(COLUMNS[1:], _row(point), strict=True)) for point in finding.points],
    }


def _length(length: MemoryLength | None) -> dict[str, object] | None:
    """The length as JSON; None without one. An upper end of null means: longer than the longest wait."""
    return None if length is None else picked(length, "value_s", "bracket", "interval")
