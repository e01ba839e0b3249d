"""Values by key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def group_by(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Key → its values; keys and values in the order of the pairs."""
    values_by_key: dict[K, list[V]] = {}
    for key, value in pairs:
        values_by_key.setdefault(key, []).append(value)
    return values_by_key
