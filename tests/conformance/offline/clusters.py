"""Real Dask clusters for tests: a scheduler and workers, each a process of its own on a free port."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.conformance.offline.dask_process import PROGRAMS, run
from tests.ports import free_port
from tests.seen import until

SCHEDULER, WORKER = PROGRAMS
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(list(PROGRAMS))


class Cluster:
    """A scheduler; workers are added. A context manager that ends what it started."""

    def __init__(self, folder: Path, *, allowed_failures: int = 3) -> None:
        self._folder = folder
        self._started: list[BaseProcess] = []
        self.workers: dict[str, BaseProcess] = {}
        port = free_port()
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = self._start(
            "scheduler",
            SCHEDULER,
            ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
            {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures)},
        )
        until(lambda: "Scheduler at" in self.said("scheduler"))

    def add(self, *names: str) -> None:
        """Workers; returns when the scheduler knows them."""
        for name in names:
            self.start(name)
        self.wait()

    def start(self, name: str, *, env: Mapping[str, str] | None = None, program: str | Sequence[str] = WORKER) -> None:
        """A worker of one thread, without a nanny; it is on its way when this returns."""
        arguments = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name, "--host", "127.0.0.1"]
        local = ["--local-directory", str(self._folder)]
        self.workers[name] = self._start(name, program, [self.address, *arguments, *local], env or {})

    def wait(self) -> None:
        """Until the scheduler knows all workers."""
        until(lambda: all("Registered to" in self.said(name) for name in self.workers), 60.0)

    def kill(self, name: str) -> None:
        """As a power cut does."""
        worker = self.workers.pop(name)
        worker.kill()
        worker.join()

    def said(self, name: str) -> str:
        output = self._output(name)
        return output.read_text() if output.exists() else ""

    def _output(self, name: str) -> Path:
        return self._folder / f"{name}.said"

    def _start(
        self, name: str, program: str | Sequence[str], arguments: list[str], env: Mapping[str, str]
    ) -> BaseProcess:
        process = _FORKS.Process(target=run, args=(program, arguments, {**os.environ, **env}, self._output(name)))
        process.start()
        self._started.append(process)
        return process

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            process.kill()
            process.join()
