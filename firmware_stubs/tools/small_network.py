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
    out = np.zeros(shape, np.float32)
    parts = gradient.reshape(batch, -1, kernel, channels)
    for k in range(kernel):
        out[:, k : k + parts.shape[1]] += parts[:, :, k]
    return out


class Network:
    """Weights by layer: (kernel * channels in, channels out), and biases."""

    def __init__(self, rng: np.random.Generator) -> None:
        shapes = ((KERNEL * BANDS, FIRST), (KERNEL * FIRST, SECOND), (SPAN * SECOND, THIRD), (THIRD, 1))
        self.weights = [(rng.normal(size=shape) * np.sqrt(2 / shape[0])).astype(np.float32) for shape in shapes]
        self.biases = [np.zeros(shape[1], np.float32) for shape in shapes]
        self._moments = [(np.zeros_like(p), np.zeros_like(p)) for p in (*self.weights, *self.biases)]
        self._steps = 0

    def hidden(self, x: Array) -> tuple[Array, Array, Array]:
        """What each layer says to (batch, frames, bands)."""
        first = np.maximum(unfolded(x * SCALE, KERNEL, 2) @ self.weights[0] + self.biases[0], 0)
        second = np.maximum(unfolded(first, KERNEL) @ self.weights[1] + self.biases[1], 0)
        third = np.maximum(unfolded(second, SPAN) @ self.weights[2] + self.biases[2], 0)
        return first, second, third

    def logits(self, x: Array) -> Array:
        """(batch, frames, bands) to (batch, steps), a step every second frame from the first full window on."""
        out: Array = (self.hidden(x)[2] @ self.weights[3] + self.biases[3])[..., 0]
        return out

    def learn(self, x: Array, wanted: Array, weight: Array, rate: float, rng: np.random.Generator) -> float:
        """One step of Adam on windows (batch, FRAMES, bands); the mean loss. A tenth of the filters drop out."""
        batch = len(x)
        in1 = unfolded(x * SCALE, KERNEL, 2)
        a1 = np.maximum(in1 @ self.weights[0] + self.biases[0], 0)
        in2 = unfolded(a1, KERNEL)
        a2 = np.maximum(in2 @ self.weights[1] + self.biases[1], 0)
        keep = (rng.random((batch, 1, SECOND)) > 0.1).astype(np.float32) / np.float32(0.9)
        in3 = (a2 * keep).reshape(batch, -1)
        a3 = np.maximum(in3 @ self.weights[2] + self.biases[2], 0)
        z = (a3 @ self.weights[3] + self.biases[3])[:, 0]
        p = 1 / (1 + np.exp(-np.clip(z, -30, 30)))
        loss = float(np.mean(weight * (np.logaddexp(0, z) - wanted * z)))
        d = (weight * (p - wanted) / batch)[:, None].astype(np.float32)
        g = [a3.T @ d]
        gb = [d.sum(0)]
        d = (d @ self.weights[3].T) * (a3 > 0)
        g.insert(0, in3.T @ d)
        gb.insert(0, d.sum(0))
        d = (d @ self.weights[2].T).reshape(a2.shape) * keep * (a2 > 0)
        g.insert(0, in2.reshape(-1, in2.shape[2]).T @ d.reshape(-1, SECOND))
        gb.insert(0, d.sum((0, 1)))
        d = folded(d @ self.weights[1].T, KERNEL, a1.shape) * (a1 > 0)
        g.insert(0, in1.reshape(-1, in1.shape[2]).T @ d.reshape(-1, FIRST))
        gb.insert(0, d.sum((0, 1)))
        self._adam([gw + np.float32(1e-4) * w for gw, w in zip(g, self.weights, strict=True)] + gb, rate)
        return loss

    def _adam(self, gradients: list[Array], rate: float) -> None:
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
    """8-bit weights by filter, activations of 0 to 127 whose top is the 99.95th percentile over `windows`."""
    tops = [float(np.percentile(a, 99.95)) for a in network.hidden(windows)]
    into = float(SCALE)
    layers = []
    for index, (weights, biases) in enumerate(zip(network.weights, network.biases, strict=True)):
        # The output is a logit in 1/256; the others are activations.
        out = tops[index] / 127 if index < 3 else 1 / 256
        steps = np.maximum(np.abs(weights).max(axis=0) / 127, 1e-9).astype(np.float64)
        multipliers = np.round(steps * into / out * 2**24).astype(np.int64)
        layers.append(
            Layer(
                np.clip(np.round(weights / steps), -127, 127).astype(np.int8),
                np.round(biases / (steps * into)).astype(np.int64),
                multipliers,
            )
        )
        into = out
    return layers
