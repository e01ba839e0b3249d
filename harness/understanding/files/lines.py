"""The lines of a file of any size, numbered; what is no text in them is gathered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.base.line_stream import fault_in, line_blocks, too_long
from harness.base.problems import Problems
from harness.model.errors import InputError, Place

_ENCODING = "--encoding"
_SAVE = "Save the file as UTF-8"


def numbered_lines(path: Path, name: str, problems: Problems) -> Iterator[str | None]:
    """The lines without their ends, in order from the first; None for one that is no text, which `problems` takes.

    name: what a person calls the file. InputError when it cannot be read.
    """
    place = Place(name)
    try:
        if path.is_dir():
            raise InputError("this is a folder, not a file", place=place, remedy="Name a file")
        with path.open("rb") as stream:
            for block in line_blocks(stream.read, name):
                if not block.faulty and not block.cut:
                    yield from block.lines
                    continue
                for number, line in enumerate(block.lines, block.first):
                    at = Place(name, number)
                    fault = too_long(at) if block.cut else fault_in(line, at, "utf-8")
                    if fault is None:
                        yield line
                    else:
                        problems.take(as_utf_8(fault))
                        yield None
    except FileNotFoundError as error:
        raise InputError("there is no such file", place=place, remedy="Check the path") from error
    except (OSError, ValueError) as error:
        what = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(what, place=place, remedy="Check the path and its rights") from error


def as_utf_8(fault: InputError) -> InputError:
    """A fault with a remedy that holds where nothing says an encoding."""
    return InputError(fault.what, place=fault.place, remedy=_SAVE) if _ENCODING in fault.remedy else fault
