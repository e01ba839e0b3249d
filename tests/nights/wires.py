"""Devices of a night that the product's own drivers reach, over a port or a broker that is simulated.

What the device has seen goes through its firmware, its wire with the faults of wires, and the driver. Each wake event
is known again by its score. What the driver told is kept beside what was true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from harness.base.ports import Sink
from harness.base.simulated_threads import SimulatedThreads
from harness.devices.mqtt.options import MessageFraming, MqttInjection, MqttOptions
from harness.devices.serial.options import FramingChoice, SerialInjection, SerialOptions
from harness.devices.serial.peers import ConsolePeer
from harness.model.choices import InjectionPace
from harness.model.errors import DeviceError
from harness.model.observation import DeviceState, LinkLost, Observation, Status, Unread, Wake
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.session.simulated.bench import Board, SimulatedRoom
from harness.session.simulated.facts import DeviceTraits
from tests.nights.firmware import (
    FRAMES,
    HEARS_HZ,
    LINES,
    MESSAGES,
    SCORES,
    Firmware,
    FramedFirmware,
    LineFirmware,
    MessageFirmware,
    RadioFirmware,
)
from tests.nights.ports import SimulatedBroker, SimulatedMqtt, SimulatedSerial
from tests.seen import Around

SHARE = 3
"""One device in so many is reached by a driver."""
TAKES_SOUND = 20
"""Of devices that are alone on their bench, one in so many takes sound over its wire."""
KINDS = ("lines", "frames", "messages", "lines", "frames", "messages", "radio")
CALM_S = 3.0
"""Before and after an event: in so long without trouble, nothing of it is lost or late."""
FIRST_EVENT_S = 7.0
"""So long a driver may wait for what a framed board has sent before its first event, where it says little else."""
NOTICED_S = 15.0
"""So long after its cause a driver may still notice that a link is lost."""
LATEST_LINE_S = 0.5
"""A line that is more than a second late is taken for one whose time is not the device's clock."""
STALLS_EVERY_S = 5.0
FLOWS_S = 0.5
"""So long after a sample a board that takes sound over its wire still works on it."""
SETTLED_S = 40.0
"""In so long without trouble a clock is known by its lines."""
EVERY_S = 40.0
HELD_S = 0.1
"""A line that is held back for longer may be later than is assumed while its clock is not known."""
UNNOTICED_S, CLOSE_S = 1.1, 0.5
"""A broker that stands still for less may do so between two pulses. What it held arrives at once."""


def board_of(name: str, room: SimulatedRoom, like: DeviceTraits, happens: Callable[[], bool], *, alone: bool) -> Board:
    """A device of the bench, drawn: most speak in observations. alone: there is no other one."""
    hearing = room.chance(f"{name}:sound over its wire")
    if alone and not hearing.randrange(TAKES_SOUND):
        return Injected("frames", name, room, replace(like, edge=0.0), hearing, happens)
    chance = room.chance(f"{name}:wire")
    if chance.randrange(SHARE):
        return Board(name, room, like, link=f"{name}_link")
    return Reached(chance.choice(KINDS), name, room, like, chance, happens)


