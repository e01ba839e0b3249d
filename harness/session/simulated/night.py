"""Plays a plan in simulated time, with the real conductor, trial machines, results and log."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np

from harness.base import threads
from harness.base.clocks import HostClock
from harness.base.ports import Driver, Renders
from harness.base.simulated_threads import SimulatedThreads
from harness.model.bench import Bench, Device, Equipment
from harness.model.feed import StateChanged
from harness.model.record import AttemptFinished, EndReason, EngineStarted, Entry, SessionStarted
from harness.model.scenario import Scenario
from harness.model.stimulus import Ambience, Part, RenderedStimulus, Role, StimulusRecipe, Waveform
from harness.model.trial import Outcome, Trial
from harness.session.conductor import Conductor
from harness.session.engine.assemble import ResolvedSession, conductor_context
from harness.session.figures.live import LiveFigures
from harness.session.figures.progress import Totals
from harness.session.log.database import SqliteLog
from harness.session.plan import plan
from harness.session.resumption import Resumption
from harness.session.simulated.bench import RATE_HZ, Board, SimulatedLoudspeaker, SimulatedMicrophone, SimulatedRoom
from harness.session.simulated.facts import DeviceTraits, Phrases
from harness.wake.wake_progress import WakeProgress

NOISE_AROUND_S = 0.5
"""Noise begins this long before the words and ends this long after them, in seconds."""
SPOKEN_PER_S = 14.0
"""Characters that a person says in a second, to estimate a duration."""
MEMORY = Path("/dev/shm")
"""Folder of a file system in memory, where a night's log costs no disk access."""
FAULTS: Mapping[str, str] = {
    "link": "the link to a device was lost for a while",
    "flap": "the link to a device was lost for a moment",
    "restart": "a device restarted",
    "hang": "a device hung for a while",
    "deaf": "a device was deaf for a while",
    "late": "reports of a device came late",
    "loudspeaker": "the loudspeaker was gone for a while",
    "microphone": "the microphone was gone for a while",
    "cut": "a sound was cut off",
    "stall": "the host stalled",
}


@dataclass
class PlayedNight:
    """The result of a simulated night.

    - duration_s: in simulated time. finished: why it ended.
    - totals, wake: results of queries, and on wake events.
    - faults: number of times that each of FAULTS occurred.
    - spoiled: cause code → number of attempts that it interrupted.
    """

    duration_s: float
    finished: EndReason
    totals: Totals
    wake: WakeProgress
    faults: Counter[str] = field(default_factory=Counter)
    spoiled: Counter[str] = field(default_factory=Counter)


class LengthRenderer:
    """Implements `ports.Renders`: each voice speaks every text only once; later stimuli reuse its length and parts."""

    def __init__(self, renders: Renders) -> None:
        self._renders = renders
        self._rendered: dict[StimulusRecipe, RenderedStimulus] = {}

    def render(self, recipe: StimulusRecipe) -> RenderedStimulus:
        """A stimulus of the right length with hardly any samples. Raises the errors of the renderer."""
        if isinstance(recipe.query, Ambience):
            first = round(recipe.lead_in_s * RATE_HZ)
            last = first + round(recipe.query.duration_s * RATE_HZ)
            return _silent_stimulus(last, (Part(Role.QUERY, first, last),), repr(recipe.query))
        dry = replace(recipe, noise=None, variant=0, level_dbfs=-26.0)
        if dry not in self._rendered:
            self._rendered[dry] = self._renders.render(dry)
        spoken = self._rendered[dry]
        around_s = 0.0 if recipe.noise is None else NOISE_AROUND_S
        scale = RATE_HZ / spoken.waveform.rate_hz
        parts = tuple(
            replace(
                part,
                start_sample=round(part.start_sample * scale + around_s * RATE_HZ),
                end_sample=round(part.end_sample * scale + around_s * RATE_HZ),
            )
            for part in spoken.parts
        )
        return _silent_stimulus(round((spoken.waveform.duration_s + 2 * around_s) * RATE_HZ), parts, spoken.sha256)


