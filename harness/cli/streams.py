"""Where lines for people go."""

from __future__ import annotations

import sys
from typing import TextIO


def safe_stream(stream: TextIO) -> TextIO:
    """The stream, set so that a character that it cannot encode is escaped rather than an error."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream


def standard_output() -> TextIO:
    return safe_stream(sys.stdout)
