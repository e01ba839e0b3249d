"""Heads of WAVE files that are put together by hand: what is read, what is refused, and with which words."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from harness.model.offline import RejectReason
from harness.sound.wave_file import UnusableSound, WaveSound, check_whole, is_wave_file, read_wave

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


ENCODING, UNREADABLE = RejectReason.ENCODING, RejectReason.UNREADABLE
SOUND = tone(100).tobytes()
FMT, DATA = chunk(b"fmt ", fmt()), chunk(b"data", SOUND)


class Counted(io.BytesIO):
    """Counts what is read of it."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.bytes_read = 0
        self.reads = 0

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        self.bytes_read += len(content)
        self.reads += 1
        return content


def read(content: bytes) -> WaveSound:
    return read_wave(io.BytesIO(content), len(content))


def ds64(data_bytes: int, riff_bytes: int = 0) -> bytes:
    return chunk(b"ds64", struct.pack("<QQQI", riff_bytes, data_bytes, data_bytes // 2, 0))


@pytest.mark.parametrize(
    ("content", "offset"),
    [
        pytest.param(wave(FMT, DATA), 44, id="plain"),
        pytest.param(wave(chunk(b"fmt ", fmt() + b"\0\0"), DATA), 46, id="fmt-of-18"),
        pytest.param(wave(chunk(b"fmt ", extensible()), DATA), 68, id="extensible"),
        pytest.param(wave(chunk(b"fmt ", extensible(valid=0)), DATA), 68, id="extensible-valid-bits-unsaid"),
        pytest.param(wave(FMT, chunk(b"LIST", b"INFOISFT\4\0\0\0me\0\0"), DATA), 68, id="list-before"),
        pytest.param(wave(chunk(b"bext", b"odd"), FMT, DATA), 56, id="odd-chunk-before"),
        pytest.param(wave(FMT, DATA, behind=b"garbage that is no chunk"), 44, id="garbage-behind"),
        pytest.param(wave(FMT, DATA, chunk(b"LIST", b"INFO")), 44, id="list-behind"),
        pytest.param(wave(FMT, DATA, chunk(b"data", b"1234")), 44, id="a-second-data-chunk"),
        pytest.param(wave(FMT, DATA, says=0), 44, id="riff-size-never-written"),
        pytest.param(wave(FMT, DATA, says=99_999_999), 44, id="riff-size-too-big"),
        pytest.param(wave(FMT, chunk(b"data", SOUND, says=0xFFFFFFFF), says=0xFFFFFFFF), 44, id="ffmpeg-pipe"),
        pytest.param(wave(FMT, chunk(b"data", SOUND, says=0x7FFFF000), says=0x7FFFF024), 44, id="sox-pipe"),
        pytest.param(wave(FMT, chunk(b"data", SOUND, says=0), says=0), 44, id="both-sizes-0"),
        pytest.param(wave(FMT, chunk(b"data", SOUND, says=0), says=36), 44, id="head-never-filled-in"),
        pytest.param(
            wave(ds64(200), FMT, chunk(b"data", SOUND, says=0xFFFFFFFF), riff=b"RF64", says=0xFFFFFFFF), 80, id="rf64"
        ),
        pytest.param(
            wave(ds64(200), FMT, chunk(b"data", SOUND, says=0xFFFFFFFF), riff=b"BW64", says=0xFFFFFFFF), 80, id="bw64"
        ),
        pytest.param(wave(ds64(0), FMT, chunk(b"data", SOUND, says=0xFFFFFFFF), riff=b"RF64"), 80, id="rf64-streamed"),
        pytest.param(wave(ds64(7), FMT, DATA, riff=b"RF64"), 80, id="rf64-whose-data-chunk-has-a-size"),
        pytest.param(wave(FMT, chunk(b"data", SOUND + b"x")), 44, id="half-a-sample-more"),
        pytest.param(wave(FMT, chunk(b"data", SOUND, says=0x80000000), says=0x80000024), 44, id="arecord-pipe"),
        pytest.param(wave(FMT, chunk(b"data", SOUND, says=0xFFFFFFFF - 36), says=0xFFFFFFFF), 44, id="less-its-head"),
        pytest.param(wave(FMT, chunk(b"data", SOUND, says=244)), 44, id="44-too-many"),
        pytest.param(wave(FMT, chunk(b"data", SOUND, says=236), says=280), 44, id="36-too-many"),
        pytest.param(wave(chunk(b"LIST", b"INFO"), FMT, chunk(b"data", SOUND, says=256)), 56, id="as-long-as-the-file"),
        pytest.param(wave(chunk(b"note", b"abc")[:-1], FMT, DATA), 55, id="odd-chunk-without-padding"),
        pytest.param(
            wave(ds64(244), FMT, chunk(b"data", SOUND, says=0xFFFFFFFF), riff=b"RF64", says=0xFFFFFFFF),
            80,
            id="rf64-44-too-many",
        ),
    ],
)
def test_a_valid_head_is_read(content: bytes, offset: int) -> None:
    assert replace(read(content), assumed="") == WaveSound(offset, 100, 16000, 1)


LONG = tone(5000).tobytes()
HALF = chunk(b"data", LONG, says=5000)
BEHIND = bytes(5000)


@pytest.mark.parametrize(
    ("content", "frames", "assumed"),
    [
        pytest.param(wave(FMT, HALF), 5000, "declares 5000 of 10000 bytes of sound", id="riff-right"),
        pytest.param(wave(FMT, HALF, says=5036), 5000, "declares 5000 of 10000 bytes of sound", id="riff-half-too"),
        pytest.param(wave(FMT, chunk(b"data", LONG, says=0)), 5000, "declares 0 of 10000", id="size-0-riff-right"),
        pytest.param(wave(FMT, chunk(b"data", BEHIND + LONG, says=100)), 7500, "100 of 15000", id="silence-first"),
        pytest.param(
            wave(ds64(5000), FMT, chunk(b"data", LONG, says=0xFFFFFFFF), riff=b"RF64", says=0xFFFFFFFF),
            5000,
            "5000 of 10000",
            id="rf64",
        ),
        pytest.param(wave(FMT, chunk(b"data", LONG), behind=BEHIND), 5000, "", id="reserved-space"),
        pytest.param(wave(FMT, chunk(b"data", LONG), chunk(b"LIST", LONG)), 5000, "", id="a-long-list"),
        pytest.param(wave(FMT, chunk(b"data", LONG + b"x"), chunk(b"LIST", LONG)), 5000, "", id="an-odd-sound"),
        pytest.param(wave(FMT, chunk(b"data", LONG + b"x")[:-1], chunk(b"LIST", LONG)), 5000, "", id="and-no-padding"),
        pytest.param(wave(FMT, chunk(b"data", LONG), behind=b"ID3" + LONG), 5000, "", id="a-picture-in-a-tag"),
        pytest.param(wave(FMT, chunk(b"data", LONG), behind=LONG[:3000]), 5000, "", id="less-than-0.1-s"),
        pytest.param(wave(FMT, chunk(b"data", LONG), chunk(b"abcd", LONG)), 5000, "", id="an-unknown-chunk"),
        pytest.param(wave(FMT, HALF, says=0xFFFFFFFF), 5000, "5000 of 10000", id="riff-unknown"),
        pytest.param(wave(FMT, DATA, behind=wave(FMT, chunk(b"data", LONG))), 100, "another WAVE file", id="two-files"),
        pytest.param(wave(FMT, DATA, chunk(b"data", LONG)), 100, "a second `data` chunk", id="two-data"),
        pytest.param(wave(FMT, chunk(b"data", LONG, says=0xFFFFFFFF)), 5000, "declares no length", id="no-length"),
        pytest.param(wave(FMT, chunk(b"data", LONG, says=10044)), 5000, "10044 bytes of sound, but", id="44-too-many"),
    ],
)
def test_header_and_file_are_compared_and_what_was_assumed_is_said(content: bytes, frames: int, assumed: str) -> None:
    sound = read(content)
    assert sound.frames == frames
    assert assumed in sound.assumed
    assert bool(assumed) == bool(sound.assumed)


@pytest.mark.parametrize(
    ("content", "reason", "words"),
    [
        pytest.param(b"RIFX" + wave(FMT, DATA)[4:], ENCODING, "big-endian", id="big-endian"),
        pytest.param(wave(chunk(b"fmt ", fmt(FLOAT, bits=32)), DATA), ENCODING, "floating", id="float"),
        pytest.param(wave(chunk(b"fmt ", fmt(bits=8)), DATA), ENCODING, "8-bit PCM", id="8-bit"),
        pytest.param(wave(chunk(b"fmt ", fmt(bits=24)), DATA), ENCODING, "24-bit PCM", id="24-bit"),
        pytest.param(wave(chunk(b"fmt ", fmt(7, bits=8)), DATA), ENCODING, "µ-law, 8 bits", id="mu-law"),
        pytest.param(wave(chunk(b"fmt ", fmt(6, bits=8)), DATA), ENCODING, "A-law", id="a-law"),
        pytest.param(wave(chunk(b"fmt ", fmt(0x11, bits=4)), DATA), ENCODING, "IMA ADPCM", id="adpcm"),
        pytest.param(wave(chunk(b"fmt ", fmt(0x55, bits=0)), DATA), ENCODING, "MP3", id="mp3-in-wave"),
        pytest.param(wave(chunk(b"fmt ", fmt(0x4321)), DATA), ENCODING, "0x4321", id="unknown-format"),
        pytest.param(wave(chunk(b"fmt ", extensible(FLOAT, 32, 32)), DATA), ENCODING, "floating", id="ext-float"),
        pytest.param(wave(chunk(b"fmt ", extensible(tail=bytes(14))), DATA), ENCODING, "sub-format", id="ext-guid"),
        pytest.param(wave(chunk(b"fmt ", extensible(valid=12)), DATA), ENCODING, "12 of 16", id="12-bits"),
        pytest.param(wave(chunk(b"fmt ", fmt(EXTENSIBLE)), DATA), UNREADABLE, "too short", id="ext-too-short"),
        pytest.param(wave(chunk(b"fmt ", fmt(rate_hz=0)), DATA), UNREADABLE, "0 Hz", id="0-hz"),
        pytest.param(wave(chunk(b"fmt ", fmt(channels=0, block=2)), DATA), UNREADABLE, "0 channels", id="0-channels"),
        pytest.param(wave(chunk(b"fmt ", fmt(block=4)), DATA), UNREADABLE, "4 bytes", id="block-align"),
        pytest.param(wave(chunk(b"fmt ", fmt()[:12]), DATA), UNREADABLE, "12 bytes", id="short-fmt"),
        pytest.param(wave(DATA, FMT), UNREADABLE, "before", id="data-before-fmt"),
        pytest.param(wave(FMT), UNREADABLE, "no `data`", id="no-data"),
        pytest.param(wave(FMT) + b"dat", UNREADABLE, "no `data`", id="ends-within-a-head"),
        pytest.param(wave(FMT, chunk(b"LIST", b"", says=900), DATA), UNREADABLE, "'LIST' declares 900", id="list-lies"),
        pytest.param(
            wave(FMT, chunk(b"data", SOUND, says=1000)),
            UNREADABLE,
            "truncated: the header declares 1000 bytes of sound, but the file has 200",
            id="cut-off",
        ),
        pytest.param(
            wave(ds64(2**40), FMT, chunk(b"data", SOUND, says=0xFFFFFFFF), riff=b"RF64"),
            UNREADABLE,
            "truncated: the header declares 1099511627776",
            id="rf64-lies",
        ),
        pytest.param(wave(chunk(b"ds64", b"123"), FMT, DATA, riff=b"RF64"), UNREADABLE, "`ds64`", id="ds64-too-short"),
        pytest.param(wave(FMT, DATA, form=b"AVI "), UNREADABLE, "not a WAVE", id="another-riff"),
        pytest.param(wave(*[chunk(b"junk", b"")] * 2000, FMT, DATA), UNREADABLE, "1000", id="chunks"),
    ],
)
def test_an_invalid_head_is_refused(content: bytes, reason: RejectReason, words: str) -> None:
    with pytest.raises(UnusableSound) as refused:
        read(content)
    assert refused.value.reason is reason
    assert words in refused.value.detail


def test_an_empty_data_chunk_is_empty_and_not_what_follows_it() -> None:
    content = wave(FMT, chunk(b"data", b""), chunk(b"LIST", b"INFO" + bytes(400)))
    assert read(content).frames == 0


def test_a_walk_over_empty_chunks_ends_soon() -> None:
    file = Counted(wave(*[chunk(b"junk", b"")] * 100_000, FMT, DATA))
    with pytest.raises(UnusableSound):
        read_wave(file, len(file.getvalue()))
    assert file.reads < 2_000


PARTS = st.sampled_from(
    [FMT, DATA, chunk(b"LIST", b"INFO"), chunk(b"fmt ", extensible()), ds64(200), chunk(b"x", b"odd")]
)
HEADS = st.builds(
    lambda riff, parts, says: wave(*parts, riff=riff, says=says),
    st.sampled_from([b"RIFF", b"RF64", b"BW64", b"RIFX"]),
    st.lists(PARTS, max_size=6),
    st.none() | st.integers(0, 0xFFFFFFFF),
)
CHANGES = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 255)), max_size=8)


