"""What a scenario wants of a device's wake figures, and how that stands; each in a few words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.dashboard import palette
from harness.dashboard.declared import Declared
from harness.model.scenario import SequentialTest
from harness.session.figures.progress import Totals, check_limits
from harness.wake.wake_progress import DeviceWake, WakeProgress


class Standing(StrEnum):
    """In the order of urgency. OPEN: more sound may still bring it about."""

    FAILED = "FAILED"
    OPEN = "open"
    HOLDS = "holds"


COLOURS = {Standing.HOLDS: palette.GREEN, Standing.OPEN: palette.YELLOW, Standing.FAILED: palette.RED}


@dataclass(frozen=True, slots=True)
class Wanted:
    """`≤5 %`, and how it stands."""

    text: str
    standing: Standing


def of_false_rejects(device: DeviceWake, declared: Declared) -> list[Wanted]:
    """Limits and test of the false reject ratio, and of commands."""
    limits = declared.limits
    return [
        *_limit("max_false_reject_share", f"≤{_percent(limits.max_false_reject_share)}", device, declared),
        *_limit("max_false_reject_upper", f"upper ≤{_percent(limits.max_false_reject_upper)}", device, declared),
        *_test("false_rejects", declared.stopping.false_rejects, device),
        *_limit("min_command_share", f"commands ≥{_percent(limits.min_command_share)}", device, declared),
    ]


def of_false_accepts(device: DeviceWake, declared: Declared) -> list[Wanted]:
    """Limits and test of the false accepts per hour, and of the exposure that they need."""
    limits = declared.limits
    upper = limits.max_false_accepts_upper_per_hour or 0
    return [
        *_limit("max_false_accepts_per_hour", f"≤{limits.max_false_accepts_per_hour or 0:g}/h", device, declared),
        *_limit("max_false_accepts_upper_per_hour", f"upper ≤{upper:g}/h", device, declared),
        *_test("false_accepts", declared.stopping.false_accepts, device),
        *_limit("min_exposure_hours", f"≥{limits.min_exposure_hours or 0:g} h", device, declared),
    ]


_GROWS_INTO = frozenset({"max_false_reject_upper", "max_false_accepts_upper_per_hour", "min_exposure_hours"})
"""Limits that fail for want of sound at first."""


def _limit(name: str, text: str, device: DeviceWake, declared: Declared) -> list[Wanted]:
    """How a limit stands by the rule that sets the exit status; nothing where it is not declared."""
    verdicts = check_limits(declared.limits, Totals(), WakeProgress(devices=(device,)))
    verdict = next((one for one in verdicts if one.name.partition("[")[0] == name), None)
    if verdict is None:
        return []
    if verdict.ok:
        return [Wanted(text, Standing.HOLDS)]
    return [Wanted(text, Standing.OPEN if verdict.found is None or name in _GROWS_INTO else Standing.FAILED)]


def _percent(value: float | None) -> str:
    return f"{(value or 0) * 100:g} %"


def _test(figure: str, test: SequentialTest | None, device: DeviceWake) -> list[Wanted]:
    passed = dict(device.decisions).get(figure)
    if passed is None:
        return [] if test is None else [Wanted("test", Standing.OPEN)]
    return [Wanted("test", Standing.HOLDS if passed else Standing.FAILED)]
