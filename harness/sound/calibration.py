"""The file of a calibration of a loudspeaker or a microphone (YAML beside the bench), and the sounds to measure with.

0 dBFS is the level of a full-scale square wave, as everywhere (`sound.level`). A signal of L dBFS then has
`spl_at_0_dbfs` + L dB SPL at the calibrated place.
"""

from __future__ import annotations

import hashlib
import math
from datetime import date, datetime
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from harness.base.findings import Findings, Keys, Text, optional, parse_keys, preset
from harness.base.strict_yaml import read_bytes
from harness.base.whole_file import write_atomically
from harness.model.bench import Equipment
from harness.model.calibration import Calibration
from harness.model.errors import InputError
from harness.model.numbers import exact, fixed
from harness.model.stimulus import Waveform
from harness.sound.level import a_weighting_of

RATE_HZ = 48_000  # That of the harness's streams: the signal is played without resampling.
MIN_HZ, MAX_HZ = 100.0, 8000.0
"""Band of the pink noise: small loudspeakers can play it, and all weightings of meters treat it similarly."""
TONE_HZ = 1000.0  # Where A and C weighting change nothing.
MIN_TONE_HZ, TONE_WIDTH = 200.0, 0.05
"""Calibrators give 250 or 1,000 Hz, above the hum of mains. Width to each side, as a share of the frequency."""
RAMP_S = 0.5
MIN_SPL, MAX_SPL = 30.0, 130.0
"""Readings of a meter outside of these are mistakes, such as a wrong range or decimal point, in dB SPL."""
QUIETLY_DBFS = -40.0
"""Level of the noise for which the weighting is computed; any level that does not clip will do."""
SAME_DB = 0.05
"""Levels that differ by less, in dB, look the same when printed."""


class CalibrationKeys(Keys):
    """The calibration of a loudspeaker or a microphone, as `harness admin calibrate` writes it."""

    calibration: Text = Field(description="Name of the loudspeaker or the microphone.")
    sound_device: Text = Field(description="Sound device that played or recorded.")
    signal: Literal["pink noise", "1 kHz"] = Field(description="What was played.")
    level_dbfs: float = Field(ge=-90, le=0, description="RMS level that was played or recorded, dBFS.")
    reading_db: float = Field(ge=MIN_SPL, le=MAX_SPL, description="Reading of the meter, dB SPL.")
    weighting: Literal["A", "C", "Z"] = Field(description="Weighting of the meter.")
    at: Text = Field(description="Place of the meter, such as 1 m.")
    measured_on: Text = Field(description="Date of the measurement.")
    expires_on: Text = Field(description="Last day on which the calibration is valid.")
    settings: str | None = optional("Bench settings during the measurement: gain, output, equaliser.")
    max_spl: float = preset(95.0, "Highest level allowed, dB SPL.", ge=MIN_SPL, le=MAX_SPL)


def read_calibration(path: Path) -> Calibration:
    """The file's content. Raises InputProblems, InputError with the place."""
    content = read_bytes(path)
    keys, findings = parse_keys(content, str(path), CalibrationKeys)
    for name in ("measured_on", "expires_on"):
        try:
            date.fromisoformat(getattr(keys, name))
        except ValueError:
            findings.add((name,), f"{getattr(keys, name)!r} is not a date", "Use the form 2026-11-23")
    findings.refuse()
    return Calibration(
        path=str(path.absolute()),
        sha256=hashlib.sha256(content).hexdigest(),
        loudspeaker=keys.calibration,
        sound_device=keys.sound_device,
        spl_at_0_dbfs=keys.reading_db - keys.level_dbfs,
        weighting=keys.weighting,
        at=keys.at,
        measured_on=keys.measured_on,
        expires_on=keys.expires_on,
        max_spl=keys.max_spl,
        settings=keys.settings,
        weighting_db=_weighting_db(keys),
    )


def _weighting_db(keys: CalibrationKeys) -> float:
    """Weighted minus unweighted level of the sound that was measured; only noise with A weighting differs from 0.

    C changes noise of this band by less than 0.3 dB, and a tone of 1 kHz has the same level in every weighting.
    """
    if keys.weighting != "A" or keys.signal == "1 kHz":
        return 0.0
    return a_weighting_of(calibration_sound(keys.signal, QUIETLY_DBFS, 4 * RAMP_S))


