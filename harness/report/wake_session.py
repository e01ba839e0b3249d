"""What a session log says of wake words, gathered for reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from harness.base.foreign import plain_text
from harness.model.errors import InputError
from harness.model.record import Clip, Entry, SessionStarted, StimulusStored, TrialFinished
from harness.model.trial import Outcome
from harness.session.figures.progress import Progress, SessionFigures
from harness.session.log.reader import LogReader
from harness.wake.wake import WakeFigures
from harness.wake.wake_progress import WakeProgress


@dataclass(frozen=True, slots=True)
class WakeSession:
    """progress: of the wake figures. started: the first row. first_s, last_s: Unix times of the first and the last row.

    clips: of stimuli, by hash. not_counted: listening trials whose last take ended without counting, and how. asked:
    the progress of all trials.
    """

    figures: WakeFigures
    progress: WakeProgress
    started: SessionStarted
    first_s: float
    last_s: float
    clips: dict[str, Clip] = field(default_factory=dict)
    not_counted: dict[str, Outcome] = field(default_factory=dict)
    asked: Progress = field(default_factory=Progress)

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(one.device for one in self.progress.devices)

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


def session_of(entries: Iterable[Entry]) -> WakeSession:
    """A session from its rows; InputError when they do not begin with a plan."""
    figures, asked = WakeFigures(), SessionFigures()
    started: SessionStarted | None = None
    first_s = last_s = 0.0
    clips: dict[str, Clip] = {}
    endings: dict[str, Outcome] = {}
    for entry in entries:
        figures.add(entry)
        asked.add(entry)
        last_s = entry.wall_s
        match entry.record:
            case SessionStarted() as row:
                started, first_s = row, entry.wall_s
            case StimulusStored(sha256=sha256, clip=clip):
                clips[sha256] = clip
            case TrialFinished() as row:
                endings[row.trial_id] = row.outcome
            case _:
                pass
    if started is None:
        raise InputError("the session has no plan", remedy="Check it: harness show SESSION --check")
    listening = {trial.id for trial in started.trials if trial.listening is not None}
    not_counted: dict[str, Outcome] = {}
    for name, how in endings.items():
        if how is not Outcome.COUNTED and name in listening:
            not_counted[name] = how
    return WakeSession(figures, figures.snapshot(), started, first_s, last_s, clips, not_counted, asked.snapshot())


def read_session(folder: Path) -> WakeSession:
    """A session from its folder; LogError, InputError."""
    with LogReader(folder) as reader:
        return session_of(reader.entries())
