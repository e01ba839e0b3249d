"""Simulated rooms: the impulse response from a talker to a device, and a stimulus heard through it."""

from __future__ import annotations

import math
import os
from functools import lru_cache
from typing import Any

import numpy as np

from harness.base.plugins import import_extra
from harness.model.errors import InputError
from harness.model.numbers import exact, fixed, seconds
from harness.model.stimulus import SOUND_M_PER_S, LevelAt, Pattern, Placement, RoomSpec, Samples, ShoeBox, Waveform
from harness.sound.recordings import at_rate
from harness.sound.recordings import read as read_recording

FIT_WITHIN = 0.05
"""The reverberation time of the fitted room may differ from the requested one by this share."""
MAX_FITS = 12
"""Most simulations in which the absorption of the walls is fitted."""
FIT_HZ = 16000
IMAGE_BYTES = 400
"""Memory for each mirror image of the fitted room. Measured: 403 to 410."""
_EARS = np.array(((0.71, 0.24, 0.55), (0.63, 0.81, 0.2), (0.4, 0.3, 0.66)))
"""Places in a room at which its reverberation is measured, as shares of its size; shape (x y z, places)."""
_SHARES: dict[Pattern, float] = {
    Pattern.OMNI: 1.0,
    Pattern.SUBCARDIOID: 0.75,
    Pattern.CARDIOID: 0.5,
    Pattern.HYPERCARDIOID: 0.25,
    Pattern.FIGURE_EIGHT: 0.0,
}
"""Directivity → the omnidirectional share p of its pattern p + (1 − p) cos."""


def apply_room(waveform: Waveform, placement: Placement) -> Waveform:
    """A sound as the device hears it: longer by the reverberation, and without the delay of the direct sound.

    In a box, the direct sound 1 m away has the level of the waveform. Raises InputError if there is no sound from
    there, PluginError without the extra `rooms`.
    """
    if placement.problem:
        raise InputError(placement.problem, remedy="Correct `rooms`, `distance_m` or `angle_deg`")
    response, direct = _response(placement, waveform.rate_hz)
    from scipy.signal import oaconvolve  # imported here: slow, and few runs have a room

    reverberant = oaconvolve(waveform.samples.astype(np.float64), response)[direct:]
    return Waveform(np.asarray(reverberant, dtype=np.float32), waveform.rate_hz)


def made_by(room: RoomSpec) -> str | None:
    """What decides the sound of a room beside its keys and files: the version of the library, and later corrections.

    It is part of the cache key. The words for a correction are in the keys of stored stimuli, so they must not change.
    """
    if room.box is None:
        return "scaled to the rate" if room.level_at is LevelAt.TALKER else None
    version = str(_pyroomacoustics().__version__)
    return version if room.box.talker_pattern is Pattern.OMNI else f"{version}, faced in height"


def _pyroomacoustics() -> Any:
    module = import_extra("pyroomacoustics", "pyroomacoustics, which simulates rooms,", "rooms")
    module.constants.set("num_threads", 1)  # with more, the same room gives other samples
    return module


def _response(placement: Placement, rate_hz: int) -> tuple[Samples, int]:
    """The impulse response, and the number of the sample with the direct sound."""
    if placement.room.box is not None:
        return _simulate(placement.room.box, placement.distance_m, placement.angle_deg, rate_hz)
    recording = read_recording(placement.room.recorded[0].path)
    # Unlike a sound, a response has larger samples at a lower rate: they are sums over longer times.
    response = at_rate(recording, rate_hz).samples * np.float32(recording.rate_hz / rate_hz)
    return response, int(np.argmax(np.abs(response)))


