"""Connectionist temporal classification (CTC): the loss of labels without alignment, and a head that is trained by it.

An encoder gives a frame of features every few milliseconds. The head gives each frame a probability for each label. A
path has one label for each frame; without blanks and repetitions, it is a text. The probability of a text is the sum
over all its paths, so it need not be known which frame belongs to which label. The loss is minus its log.

Source: Graves et al. 2006, "Connectionist temporal classification". Plain numpy, the loss in log space.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from harness.model.errors import InputError
from harness.model.frozen import frozen

Array: TypeAlias = npt.NDArray[Any]
"""An array of floating-point numbers."""
Ints: TypeAlias = npt.NDArray[np.int_]
BLANK = 0
"""The label of a frame in which no new label begins."""
NEVER = -1e30
"""Stands for the log of the probability 0. It is finite, so that the difference of two of them is a number."""
WEIGHTS = ("mean", "scale", "hidden", "hidden_bias", "labels", "labels_bias", "intents", "intents_bias")
"""Names of the weights: mean and standard deviation of features, which are not trained, and the three layers."""
BATCH = 16
"""Number of utterances in a step of training."""
DROPOUT = 0.4
"""Share of hidden units that a step of training leaves out."""
SPACING = 3
"""Distance between the frames that a hidden unit sees, in frames."""
MAX_STEP_NORM = 10.0
"""Largest norm of a gradient; larger ones are scaled down to it."""


def ctc_loss(
    log_probabilities: Array, frames: Ints, targets: Sequence[Sequence[int]]
) -> tuple[npt.NDArray[np.float64], Array]:
    """The loss of each utterance in nats, shape (n,), and its gradient by the scores before the softmax.

    - log_probabilities: shape (n, most frames, labels), a log-softmax. The gradient has the same shape.
    - frames: number of frames of each utterance, at least 1; those after it are padding, with gradient 0.
    - targets: the labels of each utterance, without blanks.

    A target that does not fit into its frames (see `fewest_frames`) has an infinite loss, and the gradient 0.
    """
    longest, labels = log_probabilities.shape[1:]
    sizes = np.array([2 * len(target) + 1 for target in targets])
    states = np.full((len(sizes), int(sizes.max())), BLANK)  # blanks before, between and after the labels
    for row, target in enumerate(targets):
        states[row, 1 : sizes[row] : 2] = target
    # Each utterance in reverse; padding stays in its place.
    rows, back_frames, back_states = np.arange(len(sizes))[:, None], _reversed(frames, longest), _reversed(sizes)
    emitted = np.take_along_axis(log_probabilities, states[:, None, :], axis=2).astype(np.float64)
    emitted[np.broadcast_to((np.arange(states.shape[1]) >= sizes[:, None])[:, None], emitted.shape)] = NEVER
    forward = _path_sums(emitted, states)
    backward = _path_sums(
        emitted[rows[..., None], back_frames[..., None], back_states[:, None]], states[rows, back_states]
    )
    backward = backward[rows[..., None], back_frames[..., None], back_states[:, None]]
    total = np.logaddexp.reduce(backward[:, 0, :2], axis=1)
    is_possible = total > NEVER / 2
    inside = ((np.arange(longest) < frames[:, None]) & is_possible[:, None])[..., None]
    shares = np.exp(np.where(inside, forward + backward - emitted - total[:, None, None], NEVER))
    expected = shares @ (states[..., None] == np.arange(labels)).astype(np.float64)
    gradient = np.where(inside, np.exp(log_probabilities) - expected, 0)
    return np.where(is_possible, -total, np.inf), gradient.astype(log_probabilities.dtype)


def _path_sums(emitted: Array, states: Ints) -> Array:
    """The log of the sum of probabilities of all paths from the first frame to each state of each frame.

    Its shape is (n, frames, states).
    - emitted: log-probability of each state's label in each frame.
    - states: the labels of the states.
    """
    sums = np.full_like(emitted, NEVER)
    sums[:, 0, :2] = emitted[:, 0, :2]
    arrivals = np.full((3, *states.shape), NEVER)  # from this state, the previous one, and the label before that
    blank_skips = np.full(states.shape, NEVER)  # a blank may be skipped only between two different labels
    blank_skips[:, 3::2][states[:, 3::2] != states[:, 1:-2:2]] = 0
    for frame in range(1, emitted.shape[1]):
        before = sums[:, frame - 1]
        arrivals[0] = before
        arrivals[1, :, 1:] = before[:, :-1]
        arrivals[2, :, 2:] = before[:, :-2] + blank_skips[:, 2:]
        highest = arrivals.max(axis=0)  # subtracted, so that exp neither overflows nor becomes 0 everywhere
        sums[:, frame] = emitted[:, frame] + highest + np.log(np.exp(arrivals - highest).sum(axis=0))
    return sums


def _reversed(sizes: Ints, longest: int | None = None) -> Ints:
    """Indices that reverse the first `sizes` elements of each row and leave the others in place, shape (n, longest).

    longest: length of a row; None for the largest size.
    """
    indices = np.arange(int(sizes.max()) if longest is None else longest)
    return np.where(indices < sizes[:, None], sizes[:, None] - 1 - indices, indices)


def fewest_frames(target: Sequence[int]) -> int:
    """Least number of frames for a target: one for each label, and one for each blank between two equal labels."""
    return len(target) + sum(label == following_label for label, following_label in pairwise(target))


def best_path(log_probabilities: Array) -> list[int]:
    """The labels of the most likely path, without repetitions and blanks. log_probabilities: shape (frames, labels)."""
    best = log_probabilities.argmax(axis=1)
    changes = [label for label, previous in zip(best, [BLANK, *best[:-1]], strict=True) if label != previous]
    return [int(label) for label in changes if label != BLANK]


def log_softmax(scores: Array) -> Array:
    """The log of the softmax over the last axis."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


