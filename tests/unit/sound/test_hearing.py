"""Speech, earcons and our own sound in a recording, on real synthetic voices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import signal

from harness.model.observation import Earcon, Observation, SpeechEnded, SpeechStarted, StimulusHeard
from harness.model.stimulus import Waveform
from harness.sound.detectors.silero import SileroDetector
from harness.sound.detectors.webrtc import WebrtcDetector
from harness.sound.hearing import Hearing
from tests.unit.sound.spoken import RATE_HZ, Mono, blocks, scene, speech, told, tone


def hearing() -> Hearing:
    return Hearing("mic", WebrtcDetector())


def spans(observations: list[Observation]) -> list[tuple[float, float]]:
    starts = [observation.at.at_s for observation in observations if isinstance(observation, SpeechStarted)]
    ends = [observation.at.at_s for observation in observations if isinstance(observation, SpeechEnded)]
    assert len(starts) == len(ends)
    return list(zip(starts, ends, strict=True))


@pytest.mark.parametrize("detector", [WebrtcDetector, SileroDetector])
def test_a_response_is_found_where_it_is(detector: type) -> None:
    words = speech("The timer is set for ten minutes.")
    speech_spans = spans(told(Hearing("mic", detector()), scene(6, (2.0, words)), at_s=1000.0))
    assert speech_spans[0][0] == pytest.approx(1002.0, abs=0.06)
    assert speech_spans[-1][1] == pytest.approx(1002.0 + len(words) / RATE_HZ, abs=0.1)


def test_speech_30_db_quieter_is_found_at_the_same_times() -> None:
    whole = scene(6, (2.0, speech("It is half past nine.", "flite:slt")))
    loud = spans(told(hearing(), whole))
    quiet = spans(told(hearing(), (whole * 10**-1.5).astype(np.float32)))
    assert loud
    assert np.allclose(loud, quiet, atol=0.02)


@pytest.mark.parametrize("noise_dbfs", [-30.0, -60.0, -120.0])
def test_noise_alone_is_no_speech(noise_dbfs: float) -> None:
    assert told(hearing(), scene(8, noise_dbfs=noise_dbfs)) == []


@pytest.mark.parametrize("level_dbfs", [-20.0, -40.0])
@pytest.mark.parametrize(
    "sound",
    [
        pytest.param(lambda level: tone(880, seconds=0.15, level_dbfs=level), id="beep"),
        pytest.param(
            lambda level: np.concatenate(
                (tone(660, seconds=0.12, level_dbfs=level), tone(990, seconds=0.15, level_dbfs=level))
            ),
            id="two-tone",
        ),
        pytest.param(lambda level: tone(523, 659, 784, seconds=0.4, level_dbfs=level), id="chord"),
        pytest.param(lambda level: tone(500, to_hz=1500, seconds=0.3, level_dbfs=level), id="sweep"),
    ],
)
def test_an_earcon_is_no_speech(sound, level_dbfs: float) -> None:
    earcon: Mono = sound(level_dbfs)
    observations = told(hearing(), scene(4, (2.0, earcon)))
    assert [type(observation) for observation in observations] == [Earcon]
    assert isinstance(observations[0], Earcon)
    assert observations[0].at.at_s == pytest.approx(2.0, abs=0.03)
    assert observations[0].ends.at_s == pytest.approx(2.0 + len(earcon) / RATE_HZ, abs=0.05)


@pytest.mark.parametrize(
    ("voice", "level_dbfs"), [("en-us", -26.0), ("en-us+f3", -50.0), ("flite:slt", -50.0), ("flite:awb", -26.0)]
)
@pytest.mark.parametrize("text", ["yes?", "ok", "no", "sure", "hello", "one moment"])
def test_a_short_reply_is_speech(text: str, voice: str, level_dbfs: float) -> None:
    observations = told(hearing(), scene(4, (2.0, speech(text, voice, level_dbfs)), noise_dbfs=-85))
    assert any(isinstance(observation, SpeechStarted) for observation in observations)
    assert not any(isinstance(observation, Earcon) for observation in observations)


QUERY = "Hey computer, what time is it in Paris today?"


def room(dry: Mono, gain_db: float, seconds: float = 0.25) -> Mono:
    """A small room: direct sound, then decaying reflections; and a small loudspeaker's band."""
    t = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    tail = np.random.default_rng(5).normal(size=len(t)) * 10 ** (-3 * t / seconds) * 0.01
    tail[0] = 1.0
    band = signal.butter(2, (200, 6000), "bandpass", fs=RATE_HZ, output="sos")
    heard = signal.fftconvolve(signal.sosfilt(band, dry), tail)
    return (heard * 10 ** (gain_db / 20)).astype(np.float32)


