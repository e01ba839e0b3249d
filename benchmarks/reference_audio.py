"""Lists for a reference evaluation: human speech without the phrase, and the phrase by synthetic voices in noise.

usage: reference_audio.py FOLDER [--phrase alexa …] [--recordings FOLDER]

Out of vocabulary: the telephone prompts of Debian's asterisk-core-sounds-{en,es,fr,it,ru}-g722 (people, 16 kHz,
CC-BY-SA), and its music on hold where asterisk-moh-opsound-g722 is installed. In vocabulary: no package with human wake
phrases was found, so these are synthetic voices; with --recordings the files of your folder are listed instead.
Every list comes twice: of voices and files to choose an operating point on (dev), and of others to report it (test).
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
    """Voices that are told apart by name; what is not installed is left out."""
    renderer = Renderer(None)
    for engine, names in (("espeak", [v + x for v in ESPEAK for x in VARIANTS]), ("flite", FLITE), ("hibari", None)):
        try:
            known = renderer.voice(engine).names()
        except VoiceError as error:
            print(f"left out: {engine}: {error}", file=sys.stderr)
            continue
        for name in names if names is not None else known:
            if name in known or engine == "espeak":
                yield VoiceSpec(engine, name)


def part(name: str) -> str:
    """dev or test, by the name: the same on every machine."""
    return "dev" if hashlib.sha256(name.encode()).digest()[0] % 2 else "test"


def synthetic(folder: Path, phrase: str) -> Iterator[tuple[str, Path]]:
    """(part, file) of the phrase in every voice and every noise."""
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
            yield part(voice.label()), path


def recorded(folder: Path, own: Path) -> Iterator[tuple[str, Path]]:
    """(part, file) of your own recordings, brought to 16 kHz; the folder of a file is taken for its talker."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(path for path in own.rglob("*") if path.suffix.lower() in (".wav", ".flac")):
        path = folder / f"{hashlib.sha256(str(source.relative_to(own)).encode()).hexdigest()[:16]}.wav"
        _write(path, at_rate(read(str(source)), RATE_HZ).samples)
        yield part(str(source.parent)), path


def prompts(folder: Path) -> Iterator[tuple[str, Path]]:
    """(part, file) of the prompts of each language, joined to files of about five minutes, with their own pauses."""
    folder.mkdir(parents=True, exist_ok=True)
    by_language: dict[str, list[Path]] = {}
    for path in sorted(PROMPTS.rglob("*.g722")):
        by_language.setdefault(path.relative_to(PROMPTS).parts[1], []).append(path)
    for language, paths in by_language.items():
        held: list[np.ndarray] = []
        number = 0
        for index, path in enumerate(paths):
            held.append(_g722(path))
            if sum(map(len, held)) >= 300 * RATE_HZ or index == len(paths) - 1:
                target = folder / f"{language}-{number:03d}.wav"
                soundfile.write(target, np.concatenate(held), RATE_HZ, subtype="PCM_16")
                yield part(target.name), target
                held, number = [], number + 1


def _g722(path: Path) -> np.ndarray:
    with av.open(str(path), format="g722") as source:
        pieces = [frame.to_ndarray().reshape(-1) for frame in source.decode(audio=0)]
    return np.concatenate(pieces).astype(np.int16) if pieces else np.zeros(0, np.int16)


def _write(path: Path, samples: np.ndarray) -> None:
    soundfile.write(path, samples, RATE_HZ, subtype="PCM_16")


def lists(folder: Path, name: str, files: Iterator[tuple[str, Path]]) -> None:
    """Writes NAME-dev.txt and NAME-test.txt."""
    found: dict[str, list[Path]] = {"dev": [], "test": []}
    for which, path in files:
        found[which].append(path.resolve())
    for which, paths in found.items():
        target = folder / f"{name}-{which}.txt"
        target.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
        seconds = sum(soundfile.info(path).duration for path in paths)
        print(f"{target}: {len(paths)} files, {seconds / 3600:.3f} h")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--phrase", nargs="+", default=["alexa", "hey jarvis", "hey mycroft", "okay nabu"])
    parser.add_argument("--recordings", type=Path, help="a folder of your own recordings of the (one) phrase")
    given = parser.parse_args()
    if not any(PROMPTS.rglob("*.g722")):
        packages = " ".join(f"asterisk-core-sounds-{language}-g722" for language in ("en", "es", "fr", "it", "ru"))
        sys.exit(f"no prompts below {PROMPTS}: apt-get install --no-install-recommends {packages}")
    if given.recordings and len(given.phrase) != 1:
        sys.exit("--recordings are of one phrase: name it with --phrase")
    subprocess.run(["espeak-ng", "--version"], check=True, stdout=subprocess.DEVNULL)
    given.folder.mkdir(parents=True, exist_ok=True)
    lists(given.folder, "oov", prompts(given.folder / "oov"))
    for phrase in given.phrase:
        name = phrase.replace(" ", "_")
        target = given.folder / name
        files = recorded(target, given.recordings) if given.recordings else synthetic(target, phrase)
        lists(given.folder, name, files)


if __name__ == "__main__":
    main()
