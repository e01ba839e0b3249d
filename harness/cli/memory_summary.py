"""How long devices remember, in words and as a small plot of the share that remembers against the wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.base.foreign import plain_text
from harness.session.figures.memory import (
    Forgotten,
    Level,
    MemoryFigures,
    MemoryFinding,
    MemoryLength,
    Teller,
    findings,
    unreached,
)
from harness.session.figures.progress import Progress
from harness.session.log.reader import LogReader

BAR = 30
_TELLERS = {Teller.DEVICE: "the device's own answer", Teller.TRANSCRIPTION: "our transcription of the answer"}


def one_line(progress: Progress, folder: Path | None) -> list[str]:
    """A line for each device that a memory trial asked; none where there was no such trial."""
    if folder is None or not any(one.trial.memory is not None for one in progress.trials):
        return []
    with LogReader(folder) as reader:
        figures = MemoryFigures.of(reader.entries())
    found = findings(figures.points())
    lines = [
        f"memory               {plain_text(one.device, 60)}: {length(one.length)}; {recommendation(one)}"
        for one in found
    ]
    return lines or [f"memory               n/a (none of {figures.planned} pairs has ended)"]


def block(finding: MemoryFinding, axis: str | None = None) -> Iterator[str]:
    """All that is known of one device: a bar for each wait, the length, and what to write into its profile."""
    label = f", {axis} {plain_text(finding.group, 60) or 'as it is'}" if axis else ""
    yield f"device {plain_text(finding.device, 80)}{label}: {finding.counted} of {len(finding.points)} pairs count"
    if finding.levels:
        yield "     wait  share that remembers (bar), and where it may lie (95 % exact, ·)"
        yield from (_bar(level) for level in finding.levels)
    yield f"  memory length      {length(finding.length)}"
    if finding.to_wake is not None:
        yield f"  to its wake event  {length(finding.to_wake)}"
    yield f"  recommended        {recommendation(finding)}"
    if finding.forgotten is not None and finding.forgotten.surer is not None:
        wait_s, at_most = finding.forgotten.surer
        yield f"  surer              {wait_s:g} s: at most {at_most:.0%} show memory there"
    yield from _notes(finding)


def length(found: MemoryLength | None) -> str:
    """`between 6.5 and 8 s (95 % interval 5 to 10 s)`."""
    if found is None:
        return "n/a (of none)"
    low, high = found.bracket
    where = (
        f"over {low:g} s" if high is None else f"under {high:g} s" if low == 0 else f"between {low:g} and {high:g} s"
    )
    first, last = found.interval
    within = f"{first:g} s and up" if last is None else f"{first:g} to {last:g} s"
    return f"{where} (95 % interval {within})"


def recommendation(finding: MemoryFinding) -> str:
    """A line for the device profile, with what it rests on as a comment; n/a and why."""
    found = finding.forgotten
    if found is None:
        return f"n/a ({finding.why})"
    return f"context_wait_s: {found.wait_s:g}  # {_rests_on(found)}"


def _rests_on(found: Forgotten) -> str:
    left = f"{found.left.count} of {found.left.total} pairs from there on did"
    return f"at {found.wait_s:g} s at most {found.at_most:.0%} show memory (95 %); {left}"


def _bar(level: Level) -> str:
    share = level.shown
    low, high = (round(end * BAR) for end in level.interval)
    full = round(BAR * (share.value or 0.0))
    cells = "".join("█" if at < full else "·" if low <= at < high else " " for at in range(BAR))
    first, last = level.interval
    return f"  {level.wait_s:>6.1f} s  {cells}  {share.count} of {share.total} ({first:.0%} to {last:.0%})"


def _notes(finding: MemoryFinding) -> Iterator[str]:
    tellers = {point.teller for point in finding.points if point.shown is not None and point.teller is not None}
    if tellers:
        yield f"  evidence           {' and '.join(_TELLERS[one] for one in Teller if one in tellers)}"
    if finding.levels:
        error_s = max((point.error_s for point in finding.points if point.shown is not None), default=0.0)
        yield f"  waits              told apart to 0.1 s; the end of an answer is known to ± {error_s * 1000:.0f} ms"
    if finding.left_out:
        why = ", ".join(f"{plain_text(code, 40)} {count}" for code, count in finding.left_out)
        yield f"  do not count       {why}"
    for planned_s, mean_s in unreached(finding.points).items():
        yield f"  not reached        {planned_s:g} s was planned, {mean_s:.1f} s was waited"


def blocks(found: Iterable[MemoryFinding], axis: str | None = None) -> list[str]:
    """The blocks of all devices, with empty lines between them."""
    lines: list[str] = []
    for one in found:
        lines += [*([""] if lines else []), *block(one, axis)]
    return lines
