"""Standard input and output, and the files that stand in their place: what is read once, and where results go."""

from __future__ import annotations

import codecs
import errno
import io
import os
import select
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from harness.base.progress import report_progress_to
from harness.base.text_file import refuse_endless
from harness.base.text_table import shown, width_of
from harness.base.whole_file import WholeFile
from harness.model.errors import HarnessError, InputError, InputProblems, Place
from harness.model.frozen import frozen

STREAM = "-"
"""What stands for standard input or output where a file is named."""
STDIN_NAME = "<stdin>"


@frozen
class InputFile:
    """A file to read, and what a person calls it."""

    path: Path
    name: str


@contextmanager
def readable(name: str) -> Iterator[InputFile]:
    """The file that a person named, `-` for standard input; a pipe is kept in a temporary file meanwhile.

    InputError of the block names the file as the person did.
    """
    path = Path(name)
    # Unlike the methods of Path, these return False for names that are too long, and in folders that we may not read.
    if name != STREAM and (os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path)):
        with _add_file_name(InputFile(path, name)) as file:
            yield file
        return
    import tempfile  # here, since it takes long to import and few need it

    with tempfile.TemporaryDirectory(prefix="harness-score-") as folder:
        copy_path = Path(folder) / "input"
        if name == STREAM:
            refuse_endless(0, STDIN_NAME)
            _copy_stream(sys.stdin.buffer, copy_path, STDIN_NAME)
        else:
            try:
                refuse_endless(path, name)
                stream = path.open("rb")
            except OSError as error:
                raise InputError(
                    f"the file cannot be read: {error.strerror or error}",
                    place=Place(name),
                    remedy="Check the path and its permissions",
                ) from error
            with stream:
                _copy_stream(stream, copy_path, name)
        with _add_file_name(InputFile(copy_path, STDIN_NAME if name == STREAM else name)) as file:
            yield file


@contextmanager
def _add_file_name(file: InputFile) -> Iterator[InputFile]:
    try:
        yield file
    except InputError as error:
        named_error = _name_file(error, file)
        if named_error is error:
            raise
        raise named_error from error


def refuse_overwriting(target: str, sources: Sequence[str]) -> None:
    """InputError when a file to write is one of those to read."""
    for source in sources:
        may_coincide = STREAM not in (source, target) and os.path.isfile(target) and os.path.exists(source)
        if may_coincide and os.path.samefile(source, target):
            raise InputError("this file is both an input and an output", place=Place(target), remedy="Name another")


def refuse_stdin_twice(files: Sequence[str]) -> None:
    """InputError: standard input can be read only once."""
    if files.count(STREAM) > 1:
        raise InputError("only one file can come from standard input", remedy="Name the others")


def is_one_place(target: str, other: str) -> bool:
    """Whether two outputs would be written over each other."""
    return target == other or (STREAM not in (target, other) and os.path.realpath(target) == os.path.realpath(other))


def _copy_stream(stream: BinaryIO, path: Path, name: str) -> None:
    try:
        with path.open("wb") as copy:
            shutil.copyfileobj(stream, copy)
    except OSError as error:
        raise HarnessError(
            f"the input cannot be buffered in {path.parent.parent}: {error.strerror or error}",
            place=Place(name),
            remedy="Free disk space there, or name a file",
        ) from error


def _name_file(error: InputError, file: InputFile) -> InputError:
    """The error, with the name of a temporary file replaced by the name that people know."""
    if isinstance(error, InputProblems):
        problems = [_name_file(problem, file) for problem in error.problems]
        unchanged = all(problem is other for problem, other in zip(problems, error.problems, strict=True))
        return error if unchanged else InputProblems(problems)
    place = error.place
    if place is None or place.file != str(file.path) or place.file == file.name:
        return error
    return InputError(error.what, place=Place(file.name, place.line, place.column), remedy=error.remedy)


_DRAWN = {"─": "-", "│": "|", "┼": "+", "→": ">", "·": "-", "–": "-", "…": "~", "█": "#", "▏": "|"} | {
    sign: str(level) for level, sign in enumerate("▁▂▃▄▅▆▇", 1)
}
"""Our own special characters → one ASCII character each, for terminals that can show only ASCII."""
_LEGIBLE = "harness.legible"
NO_TERMINAL = (120, 24)
MIN_WIDTH = 20
CHUNK_LINES = 500


