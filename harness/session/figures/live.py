"""Results of a running session. The log's thread feeds them, and other threads read them."""

from __future__ import annotations

from harness.base import threads
from harness.model.record import DecisionReached, Entry, SessionStarted
from harness.model.scenario import Scenario
from harness.model.trial import Trial
from harness.session.figures.limits import check_limits
from harness.session.figures.progress import Progress, SessionFigures
from harness.statistics.verdict import DeclaredLimit
from harness.wake.wake import WakeFigures
from harness.wake.wake_progress import WakeProgress, due_decisions, why_needless


class LiveFigures:
    """The results of the rows so far, and the decisions that a run bases on them."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._session = SessionFigures()
        self._wake: WakeFigures | None = None
        self._lock = threads.lock()

    def add(self, entry: Entry) -> None:
        """Adds a committed row; call it in the order of the log."""
        with self._lock:
            self._session.add(entry)
            if isinstance(entry.record, SessionStarted) and entry.record.listens:
                self._wake = WakeFigures()
            if self._wake is not None:
                self._wake.add(entry)

    def add_later(self, entry: Entry) -> None:
        """Adds a row from the file beside the log."""
        with self._lock:
            self._session.add_later(entry)

    def session(self) -> Progress:
        """State and results of the session."""
        with self._lock:
            return self._session.snapshot()

    def wake(self) -> WakeProgress:
        """Results on wake events; empty for a session without such trials."""
        with self._lock:
            return self._wake.snapshot() if self._wake else WakeProgress()

    def is_explained(self, seq: int) -> bool | None:
        """As `ConductorContext.is_explained`."""
        with self._lock:
            return self._wake.is_explained(seq) if self._wake else False

    def needless_reason(self, trial: Trial) -> str:
        """Why a listening trial need not be played any more; "" if it must be."""
        return why_needless(trial, self._test_figures(), self._scenario.stopping)

    def decisions(self) -> tuple[DecisionReached, ...]:
        """Rows about sequential tests that the log lacks."""
        return due_decisions(self._test_figures(), self._scenario.stopping)

    def _test_figures(self) -> WakeProgress:
        """What the sequential tests need; empty without tests, since it takes long to compute."""
        stopping = self._scenario.stopping
        if self._wake is None or not (stopping.false_accepts or stopping.false_rejects):
            return WakeProgress()
        with self._lock:
            return self._wake.sequential_snapshot()

    def limits(self, *, running: bool) -> tuple[DeclaredLimit, ...]:
        """The scenario's limits with their verdicts."""
        scenario = self._scenario
        return check_limits(scenario.limits, self.session().totals, self.wake(), scenario.stopping, running=running)
