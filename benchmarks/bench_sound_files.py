"""Hours of audio that are read a second of CPU time, beside soundfile's own plain reading; and a list of 1e6 lines.

python benchmarks/bench_sound_files.py      a minute or two, 1 GB of temporary files
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import soxr
from sizes import sized
from timing import quickest, timed

from harness.offline.lists import read_lists
from harness.sound.sound_files import BLOCK_SAMPLES, MappedWave, StreamedWave, open_sound
from harness.sound.wave_file import WaveSound

HOURS = sized(2.0, 0.01)
ROUNDS = sized(3, 1)
LISTED_FILES = sized(20_000, 200)
LINES = sized(1_000_000, 1000)
SHORT_FILES = sized(1000, 10)
RATE_HZ = 16000
FILES_PER_SPEAKER = 200


def speech_like(samples: int) -> npt.NDArray[np.int16]:
    """Noise whose level and colour change as those of speech do, so that FLAC has the work that it has with speech."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=samples).astype(np.float32)
    coloured = np.convolve(noise, np.hanning(9).astype(np.float32), "same")
    level = np.repeat(rng.choice([20.0, 200.0, 1500.0], samples // 4000 + 1), 4000)[:samples]
    return np.clip(coloured * level, -32768, 32767).astype(np.int16)


# Each of these reads sound and uses every sample, so that a memory map is really read.


def read_ours(path: Path) -> int:
    with open_sound(str(path), RATE_HZ, resample=True) as sound:
        return sum(int(block.max()) for block in sound.blocks())


def read_plainly(path: Path) -> int:
    with soundfile.SoundFile(path) as file:
        return sum(int(block.max()) for block in file.blocks(BLOCK_SAMPLES, dtype="int16"))


def read_resampled(path: Path) -> int:
    sound, rate_hz = soundfile.read(path, dtype="float32")
    return int(soxr.resample(sound, rate_hz, RATE_HZ, quality="HQ").max())


def read_by(kind: type[MappedWave] | type[StreamedWave], path: Path, samples: int) -> int:
    with path.open("rb") as file:
        return sum(int(block.max()) for block in kind(file, WaveSound(44, samples, RATE_HZ, 1)).blocks())


def measure_long_files(folder: Path) -> None:
    """Prints the speed of each way to read a WAV, a FLAC and a WAV of three times the rate."""
    samples = round(HOURS * 3600) * RATE_HZ
    content = speech_like(samples)
    wave, flac, wide = folder / "a.wav", folder / "a.flac", folder / "wide.wav"
    soundfile.write(wave, content, RATE_HZ, "PCM_16")
    soundfile.write(flac, content, RATE_HZ, "PCM_16")
    soundfile.write(wide, content, 3 * RATE_HZ, "PCM_16")
    ways = {
        "WAV, soundfile's plain reading": partial(read_plainly, wave),
        "WAV, open_sound": partial(read_ours, wave),
        "WAV, mapped": partial(read_by, MappedWave, wave, samples),
        "WAV, read (network, stores)": partial(read_by, StreamedWave, wave, samples),
    }
    print_speeds(ways, HOURS)
    print_speeds(
        {"FLAC, soundfile's plain reading": partial(read_plainly, flac), "FLAC, open_sound": partial(read_ours, flac)},
        HOURS,
    )
    ways = {
        "WAV 48 → 16 kHz, soundfile and soxr at once": partial(read_resampled, wide),
        "WAV 48 → 16 kHz, open_sound": partial(read_ours, wide),
    }
    print_speeds(ways, HOURS / 3)


def print_speeds(ways: dict[str, partial[int]], hours: float) -> None:
    """Prints a row for each way to read so many hours of sound, with its ratio to the first way."""
    first_s = 0.0
    for name, read in ways.items():
        cpu_s = quickest(read, ROUNDS).cpu_s
        first_s = first_s or cpu_s
        speed = hours / cpu_s
        print(
            f"{name:44} {speed:8.1f} h a CPU second ({speed * 3600:9,.0f}x)   "
            f"{first_s / cpu_s:5.2f} of soundfile's plain"
        )


def read_all(read: Callable[[Path], int], paths: list[Path]) -> None:
    for path in paths:
        read(path)


def measure_short_files(folder: Path) -> None:
    """Prints what opening costs, on files of 2 s, such as those of a list of wake words."""
    content = speech_like(2 * RATE_HZ)
    for ending in ("wav", "flac"):
        subfolder = folder / ending
        subfolder.mkdir()
        paths = [subfolder / f"{number}.{ending}" for number in range(SHORT_FILES)]
        for path in paths:
            soundfile.write(path, content, RATE_HZ, "PCM_16")
        plain_us, ours_us = (
            quickest(partial(read_all, read, paths), ROUNDS).cpu_s / len(paths) * 1e6
            for read in (read_plainly, read_ours)
        )
        print(f"a {ending} of 2 s: {ours_us:.0f} µs, {ours_us / plain_us:.2f} of soundfile's {plain_us:.0f} µs")


def measure_lists(folder: Path) -> None:
    """Measures a list whose files exist, each under several names, and one whose files do not.

    Each in a process of its own, so that its peak memory is that of one list.
    """
    corpus = folder / "corpus"
    for number in range(LISTED_FILES):
        path = corpus / f"speaker{number // FILES_PER_SPEAKER:04d}" / f"utterance{number:07d}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    present, absent = folder / "there.txt", folder / "gone.txt"
    with present.open("w") as file:
        for line in range(LINES):
            number = line % LISTED_FILES
            file.write(f"{corpus}/speaker{number // FILES_PER_SPEAKER:04d}/utterance{number:07d}.wav\n")
    with absent.open("w") as file:
        for number in range(LINES):
            file.write(f"corpus/speaker{number // FILES_PER_SPEAKER:05d}/recordings/utterance{number:07d}.wav\n")
    for path in (present, absent):
        subprocess.run([sys.executable, __file__, str(path)], check=True)


def peak_bytes() -> int:
    """The most memory that this program has held; getrusage would count its parent's before the exec."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def measure_list(path: Path) -> None:
    """Prints time and memory of reading one list."""
    before_bytes = peak_bytes()
    lines, plain_s = timed(lambda: count_lines(path))
    began_s = time.perf_counter()
    listing, took_s = timed(lambda: read_lists([str(path)], [], []))
    wall_s = time.perf_counter() - began_s
    bytes_per_file = (peak_bytes() - before_bytes) / len(listing.files)
    rejected, through_s = timed(lambda: sum(file.rejected is not None for file in listing.files))
    print(
        f"{path.name}: {lines:,} lines, {rejected:,} rejected:"
        f" {took_s:.1f} s of CPU ({wall_s:.1f} s by the clock), {took_s / plain_s:.0f} times reading its lines;"
        f" {bytes_per_file:.0f} bytes a file at the peak; to go through them {through_s:.1f} s"
    )


def main() -> None:
    if len(sys.argv) > 1:
        measure_list(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_long_files(folder)
        measure_short_files(folder)
        measure_lists(folder)


if __name__ == "__main__":
    main()
