"""A bench in simulated time: a room with loudspeakers and a microphone, and devices that record what they really did.

Nothing here decides how anything is counted. The devices report observations, as drivers do. Each source of chance has
its own random generator, named by seed and purpose, so that one more draw from it changes nothing else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
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
from harness.session.simulated.facts import DeviceTraits, Phrases, Truth

RATE_HZ = 50
"""Sample rate. Sounds have the right lengths and parts, but hardly any samples."""
HEARD_HZ = 400
"""Sample rate of the microphone: a tone of half that frequency is heard above the rumble of a room."""
BEAT_S = 4.0
"""Interval of heartbeats, in seconds."""
MISSES_BEATS_S = 12.0
"""A driver that expects heartbeats reports its link as lost after this time without one, in seconds."""


class SimulatedRoom:
    """The room with its loudspeakers, microphone and devices. `sink` is None while no engine runs."""

    def __init__(self, world: SimulatedThreads, seed: int) -> None:
        self.world, self.seed = world, seed
        self.truth = Truth()
        self.sink: Sink | None = None
        self.phrases: dict[str, Phrases] = {}
        self.speakers: list[SimulatedLoudspeaker] = []
        self.devices: list[Board] = []
        self.ear: SimulatedMicrophone
        self.loud = self.flawless = False
        self.sounding_s = (0.0, 0.0)
        """From when to when devices speak or play after the latest opening. A stored response is silence."""

    def chance(self, purpose: str) -> Random:
        """A generator of random numbers for that purpose, the same for the same seed."""
        return Random(f"{self.seed}:{purpose}")

    def report(self, observation: Observation) -> None:
        """Sends an observation to the engine that runs at this moment. If none runs, the observation is lost."""
        if self.sink is not None:
            self.truth.arrived[-1].append((observation.kind, observation.source, observation.at.at_s))
            self.sink(observation)

    def call_later(self, delay_s: float, call: Callable[[], object]) -> None:
        """Calls a function after a delay in simulated time."""
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
            self.room.report(LinkLost(self.id, Stamp(self.room.now_s()), "not there"))

    def close(self) -> None:
        self.room.sink = None

    @property
    def lost(self) -> bool:
        """Whether its link is down."""
        return bool(self._reasons)

    def lose(self, reason: str) -> None:
        """Adds a reason why it cannot be reached. The first one is reported as the loss of its link."""
        if not self.lost:
            self.room.report(LinkLost(self.id, Stamp(self.room.now_s()), reason))
        self._reasons.add(reason)

    def mend(self, reason: str) -> None:
        """Removes a reason why it cannot be reached. Without any left, its link is reported as back."""
        was_lost = self.lost
        self._reasons -= {reason}
        if was_lost and not self.lost:
            self.room.report(LinkBack(self.id, Stamp(self.room.now_s())))


class SimulatedLoudspeaker(BenchPart):
    """A loudspeaker, which can play, be stopped, refuse to play, and be cut off.

    - refuses: how often it will refuse.
    - slow_s: how much later its sounds begin.
    - gap_s: a gap in its next sound.
    """

    def __init__(self, id: str, room: SimulatedRoom) -> None:
        super().__init__(id, room)
        self.refuses = 0
        self.slow_s = 0.0
        self.gap_s = 0.0
        self._playing = ""

    def prompt(self, trial: Trial, stimulus: RenderedStimulus) -> None:
        """Receives the words of a trial's sound, as `IsPrompted` describes."""
        phrase, query = stimulus.span_s(Role.WAKE_PHRASE), stimulus.span_s(Role.QUERY)
        kind = trial.listening.kind if trial.listening else TrialKind.QUERY
        if kind in (TrialKind.WAKE, TrialKind.PROBE) and phrase is None:
            phrase, query = query, None  # the recipe of a wake trial has the phrase as its query
        elif kind is TrialKind.AMBIENT:
            query = None
        spans = (phrase, stimulus.span_s(Role.OPENING), stimulus.span_s(Role.CLOSING))
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
        self.room.call_later(0.02 + self.slow_s, lambda: self._begin(play_id, waveform.duration_s))

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
        self.room.call_later(0.02, lambda: self.room.report(ended))
        for device in self.room.devices:
            device.silence(play_id, now_s)
        return True

    def lose(self, reason: str) -> None:
        self.cut(reason)
        super().lose(reason)

    def _begin(self, play_id: str, duration_s: float) -> None:
        """Begins a sound, unless it was stopped meanwhile: reports its start, and lets the devices hear it."""
        if self._playing != play_id:
            return
        now_s = self.room.now_s()
        trial_id, _, part = play_id.rpartition(".t")
        self.room.truth.plays[play_id] = {
            "play_id": play_id, "player": self.id, "start_s": now_s, "end_s": now_s + duration_s, "complete": True,
        }  # fmt: skip
        self.room.report(StimulusStarted(self.id, Stamp(now_s, 0.001), play_id))
        closing = ".c" in part  # words that end a dialogue address nobody
        phrases = None if closing else self.room.phrases.get(trial_id or play_id)
        if phrases is not None and phrases.wake_s:
            begins_s = self.room.truth.plays[play_id]["wake_end_s"] = now_s + phrases.wake_s[0][1]
            opening = phrases.trial.recipe.opening
            if opening is not None and opening.sounds:
                self.room.sounding_s = begins_s, now_s + duration_s
        for device in self.room.devices:
            device.hear(play_id, now_s, phrases, self)
        gap_s, self.gap_s = self.gap_s, 0.0
        if gap_s:
            self.room.call_later(duration_s / 2, self._report_overrun)
        self.room.call_later(duration_s + gap_s, lambda: self._end(play_id))

    def _report_overrun(self) -> None:
        self.room.report(Overrun(self.id, Stamp(self.room.now_s()), 64))

    def _end(self, play_id: str) -> None:
        if self._playing == play_id:
            self._playing = ""
            self.room.report(StimulusEnded(self.id, Stamp(self.room.now_s(), 0.001), play_id))

    def level_dbfs(self) -> float | None:
        return None


