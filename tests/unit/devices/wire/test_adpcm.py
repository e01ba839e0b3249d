"""Encodings of sound: known values, and how near the samples come back."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.wire.adpcm import (
    ADPCM_CHUNK,
    EncodedSound,
    Encoding,
    EncodingName,
    decode,
    decode_adpcm,
    decode_ulaw,
    encode_adpcm,
    encode_ulaw,
)


def speech_like(count: int) -> np.ndarray:
    time_s = np.arange(count) / 16000
    swell = 0.5 + 0.5 * np.sin(2 * np.pi * 3 * time_s)
    tones = np.sin(2 * np.pi * 180 * time_s) + 0.4 * np.sin(2 * np.pi * 720 * time_s)
    noise = np.random.default_rng(3).normal(0, 0.02, count)
    return (6000 * swell * tones + 6000 * noise).astype(np.int16)


def snr_db(samples: np.ndarray, decoded: np.ndarray) -> float:
    rest = samples.astype(float) - decoded
    return float(10 * np.log10(np.mean(samples.astype(float) ** 2) / np.mean(rest**2)))


def test_ulaw_is_that_of_g711() -> None:
    # Decoder output values of G.711, table 2a, times 4 (14 bits there, 16 here).
    assert decode_ulaw(bytes([0x80, 0x00, 0xFF, 0x7F, 0xF0, 0x8F])).tolist() == [32124, -32124, 0, 0, 120, 16764]
    codes = bytes(range(256))
    again = encode_ulaw(decode_ulaw(codes))
    assert [a for a, b in zip(again, codes, strict=True) if a != b] == [0xFF]  # −0 comes back as +0


@given(st.integers(-32768, 32767))
def test_ulaw_is_off_by_half_a_step_at_most(sample: int) -> None:
    back = int(decode_ulaw(encode_ulaw(np.array([sample], dtype=np.int16)))[0])
    assert abs(back - sample) <= max(4, (abs(sample) + 132) / 32, abs(sample) - 32124 if abs(sample) > 32124 else 0)


def test_adpcm_steps_are_those_of_the_recommendation() -> None:
    # Worked by hand from the rule: step 7, nibble 4 adds 7 + 7>>3 = 7; the index goes to 2 (step 9); nibble 0xC takes
    # 9 + 9>>3 = 10 away; the index goes to 4 (step 11).
    assert decode_adpcm(bytes.fromhex("64000000") + b"\xc4").tolist() == [107, 97]
    assert decode_adpcm(bytes.fromhex("ff7f5800") + b"\x77").tolist() == [32767, 32767]


def test_each_adpcm_frame_decodes_by_itself_and_near() -> None:
    samples = speech_like(16000)
    frames = encode_adpcm(samples)
    assert len(frames) == -(-16000 // ADPCM_CHUNK)
    decoded = np.concatenate([decode_adpcm(frame) for frame in frames])
    assert len(decoded) == len(samples)
    assert snr_db(samples, decoded) > 22


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("count", [0, 1, 2, 239, 240, 241, 1001])
def test_cuts_are_of_the_whole_sound(encoding: Encoding, count: int) -> None:
    samples = speech_like(count)
    sound = EncodedSound(samples, encoding)
    assert len(sound) == count + (count % 2 if encoding is Encoding.ADPCM else 0)
    parts, at = [np.zeros(0, np.int16)], 0
    while at < len(sound):
        end = min(len(sound), at + sound.largest)
        parts.append(decode(encoding, sound.cut(at, end)))
        assert len(parts[-1]) == end - at
        at = end
    whole = np.concatenate(parts)[:count]
    if encoding is Encoding.PCM16:
        assert np.array_equal(whole, samples)
    elif count > 200:
        assert snr_db(samples, whole) > 20


def test_adpcm_is_cut_on_its_grid_only() -> None:
    sound = EncodedSound(speech_like(1000), Encoding.ADPCM)
    with pytest.raises(ValueError, match="no frame"):
        sound.cut(10, 250)


@pytest.mark.parametrize("data", [b"", b"abc", b"\0\0\x59\0"])
def test_what_is_no_adpcm_frame_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="ADPCM"):
        decode_adpcm(data)


def test_a_minute_is_encoded_in_a_moment() -> None:
    samples, began_s = speech_like(16000 * 60), time.perf_counter()
    EncodedSound(samples, Encoding.ADPCM)
    assert time.perf_counter() - began_s < 2


def test_names_in_a_bench_are_the_encodings() -> None:
    assert [name.encoding for name in EncodingName] == [Encoding.PCM16, Encoding.ULAW, Encoding.ADPCM]
