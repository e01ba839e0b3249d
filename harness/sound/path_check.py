"""Checks a sound path: plays chirps through a loudspeaker and finds them in a microphone's recording."""

from __future__ import annotations

import math
from collections.abc import Sequence
from queue import Empty, SimpleQueue

import numpy as np
import numpy.typing as npt

from harness.base import threads
from harness.base.foreign import plain_text
from harness.model.bench_checks import BenchChecks
from harness.model.errors import SoundError
from harness.model.frozen import frozen
from harness.model.numbers import exact, fixed
from harness.model.stimulus import Samples, Waveform
from harness.model.time import Stamp
from harness.sound.capture import Capture, RingBuffer
from harness.sound.filters import correlate
from harness.sound.level import rms_dbfs
from harness.sound.own_sound import StimulusLocation, parabola_top
from harness.sound.playback import Playback

_FLOAT64 = npt.NDArray[np.float64]


def chirp(duration_s: float = 0.2, low_hz: float = 500.0, high_hz: float = 8000.0, rate_hz: int = 48000) -> Waveform:
    """A logarithmic sweep with 10 ms of raised-cosine fades, peak 0.5 (−9 dBFS)."""
    count = round(duration_s * rate_hz)
    times = np.arange(count) / rate_hz
    log_ratio = math.log(high_hz / low_hz)
    sweep = np.sin(2 * math.pi * low_hz * duration_s / log_ratio * np.expm1(log_ratio * times / duration_s))
    fade = np.sin(math.pi / 2 * np.minimum(1.0, np.minimum(times, times[::-1]) / 0.01)) ** 2
    return Waveform((0.5 * sweep * fade).astype(np.float32), rate_hz)


def find(recording: Samples, probe: Samples) -> StimulusLocation:
    """The best match of `probe` in `recording` by normalised correlation, refined by a parabola through the peak.

    Raises ValueError if the recording is shorter than `probe`.
    """
    if len(recording) < len(probe):
        raise ValueError("the recording is shorter than the chirp")
    template = probe.astype(np.float64)
    signal = recording.astype(np.float64)
    correlation: _FLOAT64 = correlate(signal, template)
    running_energy = np.concatenate(([0.0], np.cumsum(signal**2)))
    energy = running_energy[len(template) :] - running_energy[: -len(template)]
    template_energy = float(np.sum(template**2))
    # Silence correlates with nothing; the floor keeps rounding noise from looking like a match.
    score = correlation / np.sqrt(np.maximum(energy, 1e-9 * template_energy) * template_energy)
    peak = int(np.argmax(np.abs(score)))  # a path may turn the sign of the sound
    return StimulusLocation(parabola_top(np.abs(correlation), peak), abs(float(score[peak])))


HEARD_FROM = 0.5
"""Least correlation of a chirp that counts as heard. Noise alone stays below 0.1."""
LEAD_S = 0.25
TAIL_S = 0.75
"""The search for a chirp begins LEAD_S before its start. TAIL_S covers the longest expected path (wireless: 0.5 s)."""
START_LIMIT_S = 3.0
"""Time within which a chirp must begin to play, in seconds."""
SPREAD_LIMIT_MS = BenchChecks().loop_delay_spread_ms_max
SPREAD_REMEDY = "Close other programs that use sound, avoid wireless links, or use longer blocks"


def spread_ms(delays_ms: Sequence[float]) -> float | None:
    """The difference between the longest and the shortest delay; None for fewer than two.

    `loop_delay_spread_ms_max` is its limit, in the checks of a bench and here: latencies are no more exact than this.
    """
    return max(delays_ms) - min(delays_ms) if len(delays_ms) > 1 else None


@frozen
class ChirpMeasurement:
    """One chirp that was heard.

    - round_trip_ms: time from the call of `play` to its arrival at the microphone.
    - path_ms: time from its playback timestamp to its arrival.
    - level_dbfs: RMS level of the recording during the chirp.
    """

    round_trip_ms: float
    path_ms: float
    correlation: float
    level_dbfs: float