def _silent_stimulus(samples: int, parts: tuple[Part, ...], sha256: str) -> RenderedStimulus:
    """A stimulus with that number of samples at RATE_HZ, all of them silence."""
    return RenderedStimulus(Waveform(np.zeros(max(1, samples), dtype=np.float32), RATE_HZ), parts, sha256)


def simulate_bench(bench: Bench) -> Bench:
    """A bench with the same devices before loudspeakers in a room, without stands, power switches, checks and messages.

    Loudspeakers play, in real time, what would go over a wire.
    """

    def device_of(device: Device) -> Device:
        connection = device.connection
        return replace(
            device,
            profile=replace(device.profile, reports=device.reports),
            connection=None if connection is None else replace(connection, injects=False, sets=True),
            also=(),
            earcons=None,
        )

    place = bench.devices[0].connection.place if bench.devices[0].connection else None
    speakers = bench.loudspeakers
    if not speakers:
        assert place is not None, "a bench without loudspeakers has connections"
        speakers = (Equipment("loudspeaker", "simulated", None, place),)
    return replace(
        bench,
        devices=tuple(device_of(device) for device in bench.devices),
        loudspeakers=speakers,
        notify=(),
        min_free_gb=0.0,
        level_tolerance_db=None,
        max_noise_floor_dbfs=None,
        checks=None,
        actuators=(),
        stands=(),
        power=(),
    )


