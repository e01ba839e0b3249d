"""Progress of work that may take seconds: the code that does the work reports it here, and a command draws it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from operator import length_hint
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Drawing: TypeAlias = Callable[[str, int, int], None]
"""Draws progress: called with the task in words, the number of finished items, and that of all (0: not known)."""

_drawing: ContextVar[Drawing | None] = ContextVar("drawing", default=None)


def tracked(items: Iterable[T], task: str, total: Callable[[], int] | None = None) -> Iterable[T]:
    """The items. While progress is drawn, each is reported before it is returned.

    total: returns their number, if `len` cannot; called only while progress is drawn.
    """
    if (drawing := _drawing.get()) is None:
        return items
    return _report(items, task, total() if total else length_hint(items), drawing)


def _report(items: Iterable[T], task: str, total: int, drawing: Drawing) -> Iterator[T]:
    for number, item in enumerate(items):
        drawing(task, number, total)
        yield item


def step(task: str) -> None:
    """Reports the beginning of work without countable items."""
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