@frozen
class CtcExample:
    """An utterance for training.

    - features: shape (frames, width).
    - target: labels without blanks; None if unknown.
    - intents: 0 or 1 for each intent, shape (intents,); None if unknown.
    """

    features: Array
    target: Sequence[int] | None
    intents: Array | None


class CtcHead:
    """One hidden layer over the frames of an encoder: gives the labels of each frame, and the intents of the utterance.

    The intents are decided from the mean and the maximum of each hidden unit. A hidden unit sees an odd number of
    frames, SPACING apart. Their number follows from the shape of its weights.

    weights: arrays by the names in WEIGHTS. Raises ValueError for weights that do not fit each other.
    """

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.weights = dict(weights)
        width, (inputs, hidden) = len(self.weights["mean"]), self.weights["hidden"].shape
        self._context = inputs // max(1, width)
        (self.labels,), (self.intents,) = self.weights["labels_bias"].shape, self.weights["intents_bias"].shape
        shapes = ((width,), (width,), (self._context * width, hidden), (hidden,),
                  (hidden, self.labels), (self.labels,), (2 * hidden, self.intents), (self.intents,))  # fmt: skip
        if tuple(self.weights[name].shape for name in WEIGHTS) != shapes or self._context % 2 == 0:
            raise ValueError("the shapes of its arrays do not match")

    @classmethod
    def random(
        cls, features: Sequence[Array], *, context: int, hidden: int, labels: int, intents: int,
        random: np.random.Generator,
    ) -> Self:  # fmt: skip
        """An untrained head that normalises features like these.

        - context: number of frames that a hidden unit sees, odd.
        - hidden: number of hidden units.
        - labels, intents: numbers of labels and of intents.
        """
        frames = np.concatenate(features).astype(np.float32)
        mean, width = frames.mean(axis=0), frames.shape[1]

        def layer(inputs: int, outputs: int, scale: float) -> Array:
            return np.asarray(random.normal(size=(inputs, outputs)) * scale / np.sqrt(inputs), np.float32)

        layers = (layer(context * width, hidden, 1.4), layer(hidden, labels, 0.7), layer(2 * hidden, intents, 0.4))
        biases = (np.zeros(size, np.float32) for size in (hidden, labels, intents))
        trained = [array for pair in zip(layers, biases, strict=True) for array in pair]
        return cls(dict(zip(WEIGHTS, (mean, frames.std(axis=0) + np.float32(1e-3), *trained), strict=True)))

    def predict(self, features: Array) -> tuple[Array, Array]:
        """Log-probabilities, shape (frames, labels), and probabilities of intents, shape (intents,)."""
        inputs, frames = self._inputs([features])
        hidden = np.maximum(inputs @ self.weights["hidden"] + self.weights["hidden_bias"], 0)
        scores = hidden @ self.weights["labels"] + self.weights["labels_bias"]
        return log_softmax(scores), self._intents(_pool(hidden, frames))[0]

    def gradients(self, examples: Sequence[CtcExample], dropped: Array | float = 1.0) -> tuple[float, dict[str, Array]]:
        """The loss summed over examples, and its mean gradient by each trained weight.

        dropped: a factor for each hidden unit of each frame, 0 for those that are left out.
        The loss is the sum of the CTC loss and the cross entropy of the intents, as far as the example has them.
        """
        inputs, frames = self._inputs([example.features for example in examples])
        before = inputs @ self.weights["hidden"] + self.weights["hidden_bias"]
        hidden = np.maximum(before, 0) * dropped
        inside = np.arange(frames.max()) < frames[:, None]
        scores = np.zeros((*inside.shape, self.labels), hidden.dtype)
        scores[inside] = hidden @ self.weights["labels"] + self.weights["labels_bias"]
        targets = [example.target or () for example in examples]
        losses, by_scores = ctc_loss(log_softmax(scores), frames, targets)
        has_words = np.array([example.target is not None for example in examples]) & np.isfinite(losses)
        by_labels = (by_scores * has_words[:, None, None])[inside] / len(examples)

        pooled = _pool(hidden, frames)
        probabilities = self._intents(pooled)
        gold = np.stack([row if example.intents is None else example.intents
                         for row, example in zip(probabilities, examples, strict=True)])  # fmt: skip
        by_intents = ((probabilities - gold) / len(examples)).astype(hidden.dtype)
        has_intents = np.array([example.intents is not None for example in examples])[:, None]
        intent_losses = (
            -np.log(np.clip(np.where(gold > 0.5, probabilities, 1 - probabilities), 1e-12, None)) * has_intents
        )

        units = hidden.shape[1]
        by_mean, by_most = np.split(by_intents @ self.weights["intents"].T, [units], axis=1)
        utterance = np.repeat(np.arange(len(examples)), frames)
        is_most = hidden == pooled[utterance, units:]
        by_hidden = by_labels @ self.weights["labels"].T + (by_mean / frames[:, None])[utterance]
        by_before = (by_hidden + by_most[utterance] * is_most) * dropped * (before > 0)
        by_weights = (inputs.T @ by_before, by_before.sum(axis=0), hidden.T @ by_labels, by_labels.sum(axis=0),
                      pooled.T @ by_intents, by_intents.sum(axis=0))  # fmt: skip
        loss = float(losses[has_words].sum() + intent_losses.sum())
        return loss, dict(zip(WEIGHTS[2:], by_weights, strict=True))

    def _inputs(self, features: Sequence[Array]) -> tuple[Array, Ints]:
        """Normalised frames of all utterances, each with its context, and the number of frames of each."""
        reach, inputs = self._context // 2 * SPACING, []
        for frames in features:
            normalised = (frames - self.weights["mean"]) / self.weights["scale"]
            padded = np.pad(normalised, ((reach, reach), (0, 0)))
            starts = range(0, 2 * reach + 1, SPACING)
            inputs.append(np.hstack([padded[start : start + len(frames)] for start in starts]))
        return np.concatenate(inputs), np.array([len(frames) for frames in features])

    def _intents(self, pooled: Array) -> Array:
        odds = pooled @ self.weights["intents"] + self.weights["intents_bias"]
        probabilities: Array = 1 / (1 + np.exp(-np.clip(odds, -60, 60)))  # beyond ±88, a float32 overflows
        return probabilities


