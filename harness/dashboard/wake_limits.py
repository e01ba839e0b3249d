"""What a scenario wants of a device's wake figures, and how that stands; each in a few words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from harness.dashboard import palette
from harness.dashboard.declared import Declared
from harness.evaluate.wake_progress import DeviceWake
from harness.model.scenario import SequentialTest


class Standing(StrEnum):
    """In the order of urgency. OPEN: more sound may still bring it about."""

    FAILED = "FAILED"
    OPEN = "open"
    HOLDS = "holds"


COLOURS = {Standing.HOLDS: palette.GREEN, Standing.OPEN: palette.YELLOW, Standing.FAILED: palette.RED}


@dataclass(frozen=True, slots=True)
class Wanted:
    """`≤ 5 %`, and how it stands."""

    text: str
    standing: Standing


def of_false_rejects(device: DeviceWake, declared: Declared) -> list[Wanted]:
    """Limits and test of the false reject ratio."""
    limits, ratio = declared.limits, device.false_rejects
    upper = None if ratio.interval is None else ratio.interval[1]
    found = [
        _at_most("", limits.max_false_reject_share, ratio.share.value, Standing.FAILED, _percent),
        _at_most("upper ", limits.max_false_reject_upper, upper, Standing.OPEN, _percent),
        _test("false_rejects", declared.stopping.false_rejects, device),
    ]
    if limits.min_command_share is not None:
        share = device.commands.value
        holds = share is not None and share >= limits.min_command_share
        standing = Standing.HOLDS if holds else Standing.OPEN if share is None else Standing.FAILED
        found.append(Wanted(f"commands ≥{_percent(limits.min_command_share)}", standing))
    return [one for one in found if one is not None]


def of_false_accepts(device: DeviceWake, declared: Declared) -> list[Wanted]:
    """Limits and test of the false accepts per hour, and of the exposure that they need."""
    limits, rate = declared.limits, device.after_review
    upper = None if rate.interval is None else rate.interval[1]
    found = [
        _at_most("", limits.max_false_accepts_per_hour, rate.per_hour, Standing.FAILED, _per_hour),
        _at_most("upper ", limits.max_false_accepts_upper_per_hour, upper, Standing.OPEN, _per_hour),
        _test("false_accepts", declared.stopping.false_accepts, device),
    ]
    if limits.min_exposure_hours is not None:
        holds = device.exposure_s >= limits.min_exposure_hours * 3600
        found.append(Wanted(f"≥{limits.min_exposure_hours:g} h", Standing.HOLDS if holds else Standing.OPEN))
    return [one for one in found if one is not None]


def _at_most(
    what: str, limit: float | None, value: float | None, otherwise: Standing, write: Callable[[float], str]
) -> Wanted | None:
    if limit is None:
        return None
    text = f"{what}≤{write(limit)}"
    if value is None:
        return Wanted(text, Standing.OPEN)
    return Wanted(text, Standing.HOLDS if value <= limit else otherwise)


def _percent(value: float) -> str:
    return f"{value * 100:g} %"


def _per_hour(value: float) -> str:
    return f"{value:g}/h"


def _test(figure: str, test: SequentialTest | None, device: DeviceWake) -> Wanted | None:
    if test is None:
        return None
    passed = dict(device.decisions).get(figure)
    if passed is None:
        return Wanted("test", Standing.OPEN)
    return Wanted("test", Standing.HOLDS if passed else Standing.FAILED)
