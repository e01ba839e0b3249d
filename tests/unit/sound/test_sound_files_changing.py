"""Sound files that somebody writes to while they are read, and the hash of what was read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.model.offline import RejectReason
from harness.sound.sound_files import BLOCK_SAMPLES, HELD_BYTES, UnusableSound, open_sound
from tests.unit.sound.wave_heads import tone

RATE_HZ = 16000


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


def test_a_long_file_that_shrinks_before_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    for left in (100, 0):
        soundfile.write(path, tone(HELD_BYTES), RATE_HZ, "PCM_16")
        with open_sound(str(path), RATE_HZ, resample=False) as sound:
            os.truncate(path, left)
            with pytest.raises(UnusableSound):
                list(sound.blocks())


def test_a_long_file_that_is_written_to_within_its_last_block_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(HELD_BYTES), RATE_HZ, "PCM_16")
    with open_sound(str(path), RATE_HZ, resample=False) as sound:
        blocks = sound.blocks()
        for _ in range(-(-HELD_BYTES // BLOCK_SAMPLES)):
            next(blocks)
        with path.open("ab") as file:
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
