"""Scores that are kept in files: many writers, damage, other versions."""

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.model.errors import InputError
from harness.model.offline import ScoreTrack
from harness.offline.score_cache import VERSION, ScoreCache

FINGERPRINT = hashlib.sha256(b"an engine").hexdigest()
FILE = hashlib.sha256(b"a file").hexdigest()
WRITER = """
import sys, numpy as np
from harness.model.offline import ScoreTrack
from harness.offline.score_cache import ScoreCache
folder, fingerprint, sha256, seed = sys.argv[1:]
cache = ScoreCache(folder)
scores = np.full(50_000, float(seed), np.float32)
for _ in range(40):
    assert cache.put(fingerprint, sha256, (ScoreTrack("hey", scores, 0, 480),), 24_000_000, 16_000)
"""


def tracks() -> tuple[ScoreTrack, ...]:
    random = np.random.default_rng(1)
    return (
        ScoreTrack("hey jarvis", random.random(3600 * 33, np.float32), 1600, 480),
        ScoreTrack("ça va \"x\"", random.random(7, np.float32), 0, 1280),
        ScoreTrack("nothing", np.zeros(0, np.float32), 0, 480),
    )  # fmt: skip


def kept(folder: Path, told: list[str]) -> tuple[ScoreCache, Path]:
    cache = ScoreCache(folder, told.append)
    assert cache.put(FINGERPRINT, FILE, tracks(), 57_600_000, 16_000)
    (path,) = folder.rglob("*.scores")
    return cache, path


def test_what_was_put_is_got_bit_for_bit(tmp_path: Path) -> None:
    told: list[str] = []
    cache, path = kept(tmp_path, told)
    entry = cache.entry(FINGERPRINT, FILE)
    assert entry is not None
    assert (entry.samples, entry.rate_hz) == (57_600_000, 16_000)
    for found, put in zip(entry.tracks, tracks(), strict=True):
        assert (found.phrase, found.first_end, found.step) == (put.phrase, put.first_end, put.step)
        assert found.scores.dtype == np.float32
        assert found.scores.tobytes() == put.scores.tobytes()
    assert path.stat().st_size < 4 * 3600 * 33 + 1000  # an hour of scores is half a megabyte, and nothing else
    assert cache.size().entries == cache.size(FINGERPRINT).entries == 1
    assert cache.size().bytes == path.stat().st_size
    assert cache.get(FINGERPRINT, "00" * 32) is None
    assert cache.get("00" * 32, FILE) is None
    assert not told


@pytest.mark.parametrize(
    ("damage", "told_as"),
    [
        (lambda content: content[:10], "cut off"),
        (lambda content: b"", "cut off"),
        (lambda content: content[:-5], "checksum"),
        (lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:], "checksum"),
        (lambda content: content + b"\0", "checksum"),
        (lambda content: content[:8] + (VERSION + 1).to_bytes(4, "little") + content[12:], "format 2"),
        (lambda content: content[:12] + b"\xff\xff\xff\xff" + content[16:], "checksum"),
        (lambda content: b"RIFF" + content[4:], "no file of scores"),
    ],
)
def test_a_damaged_entry_is_a_miss_that_is_told(tmp_path: Path, damage, told_as: str) -> None:  # type: ignore[no-untyped-def]
    told: list[str] = []
    cache, path = kept(tmp_path, told)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(FINGERPRINT, FILE) is None
    assert len(told) == 1
    assert told_as in told[0]
    assert str(path) in told[0]
    assert cache.put(FINGERPRINT, FILE, tracks(), 57_600_000, 16_000)
    assert cache.get(FINGERPRINT, FILE) is not None


def test_an_entry_under_another_name_is_not_trusted(tmp_path: Path) -> None:
    told: list[str] = []
    cache, path = kept(tmp_path, told)
    other = hashlib.sha256(b"another file").hexdigest()
    target = tmp_path / FINGERPRINT / other[:2] / f"{other}.scores"
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
    assert cache.get(FINGERPRINT, other) is None
    assert "another engine or file" in told[0]


def test_many_writers_of_one_entry_leave_a_whole_one(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), FINGERPRINT, FILE, str(seed)])
        for seed in (1, 2, 3)
    ]
    told: list[str] = []
    cache, seen = ScoreCache(tmp_path, told.append), 0
    while any(writer.poll() is None for writer in writers):
        found = cache.get(FINGERPRINT, FILE)
        if found is not None:
            seen += 1
            assert len(set(found[0].scores.tolist())) == 1
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert seen
    assert not told
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{FILE}.scores"]


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    taken = tmp_path / "a file"
    taken.write_text("no folder")
    cache = ScoreCache(taken, told.append)
    assert not cache.put(FINGERPRINT, FILE, tracks(), 1, 16_000)
    assert not cache.put(FINGERPRINT, FILE, tracks(), 1, 16_000)
    assert len(told) == 1


def test_a_key_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        ScoreCache(tmp_path).get("..", FILE)
    with pytest.raises(InputError):
        ScoreCache(tmp_path).put(FINGERPRINT, "", tracks(), 1, 16_000)
