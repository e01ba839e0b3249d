"""Finding a chirp in a recording to a part of a sample."""

from __future__ import annotations

import numpy as np
import pytest

from harness.sound.path_check import chirp, find


@pytest.mark.parametrize("delay", [0, 4711, 20_000])
def test_a_clean_chirp_is_found_where_it_is(delay: int) -> None:
    known = chirp().samples
    recording = np.zeros(40_000, dtype=np.float32)
    recording[delay : delay + len(known)] = known * np.float32(0.25)
    detection = find(recording, known)
    assert detection.sample == pytest.approx(delay, abs=0.01)
    assert detection.correlation == pytest.approx(1.0, abs=1e-4)


def test_a_chirp_in_noise_is_found_and_noise_alone_is_not_one() -> None:
    rng = np.random.default_rng(7)
    known = chirp().samples
    noise = rng.normal(0, 0.17, 60_000).astype(np.float32)
    assert find(noise, known).correlation < 0.1
    noise[30_000 : 30_000 + len(known)] += known
    detection = find(noise, known)
    assert detection.sample == pytest.approx(30_000, abs=0.5)
    assert detection.correlation > 0.5


def test_silence_is_no_chirp_and_a_short_recording_is_refused() -> None:
    known = chirp().samples
    assert find(np.zeros(40_000, dtype=np.float32), known).correlation == 0.0
    with pytest.raises(ValueError, match="shorter"):
        find(known[:-1], known)
