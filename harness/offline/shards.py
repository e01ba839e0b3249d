"""Parts of an evaluation for several machines: `--shard i/n`, each with about as many hours as the others.

The same lists and files give the same parts on every machine: the longest file first, each to the part that has the
least so far. Where sizes cannot be had cheaply (stores) each part gets as many files as the others. `cut` in the
journal says how it came out, so that parts of another cut are not put together.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

import numpy as np
import numpy.typing as npt

from harness.model.offline import ListedFile
from harness.offline.handing_out import LEAST_S
from harness.offline.journal_header import Shard
from harness.sound.sound_files import rough_seconds


class PartOfFiles(Sequence[ListedFile]):
    """The files of one part, in list order. shard: which part, with its cut filled in."""

    def __init__(self, files: Sequence[ListedFile], shard: Shard) -> None:
        parts = _parts(files, shard.of)
        self._files = files
        self._places = np.flatnonzero(parts == shard.number - 1)
        self.shard = replace(shard, cut=hashlib.sha256(parts.astype("<u4").tobytes()).hexdigest()[:16])

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> ListedFile: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ListedFile]: ...
    def __getitem__(self, index: int | slice) -> ListedFile | Sequence[ListedFile]:
        if isinstance(index, slice):
            return [self._files[int(place)] for place in self._places[index]]
        return self._files[int(self._places[index])]


def _parts(files: Sequence[ListedFile], of: int) -> npt.NDArray[np.uint32]:
    """Which part each file goes to, from 0."""
    lengths = np.fromiter((max(LEAST_S, rough_seconds(one.path)) for one in files), np.float64, len(files))
    parts = np.zeros(len(files), np.uint32)
    # (hours, files, part): where lengths are not known, the part with the fewest files is next.
    loads = [(0.0, 0, part) for part in range(of)]
    for place in np.argsort(-lengths, kind="stable"):
        seconds, count, part = loads[0]
        parts[place] = part
        heapq.heapreplace(loads, (seconds + float(lengths[place]), count + 1, part))
    return parts
