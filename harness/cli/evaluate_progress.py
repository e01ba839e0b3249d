"""One line on a terminal that says how far an evaluation is; nothing in a pipe."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, TextIO

from harness.base.cells import shown
from harness.cli.streams import safe_stream
from harness.wake.reports.wake_log import hours_text

if TYPE_CHECKING:
    from harness.offline.run import Progress

_CLEAR = "\r\x1b[K"


def on_terminal(stream: TextIO | None) -> bool:
    """Can a line be drawn anew on it?"""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class ProgressLine:
    """Draws the line on standard error where that is a terminal; other lines there go through `tell`."""

    def __init__(self, *, quiet: bool) -> None:
        self._stream = safe_stream(sys.stderr) if sys.stderr is not None else None
        self._drawn = on_terminal(self._stream) and not quiet
        self._last = ""

    def __call__(self, progress: Progress) -> None:
        if self._drawn and self._stream is not None:
            width = shutil.get_terminal_size().columns - 1
            self._last = shown(progress_text(progress), max(10, width))
            self._write(_CLEAR + self._last)

    def tell(self, line: str) -> None:
        """A line of its own, above that of the progress."""
        self._write((_CLEAR if self._last else "") + line + "\n" + self._last)

    def clear(self) -> None:
        """The line goes; the screen is as if it had not been."""
        if self._last:
            self._write(_CLEAR)
        self._last = ""

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # Nobody reads there any more (`| head`, a terminal that was closed): no reason to end an evaluation.
            self._stream = None
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the interpreter's last flush)


def progress_text(progress: Progress) -> str:
    """`1,234 of 3,298 files, 61.203 hr, 658.9x RT, 3 rejected, 0:01:12 left`."""
    parts = [f"{progress.done:,} of {progress.files:,} files", f"{progress.audio_s / 3600:.3f} hr"]
    rate = progress.recent_rate or progress.rate
    if rate is not None:
        parts.append(f"{rate:.1f}x RT")
    if progress.rejected:
        parts.append(f"{progress.rejected:,} rejected")
    if progress.errors:
        parts.append(f"{progress.errors:,} with errors")
    if progress.eta_s is not None:
        parts.append(f"{hours_text(round(progress.eta_s)).partition('.')[0]} left")
    return ", ".join(parts)
