"""The default classifier of intents: logistic regression on TF-IDF, seconds on a CPU, no download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from harness.model.offline import Setting, SettingKind
from harness.understanding.models.linear_model import LinearModel, LinearRule, fit_linear

WORDS = Setting("words", SettingKind.WHOLE, "2", "longest run of words that counts as one feature", low=1, high=5)
PIECES = Setting(
    "pieces", SettingKind.WHOLE, "0", "longest piece of a word, in characters, that counts beside words; 0: none",
    low=0, high=8,
)  # fmt: skip
STRENGTH = Setting(
    "strength", SettingKind.NUMBER, "100", "how closely it follows its examples (scikit-learn's C)", low=1e-4, high=1e6
)
BALANCED = Setting(
    "balanced", SettingKind.CHOICE, "no", "whether rare labels weigh as much as frequent ones", choices=("yes", "no")
)


class TfidfClassifier:
    """An `IntentClassifier`: one-vs-rest logistic regression on TF-IDF of words and word pairs."""

    settings: ClassVar[tuple[Setting, ...]] = (WORDS, PIECES, STRENGTH, BALANCED)

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None:
        def of(setting: Setting) -> str:
            return settings.get(setting.name, setting.default)

        self._rule = LinearRule(int(of(WORDS)), int(of(PIECES)), float(of(STRENGTH)), of(BALANCED) == "yes")
        self._seed = seed
        self._model: LinearModel | None = None

    def fit(self, texts: Sequence[str], intents: Sequence[tuple[str, ...]], labels: Sequence[str]) -> None:
        """Learns anew; ValueError without texts."""
        self._model = fit_linear(texts, intents, labels, self._rule, seed=self._seed)

    def probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Shape (texts, labels), 0–1; ValueError before `fit`."""
        if self._model is None:
            raise ValueError("the classifier has not been trained")
        return self._model.probabilities(texts)
