"""What a reader says of a file: (line, column, part of what is wrong) of each problem."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from harness.model.errors import InputError, InputProblems
from tests.files import file_with

Told = list[tuple[int, int, str]]
Read = TypeVar("Read")


def written(folder: Path, name: str, content: str | bytes) -> Path:
    """A file with that content, bytes as they are and text as UTF-8."""
    return file_with(folder / name, content if isinstance(content, bytes) else content.encode())


def problems_of(read: Callable[[Path], object], path: Path) -> list[InputError]:
    """The problems that reading raises, each with a remedy."""
    with pytest.raises(InputError) as raised:
        read(path)
    error = raised.value
    problems = list(error.problems) if isinstance(error, InputProblems) else [error]
    assert all(problem.place and problem.place.file == str(path) for problem in problems)
    return problems


def told(read: Callable[[Path], object], path: Path) -> Told:
    """Line, column and what is wrong, one for each problem."""
    return [
        (problem.place.line, problem.place.column, problem.what) for problem in problems_of(read, path) if problem.place
    ]


def assert_told(problems: Told, expected: Told) -> None:
    """As many problems, in the same places, that say what is wanted."""
    assert [problem[:2] for problem in problems] == [problem[:2] for problem in expected]
    for (_, _, message), (_, _, part) in zip(problems, expected, strict=True):
        assert part in message


def read_or_refused(read: Callable[[Path], Read], path: Path) -> Read | None:
    """What was read, or None where it was refused with the one error type; any other error is the test's failure."""
    try:
        return read(path)
    except InputError:
        return None
