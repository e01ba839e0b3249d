"""A .sro file or pipe of any size, converted block by block; a line that is wrong is told of, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.library.line_stream import LineBlock, fault_in, line_blocks, too_long
from harness.library.seen_ids import SeenIds
from harness.metrics.snor import Form, convert
from harness.model.errors import InputError, Place


class ConvertedBlock(NamedTuple):
    """The lines that could be converted, and the first problem of each that could not, both in their order."""

    lines: list[str]
    problems: list[InputError]


def converted_blocks(
    read: Callable[[int], bytes],
    file: str,
    form: Form,
    *,
    encoding: str = "utf-8",
    place_edits: bool = False,
    seen: SeenIds | None = None,
) -> Iterator[ConvertedBlock]:
    """Converts what `read` gives, a line for a line.

    seen: ids of all that is to have different ones; None lets ids come again. A read that fails is a problem, too.
    """
    try:
        for block in line_blocks(read, file, encoding):
            yield _converted(block, file, form, encoding, place_edits, seen)
    except InputError as error:
        yield ConvertedBlock([], [error])
    except OSError as error:
        what = f"the file cannot be read: {error.strerror or error}"
        yield ConvertedBlock([], [InputError(what, place=Place(file), remedy="Check the path and its rights")])


def _converted(
    block: LineBlock, file: str, form: Form, encoding: str, place_edits: bool, seen: SeenIds | None
) -> ConvertedBlock:
    if block.cut:
        return ConvertedBlock([], [too_long(Place(file, block.first))])
    lines: list[str] = []
    problems: list[InputError] = []
    ids: list[str] = []
    id_lines: list[int] = []
    at: list[int] = []  # where in `lines` the ids are
    for number, line in enumerate(block.lines, block.first):
        if block.faulty and (fault := fault_in(line, Place(file, number), encoding)):
            problems.append(fault)
            continue
        try:
            said = convert(line, form, place_edits=place_edits)
        except InputError as error:
            column = error.place.column if error.place else 0
            problems.append(InputError(error.what, place=Place(file, number, column), remedy=error.remedy))
            continue
        if seen is not None and said.endswith(")"):  # no other bracket is left in what was converted
            ids.append(said[said.rindex("(") + 1 : -1])
            id_lines.append(number)
            at.append(len(lines))
        lines.append(said)
    if seen is not None and (repeated := seen.repeated(ids, file, id_lines)):
        for index, where in repeated.items():
            line = block.lines[id_lines[index] - block.first]
            problems.append(_repetition(ids[index], where, Place(file, id_lines[index], line.rindex("(") + 1)))
        problems.sort(key=lambda problem: problem.place.line if problem.place else 0)
        gone = {at[index] for index in repeated}
        lines = [said for position, said in enumerate(lines) if position not in gone]
    return ConvertedBlock(lines, problems)


def _repetition(id_: str, where: str, place: Place) -> InputError:
    shown = id_ if len(id_) <= 60 else f"{id_[:60]}…"
    what = f"the id {shown} is there already, {f'at {where}' if where else 'on an earlier line'}"
    return InputError(what, place=place, remedy="Ids that differ in case only are one; give each line its own")
