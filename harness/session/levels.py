"""Levels at the microphone during an attempt: of the stimulus, and of a device that should speak or play."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from harness.base.ports import Hears
from harness.model.bench import Bench
from harness.model.calibration import Calibration
from harness.model.frozen import frozen
from harness.model.numbers import fixed
from harness.model.record import AttemptStarted, LevelMeasured
from harness.model.stimulus import Channel, StimulusRecipe, Waveform
from harness.model.trial import Trial
from harness.sound.frames import ANALYSIS_HZ, HIGH_PASS_HZ
from harness.sound.level import FLOOR_DBFS, active_speech_level, power_spectrum
from harness.sound.recordings import at_rate

NO_NOISE: Mapping[str, Waveform] = MappingProxyType({})
MAX_COMPARED_S = 20.0
"""If a sound is longer, only this much of its beginning is compared, in s."""
SOUNDING_S = 1.0
"""Length of the last part of the pause after an opening, in which the device should sound, in s."""
SOUNDING_DB = 6.0
"""A device counts as sounding if that part is this much louder than the room was before the opening."""
QUIET_WITHIN_S = 3.0
"""Time before an opening in which the level of the room is measured, in s."""
MOMENT_S = 0.25
"""Length of the parts into which that time is divided, in s. The quietest part gives the level of the room."""
DIES_AWAY_S = 0.5
"""Time after the words of an opening in which the room may still reverberate, in s."""
ABOVE_FLOOR_DB = 3.0
"""The level of a sound cannot be measured if it exceeds the noise floor by less."""
QUIET_PASSAGE_DB = 20.0
"""Ambient sound may begin with a passage that is quieter than its level by more, and may then not be heard."""


def requested_dbfs(recipe: StimulusRecipe) -> float | None:
    """The active speech level that a recipe requests; None if only a measurement shows it."""
    is_altered = recipe.as_recorded or recipe.placement is not None or recipe.channel != Channel()
    return None if is_altered else recipe.level_dbfs


@frozen
class LevelRule:
    """How the level of a stimulus is compared with its level at the microphone.

    - loudspeakers: id → calibration.
    - tolerance_db: with a larger difference, an attempt does not count; None: no limit.
    """

    microphone: Calibration
    loudspeakers: Mapping[str, Calibration] = field(default_factory=dict)
    tolerance_db: float | None = None

    @classmethod
    def of(cls, bench: Bench) -> LevelRule | None:
        """The rule of a bench; None if its microphone is not calibrated."""
        if bench.microphone is None or bench.microphone.calibration is None:
            return None
        calibrations = {
            speaker.id: speaker.calibration for speaker in bench.loudspeakers if speaker.calibration is not None
        }
        return cls(bench.microphone.calibration, calibrations, bench.level_tolerance_db)

    def measure(
        self,
        row: AttemptStarted,
        loudspeaker: str,
        sound: Waveform,
        started_s: float,
        microphone: Hears,
        noises: Mapping[str, Waveform] = NO_NOISE,
        asked_dbfs: float | None = None,
    ) -> LevelMeasured | None:
        """Measures the levels of a sound that has just ended.

        None if the loudspeaker is not calibrated, or the sound begins with a quiet passage.

        Waits for sound that is still on its way to the microphone. Raises DeviceError if that does not record.

        - row: the attempt; its query is the part that is compared. sound: the whole stimulus.
        - started_s: when its first sample left.
        - noises: loudspeaker → noise that it played at the same time. The recording is compared with both together.
        - asked_dbfs: active speech level of the stimulus; None: it is measured, in the part that is compared.
        """
        calibration = self.loudspeakers.get(loudspeaker)
        if calibration is None:
            return None
        begins_s, ends_s = row.query_start_s, min(row.query_end_s, row.query_start_s + MAX_COMPARED_S)
        part = Waveform(sound.samples[round(begins_s * sound.rate_hz) : round(ends_s * sound.rate_hz)], sound.rate_hz)
        played_dbfs = _rms_dbfs_without_rumble(part)
        if asked_dbfs is None:
            active = active_speech_level(part)
            asked_dbfs = active.level_dbfs if active else played_dbfs
        if played_dbfs < asked_dbfs - QUIET_PASSAGE_DB:
            return None
        heard_dbfs = _heard_dbfs(part, started_s + begins_s, microphone)
        asked_spl = calibration.spl(asked_dbfs)
        # Without weighting: a sound calibrator on the microphone has another spectrum than the noise of a loudspeaker.
        powers = [10 ** (calibration.unweighted_spl(played_dbfs) / 10)]
        for player, noise in noises.items():  # sounds that are not correlated add by their powers
            if (noise_calibration := self.loudspeakers.get(player)) is not None:
                excerpt = noise.samples[round(begins_s * noise.rate_hz) : round(ends_s * noise.rate_hz)]
                noise_dbfs = _rms_dbfs_without_rumble(Waveform(excerpt, noise.rate_hz))
                powers.append(10 ** (noise_calibration.unweighted_spl(noise_dbfs) / 10))
        heard_spl = None
        if heard_dbfs is not None:
            # What the loudspeaker gave for its speech: the requested level plus the deviation of the whole sound.
            off_db = self.microphone.unweighted_spl(heard_dbfs) - 10 * math.log10(sum(powers))
            heard_spl = round(asked_spl + off_db, 2)
        return LevelMeasured(row.trial_id, row.take, row.attempt, loudspeaker, round(asked_spl, 2), heard_spl)

    def refusal(self, level: LevelMeasured) -> str:
        """Why the attempt does not count; "" if it does."""
        if self.tolerance_db is None:
            return ""
        if level.off_db is None:
            return f"level_off: the microphone did not hear {level.loudspeaker}"
        if abs(level.off_db) <= self.tolerance_db:
            return ""
        gave, nominal = fixed(level.heard_spl, 1), fixed(level.asked_spl, 1)
        return f"level_off: {level.loudspeaker} gave {gave} dB SPL instead of {nominal}"


def why_silent(trial: Trial, call_start_s: float, started_s: float, microphone: Hears) -> str:
    """Why a device that should sound after the opening of an attempt did not; "" if it did.

    The end of its pause is compared with the quietest moment before the opening.

        room │ opening │ dies away │ pause │ its end │ lead-in of noise │ phrase

    - started_s: when the first sample of the stimulus left.
    - call_start_s: from there to the phrase that follows the opening. Raises DeviceError if the microphone does not
      record.
    """
    opening = trial.recipe.opening
    if opening is None or not opening.sounds:
        return ""
    noise = trial.recipe.noise
    ends_s = call_start_s - (0.0 if noise is None else trial.recipe.lead_in_s or noise.before_s)
    begins_s = max(ends_s - SOUNDING_S, call_start_s - opening.pause_s + DIES_AWAY_S)
    pause, _ = microphone.cut(started_s + begins_s, started_s + ends_s)
    before, _ = microphone.cut(started_s - QUIET_WITHIN_S, started_s)
    block = round(MOMENT_S * before.rate_hz)
    moments = [
        Waveform(before.samples[start : start + block], before.rate_hz)
        for start in range(0, len(before.samples) - block + 1, block)
    ]
    pause_dbfs = _rms_dbfs_without_rumble(pause)
    room_dbfs = min(map(_rms_dbfs_without_rumble, moments), default=-math.inf)
    if pause_dbfs >= room_dbfs + SOUNDING_DB:
        return ""
    pause_text, room_text = fixed(pause_dbfs, 0), fixed(room_dbfs, 0)
    return f"device_silent: {pause_text} dBFS before the phrase, {room_text} dBFS before the opening"


def _rms_dbfs_without_rumble(sound: Waveform) -> float:
    """RMS level of a sound in the band of a microphone's noise floor. Below it, ventilation is often louder."""
    if not len(sound.samples):
        return FLOOR_DBFS
    hertz, power = power_spectrum(sound.samples, sound.rate_hz)
    return 10 * math.log10(max(float(power[hertz >= HIGH_PASS_HZ].sum()), 10 ** (FLOOR_DBFS / 10)))


