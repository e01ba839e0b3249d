"""Runs speech engines that are programs: without a shell, with a time limit, with VoiceError for failures."""

from __future__ import annotations

import difflib
import functools
import io
import os
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from harness.model.errors import LanguageError, VoiceError
from harness.model.numbers import exact
from harness.model.stimulus import Waveform
from harness.sound.level import is_silent
from harness.sound.wave_file import UnusableSound, read_wave

MAX_CHARACTERS = 20_000


def one_line(text: str, engine: str) -> str:
    """The text as one line. Control characters (commands to some engines) and line breaks become spaces.

    Raises VoiceError if no letter, number or symbol is left, above 20,000 characters, or if it is not valid Unicode.
    """
    if len(text) > MAX_CHARACTERS:
        raise VoiceError(
            f"the text for {engine} has {len(text)} characters; the limit is {MAX_CHARACTERS}",
            remedy="Split the text into several stimuli",
        )
    if any(unicodedata.category(character) == "Cs" for character in text):
        raise VoiceError(
            "the text contains an incomplete character (a lone surrogate)", remedy="Save the file as UTF-8"
        )
    characters = (" " if unicodedata.category(character) == "Cc" else character for character in text)
    line = unicodedata.normalize("NFC", " ".join("".join(characters).split()))
    # Some engines click or breathe at bare punctuation, which is not speech.
    if not any(unicodedata.category(character)[0] in "LNS" or character in "%&@#" for character in line):
        raise VoiceError(
            f"the text for {engine} has nothing to pronounce: {line!r}", remedy="Add words to the stimulus"
        )
    return line


def excerpt(text: str, length: int = 60) -> str:
    """The beginning of a text, quoted, for a message."""
    return repr(text if len(text) <= length else text[:length] + "…")


def unknown_name(engine: str, name: str, known_names: Iterable[str]) -> VoiceError:
    """The error for a voice that an engine does not have, with the nearest names."""
    names = sorted(known_names)
    names_by_key: dict[str, str] = {}
    for known_name in names:
        names_by_key.setdefault(known_name.casefold(), known_name)
    similar = [
        names_by_key[match] for match in difflib.get_close_matches(name.casefold(), names_by_key, n=3, cutoff=0.5)
    ]
    suggestion = f"Did you mean {' or '.join(similar)}? " if similar else ""
    return VoiceError(
        f"{engine} has no voice named {name!r}",
        remedy=f"{suggestion}List its voices: harness admin voices list --engine {engine}",
    )


def checked_range(engine: str, field: str, value: int, low: int, high: int) -> int:
    """The value if low ≤ value ≤ high, else VoiceError with the name of the field."""
    if not low <= value <= high:
        raise VoiceError(f"{engine}: {field} {value} is out of range", remedy=f"Use {low} to {high}")
    return value


def same_language(language: str, spoken: Iterable[str]) -> bool:
    """Whether two BCP 47 tags share the language. Region and script may differ."""
    return language.split("-")[0].casefold() in {tag.split("-")[0].casefold() for tag in spoken}


def wrong_language(engine: str, name: str, language: str, spoken: str) -> LanguageError:
    """The error for a text in a language that the voice does not speak."""
    return LanguageError(
        f"the voice {engine}:{name} speaks {spoken}, but `language` is {language}",
        remedy=f"Set `language: {spoken}`, or choose a voice for {language}",
    )


def refuse_foreign(engine: str, foreign: Iterable[str], text: str, remedy: str) -> None:
    """Raises VoiceError that names the characters of a text that an engine cannot pronounce, if there are any."""
    characters = sorted(set(foreign))
    if characters:
        raise VoiceError(f"{engine} cannot pronounce {' '.join(characters[:10])} in {excerpt(text)}", remedy=remedy)


def parse_wav(data: bytes, engine: str) -> Waveform:
    """The samples of a 16-bit mono WAV in memory, shape (n,), at its own rate. Raises VoiceError if it is not one."""
    if not data:
        raise VoiceError(f"{engine} produced no sound", remedy="Use words that the voice can pronounce")
    try:
        sound = read_wave(io.BytesIO(data), len(data))
    except UnusableSound as error:
        raise VoiceError(f"{engine} did not produce a usable WAV file: {error.detail}") from error
    if sound.channels != 1:
        raise VoiceError(f"{engine} produced {sound.channels} channels instead of 1")
    if not sound.frames:
        raise VoiceError(f"{engine} produced no sound", remedy="Use words that the voice can pronounce")
    pcm = np.frombuffer(data, "<i2", sound.frames, sound.offset)
    return Waveform((pcm / 32768).astype(np.float32), sound.rate_hz)


def refuse_silence(waveform: Waveform, engine: str, text: str) -> Waveform:
    """The waveform. Raises VoiceError if an engine produced only silence for a text."""
    if is_silent(waveform.samples):
        raise VoiceError(
            f"{engine} produced only silence for {excerpt(text)}",
            remedy="Use words that the voice can pronounce, or another voice",
        )
    return waveform


def program_path(program: str, remedy: str) -> str:
    """The path of a program. Raises VoiceError with the remedy if it is not installed."""
    path = shutil.which(program)
    if path is None:
        raise VoiceError(f"{program} is not installed", remedy=remedy)
    return path


@functools.cache
def version(program: str, pattern: str, remedy: str) -> str:
    """The group of the pattern in the output of a program's `--version`; VoiceError if it is not found."""
    output = run([program, "--version"], timeout_s=10, good=(0, 1)).decode(errors="replace")
    number = re.search(pattern, output)
    if number is None:
        raise VoiceError(f"{Path(program).name} --version printed {output[:80]!r}", remedy=remedy)
    return number[1]


def run(argv: Sequence[str], text: str = "", *, timeout_s: float = 60.0, good: tuple[int, ...] = (0,)) -> bytes:
    """Runs a program with the text (UTF-8) on its standard input, and returns its standard output.

    good: exit statuses of success. Raises VoiceError with the beginning of its stderr if the program cannot start,
    fails, is killed or takes longer than timeout_s (then it is ended).
    """
    try:
        result = subprocess.run(
            list(argv),
            input=text.encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise VoiceError(
            f"{argv[0]} did not finish within {exact(timeout_s)} s", remedy="Use a shorter text"
        ) from error
    except OSError as error:
        raise VoiceError(
            f"{argv[0]} cannot be started: {error.strerror}", remedy="Check that it is installed correctly"
        ) from error
    if result.returncode not in good:
        reason = " ".join(result.stderr.decode(errors="replace").split())[:300]
        status = result.returncode
        ending = f"was killed by signal {-status}" if status < 0 else f"failed with status {status}"
        raise VoiceError(f"{argv[0]} {ending}: {reason or 'it printed no error message'}")
    return result.stdout
