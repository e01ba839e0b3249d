"""A small understander: logistic regression on TF-IDF for intents, and a conditional random field for slots.

The field sees the intents beside the words, and a second regression then the slots beside the words, so that a value
that was never heard does not hide what is wanted; the field has the last word. While they learn, each sees what the
annotation has, afterwards what the other found.

By python-crfsuite and scikit-learn; trains in seconds to minutes on one processor, from scratch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

from harness.base.plugins import checked_settings
from harness.model.errors import InputError, Place
from harness.model.offline import Setting, SettingKind
from harness.model.understanding import Prediction, Utterance
from harness.understanding.models.linear_model import Floats, LinearModel, LinearRule, fit_linear, load_linear
from harness.understanding.models.slot_field import FieldRule, SlotField, concept_tags, pycrfsuite, with_concepts
from harness.understanding.models.votes import given_by, sets_of

CRF_FILE = "slots.crfsuite"
NAMES_FILE = "crf.json"
SECOND = "linear-with-slots"
"""Name of the second regression's files."""

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
PASSES = Setting(
    "passes", SettingKind.WHOLE, "2", "2: intents are decided again with the slots that were found; 1: by words alone",
    low=1, high=2,
)  # fmt: skip


class CrfUnderstander:
    """Plug-in `crf`. The held-out utterances are not looked at."""

    settings: ClassVar[tuple[Setting, ...]] = (ITERATIONS, L1, L2, RARE, STRENGTH, WORDS, PIECES, PASSES)

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None:
        self._settings = {one.name: one.default for one in self.settings}
        self._settings |= checked_settings(self.settings, settings.items(), "crf")
        self._seed = seed
        pycrfsuite()
        self._intents: LinearModel | None = None
        self._with_slots: LinearModel | None = None
        self._field = SlotField(b"")
        self._may_be_empty = True

    def fit(self, train: Sequence[Utterance], held_out: Sequence[Utterance], tell: Callable[[str], None]) -> None:
        """Learns anew. ValueError without utterances."""
        if not train:
            raise ValueError("there is nothing to learn from")
        texts = [one.text for one in train]
        sets = [one.intents or () for one in train]
        labels = sorted({label for one in sets for label in one})
        self._may_be_empty = not all(sets)
        tell(f"intents: {len(labels)} labels, {len(train):,} utterances")
        runs = int(self._settings[WORDS.name]), int(self._settings[PIECES.name])
        rule = LinearRule(*runs, float(self._settings[STRENGTH.name]), balanced=True)
        self._intents = fit_linear(texts, sets, labels, rule, seed=self._seed)
        self._with_slots = None
        tagged = [one for one in train if one.tags]
        concepts = concept_tags(tagged)
        if not concepts:
            tell("slots: none in the training utterances")
            self._field = SlotField(b"")
            return
        iterations = self._settings[ITERATIONS.name]
        tell(f"slots: {len(concepts)} tags, {len(tagged):,} utterances, up to {iterations} iterations")
        weights = float(self._settings[L1.name]), float(self._settings[L2.name])
        self._field = SlotField.fit(tagged, FieldRule(int(iterations), *weights, int(self._settings[RARE.name])))
        if int(self._settings[PASSES.name]) == 2:
            second = [with_concepts(one.words, one.tags) if one.tags else one.text for one in train]
            wider = replace(rule, second=rule.words)
            self._with_slots = fit_linear(texts, sets, labels, wider, second=second, seed=self._seed)

    def predict(self, words: Sequence[tuple[str, ...]]) -> list[Prediction]:
        if self._intents is None:
            raise ValueError("it has learned nothing yet")
        texts = [" ".join(one) for one in words]
        given = self._intents.probabilities(texts)
        intents = self._intents_of(words, given)
        tags = self._tags(words, intents)
        if self._with_slots is not None:
            second = [with_concepts(*pair) for pair in zip(words, tags, strict=True)]
            given = self._with_slots.probabilities(texts, second)
            intents = self._intents_of(words, given)
            tags = self._tags(words, intents)
        labels = self._intents.labels
        return [
            Prediction(wanted, tagged, tuple(zip(labels, row, strict=True)))
            for wanted, tagged, row in zip(intents, tags, given.tolist(), strict=True)
        ]

    def save(self, folder: Path) -> None:
        if self._intents is None:
            raise ValueError("it has learned nothing yet")
        self._intents.save(folder)
        if self._with_slots is not None:
            self._with_slots.save(folder, SECOND)
        (folder / CRF_FILE).write_bytes(self._field.trained)
        written = {"settings": self._settings, "seed": self._seed, "slots": bool(self._field.trained),
                   "passes": 1 if self._with_slots is None else 2, "may_be_empty": self._may_be_empty}  # fmt: skip
        (folder / NAMES_FILE).write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        path = folder / NAMES_FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            made = cls({str(name): str(value) for name, value in found["settings"].items()}, seed=int(found["seed"]))
            passes = int(found.get("passes", 1))
            made._may_be_empty = bool(found.get("may_be_empty", True))
            path = folder / CRF_FILE
            trained = path.read_bytes()
            if bool(found["slots"]) != bool(trained):
                raise ValueError("it is no whole model of a random field")
            made._field = SlotField(trained)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"the model is damaged: {error}", place=Place(str(path)), remedy="Take it from a copy, or train it anew"
            ) from error
        made._intents = load_linear(folder)
        made._with_slots = load_linear(folder, SECOND) if passes == 2 else None
        return made

    def _intents_of(self, words: Sequence[tuple[str, ...]], given: Floats) -> list[tuple[str, ...]]:
        """Those above the threshold, or the best one if every utterance that it learned from has an intent.

        The model's constants are a guess at what is frequent: no words mean nothing.
        """
        assert self._intents is not None
        sets = sets_of(given_by(given, may_be_empty=self._may_be_empty), self._intents.labels)
        return [found if any(one) else () for one, found in zip(words, sets, strict=True)]

    def _tags(self, words: Sequence[tuple[str, ...]], intents: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        return [self._field.tags(*pair) for pair in zip(words, intents, strict=True)]