def _heard_dbfs(part: Waveform, left_s: float, microphone: Hears) -> float | None:
    """RMS level of a sound at the microphone, without its noise floor; None if it was not heard.

    left_s: when its first sample left the loudspeaker.
    """
    # Here, since it takes long to import; a run with a microphone has imported it.
    from harness.sound.own_sound import EARLIEST_S, LATEST_S, MIN_CORRELATION, locate

    recording, _ = microphone.cut(left_s + EARLIEST_S, left_s + part.duration_s + LATEST_S)
    match = locate(at_rate(recording, ANALYSIS_HZ).samples, at_rate(part, ANALYSIS_HZ).samples)
    if match is None or match.correlation < MIN_CORRELATION:
        return None
    first = round(match.start / ANALYSIS_HZ * recording.rate_hz)
    heard = recording.samples[first : first + round(part.duration_s * recording.rate_hz)]
    power = 10 ** (_rms_dbfs_without_rumble(Waveform(heard, recording.rate_hz)) / 10)
    floor_dbfs = microphone.noise_floor_dbfs()
    floor_power = 0.0 if floor_dbfs is None else 10 ** (floor_dbfs / 10)
    if power > floor_power * 10 ** (ABOVE_FLOOR_DB / 10):
        return 10 * math.log10(power - floor_power)
    return None