@given(HEADS, CHANGES, st.integers(0, 400))
def test_any_head_is_read_or_refused_and_never_beyond_the_file(
    head: bytes, changes: list[tuple[int, int]], length: int
) -> None:
    content = bytearray(head)
    for index, value in changes:
        if index < len(content):
            content[index] = value
    file = Counted(bytes(content[:length]))
    size = len(file.getvalue())
    reason = None
    try:
        sound = read_wave(file, size)
    except UnusableSound as refused:
        reason = refused.reason
    else:
        assert sound.channels > 0
        assert sound.rate_hz > 0
        assert sound.frames >= 0
        assert sound.offset + 2 * sound.channels * sound.frames <= size
    assert reason in (None, UNREADABLE, ENCODING)
    assert file.bytes_read <= 3 * size + 64


@pytest.mark.parametrize(
    ("start", "reason", "words"),
    [
        (b"OggS\0\2", ENCODING, "Ogg"),
        (b"\xff\xfb\x90\x64", ENCODING, "MP3"),
        (b"\xff\xf3\x14\xc4", ENCODING, "MP3"),
        (b"\0\0\0\x20ftypM4A ", ENCODING, "MPEG-4"),
        (b"\x1a\x45\xdf\xa3\x9f\x42", ENCODING, "WebM"),
        (b"#!AMR-WB\n", ENCODING, "AMR"),
        ("a.wav\n".encode("utf-16-le"), UNREADABLE, "not a supported"),
        (b"\xff\xfea\0.\0", UNREADABLE, "not a supported"),
        (b"\xff\xff\xff\xff", UNREADABLE, "not a supported"),
        (b"\xff", UNREADABLE, "not a supported"),
        (b"RIFF\0\0\0\0AVI LIST", UNREADABLE, "not a supported"),
        (b"version https://git-lfs.github.com/spec/v1", UNREADABLE, "not a supported"),
        (b"<!DOCTYPE html>", UNREADABLE, "not a supported"),
    ],
)
def test_unsupported_wave_files_are_refused(start: bytes, reason: RejectReason, words: str) -> None:
    with pytest.raises(UnusableSound, match=words) as refused:
        is_wave_file(start)
    assert refused.value.reason is reason


READS = """
import sys, soundfile
from harness.sound.sound_files import UnusableSound, open_sound
try:
    soundfile.read(sys.argv[2]) if sys.argv[1] == "plainly" else open_sound(sys.argv[2], 16000, resample=False)
except UnusableSound:
    pass
"""


def test_readers_that_print_are_not_tried(tmp_path: Path) -> None:
    path = tmp_path / "a.sds"
    soundfile.write(path, tone(3000), 16000, "PCM_16")
    content = bytearray(path.read_bytes())
    content[21] = 0  # the first block's mark
    path.write_bytes(content)
    printed = {
        way: subprocess.run([sys.executable, "-c", READS, way, str(path)], capture_output=True, check=True)
        for way in ("plainly", "ours")
    }
    assert b"Error" in printed["plainly"].stdout
    assert (printed["ours"].stdout, printed["ours"].stderr) == (b"", b"")


class CountedReads(io.BytesIO):
    """A file in memory that counts how often it is read."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


def test_caf_file_of_empty_chunks_is_given_up_soon() -> None:
    content = b"caff" + bytes(4) + 100_000 * (b"free" + bytes(8))
    file = CountedReads(content)
    assert check_whole(file, len(content)) is None
    assert file.reads < 2000
