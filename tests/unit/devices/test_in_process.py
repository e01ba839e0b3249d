"""The in-process sound path: what it plays is heard, and its devices behave as their seed says."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base import threads
from harness.base.clocks import HostClock, ScaledClock
from harness.base.ports import Hears, Stimulates
from harness.base.simulated_threads import SimulatedThreads
from harness.devices.in_process.device import (
    WAKES_AFTER_S,
    InProcessOptions,
    ScriptedPhrase,
    SimpleDevice,
    detect_phrases,
    draw_wakes,
    synthetic_speech,
    waveform_sha256,
)
from harness.devices.in_process.driver import InProcess
from harness.model.bench import DeviceProfile, ObservationKind
from harness.model.errors import DeviceError
from harness.model.observation import (
    DeviceState,
    Intent,
    LinkBack,
    LinkLost,
    ListeningProved,
    Observation,
    SpeechEnded,
    SpeechStarted,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Wake,
)
from harness.model.stimulus import Waveform
from harness.model.understanding import ExpectedFrame, Slot
from tests.known import known
from tests.seen import Seen, until
from tests.unit.session.material import PROFILE, Here, sound_of, trial

STIMULUS = sound_of(trial().recipe)
SOUND = STIMULUS.waveform


@dataclass
class Rig:
    """A speaker, a microphone and a device in one air, and what they tell."""

    speaker: InProcess
    mic: InProcess
    seen: Seen


@contextmanager
def opened(profile: DeviceProfile = PROFILE, speed: float = 20.0) -> Iterator[Rig]:
    clock, observations = ScaledClock(speed, HostClock()), Seen()
    profiles = {"speaker": None, "mic": None, "dut": profile}
    drivers = [
        InProcess(id, InProcessOptions(), Here(clock, profile=own_profile)) for id, own_profile in profiles.items()
    ]
    with ExitStack() as stack:
        for driver in drivers:
            driver.open(observations)
            stack.callback(driver.close)
        yield Rig(drivers[0], drivers[1], observations)


@pytest.fixture
def rig(simulated_time: SimulatedThreads) -> Iterator[Rig]:
    with opened() as rig:
        yield rig


def test_a_query_is_heard_reported_and_answered(rig: Rig) -> None:
    speaker, mic, observations = rig.speaker, rig.mic, rig.seen
    assert isinstance(speaker, Stimulates)
    assert isinstance(mic, Hears)
    speaker.script(waveform_sha256(SOUND), "what time is it")
    speaker.play("p1", SOUND)
    ended = observations.first(SpeechEnded)
    start_s = observations.first(StimulusStarted).at.at_s
    query_end_s = start_s + STIMULUS.parts[-1].end_sample / SOUND.rate_hz
    assert observations.first(StimulusEnded).at.at_s == pytest.approx(start_s + SOUND.duration_s)
    assert observations.first(StimulusHeard).at.at_s == pytest.approx(start_s)
    assert observations.first(Wake).source == "dut"
    assert observations.first(Transcript).text == "what time is it"
    began = observations.first(SpeechStarted)
    assert began.source == "mic"
    assert 0.6 <= began.at.at_s - query_end_s <= 1.0
    clip, first_s = mic.cut(began.at.at_s - 0.2, ended.at.at_s)
    assert first_s == began.at.at_s - 0.2
    quiet, loud = clip.samples[: clip.rate_hz // 10], clip.samples[clip.rate_hz // 2 :]
    assert np.sqrt(np.mean(quiet**2)) < 0.001 < 0.03 < np.sqrt(np.mean(loud**2))
    second_clip, _ = mic.cut(began.at.at_s - 0.2, ended.at.at_s)
    assert np.array_equal(clip.samples, second_clip.samples)


def test_unscripted_sound_wakes_nothing_and_stop_is_reported(rig: Rig) -> None:
    speaker, observations = rig.speaker, rig.seen
    long = Waveform(np.zeros(60 * SOUND.rate_hz, np.float32), SOUND.rate_hz)
    speaker.stop()
    speaker.play("p1", long)
    with pytest.raises(DeviceError, match="already"):
        speaker.play("p2", SOUND)
    observations.first(StimulusStarted)
    speaker.stop()
    assert observations.first(StimulusEnded).complete is False
    speaker.play("p3", SOUND)
    observations.first(StimulusHeard)
    assert not [
        observation for observation in observations.all if isinstance(observation, Wake | Transcript | SpeechStarted)
    ]


def test_lost_link_is_reported_and_playback_refused(rig: Rig) -> None:
    speaker, observations = rig.speaker, rig.seen
    speaker.lose_link("cut")
    observations.first(LinkLost)
    with pytest.raises(DeviceError):
        speaker.play("p1", SOUND)
    speaker.mend_link()
    observations.first(LinkBack)
    speaker.play("p1", SOUND)
    observations.first(StimulusEnded)


def test_closing_ends_the_thread_in_any_state() -> None:
    before = set(threading.enumerate())
    driver = InProcess("one", InProcessOptions(), Here(HostClock()))
    driver.close()
    driver.open(Seen())
    driver.play("p", SOUND)
    began_s = time.monotonic()
    driver.close()
    driver.close()
    assert time.monotonic() - began_s < 10
    assert set(threading.enumerate()) <= before
    assert driver.level_dbfs() is None
    with pytest.raises(DeviceError):
        driver.play("p", SOUND)


def test_phrases_are_found_by_energy() -> None:
    heard = known(detect_phrases(SOUND.samples))
    assert heard.wake_end_s == pytest.approx(STIMULUS.parts[0].end_sample / SOUND.rate_hz, abs=0.02)
    assert heard.query_end_s == pytest.approx(STIMULUS.parts[1].end_sample / SOUND.rate_hz, abs=0.02)
    assert detect_phrases(np.zeros(48000, dtype=np.float32)) is None
    assert detect_phrases(np.zeros(3, dtype=np.float32)) is None


def test_configured_shares_are_kept_and_a_seed_reproduces_them() -> None:
    behaviour = InProcessOptions(wake_miss_share=0.1, mishear_share=0.2, silent_share=0.1, late_share=0.1)

    def doings(seed: int) -> list[tuple[str | None, float | None]]:
        device = SimpleDevice(behaviour, seed)
        device.script("x", "what time is it")
        results = [device.react("x") for _ in range(2000)]
        return [(reaction.transcript, reaction.answers_after_s) for reaction in results if reaction is not None]

    reactions = doings(1)
    assert reactions == doings(1)
    assert reactions != doings(2)
    missed = sum(text is None for text, _ in reactions) / 2000
    misheard = sum(text not in (None, "what time is it") for text, _ in reactions) / 2000
    assert missed == pytest.approx(0.1, abs=0.03)
    assert misheard == pytest.approx(0.2, abs=0.04)
    assert SimpleDevice(behaviour, 1).react("unknown") is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mishear_share": 0.7, "silent_share": 0.7}, "shares"),
        ({"misunderstand_share": 1.5}, "misunderstand_share"),
        ({"speed": 0}, "speed"),
    ],
)
def test_contradictory_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        InProcessOptions(**options)  # type: ignore[arg-type]


def test_the_voice_is_about_minus_26_dbfs() -> None:
    assert 20 * np.log10(np.sqrt(np.mean(synthetic_speech(1).samples.astype(float) ** 2))) == pytest.approx(
        -26, abs=0.5
    )


FRAME = ExpectedFrame(("set_timer",), (Slot("duration", "10 minutes"), Slot("name")))


def understands(
    behaviour: InProcessOptions, times: int = 200, frame: ExpectedFrame | None = FRAME
) -> list[ExpectedFrame | None]:
    device = SimpleDevice(behaviour, 5)
    device.script("sha", "set a timer", frame)
    return [doing.frame for doing in (device.react("sha") for _ in range(times)) if doing is not None]


def test_only_correctly_heard_words_are_understood() -> None:
    assert set(understands(InProcessOptions())) == {FRAME}
    assert set(understands(InProcessOptions(mishear_share=1.0))) == {ExpectedFrame((), ())}
    assert set(understands(InProcessOptions(wake_miss_share=1.0))) == {None}
    assert set(understands(InProcessOptions(), frame=None)) == {None}


def test_misunderstand_share_sets_how_often_intents_are_wrong() -> None:
    frames = understands(InProcessOptions(misunderstand_share=0.3))
    lost = ExpectedFrame(("set_timer",), (Slot("duration", "10 minutes"),))
    assert set(frames) == {FRAME, lost}
    assert 40 <= frames.count(lost) <= 80
    bare = understands(InProcessOptions(misunderstand_share=1.0), frame=ExpectedFrame(("get_time",), ()))
    assert set(bare) == {ExpectedFrame((), ())}


@pytest.mark.usefixtures("simulated_time")
def test_intent_follows_the_transcript_if_the_profile_reports_intents() -> None:
    with opened(replace(PROFILE, reports=PROFILE.reports | {ObservationKind.INTENT})) as rig:
        rig.speaker.script(waveform_sha256(SOUND), "set a timer", FRAME)
        rig.speaker.play("p1", SOUND)
        intent = rig.seen.first(Intent)
        assert (intent.name, intent.slots) == ("set_timer", (("duration", "10 minutes"), ("name", "something")))
        assert rig.seen.all.index(rig.seen.first(Transcript)) < rig.seen.all.index(intent)


SPEED = 50.0
LONG_SOUND = Waveform(np.full(16_000 * 6, 0.1, dtype=np.float32), 16_000)
PHRASE = ScriptedPhrase("alexa", 1.6)
O = TypeVar("O", bound=Observation)  # noqa: E741


@contextmanager
def opened_bench(
    speed: float = SPEED, **options: InProcessOptions
) -> Iterator[tuple[dict[str, InProcess], list[Observation]]]:
    """A speaker and devices in one air; what they all told, in the order of arrival."""
    clock = ScaledClock(speed, HostClock())
    observations: list[Observation] = []
    drivers = {"speaker": InProcess("speaker", InProcessOptions(), Here(clock))}
    drivers |= {name: InProcess(name, behaviour, Here(clock, profile=PROFILE)) for name, behaviour in options.items()}
    for driver in drivers.values():
        driver.open(observations.append)
    drivers["speaker"].expect(waveform_sha256(LONG_SOUND), PHRASE)
    try:
        yield drivers, observations
    finally:
        for driver in drivers.values():
            driver.close()


def of(observations: list[Observation], kind: type[O], source: str) -> list[O]:
    return [
        observation for observation in observations if isinstance(observation, kind) and observation.source == source
    ]


@pytest.mark.usefixtures("simulated_time")
def test_every_device_in_the_air_wakes_to_the_phrase_by_itself() -> None:
    with opened_bench(a=InProcessOptions(), b=InProcessOptions(), deaf=InProcessOptions(wake_miss_share=1.0)) as (
        all_,
        observations,
    ):
        all_["speaker"].play("p1", LONG_SOUND)
        until(lambda: of(observations, StimulusEnded, "speaker"))
    (started,) = of(observations, StimulusStarted, "speaker")
    for name in ("a", "b"):
        (wake,) = of(observations, Wake, name)
        assert wake.at.at_s - started.at.at_s == pytest.approx(PHRASE.ends_s + WAKES_AFTER_S)
        assert wake.audio_s is None
    assert not of(observations, Wake, "deaf")
    assert of(observations, ListeningProved, "deaf"), "it listens all the same"


@pytest.mark.usefixtures("simulated_time")
def test_audio_time_of_an_injecting_connection_continues() -> None:
    with opened_bench(wired=InProcessOptions(injection=True, injection_speed=20.0), other=InProcessOptions()) as (
        all_,
        observations,
    ):
        took_s = []
        for play_id in ("p1", "p2", "p3", "p4", "p5"):
            before_s = threads.monotonic()
            all_["wired"].play(play_id, LONG_SOUND)
            until(lambda play_id=play_id: any(e.play_id == play_id for e in of(observations, StimulusEnded, "wired")))  # type: ignore[misc]
            took_s.append(threads.monotonic() - before_s)
        assert min(took_s) < 6.0 / SPEED, "faster than the clock"
    starts = [observation.audio_s for observation in of(observations, StimulusStarted, "wired")]
    ends = [(observation.audio_s, observation.complete) for observation in of(observations, StimulusEnded, "wired")]
    wakes = [observation.audio_s for observation in of(observations, Wake, "wired")]
    assert starts == [0.0, 6.0, 12.0, 18.0, 24.0]
    assert ends == [(start + 6.0, True) for start in starts]
    assert wakes == pytest.approx([start + 1.75 for start in starts])
    proofs = [observation.audio_s for observation in of(observations, ListeningProved, "wired")]
    assert proofs[:6] == pytest.approx([0.0, 5.0, 6.0, 6.0, 11.0, 12.0])
    assert not of(observations, Wake, "other"), "it goes past the air"


@pytest.mark.usefixtures("simulated_time")
def test_a_restart_cuts_an_injection_and_the_line_does_not_go_back() -> None:
    sound = Waveform(np.full(16_000 * 120, 0.1, dtype=np.float32), 16_000)  # lasts 12 s here
    with opened_bench(10.0, wired=InProcessOptions(injection=True)) as (all_, observations):
        all_["speaker"].expect(waveform_sha256(sound), PHRASE)
        all_["wired"].play("p1", sound)
        until(lambda: of(observations, Wake, "wired"))
        all_["wired"].restart()
        (ended,) = of(observations, StimulusEnded, "wired")
        assert not ended.complete
        assert 1.7 < known(ended.audio_s) < 120.0
        (status,) = of(observations, Status, "wired")
        assert status.state is DeviceState.STARTED
        all_["wired"].play("p2", sound)
        until(lambda: len(of(observations, StimulusStarted, "wired")) == 2)
        assert [e.audio_s for e in of(observations, StimulusStarted, "wired")] == [0.0, ended.audio_s]
        with pytest.raises(DeviceError, match="already playing p2"):
            all_["wired"].play("p3", sound)
        all_["wired"].stop()


@pytest.mark.usefixtures("simulated_time")
def test_a_command_is_reported_as_a_transcript() -> None:
    with opened_bench(wired=InProcessOptions(injection=True, injection_speed=20.0)) as (all_, observations):
        all_["speaker"].expect(waveform_sha256(LONG_SOUND), ScriptedPhrase("alexa", 1.6, "what time is it", 3.0))
        all_["wired"].play("p1", LONG_SOUND)
        until(lambda: of(observations, StimulusEnded, "wired"))
    assert [observation.text for observation in of(observations, Transcript, "wired")] == ["what time is it"]


def test_false_accepts_occur_at_the_declared_rate() -> None:
    hours = 200.0
    accepts = sum(
        len(draw_wakes(60.0, None, miss_share=0.0, false_per_hour=5.0, seed=f"s:{n}")) for n in range(round(hours * 60))
    )
    assert abs(accepts - 5.0 * hours) < 4 * (5.0 * hours) ** 0.5, "a Poisson number of mean 1000"
    missed = sum(not draw_wakes(3.0, PHRASE, miss_share=0.2, false_per_hour=0.0, seed=f"m:{n}") for n in range(2000))
    assert abs(missed - 400) < 4 * (2000 * 0.2 * 0.8) ** 0.5


@given(st.floats(0.1, 600.0), st.floats(0.0, 1.0), st.floats(0.0, 500.0), st.text(max_size=5))
def test_events_are_in_order_within_the_sound_and_the_same_for_the_same_seed(
    duration_s: float, share: float, rate: float, seed: str
) -> None:
    wakes = draw_wakes(duration_s, None, miss_share=share, false_per_hour=rate, seed=seed)
    assert list(wakes) == sorted(wakes)
    assert all(0 <= wake.at_s < duration_s for wake in wakes)
    assert wakes == draw_wakes(duration_s, None, miss_share=share, false_per_hour=rate, seed=seed)
