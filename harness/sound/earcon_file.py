"""The file of a device's learned earcons (YAML and WAV beside the bench), and how a chime is cut from a recording."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from harness.base.findings import Keys, Text, optional, parse_keys, preset
from harness.base.strict_yaml import read_bytes
from harness.base.whole_file import write_atomically
from harness.model.bench import EARCON_THRESHOLD, EarconMeaning, Earcons, EarconSound
from harness.model.errors import InputError, Place
from harness.model.numbers import exact, fixed, seconds
from harness.model.stimulus import Waveform

if TYPE_CHECKING:
    from harness.sound.earcons import LearnedEarcon

_MARGIN_DB = 15.0
"""How much a chime must be louder than the noise."""
_MAX_GAP_FRAMES = 15
"""Longest silence within a chime, in frames of 10 ms."""
_DECAY_DB = 25.0
"""A chime ends when it is this much below its peak."""
REMEDY = "Record the chime again in a quieter room"
SPAN_REMEDY = "Specify the span of the chime: --from FILE --start S --end S"


class EarconKeys(Keys):
    """The learned chimes of one device."""

    earcons: Text = Field(description="Name of the device.")
    threshold: float = preset(EARCON_THRESHOLD, "Minimum score of a detection.", ge=0.3, le=0.99)
    wake: Text | None = optional("WAV file of the chime that the device plays when it wakes.")
    done: Text | None = optional("WAV file of the chime that the device plays when it stops listening.")
    error: Text | None = optional("WAV file of the chime that the device plays when it did not understand.")


def read_earcons(path: Path) -> Earcons:
    """The file's content; its WAV files are relative to it. Raises InputProblems, InputError with the place."""
    content = read_bytes(path)
    keys, findings = parse_keys(content, str(path), EarconKeys)
    sounds: list[EarconSound] = []
    for meaning in EarconMeaning:
        name = getattr(keys, meaning.value)
        if name is None:
            continue
        sound = (path.parent / name).absolute()
        try:
            sounds.append(EarconSound(meaning, str(sound), hashlib.sha256(sound.read_bytes()).hexdigest()))
        except OSError as error:
            findings.add(
                (meaning.value,),
                f"{name}: {error.strerror}",
                "Learn the chime again: harness admin devices learn-earcon",
            )
    if not sounds and not findings.problems:
        findings.add((), "the file names no chime", "Learn a chime: harness admin devices learn-earcon")
    findings.refuse()
    digest = hashlib.sha256(content).hexdigest()
    return Earcons(str(path.absolute()), digest, tuple(sounds), keys.threshold)


def learn(source: str, earcons: Earcons) -> Iterator[LearnedEarcon]:
    """The chimes with their sound. source: id of the source under which they are reported.

    Raises InputError for a missing, changed or unusable file.
    """
    from harness.sound import recordings

    for sound in earcons.sounds:
        waveform = recordings.read(sound.path)
        if hashlib.sha256(Path(sound.path).read_bytes()).hexdigest() != sound.sha256:
            raise InputError(
                f"{sound.path} has changed since the session began", remedy="Restore the file, or start a new session"
            )
        yield _learned_earcon(source, sound.meaning, waveform, earcons.threshold, sound.path)


def _learned_earcon(source: str, meaning: EarconMeaning, chime: Waveform, threshold: float, path: str) -> LearnedEarcon:
    """The chime at the rate of the analysis.

    Raises InputError, which names its file `path`, if it cannot be detected.
    """
    from harness.sound.earcons import MAX_CHIME_S, MIN_CHIME_S, LearnedEarcon
    from harness.sound.frames import ANALYSIS_HZ
    from harness.sound.level import is_silent
    from harness.sound.recordings import at_rate

    problem = ""
    if is_silent(chime.samples):
        problem = "a silent chime cannot be detected"
    elif not MIN_CHIME_S <= chime.duration_s <= MAX_CHIME_S:
        limits = f"it must last {exact(MIN_CHIME_S)} to {exact(MAX_CHIME_S)} s"
        problem = f"a chime of {seconds(chime.duration_s)} cannot be detected: {limits}"
    if problem:
        raise InputError(problem, place=Place(path), remedy=REMEDY)
    return LearnedEarcon(source, meaning, at_rate(chime, ANALYSIS_HZ).samples, threshold)


def refuse_alike(earcons: tuple[LearnedEarcon, ...]) -> None:
    """Raises InputError if one of two chimes would be detected in the other."""
    from harness.sound.earcons import likeness

    for earcon, other in combinations(earcons, 2):
        score = max(likeness(earcon, other), likeness(other, earcon))
        if score >= min(earcon.threshold, other.threshold):
            problem = (
                f"the chimes {earcon.source} {earcon.meaning} and {other.source} {other.meaning} sound alike "
                f"(similarity {fixed(score, 2)} of 1), so a detection could be either"
            )
            raise InputError(problem, remedy="Remove one of the chimes, or give each device its own microphone")


