"""The connection to a Dask cluster: its workers, their tasks, and the results."""

from __future__ import annotations

import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import CancelledError
from typing import Any

from harness.base.grouping import group_by
from harness.base.plain_json import from_plain
from harness.base.plugins import pip_install
from harness.model.errors import EngineError, InputError, PluginError
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.offline import EngineFacts
from harness.offline.cluster_worker import ClusterOrder, describe_engine, facts_hash, shortened_list

CONNECT_S = 10.0
"""Longest time in which the scheduler must accept a connection."""
ASK_S = 5.0
"""Longest wait for an answer of the scheduler or of a worker. After it, the last known state counts."""
_LOGGERS = ("distributed", "distributed.client", "distributed.core", "distributed.comm", "tornado", "asyncio")


@frozen
class TaskAnswered:
    """A task came back with what its function returned."""

    answer: dict[str, Any]


@frozen
class TaskKilled:
    """The scheduler gave up a task because workers ended while they ran it. how_often: such as `4 times`."""

    how_often: str


@frozen
class TaskFailed:
    """A worker could not run our function. error: its type and its message."""

    error: str


class ClusterLink:
    """A client of the scheduler at an address. `close` closes the client only, not the cluster."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise PluginError(
                f"--cluster needs Dask distributed: {error}", remedy=f"Install it: {pip_install('cluster')}"
            ) from error

        class Client(distributed.Client):
            """Closed only by us: a client that never connected takes 6 s to close, and prints errors."""

            def __del__(self) -> None:
                pass

        client: Any = Client
        self.address = address
        self._killed: type[Exception] = distributed.KilledWorker
        self._levels = {name: logging.getLogger(name).level for name in _LOGGERS}
        self._arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._threads_by_address: dict[str, int] = {}
        _check_reachable(address)
        # The evaluation reports a lost scheduler or worker in its own words.
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            self._client: Any = client(address, timeout=CONNECT_S, set_as_default=False, name="harness")
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            self._restore_logs()
            raise _unreachable(address, str(error) or type(error).__name__) from error

    @property
    def is_lost(self) -> bool:
        """Whether the scheduler is gone, with the state of this evaluation."""
        return bool(self._client.status != "running")

    def workers(self) -> dict[str, int]:
        """Addresses of workers with the number of tasks that each runs at once. The last known state if the
        scheduler does not answer."""
        try:
            self._threads_by_address = dict(self._client.sync(self._client.scheduler.ncores, callback_timeout=ASK_S))
        except (OSError, TimeoutError) as error:
            if self.is_lost:
                raise self.lost_error() from error
        return self._threads_by_address

    def submit(self, name: str, task: Callable[..., Any], *arguments: Any, addresses: Collection[str] = ()) -> Any:
        """Sends a task. Returns its future, which `wait_for_done` returns when it is done. addresses: the workers that
        may run it; empty for all workers."""
        future = self._client.submit(
            _by_name(task), *arguments, key=name, pure=False, workers=sorted(addresses) or None
        )
        future.add_done_callback(self._arrived.put)
        return future

    def wait_for_done(self, wait_s: float) -> list[Any]:
        """Waits at most wait_s for a future that is done. Returns all that became done since the last call."""
        futures = []
        try:
            futures.append(self._arrived.get(timeout=wait_s))
            while True:
                futures.append(self._arrived.get_nowait())
        except queue.Empty:
            return futures

    def result(self, future: Any) -> TaskAnswered | TaskKilled | TaskFailed | None:
        """The result of a future; None if its worker was lost before the result was fetched. `wait_for_done` then
        returns the future again.

        Raises EngineError if the scheduler is gone.
        """
        try:
            if future.status == "error":
                error = future.exception(timeout=ASK_S)
                if isinstance(error, self._killed):
                    return TaskKilled(f"{getattr(error, 'allowed_failures', 0) + 1} times")
                return TaskFailed(f"{type(error).__name__}: {error}")
            return TaskAnswered(future.result(timeout=ASK_S))
        except CancelledError:
            raise self.lost_error() from None
        except (TimeoutError, OSError):
            if self.is_lost:
                raise self.lost_error() from None
            future.add_done_callback(self._arrived.put)
            return None

    def run_on_all(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Runs a function on all workers beside their tasks. Workers that cannot run it are skipped."""
        if not self.is_lost:
            try:
                self._client.run(_by_name(task), *arguments, on_error="ignore", callback_timeout=ASK_S)
            except (OSError, TimeoutError):
                return  # The workers are gone, and their engines with them.

    def lost_error(self) -> EngineError:
        return EngineError(
            f"the scheduler at {self.address} is gone, or has dropped this evaluation",
            remedy="Restart the scheduler, then continue with --resume",
        )

    def close(self) -> None:
        try:
            self._client.close(timeout=2)
        except (OSError, TimeoutError):
            pass
        finally:
            self._restore_logs()

    def _restore_logs(self) -> None:
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)


