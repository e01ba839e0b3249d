"""The part of a cluster's worker: plays the files of a task in a supervised child, whose engine is kept for the next
task.

An engine that crashes loses its file, as on one machine, and never the cluster's worker. Only bytes, texts and dicts
cross the network.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness import __version__
from harness.base.plain_json import plain, restored
from harness.model.errors import HarnessError, InputError
from harness.model.offline import INLINE, EngineFacts, Evaluation, ListedFile
from harness.offline.messages import files_of
from harness.offline.pool import WorkerLimits, WorkerPool
from harness.offline.run import FilesInPlay, nobody
from harness.sound.sound_files import UnusableSound, open_file

SEEN_OF_A_LIST = 3
"""If this machine can read none of a list's files, each worker must be able to open one of this many."""


@dataclass(frozen=True, slots=True)
class ClusterOrder:
    """What a worker needs to know about an evaluation.

    run: the identity of the evaluation, for which an engine is kept until its end. version: of the harness.

    probes: groups of paths. A worker must be able to open one of each. likeness: of the engine (`likeness`), "" before
    it is known.

    proven: a file has been played. If a file ends the engine now, the file is at fault.
    """

    run: str
    version: str
    evaluation: Evaluation
    limits: WorkerLimits
    probes: tuple[tuple[str, ...], ...] = ()
    likeness: str = ""
    proven: bool = False

    def unseen(self) -> str:
        """A path that cannot be read here but should be, and why. "" if there is none."""
        for group in self.probes:
            why = [_closed(path) for path in group]
            if all(why):
                return f"{group[0]} cannot be read there ({why[0]})"
        return ""


def likeness(facts: EngineFacts) -> str:
    """A hash of the facts that must be equal on all machines. Settings are left out: they name which of two equal
    paths an engine takes."""
    return hashlib.sha256(json.dumps(plain(replace(facts, settings=()), sparse=True)).encode()).hexdigest()


def probes_of(files: Iterable[ListedFile]) -> tuple[tuple[str, ...], ...]:
    """Paths that a worker must be able to open. For each list: the first file that this machine can read, and its
    reference. If it can read none: the first few."""
    probes: list[tuple[str, ...]] = []
    for first in _firsts(files):
        here = next((one for one in first if not _closed(one.path)), None)
        if here is None:
            probes.append(tuple(one.path for one in first))
        else:
            probes.append((here.path,))
            if here.reference and not here.reference.startswith(INLINE) and not _closed(here.reference):
                probes.append((here.reference,))
    return tuple(probes)


def _firsts(files: Iterable[ListedFile]) -> list[Sequence[ListedFile]]:
    """The first files of each list. A list begins where the kind changes or line numbers start again."""
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
    """Why a file cannot be opened; "" if it can."""
    try:
        open_file(path).close()
    except UnusableSound as unusable:
        return unusable.detail
    except HarnessError as error:
        return str(error)
    return ""


IDLE_S = 60.0
"""An engine closes after this time without files."""
TICK_S = 0.2

_stops: dict[str, threading.Event] = {}
_seats: dict[tuple[str, int], EngineSeat] = {}
"""By run and by thread: a child ends with the thread that started it. A worker's threads last as long as it does."""


def play(order: bytes, files: bytes) -> dict[str, Any]:
    """Plays files, none to load the engine only.

    `facts`: of the engine. `lines`: lines of a journal in order of arrival, fewer after `dismiss`. `lost`: why engines
    ended. `host`: of this worker. `misfit` instead: why this worker cannot take part. `told`: lines for people. files:
    as `files_told` makes them.
    """
    from distributed import get_worker

    answer: dict[str, Any] = {"address": str(get_worker().address)}
    content = json.loads(order)
    run, version = content["run"], content["version"]
    if version != __version__:
        return answer | {"misfit": f"its harness has version {__version__}, but the evaluation has {version}"}
    stop = _stops.setdefault(run, threading.Event())
    seat = _seats.setdefault((run, threading.get_ident()), EngineSeat(stop))
    return answer | seat.play(restored(ClusterOrder, content), files_of(files))


def dismiss(run: str) -> None:
    """Ends the evaluation here: closes its engines, and stops running tasks within 2 s."""
    _stops.setdefault(run, threading.Event()).set()
    for place in list(_seats):
        if place[0] == run:
            threading.Thread(target=_seats.pop(place).close, daemon=True).start()  # it may wait for a task


class EngineSeat:
    """An engine in a child, between tasks too. stop: is set at the end of the evaluation."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        self._pool: WorkerPool | None = None
        self._idle = threading.Timer(IDLE_S, self.close)

    def play(self, order: ClusterOrder, files: Sequence[ListedFile]) -> dict[str, Any]:
        told: list[str] = []
        kept = _Kept()
        with self._lock:
            self._idle.cancel()
            try:
                pool = self._pool or self._load(order, told.append)
                pool.told = told.append
                FilesInPlay(order.evaluation, files, pool, kept, proven=order.proven).play(self._stop, nobody)
            except HarnessError as error:
                self._close()  # the pool may be in any state
                return {"told": told} if self._stop.is_set() else {"misfit": str(error), "told": told}
            except BaseException:
                self._close()
                raise
            if self._stop.is_set():
                self._close()
            self._idle = threading.Timer(IDLE_S, self.close)
            self._idle.daemon = True
            self._idle.start()
            return {
                "facts": plain(pool.facts, sparse=True),
                "lines": b"".join(kept.lines),
                "lost": kept.losses,
                "host": pool.used.host,
                "told": told,
            }

    def close(self) -> None:
        with self._lock:
            self._close()

    def _load(self, order: ClusterOrder, tell: Callable[[str], None]) -> WorkerPool:
        """HarnessError if this worker cannot take part."""
        self._pool = pool = WorkerPool(order.evaluation, 1, order.limits, now_s=time.monotonic, told=tell)
        while pool.facts is None:
            if self._stop.is_set():
                raise InputError("the evaluation was stopped while its engine loaded")
            pool.step(TICK_S, lambda _: 0.0)
        if unseen := order.unseen():
            raise InputError(unseen)
        if order.likeness and likeness(pool.facts) != order.likeness:
            version, fingerprint = pool.facts.version, pool.facts.fingerprint[:12]
            raise InputError(f"its engine differs: version {version}, fingerprint {fingerprint}")
        return pool

    def _close(self) -> None:
        self._idle.cancel()
        if self._pool is not None:
            self._pool.close(at_once=self._stop.is_set())
            self._pool = None


class _Kept:
    """Outcomes until the task returns. The journal is on the machine that runs the evaluation."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.losses: list[str] = []

    def lost(self, why: str) -> None:
        self.losses.append(why)

    def append_lines(self, lines: bytes) -> None:
        self.lines.append(lines)

    def tick(self) -> None:
        """Nothing waits for a disk here."""
