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

from harness.base.foreign import plain_text
from harness.base.progress import report_progress_to
from harness.base.text_file import refuse_endless
from harness.base.text_table import shown
from harness.base.whole_file import WholeFile
from harness.model.errors import HarnessError, InputError, InputProblems, Place
from harness.model.frozen import frozen

STREAM = "-"
"""What stands for standard input or output where a file is named."""
STDIN_NAME = "<stdin>"
"""What errors call standard input."""


@frozen
class InputFile:
    """A file to read, and what a person calls it."""

    path: Path
    name: str


@contextmanager
def open_input(name: str) -> Iterator[InputFile]:
    """The file that a person named; STREAM for standard input. That and a pipe are copied to a temporary file.

    An InputError of the block names the file as the person did. Raises HarnessError if there is no room for the copy.
    """
    path = Path(name)
    # Unlike the methods of Path, these return False for names that are too long, and in folders that we may not read.
    # A file that does not exist is left to the reader, which reports it.
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
    """Yields the file. An InputError of the block that names a temporary file gets the name that people know."""
    try:
        yield file
    except InputError as error:
        named_error = _rename_file(error, file)
        if named_error is error:
            raise
        raise named_error from error


def refuse_overwriting(target: str, sources: Sequence[str]) -> None:
    """Raises InputError if a file to write is one of those to read."""
    for source in sources:
        may_coincide = STREAM not in (source, target) and os.path.isfile(target) and os.path.exists(source)
        if may_coincide and os.path.samefile(source, target):
            raise InputError(
                "this file is both an input and an output", place=Place(target), remedy="Choose another output"
            )


def refuse_stdin_twice(files: Sequence[str]) -> None:
    """Raises InputError if more than one of the files is standard input, which can be read only once."""
    if files.count(STREAM) > 1:
        raise InputError("only one file can come from standard input", remedy="Pass files for the other inputs")


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
            remedy="Free disk space in that folder, or pass a file as input",
        ) from error


def _rename_file(error: InputError, file: InputFile) -> InputError:
    """The error with `file.name` in place of `file.path`; the same error if it does not name that path."""
    if isinstance(error, InputProblems):
        problems = [_rename_file(problem, file) for problem in error.problems]
        is_unchanged = all(problem is other for problem, other in zip(problems, error.problems, strict=True))
        return error if is_unchanged else InputProblems(problems)
    place = error.place
    if place is None or place.file != str(file.path) or place.file == file.name:
        return error
    return InputError(error.what, place=Place(file.name, place.line, place.column), remedy=error.remedy)


_ASCII_CHARACTERS = {"─": "-", "│": "|", "┼": "+", "→": ">", "·": "-", "–": "-", "…": "~", "█": "#", "▏": "|"} | {
    bar: str(level) for level, bar in enumerate("▁▂▃▄▅▆▇", 1)
}
"""Our own special characters → one ASCII character each, for terminals that can show only ASCII."""
_ERROR_HANDLER = "harness.legible"
"""The name of `_replace_unencodable` among the error handlers of codecs."""
NO_TERMINAL = (120, 24)
"""Columns and lines that are assumed if there is no terminal."""
MIN_WIDTH = 20
CHUNK_LINES = 500
"""Lines that are printed in one write."""
MAX_PRINTED_CHARS = 100_000
"""Limit on a line of a file that is printed on a terminal."""


def safe_stream(stream: TextIO) -> TextIO:
    """The stream, set so that a character that it cannot encode is replaced or escaped, and is not an error."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=_ERROR_HANDLER)
    return stream


def standard_output() -> TextIO:
    """Standard output as a `safe_stream`."""
    return safe_stream(sys.stdout)


class _Input(io.RawIOBase):
    """Reads standard input. Raises InputError if it is closed.

    It waits in steps. Python handles a signal that comes right before a read only after that read, which may never end.
    """

    def __init__(self, *, is_open: bool) -> None:
        self._is_open = is_open

    def fileno(self) -> int:
        return 0

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(0)

    def readinto(self, buffer: Any) -> int:
        if not self._is_open:
            raise InputError("standard input is closed", remedy="Pass a file, or keep standard input open")
        while not select.select([0], [], [], _INPUT_STEP_S)[0]:
            pass
        return os.readv(0, [buffer])


class _Output(io.RawIOBase):
    """Writes to a file descriptor. After a fault, the command continues and its further output is dropped.

    A reader that has gone (`| head`, a terminal whose window was closed) is not even a fault.
    """

    def __init__(self, descriptor: int, *, is_open: bool) -> None:
        self._descriptor = descriptor
        self._is_open = is_open
        self._fault = (
            None if is_open else HarnessError("standard output is closed", remedy="Redirect standard output to a file")
        )
        self._is_dropped = False
        self.must_be_read = False
        """Whether the first write that is dropped raises the fault, or BrokenPipeError if the reader has gone."""

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
        """Writes what the descriptor takes, and waits for a slow reader. Returns the number of bytes, also of dropped
        ones."""
        while self._is_open:
            try:
                return os.write(self._descriptor, content)
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError as error:
                self._is_open = False
                if error.errno not in _READER_GONE:
                    problem = f"standard output cannot be written: {error.strerror}"
                    self._fault = HarnessError(problem, remedy="Free disk space, or redirect standard output")
        is_first_drop = not self._is_dropped
        self._is_dropped = True
        if self.must_be_read and is_first_drop:
            raise self.fault() or BrokenPipeError()
        return len(content)


_INPUT_STEP_S = 1.0
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
    sys.stdin = io.TextIOWrapper(io.BufferedReader(_Input(is_open=sys.stdin is not None)), *_encoding_of(sys.stdin))
    _output = _Output(1, is_open=sys.stdout is not None)
    sys.stdout = _text_stream(_output, sys.stdout)
    sys.stderr = _text_stream(_Output(2, is_open=sys.stderr is not None), sys.stderr)


def _text_stream(raw: _Output, original: TextIO | None) -> TextIO:
    """A stream of text over a descriptor, with the encoding and buffering of the original one."""
    unbuffered = original is not None and isinstance(original.buffer, io.RawIOBase)
    by_line = unbuffered or raw.fileno() == 2 or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), *_encoding_of(original), line_buffering=by_line)


def _encoding_of(stream: TextIO | None) -> tuple[str, str]:
    """The encoding of a stream, and its treatment of errors; the usual ones if it is closed."""
    return ("utf-8", "strict") if stream is None else (stream.encoding, stream.errors or "strict")


def output_fault() -> HarnessError | None:
    """Writes the rest of standard output. Returns why part of it is missing; None if nothing is, or nobody reads it."""
    sys.stdout.flush()
    return _output.fault() if _output is not None else None


def demand_reader() -> None:
    """From now on, output without a reader raises BrokenPipeError, to end a command that would go on for ever."""
    if _output is not None:
        _output.must_be_read = True


def _replace_unencodable(error: UnicodeError) -> tuple[str | bytes, int]:
    """An error handler for codecs: our special characters become ASCII ones, and all others are escaped."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    replacements = [
        _ASCII_CHARACTERS.get(character) or character.encode("ascii", "backslashreplace").decode()
        for character in error.object[error.start : error.end]
    ]
    return "".join(replacements), error.end


