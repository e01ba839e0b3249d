"""False rejects and false accepts of the spotter on voices that it was not trained on.

    python firmware_stubs/tools/measure_spotter.py --cache FOLDER [--human FOLDER_OF_G722 …] [--operating-point 50]

Prints one line a condition: the phrase at −26 dBFS, clean and in noise, by voice; speech without the phrase in hours.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sound_mixing import CORE, Sound, noise, spoken_span
from speech_corpus import PCM, RATE_HZ, Speakers, negatives, positives

from harness.model.stimulus import Waveform
from harness.sound.level import active_speech_level

LEVEL_DBFS = -26
LEAD_IN_S, TAIL_S = 0.8, 1.2


class Event(ctypes.Structure):
    _fields_ = (("sample", ctypes.c_uint64), ("score", ctypes.c_uint16), ("phrase", ctypes.c_char_p))


ON_EVENT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Event))
STATE_BYTES = 65_536
"""More than `vh_spotter` needs."""


class Spotter:
    """The C spotter, compiled for this machine."""

    def __init__(self, operating_point: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="vh-spotter-")
        library = Path(self._folder.name, "spotter.so")
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", *map(str, CORE.glob("*.c")), "-o", str(library)], check=True)
        self._core = ctypes.CDLL(str(library))
        self._core.vh_spotter_feed.argtypes = (
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ON_EVENT,
            ctypes.c_void_p,
        )
        self._state = ctypes.create_string_buffer(STATE_BYTES)
        self._core.vh_spotter_init(self._state)
        self._core.vh_spotter_set_operating_point(self._state, operating_point)

    def events(self, pcm: PCM) -> list[tuple[int, int]]:
        """Sample and score of each event in a recording, after a reset."""
        events: list[tuple[int, int]] = []
        self._core.vh_spotter_reset(self._state)
        callback = ON_EVENT(lambda _, event: events.append((event.contents.sample, event.contents.score)))
        sound = np.ascontiguousarray(pcm)
        self._core.vh_spotter_feed(self._state, sound.ctypes.data_as(ctypes.c_void_p), len(sound), callback, None)
        return events


def at_level(pcm: PCM, level_dbfs: float) -> Sound:
    """The recording at an active speech level, in units of PCM16; unchanged if it has no speech."""
    sound = pcm.astype(np.float32) / 32768
    level = active_speech_level(Waveform(sound, RATE_HZ))
    gain = 0.0 if level is None else level_dbfs - level.level_dbfs
    return sound.astype(np.float64) * 32768 * 10 ** (gain / 20)


def count_rejects(
    spotter: Spotter, phrases: list[PCM], level_dbfs: float, snr_db: float | None
) -> tuple[int, int, list[float]]:
    """Phrases without an event, those with more than one, and the delays after the end of the phrase in ms."""
    rng = np.random.default_rng(5)
    missed, repeated, delays_ms = 0, 0, []
    for phrase in phrases:
        start, end = spoken_span(phrase)
        sound = np.concatenate(
            [
                np.zeros(round(LEAD_IN_S * RATE_HZ)),
                at_level(phrase[start:end], level_dbfs),
                np.zeros(round(TAIL_S * RATE_HZ)),
            ]
        )
        if snr_db is not None:
            sound = sound + noise(rng, len(sound)) * 32768 * 10 ** ((level_dbfs - snr_db) / 20)
        events = spotter.events(np.clip(np.round(sound), -32768, 32767).astype(np.int16))
        if not events:
            missed += 1
            continue
        repeated += len(events) > 1
        first_sample, _ = events[0]
        delays_ms.append((first_sample - LEAD_IN_S * RATE_HZ - (end - start)) / 16)
    return missed, repeated, delays_ms


def write_line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def measure_accepts(spotter: Spotter, name: str, speech: list[PCM]) -> None:
    """Writes a line about recordings without the phrase, which are played with 0.25 s between them."""
    pause = np.zeros(RATE_HZ // 4)
    sound = np.concatenate([part for pcm in speech for part in (np.round(at_level(pcm, LEVEL_DBFS)), pause)])
    pcm = np.clip(sound, -32768, 32767).astype(np.int16)
    began_s = time.process_time()
    false_accepts = len(spotter.events(pcm))
    spent_s, hours = time.process_time() - began_s, len(pcm) / RATE_HZ / 3600
    write_line(
        f"{name}: {false_accepts} false accepts in {hours:.2f} h = {false_accepts / hours:.2f} per hour; "
        f"{spent_s / hours / 3.6:.3f} ms of CPU a second"
    )


def read_recordings(folder: Path) -> list[PCM]:
    """All G.722 files below a folder that are longer than half a second."""
    recordings = []
    for path in sorted(folder.rglob("*.g722")):
        raw = subprocess.run(
            ["ffmpeg", "-v", "error", "-f", "g722", "-i", str(path), "-ar", "16000", "-f", "s16le", "-"],
            check=True,
            capture_output=True,
        ).stdout
        if len(raw) > RATE_HZ:
            recordings.append(np.frombuffer(raw, "<i2"))
    return recordings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--human", type=Path, action="append", default=[])
    parser.add_argument("--operating-point", type=int, default=50)
    arguments = parser.parse_args()
    spotter, speakers = Spotter(arguments.operating_point), Speakers()
    lines = positives(speakers.espeak, held_out=True, count=300, seed=1)
    phrases = speakers.say_all(lines, arguments.cache)
    assert len(lines) == len(phrases), "a line was refused: voices and phrases no longer match"
    conditions = ((LEVEL_DBFS, None), (-40, None), (-15, None), (LEVEL_DBFS, 20.0), (LEVEL_DBFS, 10.0))
    for engine in ("espeak", "flite", "hibari"):
        of_engine = [phrase for line, phrase in zip(lines, phrases, strict=True) if line.engine == engine]
        for level_dbfs, snr_db in conditions:
            missed, repeated, delays_ms = count_rejects(spotter, of_engine, level_dbfs, snr_db)
            noise_text = "clean" if snr_db is None else f"{snr_db:.0f} dB SNR"
            delay = "no delay"
            if delays_ms:
                delay = f"delay {np.median(delays_ms):.0f} ms (p95 {np.percentile(delays_ms, 95):.0f})"
            write_line(
                f"{engine} {level_dbfs} dBFS {noise_text}: {missed}/{len(of_engine)} missed = "
                f"{100 * missed / len(of_engine):.1f} %, {repeated} twice, {delay}"
            )
    held_out = speakers.say_all(negatives(speakers.espeak, held_out=True, count=900, seed=1), arguments.cache)
    measure_accepts(spotter, "held-out voices", held_out)
    for folder in arguments.human:
        measure_accepts(spotter, f"human {folder.name}", read_recordings(folder))


if __name__ == "__main__":
    main()
