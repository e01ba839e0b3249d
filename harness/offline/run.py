"""An evaluation's files through supervised worker processes, into its journal."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from harness.base.foreign import plain_text
from harness.model.errors import EngineError, InputError
from harness.model.offline import EngineFacts, Evaluation, FileOutcome, ListedFile, ListKind, RejectReason
from harness.offline.answers import Answer
from harness.offline.continuous_sequence import ContinuousSequence
from harness.offline.handing_out import BATCH_S, MOST_FILES, HandingOut
from harness.offline.journal import Journal
from harness.offline.journal_file import JournalFile, key_of
from harness.offline.journal_lines import KINDS, Mark, file_line, outcome_of
from harness.offline.one_file import rejected
from harness.offline.pool import Answered, Limits, Lost, Pool
from harness.offline.run_progress import Pace, Progress
from harness.offline.worker_process import Standing, WorkerProcess

ATTEMPTS = 3
"""How often a file is tried that crashes the engine or hangs it."""
HOPELESS = 8
"""So many files lost in this way, before any went well, are the engine's fault and not theirs."""
TICK_S = 0.2
GRACE_S = 2.0

OpensJournal = Callable[[EngineFacts], Journal]
"""Called once, when the engine has loaded and before any file is played."""
OnOutcome = Callable[[FileOutcome, ListedFile], None]
"""An outcome that is in the journal; in the order in which they come, on the thread of `run`. Where nobody is told, its
line is not read."""