def safe_stream(stream: TextIO) -> TextIO:
    """The stream, set so that a character that it cannot encode is drawn with others or escaped, not an error."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=_LEGIBLE)
    return stream


def standard_output() -> TextIO:
    """Made safe."""
    return safe_stream(sys.stdout)


class _Input(io.RawIOBase):
    """Standard input that is closed: nothing can be read from it."""

    def fileno(self) -> int:
        return 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        raise InputError("standard input is closed", remedy="Name a file, or keep standard input open")


class _Output(io.RawIOBase):
    """Writes to a file descriptor. A fault does not end the command: it continues, and the rest is dropped.

    A reader that has gone (`| head`, a terminal whose window was closed) is not even a fault.
    """

    def __init__(self, descriptor: int, *, is_open: bool) -> None:
        self._descriptor = descriptor
        self._is_open = is_open
        self._fault = None if is_open else HarnessError("standard output is closed", remedy="Redirect it to a file")
        self._is_dropped = False
        self.needed = False
        """Whether to raise the fault, or BrokenPipeError, for a command that would otherwise never end."""

    def fault(self) -> HarnessError | None:
        """Why part of the output is missing; None if all of it was written, or if its reader has gone."""
        return self._fault if self._is_dropped else None

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, content: Any) -> int:
        while self._is_open:
            try:
                return os.write(self._descriptor, content)
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError as error:
                self._is_open = False
                if error.errno not in _READER_GONE:
                    problem = f"standard output cannot be written: {error.strerror}"
                    self._fault = HarnessError(problem, remedy="Free disk space, or redirect it")
        dropped, self._is_dropped = self._is_dropped, True
        if self.needed and not dropped:
            raise self.fault() or BrokenPipeError()
        return len(content)


_READER_GONE = (errno.EPIPE, errno.EIO)
_output: _Output | None = None


def open_streams() -> None:
    """Makes the standard streams usable, whatever they are: a closed one is opened as /dev/null.

    So no other file takes its descriptor, and a child gets it. Python itself would drop the rest silently when the
    disk is full (PYTHONUNBUFFERED), and fail once more in its last flush.
    """
    global _output
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_Input()), "utf-8")
    _output = _Output(1, is_open=sys.stdout is not None)
    sys.stdout = _text(_output, sys.stdout)
    sys.stderr = _text(_Output(2, is_open=sys.stderr is not None), sys.stderr)


def _text(raw: _Output, before: TextIO | None) -> TextIO:
    encoding, errors, unbuffered = "utf-8", "strict", False
    if before is not None:
        encoding, errors = before.encoding, before.errors or errors
        unbuffered = isinstance(before.buffer, io.RawIOBase)
    by_line = unbuffered or raw.fileno() == 2 or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=by_line)


def output_fault() -> HarnessError | None:
    """Writes what is left. Why standard output is not whole; None where it is, or where nobody reads it."""
    sys.stdout.flush()
    return _output.fault() if _output is not None else None


def demand_reader() -> None:
    """From now on a reader that has gone is a BrokenPipeError: for a command that would go on for ever."""
    if _output is not None:
        _output.needed = True


def _legible(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_DRAWN.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in signs), error.end


codecs.register_error(_LEGIBLE, _legible)


def width() -> int:
    """Columns of the terminal; 120 where there is none."""
    return max(MIN_WIDTH, shutil.get_terminal_size(NO_TERMINAL).columns)


def in_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, and nobody asked for none (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


_CLEAR = "\r\x1b[K"
BETWEEN_DRAWINGS_S = 0.1


def on_terminal(stream: TextIO) -> bool:
    """Whether a line on this stream can be redrawn."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class RedrawnLine:
    """A line on standard error that is redrawn in place, if that is a terminal. Other lines appear above it."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._stream = safe_stream(sys.stderr)
        self._draws = on_terminal(self._stream) and not quiet
        self._last_text = ""

    def draw(self, text: str) -> None:
        if self._draws:
            self._last_text = shown(text, max(10, self._columns() - 1))
            self._write(_CLEAR + self._last_text)

    def above(self, line: str) -> None:
        self._write((_CLEAR if self._last_text else "") + line + "\n" + self._last_text)

    def clear(self) -> None:
        """Remove the line from the screen."""
        if self._last_text:
            self._write(_CLEAR)
        self._last_text = ""

    def _columns(self) -> int:
        """The width of the terminal of standard error, in columns.

        `shutil` would ask standard output, and say 80 if that is a file.
        """
        try:
            wide = int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stderr.fileno()).columns)
        except (OSError, ValueError):
            wide = 0
        return wide or shutil.get_terminal_size().columns

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


@contextmanager
def drawn_progress() -> Iterator[None]:
    """Draws a line about the work in the block (see harness.base.progress), on a terminal; print after the block.

    It is drawn by the work itself: no thread runs beside it.
    """
    line = RedrawnLine()
    next_s = 0.0

    def draw(task: str, done: int, total: int) -> None:
        nonlocal next_s
        if (now_s := time.monotonic()) >= next_s or not done:
            next_s = now_s + BETWEEN_DRAWINGS_S
            count = f": {done:,}" if done else " …"
            line.draw(f"{task}: {done:,} of {total:,}" if total else f"{task}{count}")

    if not on_terminal(sys.stderr):
        yield
        return
    with report_progress_to(draw):
        try:
            yield
        finally:
            line.clear()


def bold(line: str, colour: bool) -> str:
    """The line, in bold where there are colours."""
    return f"\x1b[1m{line}\x1b[0m" if colour else line


def heading(title: str, columns: int, colour: bool) -> str:
    """A line above all that is said of one of several systems."""
    text = f"── {shown(title, max(8, columns - 8))} "
    return bold(text + "─" * (columns - width_of(text)), colour)


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines to standard output as they come."""
    stream = standard_output()
    rest = iter(lines)
    while chunk := list(islice(rest, CHUNK_LINES)):
        stream.write("\n".join(chunk) + "\n")
    stream.flush()


def print_pieces(pieces: Iterable[str]) -> None:
    """Prints a text in pieces to standard output."""
    stream = standard_output()
    stream.writelines(pieces)
    stream.flush()


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Writes a text to a file, whole or not at all (to a pipe or device: piece by piece). HarnessError."""
    with WholeFile(str(path)) as file:
        for piece in pieces:
            file.write(piece.encode())
        file.keep()


def put(target: str, pieces: Iterable[str]) -> None:
    """Prints a text in pieces where the target is `-`; else see `write_pieces`."""
    if target == STREAM:
        print_pieces(pieces)
    else:
        write_pieces(Path(target), pieces)
