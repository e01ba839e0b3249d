"""A lazy sequence: it makes its items on access, since there may be a million of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """at: makes the item at an index."""

    def __init__(self, length: int, at: Callable[[int], T]) -> None:
        self._length, self._at = length, at

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._at(position) for position in range(self._length)[index]]
        return self._at(range(self._length)[index])

    def __iter__(self) -> Iterator[T]:
        return map(self._at, range(self._length))
