"""RIFF/WAVE files put together by hand, so that any part of them can be wrong."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


def tone(samples: int, seed: int = 1) -> npt.NDArray[np.int16]:
    """Sound that no two places of are alike."""
    return np.random.default_rng(seed).integers(-32768, 32768, samples, dtype=np.int16)


def fmt(tag: int = PCM, channels: int = 1, rate_hz: int = 16000, bits: int = 16, block: int | None = None) -> bytes:
    block = channels * bits // 8 if block is None else block
    return struct.pack("<HHIIHH", tag, channels, rate_hz, (rate_hz * block) & 0xFFFFFFFF, block, bits)


def extensible(sub: int = PCM, bits: int = 16, valid: int = 16, tail: bytes = GUID_TAIL) -> bytes:
    return fmt(EXTENSIBLE, bits=bits) + struct.pack("<HHIH", 22, valid, 4, sub) + tail


def chunk(name: bytes, content: bytes, says: int | None = None) -> bytes:
    size = len(content) if says is None else says
    return name + struct.pack("<I", size) + content + b"\0" * (len(content) % 2)


def wave(
    *chunks: bytes, riff: bytes = b"RIFF", says: int | None = None, behind: bytes = b"", form: bytes = b"WAVE"
) -> bytes:
    body = form + b"".join(chunks)
    return riff + struct.pack("<I", len(body) if says is None else says) + body + behind