class SimulatedMicrophone(BenchPart):
    """The microphone, which hears answers and the loudspeakers."""

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        """Finds the harness's own sound in the recording, except now and then."""
        chance = self.room.chance(f"ear:{play_id}")
        if chance.random() < 0.1 and not self.room.flawless:
            return
        heard = StimulusHeard(self.id, Stamp(starts_at_s + chance.uniform(0.0, 0.002), 0.002), play_id, 0.9)
        self.room.call_later(waveform.duration_s + 0.3, lambda: None if self.lost else self.room.report(heard))

    def hear(self, start_s: float, end_s: float) -> None:
        """Hears an answer. start_s, end_s: when the speech really began and ended."""
        chance = self.room.chance(f"speech:{start_s}")
        gap = self.room.chance(f"gap:{start_s}")
        if gap.random() < 0.04 and not self.room.flawless:
            self.room.world.call_at(start_s + gap.uniform(0.0, 0.2), self.overrun)

        def report(observation: Observation) -> None:
            if not self.lost:
                self.room.report(observation)

        began = SpeechStarted(self.id, Stamp(start_s + chance.uniform(-0.01, 0.01), 0.01), -30.0)
        self.room.world.call_at(start_s + 0.12, lambda: report(began))
        ended = SpeechEnded(self.id, Stamp(end_s + chance.uniform(-0.02, 0.02), 0.02))
        self.room.world.call_at(end_s + 0.12, lambda: report(ended))

    def overrun(self) -> None:
        self.room.report(Overrun(self.id, Stamp(self.room.now_s()), 512))

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        if self.lost:
            raise DeviceError("the microphone is not connected")
        samples = np.zeros(max(1, math.ceil((end_s - start_s) * HEARD_HZ)), dtype=np.float32)
        first, last = (max(0, round((at_s - start_s) * HEARD_HZ)) for at_s in self.room.sounding_s)
        samples[first:last], samples[first:last:2] = 0.1, -0.1
        return Waveform(samples, HEARD_HZ), start_s

    def level_dbfs(self) -> float | None:
        return None

    def noise_floor_dbfs(self) -> float | None:
        return -35.0 if self.room.loud else -70.0


