"""Files and folders that come about whole or not at all, whatever ends the program meanwhile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from harness.model.errors import HarnessError, Place


def part_name(target: Path) -> Path:
    """A name beside the target for what is being made; no two writers on any machine share one."""
    return target.with_name(f".{target.name[:60]}.{os.urandom(8).hex()}.part")


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """The name under which a file or folder is made, to be renamed; what still stands there at the end goes.

    It is made inside the `with`, never before: a signal between making it and entering its clean-up would leave it.
    """
    part = part_name(target)
    try:
        yield part
    finally:
        remove(part)


def remove(part: Path) -> None:
    """Removes a file or a folder if there is one."""
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)


class WholeFile:
    """Bytes that become the file of this name with `keep`; without it, all is as it was.

    What is no ordinary file, such as /dev/stdout or a named pipe, is written as it comes. HarnessError when the file
    cannot be written. The first write makes the file (see `unfinished`).
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._path = Path(name)
        self._part: Path | None = None
        self._file: BinaryIO | None = None

    def __enter__(self) -> WholeFile:
        return self

    def write(self, content: bytes) -> None:
        try:
            self._opened().write(content)
        except (OSError, ValueError, RuntimeError) as error:  # the last of links that lead in a circle
            raise self._not_written(error) from error

    def keep(self) -> None:
        """Puts the file in its place, with the rights of the one before or those of a new file."""
        try:
            self._opened().close()
            if self._part is not None:
                if self._path.exists():
                    self._part.chmod(self._path.stat().st_mode & 0o7777)
                os.replace(self._part, self._path)
                self._part = None
        except (OSError, ValueError, RuntimeError) as error:
            raise self._not_written(error) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._file is not None:
                self._file.close()
        except OSError as failed:
            if error is None:
                raise self._not_written(failed) from failed
        finally:
            if self._part is not None:
                self._part.unlink(missing_ok=True)

    def _opened(self) -> BinaryIO:
        if self._file is None:
            if self._path.exists() and not self._path.is_file():
                self._file = open(self._path, "wb")  # noqa: SIM115 (closed by __exit__)
            else:
                self._path = self._path.resolve()  # a link stays, and what it means is written
                self._part = part_name(self._path)
                self._file = open(self._part, "xb")  # noqa: SIM115
        return self._file

    def _not_written(self, error: OSError | ValueError | RuntimeError) -> HarnessError:
        why = getattr(error, "strerror", None) or error
        return HarnessError(f"the file cannot be written: {why}", place=Place(self._name), remedy="Name another file")
