"""A small understander: logistic regression on TF-IDF for intents, and a conditional random field for slots.

    words ── regression ── intents ── field ── slots ── second regression ── intents ── field ── slots

The field has the intents as features beside the words. The second regression decides the intents from words and slots,
so that an unknown value does not hide the intent. In training, each uses the annotation instead of the other's output.

Uses python-crfsuite and scikit-learn. Trains from scratch, in seconds to minutes on one processor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from harness.base.plugins import checked_settings
from harness.model.errors import PluginError
from harness.model.offline import Setting, SettingKind
from harness.model.understanding import Prediction, Utterance
from harness.understanding.models.model_folder import damaged_model
from harness.understanding.models.tfidf_classifier import (
    REMEDY,
    Floats,
    LinearModel,
    LinearRule,
    fit_linear,
    load_linear,
)
from harness.understanding.models.votes import selected_labels, sets_of
from harness.understanding.tag_chunks import OUTSIDE

_MAGIC = b"lCRF"
_DIGIT = re.compile(r"\d")


class SlotField:
    """A trained conditional random field. Raises ValueError for bytes that are not a model.

    trained: the model as the library saves it; b"" if no utterance had a slot.
    """

    def __init__(self, trained: bytes) -> None:
        self.trained = trained
        self._tagger: Any = None
        if trained:
            if not _is_complete(trained):
                raise ValueError("it is not a complete random field model")
            self._tagger = pycrfsuite().Tagger()
            self._tagger.open_inmemory(trained)

    @classmethod
    def fit(
        cls, tagged: Sequence[Utterance], iterations: int = 80, l1: float = 0.05, l2: float = 0.01, rare: int = 1
    ) -> Self:
        """Learns from the tags and intents of annotated utterances.

        - l1, l2: weights of L1 and L2 regularisation.
        - rare: features that occur less often than this are left out.
        """
        if not concept_tags(tagged):
            return cls(b"")
        trainer = pycrfsuite().Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params({
            "c1": l1, "c2": l2, "feature.minfreq": rare, "max_iterations": iterations,
        })  # fmt: skip
        for utterance in tagged:
            trainer.append(features(utterance.words, utterance.intents or ()), list(utterance.tags or ()))
        import tempfile  # imported here, since it is slow to import

        with tempfile.TemporaryDirectory(prefix="harness-crf-") as folder:
            path = Path(folder) / "field.crfsuite"
            trainer.train(str(path))
            return cls(path.read_bytes())

    def tags(self, words: tuple[str, ...], intents: tuple[str, ...]) -> tuple[str, ...]:
        """One tag per word; all OUTSIDE if the model has learnt no concepts."""
        if self._tagger is None or not words:
            return (OUTSIDE,) * len(words)
        return tuple(self._tagger.tag(features(words, intents)))


def concept_tags(utterances: Sequence[Utterance]) -> set[str]:
    """All tags that occur, except O."""
    return {tag for utterance in utterances for tag in utterance.tags or ()} - {OUTSIDE}


def with_concepts(words: Sequence[str], tags: Sequence[str]) -> str:
    """The text with each slot replaced by its concept: "play <artist> in the <room>"."""
    parts: list[str] = []
    previous = OUTSIDE
    for word, tag in zip(words, tags, strict=True):
        if tag == OUTSIDE:
            parts.append(word)
        elif tag[0] == "B" or tag[2:] != previous[2:]:
            parts.append(f"<{tag[2:]}>")
        previous = tag
    return " ".join(parts)


def features(words: Sequence[str], intents: Sequence[str]) -> list[list[str]]:
    """Features of each word: the word, neighbours up to three away, prefixes, suffixes, shape, and the intents."""
    lower = [_normalise(word) for word in words]
    padded = ["<s3>", "<s2>", "<s1>", *lower, "<e1>", "<e2>", "<e3>"]
    rows = []
    for index, word in enumerate(lower):
        before3, before2, previous, _, after, after2, after3 = padded[index : index + 7]
        row = [
            "bias",
            f"w={word}",
            f"w-1={previous}",
            f"w+1={after}",
            f"w-2={before2}",
            f"w+2={after2}",
            f"w-3={before3}",
            f"w+3={after3}",
            f"w-1w={previous}|{word}",
            f"ww+1={word}|{after}",
            f"w-2w-1={before2}|{previous}",
            f"w+1w+2={after}|{after2}",
            f"w-1w+1={previous}|{after}",
            f"end={word[-3:]}",
            f"end2={word[-2:]}",
            f"end4={word[-4:]}",
            f"start={word[:3]}",
            f"start2={word[:2]}",
            f"start4={word[:4]}",
            f"end-1={previous[-3:]}",
            f"end+1={after[-3:]}",
            f"start+1={after[:3]}",
            f"shape={_shape(words[index])}",
        ]
        for intent in intents:
            row += [f"i={intent}", f"i={intent}|{word}", f"i={intent}|-1{previous}"]
        rows.append(row)
    return rows


def pycrfsuite() -> Any:
    """The library python-crfsuite. Raises PluginError if it is not installed."""
    try:
        import pycrfsuite as library
    except ImportError as error:
        raise PluginError(f"python-crfsuite cannot be loaded: {error}", remedy=REMEDY) from error
    return library


def _normalise(word: str) -> str:
    """A word in lower case, with digits as 0. NUL, which would end a text in the library, becomes U+FFFD."""
    small = _DIGIT.sub("0", word.lower()).replace("\0", "�")
    return small.encode("utf-8", "replace").decode("utf-8")


def _kind_of_letter(letter: str) -> str:
    if letter.isdigit():
        return "9"
    if letter.isupper():
        return "A"
    return "a" if letter.isalpha() else "."


def _shape(word: str) -> str:
    shape = ""
    for kind in map(_kind_of_letter, word):
        if not shape.endswith(kind):
            shape += kind
    return shape[:8]


def _is_complete(trained: bytes) -> bool:
    """Whether the magic number and the length are those of a CRFsuite model. The library checks neither."""
    return trained[:4] == _MAGIC and int.from_bytes(trained[4:8], "little") == len(trained)


CRF_FILE = "slots.crfsuite"
NAMES_FILE = "crf.json"
SECOND_REGRESSION = "linear-with-slots"
"""Base name of the second regression's files."""