@frozen
class PathCheck:
    """The result of a check.

    - played: number of chirps.
    - heard: the chirps found in the recording.
    - stamp_error_ms: the error stated by the timestamps.
    - xruns: number of underruns and overruns in both streams.
    - faults: losses of the path, in words.
    """

    speaker: str
    microphone: str
    played: int
    heard: tuple[ChirpMeasurement, ...]
    best_correlation: float
    noise_dbfs: float
    stamp_error_ms: float
    xruns: int
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every chirp was heard, and the path was never lost."""
        return len(self.heard) == self.played and not self.faults

    @property
    def spread_ms(self) -> float | None:
        """The spread of the delays of the path, ms; None with fewer than two chirps heard."""
        return spread_ms([measurement.path_ms for measurement in self.heard])

    @property
    def steady(self) -> bool | None:
        """Whether latencies can be measured over the path, by the default limit of a bench; None: not measured."""
        return None if self.spread_ms is None else self.spread_ms <= SPREAD_LIMIT_MS


def path_figures(check: PathCheck) -> dict[str, object]:
    """The result for JSON, with units in the names; a value that was not measured is null."""
    figures: dict[str, object] = {
        "speaker": check.speaker,
        "microphone": check.microphone,
        "ok": check.ok,
        "played": check.played,
        "heard": len(check.heard),
        "best_correlation": round(check.best_correlation, 4),
        "noise_dbfs": round(check.noise_dbfs, 1),
        "stamp_error_ms": round(check.stamp_error_ms, 2),
        "xruns": check.xruns,
        "faults": list(check.faults),
        "steady": check.steady,
        "path_spread_ms": None if check.spread_ms is None else round(check.spread_ms, 3),
    }
    for name in ("round_trip_ms", "path_ms", "level_dbfs"):
        percentiles = [round(value, 3) for value in _percentiles(check, name)] if check.heard else (None, None, None)
        figures[name] = dict(zip(("p5", "p50", "p95"), percentiles, strict=True))
    return figures


def path_words(check: PathCheck) -> str:
    """The result as text, with what to do about a failure."""
    lines = [f"{plain_text(check.speaker)} -> {plain_text(check.microphone)}: {check.played} chirps played"]
    if check.heard:
        level = _percentiles(check, "level_dbfs")
        best = fixed(check.best_correlation, 3)
        lines += [
            f"  heard         {len(check.heard)} of {check.played}, correlation up to {best}",
            f"  round trip    {_median_text(check, 'round_trip_ms', 1)}, from the call to play",
            f"  path          {_median_text(check, 'path_ms', 2)}, loudspeaker to microphone",
            f"  timestamps    error up to {fixed(check.stamp_error_ms, 1)} ms",
            f"  level         {fixed(level[1], 1)} dBFS, noise floor {fixed(check.noise_dbfs, 1)} dBFS",
        ]
    lines.append(f"  late or lost  {check.xruns} callbacks")
    lines += [f"  fault         {plain_text(fault)}" for fault in check.faults]
    return "\n".join([*lines, _verdict(check)])


def _median_text(check: PathCheck, name: str, decimals: int) -> str:
    """The median of a delay with its 5th and 95th percentile, in ms. name: field of ChirpMeasurement."""
    low, median, high = (fixed(value, decimals) for value in _percentiles(check, name))
    return f"{median} ms (p5 to p95: {low} to {high})"


def _verdict(check: PathCheck) -> str:
    """The last line: the most serious problem with what to do about it, or OK."""
    if not check.heard:
        return (
            f"NOT HEARD: the chirp is not in the recording (best correlation {fixed(check.best_correlation, 2)}, "
            f"noise {fixed(check.noise_dbfs, 0)} dBFS). Turn up the volume, and check that both devices are in the "
            "same room."
        )
    if check.faults:
        return "INTERRUPTED: the connection to the sound server was lost during the check."
    if not check.ok:
        return f"UNRELIABLE: {check.played - len(check.heard)} of {check.played} chirps were not heard."
    if check.spread_ms is not None and not check.steady:
        return (
            f"UNSTEADY: the path varies by {fixed(check.spread_ms, 1)} ms (the limit is {exact(SPREAD_LIMIT_MS)} ms), "
            f"so latencies would vary too. {SPREAD_REMEDY}: --frames-per-buffer 2400, and frames_per_buffer: 2400 in "
            "the bench."
        )
    if check.xruns:
        return "OK, but sound was late. Try --frames-per-buffer 2400, and frames_per_buffer: 2400 in the bench."
    steady = "" if check.spread_ms is None else f", and the path varies by {fixed(check.spread_ms, 1)} ms"
    return f"OK: every chirp was heard{steady}."


def _percentiles(check: PathCheck, name: str) -> list[float]:
    """The 5th, 50th and 95th percentiles over the chirps that were heard."""
    return [
        float(value)
        for value in np.percentile([getattr(heard_chirp, name) for heard_chirp in check.heard], (5, 50, 95))
    ]


def check_path(
    speaker: str, microphone: str, sound_server: str, *, count: int = 10, frames_per_buffer: int = 480
) -> PathCheck:
    """Plays `count` chirps, one after the other, and finds them. Raises SoundError when a device cannot be opened."""
    ring = RingBuffer(30.0)
    started: SimpleQueue[Stamp] = threads.simple_queue()
    faults: list[str] = []
    overruns: list[int] = []
    capture = Capture(
        microphone,
        sound_server,
        on_block=ring.put,
        on_fault=lambda stamp, problem: faults.append(problem),
        on_overrun=overruns.append,
        frames_per_buffer=frames_per_buffer,
    )
    playback = Playback(
        speaker,
        sound_server,
        on_started=lambda play_id, stamp: started.put(stamp),
        on_fault=lambda stamp, problem: faults.append(problem),
        on_overrun=overruns.append,
        frames_per_buffer=frames_per_buffer,
    )
    probe = chirp()
    measurements: list[ChirpMeasurement] = []
    best = 0.0
    error_s = 0.0
    try:
        capture.open()
        playback.open()
        listened_s = threads.monotonic()
        quiet, _ = ring.cut(listened_s, listened_s + 0.5)
        for number in range(count):
            called_s = threads.monotonic()
            playback.play(str(number), probe)
            try:
                start = started.get(timeout=START_LIMIT_S)
            except Empty:
                raise SoundError(f"{speaker!r} did not start to play", remedy="; ".join(faults)) from None
            error_s = max(error_s, start.error_s)
            # Not before the call: that would find the previous chirp again.
            from_s = max(called_s, start.at_s - LEAD_S)
            recording, first_s = ring.cut(from_s, start.at_s + probe.duration_s + TAIL_S, wait_s=TAIL_S + 2.0)
            match = find(recording.samples, probe.samples)
            first = round(match.start)
            arrived_s = first_s + match.start / recording.rate_hz
            measurement = ChirpMeasurement(
                round_trip_ms=(arrived_s - called_s) * 1000,
                path_ms=(arrived_s - start.at_s) * 1000,
                correlation=match.correlation,
                level_dbfs=rms_dbfs(recording.samples[first : first + len(probe.samples)]),
            )
            best = max(best, measurement.correlation)
            if measurement.correlation >= HEARD_FROM:
                measurements.append(measurement)
    finally:
        playback.close()
        capture.close()
    return PathCheck(
        speaker=speaker,
        microphone=microphone,
        played=count,
        heard=tuple(measurements),
        best_correlation=best,
        noise_dbfs=rms_dbfs(quiet.samples),
        stamp_error_ms=error_s * 1000,
        xruns=sum(overruns),
        faults=tuple(faults),
    )
