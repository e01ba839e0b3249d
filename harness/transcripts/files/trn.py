"""Transcripts with their ids behind them (NIST trn): `what day is it (spk1_001)`, one in a line.

Blank lines and lines that begin with ;; are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.base.line_stream import COMMENT
from harness.base.problems import Problems, repetition, shown
from harness.model.transcript import Transcripts
from harness.transcripts.files.encoding import encoding_name, read_text

_EXAMPLE = "End the line with its id: what day is it (spk1_001)"
_LINE_END, _SPACE, _OPEN, _CLOSE = b"\n ()"
_GONE = 0  # no text that was read holds it
_SPACES = re.compile("[ \t]+")
_NO_ID = re.compile("[ \t)]")


def read_trn(path: Path, encoding: str | None = None, *, may_be_empty: bool = False) -> Transcripts:
    """The transcripts of a trn file; InputProblems with all that is wrong with it.

    may_be_empty: a file without transcripts, as a recogniser that crashed leaves one, is none of them and no error.
    """
    text = read_text(path, encoding, may_be_empty=may_be_empty)
    parted = parted_at_once(text)
    if parted is None:
        parted = parted_line_by_line(text, str(path), may_be_empty=may_be_empty)
    ids, texts, lines = parted
    return Transcripts(str(path), tuple(ids), tuple(texts), tuple(lines), ("",) * len(ids), encoding_name(encoding))


def parted_at_once(text: str) -> tuple[list[str], list[str], Sequence[int]] | None:
    """Ids, texts and lines of a file's text in which nothing is wrong; None of any other.

    On the bytes of all lines together, which takes a fraction of what a loop over them takes.
    """
    signs, numbers = _signs(text), None
    if not _is_tidy(text, signs):
        text, numbers = _tidied(text)
        signs = _signs(text)
    ends, opened = np.flatnonzero(signs == _LINE_END), np.flatnonzero(signs == _OPEN)
    if not len(ends) or not len(opened):
        return None
    # The last bracket that opens in each line; where there is none, that of a line before.
    opens = opened[np.searchsorted(opened, ends) - 1]
    closes = ends - 1
    if np.any(opens >= ends) or np.any(opens[1:] < ends[:-1]) or np.any(signs[closes] != _CLOSE):
        return None
    signs[opens] = signs[closes] = _GONE
    signs[np.where(signs[opens - 1] == _SPACE, opens - 1, opens)] = _LINE_END
    parts = signs.tobytes().replace(bytes([_GONE]), b"").decode().split("\n")
    ids, texts = parts[1::2], parts[0:-1:2]
    return (ids, texts, numbers or range(1, len(ids) + 1)) if _are_ids(ids) else None


def _signs(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytearray(text, "utf-8"), np.uint8)


def _is_tidy(text: str, signs: NDArray[np.uint8]) -> bool:
    """Whether a text, of those signs, is as `_tidied` would make it, but for a space before the id of an empty text."""
    blank = signs <= _SPACE
    pairs = np.flatnonzero(blank[1:] & blank[:-1])
    empty = (signs[pairs] == _LINE_END) & (signs[pairs + 1] == _SPACE) & (signs.take(pairs + 2, mode="clip") == _OPEN)
    if blank[0] or not empty.all() or "\t" in text or (len(pairs) and _opens_again(signs, pairs + 2)):
        return False
    return not (";" in text and (text.startswith(COMMENT) or f"\n{COMMENT}" in text))


def _opens_again(signs: NDArray[np.uint8], opened: NDArray[np.intp]) -> bool:
    """Whether another bracket opens in the line of one of these: then it is of a text, and no id's."""
    found = np.flatnonzero((signs == _OPEN) | (signs == _LINE_END))
    after = np.searchsorted(found, opened) + 1
    return bool(np.any(signs[found.take(after, mode="clip")] == _OPEN))


def _tidied(text: str) -> tuple[str, Sequence[int]]:
    """Single spaces within lines, none around them, no tabs, blank lines or comments; and the numbers of the lines."""
    text = text.replace("\t", " ")
    while "  " in text:
        text = text.replace("  ", " ")
    lines = text.replace("\n ", "\n").replace(" \n", "\n").removeprefix(" ").split("\n")
    numbers = [number for number, line in enumerate(lines, 1) if line and not line.startswith(COMMENT)]
    return "".join([f"{lines[number - 1]}\n" for number in numbers]), numbers


def _are_ids(ids: Sequence[str]) -> bool:
    """Whether each is an id, and there once; ids that differ in case only are one."""
    joined = "\n".join(ids)
    lower = joined.lower()
    different = set(ids if lower == joined else lower.split("\n"))
    return len(different) == len(ids) and "" not in different and " " not in joined and ")" not in joined


def parted_line_by_line(text: str, file: str, *, may_be_empty: bool = False) -> tuple[list[str], list[str], list[int]]:
    """The same, line by line, with what is wrong; InputProblems."""
    problems = Problems(file)
    ids: list[str] = []
    texts: list[str] = []
    lines: list[int] = []
    first: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(" \t") or line.lstrip(" \t").startswith(COMMENT):
            continue
        before, opened, rest = line.rstrip(" \t").rpartition("(")
        id_ = rest[:-1]
        plain = opened and len(id_) > 1 and rest.endswith(")") and not _NO_ID.search(id_)
        if not plain and (what := _wrong_with(line, opened, rest)):
            problems.add(number, len(before) + 1 if opened else len(line) + 1, what, _EXAMPLE)
            continue
        if (known := first.setdefault(id_.lower(), number)) != number:
            what, remedy = repetition(id_, known)
            problems.add(number, len(before) + 2, what, remedy)
            continue
        ids.append(id_)
        texts.append(_SPACES.sub(" ", before).strip(" "))
        lines.append(number)
    problems.refuse()
    if not first and not may_be_empty:
        problems.add(0, 0, "the file has no transcripts", _EXAMPLE)
        problems.refuse()
    return ids, texts, lines


def _wrong_with(line: str, opened: str, rest: str) -> str:
    """What is wrong with the id of a line, or ""."""
    id_ = rest[:-1]
    if not opened:
        return "the brackets of the id are not balanced" if rest.endswith(")") else "the line has no id"
    if not rest.endswith(")"):
        if ")" not in rest:
            return "the bracket of the id is not closed"
        return f"the line does not end with its id, but with {shown(rest.rpartition(')')[2].strip() or line)}"
    if not id_.strip():
        return "the id is empty"
    if _SPACES.search(id_):
        return f"the id {shown(id_)} has a space"
    if ")" in id_:
        return "the brackets of the id are not balanced"
    return ""
