"""What is checked of a bench before a run and during it, and what a failed check does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.model.keys import preset


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
    """What a failed check does. REFUSE: `doctor` fails, and a run pauses. WARN: it is only reported."""

    REFUSE = "refuse"
    WARN = "warn"
    OFF = "off"


_WORDS = "refuse, warn or off."


@dataclass(frozen=True, slots=True)
class BenchChecks:
    """Checks of the devices and the sound, by `harness doctor` and between the trials of a run."""

    every_min: float | None = preset(
        None,
        "A run checks before its first trial and at this interval, min. Default: only `harness doctor` checks.",
        ge=0.1,
        le=10_080,
    )
    above_noise_db_min: float = preset(
        10.0, "Least level of a test sound above the noise floor at the microphone, dB.", ge=0, le=120
    )
    loop_delay_spread_ms_max: float = preset(
        20.0, "Largest difference between the delays from a loudspeaker to the microphone, ms.", gt=0, le=10_000
    )
    clock_jump_ms_max: float = preset(
        1000.0, "Largest jump of the wall clock since the previous check, ms.", gt=0, le=86_400_000
    )
    calibration_days_min: int = preset(1, "Least number of days until a calibration expires.", ge=0, le=3650)
    devices: CheckPolicy = preset(CheckPolicy.REFUSE, f"All devices are connected and show their heartbeat: {_WORDS}")
    noise_floor: CheckPolicy = preset(CheckPolicy.REFUSE, f"The noise floor, against `max_noise_floor_dbfs`: {_WORDS}")
    loudspeakers: CheckPolicy = preset(CheckPolicy.REFUSE, f"The microphone hears each loudspeaker: {_WORDS}")
    loop_delay: CheckPolicy = preset(CheckPolicy.WARN, f"The delay from each loudspeaker to the microphone: {_WORDS}")
    disk: CheckPolicy = preset(CheckPolicy.REFUSE, f"The disk has room for the rest of the run: {_WORDS}")
    clock: CheckPolicy = preset(CheckPolicy.WARN, f"The wall clock is synchronised and does not jump: {_WORDS}")
    calibration: CheckPolicy = preset(CheckPolicy.WARN, f"Calibrations have not expired: {_WORDS}")

    def policy(self, name: CheckName) -> CheckPolicy:
        found: CheckPolicy = getattr(self, name.value)
        return found
