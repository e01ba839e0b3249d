"""Whether the kernel and the package compute the same on this machine: tried out on every model when it is loaded.

The package's library picks its arithmetic by the processor. What the kernel copies was found on x86-64; anywhere else,
or with another version of the package, this tells before a score is used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.engines.microwakeword_kernel.native import Listener
from harness.engines.microwakeword_kernel.network import Network
from harness.engines.tflite_file import Graph, Op, with_output

_STEPS = 120
_SAMPLES = 24_000
Answers = Callable[[Path, npt.NDArray[np.int8]], npt.NDArray[np.uint8]]
"""What the package's interpreter answers to quantised features (n, stride, 40), with the model of that file."""
Features = Callable[[npt.NDArray[np.int16]], npt.NDArray[np.uint16]]
"""What the package's features are, shape (n, 40), logged, of samples at 16 kHz."""


def disagreement(
    content: bytes, graph: Graph, network: Network, package_answers: Answers, package_features: Features
) -> str:
    """What differs, in words, or "": features of loud, faint and no sound, and the last sums of a made-up input."""
    rng = np.random.default_rng(1)
    listener = Listener(replace(network, answer=np.arange(256, dtype=np.uint8)))
    levels = 10 ** rng.uniform(0, 5, _SAMPLES // 1000).repeat(1000)
    levels[5000:8000] = 0
    sound = np.clip(rng.normal(0, 1, _SAMPLES) * levels, -32768, 32767).astype(np.int16)
    if not np.array_equal(listener.features(sound), package_features(sound)):
        return "features differ from the package's on this machine"
    steps = np.clip(rng.normal(-40, 60, (_STEPS, network.stride, network.width)), -128, 127).astype(np.int8)
    before = next(op.inputs[0] for op in graph.operators if op.code == Op.LOGISTIC)
    with tempfile.TemporaryDirectory(prefix="microwakeword-") as folder:
        path = Path(folder) / "sums.tflite"
        path.write_bytes(with_output(content, before))
        theirs = package_answers(path, steps).view(np.int8).astype(np.int16) + 128
    if not np.array_equal(listener.answer(steps), theirs):
        return "the network's sums differ from the package's on this machine"
    return ""
