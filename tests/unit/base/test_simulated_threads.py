"""Threads in simulated time: what the standard library's do, in one order, without a sleep."""

from __future__ import annotations

import os
import queue
import threading
import time

import pytest

from harness.base import threads
from harness.base.simulated_threads import SimulatedThreads
from tests.nights.greenlets import GreenletThreads


def play(world: SimulatedThreads) -> list[tuple[float, str]]:
    """Two that pass things on, one that looks now and then, and a pool."""
    events: list[tuple[float, str]] = []
    letters, changed, finished = threads.simple_queue(), threads.condition(), threads.event()
    count = [0]

    def say(message: str) -> None:
        events.append((round(world.monotonic() - 1000, 6), message))

    def sends() -> None:
        for number in range(3):
            threads.sleep(1.0)
            letters.put(number)
            with changed:
                count[0] += 1
                changed.notify_all()

    def takes() -> None:
        while True:
            try:
                say(f"got {letters.get(timeout=1.5)}")
            except queue.Empty:
                say("nothing")
                return

    def looks() -> None:
        with changed:
            say(f"two: {changed.wait_for(lambda: count[0] == 2, 5.0)}")
            say(f"nine: {changed.wait_for(lambda: count[0] == 9, 5.0)}")
        finished.set()

    running = [threads.thread(task) for task in (sends, takes, looks)]
    for thread in running:
        thread.start()
    with threads.pool("work") as pool:
        assert pool.submit(lambda: threads.sleep(0.25) or 7).result() == 7  # type: ignore[func-returns-value]
        say("worked")
        assert isinstance(pool.submit(lambda: 1 / 0).exception(), ZeroDivisionError)
    assert not finished.wait(1.0)
    assert finished.wait()
    for thread in running:
        thread.join()
        assert not thread.is_alive()
    return events


def test_waits_end_in_the_order_of_their_times_and_nothing_sleeps(simulated_time: SimulatedThreads) -> None:
    began_s = time.process_time()
    events = play(simulated_time)
    assert time.process_time() - began_s < 1
    assert events == [
        (0.25, "worked"),
        (1.0, "got 0"),
        (2.0, "got 1"),
        (2.0, "two: True"),
        (3.0, "got 2"),
        (4.5, "nothing"),
        (7.0, "nine: False"),
    ]
    for _ in range(20):
        with SimulatedThreads() as world, threads.using(world):
            assert play(world) == events


def test_a_lock_is_held_over_a_wait_and_may_be_given_up(simulated_time: SimulatedThreads) -> None:
    lock = threads.lock()

    def holds() -> None:
        with lock:
            threads.sleep(2.0)

    threads.thread(holds).start()
    threads.sleep(0.5)
    assert not lock.acquire(timeout=1.0)
    assert not lock.acquire(blocking=False)
    assert lock.acquire()
    assert simulated_time.monotonic() == 1002.0


def test_threads_that_wait_for_each_other_are_an_error_and_end_with_the_simulation() -> None:
    with SimulatedThreads() as world, threads.using(world):
        never = threads.event()
        threads.thread(never.wait).start()
        with pytest.raises(RuntimeError, match="every thread waits for another one"):
            never.wait()


def test_a_wait_too_short_for_the_clock_still_ends(simulated_time: SimulatedThreads) -> None:
    until_s = simulated_time.monotonic() + 1e-7
    while simulated_time.monotonic() < until_s:
        threads.sleep(1e-16)


def test_timed_calls_precede_waits_that_end_at_the_same_time() -> None:
    with SimulatedThreads() as world:
        calls: list[tuple[float, str]] = []
        for name, due_s in (("b", 1002.0), ("c", 1002.0), ("a", 1001.0), ("late", 1009.0)):
            world.call_at(due_s, lambda name=name: calls.append((world.monotonic(), name)))
        assert world.wait(lambda: len(calls) == 3, 2.0)
        assert calls == [(1001.0, "a"), (1002.0, "b"), (1002.0, "c")]
        world.call_at(0.0, lambda: calls.append((world.monotonic(), "at once")))
        world.sleep(1.0)
        assert calls[3:] == [(1002.0, "at once")]


def test_the_hosts_clock_can_be_set() -> None:
    with SimulatedThreads() as world:
        before_s = world.wall()
        world.set_wall(-7200.0)
        assert (world.wall() - before_s, world.monotonic()) == (-7200.0, 1000.0)


class Pipe:
    """The end of a pipe as a stream."""

    def __init__(self, file: int) -> None:
        self.fileno = lambda: file


def test_a_bell_ends_a_wait_and_reports_whether_a_stream_is_ready() -> None:
    reads, writes = os.pipe()
    bell = threads.bell()
    assert bell.wait(Pipe(reads), 0.0, writes=True) == (False, False)
    assert bell.wait(Pipe(writes), 0.0, writes=True) == (False, True)
    assert bell.wait(Pipe(writes), 0.0) == (False, False)
    bell.ring()
    bell.ring()
    assert bell.wait(Pipe(reads), 60.0) == (False, False)
    threads.DelayedCall(0.0, bell.ring).start()
    assert bell.wait(None, 60.0) == (False, False)
    os.write(writes, b"x")
    assert bell.wait(Pipe(reads), 60.0) == (True, False)
    os.read(reads, 1)
    os.close(writes)
    assert bell.wait(Pipe(reads), 60.0) == (True, False)  # the end of a stream is read, too
    os.close(reads)
    bell.close()
    bell.ring()


