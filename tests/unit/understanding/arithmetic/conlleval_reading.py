"""Another reading of BIO tags, written from what conlleval says of two neighbouring tags, to check chunks against.

A chunk ends between two words, and a chunk starts between two words: each is a rule of its own over (tag, type) of the
word before and of the word after; chunks are what lies between. The rules are those for B, I and O.
"""

from __future__ import annotations

from collections.abc import Sequence

ENDS = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")}
STARTS = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I")}


def conlleval_chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    found = []
    began = -1
    before, of = "O", ""
    for at, tag in enumerate([*tags, "O"]):
        prefix, _, concept = tag.partition("-")
        changed = concept != of
        if (before, prefix) in ENDS or (before != "O" and changed):
            found.append((of, began, at))
        if (before, prefix) in STARTS or (prefix != "O" and changed):
            began = at
        before, of = prefix, concept
    return found


def iob2_chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """From each B- as far as its own I- reach."""
    found = []
    for at, tag in enumerate(tags):
        if tag.startswith("B-"):
            end = at + 1
            while end < len(tags) and tags[end] == "I" + tag[1:]:
                end += 1
            found.append((tag[2:], at, end))
    return found
