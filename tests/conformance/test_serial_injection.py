"""Sound given to the real firmware over its port: every wake event is the one that its spotter finds, noise or not."""

from __future__ import annotations

from pathlib import Path

import pytest
import soxr

from harness.model.choices import EncodingName, InjectionPace
from harness.model.observation import ListeningProved, Proof, StimulusEnded, StimulusStarted, Wake
from harness.model.stimulus import Waveform
from tests.conformance.boards import posix_board
from tests.conformance.serial_bench import RATE_HZ, Bench, near, repeated, spoken, truth
from tests.known import known
from tests.seen import until


def test_the_wake_events_are_those_of_the_spotter_and_come_before_the_end(tmp_path: Path) -> None:
    sound = repeated(spoken(), 10)
    expected = truth(tmp_path, sound)
    assert len(expected) >= 10
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port) as bench:
        ended = bench.play(sound)
        assert ended.complete
        assert near(bench.wakes(), expected)
        (started,) = bench.of(StimulusStarted)
        assert started.audio_s == 0.0
        assert ended.audio_s == pytest.approx(sound.duration_s)
        order = [type(observation) for observation in bench.all]
        assert order.index(StimulusStarted) < order.index(Wake)
        assert max(n for n, kind in enumerate(order) if kind is Wake) < order.index(StimulusEnded)
        proof = bench.of(ListeningProved)[-1]
        assert proof.proof is Proof.ACKNOWLEDGED
        assert proof.audio_s == pytest.approx(sound.duration_s)
        # A second sound goes on where the first one ended.
        assert bench.play(sound, "again").audio_s == pytest.approx(2 * sound.duration_s)
        assert bench.of(StimulusStarted)[1].audio_s == pytest.approx(sound.duration_s)
        assert near(bench.wakes(), truth(tmp_path, repeated(sound, 2)))


@pytest.mark.usefixtures("host_keeps_time")
def test_injected_sound_passes_ten_times_faster_than_it_sounds(tmp_path: Path) -> None:
    sound = repeated(spoken(), 10)
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port) as bench:
        ended = bench.play(sound)
        (started,) = bench.of(StimulusStarted)
        assert ended.at.at_s - started.at.at_s < sound.duration_s / 10


@pytest.mark.parametrize("encoding", [EncodingName.PCM16, EncodingName.ADPCM])
def test_a_line_that_corrupts_bytes_changes_no_count(tmp_path: Path, encoding: EncodingName) -> None:
    sound = repeated(spoken(), 24)
    assert sound.duration_s > 120
    with (
        posix_board(tmp_path, "--uart-noise", "1e-3:5") as board,
        Bench(tmp_path, board.port, encoding=encoding) as bench,
    ):
        assert bench.play(sound, limit_s=120).complete
        expected = truth(tmp_path, sound)
        framed = known(bench.driver.framed_peer)
        assert framed.session.sender.went_back > 0
        if encoding is EncodingName.PCM16:
            assert near(bench.wakes(), expected)
        else:
            assert len(bench.wakes()) == len(expected)  # ADPCM changes the samples a little


def test_a_sound_of_another_rate_is_resampled(tmp_path: Path) -> None:
    sound = spoken()
    faster = Waveform(soxr.resample(sound.samples, RATE_HZ, 48000), 48000)
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port) as bench:
        ended = bench.play(faster)
        assert ended.audio_s == pytest.approx(sound.duration_s, abs=1e-3)
        assert len(bench.wakes()) == len(truth(tmp_path, sound))


def test_realtime_injection_keeps_pace_and_stops_at_once(tmp_path: Path) -> None:
    with posix_board(tmp_path) as board, Bench(tmp_path, board.port, pace=InjectionPace.REALTIME) as bench:
        bench.driver.play("p", repeated(spoken(), 10))
        bench.first(StimulusStarted)
        until(lambda: (bench.driver.level_dbfs() or -100) > -60, 30)
        started = bench.of(StimulusStarted)[0].at.at_s
        bench.driver.stop()
        (ended,) = bench.of(StimulusEnded)
        assert not ended.complete
        assert known(ended.audio_s) <= ended.at.at_s - started + 0.15
        assert bench.driver.level_dbfs() is None
        bench.driver.stop()
        assert len(bench.of(StimulusEnded)) == 1
