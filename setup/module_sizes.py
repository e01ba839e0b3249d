"""Fails when a module of ours is longer than 400 lines: it is about more than one thing by then."""

import sys
from pathlib import Path

LIMIT = 400


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    long = []
    for folder in ("harness", "tests", "benchmarks", "setup"):
        for path in sorted((root / folder).rglob("*.py")):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > LIMIT:
                long.append(f"{path.relative_to(root)}: {lines} lines (at most {LIMIT}); split it by what it is about")
    sys.stderr.write("".join(line + "\n" for line in long))
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
