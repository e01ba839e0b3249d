"""Builds C programs of the firmware's core for tests, with the sanitizers that end a process at the first fault."""

from __future__ import annotations

import subprocess
from pathlib import Path

CORE = Path(__file__).resolve().parents[3] / "firmware_stubs" / "core"
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-Wshadow")


def build(
    sources: list[Path],
    program: Path,
    flags: tuple[str, ...] = SANITIZED,
    compiler: str = "gcc",
    libraries: tuple[str, ...] = (),
) -> Path:
    """The program at `program`; the compiler's words on failure."""
    argv = [compiler, *STRICT, *flags, f"-I{CORE}", *map(str, sources), "-o", str(program), *libraries]
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return program
