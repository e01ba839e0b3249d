"""The memory probe and the reference assistant with real sound, about twenty minutes; its interval in simulations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from tests.conformance.memory_probe import TO_WAKE_S, probe
from tests.unit.session.figures.memory_rows import Design, kept

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

RUNS = 1000
DESIGNS = (
    Design(2, 32, 5, 1),
    Design(2, 32, 5, 3),
    Design(1, 32, 6, 6),
    Design(1, 60, 8, 3),
    Design(1, 60, 8, 6),
    Design(1, 60, 12, 10),
    Design(1, 60, 20, 2),
    Design(1, 60, 60, 1),
)
SPREADS = (0.0, 0.1, 0.3, 0.7, 1.5)
"""Of the logarithm of the memory's length, logistic: 0 is a device that always remembers for as long."""


@pytest.mark.sound
@pytest.mark.speech
@pytest.mark.parametrize("memory_s", [3.0, 6.0, 12.0, 20.0])
def test_the_probe_finds_the_memory_of_the_assistant_within_its_interval(memory_s: float, tmp_path: Path) -> None:
    waits_s = [share * memory_s for share in (0.4, 0.65, 1.0, 1.5)]
    estimate = probe(tmp_path / "probe", memory_s, waits_s, repeat=3)
    (tmp_path / "found.txt").write_text(
        f"{estimate.levels}\n{estimate.length}\n{estimate.to_wake}\n{estimate.forgotten}\n"
    )
    assert estimate.counted >= 9, estimate
    assert estimate.to_wake is not None
    low, high = estimate.to_wake.interval
    assert high is not None
    assert low <= memory_s <= high
    assert 0.4 * memory_s <= low
    assert high <= 1.5 * memory_s + TO_WAKE_S + 2.0
    assert estimate.forgotten is not None
    assert estimate.forgotten.wait_s + TO_WAKE_S + 0.2 >= memory_s


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_the_interval_covers_the_length_of_devices_that_forget_by_chance(design: Design, spread: float) -> None:
    coverage = kept(np.random.default_rng(21), design, spread, RUNS)
    # No evidence, at one in a thousand, of less than was declared.
    assert binomtest(coverage.covered, RUNS, 0.95, alternative="less").pvalue > 0.001, coverage
    assert binomtest(coverage.over, RUNS, 0.05, alternative="greater").pvalue > 0.001, coverage
