"""Linear filters in NumPy: importing scipy.signal takes longer than the rest of a session's start."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

_Samples = npt.NDArray[Any]


def convolve(samples: _Samples, taps: _Samples) -> npt.NDArray[Any]:
    """The convolution, by FFT, at all places where the taps lie within the samples: shape (n − taps + 1,).

    It is real if both are.
    """
    # The next power of two. A convolution by FFT is circular: only the values before `valid` wrap around.
    size = 1 << (len(samples) - 1).bit_length()
    valid = slice(len(taps) - 1, len(samples))
    if np.iscomplexobj(taps):
        return np.asarray(np.fft.ifft(np.fft.fft(samples, size) * np.fft.fft(taps, size))[valid])
    return np.asarray(np.fft.irfft(np.fft.rfft(samples, size) * np.fft.rfft(taps, size), size)[valid])


def correlate(samples: _Samples, template: _Samples) -> npt.NDArray[Any]:
    """The cross-correlation at each lag that keeps `template` within the samples, (n − template + 1,), by FFT."""
    return convolve(samples, np.conj(template[::-1]))


def analytic(samples: npt.NDArray[np.float64]) -> npt.NDArray[np.complex128]:
    """The samples with their Hilbert transform as the imaginary part."""
    # Without negative frequencies, and with the others doubled. Those at 0 and at half the rate have no partner.
    spectrum = np.fft.fft(samples)
    spectrum[1 : (len(samples) + 1) // 2] *= 2
    spectrum[len(samples) // 2 + 1 :] = 0
    return np.asarray(np.fft.ifft(spectrum))


def low_pass_taps(count: int, cutoff_hz: float, rate_hz: float) -> npt.NDArray[np.float64]:
    """The taps of a linear-phase low-pass: Kaiser window with β = 8, gain 1 at 0 Hz. count: odd number of taps."""
    taps = np.sinc(2 * cutoff_hz / rate_hz * (np.arange(count) - count // 2)) * np.kaiser(count, 8.0)
    return np.asarray(taps / taps.sum())


class HighPass:
    """A Butterworth high-pass of second order over blocks of one length.

    The filter is linear. So its output, and its state of two values at the end of a block, are one matrix times the
    block and the state before:

        [ output ]              [ block          ]
        [ state  ]  =  matrix · [ state (before) ]

    One product for each block is faster than a loop over its samples.
    """

    def __init__(self, cutoff_hz: float, rate_hz: float, block: int) -> None:
        # The bilinear transform of s² / (s² + √2·s + 1), warped so that the cut-off is exact.
        warped = math.tan(math.pi * cutoff_hz / rate_hz)
        scale = 1 / (1 + math.sqrt(2) * warped + warped**2)
        a1, a2 = 2 * (warped**2 - 1) * scale, (1 - math.sqrt(2) * warped + warped**2) * scale
        # The transposed direct form II, run once. Each value is a row: its factors of all inputs, instead of a number.
        inputs = np.eye(block + 2)
        first, second = inputs[block:]
        outputs = []
        for sample in inputs[:block]:
            output = scale * sample + first
            first, second = -2 * scale * sample - a1 * output + second, scale * sample - a2 * output
            outputs.append(output)
        self._matrix = np.array([*outputs, first, second])
        self.reset()

    def reset(self) -> None:
        """Forgets earlier samples."""
        self._state = np.zeros(2)

    def feed(self, samples: _Samples) -> npt.NDArray[np.float64]:
        """Filters the next block. samples: as many as the filter's block length."""
        output = self._matrix @ np.concatenate((samples, self._state))
        self._state = output[-2:]
        return np.asarray(output[:-2])
