"""A small understander: logistic regression on TF-IDF for intents, and a conditional random field for slots.

The field sees the intents beside the words: those of the annotation while it learns, the model's own afterwards.

By python-crfsuite and scikit-learn; trains in seconds to minutes on one processor, from scratch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from harness.model.errors import InputError, Place, PluginError
from harness.model.offline import Setting, SettingKind
from harness.model.understanding import Prediction, Utterance
from harness.plugins import checked_settings
from harness.understanding.linear_model import REMEDY, LinearModel, LinearRule, fit_linear, load_linear

THRESHOLD = 0.5
"""Above it an intent is given. Source: seed MEDIA, 3.2 and 4.1."""
OUTSIDE = "O"
CRF_FILE = "slots.crfsuite"
NAMES_FILE = "crf.json"
_MAGIC = b"lCRF"
_DIGIT = re.compile(r"\d")

ITERATIONS = Setting(
    "iterations", SettingKind.WHOLE, "80", "of the random field's training; more is slower", low=1, high=2000
)
L1 = Setting("l1", SettingKind.NUMBER, "0.05", "weight that makes features of slots few", low=0, high=100)
L2 = Setting("l2", SettingKind.NUMBER, "0.01", "weight that makes features of slots small", low=0, high=100)
RARE = Setting("rare", SettingKind.WHOLE, "1", "features of slots that come less often are left out", low=1, high=1000)
STRENGTH = Setting(
    "strength", SettingKind.NUMBER, "300", "of intents: more follows the training texts closer", low=0.001, high=1e6
)
WORDS = Setting("words", SettingKind.WHOLE, "2", "longest run of words that counts for intents", low=1, high=5)
PIECES = Setting(
    "pieces", SettingKind.WHOLE, "4", "longest run of letters in a word that counts for intents; 0: none",
    low=0, high=8,
)  # fmt: skip


class CrfUnderstander:
    """Plug-in `crf`. The held-out utterances are not looked at."""

    settings: ClassVar[tuple[Setting, ...]] = (ITERATIONS, L1, L2, RARE, STRENGTH, WORDS, PIECES)

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None:
        self._settings = {one.name: one.default for one in self.settings}
        self._settings |= checked_settings(self.settings, settings.items(), "crf")
        self._seed = seed
        self._crf = _pycrfsuite()
        self._intents: LinearModel | None = None
        self._tagger: Any = None
        self._trained = b""

    def fit(self, train: Sequence[Utterance], held_out: Sequence[Utterance], tell: Callable[[str], None]) -> None:
        """Learns anew. ValueError without utterances."""
        if not train:
            raise ValueError("there is nothing to learn from")
        texts = [one.text for one in train]
        sets = [one.intents or () for one in train]
        labels = sorted({label for one in sets for label in one})
        tell(f"intents: {len(labels)} labels, {len(train):,} utterances")
        runs = int(self._settings[WORDS.name]), int(self._settings[PIECES.name])
        rule = LinearRule(*runs, float(self._settings[STRENGTH.name]), balanced=True)
        self._intents = fit_linear(texts, sets, labels, rule, seed=self._seed)
        self._trained = self._train_slots(train, tell)
        self._tagger = self._open(self._trained)

    def predict(self, words: Sequence[tuple[str, ...]]) -> list[Prediction]:
        if self._intents is None:
            raise ValueError("it has learned nothing yet")
        labels = self._intents.labels
        given = self._intents.probabilities([" ".join(one) for one in words])
        found = []
        for one, row in zip(words, given.tolist(), strict=True):
            # The model's constants are a guess at what is frequent; who said nothing has meant nothing.
            intents = tuple(label for label, score in zip(labels, row, strict=True) if score > THRESHOLD and one)
            found.append(Prediction(intents, self._tags(one, intents), tuple(zip(labels, row, strict=True))))
        return found

    def save(self, folder: Path) -> None:
        if self._intents is None:
            raise ValueError("it has learned nothing yet")
        self._intents.save(folder)
        (folder / CRF_FILE).write_bytes(self._trained)
        written = {"settings": self._settings, "seed": self._seed, "slots": bool(self._trained)}
        (folder / NAMES_FILE).write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        path = folder / NAMES_FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            made = cls({str(name): str(value) for name, value in found["settings"].items()}, seed=int(found["seed"]))
            path = folder / CRF_FILE
            trained = path.read_bytes()
            if bool(found["slots"]) != bool(trained) or (trained and not _is_whole(trained)):
                raise ValueError("it is no whole model of a random field")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"the model is damaged: {error}", place=Place(str(path)), remedy="Take it from a copy, or train it anew"
            ) from error
        made._intents = load_linear(folder)
        made._trained = trained
        made._tagger = made._open(trained)
        return made

    def _train_slots(self, train: Sequence[Utterance], tell: Callable[[str], None]) -> bytes:
        """The trained field; b"" where no utterance has a slot."""
        tagged = [one for one in train if one.tags]
        concepts = {tag for one in tagged for tag in one.tags or ()} - {OUTSIDE}
        if not concepts:
            tell("slots: none in the training utterances")
            return b""
        trainer = self._crf.Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params({
            "c1": float(self._settings["l1"]), "c2": float(self._settings["l2"]),
            "feature.minfreq": int(self._settings["rare"]), "max_iterations": int(self._settings["iterations"]),
        })  # fmt: skip
        for one in tagged:
            trainer.append(features(one.words, one.intents or ()), list(one.tags or ()))
        tell(
            f"slots: {len(concepts)} tags, {len(tagged):,} utterances, up to {self._settings['iterations']} iterations"
        )
        import tempfile  # here, since it takes long to import

        with tempfile.TemporaryDirectory(prefix="harness-crf-") as folder:
            path = Path(folder) / CRF_FILE
            trainer.train(str(path))
            return path.read_bytes()

    def _open(self, trained: bytes) -> Any:
        if not trained:
            return None
        tagger = self._crf.Tagger()
        tagger.open_inmemory(trained)
        return tagger

    def _tags(self, words: tuple[str, ...], intents: tuple[str, ...]) -> tuple[str, ...]:
        if self._tagger is None or not words:
            return (OUTSIDE,) * len(words)
        return tuple(self._tagger.tag(features(words, intents)))


def features(words: Sequence[str], intents: Sequence[str]) -> list[list[str]]:
    """Features of each word: itself, its neighbours up to two away, its ends, its shape, and the intents."""
    lower = [_plain(word) for word in words]
    padded = ["<s2>", "<s1>", *lower, "<e1>", "<e2>"]
    found = []
    for at, word in enumerate(lower):
        before2, before, after, after2 = padded[at], padded[at + 1], padded[at + 3], padded[at + 4]
        here = [
            "bias",
            f"w={word}",
            f"w-1={before}",
            f"w+1={after}",
            f"w-2={before2}",
            f"w+2={after2}",
            f"w-1w={before}|{word}",
            f"ww+1={word}|{after}",
            f"w-2w-1={before2}|{before}",
            f"w+1w+2={after}|{after2}",
            f"w-1w+1={before}|{after}",
            f"end={word[-3:]}",
            f"start={word[:3]}",
            f"shape={_shape(words[at])}",
        ]
        for intent in intents:
            here += [f"i={intent}", f"i={intent}|{word}", f"i={intent}|-1{before}"]
        found.append(here)
    return found


def _plain(word: str) -> str:
    """Small letters, digits as 0; a NUL, at which the library would end a text, as a replacement character."""
    small = _DIGIT.sub("0", word.lower()).replace("\0", "�")
    return small.encode("utf-8", "replace").decode("utf-8")


def _shape(word: str) -> str:
    kinds = (
        "9" if letter.isdigit() else "A" if letter.isupper() else "a" if letter.isalpha() else "." for letter in word
    )
    shape = ""
    for kind in kinds:
        if not shape.endswith(kind):
            shape += kind
    return shape[:8]


def _is_whole(trained: bytes) -> bool:
    """Whether the bytes begin as a CRFsuite model does and are as many as it says: the library trusts both."""
    return trained[:4] == _MAGIC and int.from_bytes(trained[4:8], "little") == len(trained)


def _pycrfsuite() -> Any:
    try:
        import pycrfsuite
    except ImportError as error:
        raise PluginError(f"python-crfsuite cannot be loaded: {error}", remedy=REMEDY) from error
    return pycrfsuite
