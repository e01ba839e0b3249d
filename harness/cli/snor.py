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
from harness.model.numbers import counted
from harness.transcripts.snor import SnorForm, homophone

if TYPE_CHECKING:
    from harness.transcripts.files.sro import ConvertedBlock, SeenIds

EXIT_PROBLEMS = 2  # As for wrong usage and unreadable files.
READER_GONE = 141  # the status that shells report when the reader of a pipe has gone
MAX_LISTED = 50
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

    Reads standard input if FILE is missing or -. Output is UTF-8. Faulty lines are reported on standard error as
    file:line:column and left out. The files of --output and --homophones are then not written.

    Exit status: 0 done · 2 the input has errors · 3 the output cannot be written ·
    141 its reader has gone.
    """
    from harness.transcripts.files.sro import SeenIds

    target_form = SnorForm(form)
    if homophones is not None and target_form is not SnorForm.EXPANDED:
        raise InputError(
            "--homophones applies only to Expanded SNOR", remedy="Use --output-format esn, or remove --homophones"
        )
    if homophones is not None:
        if is_one_place(homophones, output):
            raise InputError("--output and --homophones name the same file", remedy="Name two different files")
        refuse_overwriting(homophones, files)
    if place_edits and target_form is not SnorForm.SNR:
        raise InputError(
            "--place-edits applies only to .snr", remedy="Use --output-format snr, or remove --place-edits"
        )
    codec = checked_encoding(encoding)
    seen_ids = None if repeated_ids else SeenIds()
    homophone_words: set[str] | None = None if homophones is None else set()
    try:
        with ExitStack() as stack:
            file = None if output == STREAM else stack.enter_context(WholeFile(output))
            homophone_file = None if homophones in (None, STREAM) else stack.enter_context(WholeFile(str(homophones)))
            write = _stdout_writer() if file is None else file.write
            faulty_files = problems = 0
            if STREAM in (files or (STREAM,)):
                demand_reader()
            for name in files or (STREAM,):
                file_problems = _convert(
                    name,
                    form=target_form,
                    encoding=codec,
                    place_edits=place_edits,
                    seen_ids=seen_ids,
                    write=write,
                    homophone_words=homophone_words,
                )
                if file_problems:
                    faulty_files += 1
                problems += file_problems
            if problems:
                summary = f"{counted(problems, 'problem')} in {counted(faulty_files, 'file')}"
                kept_back = [target for target in (output, homophones) if target not in (None, STREAM)]
                _print_error(f"{summary}; not written: {', '.join(map(str, kept_back))}" if kept_back else summary)
                sys.exit(EXIT_PROBLEMS)
            if homophone_words is not None:
                by_sound = sorted((homophone(word), word) for word in homophone_words)
                homophone_lines = "".join(f"{spoken} {word}\n" for spoken, word in by_sound).encode()
                write_homophones = _stdout_writer() if homophone_file is None else homophone_file.write
                write_homophones(homophone_lines)
            for whole_file in (file, homophone_file):
                if whole_file is not None:
                    whole_file.keep()
    except BrokenPipeError:
        sys.exit(READER_GONE)


def _convert(
    name: str,
    form: SnorForm,
    encoding: str,
    place_edits: bool,
    seen_ids: SeenIds | None,
    write: Callable[[bytes], object],
    homophone_words: set[str] | None,
) -> int:
    """Converts a file and returns its number of problems. Prints the first MAX_LISTED as they are found."""
    from harness.transcripts.files.sro import ConvertedBlock, converted_blocks

    shown = STDIN_NAME if name == STREAM else name
    problems = 0

    def blocks() -> Iterator[ConvertedBlock]:
        try:
            with _reader(name) as read:
                yield from converted_blocks(
                    read, shown, form, encoding=encoding, place_edits=place_edits, seen_ids=seen_ids
                )
        except InputError as error:
            yield ConvertedBlock([], [error])

    for block in blocks():
        if block.lines:
            write(("\n".join(block.lines) + "\n").encode())
        if homophone_words is not None:
            _add_homophones(
                [line for line in block.lines if not is_comment(line)] if block.commented else block.lines,
                homophone_words,
            )
        for problem in block.problems[: max(0, MAX_LISTED - problems)]:
            _print_error(str(problem))
        problems += len(block.problems)
    if problems > MAX_LISTED:
        _print_error(f"{shown}: and {problems - MAX_LISTED} more")
    return problems


@contextmanager
def _reader(name: str) -> Iterator[Callable[[int], bytes]]:
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
    """A function that writes and flushes, so that a reader has each line as soon as we have its block."""
    stream = sys.stdout.buffer
    terminal = sys.stdout.isatty()

    def write(content: bytes) -> None:
        if terminal:
            lines = content.decode().split("\n")
            # No line is cut; `plain_text` refuses a limit of 0.
            content = "\n".join(plain_text(line, max(1, MAX_ESCAPE_CHARS * len(line))) for line in lines).encode()
        stream.write(content)
        stream.flush()

    return write


def _add_homophones(lines: Sequence[str], homophone_words: set[str]) -> None:
    for line in lines:
        if "<" in line:
            homophone_words.update(word for word in line.split(" ") if homophone(word) != word)


def _print_error(text: str) -> None:
    click.echo(plain_text(text, MAX_MESSAGE_CHARS), err=True)