def hear(whole: Mono, *ours: tuple[float, Mono], told_late_s: float = 0.05) -> list[Observation]:
    """ours: when each leaves, and its sound."""
    mic, observations, waiting = hearing(), [], list(enumerate(ours, 1))
    for block in blocks(whole):
        if waiting and block.at_s >= waiting[0][1][0] + told_late_s:
            number, (leaves_s, sound) = waiting.pop(0)
            mic.own_sound(f"play-{number}", Waveform(sound, RATE_HZ), leaves_s)
        observations += mic.feed(block)
    return observations


def hear_query(whole: Mono, leaves_s: float, told_late_s: float = 0.05) -> list[Observation]:
    return hear(whole, (leaves_s, speech(QUERY)), told_late_s=told_late_s)


@pytest.mark.parametrize("gain_db", [0.0, -20.0])
@pytest.mark.parametrize("told_late_s", [-0.5, 0.05, 0.15])
def test_own_playback_is_not_taken_for_device_speech(gain_db: float, told_late_s: float) -> None:
    whole = scene(9, (2.031, room(speech(QUERY), gain_db)))
    observations = hear_query(whole, 2.0, told_late_s)
    assert [type(observation) for observation in observations] == [StimulusHeard]
    assert isinstance(observations[0], StimulusHeard)
    assert observations[0].at.at_s == pytest.approx(2.031, abs=0.0005)


def test_the_answer_after_our_query_is_heard() -> None:
    end_s = 2.031 + len(speech(QUERY)) / RATE_HZ
    answer = speech("It is half past nine.", "flite:slt")
    observations = hear_query(scene(10, (2.031, room(speech(QUERY), -6)), (end_s + 0.7, answer)), 2.0)
    speech_spans = spans(observations)
    assert speech_spans[0][0] == pytest.approx(end_s + 0.7, abs=0.06)


def test_a_device_that_answers_too_early_is_heard() -> None:
    end_s = 2.031 + len(speech(QUERY)) / RATE_HZ
    answer = speech("It is half past nine.", "flite:slt")
    observations = hear_query(scene(10, (2.031, speech(QUERY)), (end_s - 0.6, answer)), 2.0)
    assert spans(observations)[0][0] == pytest.approx(end_s - 0.6, abs=0.1)


def test_an_earcon_under_our_query_is_heard() -> None:
    observations = hear_query(scene(9, (2.031, speech(QUERY)), (2.9, tone(880, seconds=0.2))), 2.0)
    assert [type(observation) for observation in observations] == [StimulusHeard, Earcon]
    assert isinstance(observations[1], Earcon)
    assert observations[1].at.at_s == pytest.approx(2.9, abs=0.05)


def test_a_stimulus_that_did_not_sound_is_not_heard() -> None:
    assert hear_query(scene(9), 2.0) == []


# An overloaded computer: what its recording of our query looks like.


def without(whole: Mono, at_s: float, seconds: float) -> Mono:
    """Samples are lost there."""
    return np.concatenate((whole[: round(at_s * RATE_HZ)], whole[round((at_s + seconds) * RATE_HZ) :]))


def repeated(whole: Mono, at_s: float, seconds: float) -> Mono:
    return np.concatenate((whole[: round(at_s * RATE_HZ)], whole[round((at_s - seconds) * RATE_HZ) :]))