@lru_cache(maxsize=256)
def _simulate(box: ShoeBox, distance_m: float, angle_deg: float, rate_hz: int) -> tuple[Samples, int]:
    """As `_response`, in a simulated room. The talker faces the device."""
    simulator = _pyroomacoustics()
    talker = box.talker_m(distance_m, angle_deg)
    absorption, order = _fit_walls(box.size_m, box.rt60_s)
    room = simulator.ShoeBox(box.size_m, fs=rate_hz, materials=simulator.Material(absorption), max_order=order)
    x, y, z = (device - mouth for device, mouth in zip(box.device_m, talker, strict=True))
    to_device_deg, from_above_deg = math.degrees(math.atan2(y, x)), math.degrees(math.atan2(math.hypot(x, y), z))
    room.add_source(
        list(talker), directivity=_directivity(simulator, box.talker_pattern, to_device_deg, from_above_deg)
    )
    microphone = _directivity(simulator, box.device_pattern, box.device_faces_deg)
    room.add_microphone(list(box.device_m), directivity=microphone)
    room.compute_rir()
    delay = (
        math.dist(talker, box.device_m) / SOUND_M_PER_S * rate_hz + simulator.constants.get("frac_delay_length") // 2
    )
    return np.asarray(room.rir[0][0], dtype=np.float32), round(delay)


def _directivity(simulator: Any, pattern: Pattern, azimuth_deg: float, from_above_deg: float = 90.0) -> Any:
    """The simulator's object for a directivity; None for an omnidirectional one.

    from_above_deg: angle from straight up, 90 for horizontal.
    """
    if pattern is Pattern.OMNI:
        return None
    facing = simulator.directivities.DirectionVector(azimuth=azimuth_deg, colatitude=from_above_deg, degrees=True)
    return simulator.directivities.CardioidFamily(orientation=facing, p=_SHARES[pattern])


@lru_cache(maxsize=64)
def _fit_walls(size_m: tuple[float, float, float], rt60_s: float) -> tuple[float, int]:
    """Absorption of the walls and order of the reflections at which the room has that reverberation time.

    A box of mirror images has up to twice the time of Sabine's formula. So the absorption is fitted to the decay (T30)
    at three places. In a long room, it depends on the place. Raises InputError if none fits, or memory does not
    suffice.
    """
    if not rt60_s:
        return 1.0, 0
    simulator = _pyroomacoustics()
    absorption, order = simulator.inverse_sabine(rt60_s, size_m, c=SOUND_M_PER_S)
    size_text = f"a room of {' × '.join(exact(x) for x in size_m)} m"
    needed_bytes = 4 / 3 * order**3 * IMAGE_BYTES  # mirror images fill an octahedron
    if needed_bytes > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise InputError(
            f"the simulation of {size_text} with a reverberation time of {exact(rt60_s)} s needs "
            f"{fixed(needed_bytes / 1e9, 0)} GB of memory, more than this computer has",
            remedy="Use a shorter `rt60_s`, a larger room, or recorded `impulse_responses`",
        )
    low, high, fitted_s = 0.0, 1.0, 0.0
    for _ in range(MAX_FITS):
        room = simulator.ShoeBox(size_m, fs=FIT_HZ, materials=simulator.Material(absorption), max_order=order)
        room.add_source([0.3 * size_m[0], 0.42 * size_m[1], 0.55 * size_m[2]])
        room.add_microphone_array(np.outer(size_m, (1.0, 1.0, 1.0)) * _EARS)
        room.compute_rir()
        decays = [simulator.experimental.measure_rt60(response[0], FIT_HZ, decay_db=30) for response in room.rir]
        fitted_s = float(np.mean(decays))
        if abs(fitted_s / rt60_s - 1) <= FIT_WITHIN:
            return float(absorption), int(order)
        low, high = (absorption, high) if fitted_s > rt60_s else (low, absorption)
        # In proportion, as in Sabine's formula, or by halves where that leaves the bounds known so far.
        guess = absorption * fitted_s / rt60_s
        absorption = guess if low < guess < high else (low + high) / 2
    raise InputError(
        f"no wall material gives {size_text} a reverberation time of {exact(rt60_s)} s",
        remedy=f"Use another `rt60_s`; the nearest value found is {seconds(fitted_s)}",
    )
