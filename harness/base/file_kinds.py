"""Which kind of file it is: told by its first key."""

from __future__ import annotations

import difflib
from pathlib import Path

from harness.base import strict_yaml
from harness.base.findings import nearest
from harness.base.strict_yaml import Node
from harness.model.choices import FileKind
from harness.model.errors import InputError, Place


def kind_of(path: Path) -> FileKind:
    """The kind of a file; InputError when it is none of ours or not even YAML."""
    return kind_of_tree(strict_yaml.parse(strict_yaml.read_bytes(path), str(path)), str(path))


def kind_of_tree(tree: Node, file: str) -> FileKind:
    """The kind of a file that was read."""
    kinds = [kind.value for kind in FileKind]
    for key in tree.keys:
        if key in kinds:
            return FileKind(key)
        mark = tree.keys[key]
        remedy = nearest(key, kinds, listed="The first key is one of")
        raise InputError(f"the first key is {key!r}", place=Place(file, mark.line, mark.column), remedy=remedy)
    raise InputError("the file has no keys", place=Place(file, 1, 1), remedy=f"Begin with one of: {', '.join(kinds)}")


SAMPLES = ".samples.yaml"
"""End of the name of a file in which the monitor gathers samples: a part of a profile, to be pasted."""


def is_foreign(path: Path) -> bool:
    """Whether a file is YAML that has nothing to do with us: its first key is unlike ours, and none of it is one."""
    if path.name.endswith(SAMPLES):
        return True
    try:
        tree = strict_yaml.parse(strict_yaml.read_bytes(path), str(path))
    except InputError:
        return False
    kinds = [kind.value for kind in FileKind]
    first = next(iter(tree.keys), "")
    return not difflib.get_close_matches(first.lower(), kinds, n=1, cutoff=0.8) and not any(
        kind in tree.keys for kind in kinds
    )


def expect(kind: FileKind, tree: Node, file: str) -> None:
    """InputError when the file is of another kind."""
    actual = kind_of_tree(tree, file)
    if actual is not kind:
        mark = tree.keys[actual.value]
        what = f"this is a {actual.value} file, and a {kind.value} file is wanted"
        swapped = {actual, kind} == {FileKind.SCENARIO, FileKind.BENCH}
        remedy = "Swap the two files: harness run SCENARIO --bench BENCH" if swapped else "Check the path"
        raise InputError(what, place=Place(file, mark.line, mark.column), remedy=remedy)
