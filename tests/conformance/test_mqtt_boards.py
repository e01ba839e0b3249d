"""The real firmware over a real broker: it wakes where its spotter does in the same sound, whatever fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import soxr

from harness.devices.mqtt.options import MessageFraming
from harness.model.errors import DeviceError
from harness.model.observation import DeviceState, Intent, LinkBack, LinkLost, ResponseText, Transcript, Wake
from harness.model.stimulus import VoiceSpec, Waveform
from harness.sound.stimuli.voices.espeak import EspeakVoice
from tests.conformance.boards import Board, posix_board, qemu_board, qemu_installed
from tests.conformance.mqtt_bench import Broker, Watch
from tests.conformance.serial_bench import truth
from tests.conformance.wake_boards import heard_by_broker
from tests.seen import until

RATE_HZ = 16000


@pytest.fixture(scope="module")
def speech() -> Waveform:
    """Thirty seconds in which `alexa` is said every three, among noise and digital silence."""
    spoken = EspeakVoice().speak("alexa", VoiceSpec())
    word = soxr.resample(spoken.samples, spoken.rate_hz, RATE_HZ).astype(np.float32) * 0.5
    samples = np.zeros(30 * RATE_HZ, dtype=np.float32)
    samples[5 * RATE_HZ : 25 * RATE_HZ] = np.random.default_rng(1).normal(0, 0.002, 20 * RATE_HZ)
    for start in range(RATE_HZ // 2, len(samples) - 2 * RATE_HZ, 3 * RATE_HZ):
        samples[start : start + len(word)] += word
    return Waveform(samples, RATE_HZ)


@dataclass
class Bench:
    broker: Broker
    board: Board
    watch: Watch
    sound: Waveform
    folder: Path

    def play(self, play_id: str) -> None:
        self.watch.driver.play(play_id, self.sound)

    def expected(self, heard_before: int) -> list[int]:
        """Where the spotter finds the phrase in the sound after so much of it was heard in the same boot."""
        before = self.sound.samples[:heard_before]
        assert len(before) == heard_before
        whole = Waveform(np.concatenate([before, self.sound.samples]), RATE_HZ)
        return [sample - heard_before for sample, *_ in truth(self.folder, whole) if sample > heard_before]

    def whole(self, play_id: str, limit_s: float = 60.0) -> None:
        expected = self.expected(heard_by_broker(self.broker.port, "board"))
        assert len(expected) >= len(self.sound.samples) // (4 * RATE_HZ)
        until(lambda: self.try_play(play_id), limit_s)
        assert self.watch.end(play_id, limit_s).complete
        assert [round(at_s * RATE_HZ) for at_s in self.watch.wakes_s(play_id)] == expected

    def try_play(self, play_id: str) -> bool:
        try:
            self.play(play_id)
        except DeviceError:
            return False
        return True

    def under_way(self, play_id: str) -> None:
        self.play(play_id)
        self.watch.first(Wake)


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
    # On a loaded machine a board or a broker that is well may be silent for seconds.
    options = {"keepalive_s": 15.0, "answer_wait_s": 10.0, "hello_wait_s": 20.0, "framing": MessageFraming.VH}
    with (
        Broker(tmp_path) as broker,
        BOARDS[kind](tmp_path, broker.port) as board,
        Watch(tmp_path, address=f"127.0.0.1:{broker.port}", **options) as watch,
    ):
        # The emulated one is hardly faster than real time on a busy machine.
        sound = speech if kind == "posix" else Waveform(speech.samples[: 9 * RATE_HZ], RATE_HZ)
        yield Bench(broker, board, watch, sound, tmp_path)


@pytest.mark.parametrize("bench", list(BOARDS), indirect=True)
def test_a_board_wakes_where_its_spotter_does(bench: Bench) -> None:
    for play_id in ("one", "two"):
        bench.whole(play_id, 120)
    assert not bench.watch.of(LinkLost)


def test_a_board_answers_text_queries(bench: Bench) -> None:
    bench.watch.driver.say("switch the light on")
    bench.watch.first(ResponseText)
    (intent,) = bench.watch.of(Intent)
    assert (intent.name, intent.slots) == ("switch_light", (("state", "on"),))
    assert all(transcript.text for transcript in bench.watch.of(Transcript))


def test_a_killed_broker_interrupts_an_injection_and_the_link_returns(bench: Bench) -> None:
    bench.under_way("one")
    bench.broker.kill()
    assert not bench.watch.end("one").complete
    bench.watch.first(LinkLost)
    bench.broker.start()
    bench.watch.first(LinkBack, 30)
    bench.whole("two")
    assert not bench.watch.states(DeviceState.STARTED)


def test_a_reset_interrupts_an_injection(bench: Bench) -> None:
    bench.under_way("one")
    bench.board.reset()
    assert not bench.watch.end("one").complete
    until(lambda: bench.watch.states(DeviceState.STARTED), 20)
    bench.whole("two")
    assert len(bench.watch.states(DeviceState.STARTED)) == 1


def test_a_frozen_board_is_lost_and_comes_back(bench: Bench) -> None:
    bench.under_way("one")
    bench.board.freeze()
    bench.watch.first(LinkLost, 30)
    assert not bench.watch.end("one").complete
    bench.board.thaw()
    bench.watch.first(LinkBack, 30)
    bench.whole("two")
