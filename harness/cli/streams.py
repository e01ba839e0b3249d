"""Where lines for people go."""

from __future__ import annotations

import codecs
import io
import sys
from typing import TextIO

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


def write_all() -> None:
    """Lets standard output take all that is written to it, or fail.

    Without a buffer, as PYTHONUNBUFFERED has it, a disk that fills up takes a part and nobody hears of the rest.
    """
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), sys.stdout.encoding, line_buffering=True)


def _legible(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_DRAWN.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in signs), error.end


codecs.register_error(_LEGIBLE, _legible)
