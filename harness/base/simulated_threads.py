"""Threads in simulated time: one runs at a time, and hands over only where it waits.

The order is deterministic. Of the threads whose condition holds, the one that has waited longest continues. If no
condition holds, time advances until the next wait ends. Nothing really sleeps, and equal programs run equally.
"""

from __future__ import annotations

import heapq
import itertools
import math
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, Self, TypeVar, cast

from harness.base.threads import Bell, using

TICK_S = 1e-9
"""The shortest wait, in seconds. Rounding could lose shorter ones, so that time would stand still."""
P = ParamSpec("P")
T = TypeVar("T")


class _SimulationOver(BaseException):
    """The simulation is over; raised in the threads that still wait."""


class _SimulatedThread:
    """One thread of the simulation.

    - holds, due_s: the condition for which it waits, and until when.
    - held: whether the condition held when the wait ended.
    """

    def __init__(self) -> None:
        self.baton = threading.Lock()
        self.baton.acquire()  # released by the one that passes the baton
        self.holds: Callable[[], object] = lambda: True
        self.due_s = math.inf
        self.held = True
        self.thread: threading.Thread | None = None


class SimulatedThreads:
    """A simulation with its own time. The thread that creates it is the first of its threads.

    Use it in a `with` block; at the end, threads that still wait are ended.
    """

    def __init__(self, now_s: float = 1000.0) -> None:
        self._now_s = now_s
        self._wall_s = 1_800_000_000.0  # a moment in 2027
        self._running = _SimulatedThread()
        self._waiting: list[_SimulatedThread] = []
        self._calls: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self._first = self._running
        self._over = self._stuck = False  # stuck: every thread waits, and none for a time
        self._stalled_until_s = -math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        while self._waiting:  # one after another: what they do at their end touches what they share
            self._running = waiting_thread = self._waiting.pop()
            waiting_thread.baton.release()
            if waiting_thread.thread is not None:
                threading.Thread.join(waiting_thread.thread)

    def monotonic(self) -> float:
        return self._now_s

    def wall(self) -> float:
        return self._wall_s + self._now_s

    def set_wall(self, by_s: float) -> None:
        """Simulates that somebody sets the host's clock, forward by by_s or, if that is negative, back."""
        self._wall_s += by_s

    def sleep(self, duration_s: float) -> None:
        self.wait(lambda: False, duration_s)

    def stall(self, lasts_s: float) -> None:
        """Simulates a stall of the host: no thread continues for lasts_s. Calls scheduled by `call_at` still happen."""
        self._stalled_until_s = max(self._stalled_until_s, self._now_s + lasts_s)

    def call_at(self, due_s: float, call: Callable[[], object]) -> None:
        """Schedules a call at due_s, before waits that end then. Calls at one time keep their order; none may wait."""
        heapq.heappush(self._calls, (max(due_s, self._now_s), next(self._order), call))

    def wait(self, holds: Callable[[], object], limit_s: float | None = None) -> bool:
        """Lets other threads run until `holds` is true, at most for limit_s. Returns whether it is.

        `holds` is called between the turns of other threads, so it must not wait. RuntimeError if nothing can happen.
        """
        if self._over:
            raise _SimulationOver
        own_thread = self._running
        if limit_s is None:
            limit_s = math.inf
        elif limit_s > 0:
            limit_s = max(limit_s, TICK_S)
        else:
            limit_s = 0.0
        own_thread.holds, own_thread.due_s = holds, self._now_s + limit_s
        self._waiting.append(own_thread)
        self._hand_over(own_thread)
        return own_thread.held

    def _hand_over(self, own_thread: _SimulatedThread | None) -> None:
        """Lets the next thread continue, and returns at this one's next turn. own_thread: None if this one ends.

        Raises _SimulationOver if the simulation ends meanwhile, RuntimeError in the first thread if nothing can happen.
        """
        next_thread = self._choose_next()
        if next_thread is not own_thread:
            if next_thread is not None:
                self._running = next_thread
            self._switch(own_thread, next_thread)
            if own_thread is not None:
                if self._over:
                    raise _SimulationOver
                self._running = own_thread
        if self._stuck and own_thread is self._first:
            raise RuntimeError("every thread waits for another one")

    def _switch(self, own_thread: _SimulatedThread | None, next_thread: _SimulatedThread | None) -> None:
        """Lets another thread continue. Returns when it is this one's turn again. own_thread: None if this one ends."""
        if next_thread is not None:
            next_thread.baton.release()
        if own_thread is not None:
            own_thread.baton.acquire()

    def _choose_next(self) -> _SimulatedThread | None:
        """The waiting thread that continues; lets time advance until there is one."""
        while self._waiting:
            if self._now_s < self._stalled_until_s:
                if self._calls and self._calls[0][0] <= self._stalled_until_s:
                    self._run_next_call()
                else:
                    self._now_s = self._stalled_until_s
                continue
            first = self._waiting[0]  # of those whose wait ends first
            for waiting_thread in self._waiting:
                if waiting_thread.holds():
                    return self._wake(waiting_thread, held=True)
                if waiting_thread.due_s < first.due_s:
                    first = waiting_thread
            waiting_thread = first
            if self._calls and self._calls[0][0] <= waiting_thread.due_s:
                self._run_next_call()
                continue
            if math.isinf(waiting_thread.due_s):
                self._stuck, waiting_thread = True, self._first
            else:
                self._now_s = max(self._now_s, waiting_thread.due_s)
            return self._wake(waiting_thread, held=False)
        return None

    def _run_next_call(self) -> None:
        """Advances time to the next scheduled call, and makes it."""
        due_s, _, call = heapq.heappop(self._calls)
        self._now_s = max(self._now_s, due_s)
        call()

    def _wake(self, waiting_thread: _SimulatedThread, *, held: bool) -> _SimulatedThread:
        """Ends the wait of a thread. held: whether its condition holds."""
        waiting_thread.held = held
        self._waiting.remove(waiting_thread)
        return waiting_thread

    def begin(self, thread: threading.Thread, target: Callable[[], object]) -> Callable[[], None] | None:
        """The function that a simulated thread must run, which starts at its next turn; None if none is needed."""
        waiting_thread = _SimulatedThread()
        waiting_thread.thread = thread
        self._waiting.append(waiting_thread)

        def run() -> None:
            waiting_thread.baton.acquire()
            self._run(waiting_thread, target)

        return run

    def _run(self, waiting_thread: _SimulatedThread, target: Callable[[], object]) -> None:
        """Runs the function of a thread at its first turn, then hands over for good."""
        if self._over:
            return
        self._running = waiting_thread
        with using(self):  # also for what others have called for meanwhile, which this thread does at its end
            try:
                target()
            except _SimulationOver:
                return
            finally:
                if not self._over:
                    self._hand_over(None)

    # As harness.base.threads

    def thread(self, target: Callable[..., object], args: tuple[Any, ...], name: str) -> threading.Thread:
        return _Thread(self, lambda: target(*args), name)

    def current_thread(self) -> threading.Thread:
        return self._running.thread or threading.current_thread()

    def lock(self) -> threading.Lock:
        return cast(threading.Lock, _Lock(self))

    def rlock(self) -> threading.RLock:
        return cast(threading.RLock, _Lock(self))

    def condition(self, lock: Any = None) -> threading.Condition:
        return _Condition(self, lock)

    def event(self) -> threading.Event:
        return _Event(self)

    def simple_queue(self) -> queue.SimpleQueue[Any]:
        return cast("queue.SimpleQueue[Any]", _Queue(self))

    def bounded_queue(self, size: int) -> queue.Queue[Any]:
        return cast("queue.Queue[Any]", _Queue(self, size))

    def future(self) -> Future[Any]:
        return _Future(self)

    def bell(self) -> Bell:
        return _Bell(self)

    def pool(self, name: str) -> Executor:
        return _Pool(self)


