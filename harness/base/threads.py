"""Threads, waits and the monotonic clock, for everything that has a part in a session.

By default they are the standard library's. Within `using` they are those of a simulation, which is deterministic and
sleeps nowhere: see simulated_threads.py.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol


class Threads(Protocol):
    """Where threads and waits come from; each method is as its namesake of the standard library."""

    def thread(self, target: Callable[..., object], args: tuple[Any, ...], name: str) -> threading.Thread:
        """A daemon, not started yet."""

    def lock(self) -> threading.Lock: ...
    def rlock(self) -> threading.RLock: ...
    def condition(self, lock: Any = None) -> threading.Condition: ...
    def event(self) -> threading.Event: ...
    def queue(self) -> queue.SimpleQueue[Any]: ...
    def pool(self, name: str) -> Executor:
        """Runs jobs one after another, in a thread of its own."""

    def sleep(self, duration_s: float) -> None: ...
    def monotonic(self) -> float: ...
    def wall(self) -> float:
        """Unix time, s."""


class HostThreads:
    """Those of this host."""

    def thread(self, target: Callable[..., object], args: tuple[Any, ...], name: str) -> threading.Thread:
        return threading.Thread(target=target, args=args, name=name, daemon=True)

    def lock(self) -> threading.Lock:
        return threading.Lock()

    def rlock(self) -> threading.RLock:
        return threading.RLock()

    def condition(self, lock: Any = None) -> threading.Condition:
        return threading.Condition(lock)

    def event(self) -> threading.Event:
        return threading.Event()

    def queue(self) -> queue.SimpleQueue[Any]:
        return queue.SimpleQueue()

    def pool(self, name: str) -> Executor:
        return ThreadPoolExecutor(1, thread_name_prefix=name)

    def sleep(self, duration_s: float) -> None:
        time.sleep(duration_s)

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


_threads: Threads = HostThreads()


@contextmanager
def using(threads: Threads) -> Iterator[None]:
    """Everything made meanwhile takes its threads and waits from there."""
    global _threads
    before, _threads = _threads, threads
    try:
        yield
    finally:
        _threads = before


def current() -> Threads:
    """Where threads and waits come from at this moment."""
    return _threads


def thread(target: Callable[..., object], *args: Any, name: str = "") -> threading.Thread:
    """A daemon, not started yet."""
    return _threads.thread(target, args, name)


def lock() -> threading.Lock:
    return _threads.lock()


def rlock() -> threading.RLock:
    return _threads.rlock()


def condition(lock: Any = None) -> threading.Condition:
    return _threads.condition(lock)


def event() -> threading.Event:
    return _threads.event()


def simple_queue() -> queue.SimpleQueue[Any]:
    return _threads.queue()


def pool(name: str) -> Executor:
    """Runs jobs one after another, in a thread of its own."""
    return _threads.pool(name)


def sleep(duration_s: float) -> None:
    _threads.sleep(duration_s)


def monotonic() -> float:
    return _threads.monotonic()


def wall() -> float:
    """Unix time, s."""
    return _threads.wall()
