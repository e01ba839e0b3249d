"""One script of a device, through the virtual lab and through the simulation: 100 trials, equal counts, equal times.

The device hears real sound in the virtual lab's room and reports over a real broker. Its script says, for each phrase
that it hears, whether and when it wakes. Its simulated twin follows the same script.
"""

from __future__ import annotations

import heapq
import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

import numpy as np
import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from harness.base.simulated_threads import SimulatedThreads
from harness.scenario.bench import load_bench
from harness.scenario.scenario import load_scenario
from harness.session.simulated.bench import Board, SimulatedLoudspeaker, SimulatedRoom
from harness.session.simulated.facts import DeviceTraits, Phrases
from harness.session.simulated.night import LengthRenderer, SimulatedNight, simulate_bench
from harness.sound.capture import Block, Capture
from harness.sound.stimuli.renderer import renderer
from harness.statistics.intervals import Share
from harness.wake.wake import WakeFigures
from tests.conformance.engine_runs import rows
from tests.conformance.lab_runs import LabRuns, lab_of_its_own
from tests.known import known
from tests.written_sessions import wake_of

TRIALS = 100
SCENARIO = f"""\
scenario: scripted
voices: {{cass: {{engine: flite, name: slt}}}}
defaults: {{voice: cass, level_dbfs: -26, between_trials_s: 0.5}}
wake: {{window_after_s: 2}}
trials: [{{id: call, kind: wake, repeat: {TRIALS}, devices: [scripted]}}]
"""
BENCH = """\
bench: scripted
sound_server: virtual_lab
operator: absent
loudspeakers: {near: {driver: loudspeaker, sound_device: harness_speaker, position: near}}
microphone: {driver: microphone, sound_device: harness_mic}
devices: {scripted: {profile: reference_assistant, connection: {driver: mqtt, address: lab}}}
"""
SILENT_S = 0.2
"""After so long a silence, the device knows that a phrase has ended."""

pytestmark = [pytest.mark.soak, pytest.mark.sound]


@dataclass(frozen=True)
class Reaction:
    """To one phrase. delays_s: wake events after its end; none: it misses the phrase."""

    delays_s: tuple[float, ...]


def drawn() -> list[Reaction]:
    chance = Random("scripted")
    script = []
    for _ in range(TRIALS):
        delay_s = chance.uniform(2 * SILENT_S, 1.2)
        delays = (delay_s,) if chance.random() < 0.8 else ()
        script.append(
            Reaction((*delays, delay_s + chance.uniform(0.2, 0.6)) if delays and chance.random() < 0.1 else delays)
        )
    return script


class ScriptedDevice:
    """Hears phrases by their energy in the room's microphone of the device, and reports as its script says."""

    def __init__(self, port: int, script: list[Reaction]) -> None:
        self._script = iter(script)
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="scripted")
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._sequence = 0
        self._lock, self._over = threading.Condition(), False
        self._due: list[tuple[float, str]] = []
        self._loud_until_s: float | None = None
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        self._capture = Capture("dut_mic", "virtual_lab", on_block=self._hear, on_fault=lambda stamp, problem: None)
        self._capture.open()
        self._at(time.monotonic(), "heartbeat")

    def close(self) -> None:
        self._capture.close()
        with self._lock:
            self._over = True
            self._lock.notify()
        self._thread.join()
        self._client.loop_stop()

    def _hear(self, block: Block) -> None:
        end_s = block.at_s + len(block.samples) / 48000
        if float(np.sqrt(np.mean(np.square(block.samples)))) > 0.005:
            self._loud_until_s = end_s
        elif self._loud_until_s is not None and end_s - self._loud_until_s > SILENT_S:
            ended_s, self._loud_until_s = self._loud_until_s, None
            for delay_s in next(self._script, Reaction(())).delays_s:
                self._at(ended_s + delay_s, "wake")

    def _at(self, due_s: float, topic: str) -> None:
        with self._lock:
            heapq.heappush(self._due, (due_s, topic))
            self._lock.notify()

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._over and (not self._due or self._due[0][0] > time.monotonic()):
                    self._lock.wait(None if not self._due else max(0.0, self._due[0][0] - time.monotonic()))
                if self._over:
                    return
                due_s, topic = heapq.heappop(self._due)
            message: dict[str, object] = {"boot": "0f3a5c7e9b1d", "time": round(due_s, 4)}
            if topic == "wake":
                self._sequence += 1
                message |= {"seq": self._sequence, "phrase": "alexa", "score": 0.9}
            else:
                self._at(due_s + 4.0, topic)
            self._client.publish(f"vh/scripted/{topic}", json.dumps(message), qos=1)


