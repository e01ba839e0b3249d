"""What utterances are told apart by: lists with a header (CSV: `id,voice,level_dbfs`), and the labels of stm files.

Source of the labels: NIST SCTK 2.4.10, the stm format and sclite's report lur.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from harness.base.problems import Problems, shown
from harness.model.errors import InputError, Place
from harness.model.transcript import Grouping, Groupings, Transcripts
from harness.transcripts.files.csv_list import filled_rows
from harness.transcripts.files.encoding import read_text
from harness.transcripts.files.stm import Segments, read_stm

ID = "id"
_EXAMPLE = "Write a header, then a row for each utterance: id,voice,level_dbfs"
_CATEGORY = re.compile(r'[ \t]*;;[ \t]*CATEGORY[ \t]+"([^"]*)"[ \t]+"([^"]*)"[ \t]+"([^"]*)"[ \t]*')


def read_groups(path: Path, encoding: str | None = None, *, case_counts: bool = False) -> Groupings:
    """The groupings of a list; InputProblems with all that is wrong with it.

    The column `id` may stand anywhere; each other one is a grouping, and its fields are labels, empty for none.
    case_counts: ids that differ in case only are two, as the names of audio files in lists are.
    """
    text = read_text(path, encoding)
    problems = Problems(str(path))
    rows = filled_rows(text, problems)
    line, written = next(rows, (1, [""]))
    header = [_squeezed(field) for field in written]
    _check_header(header, line, written, problems)
    problems.refuse()
    at = header.index(ID)
    ids: list[str] = []
    kept: list[list[str]] = []
    first: dict[str, int] = {}
    for line, row in rows:
        if len(row) != len(header):
            what = f"{len(row)} field{'s' * (len(row) != 1)}, where the header has {len(header)}"
            problems.add(line, 1, what, "Write one for each column, empty for none; put a field with commas in quotes")
            continue
        id_ = row[at].strip()
        if not id_:
            problems.add(line, 1, "the row has no id", _EXAMPLE)
            continue
        if (known := first.setdefault(id_ if case_counts else id_.lower(), line)) != line:
            what = f"the id {shown(id_)} is there already, in line {known}"
            remedy = "Remove one of the two rows" + ("" if case_counts else "; ids that differ in case only are one")
            problems.add(line, 1, what, remedy)
            continue
        ids.append(id_)
        kept.append(row)
    if not first:
        problems.add(0, 0, "the list has no rows below its header", _EXAMPLE)
    problems.refuse()
    columns = [column for column in zip(header, zip(*kept, strict=True), strict=True) if column[0] != ID]
    return Groupings(str(path), tuple(ids), tuple(Grouping(name, _labels(fields)) for name, fields in columns))


def read_labels(
    path: Path, references: Transcripts, encoding: str | None = None, taken: Collection[str] = ()
) -> Groupings | None:
    """What the labels of an stm file say: a grouping for each place in `<o,f0,male>`; None without labels.

    references: as `read_pair` made them of the file. Groupings and labels are called as the file declares their places
    (`;; CATEGORY`) and ids (`;; LABEL`); labels compare without case, and one that is not declared is its own title.
    taken: names that groupings must not have.
    """
    text = read_text(path, encoding)
    if "<" not in text:
        return None
    segments = read_stm(path, encoding)
    labels = {segment.line: segment.labels for segment in segments.segments if segment.labels and not segment.ignored}
    if not labels:
        return None
    titles = _titles(segments)
    declared_order = tuple(titles.values())
    categories = [found[2] or found[1] for line in text.split("\n") if (found := _CATEGORY.fullmatch(line))]
    places = max(map(len, labels.values()))
    groupings: list[Grouping] = []
    for place in range(places):
        written = [of[place] if len(of := labels.get(line, ())) > place else "" for line in references.lines]
        labelled = tuple(titles.setdefault(label.lower(), label) for label in written)
        order = tuple(title for title in declared_order if title and title in set(labelled))
        name = categories[place] if place < len(categories) else ""
        groupings.append(Grouping(_name(name, place, {*taken, *(one.name for one in groupings)}), labelled, order))
    return Groupings(references.file, references.ids, tuple(groupings))


def refuse_other_list(groups: Groupings, references: Transcripts) -> None:
    """InputError when not one id of a list is one of the references: it is of other utterances."""
    known = {id_.lower() for id_ in references.ids}
    if not any(id_.lower() in known for id_ in groups.ids):
        what = f"no id of this list is one of the references: its first is {shown(groups.ids[0])}"
        remedy = f"Write ids as {references.file} does, such as {shown(references.ids[0])}"
        raise InputError(what, place=Place(groups.file), remedy=remedy)


def _titles(segments: Segments) -> dict[str, str]:
    """The title of each declared label, by its id in small letters; a title that is taken has the id behind it."""
    found: dict[str, str] = {"": ""}
    for label in segments.labels:
        title = _squeezed(label.title.replace("//", " ")) or label.id
        found.setdefault(label.id.lower(), f"{title} ({label.id})" if title in found.values() else title)
    return found


def _name(declared: str, place: int, taken: Collection[str]) -> str:
    name = _squeezed(declared)
    # A category is often declared by its number alone.
    found = name if name and not name.isdigit() else f"label {place + 1}"
    return f"{found} (label {place + 1})" if found in taken else found


def _check_header(header: list[str], line: int, written: list[str], problems: Problems) -> None:
    if ID not in header:
        one = "" if len(written) > 1 else "; columns are parted by commas" * any(mark in written[0] for mark in ";\t")
        near = next((name for name in header if name.lower() == ID), None)
        what = f"the header has no column {ID}" + (f", but {near}: case counts" if near else "")
        problems.add(line, 1, what, f"{_EXAMPLE}{one}")
        return
    if len(header) == 1:
        problems.add(line, 1, f"the header has the column {ID} alone", _EXAMPLE)
    for number, name in enumerate(header, 1):
        if not name:
            problems.add(line, 1, f"column {number} has no name", "Name it, or take its comma out of every row")
        elif header.index(name) < number - 1:
            problems.add(line, 1, f"two columns are called {shown(name)}", "Rename one")


def _labels(fields: Sequence[str]) -> tuple[str, ...]:
    # Few of them differ.
    label = {field: _squeezed(field) for field in set(fields)}
    return tuple(map(label.__getitem__, fields))


def _squeezed(text: str) -> str:
    return " ".join(text.split())
