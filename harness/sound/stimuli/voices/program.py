"""Speech engines that are programs: run without a shell, with a time limit, their faults as VoiceError."""

from __future__ import annotations

import difflib
import os
import shutil
import struct
import subprocess
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from harness.model.errors import LanguageError, VoiceError
from harness.model.stimulus import Waveform

MAX_CHARACTERS = 20_000


def one_line(text: str, engine: str) -> str:
    """The text as one line: control characters (engines take some as commands) and line breaks become blanks.

    VoiceError when no letter, number or symbol is left, beyond 20,000 characters, or when it is not valid Unicode.
    """
    if len(text) > MAX_CHARACTERS:
        raise VoiceError(
            f"{engine} was given {len(text)} characters to speak; the limit is {MAX_CHARACTERS}",
            remedy="Split the text into several stimuli",
        )
    if any(unicodedata.category(character) == "Cs" for character in text):
        raise VoiceError("the text holds half a character (a lone surrogate)", remedy="Save the file as UTF-8")
    kept = (" " if unicodedata.category(character) == "Cc" else character for character in text)
    line = unicodedata.normalize("NFC", " ".join("".join(kept).split()))
    # Some engines click or breathe at bare punctuation, which is no speech.
    if not any(unicodedata.category(character)[0] in "LNS" or character in "%&@#" for character in line):
        raise VoiceError(f"{engine} was given nothing to pronounce: {line!r}", remedy="Give the stimulus words to say")
    return line


def excerpt(text: str, length: int = 60) -> str:
    """The beginning of a text, quoted, for a message."""
    return repr(text if len(text) <= length else text[:length] + "…")


def unknown_name(engine: str, name: str, known: Iterable[str]) -> VoiceError:
    """The error for a voice that an engine does not have, with the nearest names."""
    listed = sorted(known)
    folded: dict[str, str] = {}
    for entry in listed:
        folded.setdefault(entry.casefold(), entry)
    near = [folded[found] for found in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return VoiceError(
        f"{engine} has no voice called {name!r}", remedy=f"{meant}All of them: harness voices list --engine {engine}"
    )


def checked_range(engine: str, field: str, value: int, low: int, high: int) -> int:
    """The value when low ≤ value ≤ high, else VoiceError naming the field."""
    if not low <= value <= high:
        raise VoiceError(f"{engine}: {field} {value} is out of range", remedy=f"Use {low} to {high}")
    return value


def same_language(asked: str, spoken: Iterable[str]) -> bool:
    """Whether two BCP 47 tags share the language; the region and the script are the voice's own affair."""
    return asked.split("-")[0].casefold() in {tag.split("-")[0].casefold() for tag in spoken}


def wrong_language(engine: str, name: str, asked: str, spoken: str) -> LanguageError:
    """The error for a text in a language that the voice does not speak."""
    return LanguageError(
        f"the voice {engine}:{name} speaks {spoken}, but language is {asked}",
        remedy=f"Set language: {spoken}, or choose a voice for {asked}",
    )


def parse_wav(data: bytes, engine: str) -> Waveform:
    """The samples of a 16-bit mono WAV in memory, shape (n,), at its own rate.

    A data chunk whose size is zero or larger than what follows (a streamed header) holds all that follows.
    VoiceError when it is no such WAV or has no samples.
    """
    if not data:
        raise VoiceError(f"{engine} gave no sound", remedy="Give it words that it can pronounce")
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise VoiceError(f"{engine} did not give a WAV file but {data[:16]!r}")
    rate_hz = 0
    position = 12
    while position + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, position)
        position += 8
        if name == b"fmt ":
            if position + 16 > len(data):
                break
            coding, channels, rate_hz, _, _, bits = struct.unpack_from("<HHIIHH", data, position)
            if (coding, channels, bits) != (1, 1, 16) or not rate_hz:
                raise VoiceError(f"{engine} gave WAV coding {coding}, {channels} channels, {bits} bits, {rate_hz} Hz")
        elif name == b"data":
            if not rate_hz:
                break
            length = size if 0 < size <= len(data) - position else len(data) - position
            pcm = np.frombuffer(data, "<i2", length // 2, position)
            if not len(pcm):
                raise VoiceError(f"{engine} gave no sound", remedy="Give it words that it can pronounce")
            return Waveform((pcm / 32768).astype(np.float32), rate_hz)
        position += size + size % 2
    raise VoiceError(f"{engine} gave a WAV file that is cut off before its samples")


def found(program: str, remedy: str) -> str:
    """The path of a program; VoiceError with the remedy when it is not installed."""
    path = shutil.which(program)
    if path is None:
        raise VoiceError(f"{program} is not installed", remedy=remedy)
    return path


def run(argv: Sequence[str], text: str = "", *, timeout_s: float = 60.0, good: tuple[int, ...] = (0,)) -> bytes:
    """What the program writes to stdout when it reads the text, as UTF-8, on stdin.

    good: the exit statuses of success. VoiceError, with the first words of its stderr, when the program cannot start,
    fails, is killed or takes longer than timeout_s (then it is ended).
    """
    try:
        done = subprocess.run(
            list(argv),
            input=text.encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise VoiceError(f"{argv[0]} did not finish within {timeout_s:g} s", remedy="Give it a shorter text") from error
    except OSError as error:
        raise VoiceError(f"{argv[0]} cannot be started: {error.strerror}", remedy="Check its installation") from error
    if done.returncode not in good:
        said = " ".join(done.stderr.decode(errors="replace").split())[:300]
        ended = f"was ended by signal {-done.returncode}" if done.returncode < 0 else f"failed ({done.returncode})"
        raise VoiceError(f"{argv[0]} {ended}: {said or 'it gave no reason'}")
    return done.stdout
