"""The connection to a Dask cluster: who its workers are, tasks for them, and what came of each."""

from __future__ import annotations

import logging
import queue
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from harness.model.errors import EngineError, InputError, PluginError

CONNECT_S = 10.0
ASK_S = 5.0
_LOGGERS = ("distributed", "distributed.client", "distributed.core", "distributed.comm", "tornado", "asyncio")


@dataclass(frozen=True, slots=True)
class Answered:
    """A task came back with what its function returned."""

    answer: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Killed:
    """The scheduler gave a task up, since workers ended with it. words: how often."""

    words: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A worker could not run our function at all."""

    words: str


class ClusterLink:
    """A client of the scheduler at an address. A context manager; it closes the client and nothing of the cluster's."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise PluginError(
                f"--cluster needs Dask distributed: {error}", remedy="pip install 'voice-harness[cluster]'"
            ) from error

        class Client(distributed.Client):
            """Closed by us alone: one that never connected takes 6 s over it, and complains."""

            def __del__(self) -> None:
                pass

        client: Any = Client
        self.address = address
        self._killed: type[Exception] = distributed.KilledWorker
        self._levels = {name: logging.getLogger(name).level for name in _LOGGERS}
        self._arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._known: dict[str, int] = {}
        _somebody_listens(address)
        # What it logs of a lost scheduler or worker is told by the evaluation, in its own words.
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            self._client: Any = client(address, timeout=CONNECT_S, set_as_default=False, name="harness")
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            self._restore_logs()
            raise _wrong(address, str(error) or type(error).__name__) from error

    @property
    def lost(self) -> bool:
        """Whether the scheduler is gone: what it had of ours it has forgotten."""
        return bool(self._client.status != "running")

    def workers(self) -> dict[str, int]:
        """Addresses of workers, and how many tasks each does at once; what was known when that cannot be asked."""
        try:
            self._known = dict(self._client.sync(self._client.scheduler.ncores, callback_timeout=ASK_S))
        except (OSError, TimeoutError) as error:
            if self.lost:
                raise self.gone() from error
        return self._known

    def submit(self, name: str, task: Callable[..., Any], *given: Any, where: Collection[str] = ()) -> Any:
        """A future of the task, which `arrived` tells of. where: the workers that may have it, all when empty."""
        future = self._client.submit(_by_name(task), *given, key=name, pure=False, workers=sorted(where) or None)
        future.add_done_callback(self._arrived.put)
        return future

    def arrived(self, wait_s: float) -> list[Any]:
        """Futures that came to an end, waiting so long for the first."""
        found = []
        try:
            found.append(self._arrived.get(timeout=wait_s))
            while True:
                found.append(self._arrived.get_nowait())
        except queue.Empty:
            return found

    def result(self, future: Any) -> Answered | Killed | Failed | None:
        """What came of it; None when it is not there yet after all: the worker that had it went first.

        EngineError when the scheduler is gone.
        """
        if future.status == "cancelled":
            raise self.gone()
        try:
            if future.status == "error":
                error = future.exception(timeout=ASK_S)
                if isinstance(error, self._killed):
                    return Killed(f"{getattr(error, 'allowed_failures', 0) + 1} times")
                return Failed(f"{type(error).__name__}: {error}")
            return Answered(future.result(timeout=ASK_S))
        except (TimeoutError, OSError):
            if self.lost:
                raise self.gone() from None
            future.add_done_callback(self._arrived.put)
            return None

    def everywhere(self, task: Callable[..., Any], *given: Any) -> None:
        """Runs a function on all workers, beside their tasks; those that cannot are passed over."""
        if not self.lost:
            try:
                self._client.run(_by_name(task), *given, on_error="ignore", callback_timeout=ASK_S)
            except (OSError, TimeoutError):
                return  # Workers that are gone have let go already.

    def gone(self) -> EngineError:
        return EngineError(
            f"the scheduler at {self.address} is gone, or has let go of this evaluation",
            remedy="Start it again, and go on with --resume",
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _by_name(task: Callable[..., Any]) -> Callable[..., Any]:
    """The same by its name alone: a worker that has not the harness could not even read the message with the function
    itself, and would end of it."""
    module, name = task.__module__, task.__qualname__

    def called(*given: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(module), name)(*given)

    return called


def _somebody_listens(address: str) -> None:
    """InputError at once for what is no address, and where nobody listens."""
    from distributed.comm.addressing import parse_address, parse_host_port

    try:
        scheme, rest = parse_address(address)
        if scheme not in ("tcp", "tls"):
            return
        host, port = parse_host_port(rest)
        socket.create_connection((host, port), timeout=CONNECT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _wrong(address, getattr(error, "strerror", None) or str(error)) from error


def _wrong(address: str, why: str) -> InputError:
    return InputError(
        f"there is no Dask scheduler at {address}: {why}",
        remedy="Give what `dask scheduler` printed, as tcp://192.168.1.10:8786",
    )
