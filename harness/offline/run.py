"""Plays an evaluation's files through supervised worker processes, into its journal."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Protocol

import numpy as np

from harness.base.foreign import plain_text
from harness.model.errors import EngineError, InputError
from harness.model.frozen import frozen
from harness.model.offline import EngineFacts, Evaluation, FileOutcome, ListedFile, ListKind, RejectReason
from harness.offline.journal import Journal, JournalFile, key_of
from harness.offline.journal_lines import KINDS, outcome_of
from harness.offline.messages import FileAnswer
from harness.offline.pool import FilesAnswered, LostWorker, WorkerLimits, WorkerPool, WorkerProcess, WorkerState
from harness.sound.sound_stores import rough_seconds

RECENT_S = 20.0
"""Time over which the recent rate is averaged."""


@frozen
class RunProgress:
    """Progress of this sitting.

    - files, done, rejected, errors: numbers of files. A file with an error is also rejected.
    - audio_s: seconds of audio in the usable files that are done.
    - rate: audio time divided by wall time. recent_rate: the same over the last RECENT_S. None while not known.
    - eta_s: expected time left; None while not known.
    """

    files: int
    done: int
    rejected: int
    errors: int
    audio_s: float
    rate: float | None
    recent_rate: float | None
    eta_s: float | None


class RunPace:
    """Counts and times of a run so far, by the run's clock.

    - done, rejected, errors: numbers of files in this sitting.
    - audio_s: seconds of audio in the usable ones.
    - partial: whether the run was stopped.
    """

    def __init__(self, files: int, began_s: float) -> None:
        self._files = files
        self._began_s = began_s
        self._recent: deque[tuple[float, float]] = deque([(began_s, 0.0)])
        self.done = self.rejected = self.errors = 0
        self.audio_s = 0.0
        self.partial = False

    def add(self, outcome: FileOutcome | FileAnswer) -> None:
        self.done += 1
        self.rejected += outcome.rejected is not None
        self.errors += bool(outcome.error)
        if outcome.rejected is None:
            self.audio_s += outcome.seconds

    def snapshot(self, now_s: float, share_done: float | None) -> RunProgress:
        """The progress at now_s. share_done: share of this sitting's hours of audio that is done; None if unknown."""
        elapsed_s = now_s - self._began_s
        recent_rate = self._recent_rate(now_s)
        return RunProgress(
            files=self._files,
            done=self.done,
            rejected=self.rejected,
            errors=self.errors,
            audio_s=self.audio_s,
            rate=self.audio_s / elapsed_s if elapsed_s > 0 and self.audio_s else None,
            recent_rate=recent_rate,
            eta_s=elapsed_s * (1 - share_done) / share_done if share_done else None,
        )

    def _recent_rate(self, now_s: float) -> float | None:
        """Audio time over wall time since a moment about RECENT_S ago, or since the begin. Notes the amount of audio
        now, at most twice a second."""
        if now_s - self._recent[-1][0] >= 0.5:
            self._recent.append((now_s, self.audio_s))
        while len(self._recent) > 1 and now_s - self._recent[0][0] > RECENT_S:
            self._recent.popleft()
        since_s, before_s = self._recent[0]
        if now_s <= since_s or self.audio_s <= before_s:
            return None
        return (self.audio_s - before_s) / (now_s - since_s)


