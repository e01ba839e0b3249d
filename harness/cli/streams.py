"""Standard input and output, and the files that stand in their place: what is read once, and where results go."""

from __future__ import annotations

import codecs
import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from harness.base.text_table import shown, width_of
from harness.base.whole_file import WholeFile
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
    """The file that a person named, `-` for standard input; a pipe is kept in a temporary file meanwhile.

    InputError of the block names the file as the person did.
    """
    path = Path(written)
    # Unlike those of Path, these say no of names that are too long and of folders that are closed to us.
    if written != STDIN and (os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path)):
        with _naming(Readable(path, written)) as file:
            yield file
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
        with _naming(Readable(kept, STDIN_NAME if written == STDIN else written)) as file:
            yield file


@contextmanager
def _naming(file: Readable) -> Iterator[Readable]:
    try:
        yield file
    except InputError as error:
        found = _named(error, file)
        if found is error:
            raise
        raise found from error


def refuse_overwriting(target: str, sources: Sequence[str]) -> None:
    """InputError when a file to write is one of those to read."""
    for source in sources:
        both = STDIN not in (source, target) and os.path.isfile(target) and os.path.exists(source)
        if both and os.path.samefile(source, target):
            raise InputError("this file is to be read and to be written", place=Place(target), remedy="Name another")


def refuse_stdin_twice(files: Sequence[str]) -> None:
    """InputError: standard input can be read only once."""
    if files.count(STDIN) > 1:
        raise InputError("only one file can come from standard input", remedy="Name the others")


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


def _named(error: InputError, file: Readable) -> InputError:
    """The error with the name that people know in place of that of a temporary file."""
    if isinstance(error, InputProblems):
        problems = [_named(problem, file) for problem in error.problems]
        same = all(one is other for one, other in zip(problems, error.problems, strict=True))
        return error if same else InputProblems(problems)
    place = error.place
    if place is None or place.file != str(file.path) or place.file == file.name:
        return error
    return InputError(error.what, place=Place(file.name, place.line, place.column), remedy=error.remedy)


_DRAWN = {"─": "-", "│": "|", "┼": "+", "→": ">", "·": "-", "–": "-", "…": "~", "█": "#", "▏": "|"} | {
    sign: str(level) for level, sign in enumerate("▁▂▃▄▅▆▇", 1)
}
"""What we draw and write ourselves, one sign for one, for terminals that know ASCII alone."""
_LEGIBLE = "harness.legible"
NO_TERMINAL = (120, 24)
LEAST_WIDTH = 20
CHUNK_LINES = 500


def safe_stream(stream: TextIO) -> TextIO:
    """The stream, set so that a character that it cannot encode is drawn with others or escaped, not an error."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=_LEGIBLE)
    return stream


def standard_output() -> TextIO:
    """Made safe; HarnessError where it is closed."""
    if sys.stdout is None:
        raise HarnessError("standard output is closed", remedy="Leave it open, or send it to /dev/null")
    return safe_stream(sys.stdout)


class _Reader(io.RawIOBase):
    """Writes to a file descriptor, and discards everything once the reader has closed it, as `head` does.

    That is not an error: the command continues, and its exit status does not change.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._gone = False
        self.needed = False
        """Whether to raise BrokenPipeError, for a command that would otherwise never end."""

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, content: Any) -> int:
        if not self._gone:
            try:
                return os.write(self._descriptor, content)
            except BrokenPipeError:
                self._gone = True
                if self.needed:
                    raise
        return len(content)


_reader: _Reader | None = None


def write_all() -> None:
    """Makes standard output write everything or raise an error; a closed pipe is not an error.

    Python's unbuffered output (PYTHONUNBUFFERED) drops the rest silently when the disk is full.
    """
    global _reader
    if sys.stdout is None or (os.isatty(sys.stdout.fileno()) and not isinstance(sys.stdout.buffer, io.RawIOBase)):
        return
    _reader = _Reader(sys.stdout.fileno())
    buffered = isinstance(sys.stdout.buffer, io.BufferedIOBase)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_reader), sys.stdout.encoding, sys.stdout.errors, line_buffering=not buffered
    )


def demand_reader() -> None:
    """From now on a reader that has gone is a BrokenPipeError: for a command that would go on for ever."""
    if _reader is not None:
        _reader.needed = True


def _legible(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_DRAWN.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in signs), error.end


codecs.register_error(_LEGIBLE, _legible)


def width() -> int:
    """Columns of the terminal; 120 where there is none."""
    return max(LEAST_WIDTH, shutil.get_terminal_size(NO_TERMINAL).columns)


def in_colour(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that shows colours, and nobody asked for none (no-color.org)."""
    if stream is None:
        return False
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


def bold(line: str, colour: bool) -> str:
    """The line, in bold where there are colours."""
    return f"\x1b[1m{line}\x1b[0m" if colour else line


def heading(title: str, columns: int, colour: bool) -> str:
    """A line above all that is said of one of several systems."""
    text = f"── {shown(title, max(8, columns - 8))} "
    return bold(text + "─" * (columns - width_of(text)), colour)


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines to standard output as they come; a closed pipe (`head`) is not an error."""
    with _to_reader() as stream:
        rest = iter(lines)
        while chunk := list(islice(rest, CHUNK_LINES)):
            stream.write("\n".join(chunk) + "\n")


def print_pieces(pieces: Iterable[str]) -> None:
    """Prints a text in pieces to standard output."""
    with _to_reader() as stream:
        stream.writelines(pieces)


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Writes a text to a file, whole or not at all (to a pipe or device: piece by piece). HarnessError."""
    with WholeFile(str(path)) as file:
        for piece in pieces:
            file.write(piece.encode())
        file.keep()


def put(target: str, pieces: Iterable[str]) -> None:
    """Prints a text in pieces where the target is `-`; else see `write_pieces`."""
    if target == STDIN:
        print_pieces(pieces)
    else:
        write_pieces(Path(target), pieces)


@contextmanager
def _to_reader() -> Iterator[TextIO]:
    stream = standard_output()
    try:
        yield stream
        stream.flush()
    except OSError as error:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the interpreter's last flush)
        what = f"standard output cannot be written: {error.strerror or error}"
        raise HarnessError(what, remedy="Make room, or send it elsewhere") from error
