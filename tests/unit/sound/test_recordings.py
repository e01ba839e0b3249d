"""What a recording must be to be played, and that one cut short is never taken for the whole."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from click.testing import CliRunner

from harness.cli import group
from harness.model.errors import InputError
from harness.sound import recordings
from harness.sound.sound_files import UnusableSound, open_sound
from tests.files import file_with

Floats = npt.NDArray[np.float32]
RATE_HZ = 16_000
SECONDS = 3
TONE = (0.3 * np.sin(2 * np.pi * 440 * np.arange(SECONDS * RATE_HZ) / RATE_HZ)).astype(np.float32)

FORMS = {
    "wav": ("WAV", "PCM_16"),
    "float.wav": ("WAV", "FLOAT"),
    "24.wav": ("WAVEX", "PCM_24"),
    "rf64": ("RF64", "PCM_16"),
    "w64": ("W64", "PCM_16"),
    "aiff": ("AIFF", "PCM_16"),
    "au": ("AU", "PCM_16"),
    "caf": ("CAF", "PCM_16"),
    "sph": ("NIST", "PCM_16"),
    "flac": ("FLAC", "PCM_16"),
    "ogg": ("OGG", "VORBIS"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
}


def sound(form: str, samples: Floats = TONE, rate_hz: int = RATE_HZ) -> bytes:
    file = io.BytesIO()
    kind, subtype = FORMS[form]
    soundfile.write(file, samples, rate_hz, format=kind, subtype=subtype)
    return file.getvalue()


@pytest.mark.parametrize("form", FORMS)
def test_a_whole_recording_of_any_form_is_read(tmp_path: Path, form: str) -> None:
    path = file_with(tmp_path / f"r.{form}", sound(form))
    assert recordings.check(str(path)) == pytest.approx(SECONDS, abs=0.1)
    read = recordings.read(str(path))
    assert len(read.samples) == pytest.approx(len(TONE), abs=2000)


@pytest.mark.parametrize("share", [0.5, 0.999])
@pytest.mark.parametrize("form", FORMS)
def test_truncated_recording_of_any_format_is_refused(tmp_path: Path, form: str, share: float) -> None:
    whole = sound(form)
    path = file_with(tmp_path / f"r.{form}", whole[: int(share * len(whole))])
    for use in (recordings.check, recordings.read):
        with pytest.raises(InputError) as refused:
            use(str(path))
        assert refused.value.place is not None
        assert refused.value.place.file == str(path)
        assert refused.value.remedy
    with pytest.raises(UnusableSound), open_sound(str(path), RATE_HZ, resample=False) as file:
        list(file.blocks())


def _with(change: Callable[[Floats], None]) -> bytes:
    samples = TONE.copy()
    change(samples)
    return sound("float.wav", samples)


def _put(value: float) -> Callable[[Floats], None]:
    def change(samples: Floats) -> None:
        samples[-1] = value

    return change


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_with(_put(float("nan"))), "invalid samples"),
        (_with(_put(float("inf"))), "invalid samples"),
        (sound("wav", TONE * 0), "silent"),
        (sound("wav", TONE * 0 + 0.25), "silent: every sample is 0.25"),
        (sound("wav", np.repeat(TONE[:100, None], 96, axis=1)), "96 channels"),
        (sound("wav", TONE, 1), "a rate of 1 Hz"),
        (sound("wav", TONE[:0]), "empty"),
        (b"hello", "as a sound file"),
        (b"", "as a sound file"),
    ],
    ids=["NaN", "infinite", "silence", "constant", "96 channels", "1 Hz", "empty", "text", "nothing"],
)
def test_unreadable_recording_is_refused_with_a_remedy(tmp_path: Path, content: bytes, message: str) -> None:
    path = file_with(tmp_path / "r.wav", content)
    for use in (recordings.check, recordings.read):
        with pytest.raises(InputError, match=message) as refused:
            use(str(path))
        assert refused.value.remedy
        with pytest.raises(InputError, match="recording does not exist"):
            use(str(tmp_path / "none.wav"))


def test_a_file_that_has_changed_is_looked_at_again(tmp_path: Path) -> None:
    path = file_with(tmp_path / "r.wav", sound("wav", TONE * 0))
    with pytest.raises(InputError, match="silent"):
        recordings.check(str(path))
    path.write_bytes(sound("wav", TONE[: RATE_HZ + 1]))
    assert recordings.check(str(path)) == pytest.approx(1, abs=0.001)


def declaring(form: str, data_size: int, behind: bytes = b"") -> bytes:
    """The tone in a WAVE file whose `data` chunk declares another size."""
    content = bytearray(sound(form) + behind)
    position = content.index(b"data") + 4
    content[position : position + 4] = data_size.to_bytes(4, "little")
    return bytes(content)


@pytest.mark.parametrize("form", ["wav", "24.wav", "float.wav"])
@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0x80000000, "declares no length"),
        (0x7FFFF000, "declares no length"),
        (0xFFFFFFFF, "declares no length"),
        (0, "the header declares 0 of"),
        (40_000, "the header declares 40000 of"),
        (None, "which are read"),
    ],
)
def test_one_rule_decides_the_length_for_a_run_and_for_an_evaluation(
    tmp_path: Path, form: str, size: int | None, message: str
) -> None:
    path = tmp_path / "r.wav"
    whole = sound(form)
    size = len(whole) - whole.index(b"data") - 8 + 44 if size is None else size
    path.write_bytes(declaring(form, size))
    assert recordings.check(str(path)) == SECONDS
    assert recordings.assumed(str(path)).count(message) == 1
    assert np.allclose(recordings.read(str(path)).samples, TONE, atol=2**-15)
    if form == "wav":
        with open_sound(str(path), RATE_HZ, resample=False) as file:
            assert file.assumed == recordings.assumed(str(path))
            assert np.allclose(np.concatenate(list(file.blocks())) / 2**15, TONE, atol=2**-15)
    path.write_bytes(sound(form))
    assert recordings.assumed(str(path)) == ""


def test_a_big_endian_file_with_a_wrong_length_is_read(tmp_path: Path) -> None:
    file = io.BytesIO()
    soundfile.write(file, TONE, RATE_HZ, format="WAV", subtype="PCM_16", endian="BIG")
    content = bytearray(file.getvalue())
    position = content.index(b"data") + 4
    content[position : position + 4] = (40_000).to_bytes(4, "big")
    path = file_with(tmp_path / "r.wav", content)
    assert np.allclose(recordings.read(str(path)).samples, TONE, atol=2**-15)


@pytest.mark.parametrize("form", ["aiff", "w64", "au"])
def test_sound_that_another_header_does_not_declare_is_not_lost_in_silence(tmp_path: Path, form: str) -> None:
    half, path = sound(form, TONE[: len(TONE) // 2]), tmp_path / f"r.{form}"
    for behind in (b"", b"TAG" + bytes(125), bytes(20_000)) if form != "w64" else ():
        path.write_bytes(half + behind)
        assert recordings.check(str(path)) == SECONDS / 2
    path.write_bytes(half + sound(form)[len(half) :])
    with pytest.raises(InputError, match="sound after the declared end would be lost"):
        recordings.check(str(path))
    with pytest.raises(UnusableSound, match="would be lost"):
        open_sound(str(path), RATE_HZ, resample=False)


@pytest.mark.parametrize("seconds", [0.01, 0.5, SECONDS, 20])
def test_a_flac_file_with_more_sound_than_its_header_declares_is_refused(tmp_path: Path, seconds: float) -> None:
    noise = np.random.default_rng(7).uniform(-0.5, 0.5, round(seconds * RATE_HZ)).astype(np.float32)
    content, path = bytearray(sound("flac", noise)), tmp_path / "r.flac"
    for declared in (len(noise), 0, len(noise) // 2, len(noise) - 4097):
        content[22:26] = max(0, declared).to_bytes(4, "big")
        path.write_bytes(content)
        last_frame = (len(noise) - 1) // 4096 * 4096
        if 0 < declared <= last_frame:
            with pytest.raises(InputError, match=f"another frame begins at sample {last_frame}"):
                recordings.check(str(path))
            with pytest.raises(UnusableSound, match="would be lost"):
                open_sound(str(path), RATE_HZ, resample=False)
        elif declared == len(noise):
            assert recordings.check(str(path)) == len(noise) / RATE_HZ


def test_an_aiff_file_from_a_pipe_is_read(tmp_path: Path) -> None:
    content = bytearray(sound("aiff"))
    for mark, offset in ((b"FORM", 4), (b"SSND", 4)):
        position = content.index(mark) + offset
        content[position : position + 4] = (0x7F000000).to_bytes(4, "big")
    path = file_with(tmp_path / "r.aiff", content)
    assert recordings.check(str(path)) == SECONDS


def test_assumed_length_is_reported_as_a_note(tmp_path: Path) -> None:
    (tmp_path / "r.wav").write_bytes(declaring("wav", 0x80000000))
    result = CliRunner().invoke(group, ["sound", "recordings", str(tmp_path)])
    assert result.exit_code == 0
    assert "r.wav: note: the header declares no length" in result.stdout
    result = CliRunner().invoke(group, ["sound", "recordings", str(tmp_path), "--json"])
    assert [Path(row["file"]).name for row in json.loads(result.stdout)["notes"]] == ["r.wav"]


def test_a_damaged_flac_says_where_and_one_with_a_tag_behind_it_is_read(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, 10 * RATE_HZ).astype(np.float32)
    content = bytearray(sound("flac", noise))
    path = file_with(tmp_path / "r.flac", bytes(content) + b"TAG" + bytes(125))
    assert recordings.check(str(path)) == 10
    with open_sound(str(path), RATE_HZ, resample=False) as file:
        assert sum(map(len, file.blocks())) == 10 * RATE_HZ
    content[len(content) // 2 : len(content) // 2 + 3000] = bytes(3000)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"damaged|cut off"):
        recordings.check(str(path))


def test_memory_use_does_not_grow_with_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "long.flac"
    soundfile.write(path, np.tile(TONE, 100), RATE_HZ)
    tracemalloc.start()
    assert recordings.check(str(path)) == 100 * SECONDS
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8_000_000, "the samples are 19 MB"


def damaged(form: str) -> bytes:
    """A recording of 3 s that cannot be read after its middle."""
    samples = TONE + np.random.default_rng(1).normal(0, 0.01, len(TONE)).astype(np.float32)
    content = sound(form, samples)
    middle = len(content) // 2
    return content[:middle] + bytes(200) + content[middle + 200 :] if form == "flac" else content[:middle]


@pytest.mark.parametrize("form", ["flac", "wav"])
def test_decodable_part_of_a_damaged_recording_is_rescued(tmp_path: Path, form: str) -> None:
    path, target = tmp_path / f"r.{form}", tmp_path / "new" / "r.flac"
    path.write_bytes(damaged(form))
    with pytest.raises(InputError, match=r"recording is (damaged|truncated).*--rescue FOLDER"):
        recordings.check(str(path))
    durations_s = recordings.rescue(str(path), target)
    assert durations_s is not None
    assert durations_s == (pytest.approx(1.5, abs=0.3), SECONDS if form == "flac" else None)
    assert recordings.check(str(target)) == durations_s[0]
    samples = recordings.read(str(target)).samples
    assert np.abs(samples - TONE[: len(samples)]).max() < 0.06
    with pytest.raises(InputError, match="already exists"):
        recordings.rescue(str(path), target)


def test_a_recording_that_is_refused_for_another_reason_is_not_rescued(tmp_path: Path) -> None:
    stereo, text, silent = tmp_path / "stereo.wav", tmp_path / "text.wav", tmp_path / "silent.wav"
    soundfile.write(stereo, np.stack([TONE, TONE], axis=1), RATE_HZ)
    soundfile.write(silent, np.zeros(RATE_HZ, np.float32), RATE_HZ)
    text.write_text("no sound")
    for path in (stereo, text, silent):
        assert recordings.rescue(str(path), tmp_path / "new.flac") is None
    assert not (tmp_path / "new.flac").exists()


def test_a_folder_is_rescued_into_the_same_subfolders(tmp_path: Path) -> None:
    (tmp_path / "people" / "ann").mkdir(parents=True)
    for name, content in (("ann/1.flac", damaged("flac")), ("ann/1.wav", damaged("wav")), ("2.wav", sound("wav"))):
        (tmp_path / "people" / name).write_bytes(content)
    arguments = ["sound", "recordings", str(tmp_path / "people"), "--rescue", str(tmp_path / "new"), "--json"]
    result = CliRunner().invoke(group, arguments)
    assert result.exit_code == 2
    rows = json.loads(result.stdout)["refused"]
    paths = sorted(path.relative_to(tmp_path / "new") for path in (tmp_path / "new").rglob("*.flac"))
    assert paths == [Path("ann/1.flac"), Path("ann/1.wav.flac")]
    assert [row["rescued"]["of_seconds"] for row in rows] == [SECONDS, None]