class SimulatedNight:
    """One night, to be played once."""

    def __init__(
        self,
        scenario: Scenario,
        bench: Bench,
        traits: DeviceTraits,
        renders: Renders,
        seed: int,
        faults_per_hour: float = 0.0,
    ) -> None:
        """bench: a result of `simulate_bench`. traits: traits of all devices, except for their reports and voices.

        seed: seed of all that is random. faults_per_hour: mean number of faults in an hour.
        """
        self._scenario, self._bench, self._traits, self._renders = scenario, bench, traits, renders
        self._seed, self._faults_per_hour = seed, faults_per_hour
        self._stall_s = 0.0
        self._faults: Counter[str] = Counter()

    def play(self) -> PlayedNight:
        """Plays the night to its end. No operator answers questions, but talkers say what they are asked to."""
        folder = MEMORY if MEMORY.is_dir() else None
        with (
            tempfile.TemporaryDirectory(prefix="night", dir=folder) as name,
            SimulatedThreads() as world,
            threads.using(world),
        ):
            return self._play(Path(name), world)

    def _play(self, folder: Path, world: SimulatedThreads) -> PlayedNight:
        """As an engine runs a session, with a simulated bench. folder: for the log."""
        begun_s = world.monotonic()
        self._room = room = self._make_room(world)
        self._trials = {trial.id: trial for trial in plan(self._scenario, self._bench)}
        self.figures = figures = LiveFigures(self._scenario)
        clock, spoiled = HostClock(), Counter[str]()

        def committed(entry: Entry) -> None:
            figures.add(entry)
            match entry.record:
                case AttemptFinished(outcome=Outcome.INTERRUPTED, cause=cause):
                    spoiled[cause.partition(":")[0]] += 1
                case _:
                    pass

        log = SqliteLog(folder, now_s=clock.now_s, wall_s=clock.wall_s, on_commit=committed)
        try:
            log.append(self._session_started())
            parts = (*room.speakers, room.ear, *room.devices)
            drivers: dict[str, Driver] = {part.id: part for part in parts}
            context = conductor_context(
                ResolvedSession(self._scenario, self._bench), drivers, log, clock, figures,
                renders=self._renders, on_state=self._on_state, answer=lambda id, ok, why: None,
                report_alive=self._stall,
            )  # fmt: skip
            resumption = Resumption.of(list(log.entries()))
            conductor = Conductor(tuple(self._trials.values()), context, resumption)
            resumption.add(log.append(EngineStarted(1, 1, "boot", 1.0)))
            room.truth.arrived.append([])
            for part in parts:
                part.open(conductor.enqueue)
            if self._faults_per_hour:
                self._expect_fault(room.chance("faults"))
            finished = conductor.run()
            return PlayedNight(
                world.monotonic() - begun_s, finished, figures.session().totals, figures.wake(), self._faults, spoiled
            )
        finally:
            room.sink = None
            log.close()

    def _make_room(self, world: SimulatedThreads) -> SimulatedRoom:
        """The room with the devices of the bench, which add themselves to it."""
        room = SimulatedRoom(world, self._seed)
        room.flawless = True
        room.ear = SimulatedMicrophone(self._bench.microphone.id if self._bench.microphone else "microphone", room)
        room.speakers = [SimulatedLoudspeaker(loudspeaker.id, room) for loudspeaker in self._bench.loudspeakers]
        for device in self._bench.devices:
            traits = replace(self._traits, reports=device.reports, answers=device.profile.responds)
            Board(device.id, room, traits, link=device.connection.id if device.connection else device.id)
        return room

    def _session_started(self) -> SessionStarted:
        scenario, bench = self._scenario, self._bench
        return SessionStarted(
            session_id="",
            scenario_id=scenario.id,
            title=scenario.title,
            scenario_sha256=scenario.sha256,
            bench_id=bench.id,
            bench_sha256=bench.sha256,
            seed=scenario.seed,
            sound_path="simulated",
            versions=(),
            trials=tuple(self._trials.values()),
        )

    def _stall(self) -> None:
        """Stops the conductor's thread for as long as a fault has requested. Called by it regularly."""
        stall_s, self._stall_s = self._stall_s, 0.0
        if stall_s:
            threads.sleep(stall_s)

    # People

    def _on_state(self, state: StateChanged) -> None:
        """Has the talker say what a prompt asks for."""
        if state.prompt is not None and state.trial_id is not None:
            trial, text = self._trials[state.trial_id], state.prompt.text
            self._room.call_later(1.0, lambda: self._speak(trial, text, f"{state.trial_id}.t{state.attempt}"))

    def _speak(self, trial: Trial, text: str, play_id: str) -> None:
        """A talker speaks; devices hear it as any other sound."""
        room, lasts_s = self._room, max(0.8, len(text) / SPOKEN_PER_S)
        room.ear.hear(room.now_s(), room.now_s() + lasts_s)
        called_s = min(0.6, lasts_s / 2) if trial.recipe.wake_phrase else 0.0
        phrases = Phrases(trial, ((0.0, called_s),) if called_s else (), (called_s, lasts_s))
        for device in room.devices:
            device.hear(play_id, room.now_s(), phrases, room.speakers[0])

    # Faults

    def _expect_fault(self, chance: Random) -> None:
        """Schedules the next fault."""

        def cause_and_expect() -> None:
            self._cause_fault(chance)
            self._expect_fault(chance)

        self._room.call_later(chance.expovariate(self._faults_per_hour / 3600), cause_and_expect)

    def _cause_fault(self, chance: Random) -> None:
        """Causes a random fault; all kinds are equally likely. Lasting ones take 20 s on average, at most 2 minutes."""
        room = self._room
        device, speaker = chance.choice(room.devices), chance.choice(room.speakers)
        kind = chance.choice(tuple(FAULTS))
        lasts_s = min(120.0, 0.2 + chance.expovariate(1 / 20.0))

        def lose(part: Board | SimulatedLoudspeaker | SimulatedMicrophone, lasts_s: float) -> None:
            part.lose(kind)
            room.call_later(lasts_s, lambda: part.mend(kind))

        def delay_reports() -> None:
            device.late_s = 3.0
            room.call_later(lasts_s, lambda: setattr(device, "late_s", 0.0))

        causes: Mapping[str, Callable[[], object]] = {
            "link": lambda: lose(device, lasts_s),
            "flap": lambda: lose(device, 0.2),
            "restart": lambda: device.restart(chance.choice((0.5, 3.0, 12.0))),
            "hang": lambda: device.hang(lasts_s + 5),
            "deaf": lambda: device.fail_microphone(lasts_s),
            "late": delay_reports,
            "loudspeaker": lambda: lose(speaker, lasts_s),
            "microphone": lambda: lose(room.ear, lasts_s),
            "cut": lambda: speaker.cut("underrun"),
            "stall": lambda: setattr(self, "_stall_s", chance.uniform(0.3, 5.0)),
        }
        causes[kind]()
        self._faults[kind] += 1