def cut_chime(recording: Waveform) -> Waveform:
    """The only sound of a recording, or its only tone among other sounds, from its onset to its decay.

    Raises InputError if there is none, or if it is not clear which one it is.
    """
    from harness.sound.earcons import MAX_CHIME_S, MIN_CHIME_S

    frame = recording.rate_hz // 100  # 10 ms
    count = len(recording.samples) // frame
    if count < 10:
        raise InputError("the recording is too short for a chime", remedy=REMEDY)
    sound = recording.samples - np.mean(recording.samples)
    power = np.mean(np.square(sound[: count * frame].reshape(count, frame), dtype=np.float64), axis=1)
    levels = 10 * np.log10(np.maximum(power, 1e-12))
    # The noise is the level that a fifth of the frames do not exceed.
    floor_dbfs, peak_dbfs = float(np.percentile(levels, 20)), float(levels.max())
    if peak_dbfs < floor_dbfs + _MARGIN_DB:
        problem = f"no chime stands out: the loudest sound is {fixed(peak_dbfs - floor_dbfs, 0)} dB above the noise"
        raise InputError(problem, remedy=f"{REMEDY}: it must be {exact(_MARGIN_DB)} dB above the noise")
    if float(np.abs(recording.samples).max()) >= 0.999:
        raise InputError("the recording is clipped", remedy="Lower the microphone gain")
    # The chime lasts until it is 25 dB below its peak, or nearer to the noise than half the margin.
    threshold_dbfs = max(floor_dbfs + _MARGIN_DB / 2, peak_dbfs - _DECAY_DB)
    loud = np.flatnonzero(levels >= threshold_dbfs)
    runs = np.split(loud, np.flatnonzero(np.diff(loud) > _MAX_GAP_FRAMES) + 1)
    # A run of one or two frames is a click.
    spans = [(int(run[0]) * frame, (int(run[-1]) + 1) * frame) for run in runs if len(run) > 2]
    chimes = spans if len(spans) == 1 else [span for span in spans if _is_tonal(recording, span)]
    spans_text = ", ".join(
        f"{fixed(first / recording.rate_hz, 2)}–{fixed(last / recording.rate_hz, 2)} s" for first, last in spans
    )
    if len(chimes) != 1:
        reason = "several of them are tones" if chimes else "none of them is a tone"
        problem = (
            f"the recording has sounds at {spans_text}, and {reason}" if spans else "the recording has only clicks"
        )
        raise InputError(problem, remedy=SPAN_REMEDY)
    (first, last), rate_hz = chimes[0], recording.rate_hz
    if not MIN_CHIME_S <= (last - first) / rate_hz <= MAX_CHIME_S:
        problem = f"the sound at {spans_text} lasts {seconds((last - first) / rate_hz)}"
        raise InputError(f"{problem}; a chime lasts {exact(MIN_CHIME_S)} to {exact(MAX_CHIME_S)} s", remedy=SPAN_REMEDY)
    return Waveform(recording.samples[first:last], rate_hz)


def _is_tonal(recording: Waveform, span: tuple[int, int]) -> bool:
    """Whether a part of a recording consists only of tones, as a voice does not."""
    from harness.sound.frames import ANALYSIS_HZ, WINDOW_SAMPLES, filled_share, is_tonal
    from harness.sound.recordings import at_rate

    sound = at_rate(Waveform(recording.samples[span[0] : span[1]], recording.rate_hz), ANALYSIS_HZ).samples
    starts = range(0, len(sound) - WINDOW_SAMPLES + 1, ANALYSIS_HZ // 100)
    return is_tonal([filled_share(sound[start : start + WINDOW_SAMPLES]) for start in starts])


def store(
    chime: Waveform, meaning: EarconMeaning, device: str, folder: Path, named: str | None = None
) -> tuple[Path, Path]:
    """Writes a chime, and adds it to the device's YAML file, which keeps its other chimes.

    named: path of the YAML file from the folder, as the bench states it; None: the file is named after the device.
    Returns the paths of the YAML and the WAV file. Raises InputError if the chime cannot be detected or sounds like
    another one; nothing is written then.
    """
    from harness.sound import recordings

    yaml_path = folder / (named or f"{device}.earcons.yaml")
    wav_path = yaml_path.with_name(f"{device}.{meaning}.wav")
    keys = (
        parse_keys(read_bytes(yaml_path), str(yaml_path), EarconKeys)[0]
        if yaml_path.exists()
        else EarconKeys(earcons=device)
    )
    names: dict[EarconMeaning, str] = {}
    earcons = [_learned_earcon(device, meaning, chime, keys.threshold, str(wav_path))]
    for other in EarconMeaning:
        name = getattr(keys, other.value)
        if other is meaning or not name:
            continue
        names[other] = name
        other_path = str(yaml_path.parent / name)
        earcons.append(_learned_earcon(device, other, recordings.read(other_path), keys.threshold, other_path))
    names[meaning] = wav_path.name
    refuse_alike(tuple(earcons))
    write_atomically(wav_path, as_wave(chime))
    lines = [f"earcons: {json.dumps(device)}", f"threshold: {exact(keys.threshold)}"]
    lines += [f"{key}: {json.dumps(name, ensure_ascii=False)}" for key, name in names.items()]
    write_atomically(yaml_path, ("\n".join(lines) + "\n").encode())
    return yaml_path, wav_path


def as_wave(waveform: Waveform) -> bytes:
    """The content of a WAV file with 24 bits per sample."""
    import soundfile

    content = io.BytesIO()
    soundfile.write(content, waveform.samples, waveform.rate_hz, "PCM_24", format="WAV")
    return content.getvalue()
