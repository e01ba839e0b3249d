"""Where the reports of `harness score` go: lines for people, JSON, pages."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TextIO

from harness.cli.score_options import Shown
from harness.cli.streams import safe_stream
from harness.evaluate.scoring import Scoring
from harness.evaluate.system_comparison import Interval, SystemComparison
from harness.model.errors import HarnessError, Place
from harness.reports.transcripts import summary
from harness.reports.transcripts.cells import shown

NO_TERMINAL = (120, 24)
LEAST_WIDTH = 20
CHUNK_LINES = 500


def width() -> int:
    """Columns of the terminal; 120 where there is none."""
    return max(LEAST_WIDTH, shutil.get_terminal_size(NO_TERMINAL).columns)


def in_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, and nobody asked for none (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


def report(
    scoring: Scoring, interval: Interval | None, alignments: Shown | None, confused: int | None, *, colour: bool
) -> Iterator[str]:
    """The lines on one system; its summary comes last, where a terminal still shows it."""
    columns = width()
    if alignments is not None:
        from harness.reports.transcripts.alignments import lines as aligned

        for utterance in scoring.with_errors() if alignments is Shown.ERRORS else scoring.utterances():
            yield from aligned(utterance, columns, colour=colour)
            yield ""
    if confused is not None:
        from harness.evaluate.confusions import confusions
        from harness.reports.transcripts.confusions import lines as listed

        yield from listed(confusions(scoring), confused, columns)
        yield ""
    yield f"system: {shown(scoring.title, columns - 8)}"
    yield ""
    yield from summary.table(scoring, columns)
    yield ""
    yield from summary.notes(scoring, interval, columns)


def compared(
    scorings: Sequence[Scoring], intervals: Sequence[Interval | None], found: Sequence[SystemComparison]
) -> Iterator[str]:
    """The lines on all systems together."""
    from harness.reports.transcripts.comparison import lines

    return lines(scorings, intervals, found, width())


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines to standard output as they come; who stops reading, as `head` does, is no error."""
    with _to_reader() as stream:
        rest = iter(lines)
        while chunk := list(islice(rest, CHUNK_LINES)):
            stream.write("\n".join(chunk) + "\n")


def print_pieces(pieces: Iterable[str]) -> None:
    """Prints a text in pieces to standard output."""
    with _to_reader() as stream:
        stream.writelines(pieces)


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Puts a text into a file, whole or not at all (a pipe or a device takes it as it comes); HarnessError."""
    through = path.exists() and not path.is_file()
    part = path if through else path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="ascii") as stream:
            stream.writelines(pieces)
        if not through:
            part.replace(path)
    except OSError as error:
        raise HarnessError(
            f"cannot be written: {error.strerror or error}", place=Place(str(path)), remedy="Name another file"
        ) from error
    finally:
        if not through:
            part.unlink(missing_ok=True)


@contextmanager
def _to_reader() -> Iterator[TextIO]:
    stream = safe_stream(sys.stdout)
    try:
        yield stream
        stream.flush()
    except OSError as error:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the interpreter's last flush)
        if not isinstance(error, BrokenPipeError):
            what = f"standard output cannot be written: {error.strerror or error}"
            raise HarnessError(what, remedy="Make room, or send it elsewhere") from error
