"""What lies between a microphone and an engine: gain, band limits, clipping and codecs.

Source of the codecs: libsndfile (formats and subtypes of `soundfile.write`). All of them keep the sound in its place.
"""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
import soundfile
import soxr

from harness.model.stimulus import Band, Channel, Samples, Waveform
from harness.sound.level import FULL_SCALE

_ORDER = 4  # 24 dB an octave in each direction.
_OPUS_KBITS = (6.0, 256.0)  # libsndfile's limits for a channel.
_OPUS_RATES_HZ = (8000, 12_000, 16_000, 24_000, 48_000)  # All that Opus has (RFC 6716).
_CODECS = {
    "mulaw": ("WAV", "ULAW", 8000),
    "alaw": ("WAV", "ALAW", 8000),
    "gsm": ("WAV", "GSM610", 8000),
    "adpcm": ("WAV", "NMS_ADPCM_16", 8000),
}
"""Container, subtype and rate of each codec for telephony."""


def library_version() -> str:
    """The version of the library that encodes and decodes."""
    return str(soundfile.__libsndfile_version__)


def at_speed(waveform: Waveform, speed: float) -> Waveform:
    """The sound played faster by a factor, so that its pitch changes too. Length: round(n / speed), within a sample."""
    if speed == 1.0:
        return waveform
    resampled = soxr.resample(waveform.samples, waveform.rate_hz * speed, waveform.rate_hz, quality="VHQ")
    return Waveform(np.asarray(resampled, dtype=np.float32), waveform.rate_hz)


def apply_channel(waveform: Waveform, channel: Channel) -> Waveform:
    """The sound after the channel: same rate, length and place. `speed` is not part of this.

    In this order: gain, which cuts off what is beyond full scale, then band limits, clipping and codec.
    """
    samples = waveform.samples
    if channel.gain_db:
        samples = _clip_to_full_scale(samples * np.float32(10 ** (channel.gain_db / 20)))
    if channel.band is not None:
        samples = _limit_band(samples, waveform.rate_hz, channel.band)
    if channel.clipping_db:
        limit = float(np.abs(samples).max(initial=0.0)) * 10 ** (-channel.clipping_db / 20)
        samples = np.clip(samples, -limit, limit)
    if channel.codec:
        samples = _encode_and_decode(samples, waveform.rate_hz, channel.codec)
    return Waveform(np.asarray(samples, dtype=np.float32), waveform.rate_hz)


def _clip_to_full_scale(samples: Samples) -> Samples:
    return np.clip(samples, -FULL_SCALE, FULL_SCALE)


def _limit_band(samples: Samples, rate_hz: int, band: Band) -> Samples:
    """Butterworth filters, forwards and backwards, so that nothing is delayed; 6 dB down at the limits."""
    from scipy.signal import butter, sosfiltfilt  # imported here: slow

    highest = rate_hz / 2
    kinds: tuple[tuple[float, Literal["highpass", "lowpass"]], ...]
    kinds = (band.low_hz, "highpass"), (band.high_hz, "lowpass")
    for edge_hz, kind in kinds:
        if 0 < edge_hz < highest:
            sections = butter(_ORDER, edge_hz, kind, fs=rate_hz, output="sos")
            pad = min(len(samples) - 1, round(rate_hz / max(edge_hz, 20.0)))  # one period of the edge
            filtered = sosfiltfilt(sections, samples.astype(np.float64), padlen=max(0, pad))
            samples = np.asarray(filtered, dtype=np.float32)
    return samples


def _encode_and_decode(samples: Samples, rate_hz: int, codec: str) -> Samples:
    """The sound after a codec, at the same rate and as long. codec: name, and bit rate in kbit/s if it is Opus."""
    name, _, kbits = codec.partition(" ")
    encoder_options: dict[str, float] = {}
    if name == "opus":
        # libsndfile's level 0 to 1 is linear in the bit rate of a channel.
        low, high = _OPUS_KBITS
        encoder_options = {"compression_level": (high - float(kbits)) / (high - low)}
        container, subtype = "OGG", "OPUS"
        coded_hz = next((opus_hz for opus_hz in _OPUS_RATES_HZ if opus_hz >= rate_hz), _OPUS_RATES_HZ[-1])
    else:
        container, subtype, coded_hz = _CODECS[name]
    resampled = samples if coded_hz == rate_hz else soxr.resample(samples, rate_hz, coded_hz, quality="VHQ")
    file = io.BytesIO()
    soundfile.write(
        file, _clip_to_full_scale(resampled), coded_hz, format=container, subtype=subtype, **encoder_options
    )
    file.seek(0)
    decoded, decoded_hz = soundfile.read(file, dtype="float32")
    if decoded_hz != rate_hz:
        decoded = soxr.resample(decoded, decoded_hz, rate_hz, quality="VHQ")
    result = np.zeros(len(samples), dtype=np.float32)
    result[: len(decoded)] = decoded[: len(result)]
    return result
