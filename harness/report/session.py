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
    SteadyWall,
    StimulusStored,
    TrialFinished,
    TrialStarted,
)
from harness.model.scenario import Scenario
from harness.model.trial import Outcome
from harness.session.figures.limits import limits_so_far
from harness.session.figures.progress import Progress, SessionFigures
from harness.session.log.reader import LogReader
from harness.statistics.verdict import DeclaredLimit
from harness.wake.wake import WakeFigures

FAULTS_KEPT = 20


@frozen
class WholeSession:
    """A session, read once.

    - wake: results of wake trials. progress: results of all trials.
    - started: the first row, with the plan. first_s, last_s: Unix times of the first and the last row.
    - clips: clips of stimuli, by the sha256 of the stimulus.
    - not_counted: listening trials whose last take does not count, with its outcome.
    - faults_met: each fault with its Unix time.
    - responses: for each first response, the trial, the Unix time of its start, and its length in seconds of wall time.
    - spans: Unix times of start and end of each (trial, take).
    - settings: settings of devices as (connection, name, value), before the run changed any.
    """

    wake: WakeFigures
    progress: Progress
    started: SessionStarted
    first_s: float
    last_s: float
    clips: dict[str, Clip]
    not_counted: dict[str, Outcome]
    faults_met: tuple[tuple[float, FaultMet], ...]
    responses: tuple[tuple[str, float, float], ...]
    spans: dict[tuple[str, int], tuple[float, float]]
    settings: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    @gc_paused()
    def of(cls, entries: Iterable[Entry], later: Iterable[Entry] = ()) -> WholeSession:
        """A session from its rows. later: rows that people added later. InputError if the rows do not begin with a
        plan."""
        figures, wake = SessionFigures(), WakeFigures()
        started: SessionStarted | None = None
        first_s = last_s = 0.0
        speed = 1.0
        clips: dict[str, Clip] = {}
        endings: dict[str, Outcome] = {}
        faults: list[tuple[float, FaultMet]] = []
        responses: list[tuple[str, float, float]] = []
        spans: dict[tuple[str, int], tuple[float, float]] = {}
        settings: list[tuple[str, str, str]] = []
        wall = SteadyWall()
        for entry in entries:
            if (wall_s := wall.wall_s_of(entry)) != entry.wall_s:
                entry = replace(entry, wall_s=wall_s)
            figures.add(entry)
            wake.add(entry)
            first_s, last_s = first_s or wall_s, wall_s
            match entry.record:
                case Observed():  # most rows
                    pass
                case SessionStarted() as row:
                    started = row
                case EngineStarted(clock_speed=found_speed):
                    speed = found_speed
                case StimulusStored(sha256=sha256, clip=clip):
                    clips[sha256] = clip
                case TrialStarted(trial_id=trial_id, take=take):
                    spans[trial_id, take] = last_s, last_s
                case TrialFinished(trial_id=trial_id, take=take, outcome=outcome):
                    spans[trial_id, take] = spans.get((trial_id, take), (last_s, last_s))[0], last_s
                    endings[trial_id] = outcome
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
            raise InputError("the session has no plan", remedy="Check it: harness report show SESSION --check")
        listening = {trial.id for trial in started.trials if trial.listening is not None}
        uncounted: dict[str, Outcome] = {
            trial_id: ending
            for trial_id, ending in endings.items()
            if ending is not Outcome.COUNTED and trial_id in listening
        }
        progress = figures.snapshot()
        return cls(
            wake=wake,
            progress=progress,
            started=started,
            first_s=first_s,
            last_s=last_s,
            clips=clips,
            not_counted=uncounted,
            faults_met=tuple(faults),
            responses=tuple(responses),
            spans=spans,
            settings=tuple(settings),
        )

    @property
    def faults(self) -> tuple[FaultMet, ...]:
        """The last FAULTS_KEPT faults."""
        return tuple(fault for _, fault in self.faults_met[-FAULTS_KEPT:])

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(device.device for device in self.wake.snapshot().devices)

    def demand(self, device: str | None) -> tuple[str, ...]:
        """The named device; for None, all devices. InputError if it is unknown, or there are no devices."""
        if not self.devices:
            raise InputError(
                "the session has no wake, command or ambient trials",
                remedy="Nothing to export; try: harness report show",
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
    """Reads a session from its folder; LogError, InputError."""
    with LogReader(folder) as reader:
        return WholeSession.of(reader.entries(), later)


def limits_of(session: WholeSession, scenario: Scenario) -> tuple[DeclaredLimit, ...]:
    """Each declared limit and sequential test, with its result so far."""
    return limits_so_far(scenario.limits, scenario.stopping, session.progress, session.wake.snapshot())
