"""`harness admin devices learn-earcon`: records a device's chime, which the microphone finds later."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.cli.options import A_FILE, argument, option, verb
from harness.cli.sound import recording_device
from harness.model.errors import InputError, SoundError
from harness.model.numbers import exact, fixed, moment, seconds

if TYPE_CHECKING:
    from harness.model.bench import Bench
    from harness.model.stimulus import Waveform

MEANINGS = ("wake", "done", "error")


@verb("learn-earcon", short_help="Record a device's chime and store it next to the bench.")
def learn_earcon(
    *,
    bench_file: Path | None = argument("[BENCH]", required=False, type=A_FILE),
    device: str | None = option(
        "Device on the bench; without a bench, a name for the files.", show_default="the first"
    ),
    meaning: str = option("Meaning of the chime.", former=("--as",), type=click.Choice(MEANINGS), default="wake"),
    microphone: str | None = option("Sound device to record with.", show_default="the bench's microphone"),
    sound_server: str | None = option(
        "Sound server.", type=click.Choice(["system", "virtual_lab"]), show_default="the bench's, else system"
    ),
    duration_s: float = option("Time to record, s.", "--seconds", within=(1, 60), default=6.0),
    source: Path | None = option("Use this sound file instead of recording.", "--from", type=A_FILE),
    start: float | None = option("Start of the chime in the recording, s.", within=(0, None), show_default="detected"),
    end: float | None = option("End of the chime in the recording, s.", within=(0, None), show_default="detected"),
) -> None:
    """Record a device's chime, and store it next to the bench as WAV and YAML.

    Make the device chime once while the harness records: say its wake phrase. The microphone must stand where it will
    stand in the tests. If the bench does not refer to the YAML file yet, add it there (`earcons: FILE`).
    """
    from harness.model.bench import EarconMeaning
    from harness.scenario.bench import load_bench
    from harness.sound import recordings
    from harness.sound.earcon_file import store
    from harness.sound.level import rms_dbfs

    if bench_file is None and source is None and microphone is None:
        raise InputError("no sound source is given", remedy="Pass a BENCH, or use --microphone or --from")
    has_span = start is not None or end is not None
    if has_span and (start is None or end is None or end <= start):
        raise InputError("--start and --end must mark a span", remedy="Use both options, with the end after the start")
    bench = load_bench(bench_file, is_measured=False) if bench_file is not None else None
    name = _device_name(bench, device)
    folder = bench_file.parent if bench_file is not None else Path()
    if source is not None:
        sound = recordings.read(str(source))
    else:
        sound = _record(*recording_device(bench, microphone, sound_server), duration_s)
    if start is not None and end is not None:
        chime = _cut_span(sound, start, end)
    else:
        chime = _cut_chime(sound, None if source is not None else folder / f"{name}.recording.wav")
    earcons = bench.device(name).earcons if bench is not None else None
    named_path = earcons.path if earcons is not None else None
    yaml_path, wav_path = store(chime, EarconMeaning(meaning), name, folder, named_path)
    facts = f"{seconds(chime.duration_s)}, {fixed(rms_dbfs(chime.samples), 1)} dBFS"
    click.echo(plain_text(f"{wav_path}: the {meaning} chime of {name}, {facts}", 400))
    if named_path is None:
        click.echo(plain_text(f"Add to the bench, under {name}: `earcons: {yaml_path.name}`", 400))


def _device_name(bench: Bench | None, device: str | None) -> str:
    """The device that chimes: that of --device, otherwise the bench's first. It names the files.

    Raises InputError if there is none, or if the bench does not have the device.
    """
    names = [bench_device.id for bench_device in bench.devices] if bench is not None else []
    if bench is not None and device is not None and device not in names:
        raise InputError(f"the bench has no device {device!r}", remedy=f"Devices: {', '.join(names)}")
    name = device or next(iter(names), "")
    if not name:
        raise InputError("--device is missing; the files are named after the device", remedy="Add --device NAME")
    return name


def _cut_span(sound: Waveform, start_s: float, end_s: float) -> Waveform:
    """A part of a sound. Raises InputError if it would end after the sound."""
    from harness.model.stimulus import Waveform

    if round(end_s - sound.duration_s, 3) > 0:  # in whole milliseconds, as the error states the end of the sound
        raise InputError(
            f"--end {exact(end_s)} is after the end of the sound ({moment(sound.duration_s)})",
            remedy="Change --start and --end",
        )
    return Waveform(sound.samples[round(start_s * sound.rate_hz) : round(end_s * sound.rate_hz)], sound.rate_hz)


def _cut_chime(sound: Waveform, unclear_path: Path | None) -> Waveform:
    """The chime of a sound. Raises InputError if it is not clear which part that is.

    unclear_path: where the sound is kept in that case, since it was just recorded; None for a sound from a file.
    """
    from harness.base.whole_file import write_atomically
    from harness.sound.earcon_file import as_wave, cut_chime

    try:
        return cut_chime(sound)
    except InputError as error:
        if unclear_path is None:
            raise
        write_atomically(unclear_path, as_wave(sound))
        raise InputError(error.what, remedy=f"{error.remedy}. The recording is in {unclear_path}") from error


def _record(microphone: str, sound_server: str, duration_s: float) -> Waveform:
    """Asks for a chime, and records from now on. Raises SoundError if the device cannot be opened or is lost."""
    from harness.sound.capture import Capture, RingBuffer

    # Sound arrives late. So wait 3 s more than is recorded, and keep 5 s more, so that the start is still there then.
    ring = RingBuffer(duration_s + 5)
    faults: list[str] = []
    capture = Capture(microphone, sound_server, on_block=ring.put, on_fault=lambda stamp, fault: faults.append(fault))
    capture.open()
    try:
        start_s = time.monotonic()
        click.echo(f"Recording for {exact(duration_s)} s: make the device chime now.", err=True)
        try:
            sound, _ = ring.cut(start_s, start_s + duration_s, wait_s=duration_s + 3)
        except SoundError as error:
            raise SoundError("; ".join([error.what, *faults]), remedy=error.remedy) from error
    finally:
        capture.close()
    return sound
