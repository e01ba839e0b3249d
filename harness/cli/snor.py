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
from harness.cli.streams import STDIN_NAME, demand_reader, is_one_place, refuse_overwriting
from harness.model.errors import InputError, Place
from harness.model.numbers import counted
from harness.transcripts.snor import SnorForm, homophone

if TYPE_CHECKING:
    from harness.transcripts.files.sro import ConvertedBlock, SeenIds

EXIT_PROBLEMS = 2  # As for wrong usage and unreadable files.
READER_GONE = 141  # the status that shells report when the reader of a pipe has gone
STREAM = "-"
MOST_LISTED = 50
LONGEST_TOLD = 2000


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

    Exit status: 0 done · 2 the input has errors · 3 the output cannot be written.
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
    pairs: set[str] | None = None if homophones is None else set()
    try:
        with ExitStack() as stack:
            file = None if output == STREAM else stack.enter_context(WholeFile(output))
            pair_file = None if homophones in (None, STREAM) else stack.enter_context(WholeFile(str(homophones)))
            write = _to_stdout() if file is None else file.write
            faulty = problems = 0
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
                    pairs=pairs,
                )
                faulty += bool(file_problems)
                problems += file_problems
            if problems:
                summary = f"{counted(problems, 'problem')} in {counted(faulty, 'file')}"
                kept_back = [target for target in (output, homophones) if target not in (None, STREAM)]
                _tell(f"{summary}; not written: {', '.join(map(str, kept_back))}" if kept_back else summary)
                sys.exit(EXIT_PROBLEMS)
            if pairs is not None:
                by_sound = sorted((homophone(word), word) for word in pairs)
                pair_lines = "".join(f"{spoken} {word}\n" for spoken, word in by_sound).encode()
                write_pairs = _to_stdout() if pair_file is None else pair_file.write
                write_pairs(pair_lines)
            for whole_file in (file, pair_file):
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
    pairs: set[str] | None,
) -> int:
    """Converts a file and returns its number of problems. Prints the first MOST_LISTED as they are found."""
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
        if pairs is not None:
            _note_pairs(
                [line for line in block.lines if not is_comment(line)] if block.commented else block.lines, pairs
            )
        for problem in block.problems[: max(0, MOST_LISTED - problems)]:
            _tell(str(problem))
        problems += len(block.problems)
    if problems > MOST_LISTED:
        _tell(f"{shown}: and {problems - MOST_LISTED} more")
    return problems


@contextmanager
def _reader(name: str) -> Iterator[Callable[[int], bytes]]:
    if name == STREAM:
        refuse_endless(0, STDIN_NAME)
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


def _to_stdout() -> Callable[[bytes], object]:
    """Writes and flushes, so that a reader has each line as soon as we have its block."""
    stream = sys.stdout.buffer
    terminal = sys.stdout.isatty()

    def write(content: bytes) -> None:
        if terminal:
            lines = content.decode().split("\n")
            content = "\n".join(plain_text(line, max(1, 12 * len(line))) for line in lines).encode()
        stream.write(content)
        stream.flush()

    return write


def _note_pairs(lines: Sequence[str], pairs: set[str]) -> None:
    for line in lines:
        if "<" in line:
            pairs.update(word for word in line.split(" ") if homophone(word) != word)


def _tell(text: str) -> None:
    click.echo(plain_text(text, LONGEST_TOLD), err=True)
