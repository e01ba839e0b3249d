"""A memory trial, for tests of its plan and of its run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.devices.in_process.device import FORGOT, REMEMBERS
from harness.model.bench import DeviceProfile, ObservationKind
from harness.model.scenario import MemorySpec, RepromptRule, Scenario, TrialKind, TrialTemplate
from tests.unit.session.material import PROFILE, scenario

TELLS = replace(PROFILE, reports=PROFILE.reports | {ObservationKind.RESPONSE})
RULE = RepromptRule(max_attempts=2, context_wait_s=3.0, end_silence_ms=300)


def probe(*waits_s: float, repeat: int = 1, rule: RepromptRule = RULE, **changes: Any) -> Scenario:
    """The first query primes, the second follows up."""
    spec = MemorySpec("q1", waits_s, shows=(REMEMBERS,), forgets=(FORGOT,))
    one = TrialTemplate("memory", "q0", kind=TrialKind.MEMORY, repeat=repeat, reprompt=rule, memory=spec)
    return replace(scenario(2), trials=(one,), **changes)


def quick(profile: DeviceProfile = TELLS) -> DeviceProfile:
    """Without a context wait of its own."""
    return replace(profile, context_wait_s=None)
