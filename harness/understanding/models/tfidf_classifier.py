"""The default intent classifier: logistic regression on TF-IDF of words and word pairs. Trains in seconds on a CPU.

Uses scikit-learn (the extra `understanding`). Saved as arrays and JSON, never pickled.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.base.plugins import pip_install
from harness.model.errors import PluginError
from harness.model.frozen import frozen
from harness.model.offline import Setting, SettingKind
from harness.understanding.models.model_folder import damaged_model

Floats = npt.NDArray[np.float64]

NAME = "linear"
NAMES_FILE = f"{NAME}.json"
WEIGHTS_FILE = f"{NAME}.npz"
DAMAGE = (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError, zipfile.BadZipFile, zlib.error)
"""Errors that reading a damaged file raises."""
REMEDY = f"Install it: {pip_install('understanding')}"
WORD = r"(?u)\b\w+\b"
"""Matches a word of a text, also one of a single letter."""
NON_BLANKS = r"\S+"
"""Matches a word in the second form of a text: anything between blanks."""
SECOND = "second"
View = tuple[str, int]
"""A kind of unit, and the largest number of consecutive units that are a feature."""


@frozen
class LinearRule:
    """The features, and how a model is trained.

    - words: largest number of consecutive words in a feature.
    - pieces: largest number of consecutive characters of a word in a feature; 0 for no such features.
    - strength: inverse regularisation (scikit-learn's C).
    - balanced: whether rare labels have the same weight as frequent ones.
    - second: largest number of consecutive words (separated by blanks) of a second form of each text in a feature; 0
      for no second form.
    """

    words: int = 2
    pieces: int = 0
    strength: float = 100.0
    balanced: bool = False
    second: int = 0


@frozen
class LinearModel:
    """A trained model.

    - terms, idf: for each view of `_views`, its features (sorted) and their inverse document frequencies.
    - weights: shape (labels, terms of all views).
    - intercepts: shape (labels,); infinite for a label that no training text or every training text had.
    """

    rule: LinearRule
    labels: tuple[str, ...]
    terms: tuple[tuple[str, ...], ...]
    idf: tuple[Floats, ...]
    weights: Floats
    intercepts: Floats

    def probabilities(self, texts: Sequence[str], second_forms: Sequence[str] = ()) -> Floats:
        """The probability of each label for each text, shape (texts, labels), independent of each other.

        second_forms: second forms of the texts, if the rule uses them.
        """
        if not texts:
            return np.zeros((0, len(self.labels)))
        log_odds = np.tile(self.intercepts, (len(texts), 1))
        start = 0
        for view, terms, idf in zip(_views(self.rule), self.terms, self.idf, strict=True):
            end = start + len(terms)
            if terms:
                vectoriser = _vectoriser(view, terms)
                vectoriser.idf_ = idf
                view_texts = second_forms if view[0] == SECOND else texts
                log_odds += vectoriser.transform(view_texts) @ self.weights[:, start:end].T
            start = end
        # Beyond ±700 exp overflows, and the result is 0 or 1 anyway.
        probabilities: Floats = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
        probabilities[:, self.intercepts == -math.inf] = 0
        probabilities[:, self.intercepts == math.inf] = 1
        return probabilities

    def save(self, folder: Path, name: str = NAME) -> None:
        """Writes `name`.json and `name`.npz into the folder."""
        rule = asdict(self.rule)
        header = {"rule": rule, "labels": self.labels, "terms": self.terms}
        (folder / f"{name}.json").write_text(json.dumps(header, ensure_ascii=False), encoding="utf-8")
        arrays = {f"idf_{number}": idf for number, idf in enumerate(self.idf)}
        with (folder / f"{name}.npz").open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, weights=self.weights, intercepts=self.intercepts, **arrays)


def fit_linear(
    texts: Sequence[str],
    intents: Sequence[tuple[str, ...]],
    labels: Sequence[str],
    rule: LinearRule,
    *,
    second_forms: Sequence[str] = (),
    seed: int,
) -> LinearModel:
    """Trains a model. PluginError without scikit-learn, ValueError without texts.

    second_forms: second forms of the texts, if the rule uses them. The same arguments give the same model.
    """
    if not texts or len(texts) != len(intents) or (rule.second and len(second_forms) != len(texts)):
        raise ValueError(f"{len(texts)} texts, {len(second_forms)} second forms and {len(intents)} sets of labels")
    _require_sklearn()
    from scipy.sparse import hstack
    from sklearn.linear_model import LogisticRegression

    blocks = []
    terms: list[tuple[str, ...]] = []
    idf: list[Floats] = []
    for view in _views(rule):
        vectoriser = _vectoriser(view, None)
        try:
            blocks.append(vectoriser.fit_transform(second_forms if view[0] == SECOND else texts))
        except ValueError:  # No text has a word, and scikit-learn refuses an empty vocabulary.
            terms.append(())
            idf.append(np.zeros(0))
            continue
        terms.append(tuple(str(term) for term in vectoriser.get_feature_names_out()))
        idf.append(np.asarray(vectoriser.idf_, dtype=np.float64))
    matrix = hstack(blocks, format="csr") if blocks else None
    weights = np.zeros((len(labels), sum(map(len, terms))))
    intercepts = np.zeros(len(labels))
    for row, label in enumerate(labels):
        has_label = np.array([label in intent_set for intent_set in intents])
        share = float(has_label.mean())
        if share in (0, 1):
            intercepts[row] = math.inf if share == 1 else -math.inf
            continue
        if matrix is None:  # no text has a word, so only the frequencies of labels can be learned
            intercepts[row] = math.log(share / (1 - share))
            continue
        regression = LogisticRegression(
            C=rule.strength, solver="liblinear", random_state=seed, class_weight="balanced" if rule.balanced else None
        )
        regression.fit(matrix, has_label)
        weights[row], intercepts[row] = regression.coef_[0], regression.intercept_[0]
    return LinearModel(rule, tuple(labels), tuple(terms), tuple(idf), weights, intercepts)


def load_linear(folder: Path, name: str = NAME) -> LinearModel:
    """The model that `save` wrote. Raises InputError, with the file, if it is missing or damaged."""
    json_path, npz_path = folder / f"{name}.json", folder / f"{name}.npz"
    path = json_path  # the file that is being read, for the error
    try:
        header = json.loads(json_path.read_text(encoding="utf-8"))
        entry = header["rule"]
        rule = LinearRule(
            words=int(entry["words"]),
            pieces=int(entry["pieces"]),
            strength=float(entry["strength"]),
            balanced=bool(entry["balanced"]),
            second=int(entry.get("second", 0)),  # older files do not have this key
        )
        labels = tuple(str(label) for label in header["labels"])
        terms = tuple(tuple(str(term) for term in view_terms) for view_terms in header["terms"])
        path = npz_path
        with npz_path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            weights, intercepts = _floats(archive["weights"]), _floats(archive["intercepts"])
            idf = tuple(_floats(archive[f"idf_{number}"]) for number in range(len(terms)))
        shapes_fit = weights.shape == (len(labels), sum(map(len, terms))) and intercepts.shape == (len(labels),)
        if (
            not shapes_fit
            or [view_idf.shape for view_idf in idf] != [(len(view_terms),) for view_terms in terms]
            or len(terms) != len(_views(rule))
        ):
            raise ValueError("the shapes of its arrays do not match")
        if not np.isfinite(weights).all() or np.isnan(intercepts).any():
            raise ValueError("a weight is not a number")
    except DAMAGE as error:
        raise damaged_model(path, error) from error
    _require_sklearn()
    return LinearModel(rule, labels, terms, idf, weights, intercepts)


def _floats(array: npt.NDArray[Any]) -> Floats:
    if array.dtype != np.float64:
        raise ValueError(f"an array holds {array.dtype}")
    return array


def _require_sklearn() -> None:
    try:
        import sklearn.feature_extraction.text  # noqa: F401
    except ImportError as error:
        raise PluginError(f"scikit-learn cannot be loaded: {error}", remedy=REMEDY) from error


def _views(rule: LinearRule) -> tuple[View, ...]:
    """The views of a text that a rule uses: words, characters in words, and words of its second form."""
    views = (("word", rule.words), ("char_wb", rule.pieces), (SECOND, rule.second))
    return tuple((name, longest) for name, longest in views if longest)


def _vectoriser(view: View, terms: tuple[str, ...] | None) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    name, longest = view
    if name == "char_wb":
        options = {"analyzer": name, "ngram_range": (min(2, longest), longest)}
    else:
        options = {"token_pattern": NON_BLANKS if name == SECOND else WORD, "ngram_range": (1, longest)}
    return TfidfVectorizer(**options, sublinear_tf=True, vocabulary=terms)


WORDS = Setting("words", SettingKind.WHOLE, "2", "longest sequence of words used as a feature", low=1, high=5)
PIECES = Setting(
    "pieces", SettingKind.WHOLE, "0", "longest sequence of characters used as a feature; 0: none",
    low=0, high=8,
)  # fmt: skip
STRENGTH = Setting(
    "strength", SettingKind.NUMBER, "100", "inverse regularisation (scikit-learn's C)", low=1e-4, high=1e6
)
BALANCED = Setting(
    "balanced", SettingKind.CHOICE, "no", "give rare labels the weight of frequent ones", choices=("yes", "no")
)


class TfidfClassifier:
    """An `IntentClassifier`: one-vs-rest logistic regression on TF-IDF of words and word pairs."""

    settings: ClassVar[tuple[Setting, ...]] = (WORDS, PIECES, STRENGTH, BALANCED)

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None:
        values = {setting.name: settings.get(setting.name, setting.default) for setting in self.settings}
        self._rule = LinearRule(
            words=int(values[WORDS.name]),
            pieces=int(values[PIECES.name]),
            strength=float(values[STRENGTH.name]),
            balanced=values[BALANCED.name] == "yes",
        )
        self._seed = seed
        self._model: LinearModel | None = None

    def fit(self, texts: Sequence[str], intents: Sequence[tuple[str, ...]], labels: Sequence[str]) -> None:
        """Trains from scratch. ValueError without texts."""
        self._model = fit_linear(texts, intents, labels, self._rule, seed=self._seed)

    def probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """The probability of each label for each text, shape (texts, labels). Raises ValueError before `fit`."""
        if self._model is None:
            raise ValueError("the classifier has not been trained")
        return self._model.probabilities(texts)