_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that the first of _STOP_SIGNALS sets; the second raises KeyboardInterrupt. Signals that were ignored
    (by `nohup`, for example) stay ignored. Outside the main thread nothing changes."""
    stop = threading.Event()

    def handle_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    in_main_thread = threading.current_thread() is threading.main_thread()
    before = {
        signum: signal.getsignal(signum)
        for signum in _STOP_SIGNALS
        if in_main_thread and signal.getsignal(signum) is not signal.SIG_IGN
    }
    for signum in before:
        signal.signal(signum, handle_signal)
    try:
        yield stop
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


WINDOW = 100_000
"""Number of files that are sorted by length together. To look up more lengths would delay the first file."""
BATCH_S = 0.5
"""Time that a worker needs for a batch of files. Long enough that handing it out costs little, short enough that all
workers finish at about the same time."""
MAX_FILES = 512
"""Most files in a batch. Chosen with BATCH_S, so that no worker waits for its next files, however short they are."""
MIN_BATCH_S = 0.1
"""Shorter files count as this long when work is planned, since opening a file takes time too."""


class FileQueue:
    """The files that are still to be played, each known by its position in `files`.

    Files are taken from windows of 100,000, the longest of each window first: long files at the end would leave other
    workers idle. The rough length of a file is looked up only when its window begins.

    - due: True for each position that is to be played, shape (len(files),).
    - done_s: rough length of the finished files.
    """

    def __init__(self, files: Sequence[ListedFile], due: Sequence[bool] | np.ndarray[tuple[int], np.dtype[np.bool_]]):
        self._files = files
        self._due_positions = np.flatnonzero(np.asarray(due, dtype=bool))
        self._windows_end = 0
        self._ready: deque[int] = deque()
        self._repeated: deque[int] = deque()
        self._rough_s = np.zeros(len(files), np.float32)
        self._known_total_s = 0.0
        self.done_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._ready or self._repeated or self._windows_end < len(self._due_positions))

    def rough_s(self, position: int) -> float:
        """Rough length of a file in seconds; 0 before its length was looked up."""
        return float(self._rough_s[position])

    def take(self, max_s: float, max_files: int) -> list[int]:
        """The next files, with about max_s of audio in total, but at least one file if any is left."""
        batch: list[int] = []
        total_s = 0.0
        while len(batch) < max(1, max_files) and (self._repeated or self._ready or self._open_window()):
            source = self._repeated or self._ready
            total_s += self.rough_s(source[0])
            if batch and total_s > max_s:
                break
            batch.append(source.popleft())
        return batch

    def give_back(self, positions: Sequence[int]) -> None:
        """Returns files that were taken and not played; they come first next time."""
        self._repeated.extendleft(reversed(positions))

    def mark_finished(self, position: int) -> None:
        """Adds the length of a file to `done_s`. Files that were never in this queue are ignored."""
        if self._rough_s[position]:
            self.done_s += self.rough_s(position)

    @property
    def total_s(self) -> float:
        """Rough length of all files. Those whose length is not known yet count as long as the mean of the others."""
        return self._known_total_s / self._windows_end * len(self._due_positions) if self._windows_end else 0.0

    def _open_window(self) -> bool:
        """Looks up the lengths of the next window of files, and makes them ready. Returns False if none are left."""
        window = self._due_positions[self._windows_end : self._windows_end + WINDOW]
        if not len(window):
            return False
        for position in window:
            file = self._files[position]
            self._rough_s[position] = max(MIN_BATCH_S, rough_seconds(file.path, file.size))
        lengths = self._rough_s[window]
        self._windows_end += len(window)
        self._known_total_s += float(lengths.sum(dtype=np.float64))
        self._ready.extend(window[np.argsort(-lengths, kind="stable")].tolist())
        return True


AHEAD = 16
"""Number of files that the worker has been given and has not begun."""


class ContinuousSequence:
    """Files that one worker must play in list order, since the engine's state is carried over.

    The worker is given a few files ahead of the one that it plays. If it is lost, so is the engine's state: another
    worker starts again from the beginning. Outcomes that the journal already has are then ignored.
    """

    def __init__(self, files: Sequence[ListedFile], positions: Sequence[int]) -> None:
        self._files = files
        self._positions = positions
        self._next = 0
        self._worker: WorkerProcess | None = None
        self._replacements: dict[int, ListedFile] = {}
        self._start_s = [0.0]
        for position in positions:
            self._start_s.append(self._start_s[-1] + rough_seconds(files[position].path))

    @property
    def is_complete(self) -> bool:
        return self._next >= len(self._positions)

    @property
    def total_s(self) -> float:
        return self._start_s[-1]

    @property
    def done_s(self) -> float:
        in_hand = len(self._worker.unanswered) if self._worker is not None else 0
        return self._start_s[self._next - in_hand]

    def claim(self, worker: WorkerProcess, *, busy: bool) -> bool:
        """Gives the sequence to this worker if no other has it and it is idle. Returns whether the worker should be
        given the next files of the sequence now. busy: whether the worker must play other files first."""
        if self.is_complete:
            return False
        if self._worker is None:
            if worker.unanswered or busy:
                return False
            self._worker = worker
            worker.plays_sequence = True
        if worker is not self._worker:
            return False
        in_play = worker.begun - worker.answered
        return len(worker.unanswered) - in_play < AHEAD

    def next_batch(self) -> dict[int, ListedFile]:
        """The next files, by their positions."""
        batch = self._positions[self._next : self._next + AHEAD]
        self._next += len(batch)
        return {position: self._replacements.get(position) or self._files[position] for position in batch}

    def start_again(self) -> None:
        """Begins again with the first file, on a worker that is still to be found."""
        self._worker = None
        self._next = 0

    def leave_out(self, position: int, reason: RejectReason) -> None:
        """Gives up a file that ended the engine too often: it will be handed out as rejected."""
        self._replacements[position] = replace(self._files[position], rejected=reason)


ATTEMPTS = 3
"""Number of attempts at a file that makes the engine crash or hang."""
MAX_LOST_FILES = 8
"""If this many files were lost before any succeeded, the engine is at fault and not the files."""
TICK_S = 0.2
"""Longest wait for events of workers. Progress is also reported at this interval."""
GRACE_S = 2.0
"""Time for the files that are being played when the run is stopped."""

OpenJournal = Callable[[EngineFacts], Journal]
"""Returns the journal to write. Called once, when the engine has loaded and before any file is played."""
OnOutcome = Callable[[FileOutcome, ListedFile], None]
"""Called for each new outcome once it is in the journal, in order of arrival, on the thread of `run`. None instead of a
function saves parsing the lines of outcomes."""


class OutcomeSink(Protocol):
    """Where outcomes go: a journal, or its stand-in on a cluster's worker."""

    def append_lines(self, lines: bytes) -> None: ...
    def note_lost_worker(self, why: str) -> None: ...
    def tick(self) -> None: ...


