"""Progress of work that may take seconds: where it is done, it is marked here; a command draws it for a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from operator import length_hint
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Drawing: TypeAlias = Callable[[str, int, int], None]
"""Takes what is done, how many items are finished, and of how many (0: not known)."""

_drawing: ContextVar[Drawing | None] = ContextVar("drawing", default=None)


def tracked(items: Iterable[T], task: str, total: Callable[[], int] | None = None) -> Iterable[T]:
    """The items; while somebody draws, each is reported before it is worked on.

    total: their number, where they do not know it themselves; called only while somebody draws.
    """
    if (drawing := _drawing.get()) is None:
        return items
    return _report(items, task, total() if total else length_hint(items), drawing)


def _report(items: Iterable[T], task: str, total: int, drawing: Drawing) -> Iterator[T]:
    for number, item in enumerate(items):
        drawing(task, number, total)
        yield item


def step(task: str) -> None:
    """Reports the beginning of work that cannot be counted."""
    if (drawing := _drawing.get()) is not None:
        drawing(task, 0, 0)


@contextmanager
def report_progress_to(drawing: Drawing) -> Iterator[None]:
    """Everything in the block, in this thread, is reported to `drawing`."""
    token = _drawing.set(drawing)
    try:
        yield
    finally:
        _drawing.reset(token)
