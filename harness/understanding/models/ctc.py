"""Connectionist temporal classification: the loss of label sequences without alignment, and its gradient.

Source: Graves et al. 2006, "Connectionist temporal classification". Plain numpy, in log space.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]
BLANK = 0
"""The label of a frame that says nothing, or that nothing changes."""
NEVER = -1e30
"""Log of the probability 0: finite, so that differences of two of them are numbers."""


def ctc_loss(
    log_probabilities: Array, frames: Sequence[int], targets: Sequence[Sequence[int]]
) -> tuple[npt.NDArray[np.float64], Array]:
    """Loss in nats of each utterance, shape (n,), and its gradient by the scores in front of the softmax.

    log_probabilities: shape (n, most frames, labels), a log-softmax. frames: at least 1 of each utterance; what follows
    is padding, whose gradient is 0. targets: labels without blanks. The gradient has the shape of log_probabilities.

    A target that does not fit into its frames (see `fewest_frames`) has an infinite loss, and the gradient 0.
    """
    longest, labels = log_probabilities.shape[1:]
    ends, sizes = np.asarray(frames), np.array([2 * len(target) + 1 for target in targets])
    states = np.full((len(sizes), int(sizes.max())), BLANK)  # a blank before, between and behind the labels
    for row, target in enumerate(targets):
        states[row, 1 : sizes[row] : 2] = target
    # Each utterance back to front: what is padding stays in its place.
    rows, back_frames, back_states = np.arange(len(sizes))[:, None], _reversed(ends, longest), _reversed(sizes)
    emitted = np.take_along_axis(log_probabilities, states[:, None, :], axis=2).astype(np.float64)
    emitted[np.broadcast_to((np.arange(states.shape[1]) >= sizes[:, None])[:, None], emitted.shape)] = NEVER
    there = _path_sums(emitted, states)
    back = _path_sums(emitted[rows[..., None], back_frames[..., None], back_states[:, None]], states[rows, back_states])
    back = back[rows[..., None], back_frames[..., None], back_states[:, None]]
    total = np.logaddexp.reduce(back[:, 0, :2], axis=1)
    fits = total > NEVER / 2
    inside = ((np.arange(longest) < ends[:, None]) & fits[:, None])[..., None]
    shares = np.exp(np.where(inside, there + back - emitted - total[:, None, None], NEVER))
    expected = shares @ (states[..., None] == np.arange(labels)).astype(np.float64)
    gradient = np.where(inside, np.exp(log_probabilities) - expected, 0)
    return np.where(fits, -total, np.inf), gradient.astype(log_probabilities.dtype)


def _path_sums(emitted: Array, states: npt.NDArray[np.int_]) -> Array:
    """Log of the sum over all paths from the first frame to each state of each frame. Shape (n, frames, states)."""
    sums = np.full_like(emitted, NEVER)
    sums[:, 0, :2] = emitted[:, 0, :2]
    came = np.full((3, *states.shape), NEVER)  # from this state, the previous one, the label before the blank between
    entered = np.full(states.shape, NEVER)
    entered[:, 3::2][states[:, 3::2] != states[:, 1:-2:2]] = 0
    for frame in range(1, emitted.shape[1]):
        before = sums[:, frame - 1]
        came[0], came[1, :, 1:], came[2, :, 2:] = before, before[:, :-1], before[:, :-2] + entered[:, 2:]
        most = came.max(axis=0)
        sums[:, frame] = emitted[:, frame] + most + np.log(np.exp(came - most).sum(axis=0))
    return sums


def _reversed(sizes: npt.NDArray[np.int_], longest: int | None = None) -> npt.NDArray[np.int_]:
    """Places that reverse the first elements of each row, and leave the others. Shape (n, longest)."""
    places = np.arange(int(sizes.max()) if longest is None else longest)
    return np.where(places < sizes[:, None], sizes[:, None] - 1 - places, places)


def fewest_frames(target: Sequence[int]) -> int:
    """The frames that a target needs: one a label, and one for the blank between two equal labels."""
    return len(target) + sum(first == second for first, second in zip(target, target[1:], strict=False))


def best_path(log_probabilities: Array) -> list[int]:
    """The labels of the likeliest path: repeated labels once, without blanks. Shape (frames, labels)."""
    best = log_probabilities.argmax(axis=1)
    return [int(label) for label, before in zip(best, [BLANK, *best[:-1]], strict=True) if label not in (before, BLANK)]


def log_softmax(scores: Array) -> Array:
    """Over the last axis."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
