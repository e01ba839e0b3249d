"""A .sro file or pipe of any size, converted block by block; a line that is wrong is told of, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from harness.base.line_stream import LineBlock, fault_in, is_comment, line_blocks, too_long
from harness.model.errors import InputError, Place
from harness.transcripts.files.seen_ids import SeenIds
from harness.transcripts.snor import Form, convert

LONGEST_SHOWN = 60


class ConvertedBlock(NamedTuple):
    """The lines that could be converted, and the first problem of each that could not, both in their order.

    commented: some of the lines are comments.
    """

    lines: list[str]
    problems: list[InputError]
    commented: bool = False


def converted_blocks(
    read: Callable[[int], bytes],
    file: str,
    form: Form,
    *,
    encoding: str = "utf-8",
    place_edits: bool = False,
    seen: SeenIds | None = None,
) -> Iterator[ConvertedBlock]:
    """Converts what `read` gives, a line for a line; comments stay as they are.

    seen: ids of all that is to have different ones; None lets ids come again. A read that fails is a problem, too.
    """
    try:
        for block in line_blocks(read, file, encoding):
            if block.cut:
                yield ConvertedBlock([], [too_long(Place(file, block.first))])
                continue
            commented = any(map(is_comment, block.lines))
            numbers, lines, problems = _converted(block, file, form, encoding, place_edits, commented=commented)
            if seen is not None:
                lines, repetitions = _told_apart(numbers, lines, block, file, seen)
                problems = sorted([*problems, *repetitions], key=_line)
            yield ConvertedBlock(lines, problems, commented)
    except InputError as error:
        yield ConvertedBlock([], [error])
    except OSError as error:
        what = f"the file cannot be read: {error.strerror or error}"
        yield ConvertedBlock([], [InputError(what, place=Place(file), remedy="Check the path and its rights")])


def _converted(
    block: LineBlock, file: str, form: Form, encoding: str, place_edits: bool, *, commented: bool
) -> tuple[Sequence[int], list[str], list[InputError]]:
    """The numbers of the lines that could be converted, the lines, and the problems of the others."""
    if not (block.faulty or commented):
        try:
            said = [convert(line, form, place_edits=place_edits) for line in block.lines]
            return range(block.first, block.first + len(said)), said, []
        except InputError:
            pass  # which line it was, and how many more there are, is told below
    numbers: list[int] = []
    lines: list[str] = []
    problems: list[InputError] = []
    for number, line in enumerate(block.lines, block.first):
        place = Place(file, number)
        if fault := fault_in(line, place, encoding):
            problems.append(fault)
            continue
        try:
            lines.append(line if is_comment(line) else convert(line, form, place, place_edits=place_edits))
        except InputError as error:
            problems.append(error)
        else:
            numbers.append(number)
    return numbers, lines, problems


def _told_apart(
    numbers: Sequence[int], lines: list[str], block: LineBlock, file: str, seen: SeenIds
) -> tuple[list[str], list[InputError]]:
    """The lines whose ids were not there before, and the problems of the others."""
    # No other bracket is left in a line that was converted.
    having = [index for index, line in enumerate(lines) if line.endswith(")") and not is_comment(line)]
    ids = [lines[index][lines[index].rindex("(") + 1 : -1] for index in having]
    repeated = seen.repeated(ids, file, [numbers[index] for index in having])
    if not repeated:
        return lines, []
    problems = []
    for position, where in repeated.items():
        number = numbers[having[position]]
        column = block.lines[number - block.first].rindex("(") + 1
        problems.append(_repetition(ids[position], where, Place(file, number, column)))
    gone = {having[position] for position in repeated}
    return [line for index, line in enumerate(lines) if index not in gone], problems


def _repetition(id_: str, where: str, place: Place) -> InputError:
    shown = id_ if len(id_) <= LONGEST_SHOWN else f"{id_[:LONGEST_SHOWN]}…"
    what = f"the id {shown} is there already, {f'at {where}' if where else 'on an earlier line'}"
    return InputError(what, place=place, remedy="Ids that differ in case only are one; give each line its own")


def _line(problem: InputError) -> int:
    return problem.place.line if problem.place else 0