ITERATIONS = Setting(
    "iterations", SettingKind.WHOLE, "80", "maximum number of training iterations of the random field", low=1, high=2000
)
L1 = Setting("l1", SettingKind.NUMBER, "0.05", "L1 regularisation of slot features", low=0, high=100)
L2 = Setting("l2", SettingKind.NUMBER, "0.01", "L2 regularisation of slot features", low=0, high=100)
RARE = Setting("rare", SettingKind.WHOLE, "1", "slot features that occur less often are ignored", low=1, high=1000)
STRENGTH = Setting(
    "strength", SettingKind.NUMBER, "300", "inverse regularisation of intents (scikit-learn's C)", low=0.001, high=1e6
)
WORDS = Setting(
    "words", SettingKind.WHOLE, "2", "longest sequence of words used as a feature for intents", low=1, high=5
)
PIECES = Setting(
    "pieces", SettingKind.WHOLE, "4", "longest sequence of letters used as a feature for intents; 0: none",
    low=0, high=8,
)  # fmt: skip
PASSES = Setting(
    "passes", SettingKind.WHOLE, "2", "1: decide intents from the words only; 2: then again, with the slots found",
    low=1, high=2,
)  # fmt: skip


class CrfUnderstander:
    """The plug-in `crf`. It ignores held-out utterances."""

    settings: ClassVar[tuple[Setting, ...]] = (ITERATIONS, L1, L2, RARE, STRENGTH, WORDS, PIECES, PASSES)

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None:
        self._settings = {setting.name: setting.default for setting in self.settings}
        self._settings |= checked_settings(self.settings, settings.items(), "crf")
        self._seed = seed
        pycrfsuite()
        self._intents: LinearModel | None = None
        self._with_slots: LinearModel | None = None
        self._field = SlotField(b"")
        self._may_be_empty = True

    def fit(self, train: Sequence[Utterance], held_out: Sequence[Utterance], tell: Callable[[str], None]) -> None:
        """Trains from scratch. ValueError without utterances."""
        if not train:
            raise ValueError("there are no training utterances")
        texts = [utterance.text for utterance in train]
        sets = [utterance.intents or () for utterance in train]
        labels = sorted({label for intents in sets for label in intents})
        self._may_be_empty = not all(sets)
        tell(f"intents: {len(labels)} labels, {len(train):,} utterances")
        rule = LinearRule(
            words=int(self._settings[WORDS.name]),
            pieces=int(self._settings[PIECES.name]),
            strength=float(self._settings[STRENGTH.name]),
            balanced=True,
        )
        self._intents = fit_linear(texts, sets, labels, rule, seed=self._seed)
        self._with_slots = None
        tagged = [utterance for utterance in train if utterance.tags]
        concepts = concept_tags(tagged)
        if not concepts:
            tell("slots: none in the training utterances")
            self._field = SlotField(b"")
            return
        iterations = int(self._settings[ITERATIONS.name])
        tell(f"slots: {len(concepts)} tags, {len(tagged):,} utterances, up to {iterations} iterations")
        self._field = SlotField.fit(
            tagged,
            iterations,
            l1=float(self._settings[L1.name]),
            l2=float(self._settings[L2.name]),
            rare=int(self._settings[RARE.name]),
        )
        if int(self._settings[PASSES.name]) == 2:
            second_forms = [
                with_concepts(utterance.words, utterance.tags) if utterance.tags else utterance.text
                for utterance in train
            ]
            rule_with_slots = replace(rule, second=rule.words)
            self._with_slots = fit_linear(
                texts, sets, labels, rule_with_slots, second_forms=second_forms, seed=self._seed
            )

    def predict(self, words: Sequence[tuple[str, ...]]) -> list[Prediction]:
        if self._intents is None:
            raise ValueError("the understander has not been trained")
        texts = [" ".join(tokens) for tokens in words]
        probabilities = self._intents.probabilities(texts)
        intents = self._intents_of(words, probabilities)
        tags = self._tags(words, intents)
        if self._with_slots is not None:
            second_forms = [
                with_concepts(text_words, text_tags) for text_words, text_tags in zip(words, tags, strict=True)
            ]
            probabilities = self._with_slots.probabilities(texts, second_forms)
            intents = self._intents_of(words, probabilities)
            tags = self._tags(words, intents)
        labels = self._intents.labels
        return [
            Prediction(text_intents, text_tags, tuple(zip(labels, row, strict=True)))
            for text_intents, text_tags, row in zip(intents, tags, probabilities.tolist(), strict=True)
        ]

    def save(self, folder: Path) -> None:
        if self._intents is None:
            raise ValueError("the understander has not been trained")
        self._intents.save(folder)
        if self._with_slots is not None:
            self._with_slots.save(folder, SECOND_REGRESSION)
        (folder / CRF_FILE).write_bytes(self._field.trained)
        content = {"settings": self._settings, "seed": self._seed, "slots": bool(self._field.trained),
                   "passes": 1 if self._with_slots is None else 2, "may_be_empty": self._may_be_empty}  # fmt: skip
        (folder / NAMES_FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        path = folder / NAMES_FILE
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            understander = cls(
                {str(name): str(value) for name, value in content["settings"].items()}, seed=int(content["seed"])
            )
            passes = int(content.get("passes", 1))
            understander._may_be_empty = bool(content.get("may_be_empty", True))
            path = folder / CRF_FILE
            trained = path.read_bytes()
            if bool(content["slots"]) != bool(trained):
                raise ValueError("it is not a complete random field model")
            understander._field = SlotField(trained)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged_model(path, error) from error
        understander._intents = load_linear(folder)
        understander._with_slots = load_linear(folder, SECOND_REGRESSION) if passes == 2 else None
        return understander

    def _intents_of(self, words: Sequence[tuple[str, ...]], probabilities: Floats) -> list[tuple[str, ...]]:
        """Intents above the threshold, or the best one if every training utterance has an intent.

        A text without words has no intent, since the intercepts would only guess a frequent one.
        """
        assert self._intents is not None
        sets = sets_of(selected_labels(probabilities, may_be_empty=self._may_be_empty), self._intents.labels)
        return [intents if any(tokens) else () for tokens, intents in zip(words, sets, strict=True)]

    def _tags(self, words: Sequence[tuple[str, ...]], intents: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        return [
            self._field.tags(text_words, text_intents) for text_words, text_intents in zip(words, intents, strict=True)
        ]
