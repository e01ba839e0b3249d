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

from harness.offline.lists import read_lists
from harness.sound.sound_files import BLOCK_SAMPLES, MappedWave, StreamedWave, open_sound
from harness.sound.wave_file import WaveSound

HOURS = sized(2.0, 0.01)
ROUNDS = sized(3, 1)
FILES = sized(20_000, 200)
LINES = sized(1_000_000, 1000)
SHORT = sized(1000, 10)
RATE_HZ = 16000


def speech_like(samples: int) -> npt.NDArray[np.int16]:
    """Noise whose level and colour change as those of speech do, so that FLAC has the work that it has with speech."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=samples).astype(np.float32)
    coloured = np.convolve(noise, np.hanning(9).astype(np.float32), "same")
    level = np.repeat(rng.choice([20.0, 200.0, 1500.0], samples // 4000 + 1), 4000)[:samples]
    return np.clip(coloured * level, -32768, 32767).astype(np.int16)


def hours_a_cpu_second(read: Callable[[], int], hours: float) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        read()
        best = min(best, time.process_time() - began)
    return hours / best


def ours(path: Path, rate_hz: int = RATE_HZ) -> int:
    """Every sample is looked at, so that a map is read and not only made."""
    with open_sound(str(path), rate_hz, resample=True) as sound:
        return sum(int(block.max()) for block in sound.blocks())


def plain(path: Path) -> int:
    with soundfile.SoundFile(path) as file:
        return sum(int(block.max()) for block in file.blocks(BLOCK_SAMPLES, dtype="int16"))


def plain_resampled(path: Path) -> int:
    sound, rate_hz = soundfile.read(path, dtype="float32")
    return int(soxr.resample(sound, rate_hz, RATE_HZ, quality="HQ").max())


def by(kind: type[MappedWave] | type[StreamedWave], path: Path, samples: int) -> int:
    with path.open("rb") as file:
        return sum(int(block.max()) for block in kind(file, WaveSound(44, samples, RATE_HZ, 1)).blocks())


def told(what: str, hours: float, beside: float) -> None:
    print(f"{what:44} {hours:8.1f} h a CPU second ({hours * 3600:9,.0f}x)   {hours / beside:5.2f} of soundfile's plain")


def sound(folder: Path) -> None:
    samples = round(HOURS * 3600) * RATE_HZ
    content = speech_like(samples)
    wave, flac, wide = folder / "a.wav", folder / "a.flac", folder / "wide.wav"
    soundfile.write(wave, content, RATE_HZ, "PCM_16")
    soundfile.write(flac, content, RATE_HZ, "PCM_16")
    soundfile.write(wide, content, 3 * RATE_HZ, "PCM_16")
    beside = hours_a_cpu_second(lambda: plain(wave), HOURS)
    told("WAV, soundfile's plain reading", beside, beside)
    told("WAV, open_sound", hours_a_cpu_second(lambda: ours(wave), HOURS), beside)
    told("WAV, mapped", hours_a_cpu_second(lambda: by(MappedWave, wave, samples), HOURS), beside)
    told("WAV, read (network, stores)", hours_a_cpu_second(lambda: by(StreamedWave, wave, samples), HOURS), beside)
    beside = hours_a_cpu_second(lambda: plain(flac), HOURS)
    told("FLAC, soundfile's plain reading", beside, beside)
    told("FLAC, open_sound", hours_a_cpu_second(lambda: ours(flac), HOURS), beside)
    beside = hours_a_cpu_second(lambda: plain_resampled(wide), HOURS / 3)
    told("WAV 48 → 16 kHz, soundfile and soxr at once", beside, beside)
    told("WAV 48 → 16 kHz, open_sound", hours_a_cpu_second(lambda: ours(wide), HOURS / 3), beside)


def sum_over(read: Callable[[Path], int], paths: list[Path]) -> int:
    return sum(read(path) for path in paths)


def small_files(folder: Path) -> None:
    """What opening costs: files of 2 s, as those of a list of wake words are."""
    content = speech_like(2 * RATE_HZ)
    for ending in ("wav", "flac"):
        many = folder / ending
        many.mkdir()
        paths = [many / f"{number}.{ending}" for number in range(SHORT)]
        for path in paths:
            soundfile.write(path, content, RATE_HZ, "PCM_16")
        costs = []
        for read in (plain, ours):
            all_of = partial(sum_over, read, paths)
            hours = hours_a_cpu_second(all_of, len(paths) * 2 / 3600)
            costs.append(2 / (hours * 3600) * 1e6)
        print(f"a {ending} of 2 s: {costs[1]:.0f} µs, {costs[1] / costs[0]:.2f} of soundfile's {costs[0]:.0f} µs")


def lists(folder: Path) -> None:
    """A list whose files are there, each under several names, and one whose files are not."""
    corpus = folder / "corpus"
    for number in range(FILES):
        path = corpus / f"speaker{number // 200:04d}" / f"utterance{number:07d}.wav"
        if number % 200 == 0:
            path.parent.mkdir(parents=True)
        path.touch()
    there, gone = folder / "there.txt", folder / "gone.txt"
    with there.open("w") as file:
        for number in range(LINES):
            at = number % FILES
            file.write(f"{corpus}/speaker{at // 200:04d}/utterance{at:07d}.wav\n")
    with gone.open("w") as file:
        for number in range(LINES):
            file.write(f"corpus/speaker{number // 200:05d}/recordings/utterance{number:07d}.wav\n")
    for path in (there, gone):
        subprocess.run([sys.executable, __file__, str(path)], check=True)


def peak_bytes() -> int:
    """The most memory that this program has held; getrusage would count its parent's before the exec."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def one_list(path: Path) -> None:
    before = peak_bytes()
    began = time.process_time()
    with path.open("rb") as file:
        lines = sum(1 for _ in file)
    plain_s = time.process_time() - began
    began, wall = time.process_time(), time.perf_counter()
    listing = read_lists([str(path)], [], [])
    took_s, wall_s = time.process_time() - began, time.perf_counter() - wall
    peak = (peak_bytes() - before) / len(listing.files)
    began = time.process_time()
    rejected = sum(file.rejected is not None for file in listing.files)
    through_s = time.process_time() - began
    print(
        f"{path.name}: {lines:,} lines, {rejected:,} rejected:"
        f" {took_s:.1f} s of CPU ({wall_s:.1f} s by the clock), {took_s / plain_s:.0f} times reading its lines;"
        f" {peak:.0f} bytes a file at the peak; to go through them {through_s:.1f} s"
    )


def main() -> None:
    if len(sys.argv) > 1:
        one_list(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sound(folder)
        small_files(folder)
        lists(folder)


if __name__ == "__main__":
    main()
