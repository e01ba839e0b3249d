"""Raters whose confusions are known, and what they say of items whose categories are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.statistics.agreement import MISSING

CATEGORIES = 11


def confusion_matrix(right: float, categories: int = CATEGORIES, spread: int = 3) -> NDArray[np.float64]:
    """Says what is right so often, else one of the next categories, as neighbours in the guide are mixed up."""
    matrix = np.eye(categories) * right
    for away in range(1, spread + 1):
        matrix += np.roll(np.eye(categories), away, axis=1) * (1 - right) / spread
    return matrix


def prevalences(categories: int = CATEGORIES) -> NDArray[np.float64]:
    """A few categories are common, most are rare."""
    shares = np.asarray(1.0 / np.arange(1, categories + 1))
    return np.asarray(shares / shares.sum())


def truths(items: int, random: np.random.Generator, categories: int = CATEGORIES) -> NDArray[np.int64]:
    return random.choice(categories, items, p=prevalences(categories))


def said(
    truth: NDArray[np.int64], matrices: list[NDArray[np.float64]], random: np.random.Generator, missing: float = 0.0
) -> NDArray[np.int64]:
    """A table of labels, raters × items."""
    drawn = random.random((len(matrices), len(truth), 1))
    labels = np.stack(
        [(row > np.cumsum(matrix, axis=1)[truth]).sum(axis=1) for row, matrix in zip(drawn, matrices, strict=True)]
    )
    return np.where(random.random(labels.shape) < missing, MISSING, np.minimum(labels, matrices[0].shape[0] - 1))


def true_raw_and_alpha(matrices: list[NDArray[np.float64]], shares: NDArray[np.float64]) -> tuple[float, float]:
    """Raw agreement and alpha of such raters on endlessly many items, all labelled by all."""
    raters = len(matrices)
    pairs = [(a, b) for a in range(raters) for b in range(raters) if a < b]
    raw = float(np.mean([shares @ (matrices[a] * matrices[b]).sum(axis=1) for a, b in pairs]))
    margin = np.mean([shares @ matrix for matrix in matrices], axis=0)
    by_chance = 1 - float((margin**2).sum())
    return raw, 1 - (1 - raw) / by_chance
