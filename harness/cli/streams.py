"""Where lines for people go."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import Any, TextIO

from harness.model.errors import HarnessError

_DRAWN = {"─": "-", "│": "|", "┼": "+", "→": ">", "·": "-", "–": "-", "…": "~", "█": "#", "▏": "|"}
"""What we draw and write ourselves, one sign for one, for terminals that know ASCII alone."""
_LEGIBLE = "harness.legible"


def safe_stream(stream: TextIO) -> TextIO:
    """The stream, set so that a character that it cannot encode is drawn with others or escaped, not an error."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=_LEGIBLE)
    return stream


def standard_output() -> TextIO:
    """Made safe; HarnessError where it is closed."""
    if sys.stdout is None:
        raise HarnessError("standard output is closed", remedy="Leave it open, or send it to /dev/null")
    return safe_stream(sys.stdout)


class _Reader(io.RawIOBase):
    """Takes what is written to a file descriptor. Once its reader has gone, as `head` does, nothing is written.

    That is no error: the command ends as it would have, with the exit status of what it found.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._gone = False
        self.needed = False
        """Whether to raise BrokenPipeError: of a command that would go on for ever."""

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, content: Any) -> int:
        if not self._gone:
            try:
                return os.write(self._descriptor, content)
            except BrokenPipeError:
                self._gone = True
                if self.needed:
                    raise
        return len(content)


_reader: _Reader | None = None


def write_all() -> None:
    """Lets standard output take all that is written to it, or fail; a reader that has gone is no failure.

    Without a buffer, as PYTHONUNBUFFERED has it, a disk that fills up takes a part and nobody hears of the rest.
    """
    global _reader
    if sys.stdout is None or (os.isatty(sys.stdout.fileno()) and not isinstance(sys.stdout.buffer, io.RawIOBase)):
        return
    _reader = _Reader(sys.stdout.fileno())
    buffered = isinstance(sys.stdout.buffer, io.BufferedIOBase)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_reader), sys.stdout.encoding, sys.stdout.errors, line_buffering=not buffered
    )


def demand_reader() -> None:
    """From now on a reader that has gone is a BrokenPipeError: for a command that would go on for ever."""
    if _reader is not None:
        _reader.needed = True


def _legible(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_DRAWN.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in signs), error.end


codecs.register_error(_LEGIBLE, _legible)
