"""The ids that were there before, of a stream of any length, in little memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

REMEMBERED = 1 << 16
"""At most so many ids are kept as they are, with their places. Of later ones, 64 bits each."""

Hashes = NDArray[np.int64]


class SeenIds:
    """Ids and where they stood first.

    Beyond REMEMBERED, 8 bytes an id, and as much again for a moment while they are sorted. Two different ids
    of 15 million are taken for one with a chance of 1 in 160,000 (Python's keyed 64-bit hash of strings).
    """

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int]] = {}
        self._full = False  # from then on the hashes of all ids are in the runs, and no more places are kept
        self._runs: list[Hashes] = []  # sorted, each more than twice as long as the next

    def repeated(self, ids: Sequence[str], file: str, lines: Sequence[int]) -> dict[int, str]:
        """Takes ids in; where those that were there before stood, by their index: `a.sro:3`, or "" when forgotten."""
        places = self._places
        if not self._full and len(places) + len(ids) <= REMEMBERED:
            out: dict[int, str] = {}
            for index, id_ in enumerate(ids):
                if id_ in places:
                    out[index] = self._where(id_)
                else:
                    places[id_] = (file, lines[index])
            return out
        if not self._full:
            self._full = True
            self._take(_hashes(list(places)))
        return {index: self._where(ids[index]) for index in self._take(_hashes(ids))}

    def _where(self, id_: str) -> str:
        known = self._places.get(id_)
        return f"{known[0]}:{known[1]}" if known else ""

    def _take(self, hashes: Hashes) -> list[int]:
        """Takes hashes in; the positions of those that were there before, or earlier among them."""
        fresh, firsts = np.unique(hashes, return_index=True)
        again = np.ones(len(hashes), np.bool_)
        again[firsts] = False
        known = np.zeros(len(fresh), np.bool_)
        for run in self._runs:
            at = np.searchsorted(run, fresh)
            at[at == len(run)] = 0
            known |= run[at] == fresh
        again[firsts[known]] = True
        self._add(fresh[~known])
        return np.flatnonzero(again).tolist()

    def _add(self, run: Hashes) -> None:
        if not len(run):
            return
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            merged = np.concatenate((self._runs.pop(), self._runs.pop()))
            merged.sort()  # in place: a stable sort takes half as much memory again
            self._runs.append(merged)


def _hashes(ids: Sequence[str]) -> Hashes:
    return np.fromiter(map(hash, ids), np.int64, len(ids))
