"""PocketSphinx with a dictionary of just the words that are asked for: what both of its engines are made of."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness.model.errors import InputError, Place, PluginError
from harness.model.offline import Setting, SettingKind

RATE_HZ = 16000
FRAME_SAMPLES = 160
LICENCE = "BSD-2-Clause; acoustic model and dictionary en-us likewise"
DICTIONARY = Setting(
    "dictionary",
    SettingKind.FILE,
    "",
    "words and their sounds beside the packaged English ones, a line each: `jarvis JH AA R V AH S`",
    scores=True,
)
_ENTRY = re.compile(r"(\S+?)(?:\(\d+\))?[ \t]+(\S.*)")
_WORD = re.compile(r"[^\s/]+")
Sounds = dict[str, list[str]]


def package() -> Any:
    """The package, imported; PluginError with the remedy when it is not installed."""
    try:
        import pocketsphinx
    except ImportError as error:
        raise PluginError(
            "the engine pocketsphinx is not installed",
            remedy="Install the extra that carries it: pip install 'voice-harness[offline]'",
        ) from error
    return pocketsphinx


def package_version() -> str:
    """Version of the installed package."""
    return version("pocketsphinx")


def words_of(phrase: str) -> tuple[str, ...]:
    """The words of a phrase as the dictionary spells them: lower case, without the punctuation around them."""
    found = (word.strip(".,!?;:\"'()").lower() for word in _WORD.findall(phrase.replace("_", " ")))
    return tuple(word for word in found if word)


def sounds(words: Iterable[str], own: str = "") -> tuple[Sounds, tuple[str, ...]]:
    """How the words are said, from the file `own` first and the packaged dictionary else; and the words in neither.

    InputError with the line when the file is no dictionary or names a sound that the model does not have.
    """
    wanted = set(words)
    found: Sounds = {}
    phones: set[str] = set()
    with Path(package().get_model_path("en-us/cmudict-en-us.dict")).open(encoding="utf-8") as file:
        for line in file:
            entry = _ENTRY.match(line)
            if entry is None:
                continue
            if entry[1] in wanted:
                found.setdefault(entry[1], []).append(entry[2].strip())
            if own:
                phones.update(entry[2].split())
    if own:
        found.update({word: said for word, said in _own_sounds(own, phones).items() if word in wanted})
    return found, tuple(sorted(wanted - found.keys()))


def decoder(said: Sounds, **config: Any) -> Any:
    """A decoder that knows these words; without a language model and without a word on stderr. RuntimeError from it."""
    with tempfile.TemporaryDirectory(prefix="harness-words-") as folder:
        path = Path(folder) / "words.dict"
        lines = [
            f"{word if not number else f'{word}({number + 1})'} {phones}\n"
            for word, ways in sorted(said.items())
            for number, phones in enumerate(ways)
        ]
        path.write_text("".join(lines), encoding="utf-8")
        return package().Decoder(dict=str(path), lm=None, loglevel="FATAL", **config)


def pronunciation_remedy(missing: Iterable[str]) -> str:
    """What to do about words that are in no dictionary."""
    return (
        f"Write how they are said into a file, a line each, as `{next(iter(missing))} JH AA R V AH S` (ARPAbet, as in "
        "cmudict), and name it with -f dictionary FILE"
    )


def settings_text(settings: Mapping[str, str], said: Sounds) -> str:
    """What a decoder's behaviour depends on beside the model, for a fingerprint."""
    words = "\n".join(f"{word} {' | '.join(ways)}" for word, ways in sorted(said.items()))
    return "\n".join(f"{name}={value}" for name, value in sorted(settings.items())) + "\n" + words


def read_text(path: str, what: str) -> str:
    """A text file of ours or the user's; InputError when it cannot be read as UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"the {what} cannot be read: {error.strerror}", place=Place(path)) from error
    except UnicodeDecodeError as error:
        raise InputError(f"the {what} is not UTF-8 text", place=Place(path), remedy="Save it as UTF-8") from error


def _own_sounds(path: str, phones: set[str]) -> Sounds:
    found: Sounds = {}
    for number, line in enumerate(read_text(path, "dictionary").splitlines(), start=1):
        if not line.strip() or line.startswith((";;;", "#")):
            continue
        entry = _ENTRY.match(line)
        if entry is None:
            raise InputError(
                f"{line.strip()[:60]!r} is no word with its sounds",
                place=Place(path, number),
                remedy="Write the word, a space, and its sounds, as in: jarvis JH AA R V AH S",
            )
        unknown = [phone for phone in entry[2].split() if phone not in phones]
        if unknown:
            raise InputError(
                f"{entry[1]!r} has sounds that the model does not know: {' '.join(unknown)}",
                place=Place(path, number),
                remedy=f"The model knows: {' '.join(sorted(phones))}",
            )
        found.setdefault(entry[1].lower(), []).append(" ".join(entry[2].split()))
    return found