class Reached(Board):
    """A device with a firmware, and the driver of the engine that lives at this moment."""

    injection = SerialInjection.NONE
    pace = InjectionPace.FASTEST

    def __init__(
        self, how: str, name: str, room: SimulatedRoom, like: DeviceTraits, chance: Random, happens: Callable[[], bool]
    ) -> None:
        self.how = how
        self._chance, self._happens = chance, happens
        self._life: object | None = None
        self._driver: SimulatedSerial | SimulatedMqtt | None = None
        self._usual_way_s = self._way()
        self._broker = SimulatedBroker(room.world, self._usual_way_s)
        self._troubled_s = self._link_troubled_s = -math.inf
        self._stalls_until_s = self._steady_until_s = self._slow_until_s = self._torn_until_s = -math.inf
        self._down = self._troubles = 0
        self.firmware: Firmware
        world = room.world
        match how:
            case "lines":
                self.firmware = LineFirmware(world, chance)
            case "frames":
                self.firmware = self._framed(world, chance, like)
            case "messages":
                self.firmware = MessageFirmware(world, chance, self._broker, name)
            case _:
                self.firmware = RadioFirmware(world, chance, self._broker, f"{name}_link", beats=like.beats)
        self.wire: dict[str, Any] = {
            "device": name,
            "how": how,
            "takes_sound": self.injection is not SerialInjection.NONE,
            "restarts": [],
            "starts": [],
            "losses": [],
        }
        room.truth.wires.append(self.wire)
        super().__init__(name, room, like, link=f"{name}_link")
        room.call_later(chance.expovariate(1 / EVERY_S), self._next_fault)

    def _framed(self, world: SimulatedThreads, chance: Random, like: DeviceTraits) -> FramedFirmware:
        return FramedFirmware(world, chance, beats=like.beats, window=chance.choice((0, 8000)))

    def _way(self) -> Callable[[], float]:
        usual_s = self._chance.choice((0.001, 0.005, 0.02))
        return lambda: self._chance.uniform(0.5, 1.5) * usual_s

    # Its driver

    def open(self, sink: Sink) -> None:
        """DeviceError when the driver cannot be opened."""
        self.room.sink = sink
        life = self._life = object()
        self._trouble(CALM_S)
        self._steady_until_s = self.room.now_s() + SETTLED_S
        if isinstance(self.firmware, LineFirmware | FramedFirmware):
            framed = isinstance(self.firmware, FramedFirmware)
            serial = SerialOptions(
                port="simulated",
                framing=FramingChoice.VH if framed else FramingChoice.NONE,
                injection=self.injection,
                pace=self.pace,
            )
            around = Around(profile=FRAMES if framed else LINES)
            self._driver = SimulatedSerial(self.id, serial, around, self.firmware.port)
        else:
            radio = isinstance(self.firmware, RadioFirmware)
            options = MqttOptions(
                address="simulated:1883",
                framing=MessageFraming.VH if radio else MessageFraming.NONE,
                injection=MqttInjection.NONE,
            )
            self._driver = SimulatedMqtt(self.id, options, Around(profile=FRAMES if radio else MESSAGES), self._broker)
        self._driver.open(lambda observation: self._tell(observation, life))
        self._trouble(CALM_S)

    def close(self) -> None:
        self._life = None
        self._trouble(CALM_S)
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    def killed(self) -> None:
        self._life = None
        self._trouble(CALM_S)
        if isinstance(self._driver, SimulatedSerial):
            self._driver.killed()
        self._broker.bury("harness-")

    def _tell(self, observation: Observation, life: object) -> None:
        """The driver tells something; of a driver whose engine is dead nothing is heard."""
        if life is not self._life:
            return
        now_s = self.room.now_s()
        match observation:
            case Wake(at=at, score=score):
                event = self.room.truth.wakes[round((score or 0) * SCORES) - 1]
                if not event["told"]:
                    event["stated_s"], event["error_s"] = at.at_s, at.error_s
                event["told"].append((at.at_s, at.error_s))
                event["vague"] = event["vague"] or self._slow_until_s > now_s  # it may have waited for a slow broker
                # A repeated line has the time of the first one.
                late = event["held_s"] > HELD_S or self._torn_until_s > now_s or event.get("repeated")
                if late and not self._knows_its_clock():  # nothing shows how late its line is
                    event["vague"] = True
                event["arrived_s"] = event["arrived_s"] or now_s
            case Status(state=DeviceState.STARTED):
                self.wire["starts"].append(now_s)
            case LinkLost(what=problem):
                self.wire["losses"].append({"at_s": now_s, "what": problem, "since_s": now_s - self._link_troubled_s})
            case _:
                pass
        self.room.report(observation)

    # Trouble: what excuses a driver

    def _trouble(self, lasts_s: float = 0.0, *, link: bool = False) -> None:
        until_s = self.room.now_s() + lasts_s
        self._troubles += 1
        self._troubled_s = max(self._troubled_s, until_s)
        if link:
            self._link_troubled_s = max(self._link_troubled_s, until_s)

    # Its words

    def _say(self, observe: Callable[[], Observation], takes_s: float) -> None:
        now_s, observation = self.room.now_s(), observe()
        delay_s = max(0.0, takes_s - self.traits.report_s)
        if self.how == "lines":
            delay_s += self._stalled_s()
        elif self.how != "messages":  # its messages carry no time
            delay_s += self.late_s
        if isinstance(observation, Unread) and self.how in ("frames", "radio"):
            return
        if isinstance(observation, Wake):
            number = len(self.room.truth.wakes)
            event = self.room.truth.wakes[-1]
            observation = Wake(self.id, Stamp(now_s), "alexa", number / SCORES)
            if "wire" not in event:
                event |= {
                    "wire": self.how,
                    "due": 0,
                    "told": [],
                    "stated_s": now_s,
                    "vague": self._slow_until_s > now_s,
                    "held_s": delay_s,
                }
                if isinstance(self.firmware, MessageFirmware):
                    self.firmware.repeats = self.repeats
            elif self.how != "lines":
                return  # the firmware repeats its words by itself
            calm_s = FIRST_EVENT_S if self.how == "frames" else CALM_S
            self.room.call_later(delay_s + calm_s, lambda: self._expect(event, now_s))
        elif isinstance(observation, Status) and observation.state is DeviceState.STARTED:
            return  # the firmware says so itself
        self.firmware.say(observation, now_s + delay_s)

    def _stalled_s(self) -> float:
        """For how long its output stands still; then all lines come at once."""
        now_s = self.room.now_s()
        if self.late_s and now_s > max(self._stalls_until_s + STALLS_EVERY_S, self._steady_until_s):
            self._stalls_until_s = now_s + min(self.late_s, LATEST_LINE_S) * self._chance.uniform(0.3, 1.0)
        return max(0.0, self._stalls_until_s - now_s)

    def _expect(self, event: dict[str, Any], since_s: float) -> None:
        """Nothing has happened to its wire: the driver must have told it."""
        if self._life is not None and self._troubled_s < since_s - CALM_S:
            event["due"] += 1

    # Faults of the device

    def drop(self, fault: str, lasts_s: float) -> None:
        """Its port is unplugged, or its broker restarts."""
        now_s = self.room.now_s()
        gap = {"device": self.name, "from_s": now_s, "to_s": now_s + lasts_s, "why": "link"}
        self.room.truth.deaf.append(gap)
        self._trouble(lasts_s + CALM_S + 2.0, link=True)
        self._down += 1
        if isinstance(self.firmware, LineFirmware | FramedFirmware):
            self.firmware.port.unplug()
        elif self._down == 1:
            self._broker.kill()

        def back() -> None:
            self._down -= 1
            if self._down:
                return
            if isinstance(self.firmware, LineFirmware | FramedFirmware):
                self.firmware.port.plug()
            elif isinstance(self.firmware, MessageFirmware):
                self._broker.start()
                self.firmware.reconnect()

        self.room.call_later(lasts_s, back)

    def hang(self, lasts_s: float) -> None:
        if not self.hung:
            self._trouble(lasts_s + CALM_S + 4.0, link=True)
            super().hang(lasts_s)

    def restart(self, lasts_s: float) -> None:
        if self.hung:
            return
        now_s = self.room.now_s()
        restart: dict[str, Any] = {"from_s": now_s, "up_s": now_s + lasts_s, "calm": self._is_calm()}
        self.wire["restarts"].append(restart)
        self._trouble(lasts_s + CALM_S + 8.0, link=True)
        super().restart(lasts_s)
        self.firmware.goes_down()
        self._steady_until_s = now_s + lasts_s + SETTLED_S
        troubles, boot = self._troubles, self._boot

        def up() -> None:
            if self._boot == boot:
                self.firmware.comes_up()
                self._gap_of(now_s)["unheard"] = self._down > 0 or self._life is None

        def told() -> None:
            restart["calm"] &= self._troubles == troubles

        self.room.call_later(lasts_s, up)
        self.room.call_later(lasts_s + CALM_S, told)

    def _gap_of(self, from_s: float) -> dict[str, Any]:
        gaps = self.room.truth.deaf
        return next(gap for gap in gaps if gap["device"] == self.name and gap["from_s"] == from_s)

    @property
    def hung(self) -> bool:
        return self.firmware.hung

    @hung.setter
    def hung(self, hung: bool) -> None:
        self.firmware.hung = hung

    def lose(self, fault: str) -> None:
        """That it is hung is for its driver to notice."""

    def mend(self, fault: str) -> None:
        """As `lose`."""

    def _is_calm(self) -> bool:
        return self._life is not None and self.room.now_s() - self._troubled_s > CALM_S

    # Faults of its wire

    def _next_fault(self) -> None:
        self._fail()
        self.room.call_later(self._chance.expovariate(1 / EVERY_S), self._next_fault)

    def _fail(self) -> None:
        chance, firmware = self._chance, self.firmware
        kind, lasts_s = chance.choice(self._faults()), chance.uniform(0.5, 8.0)
        if not self._happens():
            return
        self.room.truth.faults[f"wire: {kind}"] += 1
        match kind:
            case "noise" | "cut line" | "halved line" if isinstance(firmware, LineFirmware):
                self._trouble(CALM_S)
                firmware.damage = self._damage(kind, chance.randint(1, 3))
            case "clock" if isinstance(firmware, LineFirmware):
                by_s = chance.uniform(0.06, 0.5) * chance.choice((1, -1))
                if self._knows_its_clock() and firmware.clock.jumps:
                    firmware.clock.jump(by_s)
                    self._steady_until_s = self.room.now_s() + SETTLED_S
            case "frames lost" if isinstance(firmware, FramedFirmware):
                firmware.loses = chance.choice((0.1, 0.3, 0.7))
                self._trouble(lasts_s + 8.0, link=True)
                self.room.call_later(lasts_s, lambda: setattr(firmware, "loses", 0.0))
            case "frozen broker":
                self._broker.freeze()
                self._trouble(lasts_s + 8.0, link=True)
                if lasts_s < UNNOTICED_S:
                    self._slow_until_s = max(self._slow_until_s, self.room.now_s() + lasts_s + CLOSE_S)
                self.room.call_later(lasts_s, self._broker.thaw)
            case "cut connection":
                self._trouble(CALM_S + 2.0, link=True)
                self._broker.cut("harness-")
            case "slow broker":
                self._broker.way_s = lambda: chance.uniform(0.05, 0.3)
                self._trouble(lasts_s + CALM_S)
                self._slow_until_s = max(self._slow_until_s, self.room.now_s() + lasts_s + 1.0)
                self.room.call_later(lasts_s, lambda: setattr(self._broker, "way_s", self._usual_way_s))
            case "host stands still":
                for device in self.room.devices:
                    if isinstance(device, Reached):
                        device._trouble(lasts_s + CALM_S)
                self.room.truth.slow.append((self.room.now_s(), self.room.now_s() + lasts_s + 10.0))
                self.room.world.stall(lasts_s)
            case "slow to hear" if isinstance(firmware, FramedFirmware):
                firmware.slow_s = chance.uniform(0.005, 0.03)
                self.room.call_later(lasts_s, lambda: setattr(firmware, "slow_s", 0.0))
            case "sound refused":
                self.refuses = chance.randint(1, 3)
            case _:
                raise AssertionError(kind)

    def _faults(self) -> Sequence[str]:
        return FAULTS[self.how]

    def _knows_its_clock(self) -> bool:
        peer = self._driver.peer if isinstance(self._driver, SimulatedSerial) else None
        settled = self.traits.beats and self.room.now_s() > self._troubled_s + SETTLED_S
        return settled and isinstance(peer, ConsolePeer) and peer.console.clock.spread_s is not None

    def _damage(self, kind: str, lines: int) -> Callable[[bytes], list[tuple[bytes, float]]]:
        left = lines + 1 if kind == "cut line" else lines  # the last one hits the next line
        chance = self._chance

        def damage(line: bytes) -> list[tuple[bytes, float]]:
            nonlocal left
            if left <= 0:
                return [(line, 0.0)]
            left -= 1
            if kind == "cut line" and not left:
                self._trouble(CALM_S)
                return [(line, 0.0)]
            place = chance.randrange(1, len(line) - 2)
            self._trouble(CALM_S)
            match kind:
                case "noise":
                    return [(line[:place] + bytes([chance.choice((0x00, 0xFF, 0x1B, 0xC3))]) + line[place:], 0.0)]
                case "cut line":
                    return [(line[:place], 0.0)]
                case _:
                    late_s = chance.uniform(0.01, 0.4)
                    self._torn_until_s = max(self._torn_until_s, self.room.now_s() + late_s + CLOSE_S)
                    return [(line[:place], 0.0), (line[place:], late_s)]

        return damage


