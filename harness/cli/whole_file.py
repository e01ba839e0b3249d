"""A file that is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from harness.model.errors import HarnessError, Place


class WholeFile:
    """Bytes that become the file of this name with `keep`; without it, all is as it was.

    What is no ordinary file, such as /dev/stdout or a named pipe, is written as it comes. HarnessError when the file
    cannot be written.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._path = Path(name)
        self._temporary: Path | None = None
        self._file: BinaryIO | None = None

    def __enter__(self) -> WholeFile:
        import tempfile  # here, since it takes long to import and many only print

        try:
            if self._path.exists() and not self._path.is_file():
                self._file = open(self._path, "wb")
            else:
                self._path = self._path.resolve()  # a link stays, and what it means is written
                prefix = f".{self._path.name[:60]}."
                descriptor, temporary = tempfile.mkstemp(prefix=prefix, suffix=".tmp", dir=self._path.parent)
                self._temporary = Path(temporary)
                self._file = os.fdopen(descriptor, "wb")
        except (OSError, ValueError, RuntimeError) as error:  # the last of links that lead in a circle
            raise self._not_written(error) from error
        return self

    def write(self, content: bytes) -> None:
        assert self._file is not None
        try:
            self._file.write(content)
        except OSError as error:
            raise self._not_written(error) from error

    def keep(self) -> None:
        """Puts the file in its place, with the rights of the one before or those of a new file."""
        assert self._file is not None
        try:
            self._file.close()
            if self._temporary is not None:
                self._temporary.chmod(self._path.stat().st_mode & 0o7777 if self._path.exists() else 0o666 & ~_umask())
                os.replace(self._temporary, self._path)
                self._temporary = None
        except OSError as error:
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
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)

    def _not_written(self, error: OSError | ValueError | RuntimeError) -> HarnessError:
        why = getattr(error, "strerror", None) or error
        return HarnessError(f"the file cannot be written: {why}", place=Place(self._name), remedy="Name another file")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
