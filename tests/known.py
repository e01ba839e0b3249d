"""Values that a test knows not to be None."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """Returns the value; the test fails if it is None."""
    assert value is not None
    return value
