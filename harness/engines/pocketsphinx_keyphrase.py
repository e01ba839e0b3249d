"""The wake engine PocketSphinx: a keyphrase search for any phrase of words with known pronunciations.

https://cmusphinx.github.io/wiki/tutoriallm/#using-keyword-lists-with-pocketsphinx
"""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.base.plugins import import_extra
from harness.base.refractory import RefractoryFilter
from harness.engines.framed import FrameCutter
from harness.engines.offline_loading import fingerprint
from harness.engines.settings import LEAD_IN, OPERATING_POINT, POINTS, REFRACTORY, number
from harness.model.errors import InputError, Place
from harness.model.offline import (
    EngineFacts,
    EngineKind,
    OfflineModel,
    OfflineSpot,
    OperatingPoint,
    Setting,
    SettingKind,
)

RATE_HZ = 16000
FRAME_SAMPLES = 160
"""10 ms, the decoder's own frames."""
LICENCE = "BSD-2-Clause, also for the en-us acoustic model and dictionary"
DICTIONARY = Setting(
    "dictionary", SettingKind.FILE, "",
    "file of words with their phonemes, added to the packaged ones, one per line: `jarvis JH AA R V AH S`", scores=True,
)  # fmt: skip
_ENTRY = re.compile(r"(\S+?)(?:\(\d+\))?[ \t]+(\S.*)")
_WORD = re.compile(r"[^\s/]+")
Pronunciations = dict[str, list[str]]
"""Word → its pronunciations, each as phonemes with blanks between."""


def _package() -> Any:
    """The package, imported. Raises PluginError, with the remedy, if it is not installed."""
    return import_extra("pocketsphinx", "the engine pocketsphinx", "offline")


def _words_in(phrase: str) -> tuple[str, ...]:
    """The words of a phrase as in the dictionary: lower case, without the punctuation around them."""
    words = (word.strip(".,!?;:\"'()").lower() for word in _WORD.findall(phrase.replace("_", " ")))
    return tuple(word for word in words if word)


def _pronounce(words: Iterable[str], own_file: str) -> tuple[Pronunciations, tuple[str, ...]]:
    """Pronunciations of the words, from the file `own_file` first, then from the packaged dictionary; and the words in
    neither.

    Raises InputError with the line if the file is not a dictionary, or names a sound that the model does not have.
    """
    vocabulary = set(words)
    pronunciations_by_word: Pronunciations = {}
    phones: set[str] = set()
    with Path(_package().get_model_path("en-us/cmudict-en-us.dict")).open(encoding="utf-8") as file:
        for line in file:
            entry = _ENTRY.match(line)
            if entry is None:
                continue
            if entry[1] in vocabulary:
                pronunciations_by_word.setdefault(entry[1], []).append(entry[2].strip())
            if own_file:
                phones.update(entry[2].split())
    if own_file:
        pronunciations_by_word.update(
            {
                word: pronunciations
                for word, pronunciations in _read_dictionary(own_file, phones).items()
                if word in vocabulary
            }
        )
    return pronunciations_by_word, tuple(sorted(vocabulary - pronunciations_by_word.keys()))


def _decoder(pronunciations_by_word: Pronunciations, phrases: str) -> Any:
    """A decoder that searches for the lines of a list of keyphrases, without a language model and silent on stderr."""
    with tempfile.TemporaryDirectory(prefix="harness-phrases-") as folder:
        words, keyphrases = Path(folder) / "words.dict", Path(folder) / "phrases.kws"
        lines = [
            f"{word if not alternative else f'{word}({alternative + 1})'} {phones}\n"
            for word, pronunciations in sorted(pronunciations_by_word.items())
            for alternative, phones in enumerate(pronunciations)
        ]
        words.write_text("".join(lines), encoding="utf-8")
        keyphrases.write_text(phrases, encoding="utf-8")
        # A running mean of the features, not the mean of a whole file, since the sound continues.
        return _package().Decoder(dict=str(words), kws=str(keyphrases), lm=None, loglevel="FATAL", cmn="live")


