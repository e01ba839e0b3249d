"""Where the reports of `harness score` go: lines for people, JSON, pages."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from harness.base.cells import shown, width_of
from harness.base.whole_file import WholeFile
from harness.cli.score_options import Shown
from harness.cli.streams import standard_output
from harness.model.errors import HarnessError

if TYPE_CHECKING:
    from harness.transcripts.groups import GroupedComparison, GroupFigures, Interval, SystemComparison
    from harness.transcripts.scoring import Scoring

NO_TERMINAL = (120, 24)
LEAST_WIDTH = 20
CHUNK_LINES = 500


def width() -> int:
    """Columns of the terminal; 120 where there is none."""
    return max(LEAST_WIDTH, shutil.get_terminal_size(NO_TERMINAL).columns)


def in_colour(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that shows colours, and nobody asked for none (no-color.org)."""
    if stream is None:
        return False
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


def report(
    scoring: Scoring,
    interval: Interval | None,
    groups: GroupFigures | None,
    alignments: Shown | None,
    confused: int | None,
    *,
    colour: bool,
) -> Iterator[str]:
    """The lines on one system; its summary and groups come last, where a terminal still shows them."""
    from harness.transcripts.reports import summary

    columns = width()
    if alignments is not None:
        from harness.transcripts.reports.alignments import lines as aligned

        for utterance in scoring.with_errors() if alignments is Shown.ERRORS else scoring.utterances():
            yield from aligned(utterance, columns, colour=colour)
            yield ""
    if confused is not None:
        from harness.transcripts.reports.confusions import lines as listed
        from harness.transcripts.scoring import confusions

        yield from listed(confusions(scoring), confused, columns)
        yield ""
    yield _marked(f"system: {shown(scoring.title, columns - 8)}", colour)
    yield ""
    yield from summary.table(scoring, columns)
    yield ""
    for line in summary.notes(scoring, interval, columns):
        yield _marked(line, colour and line.startswith(summary.WER))
    if groups is not None:
        from harness.transcripts.reports.groups import lines as grouped

        yield ""
        yield from grouped(groups, columns)


def heading(scoring: Scoring, *, colour: bool) -> str:
    """A line above all that is said of one of several systems."""
    columns = width()
    title = f"── {shown(scoring.title, max(8, columns - 8))} "
    return _marked(title + "─" * (columns - width_of(title)), colour)


def _marked(line: str, colour: bool) -> str:
    return f"\x1b[1m{line}\x1b[0m" if colour else line


def compared(
    scorings: Sequence[Scoring],
    intervals: Sequence[Interval | None],
    found: Sequence[SystemComparison],
    by_groups: Sequence[Sequence[GroupedComparison]],
) -> Iterator[str]:
    """The lines on all systems together."""
    from harness.transcripts.reports.comparison import lines

    return lines(scorings, intervals, found, width(), by_groups)


def warn_of_other_ids(hypothesis: str, said: str, reference: str, of: str) -> None:
    """Two files of which no ids pair are scored, but most likely of other utterances, or with ids spelt otherwise."""
    here, there = f"{hypothesis} has {said}", f"{reference} has {of}"
    click.echo(f"harness: no hypothesis belongs to a reference: {shown(here)}, {shown(there)}", err=True)


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
    """Puts a text in ASCII into a file, whole or not at all (a pipe or a device takes it as it comes); HarnessError."""
    with WholeFile(str(path)) as file:
        for piece in pieces:
            file.write(piece.encode("ascii"))
        file.keep()


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
