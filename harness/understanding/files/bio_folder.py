"""A folder with seq.in (words), seq.out (BIO tags) and label (intents joined with #), line by line.

Only seq.in has to be there: without seq.out nothing is said of slots, without label nothing of intents.
Source: the form in which ATIS and SNIPS are shared (Goo et al. 2018); spec understanding (Labels).
"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from harness.base.problems import Problems, shown
from harness.model.errors import InputError, InputProblems, Place
from harness.model.understanding import Utterance, intent_set
from harness.understanding.files.form import LABEL, SEQ_IN, SEQ_OUT, SPLIT
from harness.understanding.files.lines import numbered_lines

_EXAMPLE = "Write O, B-concept or I-concept for each word"
_GONE = object()


def read_bio_folder(folder: Path, name: str, split: str | None = None) -> list[Utterance]:
    """The utterances of one folder; InputProblems with all that is wrong with its files.

    split: becomes the group `split`, and stands before the line in each id (`train/17`); without it the id is the line.
    """
    names = {one: f"{name}/{one}" for one in (SEQ_IN, SEQ_OUT, LABEL)}
    problems = {one: Problems(names[one]) for one in names}
    there = [one for one in names if one == SEQ_IN or (folder / one).exists()]
    files = [numbered_lines(folder / one, names[one], problems[one]) for one in there]
    groups = () if split is None else ((SPLIT, split),)
    before = "" if split is None else f"{split}/"
    known = _Known(problems[SEQ_OUT])
    counts = dict.fromkeys(there, 0)
    found: list[Utterance] = []
    for number, lines in enumerate(zip_longest(*files, fillvalue=_GONE), 1):
        row: dict[str, str | None] = {}
        for one, line in zip(there, lines, strict=True):
            if line is not _GONE:
                counts[one] = number
                row[one] = line if isinstance(line, str) else None
        if len(row) < len(there) or None in row.values():
            continue
        words = known.words(row[SEQ_IN] or "")
        tags = known.tags(row[SEQ_OUT] or "", number) if SEQ_OUT in row else None
        if tags is not None and len(tags) != len(words):
            what = f"{_times(len(tags), 'tag')}, where {SEQ_IN} has {_times(len(words), 'word')}"
            problems[SEQ_OUT].add(number, 0, what, "Write one tag for each word, and single blanks between them")
            continue
        intents = known.intents(row[LABEL] or "") if LABEL in row else None
        place = Place(names[SEQ_IN], number)
        found.append(Utterance(f"{before}{number}", words, intents, tags, None, groups, place))
    _check_lengths(counts, problems, names)
    _refuse(problems)
    if not found:
        raise InputError("the file is empty", place=Place(names[SEQ_IN]), remedy="Check what was to write it")
    return found


class _Known:
    """Words, tags and sets of intents, each kept once: a corpus has few that differ."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._words: dict[str, str] = {}
        self._tags: dict[str, str] = {}
        self._intents: dict[str, tuple[str, ...]] = {}

    def words(self, line: str) -> tuple[str, ...]:
        kept = self._words
        return tuple([kept.setdefault(word, word) for word in split_words(line)])

    def tags(self, line: str, number: int) -> tuple[str, ...]:
        kept = self._tags
        found = []
        for at, tag in enumerate(split_words(line), 1):
            if tag not in kept:
                if not is_bio(tag):
                    self._problems.add(number, 0, f"tag {at}, {shown(tag)}, is no BIO tag", _EXAMPLE)
                    tag = "O"
                kept[tag] = tag
            found.append(kept[tag])
        return tuple(found)

    def intents(self, line: str) -> tuple[str, ...]:
        found = self._intents.get(line)
        if found is None:
            found = self._intents[line] = intent_set(line)
        return found


def split_words(text: str) -> list[str]:
    """The words between ASCII blanks; other spaces, as French has before its signs, are within words."""
    if text.isascii():
        return text.split()
    return [word for word in text.replace("\t", " ").replace("\n", " ").replace("\r", " ").split(" ") if word]


def is_bio(tag: str) -> bool:
    """Whether a tag is O, or B- or I- with a concept."""
    return tag == "O" or (len(tag) > 2 and tag[1] == "-" and tag[0] in "BI")


def _check_lengths(counts: dict[str, int], problems: dict[str, Problems], names: dict[str, str]) -> None:
    for one, lines in counts.items():
        if lines != counts[SEQ_IN]:
            what = f"{_times(lines, 'line')}, where {SEQ_IN} has {counts[SEQ_IN]:,}"
            first = min(lines, counts[SEQ_IN]) + 1
            remedy = "Each line is of one utterance; see whether one of the two files was cut off"
            problems[one].take(InputError(what, place=Place(names[one], first), remedy=remedy))


def _refuse(problems: dict[str, Problems]) -> None:
    told: list[InputError] = []
    for one in problems.values():
        try:
            one.refuse()
        except InputProblems as error:
            told += error.problems
    if told:
        raise InputProblems(told)


def _times(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