def halted(whole: Mono, at_s: float, seconds: float) -> Mono:
    """The loudspeaker had nothing to play there."""
    first = round(at_s * RATE_HZ)
    return np.concatenate((whole[:first], np.zeros(round(seconds * RATE_HZ), np.float32), whole[first:]))


@pytest.mark.parametrize("harmed", [without, repeated, halted])
@pytest.mark.parametrize("seconds", [0.01, 0.1])
@pytest.mark.parametrize("share", [0.4, 0.8])
def test_damaged_own_playback_is_not_taken_for_device_speech(harmed, seconds: float, share: float) -> None:
    at_s = 2.031 + share * len(speech(QUERY)) / RATE_HZ
    whole = harmed(scene(8, (2.031, room(speech(QUERY), -6))), at_s, seconds)
    assert not any(isinstance(observation, SpeechStarted | Earcon) for observation in hear_query(whole, 2.0))


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_restarted_stream_still_recognises_our_query(share: float) -> None:
    break_s = round(2.031 + share * len(speech(QUERY)) / RATE_HZ, 2)
    whole = scene(9, (2.031, room(speech(QUERY), -6)))
    mic, observations = hearing(), []
    for block in blocks(whole):
        if block.first_sample == round(2.05 * RATE_HZ):
            mic.own_sound("play-1", Waveform(speech(QUERY), RATE_HZ), 2.0)
        if block.at_s < break_s or block.at_s >= break_s + 0.05:
            observations += mic.feed(replace(block, epoch=1 if block.at_s < break_s else 2))
    assert not any(isinstance(observation, SpeechStarted | Earcon) for observation in observations)
    for observation in observations:
        assert isinstance(observation, StimulusHeard)
        assert observation.at.at_s == pytest.approx(2.031, abs=0.001)


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_query_that_is_stopped_midway_is_not_the_devices(share: float) -> None:
    stop_s = 2.031 + share * len(speech(QUERY)) / RATE_HZ
    whole = scene(9, (2.031, speech(QUERY)[: round((stop_s - 2.031) * RATE_HZ)]))
    assert not any(isinstance(observation, SpeechStarted | Earcon) for observation in hear_query(whole, 2.0))


LONG = "Hey computer, set a timer for ten minutes, and tell me what the weather will be tomorrow in Paris, please."


@pytest.mark.parametrize("drift_ppm", [0, 100])
def test_a_long_query_is_taken_out_whole_also_where_clocks_drift(drift_ppm: int) -> None:
    query = speech(LONG)
    assert len(query) > 5 * RATE_HZ
    times = np.arange(len(query)) * (1 + drift_ppm * 1e-6)
    arrived = np.interp(times, np.arange(len(query)), query).astype(np.float32)
    end_s = 2.031 + len(query) / RATE_HZ
    whole = scene(end_s + 4, (2.031, arrived), (end_s + 0.5, speech("It is half past nine.", "flite:slt")))
    speech_spans = spans(
        [observation for observation in hear(whole, (2.0, query)) if not isinstance(observation, StimulusHeard)]
    )
    assert speech_spans[0][0] == pytest.approx(end_s + 0.5, abs=0.06)


def test_closing_words_after_a_query_are_recognised_as_own() -> None:
    query, closing = speech(QUERY), speech("Thank you, that is all.")
    next_s = 2.0 + len(query) / RATE_HZ + 0.05
    end_s = next_s + len(closing) / RATE_HZ
    answer = speech("Good bye.", "flite:slt")
    whole = scene(end_s + 3, (2.031, query), (next_s + 0.031, closing), (end_s + 0.631, answer))
    observations = hear(whole, (2.0, query), (next_s, closing))
    assert [stimulus.play_id for stimulus in observations if isinstance(stimulus, StimulusHeard)] == [
        "play-1",
        "play-2",
    ]
    assert [span[0] for span in spans(observations)][:1] == [pytest.approx(end_s + 0.631, abs=0.06)]
