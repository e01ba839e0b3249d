"""What sound goes through: PortAudio's devices, and those that the bench names."""

from __future__ import annotations

from collections.abc import Iterator

from harness.base.host_check import Check, Level
from harness.model.bench import Bench, Equipment
from harness.model.errors import HarnessError
from harness.sound.sound_devices import sound_devices


def sound(bench: Bench | None) -> Iterator[Check]:
    """Whether PortAudio finds devices, and those that the bench names."""
    server = bench.sound_server if bench is not None else "system"
    parts = [one for one in _sound_parts(bench) if hasattr(one.options, "sound_device")]
    if bench is not None and not parts:
        yield Check("sound", Level.OK, "the bench needs no sound device")
        return
    needed = Level.FAIL if parts else Level.WARN
    try:
        devices = sound_devices(server)
    except HarnessError as error:
        yield Check("sound", needed, error.what, error.remedy or "Is a sound server running? pactl info")
        return
    if not devices:
        yield Check("sound", needed, "PortAudio finds no sound device", "Is a sound server running? pactl info")
        return
    inputs, outputs = sum(one.inputs > 0 for one in devices), sum(one.outputs > 0 for one in devices)
    yield Check("sound", Level.OK, f"{len(devices)} devices: {inputs} record, {outputs} play")
    for part in parts:
        wanted = str(getattr(part.options, "sound_device", ""))
        match = [one.name for one in devices if wanted == one.name] or [
            one.name for one in devices if wanted in one.name
        ]
        if len(match) == 1:
            yield Check("sound", Level.OK, f"{part.id}: {match[0]}")
        else:
            says = f"{part.id}: {'no device is' if not match else 'several devices are'} called {wanted!r}"
            yield Check("sound", Level.FAIL, says, f"See harness sound list --sound-server {server}")


def _sound_parts(bench: Bench | None) -> list[Equipment]:
    if bench is None:
        return []
    parts = [*bench.loudspeakers, bench.microphone, bench.monitor]
    return list({one.id: one for one in parts if one is not None}.values())
