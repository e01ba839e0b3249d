"""Files that can be read only once, standard input and pipes, kept beside so that they can be read again."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.model.errors import HarnessError, InputError, InputProblems, Place

STDIN = "-"
STDIN_NAME = "<stdin>"


@dataclass(frozen=True, slots=True)
class Readable:
    """A file to read, and what a person calls it."""

    path: Path
    name: str


@contextmanager
def readable(written: str) -> Iterator[Readable]:
    """The file that a person named, `-` for standard input; a pipe is kept in a temporary file meanwhile."""
    path = Path(written)
    # Unlike those of Path, these say no of names that are too long and of folders that are closed to us.
    if written != STDIN and (os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path)):
        yield Readable(path, written)
        return
    import tempfile  # here, since it takes long to import and few need it

    with tempfile.TemporaryDirectory(prefix="harness-score-") as folder:
        kept = Path(folder) / "input"
        if written == STDIN:
            if sys.stdin is None:
                raise InputError("standard input is closed", remedy="Name a file")
            _keep(sys.stdin.buffer, kept, STDIN_NAME)
        else:
            try:
                stream = path.open("rb")
            except OSError as error:
                what = f"the file cannot be read: {error.strerror or error}"
                raise InputError(what, place=Place(written), remedy="Check the path and its rights") from error
            with stream:
                _keep(stream, kept, written)
        yield Readable(kept, STDIN_NAME if written == STDIN else written)


def refuse_overwriting(target: str, sources: Sequence[str]) -> None:
    """InputError when a file to write is one of those to read."""
    for source in sources:
        both = STDIN not in (source, target) and os.path.isfile(target) and os.path.exists(source)
        if both and os.path.samefile(source, target):
            raise InputError("this file is to be read and to be written", place=Place(target), remedy="Name another")


def is_one_place(target: str, other: str) -> bool:
    """Whether two outputs would be written over each other."""
    return target == other or (STDIN not in (target, other) and os.path.realpath(target) == os.path.realpath(other))


def _keep(stream: BinaryIO, path: Path, name: str) -> None:
    try:
        with path.open("wb") as copy:
            shutil.copyfileobj(stream, copy)
    except OSError as error:
        what = f"it cannot be kept in {path.parent.parent} meanwhile: {error.strerror or error}"
        raise HarnessError(what, place=Place(name), remedy="Make room there, or name a file") from error


def named(error: InputError, *files: Readable) -> InputError:
    """The error with the names that people know in place of those of temporary files."""
    names = {str(file.path): file.name for file in files}
    if isinstance(error, InputProblems):
        return InputProblems([named(problem, *files) for problem in error.problems])
    place = error.place
    if place is None or place.file not in names:
        return error
    return InputError(error.what, place=Place(names[place.file], place.line, place.column), remedy=error.remedy)
