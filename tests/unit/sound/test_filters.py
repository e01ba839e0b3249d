"""SciPy is the reference: the harness only avoids its import."""

import numpy as np
import pytest
from scipy import signal

from harness.sound.filters import HighPass, analytic, convolve, correlate, low_pass_taps

NOISE = np.random.default_rng(1).standard_normal(16000)


# One tap, even and odd numbers of them, and as many as there are samples.
@pytest.mark.parametrize("tap_count", [1, 512, 513, 16000])
def test_convolution_and_correlation_equal_scipy(tap_count: int) -> None:
    taps = NOISE[:tap_count]
    assert convolve(NOISE, taps) == pytest.approx(signal.fftconvolve(NOISE, taps, "valid"), abs=1e-9)
    assert correlate(NOISE, taps) == pytest.approx(signal.correlate(NOISE, taps, "valid"), abs=1e-9)


@pytest.mark.parametrize("count", [512, 513])
def test_analytic_signal_and_its_correlation_equal_scipy(count: int) -> None:
    analytic_signal = analytic(NOISE[:count])
    assert analytic_signal == pytest.approx(signal.hilbert(NOISE[:count]), abs=1e-12)
    expected = np.abs(signal.correlate(NOISE, analytic_signal, "valid"))
    assert np.abs(correlate(NOISE, analytic_signal)) == pytest.approx(expected, abs=1e-9)


def test_low_pass_equals_scipy() -> None:
    expected = signal.firwin(193, 7600, fs=48000, window=("kaiser", 8.0))
    assert low_pass_taps(193, 7600, 48000) == pytest.approx(expected, abs=1e-15)


def test_high_pass_equals_scipy_over_many_blocks() -> None:
    high_pass = HighPass(120, 16000, 160)
    expected = signal.sosfilt(signal.butter(2, 120, "highpass", fs=16000, output="sos"), NOISE)
    filtered = np.concatenate([high_pass.feed(block) for block in NOISE.reshape(-1, 160)])
    assert filtered == pytest.approx(expected, abs=1e-12)
    high_pass.reset()
    assert high_pass.feed(NOISE[:160]) == pytest.approx(expected[:160], abs=1e-12)
