"""Finding a chirp in a recording to a part of a sample."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.bench_checks import BenchChecks
from harness.sound.path_check import (
    SPREAD_LIMIT_MS,
    ChirpMeasurement,
    PathCheck,
    chirp,
    find,
    path_figures,
    path_words,
    spread_ms,
)


@pytest.mark.parametrize("delay", [0, 4711, 20_000])
def test_a_clean_chirp_is_found_where_it_is(delay: int) -> None:
    played = chirp().samples
    recording = np.zeros(40_000, dtype=np.float32)
    recording[delay : delay + len(played)] = played * np.float32(0.25)
    detection = find(recording, played)
    assert detection.start == pytest.approx(delay, abs=0.01)
    assert detection.correlation == pytest.approx(1.0, abs=1e-4)


def test_a_chirp_in_noise_is_found_and_noise_alone_is_not_one() -> None:
    rng = np.random.default_rng(7)
    played = chirp().samples
    noise = rng.normal(0, 0.17, 60_000).astype(np.float32)
    assert find(noise, played).correlation < 0.1
    noise[30_000 : 30_000 + len(played)] += played
    detection = find(noise, played)
    assert detection.start == pytest.approx(30_000, abs=0.5)
    assert detection.correlation > 0.5


def test_silence_is_no_chirp_and_a_short_recording_is_refused() -> None:
    played = chirp().samples
    assert find(np.zeros(40_000, dtype=np.float32), played).correlation == 0.0
    with pytest.raises(ValueError, match="shorter"):
        find(played[:-1], played)


@pytest.mark.parametrize(
    ("paths_ms", "steady", "words"),
    [
        ((2.0, 2.4, 2.1), True, "OK: every chirp was heard, and the path varies by 0.4 ms."),
        ((2.0, 22.0), True, "OK: every chirp was heard, and the path varies by 20.0 ms."),
        (
            (2.0, 267.0, 3.0),
            False,
            "UNSTEADY: the path varies by 265.0 ms (the limit is 20 ms), so latencies would vary too.",
        ),
        ((2.0,), None, "OK: every chirp was heard."),
    ],
)
def test_a_path_is_steady_by_the_limit_of_the_bench(
    paths_ms: tuple[float, ...], steady: bool | None, words: str
) -> None:
    heard = tuple(ChirpMeasurement(path_ms + 30, path_ms, 1.0, -20.0) for path_ms in paths_ms)
    check = PathCheck("a", "b", len(heard), heard, 1.0, -90.0, 1.0, 0, ())
    assert SPREAD_LIMIT_MS == BenchChecks().loop_delay_spread_ms_max == 20
    assert check.steady is steady
    assert path_words(check).splitlines()[-1].startswith(words)
    assert path_figures(check)["steady"] is steady
    assert path_figures(check)["path_spread_ms"] == (None if len(paths_ms) == 1 else pytest.approx(spread_ms(paths_ms)))
