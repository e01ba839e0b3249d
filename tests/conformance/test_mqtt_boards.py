"""The real firmware over a real broker: it wakes where its spotter does in the same sound, whatever fails."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from harness.devices.mqtt.options import MessageFraming
from harness.devices.wire.adpcm import Encoding
from harness.devices.wire.audio_link import PROBE_SAMPLE
from harness.devices.wire.messages import Audio, encode
from harness.model.errors import DeviceError
from harness.model.observation import (
    DeviceState,
    Intent,
    LinkBack,
    LinkLost,
    ResponseText,
    Status,
    StimulusEnded,
    StimulusStarted,
    Transcript,
    Wake,
)
from harness.model.stimulus import VoiceSpec, Waveform
from harness.sound.stimuli.voices.espeak import EspeakVoice
from tests.conformance.boards import Board, built, posix_board, qemu_board, qemu_installed
from tests.conformance.mqtt_bench import Broker, Watch, until

RATE_HZ = 16000
FAST = ("allow_anonymous true", "set_tcp_nodelay true")


@pytest.fixture(scope="module")
def speech() -> Waveform:
    """Thirty seconds in which `alexa` is said every three, among noise and digital silence."""
    import soxr

    spoken = EspeakVoice().speak("alexa", VoiceSpec())
    word = soxr.resample(spoken.samples, spoken.rate_hz, RATE_HZ).astype(np.float32) * 0.5
    samples = np.zeros(30 * RATE_HZ, dtype=np.float32)
    samples[5 * RATE_HZ : 25 * RATE_HZ] = np.random.default_rng(1).normal(0, 0.002, 20 * RATE_HZ)
    for start in range(RATE_HZ // 2, len(samples) - 2 * RATE_HZ, 3 * RATE_HZ):
        samples[start : start + len(word)] += word
    return Waveform(samples, RATE_HZ)


def truth(sound: Waveform, folder: Path) -> list[int]:
    """Samples at which the firmware's spotter, run on a file, finds its wake phrase."""
    file = folder / "sound.s16"
    np.clip(np.rint(sound.samples * 32768), -32768, 32767).astype("<i2").tofile(file)
    found = subprocess.run([built("host") / "vh_spot", file], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in found.splitlines()]


@dataclass
class Bench:
    broker: Broker
    board: Board
    watch: Watch
    sound: Waveform
    folder: Path

    def play(self, play_id: str) -> None:
        self.watch.driver.play(play_id, self.sound)

    def heard(self) -> int:
        """Samples that the board has heard since its boot, as it says when it is given one that it does not expect."""
        answers: list[int] = []
        spy = mqtt.Client(CallbackAPIVersion.VERSION2)
        spy.on_message = lambda _, __, message: answers.append(json.loads(message.payload)["next"])
        spy.connect("127.0.0.1", self.broker.port)
        spy.subscribe("vh/board/ack", 1)
        spy.loop_start()
        until(spy.is_connected)
        spy.publish("vh/board/in/audio", encode(Audio(Encoding.PCM16, PROBE_SAMPLE, b"\0\0"))[1], qos=1)
        until(lambda: answers)
        spy.disconnect()
        spy.loop_stop()
        return answers[-1]

    def expected(self, heard_before: int) -> list[int]:
        """Where the spotter finds the phrase in the sound after so much of it was heard in the same boot."""
        before = self.sound.samples[:heard_before]
        assert len(before) == heard_before
        whole = Waveform(np.concatenate([before, self.sound.samples]), RATE_HZ)
        return [sample - heard_before for sample in truth(whole, self.folder) if sample > heard_before]

    def end(self, play_id: str, limit_s: float = 60.0) -> StimulusEnded:
        until(lambda: self._found(play_id, StimulusEnded), limit_s)
        (one,) = self._found(play_id, StimulusEnded)
        assert isinstance(one, StimulusEnded)
        return one

    def _found(self, play_id: str, kind: type) -> list[object]:
        return [one for one in self.watch.of(kind) if getattr(one, "play_id", "") == play_id]

    def woke_at(self, play_id: str) -> list[int]:
        """Samples of the sound at which it woke, of the events between start and end."""
        (start,) = self._found(play_id, StimulusStarted)
        assert isinstance(start, StimulusStarted)
        assert start.audio_s is not None
        seen = self.watch.seen
        between = seen[seen.index(start) : seen.index(self.end(play_id))]
        return [
            round((one.audio_s - start.audio_s) * RATE_HZ)
            for one in between
            if isinstance(one, Wake) and one.audio_s is not None
        ]

    def whole(self, play_id: str, limit_s: float = 60.0) -> None:
        expected = self.expected(self.heard())
        assert len(expected) >= len(self.sound.samples) // (4 * RATE_HZ)
        until(lambda: self.try_play(play_id), limit_s)
        assert self.end(play_id, limit_s).complete
        assert self.woke_at(play_id) == expected

    def try_play(self, play_id: str) -> bool:
        try:
            self.play(play_id)
        except DeviceError:
            return False
        return True

    def under_way(self, play_id: str) -> None:
        self.play(play_id)
        until(lambda: self.watch.of(Wake))