class _Thread(threading.Thread):
    def __init__(self, world: SimulatedThreads, target: Callable[[], object], name: str) -> None:
        super().__init__(name=name or None, daemon=True)
        self._world, self._function = world, target
        self._has_begun = self._done = False

    def start(self) -> None:
        self._has_begun = True
        run_turn = self._world.begin(self, self._work)
        if run_turn is not None:
            self._run_turn = run_turn
            super().start()

    def run(self) -> None:
        self._run_turn()

    def _work(self) -> None:
        try:
            self._function()
        finally:
            self._done = True

    def is_alive(self) -> bool:
        return self._has_begun and not self._done

    def join(self, timeout: float | None = None) -> None:
        self._world.wait(lambda: self._done, timeout)


class _Lock:
    """A lock, which is reentrant: a program for which a plain lock is enough works with it, too."""

    def __init__(self, world: SimulatedThreads) -> None:
        self._world = world
        self._owner: _SimulatedThread | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        own_thread = self._world._running
        limit_s = None if timeout < 0 else timeout
        if not blocking:
            limit_s = 0.0
        if self._owner not in (None, own_thread) and not self._world.wait(lambda: self._owner is None, limit_s):
            return False
        self._owner, self._depth = own_thread, self._depth + 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None

    def __enter__(self) -> bool:
        if self._owner is not None:
            return self.acquire()
        self._owner, self._depth = self._world._running, 1
        return True

    def __exit__(self, *_: object) -> None:
        self.release()