class Injected(Reached):
    """A board that takes the sound of listening trials over its wire. Each sound has a number, which is its samples.

    So it knows what it hears, and of each sound how much. Its wake events carry the sample at which they came.
    """

    injection = SerialInjection.VH

    def __init__(
        self, how: str, name: str, room: SimulatedRoom, like: DeviceTraits, chance: Random, happens: Callable[[], bool]
    ) -> None:
        self.pace = chance.choice((InjectionPace.REALTIME, InjectionPace.REALTIME, InjectionPace.FASTEST))
        self.refuses = 0
        self._sounds: list[dict[str, Any]] = []
        self._last: dict[str, Any] | None = None
        self._heard_s = -math.inf
        self._awaited: list[tuple[str, float, Callable[[], object]]] = []
        super().__init__(how, name, room, like, chance, happens)

    def _framed(self, world: SimulatedThreads, chance: Random, like: DeviceTraits) -> FramedFirmware:
        window = chance.choice((480, 1000, 4000))
        return FramedFirmware(world, chance, beats=like.beats, window=window, heard=self._hears_samples)

    def _faults(self) -> Sequence[str]:
        return (*super()._faults(), "slow to hear", "sound refused")

    @property
    def listens(self) -> bool:
        """It works on samples only: between sounds it stands still."""
        return super().listens and self.room.now_s() < self._heard_s + FLOWS_S

    # As a player of stimuli

    def play(self, play_id: str, waveform: Waveform) -> None:
        if self.refuses:
            self.refuses -= 1
            raise DeviceError("the board has no room for sound")
        if self._driver is None:
            raise DeviceError(f"{self.id} is not open")
        count = round(waveform.duration_s * HEARS_HZ)
        self._sounds.append({"play_id": play_id, "count": count, "heard": 0})
        numbered = np.full(count, len(self._sounds) / 32768, dtype=np.float32)
        self._driver.play(play_id, Waveform(numbered, HEARS_HZ))

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.stop()

    def level_dbfs(self) -> float | None:
        return None

    # As the board

    def _hears_samples(self, samples: Sequence[int]) -> None:
        for number in dict.fromkeys(samples):
            sound, more = self._sounds[number - 1], samples.count(number)
            sound["heard"] += more
            if sound["heard"] == more:
                self._begins_to_hear(sound)
            self._last, self._heard_s = sound, self.room.now_s()
            play = self.room.truth.plays[sound["play_id"]]
            play["end_s"], play["heard_s"] = self.room.now_s(), sound["heard"] / HEARS_HZ
            play["complete"] = sound["heard"] == sound["count"]
            self._goes_on_hearing(sound)

    def _begins_to_hear(self, sound: dict[str, Any]) -> None:
        now_s, play_id = self.room.now_s(), sound["play_id"]
        phrases = self.room.phrases.get(play_id.rpartition(".t")[0] or play_id)
        play = {"play_id": play_id, "player": self.id, "start_s": now_s, "end_s": now_s, "complete": False}
        self.room.truth.plays[play_id] = play
        if phrases is not None and phrases.wake_s:
            play["wake_end_s"] = now_s + phrases.wake_s[0][1]
        self.hear(play_id, now_s, phrases, self)

    def _goes_on_hearing(self, sound: dict[str, Any]) -> None:
        heard_s = sound["heard"] / HEARS_HZ
        due = [awaited for awaited in self._awaited if awaited[0] == sound["play_id"] and awaited[1] <= heard_s]
        self._awaited = [awaited for awaited in self._awaited if awaited not in due]
        for _, _, call in due:
            call()

    def _when_heard(self, play_id: str, starts_s: float, offset_s: float, call: Callable[[], object]) -> None:
        self._awaited.append((play_id, offset_s, call))

    def _wake(self, why: str, play_id: str) -> None:
        """Where it stands in what it has heard last is where the event lies."""
        super()._wake(why, play_id)
        if self._last is not None:
            place = {"in_play": self._last["play_id"], "offset_s": self._last["heard"] / HEARS_HZ}
            self.room.truth.wakes[-1] |= place


FAULTS = {
    "lines": ("noise", "cut line", "halved line", "clock", "host stands still"),
    "frames": ("frames lost", "frames lost", "host stands still"),
    "messages": ("frozen broker", "cut connection", "slow broker", "host stands still"),
    "radio": ("frozen broker", "cut connection", "slow broker", "host stands still"),
}
