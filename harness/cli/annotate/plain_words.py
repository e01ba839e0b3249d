"""What an annotator writes on a line: labels, numbers of a page, or one of the commands."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum

from harness.base.foreign import plain_text
from harness.model.annotation import LabelSet
from harness.model.understanding import JOINT

LONGEST_TOLD = 60


class Word(StrEnum):
    """The commands of plain annotation."""

    ACCEPT = "accept"
    STRIKE = "strike"
    NONE = "none"
    KEEP = "keep"
    SKIP = "skip"
    UNDO = "undo"
    COMMENT = "comment"
    REVIEW = "review"
    LABEL = "label"
    GUIDE = "guide"
    STATUS = "status"
    AGAIN = "again"
    HELP = "help"
    QUIT = "quit"


HELP: dict[Word, str] = {
    Word.ACCEPT: "accept all of the page that is not struck, and go on; `a` for short",
    Word.STRIKE: "strike what is wrong on the page, by number, again takes it back: strike 2 5; 2 5 for short",
    Word.NONE: "label the utterance: it has no label (where the label set allows that)",
    Word.KEEP: "keep the labels that were saved, after what is proposed was shown",
    Word.SKIP: "leave the utterance for the end; of proposals, the group for later",
    Word.UNDO: "take back the last page or utterance, again and again",
    Word.COMMENT: "comment TEXT; it is kept with the labels that follow",
    Word.REVIEW: "go to the proposals",
    Word.LABEL: "go to what is to be labelled by hand",
    Word.GUIDE: "the labels with their guide; guide LABEL: one of them",
    Word.STATUS: "how far you are",
    Word.AGAIN: "print the page or the utterance again",
    Word.HELP: "print this",
    Word.QUIT: "leave; everything is saved",
}


@dataclass(frozen=True, slots=True)
class Said:
    """A command, and what stands behind it."""

    word: Word
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Labels:
    """All labels of the utterance in sight."""

    intents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """What is wrong with a line, and the nearest right one."""

    what: str


def parse(line: str, labels: LabelSet, *, reviewing: bool) -> Said | Labels | Unknown:
    """What a line means. Commands are whole words; labels are ids, keys or titles, with blanks or # between them."""
    line = line.strip()
    first, _, rest = line.partition(" ")
    if reviewing:
        if first.lower() == "a" and not rest:
            return Said(Word.ACCEPT)
        if all(part.isdecimal() for part in line.replace(",", " ").split()):
            return Said(Word.STRIKE, line)
    else:
        found = labels_of(line, labels)
        if isinstance(found, Labels):
            return found
        if first.lower() not in list(Word):
            return found
    if first.lower() in list(Word):
        return Said(Word(first.lower()), rest.strip())
    near = difflib.get_close_matches(first.lower()[:LONGEST_TOLD], list(Word), n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "help lists the commands"
    return Unknown(f"'{plain_text(line, LONGEST_TOLD)}' is no command. {hint}")


def labels_of(line: str, labels: LabelSet) -> Labels | Unknown:
    """The labels that a line names."""
    whole = _label(line, labels)
    if whole is not None:
        return Labels((whole,))
    found: list[str] = []
    for part in line.replace(JOINT, " ").replace(",", " ").split():
        one = _label(part, labels)
        if one is None:
            known = [*labels.ids, *Word]
            near = difflib.get_close_matches(part[:LONGEST_TOLD], known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else "guide lists the labels, help the commands"
            return Unknown(f"'{plain_text(part, LONGEST_TOLD)}' is no label. {hint}")
        found.append(one)
    return Labels(tuple(dict.fromkeys(found)))


def _label(written: str, labels: LabelSet) -> str | None:
    """The label that is meant; what is written exactly so goes before what differs in case."""
    written = written.strip()
    for one in labels.labels:
        if written in (one.id, one.key) and written:
            return one.id
    for one in labels.labels:
        if written.casefold() in (one.id.casefold(), one.title.casefold()) and written:
            return one.id
    return None