def _pool(hidden: Array, frames: Ints) -> Array:
    """Mean and maximum of each hidden unit over the frames of each utterance, shape (utterances, 2 · units)."""
    starts = np.cumsum(frames) - frames
    means = np.add.reduceat(hidden, starts) / frames[:, None].astype(hidden.dtype)
    return np.hstack([means, np.maximum.reduceat(hidden, starts)])


def learn(
    head: CtcHead, examples: Sequence[CtcExample], progress: Callable[[int, float], None], *, epochs: int,
    rate: float, random: np.random.Generator,
) -> None:  # fmt: skip
    """Trains a head with Adam. The learning rate rises in the first tenth of the steps, and falls to 0 at the end.

    - progress: called with the number of each epoch, from 1, and its loss per example.
    - rate: highest learning rate.

    Raises InputError if the loss is not finite.
    """
    steps = epochs * math.ceil(len(examples) / BATCH)
    first_moments = {name: np.zeros_like(head.weights[name]) for name in WEIGHTS[2:]}
    second_moments = {name: np.zeros_like(head.weights[name]) for name in WEIGHTS[2:]}
    step = 0
    for epoch in range(1, epochs + 1):
        total = 0.0
        for rows in _batches([len(example.features) for example in examples], random):
            step += 1
            batch = [examples[row] for row in rows]
            shape = sum(len(example.features) for example in batch), len(head.weights["hidden_bias"])
            dropout_mask = (random.random(shape, dtype=np.float32) >= DROPOUT) / np.float32(1 - DROPOUT)
            loss, gradients = head.gradients(batch, dropout_mask)
            total += loss
            norm = np.sqrt(sum(float(np.square(gradient).sum()) for gradient in gradients.values()))
            step_rate = rate * min(1, 10 * step / steps) * (1 - (step - 1) / steps)
            for name, gradient in gradients.items():
                clipped = gradient * np.float32(min(1, MAX_STEP_NORM / max(norm, 1e-12)))
                # Adam's usual rates of decay: 0.9 and 0.999.
                first_moments[name] += np.float32(0.1) * (clipped - first_moments[name])
                second_moments[name] += np.float32(0.001) * (np.square(clipped) - second_moments[name])
                mean, square = first_moments[name] / (1 - 0.9**step), second_moments[name] / (1 - 0.999**step)
                head.weights[name] = head.weights[name] - np.float32(step_rate) * mean / (np.sqrt(square) + 1e-8)
        if not np.isfinite(total):
            raise InputError("training diverged", remedy="Use a smaller `learning-rate`")
        progress(epoch, total / len(examples))


def _batches(lengths: Sequence[int], random: np.random.Generator) -> Iterator[list[int]]:
    """Batches of utterances (their indices) of similar length, in random order."""
    order = random.permutation(len(lengths)).tolist()
    batches = []
    for start in range(0, len(order), BATCH * 8):
        rows = sorted(order[start : start + BATCH * 8], key=lambda row: lengths[row])
        batches += [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]
    return (batches[place] for place in random.permutation(len(batches)))
