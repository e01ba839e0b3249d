"""Counts the surfaces of harness/, from the syntax tree: files that render results for people, and comparators.

- A file renders results if it is in a room of RESULTS, or imports from one, and makes text for people. It does so if it
  calls one of LAYOUTS, or defines a function that returns lines (`Iterator[str]`) or cells (`list[list[str]]`; see
  RENDERED). Rooms below the results (BELOW) do not count.
- A comparator answers "is B worse than A?". It calls a test or an interval of a difference (TESTS). The rooms
  statistics and wake, which have the tests and the pairs, do not count.

Run by hand: `python setup/surfaces.py [--list] [FOLDER]`, FOLDER with a harness/ (default: this tree).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

RESULTS = (
    "harness.annotation",
    "harness.offline",
    "harness.rating",
    "harness.report",
    "harness.session.figures",
    "harness.session.summary",
    "harness.session.wording",
    "harness.statistics",
    "harness.transcripts",
    "harness.understanding",
    "harness.wake",
)
BELOW = ("base", "devices", "engines", "model", "scenario", "sound", "statistics")
RENDERED = {
    "Iterable[str]",
    "Iterator[str]",
    "Iterator[Sequence[str]]",
    "Iterator[list[str]]",
    "Iterator[tuple[str, ...]]",
    "Sequence[Sequence[str]]",
    "list[list[str]]",
    "list[tuple[str, ...]]",
}
"""Types that a function which renders results returns."""
LAYOUTS = {"Table", "filled_page", "note", "text_table", "write_filled_page"}
TESTS = {
    "holm",
    "matched_pairs",
    "paired_shift",
    "poisson_rates",
    "unpaired_rate_difference",
    "share_difference",
    "unpaired_share_difference",
    "signed_ranks",
    "stratified_difference",
    "swap_test",
    "joint_swap_test",
    "unpaired_shift",
    "wer_difference",
    "unpaired_wer_difference",
}
WITHOUT_COMPARATORS = ("statistics", "wake")


def _imported(tree: ast.Module) -> Iterator[str]:
    return (node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)


def _called(tree: ast.Module) -> set[str]:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {call.attr if isinstance(call, ast.Attribute) else ast.unparse(call) for call in calls}


def renders_results(module: str, tree: ast.Module) -> bool:
    """module: its full name."""
    if module.split(".")[1] in BELOW or not any(name.startswith(RESULTS) for name in (module, *_imported(tree))):
        return False
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    returned = {ast.unparse(function.returns) for function in functions if function.returns is not None}
    return bool(returned & RENDERED or _called(tree) & LAYOUTS)


def compares(module: str, tree: ast.Module) -> bool:
    return module.split(".")[1] not in WITHOUT_COMPARATORS and bool(_called(tree) & TESTS)


def surfaces(root: Path, is_surface: Callable[[str, ast.Module], bool]) -> dict[str, int]:
    """The number of lines of each file that is one, by its path below root."""
    lines_by_path = {}
    for path in sorted((root / "harness").rglob("*.py")):
        content = path.read_text(encoding="utf-8")
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        if is_surface(module, ast.parse(content)):
            lines_by_path[str(path.relative_to(root))] = len(content.splitlines())
    return lines_by_path


def lines(root: Path, *, listed: bool = False) -> Iterator[str]:
    """A line for each kind of surface; with `listed` the files of each below it."""
    for kind, is_surface in (("files that render results", renders_results), ("comparators", compares)):
        lines_by_path = surfaces(root, is_surface)
        yield f"{kind}: {len(lines_by_path)}, {sum(lines_by_path.values())} lines"
        if listed:
            yield from (f"  {count:4}  {path}" for path, count in lines_by_path.items())


def main(arguments: Iterable[str]) -> int:
    folders = [Path(argument) for argument in arguments if argument != "--list"]
    root = folders[0] if folders else Path(__file__).resolve().parent.parent
    sys.stdout.write("".join(f"{line}\n" for line in lines(root, listed="--list" in arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