def _read_text(path: str, subject: str) -> str:
    """Reads a text file. Raises InputError if it cannot be read as UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"the {subject} cannot be read: {error.strerror}", place=Place(path)) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"the {subject} is not UTF-8 text", place=Place(path), remedy="Save the file as UTF-8"
        ) from error


def _read_dictionary(path: str, phones: set[str]) -> Pronunciations:
    """The pronunciations in the user's dictionary. phones: the phonemes of the model.

    Raises InputError for another line.
    """
    pronunciations_by_word: Pronunciations = {}
    for row, line in enumerate(_read_text(path, "dictionary").splitlines(), start=1):
        if not line.strip() or line.startswith((";;;", "#")):
            continue
        entry = _ENTRY.match(line)
        if entry is None:
            raise InputError(
                f"{line.strip()[:60]!r} is not a word followed by its phonemes",
                place=Place(path, row),
                remedy="Enter the word, a space, and its phonemes: jarvis JH AA R V AH S",
            )
        unknown = [phone for phone in entry[2].split() if phone not in phones]
        if unknown:
            raise InputError(
                f"{entry[1]!r} has phonemes that are not in the model: {' '.join(unknown)}",
                place=Place(path, row),
                remedy=f"Use these phonemes: {' '.join(sorted(phones))}",
            )
        pronunciations_by_word.setdefault(entry[1].lower(), []).append(" ".join(entry[2].split()))
    return pronunciations_by_word


KWS_THRESHOLD = Setting(
    "kws-threshold", SettingKind.NUMBER, "1e-30", "likelihood required of a phrase relative to other speech: 1e-30, or "
    "its power of ten, -30; replaces operating-point", low=-300, high=1,
)  # fmt: skip
KEYPHRASES = Setting(
    "keyphrases", SettingKind.FILE, "", "file of phrases, one per line, each with an optional threshold: "
    "`hey jarvis /1e-30/`",
)  # fmt: skip
POINT = Setting(
    OPERATING_POINT.name, SettingKind.WHOLE, "10",
    "1 (strictest) to 20 (most lenient): point n is a kws-threshold of 10^(-3n)", low=1, high=POINTS,
)  # fmt: skip
_DECADES_A_POINT = 3
"""Powers of ten from one operating point to the next, so that the tenth is the default of kws-threshold, 1e-30."""
_LINE = re.compile(r"(.*?)\s*(?:/\s*([^/\s]+)\s*/)?\s*")
_BLOCK_SAMPLES = 8000
"""The decoder gets blocks of one size, whatever sizes the sound comes in, since features are normalised by block."""
_TAIL_SAMPLES = 4800
"""Silence after a file: a phrase at its very end is found some frames later."""

POINTS_OF_SEARCH = tuple(OperatingPoint(n, 10.0 ** (-_DECADES_A_POINT * n)) for n in range(1, POINTS + 1))
"""Point n is the threshold 10^(−3n): 1e-3 is the strictest, 1e-30 the tenth, 1e-60 the most lenient."""


class PocketSphinxKeyphrase:
    """Finds English phrases that are given as text.

    model: a phrase, or several separated by commas. Raises PluginError if the package is missing. Raises InputError for
    words in no dictionary and for an invalid file.
    """

    kind: ClassVar[EngineKind] = EngineKind.WAKE
    settings: ClassVar[tuple[Setting, ...]] = (
        KWS_THRESHOLD, POINT, REFRACTORY, LEAD_IN, KEYPHRASES, DICTIONARY,
    )  # fmt: skip
    operating_points: ClassVar[tuple[OperatingPoint, ...]] = POINTS_OF_SEARCH

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        self._thresholds, point, pronunciations_by_word = _read_task(model, settings)
        phrases = "".join(f"{phrase} /{threshold:g}/\n" for phrase, threshold in self._thresholds.items())
        self._decoder: Any = _decoder(pronunciations_by_word, phrases)
        self._refractory_samples = round(number(settings, REFRACTORY) / 1000 * RATE_HZ)
        self._stream: _Search | None = None
        installed_version = version("pocketsphinx")
        pronunciation_lines = "\n".join(
            f"{word} {' | '.join(pronunciations)}" for word, pronunciations in sorted(pronunciations_by_word.items())
        )
        searched_sha256 = hashlib.sha256(f"{phrases}\n{pronunciation_lines}".encode()).hexdigest()
        self.facts = EngineFacts(
            EngineKind.WAKE,
            f"pocketsphinx {installed_version}",
            RATE_HZ,
            tuple(self._thresholds),
            fingerprint(PocketSphinxKeyphrase, installed_version, searched_sha256, settings),
            licence=LICENCE,
            lead_in_ms=number(settings, LEAD_IN),
            operating_point=point,
            operating_points=POINTS_OF_SEARCH,
            settings=tuple(sorted(settings.items())),
        )

    @classmethod
    def check(cls, model: str, settings: Mapping[str, str]) -> None:
        """Raises the errors of an invalid phrase or file without loading the acoustic model."""
        if find_spec("pocketsphinx") is not None:  # else the workers of a cluster may have it
            _read_task(model, settings)

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """One entry that shows how a model is named: the phrase is the model."""
        _package()
        description = 'one or more English phrases: "hey jarvis, computer"; words in the packaged dictionary (134,000)'
        return (OfflineModel('"PHRASE"', (), LICENCE, description),)

    def listen(self) -> _Search:
        """A fresh search; ends the previous one."""
        if self._stream is not None:
            self._stream.end()
        self._stream = _Search(self._decoder, self._refractory_samples)
        return self._stream

    def close(self) -> None:
        """Ends the search."""
        if self._stream is not None:
            self._stream.end()
            self._stream = None


class _Search:
    """One endless utterance. Times are the segments' own, in frames of 10 ms; the score is the search's."""

    def __init__(self, decoder: Any, refractory_samples: int) -> None:
        self._decoder = decoder
        decoder.reinit_feat()  # Otherwise means and noise level carry over from the previous file.
        decoder.start_utt()
        self._open = True
        self._blocks = FrameCutter(_BLOCK_SAMPLES)
        self._fed_samples = 0
        self._seen_segments = 0
        self._refractory_filter = RefractoryFilter(refractory_samples)
        self._spots: list[OfflineSpot] = []

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        self._fed_samples += len(samples)
        for block in self._blocks.cut(samples):
            self._search(block)

    def take(self, *, flush: bool) -> tuple[OfflineSpot, ...]:
        if flush and self._open:
            self._search(np.concatenate([self._blocks.rest, np.zeros(_TAIL_SAMPLES, np.int16)]))
            self.end()
        spots, self._spots = tuple(self._spots), []
        return spots

    def end(self) -> None:
        """Ends the search, so that the decoder is free for another one."""
        if self._open:
            self._open = False
            self._decoder.end_utt()

    def _search(self, block: npt.NDArray[np.int16]) -> None:
        self._decoder.process_raw(block.tobytes(), False, False)
        if self._decoder.hyp() is None:
            return
        # Segments come oldest first, and stay. A better segment that overlaps a reported one may move it.
        for segment in islice(self._decoder.seg(), self._seen_segments, None):
            self._seen_segments += 1
            start = min(segment.start_frame * FRAME_SAMPLES, self._fed_samples)
            end = min((segment.end_frame + 1) * FRAME_SAMPLES, self._fed_samples)
            phrase = segment.word.strip()
            if start < self._fed_samples and self._refractory_filter.accept(phrase, end):
                self._spots.append(OfflineSpot(phrase, start, end, float(segment.prob)))


def _read_task(model: str, settings: Mapping[str, str]) -> tuple[dict[str, float], int | None, Pronunciations]:
    """The phrases with their thresholds, the operating point, and the pronunciations of their words."""
    threshold, point = _threshold(settings)
    path = settings.get(KEYPHRASES.name, "")
    thresholds = _phrases(model, path, threshold)
    words = (word for phrase in thresholds for word in _words_in(phrase))
    pronunciations_by_word, missing = _pronounce(words, settings.get(DICTIONARY.name, ""))
    if not missing:
        return thresholds, point, pronunciations_by_word
    lines = enumerate(_read_text(path, "list of keyphrases").splitlines() if path else [], start=1)
    row = next((row for row, line in lines if line[:1] != "#" and missing[0] in _words_in(line)), None)
    raise InputError(
        f"pocketsphinx's dictionary does not contain: {', '.join(missing)}",
        place=None if row is None else Place(path, row),
        remedy=f"Write {'their' if missing[1:] else 'its'} phonemes into a file, one word per line. A line "
        "looks like `jarvis JH AA R V AH S` (ARPAbet, as in cmudict). Then add -f dictionary FILE",
    )


def _threshold(settings: Mapping[str, str]) -> tuple[float, int | None]:
    """The threshold of phrases without their own, and its operating point (None: a threshold was set)."""
    if KWS_THRESHOLD.name in settings:
        if POINT.name in settings:
            raise InputError(
                "kws-threshold and operating-point are both set, but each sets the threshold",
                remedy="Set only one of the two",
            )
        return _parse_threshold(settings[KWS_THRESHOLD.name], None), None
    point = round(number(settings, POINT))
    return POINTS_OF_SEARCH[point - 1].threshold, point


def _parse_threshold(text: str, place: Place | None) -> float:
    """A threshold written as such (above 0) or as its power of ten (below 0)."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -300 <= value <= 1 or value == 0:  # A float has no power of ten far below −300.
        raise InputError(
            f"{text!r} is not a keyphrase threshold",
            place=place,
            remedy="Specify the threshold as 1e-30, or as its power of ten, -30",
        )
    return value if value > 0 else 10.0**value


def _phrases(model: str, path: str, threshold: float) -> dict[str, float]:
    """Phrases with their thresholds, in the order given.

    Raises InputError if there are none, and for an invalid line.
    """
    thresholds: dict[str, float] = {}
    entries: list[tuple[str, str | None, int]] = [(part, None, 0) for part in model.split(",")] if model.strip() else []
    lines = _read_text(path, "list of keyphrases").splitlines() if path else []
    for line_number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line)
        if line.strip() and not line.startswith("#") and match is not None:
            entries.append((match[1], match[2], line_number))
    for text, threshold_text, line_number in entries:
        place = Place(path, line_number) if line_number else None
        phrase = " ".join(_words_in(text))
        if not phrase:
            raise InputError(f"{text!r} contains no word", place=place)
        thresholds[phrase] = threshold if threshold_text is None else _parse_threshold(threshold_text, place)
    if not thresholds:
        raise InputError(
            "pocketsphinx needs a phrase",
            remedy="Pass a phrase: -t 'pocketsphinx:\"hey jarvis\"'. Or use a file of phrases: -f keyphrases FILE",
        )
    return thresholds
