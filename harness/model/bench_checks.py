"""What is checked of a bench before a run and during it, and what a failed check does."""

from __future__ import annotations

from enum import StrEnum

from harness.model.frozen import frozen


class CheckName(StrEnum):
    """The checks, by their keys in a bench file."""

    DEVICES = "devices"
    NOISE_FLOOR = "noise_floor"
    LOUDSPEAKERS = "loudspeakers"
    LOOP_DELAY = "loop_delay"
    DISK = "disk"
    CLOCK = "clock"
    CALIBRATION = "calibration"


class CheckPolicy(StrEnum):
    """What a failed check does. REFUSE: `doctor` fails, and a run pauses. WARN: it is only reported. OFF: no check."""

    REFUSE = "refuse"
    WARN = "warn"
    OFF = "off"


@frozen
class BenchChecks:
    """Limits of the checks, and the policy of each. The limit of the noise floor is in `Bench`.

    - every_min: interval of the checks during a run, in minutes; None: only `doctor` checks.
    - above_noise_db_min: least level of a test sound at the microphone, above the noise floor.
    - loop_delay_spread_ms_max: largest spread of the delay from loudspeaker to microphone.
    - clock_jump_ms_max: largest jump of the wall clock since the previous check.
    - calibration_days_min: least number of days until a calibration expires.
    """

    every_min: float | None = None
    above_noise_db_min: float = 10.0
    loop_delay_spread_ms_max: float = 20.0
    clock_jump_ms_max: float = 1000.0
    calibration_days_min: int = 1
    devices: CheckPolicy = CheckPolicy.REFUSE
    noise_floor: CheckPolicy = CheckPolicy.REFUSE
    loudspeakers: CheckPolicy = CheckPolicy.REFUSE
    loop_delay: CheckPolicy = CheckPolicy.WARN
    disk: CheckPolicy = CheckPolicy.REFUSE
    clock: CheckPolicy = CheckPolicy.WARN
    calibration: CheckPolicy = CheckPolicy.WARN

    def policy(self, name: CheckName) -> CheckPolicy:
        """What a failed check of this name does."""
        policy: CheckPolicy = getattr(self, name.value)
        return policy
