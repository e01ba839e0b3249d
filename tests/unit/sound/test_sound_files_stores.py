"""Sound and lists behind addresses, by fsspec: in memory, in local files, in archives, and in a store that fails."""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import soundfile
from fsspec.implementations.memory import MemoryFileSystem

from harness.model.errors import InputError
from harness.model.offline import RejectReason
from harness.offline.lists import read_lists
from harness.offline.one_file import read_reference
from harness.sound.sound_files import BLOCK_SAMPLES, UnusableSound, open_sound
from harness.sound.sound_stores import is_address, kind_of_store, local_path
from tests.unit.sound.wave_heads import tone

RATE_HZ = 16000


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


def all_of(address: str, resample: bool = False) -> np.ndarray[Any, np.dtype[np.int16]]:
    with open_sound(address, RATE_HZ, resample=resample) as sound:
        return np.concatenate(list(sound.blocks()))


def refusal(address: str) -> UnusableSound:
    with pytest.raises(UnusableSound) as refused:
        all_of(address)
    return refused.value


class FailingStore(MemoryFileSystem):  # type: ignore[misc]
    """A store that loses its connection when more than the first 100,000 bytes of a file are asked for."""

    protocol = "failing"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("failing://", "memory://")))

    def _open(self, path: str, *args: Any, **kwargs: Any) -> Any:
        whole = super()._open(path, *args, **kwargs)
        return BreakingFile(whole.getvalue())


class BreakingFile(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > 100_000:
            raise RuntimeError("connection reset\nby the store")
        return super().read(min(size, 50_000) if size and size > 0 else size)


@pytest.mark.parametrize("form", ["WAV", "RF64", "FLAC", "AIFF"])
def test_a_store_gives_exactly_its_samples(memory: MemoryFileSystem, form: str) -> None:
    put(memory, "/sound/a", BLOCK_SAMPLES + 5, form)
    np.testing.assert_array_equal(all_of("memory://sound/a"), tone(BLOCK_SAMPLES + 5))


def test_a_local_address_is_the_local_file(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a b%20.wav", tone(100), RATE_HZ)
    np.testing.assert_array_equal(all_of(f"file://{tmp_path}/a b%20.wav"), tone(100))
    assert refusal("file:///dev/zero").detail == "a device, not a file"


def test_a_file_in_an_archive_in_a_store(memory: MemoryFileSystem) -> None:
    sound = put(memory, "/sound/a.wav", 70_000)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("deep/a.wav", sound)
    memory.pipe_file("/sound/all.zip", archive.getvalue())
    address = "zip://deep/a.wav::memory://sound/all.zip"
    np.testing.assert_array_equal(all_of(address), tone(70_000))


class CountingStore(MemoryFileSystem):  # type: ignore[misc]
    """A store that counts the bytes that it sends."""

    protocol = "counting"
    sent = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("counting://", "memory://")))

    def _open(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return CountedFile(super()._open(path, *args, **kwargs).getvalue())


class CountedFile(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        CountingStore.sent += len(content)
        return content


@pytest.mark.parametrize("form", ["WAV", "FLAC"])
@pytest.mark.parametrize("samples", [30_000, 4_000_000])
def test_a_store_sends_a_file_once_for_its_hash_and_its_sound(
    memory: MemoryFileSystem, form: str, samples: int
) -> None:
    fsspec.register_implementation("counting", CountingStore, clobber=True)
    content = put(memory, "/sound/a", samples, form)
    CountingStore.sent = 0
    with open_sound("counting://sound/a", RATE_HZ, resample=False, hashed=True) as sound:
        read = np.concatenate(list(sound.blocks()))
    assert sound.sha256 == hashlib.sha256(content).hexdigest()
    np.testing.assert_array_equal(read, tone(samples))
    assert CountingStore.sent <= len(content)


def test_a_file_in_an_archive_on_the_disk(tmp_path: Path) -> None:
    sound, archive = tmp_path / "a.wav", tmp_path / "all.zip"
    soundfile.write(sound, tone(20_000), RATE_HZ, subtype="PCM_16")
    with zipfile.ZipFile(archive, "w") as into:
        into.write(sound, "a.wav")
    np.testing.assert_array_equal(all_of(f"zip://a.wav::file://{archive}"), tone(20_000))


def test_another_rate_behind_an_address(memory: MemoryFileSystem) -> None:
    put(memory, "/sound/a.wav", 48_000, rate_hz=48_000)
    assert refusal("memory://sound/a.wav").reason is RejectReason.RATE
    assert abs(len(all_of("memory://sound/a.wav", resample=True)) - 16_000) <= 1


def test_what_is_not_there_is_refused(memory: MemoryFileSystem) -> None:
    memory.pipe_file("/sound/a", b"")
    refused = refusal("memory://sound/gone.wav")
    assert (refused.reason, refused.detail) == (RejectReason.UNREADABLE, "No such file in the store")
    assert refusal("memory://sound/a").reason is RejectReason.EMPTY


@pytest.mark.parametrize("form", ["WAV", "FLAC"])
def test_a_store_that_fails_is_told_in_its_own_words(
    memory: MemoryFileSystem, form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    fsspec.register_implementation("failing", FailingStore, clobber=True)
    put(memory, "/sound/a", 2_000_000, form)
    refused = refusal("failing://sound/a")
    assert (refused.reason, refused.detail) == (RejectReason.UNREADABLE, "connection reset by the store")
    assert capfd.readouterr().err == ""


def test_an_unknown_kind_of_store_is_refused_with_the_lists_line(tmp_path: Path) -> None:
    (tmp_path / "inv.txt").write_text("/a.wav\nnostore://a/b.wav\n")
    with pytest.raises(InputError, match=r"inv\.txt:2: no kind of store is called nostore://.*s3://"):
        read_lists([str(tmp_path / "inv.txt")], [], [])


def test_without_fsspec_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)  # as if it were not installed
    (tmp_path / "inv.txt").write_text("s3://bucket/b.wav\n")
    for read in (
        lambda: read_lists([str(tmp_path / "inv.txt")], [], []),
        lambda: all_of("s3://bucket/b.wav"),
        lambda: read_lists(["s3://bucket/inv.txt"], [], []),
    ):
        with pytest.raises(InputError, match=r"pip install 'voice-harness\[stores\]'"):
            read()


def test_a_stores_own_package_is_named_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adlfs", None)  # as if it were not installed
    (tmp_path / "inv.txt").write_text("abfs://container/b.wav\n")
    with pytest.raises(InputError, match=r"inv\.txt:1: .*adlfs.*Install that package"):
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
def test_what_an_address_is(name: str, address: bool, kind: str, local: str | None) -> None:
    assert is_address(name) is address
    if address:
        assert kind_of_store(name) == kind
    assert local_path(name) == local