def do_nothing(_: object = None) -> None:
    """Does nothing."""


def run(
    evaluation: Evaluation,
    files: Sequence[ListedFile],
    *,
    jobs: int,
    journal: OpenJournal,
    stop: threading.Event,
    on_outcome: OnOutcome | None = None,
    on_progress: Callable[[RunProgress], None] = do_nothing,
    on_line: Callable[[str], None] = do_nothing,
    limits: WorkerLimits = WorkerLimits(),  # noqa: B008 – frozen
    now_s: Callable[[], float] = time.monotonic,
    while_loading: Callable[[], object] = do_nothing,
) -> RunPace:
    """Plays the files without an outcome in the journal, and closes it: COMPLETE, or PARTIAL after a stop.

    - stop: once it is set, no more files are handed out, and those being played have 2 s.
    - while_loading: called once, while workers load their engines.
    - on_line: takes lines for people, such as a damaged cache entry.

    Raises the engine's own error if it does not load, LogFull and LogError of the journal, and whatever a callback
    raises. Workers have ended when it returns or raises.
    """
    if not files:
        raise InputError("there are no files to evaluate")
    pool = WorkerPool(evaluation, max(1, min(jobs, len(files))), limits, now_s=now_s, report_line=on_line)
    is_partial = True
    try:
        while_loading()
        while pool.facts is None:
            if stop.is_set():
                raise KeyboardInterrupt
            pool.step(TICK_S, lambda _: 0.0)
        with journal(pool.facts) as opened:
            active_run = ActiveRun(evaluation, files, pool, opened, on_outcome, now_s, earlier=opened.earlier)
            is_partial = active_run.play(stop, on_progress)
            opened.end(partial=is_partial, used=pool.used)
        return active_run.pace
    finally:
        pool.close(at_once=is_partial)