class ScriptedTwin(Board):
    """The same in simulated time."""

    def follow(self, script: list[Reaction]) -> None:
        self._script = iter(script)

    def hear(self, play_id: str, starts_s: float, phrases: Phrases | None, player: SimulatedLoudspeaker) -> None:
        if phrases is not None:
            for delay_s in next(self._script, Reaction(())).delays_s:
                due_s = starts_s + phrases.wake_s[0][1] + delay_s
                self.room.world.call_at(due_s, lambda: self._wake_if_up(self._boot, "phrase", play_id))


class ScriptedNight(SimulatedNight):
    """A night whose device follows a script."""

    script: list[Reaction]

    def _make_room(self, world: SimulatedThreads) -> SimulatedRoom:
        room = super()._make_room(world)
        (board,) = room.devices
        room.devices.clear()
        ScriptedTwin(board.name, room, board.traits, link=board.id).follow(self.script)
        return room


def delays(figures: WakeFigures) -> list[tuple[float, float] | None]:
    """Of each trial in its order: the delay and its error; None where it was missed."""
    readings = [play.reading.delay for play in figures.plays("scripted")]
    return [None if delay is None else (delay.value_s, delay.error_s) for delay in readings]


def test_a_scripted_device_is_counted_alike(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "bench.yaml").write_text(BENCH)
    script = drawn()
    with lab_of_its_own() as lab:
        port = int((lab.folder / "broker.port").read_text())
        runs = LabRuns(tmp_path, lab)
        device = ScriptedDevice(port, script)
        try:
            folder = runs.prepare(tmp_path / "scenario.yaml", tmp_path / "bench.yaml")
            goodbye = runs.start(folder).goodbye(1200)
        finally:
            runs.close()
            device.close()
    assert goodbye.exit_code == 0, goodbye.reason
    real = wake_of(rows(folder))

    bench, like = simulate_bench(load_bench(tmp_path / "bench.yaml")), DeviceTraits(wakes=1.0, false_per_hour=0.0)
    night = ScriptedNight(load_scenario(tmp_path / "scenario.yaml"), bench, like, LengthRenderer(renderer()), 1)
    night.script = script
    played = night.play()

    ours, theirs = real.snapshot().device("scripted"), played.wake.device("scripted")
    assert ours is not None
    assert theirs is not None
    rejects = [figures.false_rejects.share for figures in (ours, theirs)]
    doubles = [figures.double_wakes.count for figures in (ours, theirs)]
    assert rejects == [Share(sum(not reaction.delays_s for reaction in script), TRIALS)] * 2
    assert doubles[0] == doubles[1]
    heard = [delay for delay in delays(real) if delay is not None]
    twin = [delay for delay in delays(known(night.figures._wake)) if delay is not None]
    wanted_s = [reaction.delays_s[0] for reaction in script if reaction.delays_s]
    # The energy of a phrase falls below the device's threshold a little before the phrase ends.
    early_s = median(wanted_s[index] - heard[index][0] for index in range(len(wanted_s)))
    assert 0.0 <= early_s <= 0.1
    for due_s, (real_s, real_error_s), (simulated_s, error_s) in zip(wanted_s, heard, twin, strict=True):
        assert abs(real_s + early_s - simulated_s) <= real_error_s + error_s
        assert abs(simulated_s - due_s) <= error_s
