"""What goes wrong on a desk, done to the real firmware: cable pulled, board reset, frozen, gone, shouting."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from harness.devices.wire.adpcm import InjectionPace
from harness.model.errors import DeviceError
from harness.model.observation import (
    DeviceState,
    LinkBack,
    LinkLost,
    LogLine,
    ResponseText,
    Status,
    StimulusEnded,
    StimulusStarted,
    Transcript,
)
from harness.model.stimulus import Waveform
from tests.conformance.boards import posix_board
from tests.conformance.serial_bench import RATE_HZ, Bench, near, repeated, spoken, truth, until


def test_a_cable_that_is_pulled_and_put_back_interrupts_and_no_more(tmp_path: Path) -> None:
    sound = repeated(spoken(), 4)
    with posix_board(tmp_path, cable=True) as board, Bench(tmp_path, board.port, pace=InjectionPace.REALTIME) as bench:
        assert board.cable is not None
        bench.driver.play("a", sound)
        until(lambda: bench.of(StimulusStarted))
        board.cable.unplug()
        until(lambda: bench.of(LinkLost))
        until(lambda: bench.of(StimulusEnded))
        assert not bench.of(StimulusEnded)[0].complete
        bench.driver.play("b", sound)  # while it is away
        until(lambda: len(bench.of(StimulusEnded)) == 2)
        assert not bench.of(StimulusEnded)[1].complete
        board.cable.replug()
        until(lambda: bench.of(LinkBack))
        assert not bench.of(Status)  # the same boot
        bench.driver.say("hello")
        until(lambda: bench.of(Transcript))


def test_counts_are_right_after_a_pulled_cable(tmp_path: Path) -> None:
    sound = repeated(spoken(), 20)
    # It begins with silence: the cut may lie so near to a wake that the board is still deaf from that.
    after = Waveform(np.concatenate([np.zeros(3 * RATE_HZ, np.float32), spoken().samples]), RATE_HZ)
    expected = truth(tmp_path, after)
    with posix_board(tmp_path, cable=True) as board, Bench(tmp_path, board.port) as bench:
        assert board.cable is not None
        bench.driver.play("a", sound)
        until(lambda: bench.wakes())
        board.cable.unplug()
        until(lambda: bench.of(StimulusEnded))
        board.cable.replug()
        until(lambda: bench.of(LinkBack))
        ended = bench.play(after, "b")
        assert ended.complete
        started = bench.of(StimulusStarted)[-1]
        assert started.audio_s is not None
        # The board's ears still ring with what it heard of the first sound, so samples may differ by a frame.
        assert len(bench.wakes(started.audio_s)) == len(expected)


def test_a_reset_is_an_observation_and_the_audio_line_goes_on(tmp_path: Path) -> None:
    sound = repeated(spoken(), 4)
    expected = truth(tmp_path, sound)
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port) as bench:
        whole = bench.play(sound, "a")
        assert near(bench.wakes(), expected)
        bench.driver.play("b", repeated(sound, 30))
        until(lambda: len(bench.of(StimulusStarted)) == 2)
        board.reset()
        until(lambda: len(bench.of(StimulusEnded)) == 2)
        assert not bench.of(StimulusEnded)[1].complete
        until(lambda: bench.of(Status))
        assert [one.state for one in bench.of(Status) if one.state is DeviceState.STARTED] == [DeviceState.STARTED]
        framed = bench.driver.framed
        assert framed is not None
        until(lambda: framed.ready)
        last = bench.play(sound, "c")
        assert last.complete
        started = bench.of(StimulusStarted)[-1]
        assert started.audio_s is not None
        assert whole.audio_s is not None
        assert started.audio_s >= whole.audio_s
        # A new boot has an empty memory: exactly the spotter's events again.
        assert near(bench.wakes(started.audio_s), expected)
        assert sum(one.state is DeviceState.STARTED for one in bench.of(Status)) == 1
        assert not bench.of(LinkLost)


def test_a_reset_that_we_ask_for(tmp_path: Path) -> None:
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port) as bench:
        bench.driver.restart()
        until(lambda: [one for one in bench.of(Status) if one.state is DeviceState.STARTED])
        bench.driver.say("after")
        until(lambda: bench.of(Transcript))


def test_a_frozen_board_is_noticed_and_comes_back(tmp_path: Path) -> None:
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port, answer_limit_s=1.0, ping_period_s=0.2) as bench:
        bench.driver.play("a", repeated(spoken(), 200))
        until(lambda: bench.of(StimulusStarted))
        board.freeze()
        began_s = time.monotonic()
        until(lambda: bench.of(LinkLost), 5)
        assert time.monotonic() - began_s < 2.5
        assert "not answered" in bench.of(LinkLost)[0].what
        until(lambda: bench.of(StimulusEnded))
        with pytest.raises(DeviceError, match="not to be reached"):
            bench.driver.say("anyone there")
        board.thaw()
        until(lambda: bench.of(LinkBack))
        assert bench.play(spoken(), "b").complete
        assert not [one for one in bench.of(Status) if one.state is DeviceState.STARTED]


@pytest.mark.parametrize("state", ["idle", "playing", "frozen", "gone"])
def test_it_closes_within_two_seconds_in_any_state(tmp_path: Path, state: str) -> None:
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port) as bench:
        if state != "idle":
            bench.driver.play("a", repeated(spoken(), 400))
            until(lambda: bench.of(StimulusStarted))
        if state == "frozen":
            board.freeze()
        if state == "gone":
            board.kill()
            until(lambda: bench.of(LinkLost))
        told, began_s = len(bench.seen), time.monotonic()
        bench.driver.close()
        assert time.monotonic() - began_s < 2
        assert len(bench.seen) <= told + 1
        bench.driver.close()


def test_a_flood_of_garbage_neither_blocks_nor_grows(tmp_path: Path) -> None:
    with posix_board(tmp_path, cable=True) as board, Bench(tmp_path, board.port) as bench:
        assert board.cable is not None
        framed = bench.driver.framed
        assert framed is not None
        before = bench.driver.received_bytes
        board.cable.flood(2_000_000)
        until(lambda: bench.driver.received_bytes - before >= 2_000_000, 30)
        until(lambda: framed.ready)
        # Garbage is kept as evidence, within the console's limit of lines a second.
        assert len(bench.of(LogLine)) < 2000
        assert framed.decoder.holds < 2000
        bench.driver.say("still there")
        until(lambda: bench.of(ResponseText))
        assert bench.play(spoken()).complete
        assert near(bench.wakes(), truth(tmp_path, spoken()))


def test_commands_arrive_once_each_on_a_bad_line_and_in_a_second_session(tmp_path: Path) -> None:
    with posix_board(tmp_path, "--uart-noise", "3e-3:9") as board:
        for session in range(2):
            with Bench(tmp_path, board.port) as bench:
                words = [f"word {session} {number}" for number in range(10)]
                for one in words:
                    bench.driver.say(one)
                until(lambda: len(bench.of(ResponseText)) >= 10, 10)
                assert [one.text for one in bench.of(Transcript)] == words
                assert len(bench.of(ResponseText)) == 10


def test_events_of_before_are_not_told(tmp_path: Path) -> None:
    with posix_board(tmp_path) as board:
        with Bench(tmp_path, board.port) as bench:
            bench.driver.say("yesterday")
            until(lambda: bench.of(ResponseText))
        with Bench(tmp_path, board.port) as bench:
            assert not bench.of(Status)
            bench.driver.say("today")
            until(lambda: bench.of(Transcript))
            assert [one.text for one in bench.of(Transcript)] == ["today"]


def test_a_port_belongs_to_one(tmp_path: Path) -> None:
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port), pytest.raises(DeviceError, match="fuser"):
        Bench(tmp_path, board.port).__enter__()


def test_a_port_that_is_not_there_and_one_where_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="there is no"):
        Bench(tmp_path, str(tmp_path / "nothing")).__enter__()
    ours, theirs = os.openpty()
    try:
        began_s = time.monotonic()
        with pytest.raises(DeviceError, match="does not answer in our framing"):
            Bench(tmp_path, os.ttyname(theirs)).__enter__()
        assert time.monotonic() - began_s < 6.5
    finally:
        os.close(ours)
        os.close(theirs)