@dataclass(frozen=True)
class _PhraseReaction:
    """How a device will react to a wake phrase. boot: its boot when the sound began."""

    boot: int
    delay_s: float
    wakes: bool
    doubles: bool


class Board(BenchPart):
    """A device under test, together with the driver that reports about it.

    - late_s: additional delay of its reports. repeats: whether it repeats its next wake event.
    - unread: number of its next reports that its driver cannot read.
    - hung: whether it does nothing. deaf: whether it hears nothing.
    """

    def __init__(self, id: str, room: SimulatedRoom, traits: DeviceTraits, *, link: str) -> None:
        super().__init__(link, room)
        self.name, self.traits = id, traits
        self.late_s = 0.0
        self.repeats = False
        self.unread = 0
        self.hung = self.deaf = False
        self._boot = 0  # What was scheduled under an earlier boot does not happen.
        self._busy_until_s = -math.inf
        self._times_heard: Counter[str] = Counter()  # by play id
        self._cut_s: dict[str, float] = {}  # play id → when its sound was cut off
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
        """Sends a heartbeat, and schedules the next one."""
        now_s = self.room.now_s()
        if self.traits.beats and not self.hung:
            self._say(lambda: ListeningProved(self.id, Stamp(now_s, 0.01), Proof.HEARTBEAT), 0.02)
        self.room.call_later(BEAT_S, self._beat)

    def _expect_false(self) -> None:
        """Schedules the next false wake event."""
        if self.traits.false_per_hour:
            self.room.call_later(self._false.expovariate(self.traits.false_per_hour / 3600), self._false_wake)

    def _false_wake(self) -> None:
        if self.listens and self.room.now_s() >= self._busy_until_s:
            self._wake("false", "")
        self._expect_false()

    def drop(self, reason: str, lasts_s: float) -> None:
        """Loses its link for a time."""
        now_s = self.room.now_s()
        self.lose(reason)
        gap = {"device": self.name, "from_s": now_s, "to_s": now_s + lasts_s, "why": "link"}
        self.room.truth.deaf.append(gap)
        self.room.call_later(lasts_s, lambda: self.mend(reason))

    def killed(self) -> None:
        """Called when the engine was killed. A device does not notice."""

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

        if self.traits.beats:
            self.room.call_later(MISSES_BEATS_S, notice)

        def wake_up() -> None:
            if self.hung and self._boot == boot:
                self.hung = False
                gap["to_s"] = self.room.now_s()
                self.mend("no heartbeat")

        self.room.call_later(lasts_s, wake_up)

    def fail_microphone(self, lasts_s: float) -> None:
        """Its microphone fails for a time, while it keeps reporting that it is well: it is to blame for misses."""
        if self.deaf:
            return
        self.deaf = True
        gap = {"device": self.name, "from_s": self.room.now_s(), "to_s": self.room.now_s() + lasts_s, "why": "deaf"}
        self.room.truth.deaf.append(gap)

        def hear_again() -> None:
            self.deaf = False

        self.room.call_later(lasts_s, hear_again)

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

        self.room.call_later(lasts_s, up)

    def leave(self, lasts_s: float) -> None:
        """Its last will reports that it is gone; it comes back by itself."""
        boot = self._boot

        def say(state: DeviceState) -> None:
            at_s = self.room.now_s()
            if boot == self._boot:
                self._say(lambda: Status(self.id, Stamp(at_s, 0.01), state), 0.02)

        if not self.hung:
            say(DeviceState.GONE)
            self.room.call_later(lasts_s, lambda: say(DeviceState.IDLE))

    def wake_repeatedly(self, lasts_s: float) -> None:
        """Wakes over and over for a time."""
        until_s = self.room.now_s() + lasts_s

        def wake() -> None:
            if self.listens:
                self._wake("false", "")
            if self.room.now_s() < until_s:
                self.room.call_later(1.5, wake)

        wake()

    def _report_state(self, state: DeviceState) -> None:
        """Reports a state, if it reports states."""
        at_s = self.room.now_s()
        if self.traits.states:
            self._say(lambda: Status(self.id, Stamp(at_s, 0.01), state), 0.02)

    def _report_state_later(self, delay_s: float, state: DeviceState, boot: int) -> None:
        """Reports a state after a delay, unless it has restarted or hung since that boot."""
        self.room.call_later(delay_s, lambda: self._report_state(state) if boot == self._boot else None)

    # What it hears

    def hear(self, play_id: str, starts_s: float, phrases: Phrases | None, player: SimulatedLoudspeaker) -> None:
        """Hears a sound that begins now."""
        if phrases is None or self.name not in {target.device for target in phrases.trial.targets}:
            return
        self._times_heard[play_id] += 1
        chance = self.room.chance(f"{self.name}:{play_id}:{self._times_heard[play_id]}")
        wakes_share = self.traits.wakes_of.get(phrases.trial.speaker, self.traits.wakes)
        for _, end_s in phrases.wake_s:
            delay_s = chance.uniform(0.08, 0.3)
            if chance.random() < self.traits.edge:
                delay_s = chance.uniform(0.6, 1.4)
            wakes, doubles = chance.random() < wakes_share, chance.random() < self.traits.doubles
            reaction = _PhraseReaction(self._boot, delay_s, wakes=wakes, doubles=doubles)
            self._when_heard(
                play_id, starts_s, end_s, partial(self._react, reaction, play_id, starts_s, phrases, chance)
            )

    def _react(
        self, reaction: _PhraseReaction, play_id: str, starts_s: float, phrases: Phrases, chance: Random
    ) -> None:
        """Reacts to the end of a wake phrase, unless something prevents it by now. starts_s: when the sound began."""
        if play_id in self._cut_s or reaction.boot != self._boot or not self.listens or not reaction.wakes:
            return
        if self.room.now_s() < self._busy_until_s:
            return
        boot, delay_s = reaction.boot, reaction.delay_s
        self.room.call_later(delay_s, lambda: self._wake_if_up(boot, "phrase", play_id))
        if reaction.doubles:
            double_s = delay_s + chance.uniform(0.1, 2.6)
            self.room.call_later(double_s, lambda: self._wake_if_up(boot, "double", play_id))
        self._report_state_later(delay_s, DeviceState.LISTENING, boot)
        if phrases.query_s is None:
            self._report_state_later(delay_s + 1.0, DeviceState.IDLE, boot)
        else:
            understand = partial(self._understand, boot, play_id, phrases, chance)
            self._when_heard(play_id, starts_s, phrases.query_s[1], understand)

    def _when_heard(self, play_id: str, starts_s: float, offset_s: float, call: Callable[[], object]) -> None:
        """Calls a function when the device has heard offset_s of a sound."""
        self.room.world.call_at(starts_s + offset_s, call)

    def silence(self, play_id: str, at_s: float) -> None:
        """Ends a sound early, at at_s."""
        self._cut_s[play_id] = at_s

    def _wake_if_up(self, boot: int, why: str, play_id: str) -> None:
        """Wakes, unless it has restarted or hung since that boot."""
        if boot == self._boot and not self.hung:
            self._wake(why, play_id)

    def _wake(self, why: str, play_id: str) -> None:
        """Wakes, and reports it.

        - why: "phrase", "double" or "false".
        - play_id: the sound to which it wakes, or "".
        """
        now_s, error_s = self.room.now_s(), self.traits.error_s
        stated_s = now_s + self._reports.uniform(-error_s, error_s)
        event = {"device": self.name, "at_s": now_s, "stated_s": stated_s, "error_s": error_s, "why": why,
                 "play_id": play_id, "arrived_s": None}  # fmt: skip
        self.room.truth.wakes.append(event)
        if ObservationKind.WAKE not in self.traits.reports:
            return

        def make_report() -> Observation:
            if event["arrived_s"] is None:
                event["arrived_s"] = self.room.now_s() if self.room.sink is not None else None
            return Wake(self.id, Stamp(stated_s, error_s), "alexa", 0.9)

        if self.unread:
            self.unread -= 1
            event["unread"] = True
            problem = "a line that is too long"
            self._say(lambda: Unread(self.id, Stamp(self.room.now_s()), problem), self.traits.report_s)
            return
        self._say(make_report, self.traits.report_s)
        if self.repeats:
            self.repeats = False
            event["repeated"] = True
            self._say(make_report, self.traits.report_s + 0.4)

    def _understand(self, boot: int, play_id: str, phrases: Phrases, chance: Random) -> None:
        """Understands the end of a query, reports it, and schedules the answer."""
        if boot != self._boot or self.hung:
            return
        if play_id in self._cut_s and self.room.now_s() > self._cut_s[play_id]:
            if chance.random() < 0.5:
                return
            text = "something"
        else:
            words = phrases.trial.reference
            text = "something else" if chance.random() < self.traits.mishears else words
        now_s = self.room.now_s()
        self._report_state(DeviceState.THINKING)
        if ObservationKind.TRANSCRIPT in self.traits.reports:
            self._say(lambda: Transcript(self.id, Stamp(now_s + 0.1, 0.02), text), 0.1 + self.traits.report_s)
        frame = phrases.trial.expects
        if frame is not None and ObservationKind.INTENT in self.traits.reports:
            understood_frame = frame if text == phrases.trial.reference else ExpectedFrame((), ())
            intent = reported_intent(self.id, Stamp(now_s + 0.1, 0.02), understood_frame)
            self._say(lambda: intent, 0.1 + self.traits.report_s)
        if phrases.trial.listening is not None or not self.traits.answers or chance.random() < self.traits.silent:
            self._report_state_later(0.5, DeviceState.IDLE, boot)
            return
        latency_s, lasts_s = self.traits.latency_s * chance.uniform(0.6, 1.6), chance.uniform(*self.traits.lasts_s)
        if chance.random() < self.traits.very_late:
            latency_s = chance.uniform(7.5, 12.0)
        self.room.call_later(latency_s, lambda: self._answer(boot, play_id, lasts_s))

    def _answer(self, boot: int, play_id: str, lasts_s: float) -> None:
        """Speaks its answer, unless it has restarted or hung since that boot."""
        if boot != self._boot or self.hung:
            return
        now_s = self.room.now_s()
        self._report_state(DeviceState.SPEAKING)
        self._report_state_later(lasts_s, DeviceState.IDLE, boot)
        self._busy_until_s = now_s + lasts_s
        self.room.truth.answers.append(
            {"device": self.name, "start_s": now_s, "end_s": now_s + lasts_s, "play_id": play_id}
        )
        if ObservationKind.RESPONSE in self.traits.reports:
            self._say(lambda: ResponseText(self.id, Stamp(now_s, 0.02), "It is done."), self.traits.report_s)
        self.room.ear.hear(now_s, now_s + lasts_s)

    # Its words on their way

    def _say(self, make_report: Callable[[], Observation], takes_s: float) -> None:
        """Sends a report now, which arrives after takes_s. If the link goes down on the way, it is lost."""
        takes_s += self.late_s + self._reports.expovariate(1 / 0.01)

        def arrive() -> None:
            if not self.lost:
                self.room.report(make_report())

        self.room.call_later(takes_s, arrive)
