"""The loss of CTC is the sum over all paths, its gradient is exact, and a head learns by it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.understanding.models.ctc import (
    BLANK,
    SPACING,
    WEIGHTS,
    Array,
    CtcExample,
    CtcHead,
    best_path,
    ctc_loss,
    fewest_frames,
    learn,
    log_softmax,
)

LABELS = 3


def without_blanks(path: tuple[int, ...]) -> list[int]:
    return [label for index, label in enumerate(path) if label != BLANK and (index == 0 or path[index - 1] != label)]


def sum_over_paths(probabilities: Array, target: list[int]) -> float:
    paths = product(range(probabilities.shape[1]), repeat=len(probabilities))
    return sum(
        float(np.prod(probabilities[np.arange(len(path)), path])) for path in paths if without_blanks(path) == target
    )


def slope(function: Callable[[Array], float], point: Array) -> Array:
    """By central differences."""
    slopes = np.zeros_like(point)
    for place in np.ndindex(*point.shape):
        step = np.zeros_like(point)
        step[place] = 1e-5
        slopes[place] = (function(point + step) - function(point - step)) / 2e-5
    return slopes


batches = st.lists(
    st.tuples(st.integers(1, 4), st.lists(st.integers(1, LABELS - 1), max_size=3)), min_size=1, max_size=3
)


@settings(max_examples=20)
@given(batches, st.integers(0, 1000))
def test_the_loss_is_the_sum_over_all_paths_and_its_gradient_that_of_differences(
    batch: list[tuple[int, list[int]]], seed: int
) -> None:
    frames, targets = np.array([frames for frames, _ in batch]), [target for _, target in batch]
    scores = 2 * np.random.default_rng(seed).normal(size=(len(batch), int(frames.max()), LABELS))
    losses, gradient = ctc_loss(log_softmax(scores), frames, targets)
    for loss, rows, length, target in zip(losses, np.exp(log_softmax(scores)), frames, targets, strict=True):
        assert np.exp(-loss) == pytest.approx(sum_over_paths(rows[:length], target), rel=1e-9)
        assert np.isfinite(loss) == (fewest_frames(target) <= length)
    fits = np.isfinite(losses)

    def total(changed: Array) -> float:
        return float(ctc_loss(log_softmax(changed), frames, targets)[0][fits].sum())

    assert gradient == pytest.approx(slope(total, scores), abs=1e-7)


def test_long_and_unlikely_targets_have_finite_losses() -> None:
    certain = np.full((1, 1500, 9), -200.0)
    certain[..., 1] = 200
    losses, gradient = ctc_loss(log_softmax(certain), np.array([1500]), [[2, 3] * 300])
    assert losses[0] == pytest.approx(1500 * 400, rel=0.01)
    assert np.isfinite(gradient).all()


def test_best_path_merges_equal_neighbours_only() -> None:
    path = (0, 2, 2, 0, 2, 1, 1, 0)
    assert best_path(np.eye(LABELS)[list(path)]) == [2, 2, 1] == without_blanks(path)


def small_head(context: int = 3) -> tuple[CtcHead, list[CtcExample]]:
    """In double precision, and examples of which one has no words and one no intents."""
    random = np.random.default_rng(3)
    features = [random.normal(size=(frames, 3)) for frames in (7, 4, 5)]
    head = CtcHead.random(features, context=context, hidden=5, labels=4, intents=2, random=random)
    head.weights = {name: array.astype(np.float64) for name, array in head.weights.items()}
    examples = [
        CtcExample(features[0], [1, 2], np.array([1.0, 0.0])),
        CtcExample(features[1], None, np.array([0.0, 1.0])),
        CtcExample(features[2], [3, 3], None),
    ]
    return head, examples


@pytest.mark.parametrize("name", WEIGHTS[2:])
def test_gradient_of_each_weight_matches_finite_differences(name: str) -> None:
    head, examples = small_head()
    dropout = (np.random.default_rng(1).random((16, 5)) > 0.2) / 0.8
    _, gradients = head.gradients(examples, dropout)

    def loss(array: Array) -> float:
        return CtcHead({**head.weights, name: array}).gradients(examples, dropout)[0] / len(examples)

    expected = slope(loss, head.weights[name])
    assert np.abs(expected).max() > 0.01
    assert gradients[name] == pytest.approx(expected, abs=1e-7)


def test_neighbours_count_as_far_as_the_context_reaches() -> None:
    for context, reach in ((1, 0), (3, 1), (5, 2)):
        head, examples = small_head(context)
        before, _ = head.predict(examples[0].features)
        changed = examples[0].features.copy()
        changed[3] += 1
        after, _ = head.predict(changed)
        differs = np.flatnonzero((before != after).any(axis=1))
        places = (3 + SPACING * step for step in range(-reach, reach + 1))
        assert differs.tolist() == [place for place in places if 0 <= place < len(changed)]


def test_arrays_that_do_not_fit_each_other_are_refused() -> None:
    head, _ = small_head()
    for name in WEIGHTS:
        with pytest.raises(ValueError, match="do not match"):
            CtcHead({**head.weights, name: head.weights[name][:-1]})


def test_a_head_learns_labels_and_intents() -> None:
    """Each label is a direction of its frames; the intent is whether the label 2 occurs."""
    random = np.random.default_rng(5)
    examples = []
    for _ in range(120):
        target = random.integers(1, 4, random.integers(1, 5)).tolist()
        frames = np.repeat([symbol for label in target for symbol in (label, BLANK)], 2)
        features = np.eye(4)[frames] + random.normal(0, 0.2, (len(frames), 4))
        examples.append(CtcExample(features.astype(np.float32), target, np.array([float(2 in target)])))
    losses: list[float] = []
    head = CtcHead.random([it.features for it in examples], context=1, hidden=32, labels=4, intents=1, random=random)
    learn(head, examples[20:], lambda _, loss: losses.append(loss), epochs=60, rate=0.02, random=random)
    assert losses[-1] < losses[0] / 5
    for example in examples[:20]:
        labels, intents = head.predict(example.features)
        assert best_path(labels) == example.target
        assert intents.round() == example.intents


def test_training_that_diverges_says_what_to_change() -> None:
    head, examples = small_head()
    with pytest.raises(InputError, match=r"diverged. Use a smaller `learning-rate`"), np.errstate(all="ignore"):
        learn(head, examples, lambda _, __: None, epochs=99, rate=1e200, random=np.random.default_rng(1))