class _Condition(threading.Condition):
    def __init__(self, world: SimulatedThreads, lock: Any) -> None:
        self._world = world
        self._simulated_lock: Any = cast(Any, lock or _Lock(world))
        self._sleepers: list[list[bool]] = []
        super().__init__(cast(threading.Lock, self._simulated_lock))

    def wait(self, timeout: float | None = None) -> bool:
        woken = [False]
        self._sleepers.append(woken)
        lock = self._simulated_lock
        depth, lock._depth, lock._owner = lock._depth, 0, None
        own_thread = self._world._running
        if not self._world.wait(lambda: woken[0] and lock._owner is None, timeout):
            self._world.wait(lambda: lock._owner is None)  # also after a timeout it returns with the lock
        lock._owner, lock._depth = own_thread, depth
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper is not woken]
        return woken[0]

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        until_s = None if timeout is None else self._world.monotonic() + timeout
        while not (result := predicate()):
            left_s = None if until_s is None else until_s - self._world.monotonic()
            if left_s is not None and left_s <= 0:
                break
            self.wait(left_s)
        return result

    def notify(self, n: int = 1) -> None:
        for woken in [sleeper for sleeper in self._sleepers if not sleeper[0]][:n]:
            woken[0] = True

    def notify_all(self) -> None:
        self.notify(len(self._sleepers))


class _Event(threading.Event):
    def __init__(self, world: SimulatedThreads) -> None:  # without the lock and the condition of a real one
        self._world = world
        # Has an item while the event is set: asking a list for its length calls no Python code, so waiting is fast.
        self._mark: list[None] = []
        self._is_marked = self._mark.__len__

    def is_set(self) -> bool:
        return bool(self._mark)

    def set(self) -> None:
        self._mark[:] = [None]

    def clear(self) -> None:
        self._mark.clear()

    def wait(self, timeout: float | None = None) -> bool:
        return bool(self._mark) or self._world.wait(self._is_marked, timeout)


class _Queue:
    def __init__(self, world: SimulatedThreads, size: int = 0) -> None:
        self._world = world
        self._items: deque[Any] = deque()
        self._has_items = self._items.__len__
        self._size = size or math.inf

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if self._full() and not (block and self._world.wait(lambda: not self._full(), timeout)):
            raise queue.Full
        self._items.append(item)

    def _full(self) -> bool:
        return len(self._items) >= self._size

    def put_nowait(self, item: Any) -> None:
        self.put(item, block=False)

    def qsize(self) -> int:
        return len(self._items)

    def empty(self) -> bool:
        return not self._items

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self._items and not (block and self._world.wait(self._has_items, timeout)):
            raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        return self.get(block=False)


class _Bell:
    def __init__(self, world: SimulatedThreads) -> None:
        self._world = world
        self._rung = False

    def ring(self) -> None:
        self._rung = True

    def wait(self, stream: Any, limit_s: float, *, writes: bool = False) -> tuple[bool, bool]:
        def state() -> tuple[bool, bool]:
            return stream is not None and stream.has_bytes(), writes and stream.has_room()

        if stream is None:
            self._world.wait(lambda: self._rung, limit_s)
        elif writes:
            self._world.wait(lambda: self._rung or any(state()), limit_s)
        else:
            self._world.wait(lambda: self._rung or stream.has_bytes(), limit_s)
        self._rung = False
        return state()

    def close(self) -> None:
        """Nothing to close."""


class _Future(Future[T]):
    def __init__(self, world: SimulatedThreads) -> None:
        super().__init__()
        self._world = world

    def result(self, timeout: float | None = None) -> T:
        self._wait_done(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._wait_done(timeout)
        return super().exception(0)

    def _wait_done(self, timeout: float | None) -> None:
        if not self._world.wait(self.done, timeout):
            raise TimeoutError


class _Pool(Executor):
    def __init__(self, world: SimulatedThreads) -> None:
        self._world = world
        self._jobs: deque[tuple[_Future[Any], Callable[[], Any]]] = deque()
        self._working = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: _Future[T] = _Future(self._world)
        self._jobs.append((future, lambda: fn(*args, **kwargs)))
        if not self._working:
            self._working = True
            self._world.thread(self._work, (), "pool").start()
        return future

    def _work(self) -> None:
        while self._jobs:
            future, job = self._jobs.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(job())
            except _SimulationOver:
                raise
            except BaseException as error:  # noqa: BLE001 - raised by `result`, as of a real pool
                future.set_exception(error)
        self._working = False

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            for future, _ in self._jobs:
                future.cancel()
        if wait:
            self._world.wait(lambda: not self._working)
