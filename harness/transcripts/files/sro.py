"""Transcripts in .sro conventions, each followed by its id, read by the rules of the conversions.

The reader skips blank lines, and lines that begin with two semicolons.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.base.text_file import (
    UTF_8,
    LineBlock,
    Problems,
    checked_encoding,
    empty,
    fault_in,
    is_comment,
    line_blocks,
    read_bytes,
    shown,
    too_long,
)
from harness.model.errors import InputError, Place
from harness.model.transcript import Transcripts
from harness.transcripts.files.utterances import ID_EXAMPLE, UtteranceLines
from harness.transcripts.snor import SnorForm, convert, split_id

MAX_PLACES_KEPT = 1 << 16
"""Up to this many ids are kept with their places. Of further ids, only a hash of 64 bits is kept."""

Hashes = NDArray[np.int64]


class SeenIds:
    """Finds repeated ids. Remembers where the first MAX_PLACES_KEPT ids stood.

    Beyond these ids it keeps 8 bytes per id, and twice that for a moment while it sorts them. Among 15 million
    ids, the chance that two different ones are taken for the same is 1 in 160,000 (Python's keyed 64-bit hash).
    """

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int]] = {}
        self._full = False  # Then the hashes of all ids are in the runs.
        self._runs: list[Hashes] = []  # Each is sorted, and more than twice as long as the next.

    def repeated(self, ids: Sequence[str], file: str, lines: Sequence[int]) -> dict[int, str]:
        """Adds ids. Returns the index of each that occurred earlier, with the place of its first occurrence, such as
        `a.sro:3`. The place is "" if it was not remembered. lines: the line of each id in the file."""
        places = self._places
        if not self._full and len(places) + len(ids) <= MAX_PLACES_KEPT:
            repeated_at: dict[int, str] = {}
            for index, id_ in enumerate(ids):
                if id_ in places:
                    repeated_at[index] = self._where(id_)
                else:
                    places[id_] = (file, lines[index])
            return repeated_at
        if not self._full:
            self._full = True
            self._add_hashes(_hashes(list(places)))
        return {index: self._where(ids[index]) for index in self._add_hashes(_hashes(ids))}

    def _where(self, id_: str) -> str:
        place = self._places.get(id_)
        return f"{place[0]}:{place[1]}" if place else ""

    def _add_hashes(self, hashes: Hashes) -> list[int]:
        """Adds hashes. Returns the indices of those that occurred earlier, or earlier among the given ones."""
        fresh, firsts = np.unique(hashes, return_index=True)
        repeated = np.ones(len(hashes), np.bool_)
        repeated[firsts] = False
        present = np.zeros(len(fresh), np.bool_)
        for run in self._runs:
            positions = np.searchsorted(run, fresh)
            positions[positions == len(run)] = 0
            present |= run[positions] == fresh
        repeated[firsts[present]] = True
        self._add_run(fresh[~present])
        return np.flatnonzero(repeated).tolist()

    def _add_run(self, run: Hashes) -> None:
        """Adds a sorted run. Merges runs of similar length, so that there are few."""
        if not len(run):
            return
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            merged = np.concatenate((self._runs.pop(), self._runs.pop()))
            merged.sort()  # in place: a stable sort takes half as much memory again
            self._runs.append(merged)


def _hashes(ids: Sequence[str]) -> Hashes:
    return np.fromiter(map(hash, ids), np.int64, len(ids))


def read_sro(path: Path, encoding: str | None = None, *, may_be_empty: bool = False) -> Transcripts:
    """The transcripts of a .sro file, still in its conventions. Raises InputProblems with all its mistakes.

    Texts keep their spaces, so that errors found in them later still have the columns of the file. An id has two or
    more characters: `(1)` and `(1 what date)` are edit cues. may_be_empty: see read_trn.
    """
    codec = checked_encoding(encoding or UTF_8, str(path))
    content = read_bytes(path)
    if not may_be_empty and (not content or content.isspace()):
        raise empty(path)
    utterances = UtteranceLines(str(path))
    try:
        for block in line_blocks(io.BytesIO(content).read, str(path), codec):
            if block.cut:
                utterances.problems.add_error(too_long(Place(str(path), block.first)))
                continue
            for number, line in enumerate(block.lines, block.first):
                _add_line(utterances, number, line, codec if block.faulty else None)
    except InputError as error:  # the encoding cannot be decoded any further
        utterances.problems.add_error(error)
    return utterances.transcripts(encoding, ID_EXAMPLE, may_be_empty=may_be_empty)


def _add_line(utterances: UtteranceLines, number: int, line: str, codec: str | None) -> None:
    """Adds the utterance of a line. codec: the encoding, if the line may contain bytes that are not text; else None."""
    if codec is not None and (fault := fault_in(line, Place(utterances.problems.file, number), codec)):
        utterances.problems.add_error(fault)
    elif not is_comment(line):
        text, id_ = split_id(line)
        if id_:
            utterances.add(number, id_, text, id_.upper(), len(text) + 1)
        elif bare := line.rstrip():
            _add_missing_id(utterances.problems, number, bare)


def _add_missing_id(problems: Problems, number: int, bare: str) -> None:
    """Adds the problem of a line without an id. bare: the line without the spaces at its end."""
    start = bare.rfind("(") if bare.endswith(")") else -1
    if start < 0:
        problems.add(number, len(bare) + 1, "the line has no id", ID_EXAMPLE)
    else:
        mark = shown(bare[start:])
        problem = f"the line has no id: {mark} is an edit cue, or is not a single token of two or more characters"
        problems.add(number, start + 1, problem, ID_EXAMPLE)


MAX_ID_CHARS_SHOWN = 60


class ConvertedBlock(NamedTuple):
    """The lines that could be converted, and the first problem of each other line, both in their order.

    commented: whether some of the lines are comments.
    """

    lines: list[str]
    problems: list[InputError]
    commented: bool = False


def converted_blocks(
    read: Callable[[int], bytes],
    file: str,
    form: SnorForm,
    *,
    encoding: str = "utf-8",
    place_edits: bool = False,
    seen_ids: SeenIds | None = None,
) -> Iterator[ConvertedBlock]:
    """Converts what `read` returns, line by line. Comments stay as they are. A failure to read is reported as a
    problem.

    seen_ids: the ids so far, also of other files; a repeated one is a problem. None if ids may repeat.
    """
    try:
        for block in line_blocks(read, file, encoding):
            if block.cut:
                yield ConvertedBlock([], [too_long(Place(file, block.first))])
                continue
            commented = any(map(is_comment, block.lines))
            numbers, lines, problems = _convert_block(block, file, form, encoding, place_edits, commented=commented)
            if seen_ids is not None:
                lines, repetitions = _without_repeats(numbers, lines, block, file, seen_ids)
                problems = sorted([*problems, *repetitions], key=lambda fault: fault.place.line if fault.place else 0)
            yield ConvertedBlock(lines, problems, commented)
    except InputError as error:
        yield ConvertedBlock([], [error])
    except OSError as error:
        problem = f"the file cannot be read: {error.strerror or error}"
        yield ConvertedBlock([], [InputError(problem, place=Place(file), remedy="Check the path and its permissions")])


def _convert_block(
    block: LineBlock, file: str, form: SnorForm, encoding: str, place_edits: bool, *, commented: bool
) -> tuple[Sequence[int], list[str], list[InputError]]:
    """The numbers of the lines that could be converted, the lines, and the problems of the others."""
    if not (block.faulty or commented):
        try:
            texts = [convert(line, form, place_edits=place_edits) for line in block.lines]
            return range(block.first, block.first + len(texts)), texts, []
        except InputError:
            pass  # the faulty lines are found below, one by one
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


def _without_repeats(
    numbers: Sequence[int], lines: list[str], block: LineBlock, file: str, seen_ids: SeenIds
) -> tuple[list[str], list[InputError]]:
    """The lines with new ids, and the problems of the others."""
    # A converted line contains no round bracket except that of its id.
    with_ids = [index for index, line in enumerate(lines) if line.endswith(")") and not is_comment(line)]
    ids = [lines[index][lines[index].rindex("(") + 1 : -1] for index in with_ids]
    repeated = seen_ids.repeated(ids, file, [numbers[index] for index in with_ids])
    if not repeated:
        return lines, []
    problems = []
    for position, earlier_place in repeated.items():
        number = numbers[with_ids[position]]
        column = block.lines[number - block.first].rindex("(") + 1
        problems.append(_repetition(ids[position], earlier_place, Place(file, number, column)))
    dropped = {with_ids[position] for position in repeated}
    return [line for index, line in enumerate(lines) if index not in dropped], problems


def _repetition(id_: str, earlier_place: str, place: Place) -> InputError:
    short_id = id_ if len(id_) <= MAX_ID_CHARS_SHOWN else f"{id_[:MAX_ID_CHARS_SHOWN]}…"
    problem = f"the id {short_id} already occurs {f'at {earlier_place}' if earlier_place else 'on an earlier line'}"
    return InputError(
        problem, place=place, remedy="Ids that differ only in case are the same; give each line its own id"
    )
