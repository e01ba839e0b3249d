"""The memory probe finds what the reference assistant was told, with real sound; tests/soak has more of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.memory_probe import TO_WAKE_S, probe
from tests.known import known

pytestmark = [pytest.mark.sound, pytest.mark.speech, pytest.mark.timeout(600)]

APART_S = 1.0


@pytest.mark.soak
@pytest.mark.parametrize("memory_s", [3.0, 7.0])
def test_the_probe_brackets_the_memory_of_the_assistant(memory_s: float, tmp_path: Path) -> None:
    """Two pairs: one whose follow-up wakes the assistant a second before it forgets, and one a second after."""
    silence_s = memory_s - TO_WAKE_S
    finding = probe(tmp_path / "probe", memory_s, (silence_s - APART_S, silence_s + APART_S), repeat=1)
    counted = [point for point in finding.points if point.shown is not None]
    assert {(point.planned_s < silence_s, point.shown) for point in counted} == {(True, True), (False, False)}, counted
    low, high = known(finding.to_wake).bracket
    assert high is not None
    assert memory_s - 2 * APART_S <= low <= memory_s <= high <= memory_s + 2 * APART_S
    for point in counted:
        assert point.waited_s is not None
        assert point.planned_s <= point.waited_s <= point.planned_s + 0.5
