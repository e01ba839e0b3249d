"""What goes wrong on a desk, done to the real firmware: cable pulled, board reset, frozen, gone, shouting."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from harness.model.errors import DeviceError
from harness.model.observation import (
    DeviceState,
    LinkBack,
    LinkLost,
    ResponseText,
    Status,
    StimulusEnded,
    StimulusStarted,
    Transcript,
)
from harness.model.stimulus import Waveform
from tests.conformance.boards import posix_board
from tests.conformance.serial_bench import RATE_HZ, Bench, near, repeated, spoken, truth
from tests.known import known
from tests.seen import until


def test_reconnected_cable_only_interrupts_the_sound(tmp_path: Path) -> None:
    # It begins with silence: the cut may lie so near to a wake that the board is still deaf from that.
    after = Waveform(np.concatenate([np.zeros(3 * RATE_HZ, np.float32), spoken().samples]), RATE_HZ)
    with posix_board(tmp_path, cable=True) as board, Bench(tmp_path, board.port) as bench:
        cable = known(board.cable)
        bench.driver.play("a", repeated(spoken(), 20))
        until(bench.wakes)
        cable.unplug()
        bench.first(LinkLost)
        bench.first(StimulusEnded)
        bench.driver.play("b", after)  # while it is away
        until(lambda: len(bench.of(StimulusEnded)) == 2)
        assert not any(end.complete for end in bench.of(StimulusEnded))
        cable.replug()
        bench.first(LinkBack)
        assert not bench.states(DeviceState.STARTED)  # the same boot
        assert bench.play(after, "c").complete
        began_s = known(bench.of(StimulusStarted)[-1].audio_s)
        # What the board heard of the first sound may still become a wake in the silence, and shifts others by a frame.
        assert len(bench.wakes(began_s + 2)) == len(truth(tmp_path, after))


def test_a_reset_is_observed_and_audio_time_continues(tmp_path: Path) -> None:
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
        bench.first(Status)
        assert len(bench.states(DeviceState.STARTED)) == 1
        framed = known(bench.driver.framed_peer)
        until(lambda: framed.player.ready)
        last = bench.play(sound, "c")
        assert last.complete
        began_s = known(bench.of(StimulusStarted)[-1].audio_s)
        assert began_s >= known(whole.audio_s)
        # A new boot has an empty memory: exactly the spotter's events again.
        assert near(bench.wakes(began_s), expected)
        assert len(bench.states(DeviceState.STARTED)) == 1
        assert not bench.of(LinkLost)


def test_a_requested_reset_restarts_the_board(tmp_path: Path) -> None:
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port) as bench:
        bench.driver.restart()
        until(lambda: bench.states(DeviceState.STARTED))
        bench.driver.say("after")
        bench.first(Transcript)


def test_a_frozen_board_is_noticed_and_comes_back(tmp_path: Path) -> None:
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port, answer_limit_s=1.0, ping_period_s=0.2) as bench:
        bench.driver.play("a", repeated(spoken(), 200))
        bench.first(StimulusStarted)
        board.freeze()
        began_s = time.monotonic()
        bench.first(LinkLost, 20)
        assert time.monotonic() - began_s < 10
        assert "not answered" in bench.of(LinkLost)[0].what
        bench.first(StimulusEnded)
        with pytest.raises(DeviceError, match="cannot be reached"):
            bench.driver.say("anyone there")
        board.thaw()
        bench.first(LinkBack)
        assert bench.play(spoken(), "b").complete
        assert not bench.states(DeviceState.STARTED)


def test_the_driver_closes_within_two_seconds_with_a_frozen_board(tmp_path: Path) -> None:
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port) as bench:
        bench.driver.play("a", repeated(spoken(), 400))
        bench.first(StimulusStarted)
        board.freeze()
        count, began_s = len(bench.all), time.monotonic()
        bench.driver.close()
        assert time.monotonic() - began_s < 10
        assert len(bench.all) <= count + 1


def test_a_flood_of_garbage_neither_blocks_nor_uses_memory(tmp_path: Path) -> None:
    with posix_board(tmp_path, cable=True) as board, Bench(tmp_path, board.port) as bench:
        framed = known(bench.driver.framed_peer)
        before = known(bench.driver.link).received_bytes
        known(board.cable).flood(2_000_000)
        until(lambda: known(bench.driver.link).received_bytes - before >= 2_000_000, 30)
        until(lambda: framed.player.ready)
        # Garbage is kept as evidence, within the console's limit of lines a second.
        bench.assert_flood_was_limited()
        assert framed.decoder.held_bytes < 2000
        bench.driver.say("still there")
        bench.first(ResponseText)
        assert bench.play(spoken()).complete
        assert near(bench.wakes(), truth(tmp_path, spoken()))


def test_commands_arrive_once_each_on_a_bad_line_and_in_a_second_session(tmp_path: Path) -> None:
    with posix_board(tmp_path, "--uart-noise", "3e-3:9") as board:
        for session in range(2):
            with Bench(tmp_path, board.port) as bench:
                words = [f"word {session} {number}" for number in range(10)]
                for word in words:
                    bench.driver.say(word)
                until(lambda: len(bench.of(ResponseText)) >= 10, 10)
                assert [transcript.text for transcript in bench.of(Transcript)] == words
                assert len(bench.of(ResponseText)) == 10


def test_events_from_an_earlier_session_are_not_reported(tmp_path: Path) -> None:
    with posix_board(tmp_path) as board:
        with Bench(tmp_path, board.port) as bench:
            bench.driver.say("yesterday")
            bench.first(ResponseText)
        with Bench(tmp_path, board.port) as bench:
            assert not bench.of(Status)
            bench.driver.say("today")
            bench.first(Transcript)
            assert [transcript.text for transcript in bench.of(Transcript)] == ["today"]
