"""WAV from a pipe: 16-bit mono PCM whose header was written before the length was known."""

from __future__ import annotations

import struct

import numpy as np

from harness.model.errors import VoiceError
from harness.model.stimulus import Waveform


def parse(data: bytes, engine: str) -> Waveform:
    """The samples of a 16-bit mono WAV in memory, shape (n,), at its own rate.

    A data chunk whose size is zero or larger than what follows (a streamed header) holds all that follows.
    VoiceError when it is no such WAV or has no samples.
    """
    if not data:
        raise VoiceError(f"{engine} gave no sound", remedy="Give it words that it can pronounce")
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise VoiceError(f"{engine} did not give a WAV file but {data[:16]!r}")
    rate_hz = 0
    position = 12
    while position + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, position)
        position += 8
        if name == b"fmt ":
            if position + 16 > len(data):
                break
            coding, channels, rate_hz, _, _, bits = struct.unpack_from("<HHIIHH", data, position)
            if (coding, channels, bits) != (1, 1, 16) or not rate_hz:
                raise VoiceError(f"{engine} gave WAV coding {coding}, {channels} channels, {bits} bits, {rate_hz} Hz")
        elif name == b"data":
            if not rate_hz:
                break
            length = size if 0 < size <= len(data) - position else len(data) - position
            pcm = np.frombuffer(data, "<i2", length // 2, position)
            if not len(pcm):
                raise VoiceError(f"{engine} gave no sound", remedy="Give it words that it can pronounce")
            return Waveform((pcm / 32768).astype(np.float32), rate_hz)
        position += size + size % 2
    raise VoiceError(f"{engine} gave a WAV file that is cut off before its samples")
