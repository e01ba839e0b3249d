"""The wake device of the in-process sound path: by air and by injection, several at once, by a seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.clocks import HostClock, ScaledClock
from harness.devices.in_process.device import WAKES_AFTER_S, InProcessOptions, ScriptedPhrase, wakes_in, waveform_sha256
from harness.devices.in_process.driver import InProcess
from harness.model.errors import DeviceError
from harness.model.observation import (
    DeviceState,
    ListeningProved,
    Observation,
    Status,
    StimulusEnded,
    StimulusStarted,
    Transcript,
    Wake,
)
from harness.model.stimulus import Waveform
from tests.unit.session.material import PROFILE, Here

SPEED = 50.0
SOUND = Waveform(np.full(16_000 * 6, 0.1, dtype=np.float32), 16_000)
PHRASE = ScriptedPhrase("alexa", 1.6)


@contextmanager
def opened(**options: InProcessOptions) -> Iterator[tuple[dict[str, InProcess], list[Observation]]]:
    """A speaker and devices in one air; what they all told, in the order of arrival."""
    clock = ScaledClock(SPEED, HostClock())
    told: list[Observation] = []
    drivers = {"speaker": InProcess("speaker", InProcessOptions(), Here(clock))}
    drivers |= {name: InProcess(name, one, Here(clock, profile=PROFILE)) for name, one in options.items()}
    for driver in drivers.values():
        driver.open(told.append)
    drivers["speaker"].expect(waveform_sha256(SOUND), PHRASE)
    try:
        yield drivers, told
    finally:
        for driver in drivers.values():
            driver.close()


def until(what: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 10.0
    while not what():
        assert time.monotonic() < give_up_s
        time.sleep(0.001)


def of(told: list[Observation], kind: type, source: str) -> list[Observation]:
    return [each for each in told if isinstance(each, kind) and each.source == source]


def test_every_device_in_the_air_wakes_to_the_phrase_by_itself() -> None:
    with opened(a=InProcessOptions(), b=InProcessOptions(), deaf=InProcessOptions(wake_miss_share=1.0)) as (all_, told):
        all_["speaker"].play("p1", SOUND)
        until(lambda: bool(of(told, StimulusEnded, "speaker")))
    (started,) = of(told, StimulusStarted, "speaker")
    for name in ("a", "b"):
        (wake,) = of(told, Wake, name)
        assert wake.at.at_s - started.at.at_s == pytest.approx(PHRASE.ends_s + WAKES_AFTER_S)
        assert isinstance(wake, Wake)
        assert wake.audio_s is None
    assert not of(told, Wake, "deaf")
    assert of(told, ListeningProved, "deaf"), "it listens all the same"


def test_an_injecting_connection_has_an_audio_line_that_goes_on() -> None:
    with opened(wired=InProcessOptions(injection=True, injection_speed=20.0), other=InProcessOptions()) as (all_, told):
        before_s = time.monotonic()
        for play_id in ("p1", "p2"):
            all_["wired"].play(play_id, SOUND)
            until(lambda play_id=play_id: any(e.play_id == play_id for e in of(told, StimulusEnded, "wired")))  # type: ignore[misc,attr-defined]
        assert time.monotonic() - before_s < 2 * 6.0 / SPEED, "faster than the clock"
    starts = [each.audio_s for each in of(told, StimulusStarted, "wired")]  # type: ignore[attr-defined]
    ends = [(each.audio_s, each.complete) for each in of(told, StimulusEnded, "wired")]  # type: ignore[attr-defined]
    wakes = [each.audio_s for each in of(told, Wake, "wired")]  # type: ignore[attr-defined]
    assert starts == [0.0, 6.0]
    assert ends == [(6.0, True), (12.0, True)]
    assert wakes == pytest.approx([1.75, 7.75])
    proofs = [each.audio_s for each in of(told, ListeningProved, "wired")]  # type: ignore[attr-defined]
    assert proofs == pytest.approx([0.0, 5.0, 6.0, 6.0, 11.0, 12.0])
    assert not of(told, Wake, "other"), "it goes past the air"


def test_a_restart_cuts_an_injection_and_the_line_does_not_go_back() -> None:
    with opened(wired=InProcessOptions(injection=True)) as (all_, told):
        all_["wired"].play("p1", SOUND)
        until(lambda: bool(of(told, Wake, "wired")))
        all_["wired"].restart()
        (ended,) = of(told, StimulusEnded, "wired")
        assert isinstance(ended, StimulusEnded)
        assert not ended.complete
        assert ended.audio_s is not None
        assert 1.7 < ended.audio_s < 6.0
        (status,) = of(told, Status, "wired")
        assert isinstance(status, Status)
        assert status.state is DeviceState.STARTED
        all_["wired"].play("p2", SOUND)
        until(lambda: len(of(told, StimulusStarted, "wired")) == 2)
        assert [e.audio_s for e in of(told, StimulusStarted, "wired")] == [0.0, ended.audio_s]  # type: ignore[attr-defined]
        with pytest.raises(DeviceError, match="playing p2 already"):
            all_["wired"].play("p3", SOUND)
        all_["wired"].stop()


def test_a_command_is_told_as_a_transcript() -> None:
    with opened(wired=InProcessOptions(injection=True, injection_speed=20.0)) as (all_, told):
        all_["speaker"].expect(waveform_sha256(SOUND), ScriptedPhrase("alexa", 1.6, "what time is it", 3.0))
        all_["wired"].play("p1", SOUND)
        until(lambda: bool(of(told, StimulusEnded, "wired")))
    assert [each.text for each in of(told, Transcript, "wired")] == ["what time is it"]  # type: ignore[attr-defined]


def test_false_accepts_come_as_often_as_declared() -> None:
    hours = 200.0
    found = sum(
        len(wakes_in(60.0, None, miss_share=0.0, false_per_hour=5.0, seed=f"s:{n}")) for n in range(round(hours * 60))
    )
    assert abs(found - 5.0 * hours) < 4 * (5.0 * hours) ** 0.5, "a Poisson number of mean 1000"
    missed = sum(not wakes_in(3.0, PHRASE, miss_share=0.2, false_per_hour=0.0, seed=f"m:{n}") for n in range(2000))
    assert abs(missed - 400) < 4 * (2000 * 0.2 * 0.8) ** 0.5


@given(st.floats(0.1, 600.0), st.floats(0.0, 1.0), st.floats(0.0, 500.0), st.text(max_size=5))
def test_events_are_in_order_within_the_sound_and_the_same_for_the_same_seed(
    duration_s: float, share: float, rate: float, seed: str
) -> None:
    made = wakes_in(duration_s, None, miss_share=share, false_per_hour=rate, seed=seed)
    assert list(made) == sorted(made)
    assert all(0 <= each.at_s < duration_s for each in made)
    assert made == wakes_in(duration_s, None, miss_share=share, false_per_hour=rate, seed=seed)
