"""The in-process sound path: what it plays is heard, and its device behaves as its seed says."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from harness.base.clocks import HostClock, ScaledClock
from harness.base.ports import Hears, Stimulates
from harness.devices.in_process.device import InProcessOptions, SimpleDevice, babble, hear, waveform_sha256
from harness.devices.in_process.driver import InProcess
from harness.model.bench import ObservationKind
from harness.model.errors import DeviceError
from harness.model.observation import (
    Intent,
    LinkBack,
    LinkLost,
    Observation,
    SpeechEnded,
    SpeechStarted,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Wake,
)
from harness.model.stimulus import Waveform
from harness.model.understanding import Expected, Slot
from tests.unit.session.material import PROFILE, Here, sound_of, trial


class Seen:
    """A sink, and waiting for what comes into it."""

    def __init__(self) -> None:
        self.all: list[Observation] = []
        self._came = threading.Condition()

    def __call__(self, observation: Observation) -> None:
        with self._came:
            self.all.append(observation)
            self._came.notify_all()

    def first(self, kind: type, within_s: float = 10.0) -> Observation:
        def found() -> list[Observation]:
            return [each for each in self.all if isinstance(each, kind)]

        with self._came:
            assert self._came.wait_for(found, within_s), f"no {kind.__name__} in {self.all}"
            return found()[0]


STIMULUS = sound_of(trial().recipe)
SOUND = STIMULUS.waveform


@pytest.fixture
def rig() -> Iterator[tuple[InProcess, InProcess, InProcess, Seen]]:
    clock = ScaledClock(20.0, HostClock())
    drivers = (
        InProcess("speaker", InProcessOptions(), Here(clock)),
        InProcess("mic", InProcessOptions(), Here(clock)),
        InProcess("dut", InProcessOptions(), Here(clock, profile=PROFILE)),
    )
    seen = Seen()
    for driver in drivers:
        driver.open(seen)
    yield (*drivers, seen)
    for driver in drivers:
        driver.close()


def test_a_query_is_heard_reported_and_answered(rig: tuple[InProcess, InProcess, InProcess, Seen]) -> None:
    speaker, mic, _, seen = rig
    assert isinstance(speaker, Stimulates)
    assert isinstance(mic, Hears)
    speaker.script(waveform_sha256(SOUND), "what time is it")
    speaker.play("p1", SOUND)
    ended = seen.first(SpeechEnded)
    start_s = seen.first(StimulusStarted).at.at_s
    query_end_s = start_s + STIMULUS.parts[-1].end_sample / SOUND.rate_hz
    assert seen.first(StimulusEnded).at.at_s == pytest.approx(start_s + SOUND.duration_s)
    assert seen.first(StimulusHeard).at.at_s == pytest.approx(start_s)
    assert seen.first(Wake).source == "dut"
    transcript = seen.first(Transcript)
    assert isinstance(transcript, Transcript)
    assert transcript.text == "what time is it"
    began = seen.first(SpeechStarted)
    assert began.source == "mic"
    assert 0.6 <= began.at.at_s - query_end_s <= 1.0
    clip, first_s = mic.cut(began.at.at_s - 0.2, ended.at.at_s)
    assert first_s == began.at.at_s - 0.2
    quiet, loud = clip.samples[: clip.rate_hz // 10], clip.samples[clip.rate_hz // 2 :]
    assert np.sqrt(np.mean(quiet**2)) < 0.001 < 0.03 < np.sqrt(np.mean(loud**2))
    again, _ = mic.cut(began.at.at_s - 0.2, ended.at.at_s)
    assert np.array_equal(clip.samples, again.samples)


def test_a_sound_without_a_script_wakes_nothing_and_a_stop_is_told(
    rig: tuple[InProcess, InProcess, InProcess, Seen],
) -> None:
    speaker, _, _, seen = rig
    speaker.stop()
    speaker.play("p1", SOUND)
    with pytest.raises(DeviceError, match="already"):
        speaker.play("p2", SOUND)
    seen.first(StimulusStarted)
    speaker.stop()
    ended = seen.first(StimulusEnded)
    assert isinstance(ended, StimulusEnded)
    assert ended.complete is False
    speaker.play("p3", SOUND)
    seen.first(StimulusHeard)
    assert not [each for each in seen.all if isinstance(each, Wake | Transcript | SpeechStarted)]


def test_a_lost_link_is_told_and_refuses(rig: tuple[InProcess, InProcess, InProcess, Seen]) -> None:
    speaker, _, _, seen = rig
    speaker.lose_link("cut")
    seen.first(LinkLost)
    with pytest.raises(DeviceError):
        speaker.play("p1", SOUND)
    speaker.mend_link()
    seen.first(LinkBack)
    speaker.play("p1", SOUND)
    seen.first(StimulusEnded)


def test_closing_ends_the_thread_within_two_seconds_in_any_state() -> None:
    before = threading.active_count()
    driver = InProcess("one", InProcessOptions(), Here(HostClock()))
    driver.close()
    driver.open(Seen())
    driver.play("p", SOUND)
    began_s = time.monotonic()
    driver.close()
    driver.close()
    assert time.monotonic() - began_s < 2.0
    assert threading.active_count() == before
    assert driver.level_dbfs() is None
    with pytest.raises(DeviceError):
        driver.play("p", SOUND)


def test_ears_find_phrases_by_energy() -> None:
    heard = hear(SOUND.samples)
    assert heard is not None
    assert heard.wake_end_s == pytest.approx(STIMULUS.parts[0].end_sample / SOUND.rate_hz, abs=0.02)
    assert heard.query_end_s == pytest.approx(STIMULUS.parts[1].end_sample / SOUND.rate_hz, abs=0.02)
    assert hear(np.zeros(48000, dtype=np.float32)) is None
    assert hear(np.zeros(3, dtype=np.float32)) is None


def test_shares_come_out_as_asked_and_a_seed_gives_the_same_again() -> None:
    behaviour = InProcessOptions(wake_miss_share=0.1, mishear_share=0.2, silent_share=0.1, late_share=0.1)

    def doings(seed: int) -> list[tuple[str | None, float | None]]:
        device = SimpleDevice(behaviour, seed)
        device.script("x", "what time is it")
        taken = [device.take("x") for _ in range(2000)]
        return [(each.transcript, each.answers_after_s) for each in taken if each is not None]

    found = doings(1)
    assert found == doings(1)
    assert found != doings(2)
    missed = sum(text is None for text, _ in found) / 2000
    misheard = sum(text not in (None, "what time is it") for text, _ in found) / 2000
    assert missed == pytest.approx(0.1, abs=0.03)
    assert misheard == pytest.approx(0.2, abs=0.04)
    assert SimpleDevice(behaviour, 1).take("unknown") is None


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="shares"):
        InProcessOptions(mishear_share=0.7, silent_share=0.7)
    with pytest.raises(ValueError, match="speed"):
        InProcessOptions(speed=0)


def test_the_voice_is_about_minus_26_dbfs() -> None:
    voice = babble(1)
    assert isinstance(voice, Waveform)
    assert 20 * np.log10(np.sqrt(np.mean(voice.samples.astype(float) ** 2))) == pytest.approx(-26, abs=0.5)


FRAME = Expected(("set_timer",), (Slot("duration", "10 minutes"), Slot("name")))


def understands(behaviour: InProcessOptions, times: int = 200, frame: Expected | None = FRAME) -> list[Expected | None]:
    device = SimpleDevice(behaviour, 5)
    device.script("sha", "set a timer", frame)
    return [doing.frame for doing in (device.take("sha") for _ in range(times)) if doing is not None]


def test_what_is_heard_right_is_understood_and_what_is_heard_wrong_is_not() -> None:
    assert set(understands(InProcessOptions())) == {FRAME}
    assert set(understands(InProcessOptions(mishear_share=1.0))) == {Expected((), ())}
    assert set(understands(InProcessOptions(wake_miss_share=1.0))) == {None}
    assert set(understands(InProcessOptions(), frame=None)) == {None}


def test_a_share_of_it_is_understood_otherwise() -> None:
    found = understands(InProcessOptions(misunderstand_share=0.3))
    lost = Expected(("set_timer",), (Slot("duration", "10 minutes"),))
    assert set(found) == {FRAME, lost}
    assert 40 <= found.count(lost) <= 80
    bare = understands(InProcessOptions(misunderstand_share=1.0), frame=Expected(("get_time",), ()))
    assert set(bare) == {Expected((), ())}
    with pytest.raises(ValueError, match="misunderstand_share"):
        InProcessOptions(misunderstand_share=1.5)


def test_it_tells_its_intent_after_the_words_where_its_profile_says_so() -> None:
    clock = ScaledClock(20.0, HostClock())
    telling = replace(PROFILE, reports=PROFILE.reports | {ObservationKind.INTENT})
    drivers = (
        InProcess("speaker", InProcessOptions(), Here(clock)),
        InProcess("dut", InProcessOptions(), Here(clock, profile=telling)),
    )
    seen = Seen()
    for driver in drivers:
        driver.open(seen)
    try:
        drivers[0].script(waveform_sha256(SOUND), "set a timer", FRAME)
        drivers[0].play("p1", SOUND)
        intent = seen.first(Intent)
        assert isinstance(intent, Intent)
        assert (intent.name, intent.slots) == ("set_timer", (("duration", "10 minutes"), ("name", "something")))
        words = seen.first(Transcript)
        assert seen.all.index(words) < seen.all.index(intent)
    finally:
        for driver in drivers:
            driver.close()
