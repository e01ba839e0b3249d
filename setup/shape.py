"""Checks the tree's shape: modules that are too long, too many small modules, repeated class names.

- A module has at most 600 lines: a longer one probably holds more than one idea.
- In harness/ at most 30 modules are under 60 lines and have a single importer: such a module belongs in its importer.
- In harness/ every class name is unique.

Generated C is left out; its first line is `/* Made by tools/… `.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

LIMIT = 600
SMALL = 60
MOST_SMALL = 30
PYTHON = ("harness", "tests", "benchmarks", "setup", "firmware_stubs")
C = ("firmware_stubs", "tests")
C_ENDINGS = (".c", ".h", ".def", ".ino")
MADE = "/* Made by tools/"


def modules(root: Path) -> Iterator[Path]:
    """All files that people write, without firmware_stubs/build and the benchmarks' virtual environment."""
    for folder in PYTHON:
        yield from (path for path in sorted((root / folder).rglob("*.py")) if ".venv" not in path.parts)
    for folder in C:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in C_ENDINGS and (root / "firmware_stubs" / "build") not in path.parents:
                yield path


def too_long(root: Path) -> Iterator[str]:
    for path in modules(root):
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) > LIMIT and not (path.suffix in C_ENDINGS and lines[0].startswith(MADE)):
            yield f"{path.relative_to(root)}: {len(lines)} lines (at most {LIMIT}); split it by what it is about"


def too_small_or_twice(root: Path) -> Iterator[str]:
    names = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((root / "harness").rglob("*.py"))
    }
    importers: dict[str, set[Path]] = defaultdict(set)
    classes: dict[str, list[Path]] = defaultdict(list)
    for path in names.values():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for one in node.names:
                    inner = f"{node.module}.{one.name}"
                    importers[inner if inner in names else node.module].add(path)
        for top in tree.body:
            if isinstance(top, ast.ClassDef):
                classes[top.name].append(path)
    small = [
        f"{path.relative_to(root)}: under {SMALL} lines, only {sorted(importers[name])[0].relative_to(root)} imports it"
        for name, path in names.items()
        if len(importers[name]) == 1
        and path.name != "__init__.py"
        and len(path.read_text(encoding="utf-8").splitlines()) < SMALL
    ]
    if len(small) > MOST_SMALL:
        yield from small
    for name, where in classes.items():
        if len(where) > 1:
            yield f"the class name {name} stands in {', '.join(str(path.relative_to(root)) for path in where)}"


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    found = [*too_long(root), *too_small_or_twice(root)]
    sys.stderr.write("".join(line + "\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
