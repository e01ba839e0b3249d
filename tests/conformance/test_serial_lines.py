"""Boards of log lines on a pty: mappings, half lines, and TFLM's dialogue spoken by a far end of our own."""

from __future__ import annotations

import base64
import hashlib
import os
import select
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.devices.serial.options import FramingChoice, SerialInjection
from harness.model.bench import DeviceProfile, LineMapping, ObservationKind
from harness.model.choices import InjectionPace
from harness.model.errors import DeviceError
from harness.model.observation import (
    LinkLost,
    ListeningProved,
    LogLine,
    StateTold,
    StimulusEnded,
    StimulusStarted,
    Wake,
)
from harness.model.stimulus import Waveform
from tests.conformance.serial_bench import Bench
from tests.known import known
from tests.seen import until

HEARD = LineMapping(r"Heard (?P<phrase>\w+) \((?P<score>\d+)\)", ObservationKind.WAKE, score_scale=255.0)
PROFILE = DeviceProfile("p", "p", "p.yaml", "0", ("Yes",), lines=(HEARD,))
LINES = {"framing": FramingChoice.NONE}
TFLM = {"framing": FramingChoice.NONE, "injection": SerialInjection.TFLM}


class TflmBoard:
    """Speaks test-over-serial; says `Heard yes` whenever another second of the data has come. faults: by name."""

    def __init__(self, *faults: str, line_bytes: int = 1200) -> None:
        self.ours, self.theirs = os.openpty()
        self.port = os.ttyname(self.theirs)
        self.faults = set(faults)
        self.line_bytes = line_bytes
        self.heard = b""
        self.commands: list[str] = []
        self._left = 0
        self._name = ""
        self._second = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> TflmBoard:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(2)
        os.close(self.ours)
        os.close(self.theirs)

    def say(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def _run(self) -> None:
        buffer = b""
        while not self._stop.is_set():
            ready, _, _ = select.select([self.ours], [], [], 0.05)
            if not ready:
                continue
            buffer += os.read(self.ours, 4096)
            while b"\n" in buffer:
                line, _, buffer = buffer.partition(b"\n")
                self._line(line.decode())

    def _line(self, line: str) -> None:
        if self._left:
            piece = base64.b64decode(line, validate=True)
            assert len(piece) <= self.line_bytes
            self.heard += piece
            self._left -= len(piece)
            self.say(f"!DATA_ACK {len(piece) - ('short' in self.faults)}\n")
            while len(self.heard) >= (self._second + 1) * 32000:
                self._second += 1
                self.say(f"Heard yes (204) @{self._second * 1000}ms\n")
            if not self._left:
                self.say(f"!OK {self._name}\n")
            return
        self.commands.append(line)
        if line == "!TEST":
            self.say("!FAIL TEST\n" if "refusing" in self.faults else f"boot noise\n!OK TEST {self.line_bytes}\n")
        elif line.startswith("!DATA audio-pcm-16khz-mono-s16 "):
            self._name, self._left = line[1:], int(line.rsplit(" ", 1)[1])


def tone(seconds: float) -> Waveform:
    return Waveform((0.3 * np.sin(np.arange(round(16000 * seconds)) / 5)).astype(np.float32), 16000)


def sent(waveform: Waveform) -> str:
    return hashlib.sha256(np.round(waveform.samples * 32768).astype("<i2").tobytes()).hexdigest()


def test_the_tflm_board_hears_every_sample_and_its_words_have_their_place(tmp_path: Path) -> None:
    sound = tone(3.21)
    with TflmBoard() as board, Bench(tmp_path, board.port, PROFILE, **TFLM) as bench:
        ended = bench.play(sound, "a")
        assert ended.complete
        assert ended.audio_s == pytest.approx(3.21)
        assert hashlib.sha256(board.heard).hexdigest() == sent(sound)
        wakes = bench.of(Wake)
        assert [(wake.phrase, wake.score) for wake in wakes] == [("yes", pytest.approx(0.8))] * 3
        for second, wake in enumerate(wakes, 1):
            assert wake.audio_s == pytest.approx(second, abs=0.1)
        assert bench.of(ListeningProved)[-1].audio_s == pytest.approx(3.21)
        # The dialogue itself is no log line.
        assert not [line for line in bench.of(LogLine) if "!" in line.text]
        # Test mode is asked for once, and the line of audio goes on.
        bench.play(sound, "b")
        assert board.commands == ["!TEST", *["!DATA audio-pcm-16khz-mono-s16 102720"] * 2]
        assert bench.of(StimulusStarted)[1].audio_s == pytest.approx(3.21)
        assert bench.of(Wake)[-1].audio_s == pytest.approx(6.0, abs=0.1)


@pytest.mark.parametrize(
    ("fault", "words"), [("refusing", "refused"), ("short", "accepted only 1199 of the 1200 bytes of a line")]
)
def test_a_tflm_board_that_refuses_ends_the_injection(tmp_path: Path, fault: str, words: str) -> None:
    with TflmBoard(fault) as board, Bench(tmp_path, board.port, PROFILE, **TFLM) as bench:
        assert not bench.play(tone(1), "a").complete
        assert any(words in line.text for line in bench.of(LogLine))


def test_tflm_injection_in_real_time_can_be_stopped(tmp_path: Path) -> None:
    with TflmBoard() as board, Bench(tmp_path, board.port, PROFILE, pace=InjectionPace.REALTIME, **TFLM) as bench:
        bench.driver.play("a", tone(30))
        until(lambda: len(board.heard) > 16000)
        assert (bench.driver.level_dbfs() or -100) == pytest.approx(-13.5, abs=1)
        bench.driver.stop()
        (ended,) = bench.of(StimulusEnded)
        assert not ended.complete
        assert known(ended.audio_s) < 3


def test_lines_are_mapped_and_stamped_and_half_lines_wait(tmp_path: Path) -> None:
    with TflmBoard() as board, Bench(tmp_path, board.port, PROFILE, **LINES) as bench:
        before_s = time.monotonic()
        board.say("Heard yes (255) @1ms\r\nsomething else\r\nHeard n")
        bench.first(LogLine)
        (wake,) = bench.of(Wake)
        assert (wake.phrase, wake.score, wake.audio_s) == ("yes", 1.0, None)
        assert before_s - wake.at.error_s <= wake.at.at_s <= time.monotonic()
        assert wake.at.error_s > 0
        board.say("o (51) @2ms\n")
        until(lambda: len(bench.of(Wake)) == 2)
        assert bench.of(Wake)[1].phrase == "no"
        assert bench.threads == {"serial board"}


def test_line_board_refuses_sound_and_commands(tmp_path: Path) -> None:
    with TflmBoard() as board, Bench(tmp_path, board.port, PROFILE, **LINES) as bench:
        assert not bench.driver.abilities(bench.driver._options, bench.driver._profile).injects
        with pytest.raises(DeviceError, match="does not accept sound"):
            bench.driver.play("a", tone(1))
        with pytest.raises(DeviceError, match="does not accept commands"):
            bench.driver.say("hello")


def test_a_lost_line_board_is_reported(tmp_path: Path) -> None:
    board = TflmBoard()
    with Bench(tmp_path, board.port, PROFILE, **LINES) as bench:
        board.__exit__()
        assert "gone" in bench.first(LinkLost).what


def test_state_changes_are_reported_from_log_lines(tmp_path: Path) -> None:
    rule = LineMapping(r"^\[\d+\] (?P<name>timer|list)=(?P<value>.*)$", ObservationKind.STATE)
    with TflmBoard() as board, Bench(tmp_path, board.port, replace(PROFILE, lines=(rule,)), **LINES) as bench:
        board.say("[12] timer=10 min")
        board.say("utes\r\n[13] noise\r\n[14] timer=\r\n[15] list=milk, \x1b[31meggs\x1b[0m\r\n")
        until(lambda: len(bench.of(StateTold)) == 3)
        states = [(state.source, state.name, state.value) for state in bench.of(StateTold)]
        assert states == [("board", "timer", "10 minutes"), ("board", "timer", ""), ("board", "list", "milk, eggs")]