def _by_name(task: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called by its name. A worker without the harness could not deserialise the function itself, and
    would end."""
    module, name = task.__module__, task.__qualname__

    def called(*arguments: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(module), name)(*arguments)

    return called


def _check_reachable(address: str) -> None:
    """Raises InputError if nothing accepts connections at a TCP or TLS address. Dask itself would retry without a
    reason."""
    from distributed.comm.addressing import parse_address, parse_host_port

    try:
        scheme, rest = parse_address(address)
        if scheme not in ("tcp", "tls"):
            return
        host, port = parse_host_port(rest)
        socket.create_connection((host, port), timeout=CONNECT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _unreachable(address, getattr(error, "strerror", None) or str(error)) from error


def _unreachable(address: str, why: str) -> InputError:
    return InputError(
        f"no Dask scheduler answers at {address}: {why}",
        remedy="Use the address that `dask scheduler` printed, such as tcp://192.168.1.10:8786",
    )


WORKERS_WITHIN_S = 30.0
"""Longest time that a cluster may have no worker, at the start and later."""
REFRESH_INTERVAL_S = 1.0
TICK_S = 0.2


class ClusterWorkers:
    """The workers of the cluster, which may come and go.

    A new worker must first report the facts of its engine; then it counts as fit. misfits: address of each worker that
    cannot take part, with the reason.
    """

    def __init__(self, link: ClusterLink, report_line: Callable[[str], None]) -> None:
        self._link, self._report_line = link, report_line
        self._address_by_future: dict[Any, str] = {}
        self._question_count = 0
        self._fit: set[str] = set()
        self._threads_by_address: dict[str, int] = {}
        self._refreshed_s = self._last_present_s = time.monotonic()
        self.misfits: dict[str, str] = {}

    @property
    def slots(self) -> int:
        """Number of tasks that the workers run at once. Workers known to be unfit are left out."""
        return sum(threads for address, threads in self._threads_by_address.items() if address not in self.misfits)

    def fit_addresses(self, *, checked_only: bool) -> set[str]:
        """Addresses of the workers that may run a task; empty for all workers, until one turns out to be unfit.
        checked_only: leaves out workers that have not reported their facts yet."""
        if self.misfits or checked_only:
            return self._fit & self._threads_by_address.keys()
        return set()

    def are_gone(self, addresses: set[str]) -> bool:
        """Whether all of these workers are gone."""
        return bool(addresses) and not addresses & self._threads_by_address.keys()

    def await_workers(self, order: ClusterOrder, stop: threading.Event) -> EngineFacts:
        """Waits for workers and checks each. Returns the facts of their engine.

        Raises InputError if one is unfit or there is none, EngineError if workers do not answer, KeyboardInterrupt once
        `stop` is set.
        """
        self._await_first_worker(stop)
        facts = self._collect_facts(order, stop)
        self._demand_alike(facts)
        return facts[min(facts)]

    def _await_first_worker(self, stop: threading.Event) -> None:
        self._refresh()
        if not self._threads_by_address:
            self._report_line(f"waiting up to {exact(WORKERS_WITHIN_S)} s for workers at {self._link.address}")
        while not self._threads_by_address:
            if stop.wait(TICK_S):
                raise KeyboardInterrupt
            self._refresh()
            if not self._threads_by_address and time.monotonic() - self._last_present_s > WORKERS_WITHIN_S:
                raise InputError(
                    f"the scheduler at {self._link.address} has had no worker for {exact(WORKERS_WITHIN_S)} s",
                    remedy=f"Start a worker: dask worker {self._link.address}",
                )

    def _collect_facts(self, order: ClusterOrder, stop: threading.Event) -> dict[str, EngineFacts]:
        """Asks each worker for the facts of its engine, and waits for all answers. Returns the facts by address."""
        facts: dict[str, EngineFacts] = {}
        until_s = time.monotonic() + order.limits.load_within_s + WORKERS_WITHIN_S
        while True:
            self._refresh()
            self._address_by_future = {
                future: address
                for future, address in self._address_by_future.items()
                if address in self._threads_by_address
            }
            self.ask_new(order)
            if not self._address_by_future and (facts or self.misfits):
                return facts
            if stop.is_set():
                raise KeyboardInterrupt
            for future in self._link.wait_for_done(TICK_S):
                if future in self._address_by_future:
                    self._store_facts(future, facts)
            if time.monotonic() > until_s:
                addresses = sorted(self._address_by_future.values())
                raise EngineError(
                    f"workers do not answer: {shortened_list(addresses) or 'none are connected'}",
                    remedy="Check whether the workers are busy with other work or have stopped",
                )

    def ask_new(self, order: ClusterOrder) -> None:
        """Asks new workers for their engine's facts."""
        known = self._fit | self.misfits.keys() | set(self._address_by_future.values())
        for address in self._threads_by_address.keys() - known:
            self._question_count += 1
            future = self._link.submit(
                f"harness-{order.run}-who-{self._question_count}", describe_engine, order.encode(), addresses={address}
            )
            self._address_by_future[future] = address

    def record_facts(self, future: Any) -> bool:
        """Records a worker's answer to `ask_new`. Returns False if the future is not such an answer."""
        if future not in self._address_by_future:
            return False
        address = self._address_by_future[future]
        self._store_facts(future, {})
        if address in self.misfits:
            # `leave_out` reports only workers that are not in `misfits` yet.
            self.leave_out(address, self.misfits.pop(address))
        return True

    def leave_out(self, address: str, why: str) -> None:
        """Leaves out a worker that turned out to be unfit. Raises EngineError if it was the last."""
        self._fit.discard(address)
        if address not in self.misfits:
            self.misfits[address] = why
            self._report_line(f"continuing without the worker {address}: {why}")
        if not self.slots:
            raise EngineError(f"no usable worker is left: {why}", remedy="Repair a worker, then continue with --resume")

    def tick(self) -> None:
        """To be called regularly. Looks for new and lost workers once a second.

        Raises EngineError after WORKERS_WITHIN_S without workers.
        """
        now_s = time.monotonic()
        if now_s - self._refreshed_s < REFRESH_INTERVAL_S:
            return
        before = self._threads_by_address
        self._refresh()
        for address in before.keys() - self._threads_by_address.keys():
            self._report_line(f"the worker {address} is gone; another worker plays its files")
        if not self._threads_by_address and now_s - self._last_present_s > WORKERS_WITHIN_S:
            raise EngineError(
                f"the scheduler at {self._link.address} has had no worker for {exact(WORKERS_WITHIN_S)} s",
                remedy="Start workers, then continue with --resume",
            )

    def _refresh(self) -> None:
        self._threads_by_address = dict(self._link.workers())
        self._refreshed_s = time.monotonic()
        if self._threads_by_address:
            self._last_present_s = self._refreshed_s

    def _store_facts(self, future: Any, facts: dict[str, EngineFacts]) -> None:
        """Notes whether the worker is fit. Adds the facts of its engine to `facts`, by its address."""
        reply = self._link.result(future)
        if reply is None:
            return
        address = self._address_by_future.pop(future)
        if isinstance(reply, TaskKilled):
            return  # The worker is gone.
        if isinstance(reply, TaskFailed):
            is_missing = "No module named 'harness'" in reply.error
            self.misfits[address] = (
                "the harness is not installed there" if is_missing else f"it cannot run the harness: {reply.error}"
            )
        elif "misfit" in reply.answer:
            self.misfits[address] = str(reply.answer["misfit"])
        else:
            self._fit.add(address)
            facts[address] = from_plain(EngineFacts, reply.answer["facts"])

    def _demand_alike(self, facts: dict[str, EngineFacts]) -> None:
        """Raises InputError if a worker is unfit or engines differ, EngineError without facts. facts: by address."""
        engines = group_by((facts_hash(facts[address]), address) for address in sorted(facts))
        problems = [
            f"{address}: {why}" for address, why in sorted(self.misfits.items()) if address in self._threads_by_address
        ]
        if len(engines) > 1:
            for addresses in engines.values():
                fact = facts[addresses[0]]
                version = f"the engine's version is {fact.version}, its fingerprint {fact.fingerprint[:12]}"
                problems.append(f"{shortened_list(addresses)}: {version}")
        if problems:
            raise InputError(
                "cluster workers do not match this evaluation:\n  " + "\n  ".join(problems),
                remedy="Install the same harness and engines on all workers, and make the same folders available",
            )
        if not facts:
            raise EngineError("all workers ended before they reported their versions", remedy="Restart the workers")
        if len({engine_facts.settings for engine_facts in facts.values()}) > 1:
            self._report_line(
                "workers differ in settings that do not change results; the log lists the settings of the first"
            )