class KeepsOutcomes(Protocol):
    """Where outcomes go: a journal, or what stands for it on a cluster's worker."""

    @property
    def before(self) -> JournalFile | None: ...

    def append_lines(self, lines: bytes) -> None: ...

    def lost(self, why: str) -> None: ...

    def tick(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run. partial: it was stopped; done, rejected, errors: files of this sitting."""

    facts: EngineFacts
    partial: bool
    done: int
    rejected: int
    errors: int
    duration_s: float


def nothing_told(line: str) -> None:
    """Where nobody wants to hear."""


def nothing_to_do() -> None:
    """Where there is nothing to do meanwhile."""


def no_progress(progress: Progress) -> None:
    """Where nobody looks."""


def run(
    evaluation: Evaluation,
    files: Sequence[ListedFile],
    *,
    jobs: int,
    journal: OpensJournal,
    stop: threading.Event,
    on_outcome: OnOutcome | None = None,
    on_progress: Callable[[Progress], None] = no_progress,
    on_told: Callable[[str], None] = nothing_told,
    limits: Limits = Limits(),  # noqa: B008 – frozen
    now_s: Callable[[], float] = time.monotonic,
    while_loading: Callable[[], None] = nothing_to_do,
) -> Ran:
    """Plays the files that the journal has no outcome of, and closes it: COMPLETE, or PARTIAL after a stop.

    stop: once it is set no file is handed out any more, and those in work are given 2 s. on_told: lines for people
    (a worker that does not start, a damaged cache entry). while_loading: called once, while workers load. The
    engine's own error when it does not load; LogFull and LogError of the journal; whatever a callback raises. Workers
    are gone when it returns or raises.
    """
    if not files:
        raise InputError("there are no files to evaluate")
    pool = Pool(evaluation, max(1, min(jobs, len(files))), limits, now_s=now_s, told=on_told)
    at_once = True
    try:
        while_loading()
        while pool.facts is None:
            if stop.is_set():
                raise KeyboardInterrupt
            pool.step(TICK_S, lambda _: 0.0)
        with journal(pool.facts) as opened:
            going = Playing(evaluation, files, pool, opened, on_outcome, now_s)
            partial = going.play(stop, on_progress)
            at_once = partial
            opened.close(Mark.PARTIAL if partial else Mark.COMPLETE, "stopped" if partial else "")
        pace = going.pace
        progress = pace.snapshot(now_s(), 1.0, 0)
        return Ran(pool.facts, partial, progress.done, pace.rejected, pace.errors, progress.elapsed_s)
    finally:
        pool.close(at_once=at_once)


class Playing:
    """A run once its engine has loaded. proven: the engine is known to be able to play a file."""

    def __init__(
        self,
        evaluation: Evaluation,
        files: Sequence[ListedFile],
        pool: Pool,
        journal: KeepsOutcomes,
        on_outcome: OnOutcome | None,
        now_s: Callable[[], float],
        *,
        proven: bool = False,
    ) -> None:
        self._files = files
        self._pool = pool
        self._journal = journal
        self._on_outcome = on_outcome
        self._now_s = now_s
        self._attempts: Counter[int] = Counter()
        self._suspects: deque[int] = deque()
        self._lost = 0
        self._played = int(proven)
        self._due = due_of(files, journal)
        self._left = int(np.count_nonzero(self._due))
        in_sequence = np.zeros(len(files), bool)
        if evaluation.continuous:
            in_sequence[:] = [one.kind is ListKind.OOV for one in files]
        self._waiting = HandingOut(files, self._due & ~in_sequence)
        # The engine has to hear all of them again for those that are left.
        again = in_sequence if bool((self._due & in_sequence).any()) else np.zeros(len(files), bool)
        self._sequence = ContinuousSequence(files, np.flatnonzero(again).tolist())
        self.pace = Pace(self._left, now_s())

    def play(self, stop: threading.Event, on_progress: Callable[[Progress], None]) -> bool:
        """Until every file has its outcome; whether it was stopped before."""
        stopped_s: float | None = None
        shown_s = self._now_s()
        while self._left:
            now_s = self._now_s()
            if stop.is_set() and stopped_s is None:
                stopped_s = now_s
            if stopped_s is None:
                self._hand_out()
            elif now_s - stopped_s > GRACE_S or not any(worker.hands for worker in self._pool.workers):
                return True
            self._take(self._pool.step(TICK_S, self._waiting.rough_s))
            self._journal.tick()
            if now_s - shown_s >= TICK_S:
                shown_s = now_s
                self._show(on_progress)
        self._show(on_progress)
        return False

    def _hand_out(self) -> None:
        for worker in self._pool.workers:
            if worker.standing is not Standing.READY:
                continue
            if self._sequence.wants(worker, busy=len(self._pool.workers) == 1 and bool(self._waiting)):
                positions, lines, last = self._sequence.next()
                self._pool.give(worker, positions, lines, last=last)
            elif not worker.sequence:
                positions = self._next_for(worker)
                if positions:
                    lines = b"".join(file_line(self._files[position]) for position in positions)
                    self._pool.give(worker, positions, lines)

    def _next_for(self, worker: WorkerProcess) -> list[int]:
        """What a worker is given: nothing while it has enough."""
        if self._suspects and not worker.hands and (worker.begun == 0 or not self._fresh_to_come()):
            return [self._suspects.popleft()]
        if not self._waiting:
            return []
        speed = self._pool.speed
        if speed is None:
            return [] if worker.hands else self._waiting.take(0.0, 1)
        most_s, most_files = BATCH_S * speed, min(MOST_FILES, max(1, round(BATCH_S * self._pool.files_per_s)))
        hands = worker.hands
        if hands and (len(hands) > most_files / 2 or sum(map(self._waiting.rough_s, hands)) > most_s / 2):
            return []
        return self._waiting.take(most_s, most_files)

    def _fresh_to_come(self) -> bool:
        """Whether a worker is about to be there that has played nothing: the one to try a suspect on."""
        return any(one.standing is Standing.LOADING or (not one.begun and not one.hands) for one in self._pool.workers)

    def _take(self, happened: Sequence[Answered | Lost]) -> None:
        answers: list[tuple[int, Answer]] = []
        for one in happened:
            match one:
                case Answered(worker=worker, position=position, answer=answer):
                    self._played += answer.rejected is not RejectReason.ERROR
                    answers.append((position, answer))
                    if worker.sequence and not worker.hands and self._sequence.given:
                        worker.sequence = False
                case Lost():
                    answers += self._mourn(one)
        answers = [one for one in answers if self._due[one[0]]]
        if not answers:
            return
        self._journal.append_lines(b"".join(answer.line for _, answer in answers))
        for position, answer in answers:
            self._due[position] = False
            self._left -= 1
            self._waiting.finished(position)
            self.pace.count(answer)
            if self._on_outcome is not None:
                self._on_outcome(outcome_of(answer.line).outcome, self._files[position])

    def _mourn(self, lost: Lost) -> list[tuple[int, Answer]]:
        """What a lost worker had in hand is played again; what it was at, some times, and then rejected."""
        at = "" if lost.guilty is None else f" at {plain_text(self._files[lost.guilty].listed)}"
        line = f"a worker {lost.why}{at}"
        self._journal.lost(line)
        in_hand = lost.guilty is not None or bool(lost.others)
        self._pool.told(f"{line}; another plays what it had in hand" if in_hand else line)
        sequence = lost.worker.sequence
        if sequence:
            self._sequence.begin_again()
        else:
            self._waiting.give_back(lost.others)
        if lost.guilty is None:
            return []
        self._attempts[lost.guilty] += 1
        if self._attempts[lost.guilty] < ATTEMPTS:
            if not sequence:
                self._suspects.append(lost.guilty)
            return []
        self._lost += 1
        if self._lost >= HOPELESS and not self._played:
            raise EngineError(
                f"the engine ended on each of {self._lost} files, {ATTEMPTS} times each, and none went well; "
                f"the last time it {lost.why}",
                remedy="Try it on one file that it is sure to know",
            )
        file = self._files[lost.guilty]
        if sequence:
            self._sequence.leave_out(lost.guilty, lost.reason)
        outcome = rejected(file, lost.reason, error=f"the engine {lost.why}, {ATTEMPTS} times")
        return [(lost.guilty, Answer.of(outcome, file.listed))]

    def _show(self, on_progress: Callable[[Progress], None]) -> None:
        done_s = self._waiting.done_s + self._sequence.done_s
        total_s = self._waiting.total_s + self._sequence.total_s
        share = min(1.0, done_s / total_s) if total_s else None
        on_progress(self.pace.snapshot(self._now_s(), share, len(self._pool.workers)))


def due_of(files: Sequence[ListedFile], journal: KeepsOutcomes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which files have no outcome in the journal yet."""
    if journal.before is None or not len(journal.before):
        return np.ones(len(files), bool)
    keys = np.fromiter((key_of(KINDS.index(one.kind), one.number) for one in files), np.int64, len(files))
    return ~np.isin(keys, journal.before.index.keys)
