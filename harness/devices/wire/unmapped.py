"""Why a message or a line could not be mapped."""

from __future__ import annotations


class Unmapped(Exception):
    """A message does not hold what a mapping looks for in it; the text says what."""
