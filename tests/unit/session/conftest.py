"""What tests of sessions share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.base import threads
from harness.base.simulated_threads import SimulatedThreads


@pytest.fixture
def simulated_time() -> Iterator[SimulatedThreads]:
    """All threads, waits and times of the test are simulated."""
    with SimulatedThreads() as world, threads.using(world):
        yield world
