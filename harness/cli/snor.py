"""`harness score snor`: .sro transcriptions to Lexical SNOR, Expanded SNOR or .snr, as a filter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.text_file import checked_encoding, is_comment, refuse_endless
from harness.base.whole_file import WholeFile
from harness.cli.options import argument, flag, option, output_option, verb
from harness.cli.streams import STDIN_NAME, STREAM, demand_reader, is_one_place, refuse_overwriting
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.numbers import counted
from harness.transcripts.snor import SnorForm, homophone

if TYPE_CHECKING:
    from harness.transcripts.files.sro import ConvertedBlock, SeenIds

EXIT_PROBLEMS = 2  # The same status as for wrong usage and unreadable files.
READER_GONE = 141  # The status that shells report when the reader of a pipe has gone.
MAX_LISTED = 50
"""An input file's problems beyond this number are counted only."""
MAX_MESSAGE_CHARS = 2000
MAX_ESCAPE_CHARS = len(r"\U0001f600")


@verb("snor")
def command(
    *,
    files: tuple[str, ...] = argument("[FILE]..."),
    form: str = option(
        "Output format. lsn: Lexical SNOR, for scoring. esn: Expanded SNOR, for diagnostics. snr: the older .snr.",
        "--output-format",
        former=("--to",),
        required=True,
        type=click.Choice([form.value for form in SnorForm]),
    ),
    output: str = output_option(
        "Output file; if there is any error, nothing is written.",
        type=str,
        metavar="FILE",
        default=STREAM,
        show_default="-, standard output",
    ),
    homophones: str | None = option(
        "With --output-format esn: write the sorted homophone pairs W <W> here, each once.", metavar="FILE", writes=True
    ),
    encoding: str = option("File encoding: latin-1, cp1252, utf-16, …", default="utf-8"),
    place_edits: bool = flag("With --output-format snr: move the words of (n words) to their marker (n)."),
    repeated_ids: bool = flag("Allow an id to occur more than once. Uses less memory."),
) -> None:
    """Convert .sro transcriptions to SNOR, line by line.

    Reads standard input if FILE is missing or -. Output is UTF-8. Faulty lines are left out, and reported on
    standard error as file:line:column. The files of --output and --homophones are then not written.

    Exit status: 0 done · 2 the input has errors · 3 the output cannot be written ·
    141 its reader has gone.
    """
    from harness.transcripts.files.sro import SeenIds

    target_form = SnorForm(form)
    names = files or (STREAM,)
    _check_options(target_form, names, output, homophones, place_edits=place_edits)
    conversion = _Conversion(
        target_form,
        checked_encoding(encoding),
        place_edits,
        seen_ids=None if repeated_ids else SeenIds(),
        homophones=None if homophones is None else set(),
    )
    try:
        # Leaving the block without keep(), also by sys.exit, deletes both new files. Until then an input file is
        # unchanged, so that --output may name it.
        with ExitStack() as stack:
            output_file = None if output == STREAM else stack.enter_context(WholeFile(output))
            homophone_file = None if homophones in (None, STREAM) else stack.enter_context(WholeFile(str(homophones)))
            if STREAM in names:
                demand_reader()
            write = _stdout_writer() if output_file is None else output_file.write
            problem_counts = [conversion.convert(name, write) for name in names]
            if any(problem_counts):
                _print_summary(problem_counts, [target for target in (output, homophones) if target])
                sys.exit(EXIT_PROBLEMS)
            if conversion.homophones is not None:
                write = _stdout_writer() if homophone_file is None else homophone_file.write
                pairs = sorted((homophone(word), word) for word in conversion.homophones)
                write("".join(f"{spoken} {word}\n" for spoken, word in pairs).encode())
            for whole_file in (output_file, homophone_file):
                if whole_file is not None:
                    whole_file.keep()
    except BrokenPipeError:
        sys.exit(READER_GONE)


def _check_options(
    form: SnorForm, names: Sequence[str], output: str, homophones: str | None, *, place_edits: bool
) -> None:
    """Raises InputError for options that do not fit the form, and for files that would be written over each other."""
    if homophones is not None:
        if form is not SnorForm.EXPANDED:
            raise InputError(
                "--homophones applies only to Expanded SNOR", remedy="Use --output-format esn, or remove --homophones"
            )
        if is_one_place(homophones, output):
            raise InputError("--output and --homophones name the same file", remedy="Choose two different files")
        refuse_overwriting(homophones, names)
    if place_edits and form is not SnorForm.SNR:
        raise InputError(
            "--place-edits applies only to .snr", remedy="Use --output-format snr, or remove --place-edits"
        )


