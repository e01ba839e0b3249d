"""The equaliser of a loudspeaker: gains in third-octave bands, from its measured response, as a filter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.model.numbers import exact
from harness.model.stimulus import Samples, Waveform
from harness.sound.level import power_spectrum

_FLOAT64 = npt.NDArray[np.float64]

CENTRES_HZ = (125, 160, 200, 250, 315, 400, 500, 630, 800, 1000, 1250, 1600, 2000, 2500, 3150, 4000, 5000, 6300)
"""Nominal centre frequencies (IEC 61260) of the third-octave bands of speech that calibration noise contains."""
MAX_BOOST_DB = 6.0  # Chosen: each dB makes all other bands a dB quieter, since the highest gain becomes 0 dB.
MAX_CUT_DB = 12.0
ABOVE_NOISE_DB = 10.0
"""A band is not measured if it is less than this above the room's noise."""
MIN_DB = -40.0  # Chosen: `inverse` gives −18 dB at most, a person may write more.
TAPS = 2048  # At 48 kHz they resolve 23 Hz: less than the width of the lowest band, 29 Hz.
_HALF_BAND = 2 ** (1 / 6)  # A sixth of an octave to each side of the centre.


def band_levels(samples: Samples, rate_hz: int) -> _FLOAT64:
    """Mean square of a sound in each band, dB. samples: at least one second."""
    hertz, power = power_spectrum(samples, rate_hz)
    edges = [(centre / _HALF_BAND, centre * _HALF_BAND) for centre in CENTRES_HZ]
    return np.array([10 * np.log10(power[(hertz >= low) & (hertz < high)].sum() + 1e-18) for low, high in edges])


def response(recorded: Waveform, played: Waveform, quiet: Waveform) -> _FLOAT64:
    """Response from a loudspeaker to a microphone in each band, dB, with a mean of 0; NaN where it is not measured.

    - recorded, quiet: what the microphone records with and without the sound.
    - played: the sound.
    """
    signal, floor = (band_levels(waveform.samples, waveform.rate_hz) for waveform in (recorded, quiet))
    response_db = np.where(
        signal >= floor + ABOVE_NOISE_DB, signal - band_levels(played.samples, played.rate_hz), np.nan
    )
    return response_db - (np.nanmean(response_db) if np.isfinite(response_db).any() else 0.0)


def inverse(measured: _FLOAT64) -> str:
    """The equaliser for a response: at most MAX_BOOST_DB and MAX_CUT_DB, shifted so that the highest gain is 0 dB.

    A band that is not measured is left as it is.
    """
    gains = np.clip(-np.nan_to_num(measured), -MAX_CUT_DB, MAX_BOOST_DB)
    gains = np.round(gains - gains.max(), 1) + 0.0  # writes 0 for a negative zero
    return " ".join(f"{centre}:{gain:g}" for centre, gain in zip(CENTRES_HZ, gains, strict=True))


def parse(text: str) -> tuple[tuple[float, float], ...]:
    """Pairs of Hz and dB, ascending. Raises ValueError if the text is not of that kind."""
    try:
        points = tuple((float(hz), float(db)) for hz, db in (pair.split(":") for pair in text.split()))
    except ValueError as error:
        raise ValueError(f'`equaliser` must be pairs of Hz and dB such as "125:-3 250:0", not {text!r}') from error
    hertz = [hz for hz, _ in points]
    if any(not 20 <= hz <= 20_000 for hz in hertz) or hertz != sorted(set(hertz)):
        raise ValueError("the frequencies of `equaliser` must ascend from 20 to 20000 Hz")
    if any(not MIN_DB <= db <= 0 for _, db in points):
        raise ValueError(f"the gains of `equaliser` must be {exact(MIN_DB)} to 0 dB: louder sound would clip")
    return points


class Equaliser:
    """A minimum-phase filter with the gains that `parse` gives.

    Between its frequencies, the gain in dB is linear over the logarithm of the frequency. Below the first and above the
    last one, it is constant.
    """

    def __init__(self, text: str) -> None:
        self._points = parse(text)
        if self._points:
            from scipy import signal  # imported here: slow, and few loudspeakers have an equaliser

            self._convolve = signal.oaconvolve
        self._filters: dict[int, _FLOAT64] = {}

    def __call__(self, waveform: Waveform) -> Waveform:
        """The filtered sound, as long as it was."""
        if not self._points:
            return waveform
        if (taps := self._filters.get(waveform.rate_hz)) is None:
            taps = self._filters[waveform.rate_hz] = self._design(waveform.rate_hz)
        samples = self._convolve(waveform.samples, taps)[: len(waveform.samples)]
        return Waveform(samples.astype(np.float32), waveform.rate_hz)

    def _design(self, rate_hz: int) -> _FLOAT64:
        """The taps of the filter at a sample rate."""
        size = 4 * TAPS  # Longer than the filter, since a cepstrum aliases.
        hertz = np.fft.rfftfreq(size, 1 / rate_hz)
        known_hz, known_db = np.array(self._points).T
        gains_db = np.interp(np.log(np.maximum(hertz, 1.0)), np.log(known_hz), known_db)
        # Minimum phase by the folded real cepstrum.
        cepstrum = np.fft.irfft(gains_db * np.log(10) / 20, size)
        cepstrum[1 : size // 2] *= 2
        cepstrum[size // 2 + 1 :] = 0
        taps = np.fft.irfft(np.exp(np.fft.rfft(cepstrum)), size)[:TAPS]
        taps[TAPS // 2 :] *= np.hanning(TAPS)[TAPS // 2 :]
        return np.asarray(taps, dtype=np.float64)
