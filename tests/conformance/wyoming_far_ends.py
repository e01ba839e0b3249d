"""A Wyoming satellite and its client, as processes that can be killed and frozen."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from types import TracebackType

from tests.ports import listens
from tests.seen import until


class WyomingProgram:
    """One end. heard: the type and the size of the payload of each event that reached it."""

    def __init__(self, kind: str, port: int) -> None:
        self.port = port
        self.heard: list[tuple[str, int]] = []
        self._kind = kind

    def __enter__(self) -> WyomingProgram:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.conformance.wyoming_program", self._kind, str(self.port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        if self._kind == "satellite":
            until(lambda: listens(self.port), 20)

    def say(self, kind: str, data: dict[str, object] | None = None, payload_bytes: int = 0) -> None:
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps([kind, data or {}, payload_bytes]), file=self._process.stdin, flush=True)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            kind, size = json.loads(line)
            self.heard.append((kind, size))
