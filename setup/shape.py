"""Checks the tree's shape: modules that are too long, too many small modules, repeated class names.

- A module has at most 600 lines: a longer one probably holds more than one idea.
- In harness/ at most 30 modules are under 60 lines and have a single importer: such a module belongs in its importer.
- In harness/ every class name is unique.
- Numbers that a person reads are written by `harness/model/numbers.py`: elsewhere nothing gives a number its digits.
- What has a part in a session takes threads, waits and times from harness/base/threads.py, so that it can be simulated.

Generated C is left out; its first line is `/* Made by tools/… `.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

LIMIT = 600
SMALL = 60
MAX_SMALL = 30
PYTHON = ("harness", "tests", "benchmarks", "setup", "firmware_stubs")
C = ("firmware_stubs", "tests")
C_ENDINGS = (".c", ".h", ".def", ".ino")
MADE = "/* Made by tools/"
SIMULATED = ("harness/devices", "harness/session")
REAL = {
    "harness/devices/esphome.py": "asyncio runs jobs in an executor of its own",
    "harness/devices/mqtt/broker.py": "a process of its own",
    "harness/session/engine/engine.py": "the process around a session",
    "harness/session/engine/feed.py": "sockets of clients",
    "harness/session/engine/launch.py": "starts processes",
}
MADE_ELSEWHERE = {
    "threading": {"Thread", "Lock", "RLock", "Condition", "Event", "Timer", "Semaphore", "BoundedSemaphore", "Barrier"},
    "queue": {"Queue", "SimpleQueue", "LifoQueue", "PriorityQueue"},
    "concurrent.futures": {"Future", "ThreadPoolExecutor"},
}
"""Types: to name them is allowed, to make one is not."""
ASKED_ELSEWHERE = {"time": {"sleep", "monotonic", "monotonic_ns", "perf_counter", "time", "time_ns"}}
"""Functions, which may not even be passed on."""


PRINTER = "harness/model/numbers.py"
FOR_MACHINES: dict[str, str] = {
    "harness/base/typed_table.py:_cell": "CSV with declared decimals",
    "harness/devices/camera.py:_format_line": "a log line that profiles match",
    "harness/devices/esphome.py:_exact_value": "a setting that is written back to the device",
    "harness/devices/esphome.py:_value": "a log line that profiles match",
    "harness/engines/pocketsphinx_keyphrase.py:__init__": "thresholds in the list of phrases of pocketsphinx",
    "harness/offline/mixing.py:_labels": "CSV of labels",
    "harness/offline/reports/comparison.py:_read_journal": "settings as the wake log states them, to compare with one",
    "harness/offline/reports/det.py:_cell_text": "CSV of a curve",
    "harness/offline/reports/log.py": "the wake log",
    "harness/offline/reports/session.py:_csv_rows": "CSV of trials",
    "harness/offline/wake_log.py": "the wake log, and the console line of the tool that it comes from",
    "harness/report/wake_log_session.py": "the lines of a wake log",
    "harness/sound/equaliser.py:inverse": "the value of the option equaliser",
    "harness/sound/stimuli/voices/flite.py:speak": "an argument of flite",
    "harness/web/sounds.py:picture": "coordinates of an SVG",
}
"""`file` or `file:function` (or class) whose numbers no person reads in a sentence or table, with the reason."""
_DIGITS = re.compile(r"\.\d+|[eEfFgGn%]$")
_PERCENT = re.compile(r"%[-+ #0]*\d*(\.\d+)?[eEfFgG]")

_FORMAT = re.compile(r"%[-+ #0]*\d*(\.\d+)?[eEfFgG][^\"']*[\"']\s*\|\s*format|\|\s*round\b")


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
    if len(small) > MAX_SMALL:
        yield from small
    for name, where in classes.items():
        if len(where) > 1:
            yield f"the class name {name} stands in {', '.join(str(path.relative_to(root)) for path in where)}"


def not_simulated(root: Path) -> Iterator[str]:
    """Threads, waits and times that a simulation cannot replace.

    What a module makes when it is imported is left out: that may happen within a simulation and must outlive it.
    """
    for path in sorted(path for folder in SIMULATED for path in (root / folder).rglob("*.py")):
        if str(path.relative_to(root)) in REAL:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for top in tree.body:
            if isinstance(top, ast.FunctionDef | ast.ClassDef):
                for node in ast.walk(top):
                    if name := _taken_from_host(node, imported):
                        yield f"{path.relative_to(root)}:{node.lineno}: {name}; take it from harness.base.threads"


def _taken_from_host(node: ast.AST, imported: dict[str, str]) -> str:
    """The full name of a thread, wait or time of the host; "" if the node makes or asks none."""
    if isinstance(node, ast.Call):
        named, names = node.func, MADE_ELSEWHERE
    elif isinstance(node, ast.keyword) and node.arg == "default_factory":
        named, names = node.value, MADE_ELSEWHERE
    elif isinstance(node, ast.Attribute | ast.Name):
        named, names = node, ASKED_ELSEWHERE
    else:
        return ""
    text = ast.unparse(named)
    module, _, name = imported.get(text, text).rpartition(".")
    return f"{module}.{name}" if name in names.get(module, ()) else ""


def printed_numbers(root: Path) -> Iterator[str]:
    """Places that give a number its digits: f-strings, `format`, `%`, and `round` within an f-string or `str`."""
    for path in sorted((root / "harness").rglob("*.py")):
        name = str(path.relative_to(root))
        if name == PRINTER or name in FOR_MACHINES:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        exempt: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and f"{name}:{node.name}" in FOR_MACHINES:
                exempt.update(ast.walk(node))
        for node in ast.walk(tree):
            if node not in exempt and _gives_digits(node):
                yield f"{name}:{node.lineno}: prints a number itself; call harness.model.numbers"  # type: ignore[attr-defined]
    for path in sorted((root / "harness").rglob("*.html")):
        name = str(path.relative_to(root))
        for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if _FORMAT.search(line) and name not in FOR_MACHINES:
                yield f"{name}:{at}: prints a number itself; call numbers"


def _gives_digits(node: ast.AST) -> bool:
    match node:
        case ast.FormattedValue(value=value, format_spec=spec):
            if _is_round(value):
                return True
            text = "".join(str(part.value) for part in getattr(spec, "values", ()) if isinstance(part, ast.Constant))
            return bool(_DIGITS.search(text))
        case ast.Call(func=ast.Name(id="format"), args=[_, ast.Constant(value=str(text))]):
            return bool(_DIGITS.search(text))
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return bool(re.search(r"\{[^{}]*:[^{}]*(\.\d+|[eEfFgGn%])\}", text))
        case ast.Call(func=ast.Name(id="str"), args=[value]):
            return _is_round(value)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return bool(_PERCENT.search(text))
    return False


def _is_round(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "round"


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    found = [*too_long(root), *too_small_or_twice(root), *not_simulated(root), *printed_numbers(root)]
    sys.stderr.write("".join(line + "\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
