"""The sound devices of a host, listed by a child process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.base import places
from harness.base.child_process import ended_words, python_command
from harness.model.errors import LabError, SoundError, did_you_mean
from harness.model.frozen import frozen
from harness.model.numbers import exact

if TYPE_CHECKING:  # the child of the sound server loads no types of the bench
    from harness.model.bench import Bench, Equipment

PULSE = "pulse"


@frozen
class SoundDevice:
    """A sound device, as PortAudio lists it.

    - inputs, outputs: numbers of its channels.
    - rate_hz: its default sample rate, as reported.
    - server_name: name of a sink or source of PulseAudio or PipeWire, which PortAudio reaches through the device
      `index`; "" for other devices.
    """

    index: int
    name: str
    inputs: int
    outputs: int
    rate_hz: int
    server_name: str = ""


def server_devices(devices: Sequence[SoundDevice], sinks: Sequence[str], sources: Sequence[str]) -> list[SoundDevice]:
    """The sinks and sources of a sound server as devices; [] without ALSA's plug-in `pulse`."""
    pulse = next((device for device in devices if device.name == PULSE), None)
    if pulse is None:
        return []
    rate_hz = pulse.rate_hz
    playing = [SoundDevice(pulse.index, sink, 0, pulse.outputs, rate_hz, sink) for sink in sinks]
    return playing + [SoundDevice(pulse.index, source, pulse.inputs, 0, rate_hz, source) for source in sources]


def find(devices: Sequence[SoundDevice], name: str, *, plays: bool, sound_server: str = "system") -> SoundDevice:
    """The device with that name that plays (or records): exact, or the only one that contains it, in any case.

    SoundError lists the available names, the most similar first; without any, it says what to do on this sound server.
    """
    candidates = [device for device in devices if (device.outputs if plays else device.inputs) > 0]
    same_name = [device for device in candidates if device.name == name]
    if same_name:
        return same_name[0]
    # Every name contains the empty one, which means that none was given.
    containing = [device for device in candidates if name and name.casefold() in device.name.casefold()]
    if len(containing) == 1:
        return containing[0]
    kind = "playback" if plays else "recording"
    if containing:
        names = ", ".join(repr(device.name) for device in containing)
        raise SoundError(
            f"{name!r} matches {len(containing)} {kind} devices", remedy=f"Use one of these names: {names}"
        )
    if not candidates:
        missing = f"the {kind} device {name!r} does not exist, and there is no other {kind} device"
        problem = missing if name else f"there is no {kind} device"
        raise SoundError(problem, remedy=NO_DEVICE[sound_server])
    available = [device.name for device in candidates]
    suggestion = did_you_mean(name, available)
    available_names = ", ".join(repr(known_name) for known_name in available)
    raise SoundError(f"the {kind} device {name!r} does not exist", remedy=f"{suggestion}Available: {available_names}")


def list_command(sound_server: str) -> str:
    """The command that lists the devices of that sound server."""
    return "harness admin sound list" + ("" if sound_server == "system" else f" --sound-server {sound_server}")


NO_DEVICE = {
    "system": "Check the sound server with `pactl info`. Connect a sound device, or set `sound_server: virtual_lab` "
    "in the bench file",
    "virtual_lab": "Restart the virtual lab: harness admin lab down, then harness admin lab up",
}
"""Sound server of a bench → what to do if it has no device."""
LIST_LIMIT_S = 10.0
"""Time limit for the child that lists the devices, in seconds."""


def sound_parts(bench: Bench) -> list[Equipment]:
    """The equipment of a bench that names a sound device, each once."""
    parts = (*bench.loudspeakers, bench.microphone, bench.monitor)
    parts_by_id = {part.id: part for part in parts if part is not None and hasattr(part.options, "sound_device")}
    return list(parts_by_id.values())


def find_part(devices: Sequence[SoundDevice], part: Equipment, bench: Bench) -> SoundDevice:
    """The sound device that a part of the bench names. Raises SoundError with the place in the bench, as `find`."""
    try:
        plays = part is not bench.microphone
        return find(devices, part.sound_device, plays=plays, sound_server=bench.sound_server)
    except SoundError as error:
        error.place = error.place or part.place
        raise


def environment_of(sound_server: str) -> dict[str, str]:
    """The environment of a child that opens sound devices. Raises SoundError if the lab is not up."""
    try:
        return {**os.environ, **places.sound_environment(sound_server)}
    except LabError as error:
        raise SoundError(error.what, remedy=error.remedy) from error


def sound_devices(sound_server: str) -> tuple[SoundDevice, ...]:
    """Every device that PortAudio finds on `system` or in the `virtual_lab`.

    Raises SoundError if it does not answer.
    """
    environment = environment_of(sound_server)
    try:
        result = subprocess.run(
            python_command("harness.sound.child", "devices"),
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIST_LIMIT_S,
            check=False,
            text=True,
        )
    except subprocess.TimeoutExpired as error:
        raise SoundError(
            f"the sound server did not answer within {exact(LIST_LIMIT_S)} s", remedy="Restart the sound server"
        ) from error
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"the process {ended_words(result.returncode)}"
        raise SoundError(f"the sound devices cannot be listed: {reason}")
    return tuple(SoundDevice(*row) for row in json.loads(result.stdout))
