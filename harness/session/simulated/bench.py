"""A bench in simulated time: a room with loudspeakers and a microphone, and devices that record what they really did.

Nothing here decides how anything is counted. The devices report observations, as drivers do. Each source of chance has
its own random generator, named by seed and purpose, so that one more draw from it changes nothing else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, ClassVar

import numpy as np

from harness.base.ports import Sink
from harness.base.simulated_threads import SimulatedThreads
from harness.devices.in_process.device import reported_intent
from harness.model.bench import ObservationKind
from harness.model.errors import DeviceError
from harness.model.observation import (
    DeviceState,
    LinkBack,
    LinkLost,
    ListeningProved,
    Observation,
    Overrun,
    Proof,
    ResponseText,
    SpeechEnded,
    SpeechStarted,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Unread,
    Wake,
)
from harness.model.scenario import TrialKind
from harness.model.stimulus import RenderedStimulus, Role, Waveform
from harness.model.time import Stamp
from harness.model.trial import Trial
from harness.model.understanding import ExpectedFrame

RATE_HZ = 50
"""Sample rate. Sounds have the right lengths and parts, but hardly any samples."""
BEAT_S = 4.0
"""Interval of heartbeats, in seconds."""
MISSES_BEATS_S = 12.0
"""A driver that expects heartbeats reports its link as lost after this time without one, in seconds."""


@dataclass(frozen=True)
class DeviceTraits:
    """How a simulated device behaves. Probabilities are 0–1, times in s."""

    wakes: float = 0.9
    """Probability that it wakes to a wake phrase."""
    mishears: float = 0.1
    """Probability that it mishears a query."""
    silent: float = 0.05
    """Probability that it does not answer a query."""
    doubles: float = 0.05
    """Probability of a second event for one wake phrase."""
    edge: float = 0.05
    """Probability of an event at the edge of its window."""
    false_per_hour: float = 6.0
    """Mean number of false wake events per hour."""
    report_s: float = 0.05
    """Delay of its reports."""
    error_s: float = 0.02
    """Error of the times in its reports."""
    latency_s: float = 1.0
    """Time from the end of the query to its answer."""
    answers: bool = True
    """Whether it has a voice."""
    beats: bool = True
    """Whether it sends heartbeats."""
    states: bool = False
    """Whether it reports its state."""
    lasts_s: tuple[float, float] = (0.8, 2.5)
    """Shortest and longest answer."""
    very_late: float = 0.03
    """Probability that it answers much later."""
    wakes_of: Mapping[str, float] = field(default_factory=dict)
    """Speaker → as `wakes`, for them."""
    reports: frozenset[ObservationKind] = frozenset(
        {ObservationKind.WAKE, ObservationKind.TRANSCRIPT, ObservationKind.RESPONSE}
    )
    """Kinds of observations that it reports."""


@dataclass
class Phrases:
    """What is said in a sound, in seconds from its first sample.

    wake_s: (start, end) of each wake phrase. query_s: start and end of the query; None without one.
    """

    trial: Trial
    wake_s: tuple[tuple[float, float], ...] = ()
    query_s: tuple[float, float] | None = None


@dataclass
class Truth:
    """What really happened, as plain data, for a checker that does not use the harness's code."""

    plays: dict[str, dict[str, Any]] = field(default_factory=dict)
    wakes: list[dict[str, Any]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    deaf: list[dict[str, Any]] = field(default_factory=list)
    """Times in which a device did not listen, or in which its reports could not reach its driver."""
    deaths: list[dict[str, Any]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    commands: dict[str, str] = field(default_factory=dict)
    """Kind of each command that was sent, by its id."""
    acknowledged: list[tuple[int, str]] = field(default_factory=list)
    replayed: Counter[str] = field(default_factory=Counter)
    arrived: list[list[tuple[str, str, float]]] = field(default_factory=list)
    """Kind, source and time of all observations that reached the engine, one list for each start of the engine."""
    slow: list[tuple[float, float]] = field(default_factory=list)
    """Times in which the host was slow to write rows or to handle events."""
    skips: list[float] = field(default_factory=list)
    speech: list[float] = field(default_factory=list)
    """Times at which somebody began to speak without being asked."""
    wires: list[dict[str, Any]] = field(default_factory=list)
    """For each device with a driver: its restarts, and what the driver reported about them and about its link."""


class SimulatedRoom:
    """The room with its loudspeakers, microphone and devices. `sinks` is empty while no engine runs."""

    def __init__(self, world: SimulatedThreads, seed: int) -> None:
        self.world, self.seed = world, seed
        self.truth = Truth()
        self.sink: Sink | None = None
        self.phrases: dict[str, Phrases] = {}
        self.speakers: list[SimulatedLoudspeaker] = []
        self.devices: list[Board] = []
        self.ear: SimulatedMicrophone
        self.loud = self.flawless = False

    def chance(self, purpose: str) -> Random:
        return Random(f"{self.seed}:{purpose}")

    def tell(self, observation: Observation) -> None:
        """Sends an observation to the engine that runs at this moment. If none runs, the observation is lost."""
        if self.sink is not None:
            self.truth.arrived[-1].append((observation.kind, observation.source, observation.at.at_s))
            self.sink(observation)

    def later(self, delay_s: float, call: Callable[[], object]) -> None:
        self.world.call_at(self.world.monotonic() + delay_s, call)

    def now_s(self) -> float:
        return self.world.monotonic()


class BenchPart:
    """Something on the bench with a link that can be lost. It implements `ports.Driver`."""

    Options: ClassVar[type] = type(None)

    def __init__(self, id: str, room: SimulatedRoom) -> None:
        self.id, self.room = id, room
        self._reasons: set[str] = set()

    def open(self, sink: Sink) -> None:
        self.room.sink = sink
        if self.lost:
            self.room.tell(LinkLost(self.id, Stamp(self.room.now_s()), "not there"))

    def close(self) -> None:
        self.room.sink = None

    @property
    def lost(self) -> bool:
        return bool(self._reasons)

    def lose(self, reason: str) -> None:
        """Adds a reason why it cannot be reached."""
        if not self.lost:
            self.room.tell(LinkLost(self.id, Stamp(self.room.now_s()), reason))
        self._reasons.add(reason)

    def mend(self, reason: str) -> None:
        """Removes a reason why it cannot be reached."""
        before, self._reasons = self.lost, self._reasons - {reason}
        if before and not self.lost:
            self.room.tell(LinkBack(self.id, Stamp(self.room.now_s())))


class SimulatedLoudspeaker(BenchPart):
    """A loudspeaker, which can play, be stopped, refuse to play, and be cut off."""

    def __init__(self, id: str, room: SimulatedRoom) -> None:
        super().__init__(id, room)
        self.refuses = 0
        self.slow_s = 0.0
        self.gap_s = 0.0
        self._playing = ""

    def prompt(self, trial: Trial, stimulus: RenderedStimulus) -> None:
        """Receives the words of a trial's sound, as `IsPrompted` describes."""
        spans = [stimulus.span_s(role) for role in (Role.WAKE_PHRASE, Role.OPENING, Role.CLOSING)]
        query = stimulus.span_s(Role.QUERY)
        kind = trial.listening.kind if trial.listening else TrialKind.QUERY
        if kind in (TrialKind.WAKE, TrialKind.PROBE) and spans[0] is None:
            spans[0], query = query, None
        elif kind is TrialKind.AMBIENT:
            query = None
        self.room.phrases[trial.id] = Phrases(trial, tuple(sorted(span for span in spans if span)), query)

    def play(self, play_id: str, waveform: Waveform) -> None:
        if self.lost:
            raise DeviceError(f"{self.id} is not connected")
        if self.refuses:
            self.refuses -= 1
            self.room.truth.faults["refused"] += 1
            raise DeviceError("the sound server is busy")
        self.stop()
        self._playing = play_id
        self.room.later(0.02 + self.slow_s, lambda: self._begins(play_id, waveform.duration_s))

    def stop(self) -> None:
        self.cut("")

    def cut(self, why: str) -> bool:
        """Ends the sound. Returns whether there was one."""
        play_id, self._playing = self._playing, ""
        if not play_id:
            return False
        now_s = self.room.now_s()
        play = self.room.truth.plays.get(play_id)
        if play is not None:
            play["end_s"], play["complete"] = now_s, False
        ended = StimulusEnded(self.id, Stamp(now_s, 0.001), play_id, complete=False, why=why)
        self.room.later(0.02, lambda: self.room.tell(ended))
        for device in self.room.devices:
            device.silence(play_id, now_s)
        return True

    def lose(self, reason: str) -> None:
        self.cut(reason)
        super().lose(reason)

    def _begins(self, play_id: str, duration_s: float) -> None:
        if self._playing != play_id:
            return
        now_s = self.room.now_s()
        trial_id, _, part = play_id.rpartition(".t")
        self.room.truth.plays[play_id] = {
            "play_id": play_id, "player": self.id, "start_s": now_s, "end_s": now_s + duration_s, "complete": True,
        }  # fmt: skip
        self.room.tell(StimulusStarted(self.id, Stamp(now_s, 0.001), play_id))
        closing = ".c" in part  # words that end a dialogue address nobody
        phrases = None if closing else self.room.phrases.get(trial_id or play_id)
        if phrases is not None and phrases.wake_s:
            self.room.truth.plays[play_id]["wake_end_s"] = now_s + phrases.wake_s[0][1]
        for device in self.room.devices:
            device.hears(play_id, now_s, phrases, self)
        gap_s, self.gap_s = self.gap_s, 0.0
        if gap_s:
            self.room.later(duration_s / 2, lambda: self.room.tell(Overrun(self.id, Stamp(self.room.now_s()), 64)))
        self.room.later(duration_s + gap_s, lambda: self._ends(play_id))

    def _ends(self, play_id: str) -> None:
        if self._playing == play_id:
            self._playing = ""
            self.room.tell(StimulusEnded(self.id, Stamp(self.room.now_s(), 0.001), play_id))

    def level_dbfs(self) -> float | None:
        return None


class SimulatedMicrophone(BenchPart):
    """The microphone, which hears answers and the loudspeakers."""

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        chance = self.room.chance(f"ear:{play_id}")
        if chance.random() < 0.1 and not self.room.flawless:
            return
        heard = StimulusHeard(self.id, Stamp(starts_at_s + chance.uniform(0.0, 0.002), 0.002), play_id, 0.9)
        self.room.later(waveform.duration_s + 0.3, lambda: None if self.lost else self.room.tell(heard))

    def hears(self, start_s: float, end_s: float) -> None:
        """Hears an answer. start_s, end_s: when the speech really began and ended."""
        chance = self.room.chance(f"speech:{start_s}")
        gap = self.room.chance(f"gap:{start_s}")
        if gap.random() < 0.04 and not self.room.flawless:
            self.room.world.call_at(start_s + gap.uniform(0.0, 0.2), self.overrun)

        def tell(observation: Observation) -> None:
            if not self.lost:
                self.room.tell(observation)

        began = SpeechStarted(self.id, Stamp(start_s + chance.uniform(-0.01, 0.01), 0.01), -30.0)
        self.room.world.call_at(start_s + 0.12, lambda: tell(began))
        ended = SpeechEnded(self.id, Stamp(end_s + chance.uniform(-0.02, 0.02), 0.02))
        self.room.world.call_at(end_s + 0.12, lambda: tell(ended))

    def overrun(self) -> None:
        self.room.tell(Overrun(self.id, Stamp(self.room.now_s()), 512))

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        if self.lost:
            raise DeviceError("the microphone is not connected")
        return Waveform(np.zeros(max(1, math.ceil((end_s - start_s) * RATE_HZ)), dtype=np.float32), RATE_HZ), start_s

    def level_dbfs(self) -> float | None:
        return None

    def noise_floor_dbfs(self) -> float | None:
        return -35.0 if self.room.loud else -70.0


class Board(BenchPart):
    """A device under test, together with the driver that reports about it."""

    def __init__(self, id: str, room: SimulatedRoom, like: DeviceTraits, *, link: str) -> None:
        super().__init__(link, room)
        self.name, self.like = id, like
        self.late_s = 0.0
        self.repeats = False
        self.unread = 0
        self.hung = self.deaf = False
        self._boot = 0
        self._busy_until_s = -math.inf
        self._times: Counter[str] = Counter()
        self._cut: dict[str, float] = {}
        self._reports = room.chance(f"{id}:reports")
        self._false = room.chance(f"{id}:false")
        room.devices.append(self)
        self._beat()
        self._expect_false()

    # Its own life

    @property
    def listens(self) -> bool:
        return not (self.hung or self.deaf)

    def _beat(self) -> None:
        now_s = self.room.now_s()
        if self.like.beats and not self.hung:
            self._say(lambda: ListeningProved(self.id, Stamp(now_s, 0.01), Proof.HEARTBEAT), 0.02)
        self.room.later(BEAT_S, self._beat)

    def _expect_false(self) -> None:
        if self.like.false_per_hour:
            self.room.later(self._false.expovariate(self.like.false_per_hour / 3600), self._false_wake)

    def _false_wake(self) -> None:
        if self.listens and self.room.now_s() >= self._busy_until_s:
            self._wakes("false", "")
        self._expect_false()

    def drop(self, reason: str, lasts_s: float) -> None:
        """Loses its link for a time."""
        now_s = self.room.now_s()
        self.lose(reason)
        gap = {"device": self.name, "from_s": now_s, "to_s": now_s + lasts_s, "why": "link"}
        self.room.truth.deaf.append(gap)
        self.room.later(lasts_s, lambda: self.mend(reason))

    def killed(self) -> None:
        """The engine was killed."""

    def hang(self, lasts_s: float) -> None:
        """Hangs for a time, which a driver that expects heartbeats notices."""
        if self.hung:
            return
        self.hung = True
        hung_s = self.room.now_s()
        gap = {"device": self.name, "from_s": hung_s, "to_s": math.inf, "why": "hung"}
        self.room.truth.deaf.append(gap)
        self._boot += 1
        boot = self._boot

        def notice() -> None:
            if self.hung and self._boot == boot:
                self.lose("no heartbeat")

        if self.like.beats:
            self.room.later(MISSES_BEATS_S, notice)

        def wake_up() -> None:
            if self.hung and self._boot == boot:
                self.hung = False
                gap["to_s"] = self.room.now_s()
                self.mend("no heartbeat")

        self.room.later(lasts_s, wake_up)

    def fail_microphone(self, lasts_s: float) -> None:
        """Its microphone fails for a time, while it keeps reporting that it is well: it is to blame for misses."""
        if self.deaf:
            return
        self.deaf = True
        gap = {"device": self.name, "from_s": self.room.now_s(), "to_s": self.room.now_s() + lasts_s, "why": "deaf"}
        self.room.truth.deaf.append(gap)

        def hear_again() -> None:
            self.deaf = False

        self.room.later(lasts_s, hear_again)

    def restart(self, lasts_s: float) -> None:
        """Restarts: what it was about to do does not happen."""
        if self.hung:
            return
        now_s = self.room.now_s()
        self.hung = True
        self._boot += 1
        boot = self._boot
        self._busy_until_s = -math.inf
        gap: dict[str, Any] = {"device": self.name, "from_s": now_s, "to_s": now_s + lasts_s, "why": "restart"}
        self.room.truth.deaf.append(gap)

        def up() -> None:
            if self._boot == boot:
                self.hung = False
                at_s = self.room.now_s()
                gap["unheard"] = self.room.sink is None
                self._say(lambda: Status(self.id, Stamp(at_s, 0.01), DeviceState.STARTED), 0.02)

        self.room.later(lasts_s, up)

    def leave(self, lasts_s: float) -> None:
        """Its last will reports that it is gone; it comes back by itself."""
        boot = self._boot

        def say(state: DeviceState) -> None:
            at_s = self.room.now_s()
            if boot == self._boot:
                self._say(lambda: Status(self.id, Stamp(at_s, 0.01), state), 0.02)

        if not self.hung:
            say(DeviceState.GONE)
            self.room.later(lasts_s, lambda: say(DeviceState.IDLE))

    def wake_repeatedly(self, lasts_s: float) -> None:
        """Wakes over and over for a time."""
        until_s = self.room.now_s() + lasts_s

        def wake() -> None:
            if self.listens:
                self._wakes("false", "")
            if self.room.now_s() < until_s:
                self.room.later(1.5, wake)

        wake()

    def _is_at(self, state: DeviceState) -> None:
        at_s = self.room.now_s()
        if self.like.states:
            self._say(lambda: Status(self.id, Stamp(at_s, 0.01), state), 0.02)

    # What it hears

    def hears(self, play_id: str, starts_s: float, phrases: Phrases | None, player: SimulatedLoudspeaker) -> None:
        """Hears a sound that begins now."""
        if phrases is None or self.name not in {target.device for target in phrases.trial.targets}:
            return
        self._times[play_id] += 1
        chance = self.room.chance(f"{self.name}:{play_id}:{self._times[play_id]}")
        wakes_share = self.like.wakes_of.get(phrases.trial.speaker, self.like.wakes)
        for _, end_s in phrases.wake_s:
            delay_s = chance.uniform(0.08, 0.3)
            if chance.random() < self.like.edge:
                delay_s = chance.uniform(0.6, 1.4)
            wakes, doubles = chance.random() < wakes_share, chance.random() < self.like.doubles
            boot = self._boot

            def heard(boot: int = boot, delay_s: float = delay_s, wakes: bool = wakes, doubles: bool = doubles) -> None:
                if play_id in self._cut or boot != self._boot or not self.listens or not wakes:
                    return
                if self.room.now_s() < self._busy_until_s:
                    return
                self.room.later(delay_s, lambda: self._wakes_at(boot, "phrase", play_id))
                if doubles:
                    self.room.later(delay_s + chance.uniform(0.1, 2.6), lambda: self._wakes_at(boot, "double", play_id))
                self.room.later(delay_s, lambda: self._is_at(DeviceState.LISTENING) if boot == self._boot else None)
                if phrases.query_s is None:
                    self.room.later(
                        delay_s + 1.0, lambda: self._is_at(DeviceState.IDLE) if boot == self._boot else None
                    )
                else:
                    understand = partial(self._understands, boot, play_id, phrases, chance)
                    self._when_heard(play_id, starts_s, phrases.query_s[1], understand)

            self._when_heard(play_id, starts_s, end_s, heard)

    def _when_heard(self, play_id: str, starts_s: float, offset_s: float, call: Callable[[], object]) -> None:
        """Calls a function when the device has heard offset_s of a sound."""
        self.room.world.call_at(starts_s + offset_s, call)

    def silence(self, play_id: str, at_s: float) -> None:
        """Ends a sound early, at at_s."""
        self._cut[play_id] = at_s

    def _wakes_at(self, boot: int, why: str, play_id: str) -> None:
        if boot == self._boot and not self.hung:
            self._wakes(why, play_id)

    def _wakes(self, why: str, play_id: str) -> None:
        now_s, error_s = self.room.now_s(), self.like.error_s
        stated_s = now_s + self._reports.uniform(-error_s, error_s)
        event = {"device": self.name, "at_s": now_s, "stated_s": stated_s, "error_s": error_s, "why": why,
                 "play_id": play_id, "arrived_s": None}  # fmt: skip
        self.room.truth.wakes.append(event)
        if ObservationKind.WAKE not in self.like.reports:
            return

        def report() -> Observation:
            if event["arrived_s"] is None:
                event["arrived_s"] = self.room.now_s() if self.room.sink is not None else None
            return Wake(self.id, Stamp(stated_s, error_s), "alexa", 0.9)

        if self.unread:
            self.unread -= 1
            event["unread"] = True
            self._say(lambda: Unread(self.id, Stamp(self.room.now_s()), "a line that is too long"), self.like.report_s)
            return
        self._say(report, self.like.report_s)
        if self.repeats:
            self.repeats = False
            event["repeated"] = True
            self._say(report, self.like.report_s + 0.4)

    def _understands(self, boot: int, play_id: str, phrases: Phrases, chance: Random) -> None:
        if boot != self._boot or self.hung:
            return
        if play_id in self._cut and self.room.now_s() > self._cut[play_id]:
            if chance.random() < 0.5:
                return
            text = "something"
        else:
            words = phrases.trial.reference
            text = "something else" if chance.random() < self.like.mishears else words
        now_s = self.room.now_s()
        self._is_at(DeviceState.THINKING)
        if ObservationKind.TRANSCRIPT in self.like.reports:
            self._say(lambda: Transcript(self.id, Stamp(now_s + 0.1, 0.02), text), 0.1 + self.like.report_s)
        frame = phrases.trial.expects
        if frame is not None and ObservationKind.INTENT in self.like.reports:
            intent = reported_intent(
                self.id, Stamp(now_s + 0.1, 0.02), frame if text == phrases.trial.reference else ExpectedFrame((), ())
            )
            self._say(lambda: intent, 0.1 + self.like.report_s)
        if phrases.trial.listening is not None or not self.like.answers or chance.random() < self.like.silent:
            self.room.later(0.5, lambda: self._is_at(DeviceState.IDLE) if boot == self._boot else None)
            return
        latency_s, lasts_s = self.like.latency_s * chance.uniform(0.6, 1.6), chance.uniform(*self.like.lasts_s)
        if chance.random() < self.like.very_late:
            latency_s = chance.uniform(7.5, 12.0)
        self.room.later(latency_s, lambda: self._answers(boot, play_id, lasts_s))

    def _answers(self, boot: int, play_id: str, lasts_s: float) -> None:
        if boot != self._boot or self.hung:
            return
        now_s = self.room.now_s()
        self._is_at(DeviceState.SPEAKING)
        self.room.later(lasts_s, lambda: self._is_at(DeviceState.IDLE) if boot == self._boot else None)
        self._busy_until_s = now_s + lasts_s
        self.room.truth.answers.append(
            {"device": self.name, "start_s": now_s, "end_s": now_s + lasts_s, "play_id": play_id}
        )
        if ObservationKind.RESPONSE in self.like.reports:
            self._say(lambda: ResponseText(self.id, Stamp(now_s, 0.02), "It is done."), self.like.report_s)
        self.room.ear.hears(now_s, now_s + lasts_s)

    # Its words on their way

    def _say(self, make_report: Callable[[], Observation], takes_s: float) -> None:
        """Sends a report now, which arrives after takes_s. If the link goes down on the way, it is lost."""
        takes_s += self.late_s + self._reports.expovariate(1 / 0.01)

        def arrive() -> None:
            if not self.lost:
                self.room.tell(make_report())

        self.room.later(takes_s, arrive)
