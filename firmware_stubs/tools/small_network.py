"""A small convolutional network in numpy: training by Adam, and its numbers as 8-bit integers.

Three layers over time (5 frames by 2, 5 steps, 16 steps) with ReLU, and one output: about 29,000 weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

Array = npt.NDArray[np.float32]
BANDS, KERNEL, FIRST, SECOND, SPAN, THIRD = 16, 5, 32, 48, 16, 24
FRAMES = KERNEL + 2 * (KERNEL - 1 + SPAN - 1)
"""Frames that one decision sees: 43."""
SCALE = np.float32(1 / 64)
"""Features of 0 to 127 enter as 0 to 2."""


def unfolded(x: Array, kernel: int, stride: int = 1) -> Array:
    """(batch, time, channels) to (batch, steps, kernel * channels)."""
    view = sliding_window_view(x, kernel, axis=1)[:, ::stride]
    return np.ascontiguousarray(view.transpose(0, 1, 3, 2)).reshape(*view.shape[:2], kernel * x.shape[2])


def folded(gradient: Array, kernel: int, shape: tuple[int, ...]) -> Array:
    """The transpose of `unfolded` with stride 1."""
    batch, _, channels = shape
    sums = np.zeros(shape, np.float32)
    parts = gradient.reshape(batch, -1, kernel, channels)
    for offset in range(kernel):
        sums[:, offset : offset + parts.shape[1]] += parts[:, :, offset]
    return sums


class Network:
    """Weights by layer: (kernel * channels in, channels out), and biases."""

    def __init__(self, rng: np.random.Generator) -> None:
        shapes = ((KERNEL * BANDS, FIRST), (KERNEL * FIRST, SECOND), (SPAN * SECOND, THIRD), (THIRD, 1))
        self.weights = [(rng.normal(size=shape) * np.sqrt(2 / shape[0])).astype(np.float32) for shape in shapes]
        self.biases = [np.zeros(shape[1], np.float32) for shape in shapes]
        self._moments = [(np.zeros_like(p), np.zeros_like(p)) for p in (*self.weights, *self.biases)]
        self._steps = 0

    def hidden(self, x: Array) -> tuple[Array, Array, Array]:
        """The activations of each layer for (batch, frames, bands)."""
        first = np.maximum(unfolded(x * SCALE, KERNEL, 2) @ self.weights[0] + self.biases[0], 0)
        second = np.maximum(unfolded(first, KERNEL) @ self.weights[1] + self.biases[1], 0)
        third = np.maximum(unfolded(second, SPAN) @ self.weights[2] + self.biases[2], 0)
        return first, second, third

    def logits(self, x: Array) -> Array:
        """(batch, frames, bands) to (batch, steps), a step every second frame from the first full window on."""
        out: Array = (self.hidden(x)[2] @ self.weights[3] + self.biases[3])[..., 0]
        return out

    def learn(self, x: Array, labels: Array, weight: Array, rate: float, rng: np.random.Generator) -> float:
        """Takes one step of Adam on windows (batch, FRAMES, bands), and returns the mean loss.

        labels: 1 for a window that must wake, else 0. weight: of each window. A tenth of the second layer's filters
        drop out.
        """
        batch = len(x)
        first_in = unfolded(x * SCALE, KERNEL, 2)
        first = np.maximum(first_in @ self.weights[0] + self.biases[0], 0)
        second_in = unfolded(first, KERNEL)
        second = np.maximum(second_in @ self.weights[1] + self.biases[1], 0)
        dropout = (rng.random((batch, 1, SECOND)) > 0.1).astype(np.float32) / np.float32(0.9)
        third_in = (second * dropout).reshape(batch, -1)
        third = np.maximum(third_in @ self.weights[2] + self.biases[2], 0)
        logits = (third @ self.weights[3] + self.biases[3])[:, 0]
        probabilities = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
        loss = float(np.mean(weight * (np.logaddexp(0, logits) - labels * logits)))
        # Backwards through the layers: delta is the gradient of the loss at the output of a layer before its ReLU.
        delta = (weight * (probabilities - labels) / batch)[:, None].astype(np.float32)
        gradients = [third.T @ delta]
        bias_gradients = [delta.sum(0)]
        delta = (delta @ self.weights[3].T) * (third > 0)
        gradients.insert(0, third_in.T @ delta)
        bias_gradients.insert(0, delta.sum(0))
        delta = (delta @ self.weights[2].T).reshape(second.shape) * dropout * (second > 0)
        gradients.insert(0, second_in.reshape(-1, second_in.shape[2]).T @ delta.reshape(-1, SECOND))
        bias_gradients.insert(0, delta.sum((0, 1)))
        delta = folded(delta @ self.weights[1].T, KERNEL, first.shape) * (first > 0)
        gradients.insert(0, first_in.reshape(-1, first_in.shape[2]).T @ delta.reshape(-1, FIRST))
        bias_gradients.insert(0, delta.sum((0, 1)))
        decayed = [
            gradient + np.float32(1e-4) * weights for gradient, weights in zip(gradients, self.weights, strict=True)
        ]
        self._adam(decayed + bias_gradients, rate)
        return loss

    def _adam(self, gradients: list[Array], rate: float) -> None:
        """Changes all weights and biases by a step. gradients: of the weights by layer, then of the biases."""
        self._steps += 1
        for parameter, gradient, (mean, square) in zip(
            (*self.weights, *self.biases), gradients, self._moments, strict=True
        ):
            mean += np.float32(0.1) * (gradient - mean)
            square += np.float32(0.001) * (gradient**2 - square)
            corrected = mean / np.float32(1 - 0.9**self._steps)
            spread = np.sqrt(square / np.float32(1 - 0.999**self._steps)) + np.float32(1e-8)
            parameter -= np.float32(rate) * corrected / spread


@dataclass(frozen=True, slots=True)
class Layer:
    """Integers: out = clamp((sum(weights * in) + bias) * multiplier >> 24), one multiplier a filter."""

    weights: npt.NDArray[np.int8]
    biases: npt.NDArray[np.int64]
    multipliers: npt.NDArray[np.int64]


def quantised(network: Network, windows: Array) -> list[Layer]:
    """8-bit weights by filter; activations of 0 to 127, where 127 is the 99.95th percentile over `windows`."""
    activation_steps = [float(np.percentile(activations, 99.95)) / 127 for activations in network.hidden(windows)]
    logit_step = 1 / 256
    in_step = float(SCALE)
    layers = []
    for weights, biases, out_step in zip(network.weights, network.biases, [*activation_steps, logit_step], strict=True):
        weight_steps = np.maximum(np.abs(weights).max(axis=0) / 127, 1e-9).astype(np.float64)
        layers.append(
            Layer(
                weights=np.clip(np.round(weights / weight_steps), -127, 127).astype(np.int8),
                biases=np.round(biases / (weight_steps * in_step)).astype(np.int64),
                multipliers=np.round(weight_steps * in_step / out_step * 2**24).astype(np.int64),
            )
        )
        in_step = out_step
    return layers
