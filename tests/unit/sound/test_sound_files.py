"""Sound files and lists as an evaluation reads them, also behind addresses: exact, or refused."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import struct
import sys
import tempfile
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import numpy.typing as npt
import pytest
import soundfile
import soxr
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.model.offline import RejectReason
from harness.offline.lists import read_lists
from harness.offline.one_file import read_reference
from harness.sound.sound_files import (
    BLOCK_SAMPLES,
    HELD_BYTES,
    MappedWave,
    StreamedWave,
    UnusableSound,
    open_sound,
    wave_source,
)
from harness.sound.sound_stores import is_address, kind_of_store, local_path, rough_seconds
from harness.sound.wave_file import WaveSound
from tests.files import file_with
from tests.unit.sound.test_wave_file import chunk, fmt, tone, wave

RATE_HZ = 16000


def all_of(path: Path | str, rate_hz: int = RATE_HZ, resample: bool = False) -> npt.NDArray[np.int16]:
    with open_sound(str(path), rate_hz, resample=resample) as sound:
        blocks = list(sound.blocks())
        assert all(len(block) for block in blocks)
        assert all(block.dtype == np.int16 and block.ndim == 1 for block in blocks)
        together = np.concatenate(blocks)
        if sound.rate_hz == rate_hz:
            assert len(together) == sound.samples
        return together


def refusal(path: Path | str, rate_hz: int = RATE_HZ, resample: bool = False) -> UnusableSound:
    with pytest.raises(UnusableSound) as refused:
        all_of(path, rate_hz, resample)
    return refused.value


@pytest.mark.parametrize("form", ["WAV", "WAVEX", "RF64", "W64", "FLAC", "AIFF", "AU", "CAF", "NIST"])
@pytest.mark.parametrize("samples", [1, 1023, 300_001])
def test_whatever_holds_16_bit_mono_gives_exactly_its_samples(tmp_path: Path, form: str, samples: int) -> None:
    path = tmp_path / f"a.{form.lower()}"
    soundfile.write(path, tone(samples), RATE_HZ, "PCM_16", format=form)
    np.testing.assert_array_equal(all_of(path), tone(samples))


def test_a_wave_file_is_mapped_in_blocks_without_a_copy_and_reading_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    sound = tone(2 * BLOCK_SAMPLES + 5)
    soundfile.write(path, sound, RATE_HZ, "PCM_16")
    with path.open("rb") as file:
        source = MappedWave(file, WaveSound(44, len(sound), RATE_HZ, 1))
        mapped = list(source.blocks())
        read = list(StreamedWave(file, WaveSound(44, len(sound), RATE_HZ, 1)).blocks())
    assert [len(block) for block in mapped] == [BLOCK_SAMPLES, BLOCK_SAMPLES, 5]
    assert not any(block.flags.owndata for block in mapped)
    np.testing.assert_array_equal(np.concatenate(read), sound)


def test_the_map_is_for_long_files_on_file_systems_of_this_machine() -> None:
    """/dev/shm is a tmpfs; /proc is none that sound would lie in, and stands for all that are not known."""
    sound = WaveSound(44, 1000, RATE_HZ, 1)
    with tempfile.TemporaryFile(dir="/dev/shm") as file:
        assert isinstance(wave_source(file, sound), MappedWave)
    with open("/proc/version", "rb") as file:
        assert isinstance(wave_source(file, sound), StreamedWave)


def test_sound_at_an_odd_place_of_the_file_is_read(tmp_path: Path) -> None:
    """No even number of bytes ahead of it: a list of chunks allows it, a map of 16-bit samples does not."""
    content = wave(chunk(b"fmt ", fmt()), chunk(b"data", tone(50).tobytes()))
    path = file_with(tmp_path / "a.wav", b"x" + content)
    with path.open("rb") as file:
        blocks = list(wave_source(file, WaveSound(45, 50, RATE_HZ, 1)).blocks())
    np.testing.assert_array_equal(np.concatenate(blocks), tone(50))


@pytest.mark.parametrize(
    ("name", "form", "subtype", "channels", "reason"),
    [
        ("a.wav", "WAV", "PCM_16", 2, RejectReason.CHANNELS),
        ("a.flac", "FLAC", "PCM_16", 2, RejectReason.CHANNELS),
        ("a.wav", "WAV", "PCM_24", 1, RejectReason.ENCODING),
        ("a.wav", "WAV", "PCM_U8", 1, RejectReason.ENCODING),
        ("a.wav", "WAV", "FLOAT", 1, RejectReason.ENCODING),
        ("a.wav", "WAV", "ULAW", 1, RejectReason.ENCODING),
        ("a.wav", "WAV", "MS_ADPCM", 1, RejectReason.ENCODING),
        ("a.wav", "WAVEX", "PCM_32", 1, RejectReason.ENCODING),
        ("a.flac", "FLAC", "PCM_24", 1, RejectReason.ENCODING),
        ("a.aiff", "AIFF", "PCM_24", 1, RejectReason.ENCODING),
        ("a.ogg", "OGG", "VORBIS", 1, RejectReason.ENCODING),
        ("a.opus", "OGG", "OPUS", 1, RejectReason.ENCODING),
        ("a.mp3", "MP3", "MPEG_LAYER_III", 1, RejectReason.ENCODING),
    ],
)
def test_another_encoding_or_more_channels_are_refused_even_with_resample(
    tmp_path: Path, name: str, form: str, subtype: str, channels: int, reason: RejectReason
) -> None:
    sound = np.stack([tone(RATE_HZ)] * channels, axis=1)
    soundfile.write(tmp_path / name, sound, RATE_HZ, subtype, format=form)
    assert refusal(tmp_path / name).reason is reason
    assert refusal(tmp_path / name, resample=True).reason is reason


@pytest.mark.parametrize("ending", ["wav", "flac"])
@pytest.mark.parametrize("rate_hz", [8000, 15999, 16001, 44100, 48000])
def test_another_rate_is_refused(tmp_path: Path, ending: str, rate_hz: int) -> None:
    path = tmp_path / f"a.{ending}"
    soundfile.write(path, tone(1000), rate_hz, "PCM_16")
    refused = refusal(path)
    assert refused.reason is RejectReason.RATE
    assert str(rate_hz) in refused.detail


@pytest.mark.parametrize("rate_hz", [1, 999, 768_001, 4_000_000_000])
def test_an_absurd_rate_is_refused_even_with_resample(tmp_path: Path, rate_hz: int) -> None:
    path = file_with(
        tmp_path / "a.wav", wave(chunk(b"fmt ", fmt(rate_hz=rate_hz)), chunk(b"data", tone(400).tobytes()))
    )
    assert refusal(path, resample=True).reason is RejectReason.RATE


@pytest.mark.parametrize("ending", ["wav", "flac"])
@pytest.mark.parametrize(("rate_hz", "samples"), [(44100, 400_003), (8000, 70_001), (11025, 1)])
def test_resampling_gives_soxrs_sound_rounded_and_keeps_the_files_own_count(
    tmp_path: Path, ending: str, rate_hz: int, samples: int
) -> None:
    path = tmp_path / f"a.{ending}"
    sound = tone(samples)
    soundfile.write(path, sound, rate_hz, "PCM_16")
    with open_sound(str(path), RATE_HZ, resample=True) as stream:
        assert (stream.samples, stream.rate_hz) == (samples, rate_hz)
        blocks = list(stream.blocks())
    whole = soxr.resample(sound.astype(np.float32), rate_hz, RATE_HZ, quality="HQ")
    expected = np.clip(np.rint(whole), -32768, 32767).astype(np.int16)
    read = np.concatenate(blocks)
    assert abs(len(read) - samples * RATE_HZ / rate_hz) <= 1
    assert len(read) == len(expected)
    # In pieces or at once: float32 sums differ in their last bit, which moves a rounding now and then.
    assert np.abs(read.astype(int) - expected).max(initial=0) <= 1


def test_resampling_clips_at_full_scale_and_does_not_wrap(tmp_path: Path) -> None:
    square = np.where(np.arange(48_000) // 60 % 2, 32767, -32768).astype(np.int16)
    soundfile.write(tmp_path / "a.wav", square, 48000, "PCM_16")
    read = all_of(tmp_path / "a.wav", resample=True)
    assert read.max() == 32767
    assert read.min() == -32768
    # 20 samples a half wave; its middle keeps the sign of the wave where an overflow would turn it over.
    middles = read[410:15000:20]
    assert (np.sign(middles[1:]) == -np.sign(middles[:-1])).all()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", RejectReason.EMPTY, id="no-bytes"),
        pytest.param(wave(chunk(b"fmt ", fmt()), chunk(b"data", b"")), RejectReason.EMPTY, id="no-samples"),
        pytest.param(wave(chunk(b"fmt ", fmt()), chunk(b"data", b"x")), RejectReason.EMPTY, id="half-a-sample"),
        pytest.param(b"R", RejectReason.UNREADABLE, id="one-byte"),
        pytest.param(b"RIFF", RejectReason.UNREADABLE, id="four-bytes"),
        pytest.param(b"Not sound but a text.\n" * 50, RejectReason.UNREADABLE, id="text"),
        pytest.param(bytes(5000), RejectReason.UNREADABLE, id="zeros"),
        pytest.param(b"fLaC", RejectReason.UNREADABLE, id="flac-mark-alone"),
    ],
)
@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.raw", "a"])
def test_file_without_sound_is_refused(tmp_path: Path, content: bytes, reason: RejectReason, name: str) -> None:
    path = file_with(tmp_path / name, content)
    assert refusal(path).reason is reason


def test_only_files_proper_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.wav")
    (tmp_path / "loop.wav").symlink_to("loop.wav")
    (tmp_path / "nowhere.wav").symlink_to("gone.wav")
    (tmp_path / "zero.wav").symlink_to("/dev/zero")
    (tmp_path / "folder.wav").mkdir()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "socket.wav"))
    listening.close()
    (tmp_path / "locked.wav").touch(0)
    for name, words in {
        **({} if os.geteuid() == 0 else {"locked.wav": "Permission"}),  # root may read everything
        "pipe.wav": "a pipe",
        "loop.wav": "symbolic links",
        "nowhere.wav": "No such file",
        "zero.wav": "a device",
        "folder.wav": "a folder",
        "socket.wav": "a socket",
        "gone.wav": "No such file",
        "x" * 300: "too long",
        "nul\0.wav": "not a valid file name",
    }.items():
        path = f"{tmp_path}/{name}"
        refused = refusal(path)
        assert refused.reason is RejectReason.UNREADABLE
        assert words in refused.detail
        assert rough_seconds(path) >= 0


def flac(tmp_path: Path, samples: int = 100_000) -> bytearray:
    soundfile.write(tmp_path / "whole.flac", tone(samples) // 8, RATE_HZ, "PCM_16")
    return bytearray((tmp_path / "whole.flac").read_bytes())


def claiming(content: bytearray, samples: int) -> bytes:
    """A FLAC file whose STREAMINFO says that it has so many samples (36 bits)."""
    changed = bytearray(content)
    changed[21] = changed[21] & 0xF0 | samples >> 32
    changed[22:26] = struct.pack(">I", samples & 0xFFFFFFFF)
    return bytes(changed)


def test_a_flac_file_that_claims_hours_it_has_not_costs_no_memory_and_is_refused(tmp_path: Path) -> None:
    path = file_with(tmp_path / "a.flac", claiming(flac(tmp_path), 2**36 - 1))
    tracemalloc.start()
    try:
        refused = refusal(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.reason is RejectReason.UNREADABLE
    assert "68719476735 samples, but the file has 100000" in refused.detail
    assert peak < 4 << 20


def test_a_flac_file_that_does_not_know_its_length_is_counted(tmp_path: Path) -> None:
    path = file_with(tmp_path / "a.flac", claiming(flac(tmp_path), 0))
    np.testing.assert_array_equal(all_of(path), tone(100_000) // 8)


def test_an_hour_of_silence_in_a_small_flac_file_is_read_within_a_blocks_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.flac"
    with soundfile.SoundFile(path, "w", RATE_HZ, 1, "PCM_16") as file:
        for _ in range(60):
            file.write(np.zeros(60 * RATE_HZ, np.int16))
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with open_sound(str(path), RATE_HZ, resample=False) as sound:
            assert sum(len(block) for block in sound.blocks()) == sound.samples == 3600 * RATE_HZ
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20, "the samples are 115 MB"


def test_a_damaged_or_cut_flac_file_is_refused(tmp_path: Path) -> None:
    content = flac(tmp_path)
    for damaged in (content[: len(content) // 2], content[:50_000] + bytes(500) + content[50_500:]):
        (tmp_path / "a.flac").write_bytes(damaged)
        assert refusal(tmp_path / "a.flac").reason is RejectReason.UNREADABLE


CHANGES = st.lists(st.tuples(st.integers(0, 199), st.integers(0, 255)), min_size=1, max_size=6)


@given(st.sampled_from(["FLAC", "AIFF", "W64", "CAF", "AU", "NIST", "OGG", "MP3", "WAV"]), CHANGES, st.booleans())
def test_any_change_of_a_head_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, form: str, changes: list[tuple[int, int]], resample: bool
) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / f"changed.{form}"
    soundfile.write(path, tone(3000), RATE_HZ, format=form)
    content = bytearray(path.read_bytes())
    for index, value in changes:
        if index < len(content):
            content[index] = value
    path.write_bytes(content)
    try:
        with open_sound(str(path), RATE_HZ, resample=resample) as sound:
            read = sum(len(block) for block in sound.blocks())
            assert sound.samples > 0
            if sound.rate_hz == RATE_HZ:
                assert read == sound.samples
            assert read <= 16 * 100_000  # nothing much longer than what was written comes out of it
    except UnusableSound:
        pass


def test_rough_seconds_are_near_for_wave_and_flac(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", tone(32_000), RATE_HZ)
    assert rough_seconds(str(tmp_path / "a.wav")) == pytest.approx(2, rel=0.01)
    assert rough_seconds(f"file://{tmp_path}/a.wav") == pytest.approx(2, rel=0.01)
    assert rough_seconds("s3://bucket/a.wav") == 0


@pytest.mark.parametrize("left", [0, 20, 44 + BLOCK_SAMPLES, 44 + 2 * BLOCK_SAMPLES + 10_001])
def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path, left: int) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(3 * BLOCK_SAMPLES), RATE_HZ, "PCM_16")
    with open_sound(str(path), RATE_HZ, resample=False) as sound:
        blocks = sound.blocks()
        next(blocks)
        os.truncate(path, left)
        with pytest.raises(UnusableSound, match="changed") as refused:
            list(blocks)
    assert refused.value.reason is RejectReason.UNREADABLE


def test_a_long_file_that_shrinks_before_it_is_read_or_grows_at_its_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    for left in (100, 0):
        soundfile.write(path, tone(HELD_BYTES), RATE_HZ, "PCM_16")
        with open_sound(str(path), RATE_HZ, resample=False) as sound:
            os.truncate(path, left)
            with pytest.raises(UnusableSound):
                list(sound.blocks())
    soundfile.write(path, tone(HELD_BYTES), RATE_HZ, "PCM_16")
    with open_sound(str(path), RATE_HZ, resample=False) as sound, path.open("ab", buffering=0) as file:
        for number, _ in enumerate(blocks := sound.blocks(), start=1):
            if number == -(-HELD_BYTES // BLOCK_SAMPLES):
                break
        file.write(b"more")
        with pytest.raises(UnusableSound, match="changed"):
            next(blocks)


def test_a_short_file_is_read_when_it_is_opened(tmp_path: Path) -> None:
    """What happens to it afterwards is nothing to its sound."""
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(1000), RATE_HZ, "PCM_16")
    with open_sound(str(path), RATE_HZ, resample=False) as sound:
        os.truncate(path, 0)
        [block] = sound.blocks()
    np.testing.assert_array_equal(block, tone(1000))


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
@pytest.mark.parametrize("samples", [1000, 1_000_000])
def test_the_hash_is_that_of_the_files_bytes(tmp_path: Path, name: str, samples: int) -> None:
    soundfile.write(tmp_path / name, tone(samples), RATE_HZ, "PCM_16")
    with open_sound(str(tmp_path / name), RATE_HZ, resample=False, hashed=True) as sound:
        read = np.concatenate(list(sound.blocks()))
    assert sound.sha256 == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    np.testing.assert_array_equal(read, tone(samples))
    with open_sound(str(tmp_path / name), RATE_HZ, resample=False) as sound:
        assert sound.sha256 == ""


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    store = fsspec.filesystem("memory")
    yield store
    store.rm("/sound", recursive=True)


def put(store: Any, path: str, samples: int, form: str = "WAV", rate_hz: int = RATE_HZ) -> bytes:
    content = io.BytesIO()
    soundfile.write(content, tone(samples), rate_hz, "PCM_16", format=form)
    store.pipe_file(path, content.getvalue())
    return content.getvalue()


class FailingFile(io.BytesIO):
    """Of a store that loses its connection when more than the first 100,000 bytes are asked for."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > 100_000:
            raise RuntimeError("connection reset\nby the store")
        return super().read(min(size, 50_000) if size and size > 0 else size)


