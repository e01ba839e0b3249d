"""A whole session from its rows, once through: what JUnit, wake-evaluation logs and JSON are made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.base.foreign import plain_text
from harness.model.errors import InputError
from harness.model.record import Clip, Entry, FaultMet, SessionStarted, StimulusStored, TrialFinished, TrialStarted
from harness.model.trial import Outcome
from harness.session.figures.progress import Progress, SessionFigures
from harness.session.log.reader import LogReader
from harness.wake.wake import WakeFigures

FAULTS_KEPT = 20


@dataclass(frozen=True, slots=True)
class WholeSession:
    """wake: figures of wake trials; progress: of all. started: the first row. first_s, last_s: Unix times of rows.

    clips: of stimuli, by hash. not_counted: listening trials whose last take ended without counting, and how. faults:
    the last ones. spans: (trial, take) → Unix times of its start and its end.
    """

    wake: WakeFigures
    progress: Progress
    started: SessionStarted
    first_s: float
    last_s: float
    clips: dict[str, Clip]
    not_counted: dict[str, Outcome]
    faults: tuple[FaultMet, ...]
    spans: dict[tuple[str, int], tuple[float, float]]

    @classmethod
    def of(cls, entries: Iterable[Entry], later: Iterable[Entry] = ()) -> WholeSession:
        """From its rows, and those that people added since; InputError when they do not begin with a plan."""
        figures, wake = SessionFigures(), WakeFigures()
        started: SessionStarted | None = None
        first_s = last_s = 0.0
        clips: dict[str, Clip] = {}
        endings: dict[str, Outcome] = {}
        faults: deque[FaultMet] = deque(maxlen=FAULTS_KEPT)
        spans: dict[tuple[str, int], tuple[float, float]] = {}
        for entry in entries:
            figures.add(entry)
            wake.add(entry)
            first_s, last_s = first_s or entry.wall_s, entry.wall_s
            match entry.record:
                case SessionStarted() as row:
                    started = row
                case StimulusStored(sha256=sha256, clip=clip):
                    clips[sha256] = clip
                case TrialStarted(trial_id=trial_id, take=take):
                    spans[trial_id, take] = last_s, last_s
                case TrialFinished(trial_id=trial_id, take=take, outcome=outcome):
                    spans[trial_id, take] = spans.get((trial_id, take), (last_s, last_s))[0], last_s
                    endings[trial_id] = outcome
                case FaultMet() as fault:
                    faults.append(fault)
                case _:
                    pass
        for entry in later:
            figures.add_later(entry)
        if started is None:
            raise InputError("the session has no plan", remedy="Check it: harness show SESSION --check")
        listening = {trial.id for trial in started.trials if trial.listening is not None}
        uncounted: dict[str, Outcome] = {
            one: how for one, how in endings.items() if how is not Outcome.COUNTED and one in listening
        }
        progress = figures.snapshot()
        return cls(wake, progress, started, first_s, last_s, clips, uncounted, tuple(faults), spans)

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(one.device for one in self.wake.snapshot().devices)

    def demand(self, device: str | None) -> tuple[str, ...]:
        """That device, or all; InputError when it is not one of them, or there is none."""
        if not self.devices:
            raise InputError(
                "the session has no wake, command or ambient trials", remedy="Nothing to export; try: harness show"
            )
        if device is None:
            return self.devices
        if device not in self.devices:
            raise InputError(
                f"no device is called {plain_text(device, 80)!r} in this session",
                remedy=f"Its devices: {', '.join(self.devices)}",
            )
        return (device,)


def read_session(folder: Path, later: Iterable[Entry] = ()) -> WholeSession:
    """From its folder; LogError, InputError."""
    with LogReader(folder) as reader:
        return WholeSession.of(reader.entries(), later)
