"""Threads, waits and the monotonic clock, for all code that runs in a session.

By default they are the standard library's. Within `using` they are those of a simulation, which is deterministic and
never sleeps: see simulated_threads.py.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol


class Stream(Protocol):
    """Bytes from and to a far end. In a simulation it also has `has_bytes` and `has_room`."""

    def fileno(self) -> int: ...


class Bell(Protocol):
    """Waits for a stream; ringing it ends the wait."""

    def ring(self) -> None:
        """Ends the current wait, or the next one. Does nothing after `close`."""

    def wait(self, stream: Stream | None, limit_s: float, *, writes: bool = False) -> tuple[bool, bool]:
        """Whether the stream can be read, which includes its end, and with `writes` whether it can be written."""

    def close(self) -> None:
        """Closes the bell; call it when nothing waits for it."""


class Threads(Protocol):
    """A source of threads and waits. Each method works as the one of that name in the standard library."""

    def thread(self, target: Callable[..., object], args: tuple[Any, ...], name: str) -> threading.Thread:
        """A daemon, not started yet."""

    def current_thread(self) -> threading.Thread: ...
    def lock(self) -> threading.Lock: ...
    def rlock(self) -> threading.RLock: ...
    def condition(self, lock: Any = None) -> threading.Condition: ...
    def event(self) -> threading.Event: ...
    def simple_queue(self) -> queue.SimpleQueue[Any]: ...
    def bounded_queue(self, size: int) -> queue.Queue[Any]: ...
    def future(self) -> Future[Any]: ...
    def bell(self) -> Bell: ...
    def pool(self, name: str) -> Executor:
        """Runs jobs one after another, in a thread of its own."""

    def sleep(self, duration_s: float) -> None: ...
    def monotonic(self) -> float: ...
    def wall(self) -> float:
        """Unix time, s."""


class _HostBell:
    """A bell that waits for the stream and for a pipe, into which `ring` writes."""

    def __init__(self) -> None:
        self._pipe_ends: tuple[int, ...] = os.pipe()
        self._closing = threading.Lock()
        for end in self._pipe_ends:
            os.set_blocking(end, False)

    def ring(self) -> None:
        with self._closing, contextlib.suppress(BlockingIOError):  # it has been rung often, and nobody waits
            if self._pipe_ends:
                os.write(self._pipe_ends[1], b"\0")

    def wait(self, stream: Stream | None, limit_s: float, *, writes: bool = False) -> tuple[bool, bool]:
        poll = select.poll()
        poll.register(self._pipe_ends[0], select.POLLIN)
        file = -1 if stream is None else stream.fileno()
        if file >= 0:
            poll.register(file, select.POLLIN | (select.POLLOUT if writes else 0))
        events = dict(poll.poll(limit_s * 1000))
        if self._pipe_ends[0] in events:
            os.read(self._pipe_ends[0], 4096)
        flags = events.get(file, 0)
        return flags & ~select.POLLOUT != 0, flags & select.POLLOUT != 0

    def close(self) -> None:
        with self._closing:
            pipe_ends, self._pipe_ends = self._pipe_ends, ()
        for end in pipe_ends:
            os.close(end)


class HostThreads:
    """The threads, waits and clocks of this host."""

    def thread(self, target: Callable[..., object], args: tuple[Any, ...], name: str) -> threading.Thread:
        return threading.Thread(target=target, args=args, name=name or None, daemon=True)

    def current_thread(self) -> threading.Thread:
        return threading.current_thread()

    def lock(self) -> threading.Lock:
        return threading.Lock()

    def rlock(self) -> threading.RLock:
        return threading.RLock()

    def condition(self, lock: Any = None) -> threading.Condition:
        return threading.Condition(lock)

    def event(self) -> threading.Event:
        return threading.Event()

    def simple_queue(self) -> queue.SimpleQueue[Any]:
        return queue.SimpleQueue()

    def bounded_queue(self, size: int) -> queue.Queue[Any]:
        return queue.Queue(size)

    def future(self) -> Future[Any]:
        return Future()

    def bell(self) -> Bell:
        return _HostBell()

    def pool(self, name: str) -> Executor:
        return ThreadPoolExecutor(1, thread_name_prefix=name)

    def sleep(self, duration_s: float) -> None:
        time.sleep(duration_s)

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


class _ThreadLocal(threading.local):
    """The source of each thread. A thread outside of a simulation keeps that of the host."""

    threads: Threads = HostThreads()


_thread_local = _ThreadLocal()


@contextmanager
def using(threads: Threads) -> Iterator[None]:
    """Within the block, everything that this thread creates takes its threads and waits from that source."""
    previous, _thread_local.threads = _thread_local.threads, threads
    try:
        yield
    finally:
        _thread_local.threads = previous


def current() -> Threads:
    """The source of threads and waits at this moment."""
    return _thread_local.threads


def thread(target: Callable[..., object], *args: Any, name: str = "") -> threading.Thread:
    """A daemon, not started yet."""
    return _thread_local.threads.thread(target, args, name)


def current_thread() -> threading.Thread:
    return _thread_local.threads.current_thread()


def lock() -> threading.Lock:
    return _thread_local.threads.lock()


def rlock() -> threading.RLock:
    return _thread_local.threads.rlock()


def condition(lock: Any = None) -> threading.Condition:
    return _thread_local.threads.condition(lock)


def event() -> threading.Event:
    return _thread_local.threads.event()


def simple_queue() -> queue.SimpleQueue[Any]:
    return _thread_local.threads.simple_queue()


def bounded_queue(size: int) -> queue.Queue[Any]:
    return _thread_local.threads.bounded_queue(size)


def future() -> Future[Any]:
    return _thread_local.threads.future()


def bell() -> Bell:
    return _thread_local.threads.bell()


class DelayedCall:
    """Calls a function once, after a time, unless it is cancelled before; runs as a daemon thread."""

    def __init__(self, after_s: float, target: Callable[..., object], *args: Any, name: str = "") -> None:
        self._cancelled = event()

        def run() -> None:
            if not self._cancelled.wait(after_s):
                target(*args)

        self._thread = thread(run, name=name)

    def start(self) -> None:
        """Starts the time."""
        self._thread.start()

    def cancel(self) -> None:
        """Prevents the call, if it has not begun."""
        self._cancelled.set()


def pool(name: str) -> Executor:
    """Runs jobs one after another, in a thread of its own."""
    return _thread_local.threads.pool(name)


def sleep(duration_s: float) -> None:
    _thread_local.threads.sleep(duration_s)


def monotonic() -> float:
    return _thread_local.threads.monotonic()


def wall() -> float:
    """Unix time, s."""
    return _thread_local.threads.wall()