def write_calibration(path: Path, keys: CalibrationKeys) -> None:
    """Writes a calibration as YAML. Every text is quoted, so that it is read back unchanged."""
    lines = [f"# 0 dBFS = {fixed(keys.reading_db - keys.level_dbfs, 1)} dB({keys.weighting}) SPL"]
    for name, value in keys.model_dump(exclude_none=True).items():
        lines.append(f"{name}: {value}" if isinstance(value, float) else f'{name}: "{_escape(value)}"')
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def _escape(text: str) -> str:
    """A text for the inside of YAML's double quotes."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def calibration_sound(signal: str, level_dbfs: float, seconds: float) -> Waveform:
    """Pink noise between MIN_HZ and MAX_HZ, or a tone, with that RMS level, ramped. Raises InputError if it clips."""
    count = round(seconds * RATE_HZ)
    if signal == "1 kHz":
        samples = np.sin(2 * np.pi * TONE_HZ * np.arange(count) / RATE_HZ)
    else:
        hertz = np.fft.rfftfreq(count, 1 / RATE_HZ)
        spectrum = np.where((hertz >= MIN_HZ) & (hertz <= MAX_HZ), 1 / np.sqrt(np.maximum(hertz, 1.0)), 0.0)
        phases = np.exp(2j * np.pi * np.random.default_rng(0).random(len(hertz)))  # the same noise every time
        samples = np.fft.irfft(spectrum * phases, count)
    samples *= 10 ** (level_dbfs / 20) / np.sqrt(np.mean(np.square(samples)))
    peak = float(np.abs(samples).max())
    if peak > 1:
        highest = level_dbfs - 20 * np.log10(peak)
        raise InputError(
            f"{signal} of {exact(level_dbfs)} dBFS would clip", remedy=f"Use at most {exact(np.floor(highest))} dBFS"
        )
    ramp = round(RAMP_S * RATE_HZ)
    samples[:ramp] *= np.linspace(0, 1, ramp)
    samples[-ramp:] *= np.linspace(1, 0, ramp)
    return Waveform(samples.astype(np.float32), RATE_HZ)


def is_tone(recording: Waveform) -> bool:
    """Whether a recording is mainly one tone from MIN_TONE_HZ up, such as that of a sound calibrator."""
    power = np.abs(np.fft.rfft(recording.samples * np.hanning(len(recording.samples)))) ** 2
    hertz = np.fft.rfftfreq(len(recording.samples), 1 / recording.rate_hz)
    strongest_hz = hertz[int(np.argmax(power))]
    share = power[np.abs(hertz - strongest_hz) < TONE_WIDTH * strongest_hz].sum() / power.sum()
    return bool(strongest_hz >= MIN_TONE_HZ and share > 0.5)


def settings_of(equipment: Equipment) -> str:
    """The settings in the bench on which a loudspeaker's level depends: `gain_db -6, output 2`; "" for none."""
    settings = ((name, getattr(equipment.options, name, "")) for name in ("gain_db", "output", "equaliser"))
    return ", ".join(f"{name} {value if isinstance(value, str) else exact(value)}" for name, value in settings if value)


def why_unfit(equipment: Equipment, calibration: Calibration, today: date | None) -> str:
    """Why a calibration does not apply to a loudspeaker or a microphone; "" if it does.

    today: None does not check whether it has expired.
    """
    if (calibration.loudspeaker, calibration.sound_device) != (equipment.id, equipment.sound_device):
        return f"its calibration was measured with {calibration.loudspeaker!r} on {calibration.sound_device!r}"
    settings = settings_of(equipment)
    if calibration.settings not in (None, settings):  # None: its file does not state them
        measured_with = calibration.settings or "no gain"
        return f"its calibration was measured with {measured_with}, but the bench has {settings or 'none'}"
    if today is not None and date.fromisoformat(calibration.expires_on) < today:
        return f"its calibration expired on {calibration.expires_on}"
    return ""


def why_unknown(equipment: Equipment, today: date) -> str:
    """Why the level of a loudspeaker or a microphone in the room is not known today; "" if it is."""
    return why_unfit(equipment, equipment.calibration, today) if equipment.calibration else "it is not calibrated"


def check_comparable(loudspeakers: list[Equipment], microphone: Equipment | None, findings: Findings) -> None:
    """Notes why the levels of a bench with `level_tolerance_db` cannot be compared with what its microphone hears."""
    today, key_path = datetime.now().astimezone().date(), ("level_tolerance_db",)
    parts = list(loudspeakers)
    if microphone is None:
        findings.add(
            key_path,
            "the bench has no microphone to measure the levels",
            "Add a calibrated microphone, or remove `level_tolerance_db`",
            key=True,
        )
    else:
        parts.append(microphone)
    for part in parts:
        if reason := why_unknown(part, today):
            remedy = f"Run `harness admin calibrate` for {part.id}, and add the file to its entry in the bench"
            findings.add(key_path, f"the level of {part.id!r} is not known: {reason}", remedy, key=True)
    places = {part.calibration.at: part.id for part in parts if part.calibration}
    if len(places) > 1:
        places_text = ", ".join(f"{name} at {place!r}" for place, name in places.items())
        problem = f"levels that were calibrated at different places cannot be compared ({places_text})"
        findings.add(key_path, problem, "Calibrate every loudspeaker with the meter at the microphone", key=True)


def level_problem(
    speaker: Equipment,
    level_spl: float | None,
    level_dbfs: float,
    today: date,
    noise_dbfs: float | None = None,
    gain_db: float = 0.0,
) -> str:
    """Why a loudspeaker cannot play a sound at a level; "" if it can.

    - level_dbfs: level of the sound.
    - level_spl: the same in dB SPL, if the scenario states it so; None: it states dBFS.
    - noise_dbfs: level of noise that is played with it, and adds to its level; None: there is none.
    - gain_db: gain of both, which cuts off what is beyond full scale.
    """
    calibration = speaker.calibration
    if calibration is None:
        return "" if level_spl is None else "it is not calibrated"
    if reason := why_unfit(speaker, calibration, today if level_spl is not None else None):
        return reason
    if level_spl is not None and level_dbfs > 0:
        highest = calibration.spl_at_0_dbfs
        return f"{exact(level_spl)} dB is above its full scale, {fixed(highest, 1)} dB({calibration.weighting})"
    total_dbfs = level_dbfs
    if noise_dbfs is not None:
        total_dbfs += 10 * math.log10(1 + 10 ** ((noise_dbfs - level_dbfs) / 10))
    if gain_db:
        total_dbfs = min(total_dbfs + gain_db, 0.0)
    total_spl = calibration.spl(total_dbfs)
    if total_spl > calibration.max_spl + SAME_DB:
        additions = [*(["noise"] if noise_dbfs is not None else []), *(["gain"] if gain_db else [])]
        together = f" with its {' and '.join(additions)}" if additions else ""
        return f"{fixed(total_spl, 1)} dB{together} is above its max_spl of {exact(calibration.max_spl)} dB"
    return "" if level_spl is None or level_dbfs >= -90 else f"{exact(level_spl)} dB needs a level below -90 dBFS"
