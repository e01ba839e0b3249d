"""Keys for what a run does without an operator: on faults, on failed checks, and when a question is decided."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.base.findings import Keys, Text, enum_validator, optional, preset
from harness.model.bench import AfterRetries
from harness.model.bench_checks import CheckPolicy
from harness.model.procedure import ProcedureName
from harness.model.scenario import OnUndecided


class OnFaultKeys(Keys):
    """What a run does when a fault ends a trial: it pauses, and plays the trial again later."""

    retry_after_s: float = preset(
        60.0, "Time after which a lost device pauses the run, and between two retries, s.", ge=1, le=86_400
    )
    retries: int = preset(10, "Maximum number of retries without a successful trial.", ge=0, le=10_000)
    then: Annotated[AfterRetries, enum_validator(AfterRetries)] = preset(
        AfterRetries.END, "After the last retry: end (exit status 3, can be resumed), or skip the trial and continue."
    )
    power_cycles: int = preset(
        0, "Maximum number of power cycles of a failing or silent device without a successful trial.", ge=0, le=1000
    )


Policy = Annotated[CheckPolicy, enum_validator(CheckPolicy)]
_WORDS = "refuse, warn or off."


class ChecksKeys(Keys):
    """Checks of the devices and the sound, by `harness check doctor` and between the trials of a run."""

    every_min: float | None = optional(
        "A run checks before its first trial and at this interval, min. Default: only `harness check doctor` checks.",
        ge=0.1,
        le=10_080,
    )
    above_noise_db_min: float = preset(
        10.0, "Minimum level of a test sound above the noise floor at the microphone, dB.", ge=0, le=120
    )
    loop_delay_spread_ms_max: float = preset(
        20.0, "Maximum difference between the delays from a loudspeaker to the microphone, ms.", gt=0, le=10_000
    )
    clock_jump_ms_max: float = preset(
        1000.0, "Maximum jump of the wall clock since the previous check, ms.", gt=0, le=86_400_000
    )
    calibration_days_min: int = preset(1, "Minimum number of days until a calibration expires.", ge=0, le=3650)
    devices: Policy = preset(CheckPolicy.REFUSE, f"All devices are connected and show their heartbeat: {_WORDS}")
    noise_floor: Policy = preset(CheckPolicy.REFUSE, f"The noise floor, against `max_noise_floor_dbfs`: {_WORDS}")
    loudspeakers: Policy = preset(CheckPolicy.REFUSE, f"The microphone hears each loudspeaker: {_WORDS}")
    loop_delay: Policy = preset(CheckPolicy.WARN, f"The delay from each loudspeaker to the microphone: {_WORDS}")
    disk: Policy = preset(CheckPolicy.REFUSE, f"The disk has room for the rest of the run: {_WORDS}")
    clock: Policy = preset(CheckPolicy.WARN, f"The wall clock is synchronised and does not jump: {_WORDS}")
    calibration: Policy = preset(CheckPolicy.WARN, f"Calibrations have not expired: {_WORDS}")


class ProcedureKeys(Keys):
    """A published procedure, whose clauses the report lists with the session's own values."""

    name: Annotated[ProcedureName, enum_validator(ProcedureName)] = Field(description="Name of the procedure.")
    edition: Text = Field(description="Edition of the procedure.")


class SequentialKeys(Keys):
    """A sequential test: the remaining trials are skipped as soon as the question is decided."""

    good: float = Field(gt=0, description="A rate that is good enough: events per hour, or a share 0-1.")
    bad: float = Field(gt=0, description="A rate that is too bad, in the same unit; more than good.")
    alpha: float = preset(0.05, "Highest probability that a device as good as `good` fails.", gt=0, lt=0.5)
    beta: float = preset(0.05, "Highest probability that a device as bad as `bad` passes.", gt=0, lt=0.5)


class StoppingKeys(Keys):
    """When the harness skips the remaining trials, because the question is decided."""

    false_accepts: SequentialKeys | None = optional("Test of the false accepts per hour of ambient sound.")
    false_rejects: SequentialKeys | None = optional("Test of the share of wake phrases that were rejected.")
    on_undecided: Annotated[OnUndecided, enum_validator(OnUndecided)] = preset(
        OnUndecided.FAIL, "Result of a test that is still undecided when the run ends: fail or pass."
    )
