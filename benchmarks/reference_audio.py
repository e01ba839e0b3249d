"""Lists for a reference evaluation: human speech without the phrase, and the phrase by synthetic voices in noise.

usage: reference_audio.py FOLDER [--phrase alexa …] [--recordings FOLDER]

Out of vocabulary: the telephone prompts of Debian's asterisk-core-sounds-{en,es,fr,it,ru}-g722 (people, 16 kHz,
CC-BY-SA), and its music on hold if asterisk-moh-opsound-g722 is installed. In vocabulary: synthetic voices, since no
package has human wake phrases; with --recordings the files of your folder are listed instead. Every list is made twice:
with voices and files to choose an operating point on (dev), and with others to report it (test).
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import soundfile

from harness.model.errors import VoiceError
from harness.model.stimulus import NoiseKind, NoiseSpec, SpokenText, StimulusRecipe, VoiceSpec
from harness.sound.recordings import at_rate, read
from harness.sound.stimuli.renderer import Renderer

RATE_HZ = 16000
PROMPTS = Path("/usr/share/asterisk")
SNRS_DB = (None, 20.0, 10.0, 5.0)
LEAD_IN_S, TAIL_S = 1.6, 1.0
ESPEAK = ("en-us", "en-gb", "en-gb-scotland", "en-029", "en-gb-x-rp", "en-gb-x-gbclan", "en-us-nyc")
VARIANTS = ("", "+f1", "+f2", "+f3", "+f4", "+f5", "+m1", "+m2", "+m3", "+m4", "+m5", "+m6", "+m7")
FLITE = ("slt", "awb", "rms", "kal16", "kal")


def voices() -> Iterator[VoiceSpec]:
    """The voices of each engine; prints which engines are not installed, and leaves them out."""
    renderer = Renderer(None)
    espeak_names = [language + variant for language in ESPEAK for variant in VARIANTS]
    for engine, names in (("espeak", espeak_names), ("flite", FLITE), ("hibari", None)):
        try:
            installed = renderer.voice(engine).names()
        except VoiceError as error:
            print(f"left out: {engine}: {error}", file=sys.stderr)
            continue
        for name in installed if names is None else names:
            # A name of espeak that is not installed is reported when it is to speak.
            if name in installed or engine == "espeak":
                yield VoiceSpec(engine, name)


def part_of(name: str) -> str:
    """dev or test, by a hash of the name: the same on every machine."""
    return "dev" if hashlib.sha256(name.encode()).digest()[0] % 2 else "test"


def synthetic(folder: Path, phrase: str) -> Iterator[tuple[str, Path]]:
    """Makes files of the phrase in every voice and noise, if they are missing; gives the part and path of each."""
    renderer = Renderer(None)
    folder.mkdir(parents=True, exist_ok=True)
    for voice in voices():
        for snr_db in SNRS_DB:
            name = voice.label().replace(":", "-").replace("/", "-").replace("+", "-")
            path = folder / f"{name}-{'quiet' if snr_db is None else f'{snr_db:.0f}dB'}.wav"
            if not path.exists():
                noise = None if snr_db is None else NoiseSpec(NoiseKind.PINK, snr_db)
                recipe = StimulusRecipe(
                    SpokenText(phrase), None, voice, rate_hz=RATE_HZ, noise=noise, lead_in_s=LEAD_IN_S, tail_s=TAIL_S
                )
                try:
                    samples = renderer.render(recipe).waveform.samples
                except VoiceError as error:
                    print(f"left out: {voice.label()}: {error}", file=sys.stderr)
                    break
                _write(path, samples)
            yield part_of(voice.label()), path


def recorded(folder: Path, recordings: Path) -> Iterator[tuple[str, Path]]:
    """Writes your recordings at 16 kHz; gives the part and path of each. The folder of a file counts as its talker."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(path for path in recordings.rglob("*") if path.suffix.lower() in (".wav", ".flac")):
        path = folder / f"{hashlib.sha256(str(source.relative_to(recordings)).encode()).hexdigest()[:16]}.wav"
        _write(path, at_rate(read(str(source)), RATE_HZ).samples)
        yield part_of(str(source.parent)), path


def prompts(folder: Path) -> Iterator[tuple[str, Path]]:
    """Joins the prompts of each language to files of about five minutes; gives the part and path of each.

    The prompts keep their own pauses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_language: dict[str, list[Path]] = {}
    for path in sorted(PROMPTS.rglob("*.g722")):
        by_language.setdefault(path.relative_to(PROMPTS).parts[1], []).append(path)
    for language, paths in by_language.items():
        pieces: list[np.ndarray] = []
        number = 0
        for index, path in enumerate(paths):
            pieces.append(_read_g722(path))
            if sum(map(len, pieces)) >= 300 * RATE_HZ or index == len(paths) - 1:
                target = folder / f"{language}-{number:03d}.wav"
                _write(target, np.concatenate(pieces))
                yield part_of(target.name), target
                pieces, number = [], number + 1


def _read_g722(path: Path) -> np.ndarray:
    with av.open(str(path), format="g722") as source:
        frames = [frame.to_ndarray().reshape(-1) for frame in source.decode(audio=0)]
    return np.concatenate(frames).astype(np.int16) if frames else np.zeros(0, np.int16)


def _write(path: Path, samples: np.ndarray) -> None:
    soundfile.write(path, samples, RATE_HZ, subtype="PCM_16")


def write_lists(folder: Path, name: str, files: Iterator[tuple[str, Path]]) -> None:
    """Writes NAME-dev.txt and NAME-test.txt, and prints how many files and hours each lists."""
    paths_by_part: dict[str, list[Path]] = {"dev": [], "test": []}
    for part, path in files:
        paths_by_part[part].append(path.resolve())
    for part, paths in paths_by_part.items():
        target = folder / f"{name}-{part}.txt"
        target.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
        seconds = sum(soundfile.info(path).duration for path in paths)
        print(f"{target}: {len(paths)} files, {seconds / 3600:.3f} h")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--phrase", nargs="+", default=["alexa", "hey jarvis", "hey mycroft", "okay nabu"])
    parser.add_argument("--recordings", type=Path, help="a folder of your own recordings of the (one) phrase")
    options = parser.parse_args()
    if not any(PROMPTS.rglob("*.g722")):
        packages = " ".join(f"asterisk-core-sounds-{language}-g722" for language in ("en", "es", "fr", "it", "ru"))
        sys.exit(f"no prompts below {PROMPTS}: apt-get install --no-install-recommends {packages}")
    if options.recordings and len(options.phrase) != 1:
        sys.exit("--recordings are of one phrase: name it with --phrase")
    subprocess.run(["espeak-ng", "--version"], check=True, stdout=subprocess.DEVNULL)
    options.folder.mkdir(parents=True, exist_ok=True)
    write_lists(options.folder, "oov", prompts(options.folder / "oov"))
    for phrase in options.phrase:
        name = phrase.replace(" ", "_")
        target = options.folder / name
        files = recorded(target, options.recordings) if options.recordings else synthetic(target, phrase)
        write_lists(options.folder, name, files)


if __name__ == "__main__":
    main()
