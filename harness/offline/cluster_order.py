"""What goes between an evaluation and a cluster's workers: plain data, which any version of either can look at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from harness.base.plain_json import plain, restored
from harness.model.errors import HarnessError
from harness.model.offline import EngineFacts, Evaluation, ListedFile
from harness.offline.pool import Limits
from harness.sound.sound_files import UnusableSound, open_file

SEEN_OF_A_LIST = 3
"""So many files of a list that this machine cannot read itself are looked for by each worker; one has to be there."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker has to know of an evaluation.

    run: which, so that an engine is kept for it and let go of with it. version: of the harness. probes: groups of
    paths; a worker must be able to open one of each. likeness: of the engine (`likeness`), "" before it is known.
    proven: a file has gone well, so that an engine that ends on some does so by their fault.
    """

    run: str
    version: str
    evaluation: Evaluation
    limits: Limits
    probes: tuple[tuple[str, ...], ...] = ()
    likeness: str = ""
    proven: bool = False

    def told(self) -> bytes:
        return json.dumps(plain(self)).encode()

    @classmethod
    def of(cls, told: bytes) -> Order:
        return restored(cls, json.loads(told))

    def unseen(self) -> str:
        """A path that should be seen from here and is not, and why; "" when all is there."""
        for group in self.probes:
            why = [_closed(path) for path in group]
            if all(why):
                return f"{group[0]} cannot be read there ({why[0]})"
        return ""


def likeness(facts: EngineFacts) -> str:
    """What of an engine has to be the same on all machines: all but how its settings came out, as which of two equal
    paths it takes."""
    return hashlib.sha256(json.dumps(plain(replace(facts, settings=()), sparse=True)).encode()).hexdigest()


def probes_of(files: Iterable[ListedFile]) -> tuple[tuple[str, ...], ...]:
    """Paths by which a worker shows that it sees each list's files: the first that this machine can read, and its
    reference; where it can read none, the first few."""
    probes: list[tuple[str, ...]] = []
    for first in _firsts(files):
        here = next((one for one in first if not _closed(one.path)), None)
        if here is None:
            probes.append(tuple(one.path for one in first))
        else:
            probes.append((here.path,))
            if here.reference and not _closed(here.reference):
                probes.append((here.reference,))
    return tuple(probes)


def _firsts(files: Iterable[ListedFile]) -> list[Sequence[ListedFile]]:
    """The first files of each list: a list begins where the lines do."""
    lists: list[list[ListedFile]] = []
    before: ListedFile | None = None
    for one in files:
        if before is None or one.kind is not before.kind or one.line <= before.line:
            lists.append([])
        before = one
        if len(lists[-1]) < SEEN_OF_A_LIST and one.rejected is None:
            lists[-1].append(one)
    return [one for one in lists if one]


def _closed(path: str) -> str:
    """Why a file cannot be opened; "" when it can."""
    try:
        open_file(path).close()
    except UnusableSound as unusable:
        return unusable.detail
    except HarnessError as error:
        return str(error)
    return ""


def shortly(names: Sequence[str], most: int = 3) -> str:
    """The first few of them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(chain(names[:most])) + more
