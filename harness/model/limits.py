"""What a scenario demands of its figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What must hold for exit status 0; None: not asked. Shares are 0–1, of the trials that were decided.

    …_wer: word errors per reference word, of what devices heard at the first and at the deciding attempt; 0 and up.
    Limits on wake figures must hold for every device. …_upper: the upper end of the 95 % interval (Clopper–Pearson,
    Garwood). min_command_share: commands understood, of those said.
    min_effect_share: effects that are right, of those that are known. A sequential test that fails a device fails too.
    min_understood_share: trials whose intents and slots were understood, at the attempt that decided; min_intent_share:
    … whose intents alone.
    """

    min_recognised_share: float | None = None
    min_first_attempt_share: float | None = None
    max_latency_p95_ms: float | None = None
    max_inconclusive: int | None = None
    max_interrupted: int | None = None
    max_false_reject_share: float | None = None
    max_false_reject_upper: float | None = None
    max_false_accepts_per_hour: float | None = None
    max_false_accepts_upper_per_hour: float | None = None
    min_exposure_hours: float | None = None
    min_command_share: float | None = None
    max_first_attempt_wer: float | None = None
    max_final_wer: float | None = None
    min_effect_share: float | None = None
    min_understood_share: float | None = None
    min_intent_share: float | None = None
