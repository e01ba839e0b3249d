"""What `harness evaluate` and `harness report` print, in the manual's forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.foreign import plain_text
from harness.offline.figures.figures import Figures
from harness.offline.reports.log import Run, factor, sound_info
from harness.wake.reports.wake_log import WakeLog, hours_text, summary

_LONGEST_PATH = 4096


def writing_line(log: str) -> str:
    return f'Writing log to "{plain_text(log, _LONGEST_PATH)}"'


def sound_lines(log: WakeLog, *, inv: bool = True, oov: bool = True) -> Iterator[str]:
    """INV:, OOV: and Total: with files and hours; inv, oov: whether there was such a list."""
    total_files, total_s = 0, 0.0
    for name, part, asked in (("INV", "inv", inv), ("OOV", "oov", oov)):
        files, seconds = int(log.about(f"{part}-files") or 0), log.seconds(part)
        total_files, total_s = total_files + files, total_s + seconds
        if asked:
            yield _sound_line(name, files, seconds)
    yield _sound_line("Total", total_files, total_s)


def _sound_line(name: str, files: int, seconds: float) -> str:
    return f"{name}: {files} files, {seconds / 3600:.3f} hr, {hours_text(seconds)}"


def point_lines(point: int | None, points: Sequence[int]) -> Iterator[str]:
    """The operating point and those that there are; nothing of an engine without."""
    if point is not None:
        yield f"Using operating point {point}."
    if points:
        yield f"Available operating points: {', '.join(map(str, points))}."


def head_of(run: Run, found: Figures) -> WakeLog:
    """The log without what happened: enough for the console's lines."""
    info = list(sound_info(found.counts))
    fast = factor(run, found.counts)
    if fast is not None:
        info.append(("real-time-factor", f"{fast:.1f}"))
    return WakeLog(tuple(info), totals=tuple(found.totals.items()))


def summary_line(run: Run, found: Figures) -> str:
    """The last line."""
    return summary(head_of(run, found))
