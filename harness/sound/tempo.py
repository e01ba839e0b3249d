"""Slower or faster speech at unchanged pitch, for listening again.

Source: waveform similarity overlap-add, Verhelst and Roelands, ICASSP 1993.
"""

from __future__ import annotations

import numpy as np

from harness.model.stimulus import Waveform

SLOWER = 0.75
"""The tempo at which people listen again."""
_FRAME_S = 0.03
"""Length of a frame in seconds: two periods of a low voice, and too short for a speech sound to be heard twice."""
_SEARCH_S = 0.01
"""A frame may be taken from this much earlier or later, in seconds: one period of a voice of 100 Hz."""


def at_tempo(waveform: Waveform, tempo: float) -> Waveform:
    """The same speech, 1 / tempo times as long, to within one frame of 30 ms. tempo: 0.5 to 2, ValueError otherwise.

    Frames are placed half a frame apart. Each comes from near the position that the tempo requires, where it best
    matches the natural continuation of the previous frame. Periods of the voice therefore join smoothly.
    """
    if not 0.5 <= tempo <= 2.0:
        raise ValueError(f"a tempo must be between 0.5 and 2, not {tempo}")
    samples = waveform.samples
    hop = max(8, round(_FRAME_S / 2 * waveform.rate_hz))
    search = max(1, round(_SEARCH_S * waveform.rate_hz))
    length = round(len(samples) / tempo)
    if tempo == 1.0 or len(samples) < 2 * hop:
        return waveform
    # Padding, so that no frame and no search exceeds an end.
    padded = np.pad(samples.astype(np.float64), (search + hop, 2 * search + 4 * hop))
    window = np.hanning(2 * hop + 1)[:-1]
    frames = length // hop + 2
    output = np.zeros((frames + 1) * hop)
    position = search
    for number in range(frames):
        if number:
            target = search + min(round(number * hop * tempo), len(samples) + hop)
            position = _best_match(padded, position + hop, target, search, 2 * hop)
        output[number * hop : (number + 2) * hop] += window * padded[position : position + 2 * hop]
    return Waveform(output[hop : hop + length].astype(np.float32), waveform.rate_hz)


def _best_match(
    samples: np.ndarray[tuple[int], np.dtype[np.float64]], continuation: int, expected: int, search: int, size: int
) -> int:
    """Position within `search` of `expected` at which `size` samples best match those from `continuation` on
    (normalised correlation)."""
    template = samples[continuation : continuation + size]
    region = samples[expected - search : expected + search + size]
    likeness = np.correlate(region, template, mode="valid")
    energy = np.concatenate(([0.0], np.cumsum(region * region)))
    likeness /= np.sqrt(np.maximum(energy[size:] - energy[:-size], 1e-12))
    return expected - search + int(np.argmax(likeness))
