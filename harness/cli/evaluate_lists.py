"""What the journal of an evaluation says of its lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.cli.evaluate_options import Asked
from harness.model.offline import ListedFile, ListKind
from harness.offline.journal_lines import ListFacts

if TYPE_CHECKING:
    from harness.offline.lists import Listing


def list_facts(asked: Asked, listing: Listing) -> tuple[ListFacts, ...]:
    """Each list with how many files it has."""
    found: list[ListFacts] = []
    names = ((ListKind.INV, asked.inv), (ListKind.REFERENCED, asked.referenced), (ListKind.OOV, asked.oov))
    at = 0
    for kind, lists in names:
        end = _end_of(listing.files, at, lambda file, kind=kind: file.kind is kind)  # type: ignore[misc]
        for place, name in enumerate(lists):
            last = place == len(lists) - 1
            begin = at
            at = end if last else _next_list(listing.files, at, end)
            found.append(ListFacts(name, listing.sha256[name], kind, at - begin))
    return tuple(found)


def _end_of(files: Sequence[ListedFile], first: int, belongs: Callable[[ListedFile], bool]) -> int:
    """The place after the last file from `first` on that belongs, where those that do come first."""
    low, high = first, len(files)
    while low < high:
        middle = (low + high) // 2
        if belongs(files[middle]):
            low = middle + 1
        else:
            high = middle
    return low


def _next_list(files: Sequence[ListedFile], first: int, end: int) -> int:
    """Where the next list of a kind begins: its lines count anew."""
    line = files[first].line
    for at in range(first + 1, end):
        if files[at].line <= line:
            return at
        line = files[at].line
    return end
