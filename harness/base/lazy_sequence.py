"""A lazy sequence: it makes its items on access, since there may be a million of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence whose items are made on access. make: makes the item at an index, from 0."""

    def __init__(self, length: int, make: Callable[[int], T]) -> None:
        self._indexes, self._make = range(length), make

    def __len__(self) -> int:
        return len(self._indexes)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._make(position) for position in self._indexes[index]]
        return self._make(self._indexes[index])  # a range counts negative indexes from its end, and checks them

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._indexes)
