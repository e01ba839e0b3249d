"""`harness …` as somebody types it in a folder of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HARNESS = Path(sys.executable).with_name("harness")
Typed = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def typing_in(folder: Path, **environment: str) -> Iterator[Typed]:
    """Runs `harness …` there, without a terminal, and checks its exit status."""
    with tempfile.TemporaryDirectory(prefix="vh") as runtime:  # a socket's path must be short
        around = {**os.environ, "HARNESS_RUNTIME": runtime, "HARNESS_LAB": f"{runtime}/lab", **environment}

        def run(*arguments: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
            result = subprocess.run(
                [HARNESS, *map(str, arguments)],
                cwd=folder,
                env=around,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert result.returncode == status, result.stdout + result.stderr
            return result

        yield run