def _print_summary(problem_counts: Sequence[int], targets: Sequence[str]) -> None:
    """Prints how many problems there are in how many files, and which of the targets are not written."""
    faulty_count = sum(count > 0 for count in problem_counts)
    summary = f"{counted(sum(problem_counts), 'problem')} in {counted(faulty_count, 'file')}"
    unwritten = [target for target in targets if target != STREAM]
    _print_error(f"{summary}; not written: {', '.join(unwritten)}" if unwritten else summary)


@frozen
class _Conversion:
    """What is the same for all files of a conversion.

    - seen_ids: the ids so far; None if an id may be repeated.
    - homophones: the words so far that are homophones; None if they are not collected.
    """

    form: SnorForm
    encoding: str
    place_edits: bool
    seen_ids: SeenIds | None
    homophones: set[str] | None

    def convert(self, name: str, write: Callable[[bytes], object]) -> int:
        """Converts a file and returns its number of problems. Prints the first MAX_LISTED as they occur."""
        shown_name = STDIN_NAME if name == STREAM else name
        problem_count = 0
        for block in self._blocks(name, shown_name):
            if block.lines:
                write(("\n".join(block.lines) + "\n").encode())
            if self.homophones is not None:
                self._add_homophones(block)
            for problem in block.problems[: max(0, MAX_LISTED - problem_count)]:
                _print_error(str(problem))
            problem_count += len(block.problems)
        if problem_count > MAX_LISTED:
            _print_error(f"{shown_name}: and {problem_count - MAX_LISTED} more")
        return problem_count

    def _blocks(self, name: str, shown_name: str) -> Iterator[ConvertedBlock]:
        """The converted blocks of a file; one with the error as its problem if the file cannot be read."""
        from harness.transcripts.files.sro import ConvertedBlock, converted_blocks

        try:
            with _reader(name) as read:
                yield from converted_blocks(
                    read,
                    shown_name,
                    self.form,
                    encoding=self.encoding,
                    place_edits=self.place_edits,
                    seen_ids=self.seen_ids,
                )
        except InputError as error:
            yield ConvertedBlock([], [error])

    def _add_homophones(self, block: ConvertedBlock) -> None:
        assert self.homophones is not None
        for line in block.lines:
            # Homophones are marked as <word>, so a line without "<" has none. Comments are kept as they are.
            if "<" in line and not (block.commented and is_comment(line)):
                self.homophones.update(word for word in line.split(" ") if homophone(word) != word)


@contextmanager
def _reader(name: str) -> Iterator[Callable[[int], bytes]]:
    """A function that reads up to a number of bytes of a file.

    Raises InputError if it cannot be opened, or never ends.
    """
    if name == STREAM:
        refuse_endless(0, STDIN_NAME)
        # read1 returns what has arrived, so that a pipe is converted while it is written. BinaryIO does not declare it.
        yield getattr(sys.stdin.buffer, "read1")  # noqa: B009
        return
    try:
        file = open(name, "rb", buffering=0)  # noqa: SIM115 - closed below; only opening it may fail here
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"the file cannot be read: {why}", place=Place(name), remedy="Check the path") from error
    with file:
        refuse_endless(file.fileno(), name)
        yield file.read


def _stdout_writer() -> Callable[[bytes], object]:
    """A function that writes to standard output, and flushes, so that a reader gets each block without delay."""
    stream = sys.stdout.buffer
    terminal = sys.stdout.isatty()

    def write(content: bytes) -> None:
        if terminal:
            lines = content.decode().split("\n")
            # The limit is so high that no line is cut, but `plain_text` refuses 0, that of an empty line.
            content = "\n".join(plain_text(line, max(1, MAX_ESCAPE_CHARS * len(line))) for line in lines).encode()
        stream.write(content)
        stream.flush()

    return write


def _print_error(text: str) -> None:
    click.echo(plain_text(text, MAX_MESSAGE_CHARS), err=True)
