"""Real Dask clusters for tests: a scheduler and workers, each a process of its own on a free port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.seen import until


class Cluster:
    """A scheduler; workers are added. A context manager that ends what it started."""

    def __init__(self, folder: Path, *, allowed_failures: int = 3) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = self._start(
            "scheduler",
            [sys.executable, "-m", "distributed.cli.dask_scheduler"],
            ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
            {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures)},
        )
        until(lambda: "Scheduler at" in self.said("scheduler"))

    def add(self, *names: str) -> None:
        """Workers; returns when the scheduler knows them."""
        for name in names:
            self.start(name)
        self.wait()

    def start(
        self,
        name: str,
        *,
        env: dict[str, str] | None = None,
        python: tuple[str, ...] = (sys.executable, "-m", "distributed.cli.dask_worker"),
    ) -> None:
        """A worker of one thread, without a nanny; it is on its way when this returns."""
        arguments = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name, "--host", "127.0.0.1"]
        self.workers[name] = self._start(name, python, [self.address, *arguments], env or {})

    def wait(self) -> None:
        """Until the scheduler knows all workers."""
        until(lambda: all("Registered to" in self.said(name) for name in self.workers), 60.0)

    def kill(self, name: str) -> None:
        """As a power cut does."""
        worker = self.workers.pop(name)
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    def said(self, name: str) -> str:
        return (self._folder / f"{name}.said").read_text()

    def _start(
        self, name: str, program: tuple[str, ...] | list[str], arguments: list[str], env: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        local = ["--local-directory", str(self._folder)] if name != "scheduler" else []
        with (self._folder / f"{name}.said").open("wb") as said:
            process = subprocess.Popen(
                [*program, *arguments, *local],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=self._folder,
                env={**os.environ, **env},
            )
        self._started.append(process)
        return process

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            process.kill()
            process.wait()
