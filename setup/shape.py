"""Checks the tree's shape. Prints what breaks a rule; exits with status 1 if anything does.

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

MAX_LINES = 600
SMALL_LINES = 60
MAX_SMALL_MODULES = 30
PYTHON = ("harness", "tests", "benchmarks", "setup", "firmware_stubs")
C = ("firmware_stubs", "tests")
C_ENDINGS = (".c", ".h", ".def", ".ino")
MADE = "/* Made by tools/"
SIMULATED = ("harness/devices", "harness/session")
NOT_SIMULATED = {
    "harness/devices/esphome.py": "asyncio runs jobs in an executor of its own",
    "harness/devices/mqtt/broker.py": "a process of its own",
    "harness/session/engine/engine.py": "the process around a session",
    "harness/session/engine/feed.py": "sockets of clients",
    "harness/session/engine/launch.py": "starts processes",
}
TYPES = {
    "threading": {"Thread", "Lock", "RLock", "Condition", "Event", "Timer", "Semaphore", "BoundedSemaphore", "Barrier"},
    "queue": {"Queue", "SimpleQueue", "LifoQueue", "PriorityQueue"},
    "concurrent.futures": {"Future", "ThreadPoolExecutor"},
}
"""Code in SIMULATED may name these types, but not make one."""
FUNCTIONS = {"time": {"sleep", "monotonic", "monotonic_ns", "perf_counter", "time", "time_ns"}}
"""Code in SIMULATED may neither call these functions nor pass them on."""
PRINTER = "harness/model/numbers.py"
FOR_MACHINES: dict[str, str] = {
    "harness/base/typed_table.py:_cell": "CSV with declared decimals",
    "harness/devices/camera.py:_format_line": "a log line that profiles match",
    "harness/devices/esphome.py:_exact_value": "a setting that is written back to the device",
    "harness/devices/esphome.py:_value": "a log line that profiles match",
    "harness/engines/pocketsphinx_keyphrase.py:__init__": "thresholds in the list of phrases of pocketsphinx",
    "harness/offline/mixing.py:_labels": "CSV of labels",
    "harness/offline/compared_evaluation.py:_read_journal": "settings as the wake log states them, to compare with one",
    "harness/offline/reports/det.py:_cell_text": "CSV of a curve",
    "harness/offline/reports/log.py": "the wake log",
    "harness/offline/reports/session.py:_csv_rows": "CSV of trials",
    "harness/offline/wake_log.py": "the wake log, and the console line of the tool that it comes from",
    "harness/report/wake_log_session.py": "the lines of a wake log",
    "harness/sound/equaliser.py:inverse": "the value of the option equaliser",
    "harness/sound/stimuli/voices/flite.py:speak": "an argument of flite",
    "harness/web/sounds.py:draw_picture": "coordinates of an SVG",
}
"""`file` or `file:function` (or class) whose numbers no person reads in a sentence or table, with the reason."""
_DIGITS_SPEC = re.compile(r"\.\d+|[eEfFgGn%]$")
"""What makes a format specification give digits."""
_PERCENT = re.compile(r"%[-+ #0]*\d*(\.\d+)?[eEfFgG]")
_TEMPLATE_FORMAT = re.compile(r"%[-+ #0]*\d*(\.\d+)?[eEfFgG][^\"']*[\"']\s*\|\s*format|\|\s*round\b")


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
        if len(lines) > MAX_LINES and not (path.suffix in C_ENDINGS and lines[0].startswith(MADE)):
            yield f"{path.relative_to(root)}: {len(lines)} lines (at most {MAX_LINES}); split it by what it is about"


def too_small(root: Path) -> Iterator[str]:
    """All small modules with a single importer, if there are too many."""
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((root / "harness").rglob("*.py"))
    }
    importers: dict[str, set[Path]] = defaultdict(set)
    for path in paths.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    importers[submodule if submodule in paths else node.module].add(path)
    small = []
    for module, path in paths.items():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines < SMALL_LINES and path.name != "__init__.py" and len(importers[module]) == 1:
            [importer] = importers[module]
            small.append(
                f"{path.relative_to(root)}: under {SMALL_LINES} lines, only {importer.relative_to(root)} imports it"
            )
    if len(small) > MAX_SMALL_MODULES:
        yield from small


def repeated_class_names(root: Path) -> Iterator[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "harness").rglob("*.py")):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef):
                places[statement.name].append(str(path.relative_to(root)))
    for name, paths in places.items():
        if len(paths) > 1:
            yield f"the class name {name} stands in {', '.join(paths)}"


def not_simulated(root: Path) -> Iterator[str]:
    """Threads, waits and times that a simulation cannot replace.

    What a module makes when it is imported is left out: that may happen within a simulation and must outlive it.
    """
    for path in sorted(path for folder in SIMULATED for path in (root / folder).rglob("*.py")):
        if str(path.relative_to(root)) in NOT_SIMULATED:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                for node in ast.walk(statement):
                    if name := _taken_from_host(node, imported):
                        yield f"{path.relative_to(root)}:{node.lineno}: {name}; take it from harness.base.threads"


def _taken_from_host(node: ast.AST, imported: dict[str, str]) -> str:
    """The full name of a type of TYPES that the node makes, or of a function of FUNCTIONS; "" if it is neither.

    imported: the full name of each name that the module has imported.
    """
    if isinstance(node, ast.Call):
        expression, names = node.func, TYPES
    elif isinstance(node, ast.keyword) and node.arg == "default_factory":
        expression, names = node.value, TYPES
    elif isinstance(node, ast.Attribute | ast.Name):
        expression, names = node, FUNCTIONS
    else:
        return ""
    text = ast.unparse(expression)
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
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if _TEMPLATE_FORMAT.search(line) and name not in FOR_MACHINES:
                yield f"{name}:{number}: prints a number itself; call numbers"


def _gives_digits(node: ast.AST) -> bool:
    match node:
        case ast.FormattedValue(value=value, format_spec=spec):
            if _is_round(value):
                return True
            text = "".join(str(part.value) for part in getattr(spec, "values", ()) if isinstance(part, ast.Constant))
            return bool(_DIGITS_SPEC.search(text))
        case ast.Call(func=ast.Name(id="format"), args=[_, ast.Constant(value=str(text))]):
            return bool(_DIGITS_SPEC.search(text))
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
    checks = (too_long, too_small, repeated_class_names, not_simulated, printed_numbers)
    findings = [finding for check in checks for finding in check(root)]
    sys.stderr.write("".join(finding + "\n" for finding in findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
