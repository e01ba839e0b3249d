"""Fails when a module of ours is longer than 600 lines: it probably holds more than one idea.

C that a tool has made is left out; its first line says so: `/* Made by tools/… `.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

LIMIT = 600
PYTHON = ("harness", "tests", "benchmarks", "setup", "firmware_stubs")
C = ("firmware_stubs", "tests")
C_ENDINGS = (".c", ".h", ".def", ".ino")
MADE = "/* Made by tools/"


def modules(root: Path) -> Iterator[Path]:
    """All that people write, but nothing in firmware_stubs/build or the virtual environment of the benchmarks."""
    for folder in PYTHON:
        yield from (path for path in sorted((root / folder).rglob("*.py")) if ".venv" not in path.parts)
    for folder in C:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in C_ENDINGS and (root / "firmware_stubs" / "build") not in path.parents:
                yield path


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    long = []
    for path in modules(root):
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) > LIMIT and not (path.suffix in C_ENDINGS and lines[0].startswith(MADE)):
            long.append(f"{path.relative_to(root)}: {len(lines)} lines (at most {LIMIT}); split it by what it is about")
    sys.stderr.write("".join(line + "\n" for line in long))
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
