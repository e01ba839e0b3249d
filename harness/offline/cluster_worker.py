"""What runs on a cluster's worker. It plays the files of a task in a supervised child process, and keeps the child and
its engine for the next task.

An engine that crashes loses its file, as on one machine, and never the cluster's worker. Only bytes, texts and dicts
cross the network.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from harness import __version__
from harness.base.plain_json import from_plain, to_plain
from harness.model.errors import EngineError, HarnessError
from harness.model.frozen import frozen
from harness.model.offline import INLINE, EngineFacts, Evaluation, ListedFile
from harness.offline.messages import decode_files
from harness.offline.pool import WorkerLimits, WorkerPool
from harness.offline.run import ActiveRun, do_nothing
from harness.sound.sound_files import UnusableSound, open_file

MAX_NAMES = 3
PROBES_PER_LIST = 3
"""The machine that runs the evaluation may be unable to read any file of a list. Each worker must then be able to open
one of this many at its start."""


@frozen
class ClusterOrder:
    """What a worker needs to know about an evaluation.

    - run: id of this run of the evaluation. A worker keeps the engine until that run ends.
    - version: version of the harness that runs the evaluation; a worker with another version refuses the order.
    - probes: groups of paths. A worker must be able to open at least one path of each group.
    - expected_facts: `facts_hash` of the engine that a worker must have; "" before it is known.
    - proven: whether the engine has already played a file somewhere. If a file then ends the engine, the file is at
      fault.
    """

    run: str
    version: str
    evaluation: Evaluation
    limits: WorkerLimits
    probes: tuple[tuple[str, ...], ...] = ()
    expected_facts: str = ""
    proven: bool = False

    def encode(self) -> bytes:
        return json.dumps(to_plain(self)).encode()

    @classmethod
    def decode(cls, payload: bytes) -> ClusterOrder:
        return from_plain(cls, json.loads(payload))

    def unreadable_probe(self) -> str:
        """Why this worker cannot open the first path of a group of probes; "" if it can open one path of each group."""
        for group in self.probes:
            reasons = [_why_unreadable(path) for path in group]
            if all(reasons):
                return f"{group[0]} cannot be read there ({reasons[0]})"
        return ""


def facts_hash(facts: EngineFacts) -> str:
    """A hash of the facts that must be equal on all machines. Settings are left out: they name which of two equal
    paths an engine takes."""
    return hashlib.sha256(json.dumps(to_plain(replace(facts, settings=()), sparse=True)).encode()).hexdigest()


def probes_of(files: Iterable[ListedFile]) -> tuple[tuple[str, ...], ...]:
    """Groups of paths; a worker must be able to open one of each. For each list: the first file that this machine can
    read, and its reference. If it can read none: one group with the first few files."""
    probes: list[tuple[str, ...]] = []
    for group in _probe_files(files):
        readable = next((file for file in group if not _why_unreadable(file.path)), None)
        if readable is None:
            probes.append(tuple(file.path for file in group))
        else:
            probes.append((readable.path,))
            if (
                readable.reference
                and not readable.reference.startswith(INLINE)
                and not _why_unreadable(readable.reference)
            ):
                probes.append((readable.reference,))
    return tuple(probes)


def _probe_files(files: Iterable[ListedFile]) -> list[Sequence[ListedFile]]:
    """The first files of each list. A list begins where the kind changes or line numbers start again."""
    lists: list[list[ListedFile]] = []
    previous_file: ListedFile | None = None
    for file in files:
        if previous_file is None or file.kind is not previous_file.kind or file.line <= previous_file.line:
            lists.append([])
        previous_file = file
        if len(lists[-1]) < PROBES_PER_LIST and file.rejected is None:
            lists[-1].append(file)
    return [first_files for first_files in lists if first_files]


def _why_unreadable(path: str) -> str:
    """Why a file cannot be opened; "" if it can."""
    try:
        open_file(path).close()
    except UnusableSound as unusable:
        return unusable.detail
    except HarnessError as error:
        return str(error)
    return ""


def shortened_list(names: Sequence[str]) -> str:
    """The first names, and the number of the others: `a, b, c and 4 more`."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


IDLE_S = 60.0
"""An engine closes after this time without files."""
TICK_S = 0.2
"""Interval at which a loading engine is asked whether the evaluation was stopped."""

_lock = threading.Lock()
"""Protects `_idle` and `_stops`: the scheduler runs several tasks at once, each in its thread."""
_idle: dict[str, list[EngineHost]] = {}
"""Engines that wait for their next task, by the run for which they are kept."""
_stops: dict[str, threading.Event] = {}
"""An event for each run. `end_run` sets it, and running tasks then stop."""


def describe_engine(payload: bytes) -> dict[str, Any]:
    """Loads the engine. The answer has its `facts`, or in `misfit` the reason why this worker cannot take part."""
    return _with_engine(payload, lambda engine, order: {"facts": to_plain(engine.facts, sparse=True)})


def play(payload: bytes, files: bytes) -> dict[str, Any]:
    """Plays files and returns their outcomes.

    - payload: an encoded ClusterOrder.
    - files: from `encode_files`.

    - `lines`: the lines of a journal with the outcomes, in order of arrival. After `end_run` some are missing.
    - `lost`: a line for each child process that ended, with the reason.
    - `misfit`: why this worker cannot take part; it is absent if the worker can.
    - `messages`: lines for people.
    - `cached`: seconds of audio and number of files whose stored scores were used.
    - `host`: processor and similar facts of this worker, as (name, value) pairs.
    """
    return _with_engine(payload, lambda engine, order: engine.play(decode_files(files), proven=order.proven))


