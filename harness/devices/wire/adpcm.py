"""Sound for a wire: PCM16, µ-law (ITU-T G.711) and IMA ADPCM, in chunks that decode independently.

IMA ADPCM follows the recommendation of the Interactive Multimedia Association (1992). A chunk holds predictor i16, step
index u8, 0 u8, then a nibble per sample, low nibble first. The predictor is the state before the first nibble, not a
sample.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Pcm = npt.NDArray[np.int16]

ADPCM_CHUNK = 240  # 15 ms at 16 kHz, in 124 bytes.
_HEADER = struct.Struct("<hBB")
# fmt: off
_STEPS = np.array([
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107,
    118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963,
    1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894,
    6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794,
    32767], dtype=np.int32)
# fmt: on
_INDEX_CHANGES = np.array([-1, -1, -1, -1, 2, 4, 6, 8], dtype=np.int32)
"""How far a nibble, without its sign, moves the index of the step size."""
_BIAS = 132
_CLIP = 32635
"""The bias of µ-law (G.711: 33 of 14 bits, here in 16 bits), and the largest magnitude that fits 15 bits with it."""


class Encoding(IntEnum):
    """The first byte of an AUDIO payload."""

    PCM16 = 0
    ULAW = 1
    ADPCM = 2


class EncodedSound:
    """Samples that are cut into AUDIO data as the sender requests; `len()` is their number.

    A chunk has `min_chunk` to `max_chunk` samples; the last one may have fewer. ADPCM is encoded at once and cut on its
    own grid; an odd count gets one silent sample more.
    """

    def __init__(self, samples: Pcm, encoding: Encoding) -> None:
        self.encoding = encoding
        if encoding is Encoding.ADPCM:
            self.min_chunk = self.max_chunk = ADPCM_CHUNK
            if len(samples) % 2:
                samples = np.append(samples, np.int16(0))
            self._frames = encode_adpcm(samples)
        elif encoding is Encoding.ULAW:
            self.min_chunk, self.max_chunk = 128, 960  # 960 bytes fit a frame; PCM16 has two per sample
            self._bytes = encode_ulaw(samples)
        else:
            self.min_chunk, self.max_chunk = 64, 480
            self._bytes = samples.astype("<i2", copy=False).tobytes()
        self._count = len(samples)

    def __len__(self) -> int:
        return self._count

    def data(self, start: int, end: int) -> bytes:
        """The data of samples [start, end). Raises ValueError for a span off the grid of ADPCM."""
        if self.encoding is not Encoding.ADPCM:
            width = 2 if self.encoding is Encoding.PCM16 else 1
            return self._bytes[start * width : end * width]
        index, offset = divmod(start, ADPCM_CHUNK)
        if offset or end != min(start + ADPCM_CHUNK, self._count):
            raise ValueError(f"samples {start} to {end} are not a frame of {ADPCM_CHUNK} samples")
        return self._frames[index]


def encode_ulaw(samples: Pcm) -> bytes:
    """The samples in µ-law, one byte for each."""
    wide = samples.astype(np.int32)
    magnitude = np.minimum(np.abs(wide), _CLIP) + _BIAS
    exponent = np.frexp(magnitude.astype(np.float64))[1] - 8  # magnitude is 132 … 32767, so 0 … 7
    mantissa = (magnitude >> (exponent + 3)) & 0x0F
    sign = np.where(wide < 0, 0x80, 0)
    code: npt.NDArray[np.uint8] = (~(sign | (exponent << 4) | mantissa) & 0xFF).astype(np.uint8)
    return code.tobytes()


def decode_ulaw(data: bytes) -> Pcm:
    """The samples in µ-law data, shape (len(data),)."""
    code = ~np.frombuffer(data, dtype=np.uint8).astype(np.int32) & 0xFF
    magnitude = ((((code & 0x0F) << 3) + _BIAS) << ((code >> 4) & 7)) - _BIAS
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def encode_adpcm(samples: Pcm, chunk: int = ADPCM_CHUNK) -> tuple[bytes, ...]:
    """Frames of `chunk` samples (even; the last may be shorter), each after its own state. samples: even count.

    Encodes all frames in parallel. A first pass finds the step size that each frame passes to the next.
    """
    if chunk % 2 or len(samples) % 2:
        raise ValueError("ADPCM needs an even number of samples")
    if not len(samples):
        return ()
    count = -(-len(samples) // chunk)  # rounded up
    padded = np.zeros(count * chunk, dtype=np.int32)
    padded[: len(samples)] = samples
    columns = np.ascontiguousarray(padded.reshape(count, chunk).T)
    starts = np.full(count, 16, dtype=np.int32)  # each frame states its index, so that any will do for the first one
    _, end_indices = _encode_nibbles(columns, starts)
    starts[1:] = end_indices[:-1]
    nibbles, _ = _encode_nibbles(columns, starts)
    packed = (nibbles[0::2] | (nibbles[1::2] << 4)).T.astype(np.uint8)
    frames = [
        _HEADER.pack(int(columns[0, frame]), int(starts[frame]), 0) + packed[frame].tobytes() for frame in range(count)
    ]
    last_samples = len(samples) - (count - 1) * chunk
    frames[-1] = frames[-1][: _HEADER.size + last_samples // 2]
    return tuple(frames)


def _encode_nibbles(columns: npt.NDArray[np.int32], starts: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], ...]:
    """The nibbles, in the shape of `columns` (sample, frame), and the step index at the end of each frame."""
    predictor, index = columns[0].copy(), starts.copy()
    nibbles = np.empty_like(columns)
    for row, target in enumerate(columns):
        step = _STEPS[index]
        rest = np.abs(target - predictor)
        negative = target < predictor
        change, nibble = step >> 3, np.zeros_like(step)
        for bit, part in ((4, step), (2, step >> 1), (1, step >> 2)):
            is_set = rest >= part
            amount = np.where(is_set, part, 0)
            rest, change, nibble = rest - amount, change + amount, nibble + is_set * bit
        predictor = np.clip(predictor + np.where(negative, -change, change), -32768, 32767)
        index = np.clip(index + _INDEX_CHANGES[nibble], 0, len(_STEPS) - 1)
        nibbles[row] = nibble + negative * 8
    return nibbles, index


def decode_adpcm(data: bytes) -> Pcm:
    """Decodes a frame, two samples per byte. Raises ValueError for an invalid header."""
    if len(data) < _HEADER.size:
        raise ValueError("an ADPCM frame has a header of 4 bytes")
    predictor, index, _ = _HEADER.unpack_from(data)
    if index >= len(_STEPS):
        raise ValueError(f"an ADPCM step index must be at most {len(_STEPS) - 1}, not {index}")
    decoded = []
    for byte in data[_HEADER.size :]:
        for nibble in (byte & 0x0F, byte >> 4):
            step = int(_STEPS[index])
            change = (step >> 3) + sum(step >> shift for bit, shift in ((4, 0), (2, 1), (1, 2)) if nibble & bit)
            predictor = max(-32768, min(32767, predictor - change if nibble & 8 else predictor + change))
            index = max(0, min(len(_STEPS) - 1, index + int(_INDEX_CHANGES[nibble & 7])))
            decoded.append(predictor)
    return np.array(decoded, dtype=np.int16)


def decode(encoding: Encoding, data: bytes) -> Pcm:
    """The samples of an AUDIO frame's data. Raises ValueError for invalid data."""
    match encoding:
        case Encoding.PCM16:
            return np.frombuffer(data, dtype="<i2").astype(np.int16)
        case Encoding.ULAW:
            return decode_ulaw(data)
        case Encoding.ADPCM:
            return decode_adpcm(data)
