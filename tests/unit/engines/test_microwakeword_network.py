from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.engines.microwakeword_kernel.native import LayerKind, Listener, NotKnown, network_of
from harness.engines.microwakeword_offline import Interpreter, packaged
from harness.engines.tflite_file import Broken, Op, read_model, with_output

pytestmark = pytest.mark.speech
MODELS = ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")


def test_a_network_is_the_chain_of_its_models_convolutions() -> None:
    network = network_of(read_model(packaged()["okay_nabu"].path.read_bytes()))
    dense, depth = LayerKind.DENSE, LayerKind.DEPTHWISE
    assert [(layer.kind, layer.taps) for layer in network.layers] == [
        (dense, 5), (depth, 3), (dense, 1), (depth, 9), (dense, 1), (depth, 13), (dense, 1), (depth, 15), (dense, 1),
        (depth, 17), (dense, 1), (LayerKind.ANSWER, 1),
    ]  # fmt: skip
    assert (network.stride, network.width, network.input_zero) == (3, 40, -128)
    assert [len(layer.start) for layer in network.layers][:2] == [2, 2]


@pytest.mark.parametrize("model", MODELS)
def test_the_last_sums_are_the_librarys(model: str, tmp_path: Path) -> None:
    """The sums before the logistic function, which takes most of them to the same probability."""
    path = packaged()[model].path
    content = path.read_bytes()
    graphs = read_model(content)
    network = network_of(graphs)
    sums = next(op.inputs[0] for op in graphs[0].operators if op.code == Op.LOGISTIC)
    rng = np.random.default_rng(3)
    steps = np.clip(rng.normal(-50, 70, (4000, 3, 40)), -128, 127).astype(np.int8)
    steps[::7] = -128
    changed = tmp_path / "sums.tflite"
    changed.write_bytes(with_output(content, sums))
    theirs = Interpreter.answers(changed, steps).view(np.int8).astype(int) + 128
    ours = Listener(replace(network, answer=np.arange(256, dtype=np.uint8))).answer(steps)
    assert len(np.unique(theirs)) > 25
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(Listener(network).answer(steps), Interpreter.answers(path, steps))


def test_damaged_models_are_refused_or_compute_something() -> None:
    """Bytes of the graph changed at random: never an error of another kind, never a crash."""
    rng = np.random.default_rng(1)
    content = packaged()["alexa"].path.read_bytes()
    sound = rng.integers(-9000, 9000, 4000).astype(np.int16)
    refused = 0
    for _ in range(150):
        damaged = bytearray(content)
        for place in rng.integers(len(content) - 20_000, len(content), 5):
            damaged[place] = rng.choice([0, 1, 2, 128, 255])
        try:
            Listener(network_of(read_model(bytes(damaged)))).hear(sound)
        except (NotKnown, Broken):
            refused += 1
    assert refused > 20
