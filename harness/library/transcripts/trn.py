"""Transcripts with their ids behind them (NIST trn): `what day is it (spk1_001)`, one in a line. Also .sro files.

Blank lines and lines that begin with ;; are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.library.transcripts.encoding import encoding_name, read_text
from harness.library.transcripts.problems import Problems, shown
from harness.model.transcript import Transcripts

COMMENT = ";;"
_EXAMPLE = "End the line with its id: what day is it (spk1_001)"
_SPACES = re.compile("[ \t]+")
_NO_ID = re.compile("[ \t)]")
_EDIT_CUE = re.compile(r"[1-9]( .*)?")


def read_trn(path: Path, encoding: str | None = None) -> Transcripts:
    """The transcripts of a trn file; InputProblems with all that is wrong with it."""
    return _read(path, encoding, sro=False)


def read_sro(path: Path, encoding: str | None = None) -> Transcripts:
    """The transcripts of a .sro file, still in its conventions; InputProblems with all that is wrong with it.

    An id has two or more characters: `(1)` and `(1 what date)` are edit cues.
    """
    return _read(path, encoding, sro=True)


def _read(path: Path, encoding: str | None, *, sro: bool) -> Transcripts:
    text = read_text(path, encoding)
    parted = _parted_quickly(text)
    if parted is None or (sro and min(map(len, parted[0])) < 2):
        parted = _parted_line_by_line(text, str(path), sro)
    ids, texts, lines = parted
    return Transcripts(str(path), tuple(ids), tuple(texts), tuple(lines), ("",) * len(ids), encoding_name(encoding))


def _parted_quickly(text: str) -> tuple[list[str], list[str], Sequence[int]] | None:
    """Ids, texts and lines of a file in which nothing is wrong; None of any other, and of some that are rare."""
    text = _tidied(text)
    if (found := _parted_in_bulk(text)) is not None:
        return *found, range(1, len(found[0]) + 1)
    lines = text.split("\n")
    numbers = [number for number, line in enumerate(lines, 1) if line and not line.startswith(COMMENT)]
    rows = [lines[number - 1].rstrip(" ").rpartition("(") for number in numbers]
    ids = _ids("".join([f"{closed}\n" for _, _, closed in rows]), len(rows))
    if ids is None or not all(opened for _, opened, _ in rows):
        return None
    return ids, [before.rstrip(" ") for before, _, _ in rows], numbers


def _tidied(text: str) -> str:
    """Lines without space before them, inner runs of spaces and tabs made one space."""
    if "\t" in text:
        text = text.replace("\t", " ")
    while "  " in text:
        text = text.replace("  ", " ")
    if text.rfind("\n ") >= 0:  # faster from the right: line feeds are rarer than spaces
        text = text.replace("\n ", "\n")
    return text.removeprefix(" ")


def _parted_in_bulk(text: str) -> tuple[list[str], list[str]] | None:
    """Ids and texts of a file in which each line is a text without brackets and an id; None of any other.

    Hundreds of thousands of lines take a fraction of what a loop over them takes.
    """
    if ";" in text and (text.startswith(COMMENT) or f"\n{COMMENT}" in text):
        return None
    count = text.count("\n")
    if text.count("(") != count:
        return None
    if text.startswith("("):
        text = f" {text}"
    if text.rfind("\n(") >= 0:
        text = text.replace("\n(", "\n (")
    parts = text.replace(")\n", ")\n (").split(" (")
    closed = parts[1::2]
    joined = "".join(closed)
    # A line feed is at the end of a part, if anywhere. When there are as many as ids, and all in ids, each id has one,
    # so that text and id alternate as they must.
    if len(closed) != count or len(parts) != 2 * count + 1:
        return None
    ids = _ids(joined, count)
    return None if ids is None else (ids, parts[0:-1:2])


def _ids(joined: str, count: int) -> list[str] | None:
    """The ids in `x_1)\\nx_2)\\n`; None when there are not `count` of them, each right and there once."""
    if not count or not joined.count("\n") == joined.count(")\n") == joined.count(")") == count or " " in joined:
        return None
    ids = joined.split(")\n")
    ids.pop()
    lower = joined.lower()
    different = set(ids if lower == joined else lower.split(")\n")[:-1])
    return None if len(different) < count or "" in different else ids


def _parted_line_by_line(text: str, file: str, sro: bool) -> tuple[list[str], list[str], list[int]]:
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
        if not plain and (what := _wrong_with(line, opened, rest, sro)):
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
    if not first:
        problems.add(0, 0, "the file has no transcripts", _EXAMPLE)
        problems.refuse()
    return ids, texts, lines


def _wrong_with(line: str, opened: str, rest: str, sro: bool) -> str:
    """What is wrong with the id of a line, or ""."""
    id_ = rest[:-1]
    if not opened:
        return "the brackets of the id are not balanced" if rest.endswith(")") else "the line has no id"
    if not rest.endswith(")"):
        if ")" not in rest:
            return "the bracket of the id is not closed"
        return f"the line does not end with its id, but with {shown(rest.rpartition(')')[2].strip() or line)}"
    if sro and (len(id_) < 2 or _EDIT_CUE.fullmatch(id_)):
        return f"the line has no id: {shown(f'({id_})')} is an edit cue, or too short"
    if not id_.strip():
        return "the id is empty"
    if _SPACES.search(id_):
        return f"the id {shown(id_)} has a space"
    if ")" in id_:
        return "the brackets of the id are not balanced"
    return ""


def repetition(id_: str, line: int) -> tuple[str, str]:
    """What is wrong with an id that was there before, and the remedy."""
    return f"the id {shown(id_)} is there already, in line {line}", "Ids that differ in case only are one; rename one"