def test_a_simulated_bell_rings_and_hears_bytes(simulated_time: SimulatedThreads) -> None:
    class Stream:
        arrived = False

        def fileno(self) -> int:
            return -1

        def has_bytes(self) -> bool:
            return self.arrived

        def has_room(self) -> bool:
            return True

    bell, stream = threads.bell(), Stream()
    assert bell.wait(stream, 1.0) == (False, False)
    assert bell.wait(stream, 1.0, writes=True) == (False, True)
    threads.DelayedCall(2.0, bell.ring).start()
    never = threads.DelayedCall(2.5, setattr, stream, "arrived", False)
    never.start()
    threads.DelayedCall(3.0, setattr, stream, "arrived", True).start()
    assert bell.wait(stream, 60.0) == (False, False)
    assert simulated_time.monotonic() == 1003.0
    never.cancel()
    assert bell.wait(stream, 60.0) == (True, False)
    assert simulated_time.monotonic() == 1004.0


def test_a_bounded_queue_is_full_until_something_is_taken(simulated_time: SimulatedThreads) -> None:
    letters = threads.bounded_queue(1)
    letters.put_nowait("a")
    with pytest.raises(queue.Full):
        letters.put_nowait("b")
    with pytest.raises(queue.Full):
        letters.put("b", timeout=1.0)
    threads.DelayedCall(2.0, letters.get).start()
    letters.put("c")
    assert (letters.get(), simulated_time.monotonic()) == ("c", 1003.0)


def test_a_thread_of_the_simulation_knows_itself_and_ends_with_it() -> None:
    ended: list[threading.Thread] = []

    def waits() -> None:
        try:
            threads.event().wait()
        finally:
            ended.append(threading.current_thread())

    with SimulatedThreads() as world, threads.using(world):
        waiting = [threads.thread(waits), threads.thread(waits)]
        for thread in waiting:
            thread.start()
        threads.sleep(1.0)
        future = threads.future()
        threads.DelayedCall(1.0, future.set_result, 7).start()
        assert future.result() == 7
        assert not ended
    assert sorted(map(id, ended)) == sorted(map(id, waiting))


def test_greenlets_run_in_the_order_of_threads_end_with_the_simulation_and_show_their_errors(
    simulated_time: SimulatedThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    ended: list[str] = []

    def waits() -> None:
        try:
            threads.event().wait()
        finally:
            ended.append(threads.current_thread().name)

    events = play(simulated_time)
    with GreenletThreads() as world, threads.using(world):
        assert play(world) == events
        threads.thread(waits, name="waits").start()
        fails = threads.thread(lambda: 1 / 0, name="fails")
        fails.start()
        fails.join()
        assert threads.current_thread() is threading.current_thread()
        assert not ended
    assert ended == ["waits"]
    assert [(error.exc_type, error.thread) for error in errors] == [(ZeroDivisionError, fails)]
    assert threads.monotonic() == simulated_time.monotonic()  # what was used before the simulation is used again


def test_a_thread_that_ends_makes_due_calls_in_the_simulation() -> None:
    times: list[float] = []
    with SimulatedThreads() as world, threads.using(world):
        world.call_at(1001.0, lambda: times.append(threads.monotonic()))
        ends = threads.thread(lambda: threads.sleep(0.5))
        ends.start()
        threads.sleep(2.0)
    assert times == [1001.0]


def test_a_host_thread_does_not_belong_to_a_simulation() -> None:
    """One that an earlier test left behind must not hand the baton of this one over."""
    waits = threads.event()
    times: list[float] = []

    def live_on() -> None:
        waits.wait(60.0)
        threads.sleep(0.001)
        times.append(threads.monotonic())

    late = threads.thread(live_on)
    late.start()
    with SimulatedThreads() as world, threads.using(world):
        waits.set()
        late.join()
        threads.sleep(3600.0)
        assert world.monotonic() == 4600.0
    assert times[0] == pytest.approx(time.monotonic(), abs=60.0)


def test_simulated_host_stall_stops_threads_but_not_the_world() -> None:
    with SimulatedThreads() as world, threads.using(world):
        called_s: list[float] = []
        world.call_at(1001.0, lambda: called_s.append(world.monotonic()))
        world.call_at(1003.0, lambda: called_s.append(world.monotonic()))
        world.call_at(1000.5, lambda: world.stall(2.0))
        threads.sleep(0.7)
        assert world.monotonic() == 1002.5
        assert called_s == [1001.0]
        threads.sleep(0.7)
        assert called_s == [1001.0, 1003.0]


class PowerCut(BaseException):
    """What no `except Exception` stops."""


def test_a_pool_keeps_each_error_for_its_caller_and_continues(simulated_time: SimulatedThreads) -> None:
    def die() -> None:
        raise PowerCut

    with threads.pool("work") as pool:
        assert isinstance(pool.submit(die).exception(1.0), PowerCut)
        assert pool.submit(lambda: 7).result(1.0) == 7