def end_run(run: str) -> None:
    """Ends the evaluation here: closes its engines, and stops running tasks within 2 s."""
    _stop_event(run).set()
    with _lock:
        engines = _idle.pop(run, [])
    for engine in engines:
        engine.close()


def _with_engine(payload: bytes, work: Callable[[EngineHost, ClusterOrder], dict[str, Any]]) -> dict[str, Any]:
    """The answer of `work`, done with an engine of this order. The engine is kept for the next task if it may be
    used again. payload: an encoded ClusterOrder, perhaps of another version: until that is known, only its `version`
    is read."""
    coordinator_version = json.loads(payload)["version"]
    answer: dict[str, Any] = {"version": __version__, "address": _address()}
    if coordinator_version != __version__:
        return answer | {
            "misfit": f"its harness has version {__version__}, but the evaluation has {coordinator_version}"
        }
    order = ClusterOrder.decode(payload)
    if _stop_event(order.run).is_set():
        return answer | {"lines": b""}
    engine = _take_engine(order)
    try:
        misfit = engine.load_and_check(order)
        answer |= {"misfit": misfit} if misfit else work(engine, order)
    except HarnessError as error:
        # The pool may be in any state.
        engine.close()
        return answer | {"misfit": str(error), "messages": engine.take_lines()}
    except BaseException:
        engine.close()
        raise
    answer["messages"] = engine.take_lines()
    if misfit or _stop_event(order.run).is_set():
        engine.close()
    else:
        _return_engine(engine)
    return answer


class EngineHost:
    """An engine in a child, and the thread that started it: the child ends with that thread."""

    def __init__(self, order: ClusterOrder) -> None:
        self.order = order
        self.facts: EngineFacts | None = None
        self._stop = _stop_event(order.run)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="harness")
        self._pool: WorkerPool | None = None
        self._lines: list[str] = []
        self._timer: threading.Timer | None = None
        self._accepted = False

    def load_and_check(self, order: ClusterOrder) -> str:
        """Loads the engine if necessary. Returns why this worker cannot take part, or "" if it can."""
        if self.facts is None:
            self.facts = self._thread.submit(self._load).result()
        if not self._accepted:  # checked with each task until the hash that is expected is known
            unreadable = order.unreadable_probe()
            if unreadable:
                return unreadable
            if order.expected_facts and facts_hash(self.facts) != order.expected_facts:
                return f"its engine differs: version {self.facts.version}, fingerprint {self.facts.fingerprint[:12]}"
            self._accepted = bool(order.expected_facts)
        return ""

    def play(self, files: Sequence[ListedFile], *, proven: bool) -> dict[str, Any]:
        """Plays files. Returns the part of the answer that `play` below the class describes."""
        assert self._pool is not None
        before = self._pool.used
        journal = self._thread.submit(self._play, files, proven).result()
        used = self._pool.used
        return {
            "lines": b"".join(journal.lines),
            "lost": journal.losses,
            "host": used.host,
            "cached": (used.cached_s - before.cached_s, used.cached_files - before.cached_files),
        }

    def take_lines(self) -> list[str]:
        """Returns the lines for people since the last call."""
        lines = list(self._lines)
        self._lines.clear()
        return lines

    def start_idle_timer(self, idle_s: float) -> None:
        """Closes the engine after idle_s, unless `cancel_idle_timer` is called first."""
        self._timer = threading.Timer(idle_s, _close_idle, [self])
        self._timer.daemon = True
        self._timer.start()

    def cancel_idle_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """Has the engine's own thread close it. Does not wait for that."""
        self.cancel_idle_timer()
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    def _load(self) -> EngineFacts:
        order = self.order
        self._pool = WorkerPool(order.evaluation, 1, order.limits, now_s=time.monotonic, report_line=self._lines.append)
        while self._pool.facts is None:
            if self._stop.is_set():
                raise EngineError("the evaluation was stopped while its engine loaded")
            self._pool.step(TICK_S, lambda _: 0.0)
        return self._pool.facts

    def _play(self, files: Sequence[ListedFile], proven: bool) -> _TaskJournal:
        assert self._pool is not None
        journal = _TaskJournal()
        playing = ActiveRun(self.order.evaluation, files, self._pool, journal, proven=proven)
        playing.play(self._stop, do_nothing)
        return journal

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.close(at_once=self._stop.is_set())
            self._pool = None


class _TaskJournal:
    """Collects outcomes until the task returns them. The real journal is on the machine that runs the evaluation."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.losses: list[str] = []

    def note_lost_worker(self, why: str) -> None:
        self.losses.append(why)

    def append_lines(self, lines: bytes) -> None:
        self.lines.append(lines)

    def tick(self) -> None:
        """Nothing waits for a disk here."""


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _stop_event(run: str) -> threading.Event:
    with _lock:
        return _stops.setdefault(run, threading.Event())


def _take_engine(order: ClusterOrder) -> EngineHost:
    """An idle engine of this run, or a new one that has not been loaded."""
    with _lock:
        idle = _idle.get(order.run)
        engine = idle.pop() if idle else None
    if engine is None:
        return EngineHost(order)
    engine.cancel_idle_timer()
    return engine


def _return_engine(engine: EngineHost) -> None:
    with _lock:
        _idle.setdefault(engine.order.run, []).append(engine)
        engine.start_idle_timer(IDLE_S)


def _close_idle(engine: EngineHost) -> None:
    """Closes an engine after its idle time, unless a task has just taken it."""
    with _lock:
        idle = _idle.get(engine.order.run, [])
        if engine not in idle:
            return
        idle.remove(engine)
    engine.close()
