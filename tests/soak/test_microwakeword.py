"""Hours of sound in one stream: the kernel's scores are the package's, to the bit, in every form of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest

from harness.engines.microwakeword_kernel.native import library
from harness.engines.microwakeword_offline import MicroWakeWordOffline
from tests.unit.engines.wake_sound import varied

pytestmark = [pytest.mark.soak, pytest.mark.speech, pytest.mark.timeout(3600)]
PROMPTS = Path("/usr/share/asterisk/sounds")
MODELS = ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")


def hours() -> Iterator[np.ndarray]:
    """Two hours made up, and people's prompts at levels from nothing to clipping where Debian's are installed."""
    for seed in range(60):
        yield varied(seconds=80, seed=seed)
    rng = np.random.default_rng(1)
    for path in sorted(PROMPTS.rglob("*.g722")):
        with av.open(str(path), format="g722") as source:
            pieces = [frame.to_ndarray().reshape(-1) for frame in source.decode(audio=0)]
        if pieces:
            sound = np.concatenate(pieces) * 10 ** rng.choice([-2, -1, 0, 0, 0, 1.5])
            yield np.clip(sound, -32768, 32767).astype(np.int16)


@pytest.mark.parametrize("model", MODELS)
def test_hours_in_one_stream(model: str) -> None:
    kernel = library()
    fast = [MicroWakeWordOffline(model, {}) for _ in range(3)]
    assert dict(fast[0].facts.settings)["path"] == "fast"
    reference = MicroWakeWordOffline(model, {"path": "streaming"}).begin()
    streams = [engine.begin() for engine in fast]
    scored = 0
    try:
        for sound in hours():
            reference.feed(sound)
            (expected,) = reference.take(flush=False)
            for level, stream in enumerate(streams):
                kernel.vh_limit(level)
                stream.feed(sound)
                (actual,) = stream.take(flush=False)
                np.testing.assert_array_equal(actual.scores, expected.scores)
                assert actual.first_end == expected.first_end
            scored += len(expected.scores)
    finally:
        kernel.vh_limit(2)
    assert scored * 0.03 > 3600