class ActiveRun:
    """A run, from the moment when its engine has loaded. It hands out files, journals the answers, and replays the
    files of lost workers.

    - earlier: the journal with the outcomes of earlier sittings; None without.
    - proven: whether the engine has already played a file elsewhere. If so, it is not at fault when it ends on each of
      the first files.
    - pace: counts and times so far.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        files: Sequence[ListedFile],
        pool: WorkerPool,
        journal: OutcomeSink,
        on_outcome: OnOutcome | None = None,
        now_s: Callable[[], float] = time.monotonic,
        *,
        earlier: JournalFile | None = None,
        proven: bool = False,
    ) -> None:
        self._files = files
        self._engine = plain_text(evaluation.task.name, 200)
        self._pool = pool
        self._journal = journal
        self._on_outcome = on_outcome
        self._now_s = now_s
        self._attempts: Counter[int] = Counter()
        self._suspects: deque[int] = deque()
        self._lost_files = 0
        self._played = int(proven)
        self._due = unplayed_files(files, earlier)
        self._files_left = int(np.count_nonzero(self._due))
        in_sequence = np.full(len(files), pool.facts is not None and pool.facts.carries_state)
        if evaluation.continuous and not in_sequence.any():
            in_sequence[:] = [file.kind is ListKind.OOV for file in files]
        self._waiting = FileQueue(files, self._due & ~in_sequence)
        # If a file of the sequence is due, all of it is played again: the engine's state depends on the earlier files.
        is_repeated = in_sequence if bool((self._due & in_sequence).any()) else np.zeros(len(files), bool)
        self._sequence = ContinuousSequence(files, np.flatnonzero(is_repeated).tolist())
        self.pace = RunPace(self._files_left, now_s())

    def play(self, stop: threading.Event, on_progress: Callable[[RunProgress], None]) -> bool:
        """Plays until every file has its outcome. Returns True if the run was stopped before that."""
        stopped_s: float | None = None
        reported_s = self._now_s()
        while self._files_left:
            now_s = self._now_s()
            if stop.is_set() and stopped_s is None:
                stopped_s = now_s
            if stopped_s is None:
                self._hand_out()
            elif now_s - stopped_s > GRACE_S or not any(worker.unanswered for worker in self._pool.workers):
                self.pace.partial = True
                break
            self._record(self._pool.step(TICK_S, self._waiting.rough_s))
            self._journal.tick()
            if now_s - reported_s >= TICK_S:
                reported_s = now_s
                self._report_progress(on_progress)
        self._report_progress(on_progress)
        return self.pace.partial

    def _hand_out(self) -> None:
        for worker in self._pool.workers:
            if worker.state is not WorkerState.READY:
                continue
            # A single worker plays the other files first, since their outcomes do not depend on each other.
            is_busy = len(self._pool.workers) == 1 and bool(self._waiting)
            if self._sequence.claim(worker, busy=is_busy):
                files = self._sequence.next_batch()
                self._pool.send_files(worker, files, last=self._sequence.is_complete)
            elif not worker.plays_sequence and (positions := self._next_positions(worker)):
                self._pool.send_files(worker, {position: self._files[position] for position in positions})

    def _next_positions(self, worker: WorkerProcess) -> list[int]:
        """Positions of the next files for a worker; empty while it has enough."""
        if self._suspects and not worker.unanswered and (worker.begun == 0 or not self._is_fresh_worker_near()):
            return [self._suspects.popleft()]
        if not self._waiting:
            return []
        speed = self._pool.speed
        if speed is None:  # nothing was measured yet: one file each
            return [] if worker.unanswered else self._waiting.take(0.0, 1)
        max_s, max_files = BATCH_S * speed, min(MAX_FILES, max(1, round(BATCH_S * self._pool.files_per_s)))
        unanswered = worker.unanswered
        if unanswered and (len(unanswered) > max_files / 2 or sum(map(self._waiting.rough_s, unanswered)) > max_s / 2):
            return []
        return self._waiting.take(max_s, max_files)

    def _is_fresh_worker_near(self) -> bool:
        """Whether a worker that has played nothing is about to be ready. A suspect file is tried on such a worker."""
        return any(
            worker.state is WorkerState.LOADING or (not worker.begun and not worker.unanswered)
            for worker in self._pool.workers
        )

    def _record(self, events: Sequence[FilesAnswered | LostWorker]) -> None:
        """Adds the answers among events to the journal, and has the files of lost workers played again."""
        answers: list[tuple[int, FileAnswer]] = []
        for event in events:
            if isinstance(event, LostWorker):
                answers += self._replay_lost_files(event)
                continue
            answers += event.answers
            self._played += sum(answer.rejected is not RejectReason.ERROR for _, answer in event.answers)
            if event.worker.plays_sequence and not event.worker.unanswered and self._sequence.is_complete:
                event.worker.plays_sequence = False
        answers = [(position, answer) for position, answer in answers if self._due[position]]
        if not answers:
            return
        self._journal.append_lines(b"".join(answer.line for _, answer in answers))
        self._files_left -= len(answers)
        for position, answer in answers:
            self._due[position] = False
            self._waiting.mark_finished(position)
            self.pace.add(answer)
            if self._on_outcome is not None:
                self._on_outcome(outcome_of(answer.line).outcome, self._files[position])

    def _replay_lost_files(self, lost: LostWorker) -> list[tuple[int, FileAnswer]]:
        """Arranges that the files of a lost worker are played again. The one that it was playing is tried ATTEMPTS
        times; after that, its rejection is returned as an answer."""
        at_file = "" if lost.suspect is None else f" at {plain_text(self._files[lost.suspect].listed)}"
        line = f"a worker {lost.why}{at_file}"
        self._journal.note_lost_worker(line)
        in_hand = lost.suspect is not None or bool(lost.others)
        self._pool.report_line(f"{self._engine}: {line}{'; another worker plays its files' if in_hand else ''}")
        in_sequence = lost.worker.plays_sequence
        if in_sequence:
            self._sequence.start_again()
        else:
            self._waiting.give_back(lost.others)
        if lost.suspect is None:
            return []
        self._attempts[lost.suspect] += 1
        if self._attempts[lost.suspect] < ATTEMPTS:
            if not in_sequence:
                self._suspects.append(lost.suspect)
            return []
        self._lost_files += 1
        if self._lost_files >= MAX_LOST_FILES and not self._played:
            raise EngineError(
                f"the engine {self._engine} ended on each of {self._lost_files} files, {ATTEMPTS} times each; none "
                f"succeeded. The last time it {lost.why}{at_file}",
                remedy="Try the engine on a single file that it should recognise",
            )
        file = self._files[lost.suspect]
        if in_sequence:
            self._sequence.leave_out(lost.suspect, lost.reason)
        outcome = file.outcome_rejected(lost.reason, error=f"the engine {lost.why}, {ATTEMPTS} times")
        return [(lost.suspect, FileAnswer.of(outcome, file.listed))]

    def _report_progress(self, on_progress: Callable[[RunProgress], None]) -> None:
        done_s = self._waiting.done_s + self._sequence.done_s
        total_s = self._waiting.total_s + self._sequence.total_s
        share = min(1.0, done_s / total_s) if total_s else None
        on_progress(self.pace.snapshot(self._now_s(), share))


def unplayed_files(
    files: Sequence[ListedFile], earlier: JournalFile | None
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """True for each file that has no outcome yet, shape (len(files),). earlier: the journal with the outcomes of
    earlier sittings; None without."""
    if earlier is None or not len(earlier):
        return np.ones(len(files), bool)
    keys = np.fromiter((key_of(KINDS.index(file.kind), file.number) for file in files), np.int64, len(files))
    return ~np.isin(keys, earlier.keys)
