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


FOUND = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Event))


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
            FOUND,
            ctypes.c_void_p,
        )
        self._state = ctypes.create_string_buffer(65_536)
        self._core.vh_spotter_init(self._state)
        self._core.vh_spotter_set_operating_point(self._state, operating_point)

    def events(self, pcm: PCM) -> list[tuple[int, int]]:
        """Sample and score of each event in a recording, from an empty memory."""
        found: list[tuple[int, int]] = []
        self._core.vh_spotter_reset(self._state)
        call = FOUND(lambda _, event: found.append((event.contents.sample, event.contents.score)))
        sound = np.ascontiguousarray(pcm)
        self._core.vh_spotter_feed(self._state, sound.ctypes.data_as(ctypes.c_void_p), len(sound), call, None)
        return found


def levelled(pcm: PCM, level_dbfs: float) -> Sound:
    """At an active speech level, in units of PCM16."""
    sound = pcm.astype(np.float32) / 32768
    level = active_speech_level(Waveform(sound, RATE_HZ))
    gain = 0.0 if level is None else level_dbfs - level.level_dbfs
    return sound.astype(np.float64) * 32768 * 10 ** (gain / 20)


def rejects(
    spotter: Spotter, phrases: list[PCM], level_dbfs: float, snr_db: float | None
) -> tuple[int, int, list[float]]:
    """Missed, with more than one event, and delays after the end of the phrase in ms."""
    rng = np.random.default_rng(5)
    missed, twice, delays = 0, 0, []
    for phrase in phrases:
        start, end = spoken_span(phrase)
        sound = np.concatenate(
            [
                np.zeros(round(LEAD_IN_S * RATE_HZ)),
                levelled(phrase[start:end], level_dbfs),
                np.zeros(round(TAIL_S * RATE_HZ)),
            ]
        )
        if snr_db is not None:
            sound = sound + noise(rng, len(sound)) * 32768 * 10 ** ((level_dbfs - snr_db) / 20)
        found = spotter.events(np.clip(np.round(sound), -32768, 32767).astype(np.int16))
        missed += not found
        twice += len(found) > 1
        delays += [(found[0][0] - LEAD_IN_S * RATE_HZ - (end - start)) / 16] if found else []
    return missed, twice, delays


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def accepts(spotter: Spotter, name: str, speech: list[PCM]) -> None:
    sound = np.concatenate([np.concatenate([np.round(levelled(one, LEVEL_DBFS)), np.zeros(4000)]) for one in speech])
    pcm = np.clip(sound, -32768, 32767).astype(np.int16)
    began = time.process_time()
    found = spotter.events(pcm)
    spent, hours = time.process_time() - began, len(pcm) / RATE_HZ / 3600
    say(
        f"{name}: {len(found)} false accepts in {hours:.2f} h = {len(found) / hours:.2f} per hour; "
        f"{spent / hours / 3.6:.3f} ms of CPU a second"
    )


def human(folder: Path) -> list[PCM]:
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
    lines = positives(speakers.espeak, True, 300, 1)
    phrases = speakers.say_all(lines, arguments.cache)
    assert len(lines) == len(phrases), "a line was refused: voices and phrases no longer match"
    for engine in ("espeak", "flite", "hibari"):
        own = [phrase for line, phrase in zip(lines, phrases, strict=True) if line.engine == engine]
        for level, snr in ((LEVEL_DBFS, None), (-40, None), (-15, None), (LEVEL_DBFS, 20.0), (LEVEL_DBFS, 10.0)):
            missed, twice, delays = rejects(spotter, own, level, snr)
            where = "clean" if snr is None else f"{snr:.0f} dB SNR"
            delay = f"delay {np.median(delays):.0f} ms (p95 {np.percentile(delays, 95):.0f})" if delays else "no delay"
            say(
                f"{engine} {level} dBFS {where}: {missed}/{len(own)} missed = {100 * missed / len(own):.1f} %, "
                f"{twice} twice, {delay}"
            )
    accepts(spotter, "held-out voices", speakers.say_all(negatives(speakers.espeak, True, 900, 1), arguments.cache))
    for folder in arguments.human:
        accepts(spotter, f"human {folder.name}", human(folder))


if __name__ == "__main__":
    main()
