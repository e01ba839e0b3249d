"""Transcripts in .sro conventions with their ids behind them, read by the rules of the conversions.

Blank lines and lines that begin with ;; are skipped.
"""

from __future__ import annotations

import io
from pathlib import Path

from harness.base.line_stream import checked_encoding, fault_in, is_comment, line_blocks, too_long
from harness.base.problems import Problems, repetition, shown
from harness.model.errors import InputError, Place
from harness.model.transcript import Transcripts
from harness.transcripts.files.encoding import UTF_8, empty, encoding_name, read_bytes
from harness.transcripts.sro import split_id

_EXAMPLE = "End the line with its id: what day is it (spk1_001)"


def read_sro(path: Path, encoding: str | None = None, *, may_be_empty: bool = False) -> Transcripts:
    """The transcripts of a .sro file, still in its conventions; InputProblems with all that is wrong with it.

    Texts keep their spaces, so that columns of what is wrong in them are those of the file. An id has two or more
    characters: `(1)` and `(1 what date)` are edit cues. may_be_empty: see read_trn.
    """
    codec = checked_encoding(encoding or UTF_8, str(path))
    content = read_bytes(path)
    if not may_be_empty and (not content or content.isspace()):
        raise empty(path)
    reader = _Reader(str(path), codec)
    try:
        for block in line_blocks(io.BytesIO(content).read, str(path), codec):
            if block.cut:
                reader.problems.take(too_long(Place(str(path), block.first)))
                continue
            for number, line in enumerate(block.lines, block.first):
                reader.take(number, line, faulty=block.faulty)
    except InputError as error:  # the encoding cannot go on
        reader.problems.take(error)
    return reader.transcripts(encoding_name(encoding), may_be_empty=may_be_empty)


class _Reader:
    def __init__(self, file: str, codec: str) -> None:
        self.problems = Problems(file)
        self._codec = codec
        self._ids: list[str] = []
        self._texts: list[str] = []
        self._lines: list[int] = []
        self._first: dict[str, int] = {}

    def take(self, number: int, line: str, *, faulty: bool) -> None:
        """Takes a line; faulty: it may hold what is no text."""
        if faulty and (fault := fault_in(line, Place(self.problems.file, number), self._codec)):
            self.problems.take(fault)
            return
        if is_comment(line):
            return
        text, id_ = split_id(line)
        if not id_:
            self._refuse(number, line)
            return
        if (known := self._first.setdefault(id_.upper(), number)) != number:
            self.problems.add(number, len(text) + 1, *repetition(id_, known))
            return
        self._ids.append(id_)
        self._texts.append(text)
        self._lines.append(number)

    def _refuse(self, number: int, line: str) -> None:
        """Notes a line without an id, unless it is blank."""
        bare = line.rstrip()
        if not bare:
            return
        start = bare.rfind("(") if bare.endswith(")") else -1
        if start < 0:
            self.problems.add(number, len(bare) + 1, "the line has no id", _EXAMPLE)
        else:
            what = (
                f"the line has no id: {shown(bare[start:])} is an edit cue, or not one token of two or more characters"
            )
            self.problems.add(number, start + 1, what, _EXAMPLE)

    def transcripts(self, encoding: str, *, may_be_empty: bool) -> Transcripts:
        """What was taken; InputProblems."""
        self.problems.refuse()
        if not self._ids and not may_be_empty:
            self.problems.add(0, 0, "the file has no transcripts", _EXAMPLE)
            self.problems.refuse()
        columns = tuple(self._ids), tuple(self._texts), tuple(self._lines), ("",) * len(self._ids)
        return Transcripts(self.problems.file, *columns, encoding)
