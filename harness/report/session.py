"""A whole session, read once from its rows, and its limits: the source of JUnit, wake-evaluation logs and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from harness.base.foreign import plain_text
from harness.base.garbage_collection import gc_paused
from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.record import (
    Clip,
    EngineStarted,
    Entry,
    FaultMet,
    Observed,
    ResponseFrozen,
    SessionStarted,
    SettingsNoted,
    SettingsStage,
    StimulusStored,
    TrialFinished,
    TrialStarted,
)
from harness.model.row_times import SteadyWall
from harness.model.scenario import Scenario
from harness.model.trial import Outcome
from harness.session.figures.limits import limits_so_far
from harness.session.figures.progress import Progress, SessionFigures
from harness.session.log.reader import LogReader
from harness.statistics.verdict import DeclaredLimit
from harness.wake.wake import WakeFigures

MAX_FAULTS = 20


@frozen
class WholeSession:
    """A session, read once."""

    wake: WakeFigures
    progress: Progress
    """Results of all trials."""
    started: SessionStarted
    """The first row, with the plan."""
    first_s: float
    """Unix time of the first row."""
    last_s: float
    """Unix time of the last row."""
    clips: dict[str, Clip]
    """Clips of stimuli, by the sha256 of the stimulus."""
    not_counted: dict[str, Outcome]
    """Listening trials whose last take does not count, with its outcome."""
    faults_met: tuple[tuple[float, FaultMet], ...]
    """Each fault with its Unix time."""
    responses: tuple[tuple[str, float, float], ...]
    """For each first response, the trial, the Unix time of its start, and its length in seconds of wall time."""
    spans: dict[tuple[str, int], tuple[float, float]]
    """Unix times of start and end of each (trial, take)."""
    settings: tuple[tuple[str, str, str], ...] = ()
    """Settings of devices as (connection, name, value), before the run changed any."""

    @classmethod
    @gc_paused()
    def of(cls, entries: Iterable[Entry], later: Iterable[Entry] = ()) -> WholeSession:
        """A session from its rows. later: rows that people added after the session.

        Raises InputError if the rows do not begin with a plan.
        """
        figures, wake = SessionFigures(), WakeFigures()
        started: SessionStarted | None = None
        first_s = last_s = 0.0
        speed = 1.0
        clips: dict[str, Clip] = {}
        last_outcomes: dict[str, Outcome] = {}
        faults: list[tuple[float, FaultMet]] = []
        responses: list[tuple[str, float, float]] = []
        spans: dict[tuple[str, int], tuple[float, float]] = {}
        settings: list[tuple[str, str, str]] = []
        steady_wall = SteadyWall()
        for entry in entries:
            wall_s = steady_wall.wall_s_of(entry)
            if wall_s != entry.wall_s:
                entry = replace(entry, wall_s=wall_s)
            figures.add(entry)
            wake.add(entry)
            first_s, last_s = first_s or wall_s, wall_s
            match entry.record:
                case Observed():  # most rows
                    pass
                case SessionStarted() as row:
                    started = row
                case EngineStarted(clock_speed=clock_speed):
                    speed = clock_speed
                case StimulusStored(sha256=sha256, clip=clip):
                    clips[sha256] = clip
                case TrialStarted(trial_id=trial_id, take=take):
                    spans[trial_id, take] = last_s, last_s
                case TrialFinished(trial_id=trial_id, take=take, outcome=outcome):
                    start_s, _ = spans.get((trial_id, take), (last_s, last_s))
                    spans[trial_id, take] = start_s, last_s
                    last_outcomes[trial_id] = outcome
                case FaultMet() as fault:
                    faults.append((last_s, fault))
                case ResponseFrozen(trial_id=trial_id, starts=starts, clip=clip):
                    responses.append((trial_id, last_s - (entry.at_s - starts.at_s) / speed, clip.duration_s / speed))
                case SettingsNoted(source=source, of=SettingsStage.ORIGINAL, settings=pairs):
                    settings += [(source, name, value) for name, value in pairs]
                case _:
                    pass
        for entry in later:
            figures.add_later(entry)
        if started is None:
            raise InputError("the session has no plan", remedy="Check the session: harness report show SESSION --check")
        listening_ids = {trial.id for trial in started.trials if trial.listening is not None}
        not_counted: dict[str, Outcome] = {
            trial_id: outcome
            for trial_id, outcome in last_outcomes.items()
            if outcome is not Outcome.COUNTED and trial_id in listening_ids
        }
        progress = figures.snapshot()
        return cls(
            wake=wake,
            progress=progress,
            started=started,
            first_s=first_s,
            last_s=last_s,
            clips=clips,
            not_counted=not_counted,
            faults_met=tuple(faults),
            responses=tuple(responses),
            spans=spans,
            settings=tuple(settings),
        )

    @property
    def faults(self) -> tuple[FaultMet, ...]:
        """The last MAX_FAULTS faults."""
        return tuple(fault for _, fault in self.faults_met[-MAX_FAULTS:])

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(device.device for device in self.wake.snapshot().devices)

    def demand_devices(self, device: str | None) -> tuple[str, ...]:
        """The named device; for None, all devices. Raises InputError if it is unknown, or there are no devices."""
        if not self.devices:
            raise InputError(
                "the session has no wake, command or ambient trials",
                remedy="See its results: harness report show SESSION",
            )
        if device is None:
            return self.devices
        if device not in self.devices:
            raise InputError(
                f"this session has no device {plain_text(device, 80)!r}",
                remedy=f"Its devices: {', '.join(self.devices)}",
            )
        return (device,)


def read_session(folder: Path, later: Iterable[Entry] = ()) -> WholeSession:
    """Reads a session from its folder. later: as in `WholeSession.of`. Raises LogError or InputError."""
    with LogReader(folder) as reader:
        return WholeSession.of(reader.entries(), later)


def limits_of(session: WholeSession, scenario: Scenario) -> tuple[DeclaredLimit, ...]:
    """Each declared limit and sequential test, with its result so far."""
    return limits_so_far(scenario.limits, scenario.stopping, session.progress, session.wake.snapshot())