def _posix(folder: Path, port: int) -> AbstractContextManager[Board]:
    return posix_board(folder, "--device", "board", "--mqtt", f"127.0.0.1:{port}")


def _qemu(folder: Path, port: int) -> AbstractContextManager[Board]:
    return qemu_board(folder, device="board", broker=port)


BOARDS: dict[str, Callable[[Path, int], AbstractContextManager[Board]]] = {"posix": _posix, "qemu": _qemu}


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path, speech: Waveform) -> Iterator[Bench]:
    kind = getattr(request, "param", "posix")
    if kind == "qemu" and not qemu_installed():
        pytest.skip("apt-get install qemu-system-arm gcc-arm-none-eabi")
    broker = Broker("mosquitto", tmp_path)
    broker.start(*FAST)
    with BOARDS[kind](tmp_path, broker.port) as board:
        options = {"keepalive_s": 2.0, "answer_wait_s": 3.0, "hello_wait_s": 20.0, "framing": MessageFraming.VH}
        watch = Watch(tmp_path, address=f"127.0.0.1:{broker.port}", **options)
        # The emulated one is hardly faster than real time on a busy machine.
        sound = speech if kind == "posix" else Waveform(speech.samples[: 9 * RATE_HZ], RATE_HZ)
        try:
            yield Bench(broker, board, watch, sound, tmp_path)
        finally:
            watch.driver.close()
            if broker.process is not None:
                broker.kill()


@pytest.mark.parametrize("bench", list(BOARDS), indirect=True)
def test_it_wakes_where_its_spotter_does(bench: Bench) -> None:
    for play_id in ("one", "two"):
        bench.whole(play_id, 120)
    assert not bench.watch.of(LinkLost)


def test_it_answers_words(bench: Bench) -> None:
    bench.watch.driver.say("switch the light on")
    until(lambda: bench.watch.of(ResponseText))
    (intent,) = bench.watch.of(Intent)
    assert isinstance(intent, Intent)
    assert (intent.name, intent.slots) == ("switch_light", (("state", "on"),))
    assert not [one for one in bench.watch.of(Transcript) if isinstance(one, Transcript) and not one.text]


def test_a_broker_killed_under_an_injection(bench: Bench) -> None:
    bench.under_way("one")
    bench.broker.kill()
    assert not bench.end("one").complete
    until(lambda: bench.watch.of(LinkLost))
    bench.broker.start(*FAST)
    until(lambda: bench.watch.of(LinkBack), 30)
    bench.whole("two")
    assert not [one for one in bench.watch.of(Status) if isinstance(one, Status) and one.state is DeviceState.STARTED]


def test_a_reset_under_an_injection(bench: Bench) -> None:
    bench.under_way("one")
    bench.board.reset()
    assert not bench.end("one").complete
    until(lambda: _states(bench, DeviceState.STARTED), 20)
    bench.whole("two")
    assert len(_states(bench, DeviceState.STARTED)) == 1


def test_a_board_that_stands_still(bench: Bench) -> None:
    bench.under_way("one")
    bench.board.freeze()
    until(lambda: bench.watch.of(LinkLost), 15)
    assert not bench.end("one").complete
    bench.board.thaw()
    until(lambda: bench.watch.of(LinkBack), 30)
    bench.whole("two")


def test_a_board_without_power(bench: Bench) -> None:
    bench.under_way("one")
    bench.board.kill()
    assert not bench.end("one").complete
    until(lambda: _states(bench, DeviceState.GONE), 15)
    until(lambda: bench.watch.of(LinkLost))
    with pytest.raises(DeviceError, match="lost its link"):
        bench.play("two")


def _states(bench: Bench, state: DeviceState) -> list[Status]:
    return [one for one in bench.watch.of(Status) if isinstance(one, Status) and one.state is state]