class CountedFile(io.BytesIO):
    """Of a store that counts the bytes that it sends."""

    sent = 0

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        CountedFile.sent += len(content)
        return content


def store_of(kind: type[io.BytesIO]) -> str:
    """An address of the memory's /sound/a, whose file is of that kind."""

    class Store(MemoryFileSystem):  # type: ignore[misc]
        protocol = kind.__name__.lower()

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return str(super()._strip_protocol(path.replace(f"{cls.protocol}://", "memory://")))

        def _open(self, path: str, *args: Any, **kwargs: Any) -> Any:
            return kind(super()._open(path, *args, **kwargs).getvalue())

    fsspec.register_implementation(Store.protocol, Store, clobber=True)
    return f"{Store.protocol}://sound/a"


@pytest.mark.parametrize("form", ["WAV", "RF64", "FLAC", "AIFF"])
def test_a_store_gives_exactly_its_samples(memory: MemoryFileSystem, form: str) -> None:
    put(memory, "/sound/a", BLOCK_SAMPLES + 5, form)
    np.testing.assert_array_equal(all_of("memory://sound/a"), tone(BLOCK_SAMPLES + 5))


def test_a_local_address_is_the_local_file(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a b%20.wav", tone(100), RATE_HZ)
    np.testing.assert_array_equal(all_of(f"file://{tmp_path}/a b%20.wav"), tone(100))
    assert refusal("file:///dev/zero").detail == "a device, not a file"


def test_a_file_in_an_archive_in_a_store_or_on_the_disk(memory: MemoryFileSystem, tmp_path: Path) -> None:
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("deep/a.wav", put(memory, "/sound/a.wav", 70_000))
    memory.pipe_file("/sound/all.zip", archive.read_bytes())
    for address in ("memory://sound/all.zip", f"file://{archive}"):
        np.testing.assert_array_equal(all_of(f"zip://deep/a.wav::{address}"), tone(70_000))


@pytest.mark.parametrize("form", ["WAV", "FLAC"])
@pytest.mark.parametrize("samples", [30_000, 4_000_000])
def test_a_store_sends_a_file_once_for_its_hash_and_its_sound(
    memory: MemoryFileSystem, form: str, samples: int
) -> None:
    content = put(memory, "/sound/a", samples, form)
    CountedFile.sent = 0
    with open_sound(store_of(CountedFile), RATE_HZ, resample=False, hashed=True) as sound:
        read = np.concatenate(list(sound.blocks()))
    assert sound.sha256 == hashlib.sha256(content).hexdigest()
    np.testing.assert_array_equal(read, tone(samples))
    assert CountedFile.sent <= len(content)


def test_missing_store_file_is_refused(memory: MemoryFileSystem) -> None:
    memory.pipe_file("/sound/a", b"")
    refused = refusal("memory://sound/gone.wav")
    assert (refused.reason, refused.detail) == (RejectReason.UNREADABLE, "No such file in the store")
    assert refusal("memory://sound/a").reason is RejectReason.EMPTY


@pytest.mark.parametrize("form", ["WAV", "FLAC"])
def test_a_store_that_fails_is_told_in_its_own_words(
    memory: MemoryFileSystem, form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    put(memory, "/sound/a", 2_000_000, form)
    refused = refusal(store_of(FailingFile))
    assert (refused.reason, refused.detail) == (RejectReason.UNREADABLE, "connection reset by the store")
    assert capfd.readouterr().err == ""


def test_an_unknown_kind_of_store_is_refused_with_the_lists_line(tmp_path: Path) -> None:
    (tmp_path / "inv.txt").write_text("/a.wav\nnostore://a/b.wav\n")
    with pytest.raises(InputError, match=r"inv\.txt:2: nostore:// is not a supported kind of store.*s3://"):
        read_lists([str(tmp_path / "inv.txt")], [], [])


def test_without_fsspec_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)  # as if it were not installed
    (tmp_path / "inv.txt").write_text("s3://bucket/b.wav\n")
    for read in (
        lambda: read_lists([str(tmp_path / "inv.txt")], [], []),
        lambda: all_of("s3://bucket/b.wav"),
        lambda: read_lists(["s3://bucket/inv.txt"], [], []),
    ):
        with pytest.raises(InputError, match=r"pip install 'fsspec>="):
            read()


def test_a_stores_own_package_is_named_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adlfs", None)  # as if it were not installed
    (tmp_path / "inv.txt").write_text("abfs://container/b.wav\n")
    with pytest.raises(InputError, match=r"inv\.txt:1: .*adlfs.*Install the package"):
        read_lists([str(tmp_path / "inv.txt")], [], [])


def test_a_list_in_a_store_names_what_stands_beside_it(
    memory: MemoryFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.wav").write_bytes(b"")
    put(memory, "/sound/deep/a.wav", 100)
    memory.pipe_file("/sound/a.txt", b"hey there\n")
    memory.pipe_file("/sound/c.csv", b"deep/a.wav,a.txt\nhere.wav,a.txt\nmemory://sound/deep/a.wav,a.txt\n")
    listing = read_lists([], [], ["memory://sound/c.csv"])
    first, second, third = listing.files
    assert (first.listed, first.path) == ("deep/a.wav", "memory://sound/deep/a.wav")
    assert second.path == str(tmp_path / "here.wav")
    assert third.rejected is RejectReason.TWICE
    assert listing.bases == (str(tmp_path), "memory://sound")
    assert read_reference(first.reference) == "hey there"
    np.testing.assert_array_equal(all_of(first.path), tone(100))
    with pytest.raises(InputError, match="cannot be read: No such file in the store"):
        read_lists(["memory://sound/gone.txt"], [], [])


@pytest.mark.parametrize(
    ("name", "address", "kind", "local"),
    [
        ("s3://bucket/a.wav", True, "s3", None),
        ("zip://a.wav::s3://b/c.zip", True, "zip::s3", None),
        ("simplecache::https://host/a.wav", True, "simplecache::https", None),
        ("file:///a/b.wav", True, "file", "/a/b.wav"),
        ("file://b.wav", True, "file", "b.wav"),
        ("c://a.wav", False, "", None),
        ("/a/b://c.wav", False, "", None),
        ("a:b.wav", False, "", None),
        ("://a.wav", False, "", None),
    ],
)
def test_addresses_are_distinguished_from_local_paths(name: str, address: bool, kind: str, local: str | None) -> None:
    assert is_address(name) is address
    if address:
        assert kind_of_store(name) == kind
    assert local_path(name) == local
