"""The C kernel's embeddings are those of onnxruntime and of the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyopen_wakeword
import pytest

from harness.engines.offline_loading import NoKernel
from harness.engines.openwakeword import (
    SHARED_FRAMES,
    FastScores,
    Features,
    OnnxEmbedding,
    OpenWakeWordOffline,
    fastest_features,
    margin,
)
from harness.engines.openwakeword_kernel import native
from harness.engines.openwakeword_kernel.native import Convolution, KernelEmbedding, Pool, layers
from harness.engines.openwakeword_onnx import embedding_model
from harness.engines.tflite_file import Graph, read_model
from tests.unit.engines.openwakeword_sounds import SOUNDS, scored

MODELS = Path(pyopen_wakeword.__file__).parent / "models"
MEL, EMBEDDING = ((MODELS / f"{name}.tflite").read_bytes() for name in ("melspectrogram", "embedding_model"))


def built() -> bool:
    try:
        native.library()
    except NoKernel:
        return False
    return True


pytestmark = [pytest.mark.speech, pytest.mark.skipif(not built(), reason="the kernel was not built, or not for here")]


def graph() -> Graph:
    return read_model(EMBEDDING)[0]


def frames(windows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2, (SHARED_FRAMES + 8 * windows, 32)).astype(np.float32)


@pytest.mark.parametrize("windows", [1, 2, 3, 4, 5, 37, 150])
def test_embeddings_match_onnxruntime(windows: int) -> None:
    inputs = frames(windows)
    actual = KernelEmbedding(graph())(inputs)
    expected = OnnxEmbedding(embedding_model(graph()))(inputs)
    assert actual.shape == (windows, 96)
    assert np.abs(actual - expected).max() < 3e-6 * np.abs(expected).max()


def test_earlier_buffer_contents_do_not_change_embeddings() -> None:
    """Its memory is used again, longer and shorter, and after values that leave nothing finite."""
    embedding = KernelEmbedding(graph())
    short, long = frames(3, 1), frames(40, 2)
    first = embedding(short)
    for before in (long, np.full_like(long, np.inf), np.full_like(long, np.nan), long * 1e30):
        with np.errstate(all="ignore"):
            embedding(before)
        assert np.array_equal(embedding(short), first)


def test_later_frames_change_an_embedding_only_by_rounding() -> None:
    inputs = frames(10)
    changed = inputs.copy()
    changed[SHARED_FRAMES + 8 * 9 :] = 20
    embedding = KernelEmbedding(graph())
    assert np.abs(embedding(inputs)[:9] - embedding(changed)[:9]).max() < 2e-4


def test_the_graph_is_a_chain_of_twenty_convolutions_and_five_pools() -> None:
    chain = layers(graph())
    convolutions = [layer for layer in chain if isinstance(layer, Convolution)]
    pools = [layer for layer in chain if isinstance(layer, Pool)]
    assert (len(convolutions), len(pools)) == (20, 5)
    assert [layer.rows for layer in pools] == [2, 1, 2, 1, 2]
    assert {(layer.slope, layer.floor) for layer in convolutions[:-1]} == {(np.float32(0.2), np.float32(-0.4))}
    assert (convolutions[-1].slope, convolutions[-1].floor) == (1, -np.inf)


@pytest.mark.parametrize("name", ["melspectrogram", "alexa"])
def test_the_kernel_refuses_another_graph(name: str) -> None:
    with pytest.raises(ValueError):
        KernelEmbedding(read_model((MODELS / f"{name}.tflite").read_bytes())[0])


def test_the_fast_path_uses_the_kernel_and_reports_it() -> None:
    assert f"kernel {native.VERSION}" in OpenWakeWordOffline("alexa", {}).facts.version
    theirs = pyopen_wakeword.OpenWakeWordFeatures.from_builtin()
    assert fastest_features(theirs, MEL, EMBEDDING)[1] == f"kernel {native.VERSION}"


def test_scores_with_and_without_the_kernel_agree() -> None:
    engine = OpenWakeWordOffline("alexa", {})
    _, classifier, exact = engine.fast_parts()
    sound = np.concatenate([make() for make in SOUNDS])
    slower = FastScores("alexa", Features(MEL, EMBEDDING, kernel=False), classifier, exact, np.zeros(0, np.float32))
    slower.feed(sound)
    expected = slower.take(flush=True)[0].scores
    actual = scored(engine, sound).scores
    assert np.all(np.abs(actual - expected) <= margin(expected))
    assert expected.max() > 0.9
