"""One-vs-rest logistic regression on TF-IDF of words and word pairs: a multi-label classifier of texts in seconds.

By scikit-learn (`pip install 'voice-harness[understanding]'`). Kept as arrays and JSON, never pickled.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.model.errors import InputError, Place, PluginError

Floats = npt.NDArray[np.float64]

NAMES_FILE = "linear.json"
WEIGHTS_FILE = "linear.npz"
REMEDY = "Install the extra that carries it: pip install 'voice-harness[understanding]'"
WORD = r"(?u)\b\w+\b"
"""What a word is to the model; one letter is one, too."""


@dataclass(frozen=True, slots=True)
class LinearRule:
    """words: longest run of words that counts as one feature. pieces: longest run of characters within a word, 0 none.

    strength: inverse of the regularisation (scikit-learn's C). balanced: rare labels weigh as much as frequent ones.
    """

    words: int = 2
    pieces: int = 0
    strength: float = 100.0
    balanced: bool = False


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A trained model. terms: of each view (words, then pieces of words if the rule has them), sorted; idf: likewise.

    weights: shape (labels, terms of all views); intercepts: shape (labels,), infinite where a label is constant: one
    that no training text had is never given, one that all had always is.
    """

    rule: LinearRule
    labels: tuple[str, ...]
    terms: tuple[tuple[str, ...], ...]
    idf: tuple[Floats, ...]
    weights: Floats
    intercepts: Floats

    def probabilities(self, texts: Sequence[str]) -> Floats:
        """Shape (texts, labels), 0–1, independent of each other."""
        if not texts:
            return np.zeros((0, len(self.labels)))
        odds = np.tile(self.intercepts, (len(texts), 1))
        start = 0
        for view, terms, idf in zip(_views(self.rule), self.terms, self.idf, strict=True):
            end = start + len(terms)
            if terms:
                vectors = _vectoriser(view, terms)
                vectors.idf_ = idf
                odds += vectors.transform(texts) @ self.weights[:, start:end].T
            start = end
        # Beyond ±700 exp overflows, and the answer is 0 or 1 anyway.
        found: Floats = 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
        found[:, self.intercepts == -math.inf] = 0
        found[:, self.intercepts == math.inf] = 1
        return found

    def save(self, folder: Path) -> None:
        """Writes `linear.json` and `linear.npz` into the folder."""
        rule = {"words": self.rule.words, "pieces": self.rule.pieces, "strength": self.rule.strength,
                "balanced": self.rule.balanced}  # fmt: skip
        names = {"rule": rule, "labels": self.labels, "terms": self.terms}
        (folder / NAMES_FILE).write_text(json.dumps(names, ensure_ascii=False), encoding="utf-8")
        arrays = {f"idf_{number}": idf for number, idf in enumerate(self.idf)}
        with (folder / WEIGHTS_FILE).open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, weights=self.weights, intercepts=self.intercepts, **arrays)


def fit_linear(
    texts: Sequence[str], intents: Sequence[tuple[str, ...]], labels: Sequence[str], rule: LinearRule, *, seed: int
) -> LinearModel:
    """Trains a model; PluginError without scikit-learn, ValueError without texts.

    The same arguments give the same model.
    """
    if not texts or len(texts) != len(intents):
        raise ValueError(f"{len(texts)} texts and {len(intents)} sets of labels")
    _sklearn()
    from scipy.sparse import hstack
    from sklearn.linear_model import LogisticRegression

    blocks = []
    terms: list[tuple[str, ...]] = []
    idf: list[Floats] = []
    for view in _views(rule):
        vectors = _vectoriser(view, None)
        try:
            blocks.append(vectors.fit_transform(texts))
        except ValueError:  # No text has a word: scikit-learn knows no empty vocabulary.
            terms.append(())
            idf.append(np.zeros(0))
            continue
        terms.append(tuple(str(term) for term in vectors.get_feature_names_out()))
        idf.append(np.asarray(vectors.idf_, dtype=np.float64))
    matrix = hstack(blocks, format="csr") if blocks else None
    weights = np.zeros((len(labels), sum(map(len, terms))))
    intercepts = np.zeros(len(labels))
    for row, label in enumerate(labels):
        given = np.array([label in one for one in intents])
        share = float(given.mean())
        if share in (0, 1) or matrix is None:
            intercepts[row] = math.log(share / (1 - share)) if 0 < share < 1 else math.copysign(math.inf, share - 0.5)
            continue
        regression = LogisticRegression(
            C=rule.strength, solver="liblinear", random_state=seed, class_weight="balanced" if rule.balanced else None
        )
        regression.fit(matrix, given)
        weights[row], intercepts[row] = regression.coef_[0], regression.intercept_[0]
    return LinearModel(rule, tuple(labels), tuple(terms), tuple(idf), weights, intercepts)


def load_linear(folder: Path) -> LinearModel:
    """The model that `save` wrote there; InputError, with the file, when it is damaged or not there."""
    names, arrays = folder / NAMES_FILE, folder / WEIGHTS_FILE
    path = names
    try:
        found = json.loads(names.read_text(encoding="utf-8"))
        given = found["rule"]
        rule = LinearRule(int(given["words"]), int(given["pieces"]), float(given["strength"]), bool(given["balanced"]))
        labels = tuple(str(label) for label in found["labels"])
        terms = tuple(tuple(str(term) for term in view) for view in found["terms"])
        path = arrays
        with arrays.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            weights, intercepts = _floats(kept["weights"]), _floats(kept["intercepts"])
            idf = tuple(_floats(kept[f"idf_{number}"]) for number in range(len(terms)))
        fits = weights.shape == (len(labels), sum(map(len, terms))) and intercepts.shape == (len(labels),)
        if (
            not fits
            or [one.shape for one in idf] != [(len(view),) for view in terms]
            or len(terms) != len(_views(rule))
        ):
            raise ValueError("its parts do not fit each other")
        if not np.isfinite(weights).all() or np.isnan(intercepts).any():
            raise ValueError("a weight is no number")
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        RecursionError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise InputError(
            f"the model is damaged: {error}", place=Place(str(path)), remedy="Take it from a copy, or train it anew"
        ) from error
    _sklearn()
    return LinearModel(rule, labels, terms, idf, weights, intercepts)


def _floats(array: npt.NDArray[Any]) -> Floats:
    if array.dtype != np.float64:
        raise ValueError(f"an array holds {array.dtype}")
    return array


def _sklearn() -> None:
    try:
        import sklearn.feature_extraction.text  # noqa: F401
    except ImportError as error:
        raise PluginError(f"scikit-learn cannot be loaded: {error}", remedy=REMEDY) from error


def _views(rule: LinearRule) -> tuple[str, ...]:
    """Views of a text: runs of words, and of characters within words when the rule has them."""
    return (f"word {rule.words}", f"char_wb {rule.pieces}") if rule.pieces else (f"word {rule.words}",)


def _vectoriser(view: str, terms: tuple[str, ...] | None) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    analyzer, longest = view.split()
    if analyzer == "word":
        return TfidfVectorizer(ngram_range=(1, int(longest)), token_pattern=WORD, sublinear_tf=True, vocabulary=terms)
    return TfidfVectorizer(
        analyzer=analyzer, ngram_range=(min(2, int(longest)), int(longest)), sublinear_tf=True, vocabulary=terms
    )
