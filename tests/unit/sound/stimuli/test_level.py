"""The active speech level meter against constructions whose level is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.model.stimulus import Samples, Waveform
from harness.sound.stimuli.level import active_speech_level, amplify, at_level, refuse_clipping

RATE = 16_000


def tone(seconds: float, amplitude: float = 0.5) -> Samples:
    t = np.arange(round(seconds * RATE)) / RATE
    return (amplitude * np.sin(2 * np.pi * 500 * t)).astype(np.float32)


def bursts(on_s: float, off_s: float, count: int, amplitude: float = 0.5) -> Waveform:
    quiet = np.zeros(round(off_s * RATE), dtype=np.float32)
    return Waveform(np.concatenate([tone(on_s, amplitude), quiet] * count), RATE)


def test_a_steady_full_scale_sine_is_3_db_below_a_full_scale_square() -> None:
    found = active_speech_level(Waveform(tone(20, 1.0), RATE))
    assert found is not None
    assert found.level_dbfs == pytest.approx(-3.01, abs=0.05)
    assert found.activity == pytest.approx(1, abs=0.01)


def test_a_full_scale_square_wave_is_0_dbfs() -> None:
    found = active_speech_level(Waveform(np.sign(tone(20, 1.0) + 1e-9).astype(np.float32), RATE))
    assert found is not None
    assert found.level_dbfs == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize(("on_s", "off_s"), [(1.0, 1.0), (1.0, 3.0), (2.0, 1.0), (0.5, 2.0)])
def test_bursts_are_active_while_they_last_and_for_the_hangover(on_s: float, off_s: float) -> None:
    found = active_speech_level(bursts(on_s, off_s, 10))
    assert found is not None
    # After a burst the envelope takes about 0.1 s to fall 15.9 dB; then come 0.2 s of hangover.
    assert found.activity == pytest.approx((on_s + 0.3) / (on_s + off_s), rel=0.06)
    long_term_db = 20 * math.log10(0.5) - 3.01 + 10 * math.log10(on_s / (on_s + off_s))
    assert found.level_dbfs == pytest.approx(long_term_db - 10 * math.log10(found.activity), abs=0.01)


def test_pauses_shorter_than_the_hangover_are_speech() -> None:
    found = active_speech_level(bursts(0.5, 0.15, 20))
    assert found is not None
    assert found.activity > 0.98


def test_silence_around_speech_does_not_change_its_level() -> None:
    speech = bursts(1.0, 0.4, 4)
    padding = np.zeros(10 * RATE, dtype=np.float32)
    padded = Waveform(np.concatenate([padding, speech.samples, padding]), RATE)
    alone, within = active_speech_level(speech), active_speech_level(padded)
    assert alone is not None
    assert within is not None
    assert within.level_dbfs == pytest.approx(alone.level_dbfs, abs=0.1)


@settings(max_examples=20, deadline=None)
@given(gain_db=st.floats(-70, 5))
def test_a_gain_changes_the_level_by_that_gain(gain_db: float) -> None:
    speech = bursts(0.7, 0.6, 3)
    plain, changed = active_speech_level(speech), active_speech_level(amplify(speech, gain_db))
    assert plain is not None
    assert changed is not None
    assert changed.level_dbfs - plain.level_dbfs == pytest.approx(gain_db, abs=0.1)


@pytest.mark.parametrize("samples", [np.zeros(0), np.zeros(RATE), np.full(RATE, 1e-6)])
def test_silence_has_no_level(samples: Samples) -> None:
    silent = Waveform(samples.astype(np.float32), RATE)
    assert active_speech_level(silent) is None
    with pytest.raises(InputError, match="silent"):
        at_level(silent, -26, "it")


def test_a_level_is_set_to_a_hundredth_of_a_decibel() -> None:
    found = active_speech_level(at_level(bursts(0.6, 0.5, 4), -26, "it"))
    assert found is not None
    assert found.level_dbfs == pytest.approx(-26, abs=0.01)


def test_the_highest_level_that_is_named_is_possible_and_the_next_is_not() -> None:
    speech = bursts(0.6, 0.5, 4)
    with pytest.raises(InputError, match="would clip") as refusal:
        refuse_clipping(at_level(speech, 0, "it"), 0, "it")
    highest = float(refusal.value.remedy.split("level_dbfs to ")[1].split()[0])
    refuse_clipping(at_level(speech, highest, "it"), highest, "it")
    with pytest.raises(InputError):
        refuse_clipping(at_level(speech, highest + 0.11, "it"), highest + 0.11, "it")