codecs.register_error(_ERROR_HANDLER, _replace_unencodable)


def width() -> int:
    """Columns of the terminal, at least MIN_WIDTH; 120 if there is none."""
    return max(MIN_WIDTH, shutil.get_terminal_size(NO_TERMINAL).columns)


def uses_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, and the user has not switched them off (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


_CLEAR = "\r\x1b[K"
MIN_REDRAW_INTERVAL_S = 0.1


def can_redraw(stream: TextIO) -> bool:
    """Whether a line on this stream can be redrawn."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class RedrawnLine:
    """A line on standard error that is redrawn in place, if that is a terminal. Other lines appear above it."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._stream = safe_stream(sys.stderr)
        self._draws = can_redraw(self._stream) and not quiet
        self._last_text = ""

    def draw(self, text: str) -> None:
        """Replaces the line, cut to the width of the terminal. Does nothing if it is not a terminal, or when quiet."""
        if self._draws:
            self._last_text = shown(text, max(10, self._columns() - 1))
            self._write(_CLEAR + self._last_text)

    def above(self, line: str) -> None:
        """Prints a line above the redrawn one, in any case."""
        self._write((_CLEAR if self._last_text else "") + line + "\n" + self._last_text)

    def clear(self) -> None:
        """Removes the line from the screen."""
        if self._last_text:
            self._write(_CLEAR)
        self._last_text = ""

    def _columns(self) -> int:
        """The width of the terminal of standard error, in columns.

        `shutil` would ask standard output, and return 80 if that is a file.
        """
        try:
            columns = int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stderr.fileno()).columns)
        except (OSError, ValueError):
            columns = 0
        return columns or shutil.get_terminal_size().columns

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


@contextmanager
def drawn_progress() -> Iterator[None]:
    """Draws a line about the work in the block (see harness.base.progress), on a terminal. Print after the block.

    The line is drawn by the work itself, in its thread.
    """
    line = RedrawnLine()
    next_draw_s = 0.0

    def draw(task: str, done: int, total: int) -> None:
        nonlocal next_draw_s
        now_s = time.monotonic()
        if now_s < next_draw_s and done:
            return
        next_draw_s = now_s + MIN_REDRAW_INTERVAL_S
        if total:
            line.draw(f"{task}: {done:,} of {total:,}")
        else:
            line.draw(f"{task}: {done:,}" if done else f"{task} …")

    if not can_redraw(sys.stderr):
        yield
        return
    with report_progress_to(draw):
        try:
            yield
        finally:
            line.clear()


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines to standard output as they come."""
    stream = standard_output()
    remaining_lines = iter(lines)
    while chunk := list(islice(remaining_lines, CHUNK_LINES)):
        stream.write("\n".join(chunk) + "\n")
    stream.flush()


def print_pieces(pieces: Iterable[str]) -> None:
    """Prints a text in pieces to standard output."""
    stream = standard_output()
    stream.writelines(pieces)
    stream.flush()


def print_file(content: bytes) -> None:
    """Prints bytes unchanged to a file or pipe, and with escaped control characters to a terminal."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    for line in content.decode("utf-8").split("\n")[:-1]:
        standard_output().write(plain_text(line, MAX_PRINTED_CHARS) + "\n")


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Writes a text to a file, completely or not at all; to a pipe or device piece by piece. Raises HarnessError."""
    with WholeFile(str(path)) as file:
        for piece in pieces:
            file.write(piece.encode())
        file.keep()


def write_output(target: str, pieces: Iterable[str]) -> None:
    """Prints a text in pieces if the target is STREAM; otherwise writes it to that file, see `write_pieces`."""
    if target == STREAM:
        print_pieces(pieces)
    else:
        write_pieces(Path(target), pieces)
