"""Compares the level of what is played with the level that the microphone hears. Both must be calibrated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from harness.base.ports import Hears
from harness.model.bench import Bench
from harness.model.calibration import Calibration
from harness.model.record import AttemptStarted, LevelMeasured
from harness.model.stimulus import Waveform
from harness.sound.frames import ANALYSIS_HZ
from harness.sound.hearing import EARLIEST_S, LATEST_S, LEAST_CORRELATION, locate
from harness.sound.level import active_speech_level, rms_dbfs
from harness.sound.recordings import at_rate

LONGEST_S = 20.0
"""Of a longer sound, this much of its beginning is compared."""
ABOVE_FLOOR_DB = 3.0
"""What is less above the noise floor has no level of its own."""


@dataclass(frozen=True, slots=True)
class LevelRule:
    """loudspeakers: id → calibration. tolerance_db: difference above which an attempt does not count; None: none."""

    microphone: Calibration
    loudspeakers: Mapping[str, Calibration] = field(default_factory=dict)
    tolerance_db: float | None = None

    @classmethod
    def of(cls, bench: Bench) -> LevelRule | None:
        """None if the microphone is not calibrated."""
        if bench.microphone is None or bench.microphone.calibration is None:
            return None
        known = {one.id: one.calibration for one in bench.loudspeakers if one.calibration is not None}
        return cls(bench.microphone.calibration, known, bench.level_tolerance_db)

    def measure(
        self, row: AttemptStarted, loudspeaker: str, sound: Waveform, started_s: float, microphone: Hears
    ) -> LevelMeasured | None:
        """The levels of a sound that has just ended; None if the loudspeaker is not calibrated.

        started_s: when its first sample left. Waits for what is still on its way to the microphone. DeviceError if the
        microphone does not record.
        """
        calibration = self.loudspeakers.get(loudspeaker)
        if calibration is None:
            return None
        begins_s, ends_s = row.query_start_s, min(row.query_end_s, row.query_start_s + LONGEST_S)
        part = Waveform(sound.samples[round(begins_s * sound.rate_hz) : round(ends_s * sound.rate_hz)], sound.rate_hz)
        heard_dbfs = _heard_dbfs(part, started_s + begins_s, microphone)
        played_dbfs, active = rms_dbfs(part.samples), active_speech_level(part)
        asked_spl = calibration.spl(active.level_dbfs if active else played_dbfs)
        off_db = None if heard_dbfs is None else self.microphone.spl(heard_dbfs) - calibration.spl(played_dbfs)
        return LevelMeasured(
            row.trial_id,
            row.take,
            row.attempt,
            loudspeaker,
            round(asked_spl, 2),
            None if off_db is None else round(asked_spl + off_db, 2),
        )

    def refusal(self, found: LevelMeasured) -> str:
        """Why the attempt does not count, or ""."""
        if self.tolerance_db is None:
            return ""
        if found.off_db is None:
            return f"level_off: the microphone did not hear {found.loudspeaker}"
        if abs(found.off_db) <= self.tolerance_db:
            return ""
        return f"level_off: {found.loudspeaker} gave {found.heard_spl:.1f} dB SPL instead of {found.asked_spl:.1f}"


def _heard_dbfs(part: Waveform, left_s: float, microphone: Hears) -> float | None:
    """RMS level of a sound at the microphone, without its noise floor; None if it is not there."""
    recording, _ = microphone.cut(left_s + EARLIEST_S, left_s + part.duration_s + LATEST_S)
    found = locate(at_rate(recording, ANALYSIS_HZ).samples, at_rate(part, ANALYSIS_HZ).samples)
    if found is None or found.correlation < LEAST_CORRELATION:
        return None
    first = round(found.start / ANALYSIS_HZ * recording.rate_hz)
    heard = recording.samples[first : first + round(part.duration_s * recording.rate_hz)]
    power = float(np.mean(np.square(heard.astype(np.float64))))
    floor_dbfs = microphone.noise_floor_dbfs()
    floor = 0.0 if floor_dbfs is None else 10 ** (floor_dbfs / 10)
    return 10 * math.log10(power - floor) if power > floor * 10 ** (ABOVE_FLOOR_DB / 10) else None
