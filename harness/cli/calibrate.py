"""`harness admin calibrate`: what a digital level of a loudspeaker or microphone is in the room, by a meter."""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import click

from harness.base.foreign import plain_text
from harness.cli.options import SHIPPED_FILE, FiniteRange, argument, choose_one, flag, option, verb
from harness.model.errors import InputError, SoundError, demand_main_options
from harness.model.frozen import frozen
from harness.model.numbers import exact, fixed, signed

if TYPE_CHECKING:
    from harness.model.bench import Bench, Equipment
    from harness.model.observation import Observation
    from harness.model.stimulus import Waveform

PLAY_S = 60.0
"""Length of the sound whose level is measured; it ends earlier, when the reading is known."""
METER_BAUD = 9600
SETTLE_S, METER_S = 3.0, 5.0
"""Seconds until a meter with slow weighting has settled, and seconds for which it is then read."""
RECORD_S = 5.0
"""Time over which the microphone's level is measured."""
MIN_RECORDED_DBFS = -80.0
"""A quieter recording counts as silence."""
ABOVE_ROOM_DB = 10.0
"""Least level of the sound above the room's noise. The noise then adds 0.4 dB at most."""
EQUALISE_S = 20.0
QUIET_S = 3.0
"""Seconds of sound that are recorded for the equaliser, and then of the noise without it."""
Signal = Literal["pink noise", "1 kHz"]


def _demand_place(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """A callback: BadParameter for a place that the calibration's file cannot name."""
    if not (0 < len(value) <= 60 and value.isprintable() and not value.isspace()):
        raise click.BadParameter(
            f"{value!r} is not a valid place name. Write 1 to 60 characters, such as 1m", ctx, param
        )
    return value


@frozen
class MeterOptions:
    """How the level at the meter becomes known: it is given, read from the meter, or asked for."""

    reading: float | None = option(
        "Reading of the meter, dB SPL. Skips the prompt.",
        "--meter-reading",
        former=("--reading",),
        type=FiniteRange(30, 130),
    )
    meter: str | None = option("Serial port of the meter, to read it directly. Skips the prompt.", metavar="PORT")
    meter_baud: int = option("Baud rate of the meter.", within=(1, None), default=METER_BAUD)
    meter_ask: str = option(
        "Command to send to the meter for a reading.",
        default="",
        metavar="TEXT",
        show_default="none; the meter sends unprompted",
    )

    def __post_init__(self) -> None:
        demand_main_options((
            ("--meter-ask", self.meter_ask, "--meter", self.meter),
            ("--meter-baud", self.meter_baud != METER_BAUD, "--meter", self.meter),
        ))  # fmt: skip

    def read_level_db(self, prompt: str) -> float:
        """The level in dB. Waits for the meter, or for the user's answer to the prompt."""
        from harness.sound.calibration import MAX_SPL, MIN_SPL

        if self.reading is not None:
            return self.reading
        if self.meter is not None:
            return _read_meter(self.meter, self.meter_baud, self.meter_ask)
        level_db: float = click.prompt(prompt, type=FiniteRange(MIN_SPL, MAX_SPL))
        return level_db


@verb("calibrate", sections={"Sound level meter": "meter meter_baud meter_ask calibrator weighting"})
def command(
    *,
    bench_file: Path = argument("BENCH", type=SHIPPED_FILE),
    name: str | None = argument(required=False),
    tone: bool = flag("Play a 1 kHz tone instead of pink noise."),
    level: float = option(
        "RMS level of the sound, dBFS.", "--level-dbfs", former=("--level",), type=FiniteRange(-60, 0), default=-26.0
    ),
    meter: MeterOptions,
    equalise: bool = flag("Measure the loudspeaker's response, and print an equaliser for it."),
    calibrator: bool = flag("Calibrate the microphone with a sound calibrator instead of a loudspeaker."),
    weighting: Literal["A", "C", "Z"] = option("Weighting of the meter.", default="A"),
    place: str = option("Where the meter stands, such as 1m.", "--at", default="the device", callback=_demand_place),
    days: int = option("Days until the calibration expires.", within=(1, 3660), default=180),
    max_spl: float = option("Highest level allowed, dB SPL.", type=FiniteRange(30, 130), default=95.0),
) -> None:
    """Play noise, ask for the reading of a sound level meter, and store a loudspeaker's or microphone's calibration.

    NAME is a loudspeaker of BENCH (by default the first), or `microphone`. Put the meter where a scenario's levels
    apply (for the microphone: next to it), set it to slow, and protect your ears. The calibration is written next to
    the bench, which must name it. Scenarios may then have levels in dB SPL (`level_spl`).

    --meter reads a meter that sends lines over a serial port: the first decimal number in each line that can be a
    level.

    --equalise needs no meter. It plays 20 s of pink noise, and measures the response at the bench's microphone in
    third-octave bands. Do this before you calibrate, since an equaliser changes the calibration.
    """
    from harness.scenario.bench import load_bench
    from harness.sound.calibration import CalibrationKeys, settings_of, write_calibration

    choose_one(equalise=equalise, meter=meter.meter, meter_reading=meter.reading)
    choose_one(equalise=equalise, calibrator=calibrator)
    choose_one(equalise=equalise, weighting=weighting != "A")
    bench = load_bench(bench_file, is_measured=False)
    equipment = _find_equipment(bench, name)
    is_microphone = equipment is bench.microphone
    if equalise:
        _equalise(bench, equipment, level)
        return
    if calibrator and not is_microphone:
        raise InputError(
            "--calibrator applies only to the microphone", remedy="Choose `microphone`, or remove --calibrator"
        )
    signal: Signal = "1 kHz" if tone or calibrator else "pink noise"
    prompt = "Level of the calibrator, dB" if calibrator else f"Reading of the meter, dB({weighting})"
    if is_microphone:
        speaker = None if calibrator else _find_speaker(bench, None)
        level, level_db = _measure_microphone(bench, equipment, speaker, signal, level, meter, prompt)
    elif meter.reading is None:
        with _CalibrationSound(bench, equipment, None, signal, level):
            _print_playing(signal, level, equipment, PLAY_S)
            level_db = meter.read_level_db(prompt)
    else:
        level_db = meter.reading
    today = datetime.now().astimezone().date()
    keys = CalibrationKeys(
        calibration=equipment.id,
        sound_device=equipment.sound_device,
        signal=signal,
        level_dbfs=level,
        reading_db=level_db,
        weighting=weighting,
        at=place,
        measured_on=today.isoformat(),
        expires_on=(today + timedelta(days=days)).isoformat(),
        max_spl=max_spl,
        settings=None if is_microphone else settings_of(equipment),
    )
    path = bench_file.parent / f"{equipment.id}.calibration.yaml"
    write_calibration(path, keys)
    full_scale = f"0 dBFS = {fixed(level_db - level, 1)} dB({weighting}) SPL at {place}, until {keys.expires_on}"
    click.echo(plain_text(f"{path}: {full_scale}", 400))
    if equipment.calibration is None or Path(equipment.calibration.path) != path.absolute():
        verb_text = "Add to" if equipment.calibration is None else "Change in"
        click.echo(plain_text(f"{verb_text} the bench, under {equipment.id}: `calibration: {path.name}`", 400))


def _measure_microphone(
    bench: Bench,
    microphone: Equipment,
    speaker: Equipment | None,
    signal: Signal,
    level_dbfs: float,
    meter: MeterOptions,
    prompt: str,
) -> tuple[float, float]:
    """The level of the recording in dBFS, and that at the meter in dB.

    speaker: plays the sound; None if a calibrator does. The calibrator may be put on while the user is asked, so the
    recording follows. The sound of a loudspeaker ends after PLAY_S, so there the recording comes first.
    """
    with _CalibrationSound(bench, speaker, microphone, signal, level_dbfs) as sound:
        if speaker is None:
            level_db = meter.read_level_db(prompt)
            return sound.recorded_dbfs(), level_db
        _print_playing(signal, level_dbfs, speaker, PLAY_S)
        recorded_dbfs = sound.recorded_dbfs()
        level_db = meter.read_level_db(prompt)
        sound.demand_louder_than_room(recorded_dbfs)
        return recorded_dbfs, level_db


def _print_playing(signal: Signal, level_dbfs: float, speaker: Equipment, duration_s: float) -> None:
    line = f"Playing {signal} at {exact(level_dbfs)} dBFS through {speaker.id} for {exact(duration_s)} s."
    click.echo(plain_text(line, 400))


def _read_meter(port: str, baud: int, request: str) -> float:
    """The median of what a meter reads for METER_S, in dB, which is also printed. Waits until it has settled.

    request: what to send for each reading; "" if the meter sends unprompted.
    """
    from harness.devices.serial.commands import SerialCommandOptions, read_numbers
    from harness.sound.calibration import MAX_SPL, MIN_SPL

    time.sleep(SETTLE_S)
    levels = read_numbers(SerialCommandOptions(port=port, baud=baud), request, METER_S, MIN_SPL, MAX_SPL)
    level = round(statistics.median(levels), 1)
    span = f"from {fixed(min(levels), 1)} to {fixed(max(levels), 1)} dB"
    click.echo(f"Meter: {fixed(level, 1)} dB, the median of {len(levels)} {span}")
    return level


def _equalise(bench: Bench, speaker: Equipment, level_dbfs: float) -> None:
    """Measures and prints the response of a loudspeaker, and the equaliser that makes it flat.

    Raises InputError if the bench has no microphone to measure with. Raises SoundError if that does not hear the
    loudspeaker.
    """
    from harness.sound.equaliser import CENTRES_HZ, inverse, response

    if bench.microphone is None or speaker is bench.microphone:
        raise InputError(
            "--equalise needs a microphone in the bench, and measures a loudspeaker",
            remedy="Add a microphone to the bench, and choose a loudspeaker",
        )
    with _CalibrationSound(bench, speaker, bench.microphone, "pink noise", level_dbfs) as sound:
        _print_playing("pink noise", level_dbfs, speaker, EQUALISE_S)
        recorded, played, quiet = sound.recorded_with_played()
    response_db = response(recorded, played, quiet)
    for centre_hz, band_db in zip(CENTRES_HZ, response_db, strict=True):
        text = "not measured: too close to the noise" if math.isnan(band_db) else f"{signed(band_db, 1):>6} dB"
        click.echo(f"{centre_hz:>6} Hz  {text}")
    if all(math.isnan(band_db) for band_db in response_db):
        raise SoundError(f"{bench.microphone.id} does not hear {speaker.id}", remedy="Raise --level-dbfs or the volume")
    if getattr(speaker.options, "equaliser", ""):
        click.echo("This response includes the bench's equaliser. To measure without it, remove the key `equaliser`.")
        return
    click.echo(plain_text(f'Add to the bench, under {speaker.id}: equaliser: "{inverse(response_db)}"', 600))


def _find_equipment(bench: Bench, name: str | None) -> Equipment:
    """The loudspeaker or the microphone of that name; None for the first loudspeaker. InputError without one."""
    if bench.microphone is not None and name == bench.microphone.id:
        return bench.microphone
    return _find_speaker(bench, name)


def _find_speaker(bench: Bench, name: str | None) -> Equipment:
    """The loudspeaker of that name; None for the first. InputError without one."""
    names = [loudspeaker.id for loudspeaker in bench.loudspeakers]
    if not names:
        raise InputError(
            f"the bench {bench.id!r} has no loudspeaker", remedy="Add a loudspeaker, or choose another bench"
        )
    if name is not None and name not in names:
        raise InputError(f"the bench has no loudspeaker {name!r}", remedy=f"Loudspeakers: {', '.join(names)}")
    return next(loudspeaker for loudspeaker in bench.loudspeakers if name in (None, loudspeaker.id))


class _CalibrationSound:
    """Plays and records a sound through the bench's own drivers while it is entered.

    - speaker: None if something else plays.
    - microphone: None if nothing is to be recorded.
    """

    def __init__(
        self, bench: Bench, speaker: Equipment | None, microphone: Equipment | None, signal: str, level_dbfs: float
    ) -> None:
        from harness.session.engine.assemble import clock_of
        from harness.sound.calibration import calibration_sound

        self._bench, self._speaker, self._microphone = bench, speaker, microphone
        self._clock = clock_of(bench)
        self._sound = calibration_sound(signal, level_dbfs, PLAY_S)
        self._faults: list[str] = []
        self._exit_stack = ExitStack()

    def __enter__(self) -> Self:
        from harness.model.observation import LinkLost, StimulusStarted

        starts: list[Observation] = []

        def observe(observation: Observation) -> None:
            match observation:
                case StimulusStarted():
                    starts.append(observation)
                case LinkLost(what=fault):
                    self._faults.append(fault)
                case _:
                    pass

        try:
            if self._microphone is not None:
                self._microphone_driver = self._open(self._microphone, observe)
            if self._speaker is not None:
                self._speaker_driver = self._open(self._speaker, observe)
                self._speaker_driver.play("calibration", self._sound)
                self._exit_stack.callback(self._speaker_driver.stop)
                deadline_s = time.monotonic() + 5
                while not starts and not self._faults and time.monotonic() < deadline_s:
                    time.sleep(0.02)
                if not starts:
                    raise SoundError(
                        f"{self._speaker.id} did not start playing", remedy="; ".join(self._faults) or "Try again"
                    )
                self._started_s = starts[0].at.at_s
        except BaseException:
            self._exit_stack.close()
            raise
        return self

    def _open(self, equipment: Equipment, observe: Callable[[Observation], None]) -> Any:
        """The open driver of a loudspeaker or microphone, which is closed at the end."""
        from harness.base.plugins import Group, load
        from harness.session.engine.assemble import BenchSurroundings

        surroundings = BenchSurroundings(
            self._clock, self._bench.sound_server, seed=0, folder=Path(tempfile.gettempdir()), profile=None
        )
        driver = load(Group.DRIVERS, equipment.driver)(equipment.id, equipment.options, surroundings)
        driver.open(observe)
        self._exit_stack.callback(driver.close)
        return driver

    def recorded_dbfs(self) -> float:
        """Records for RECORD_S, and returns the RMS level at the microphone.

        Raises InputError if that is silence, or if no loudspeaker plays and it is not the tone of a sound calibrator.
        """
        from harness.sound.calibration import is_tone
        from harness.sound.level import rms_dbfs

        recording, _ = self._record(RECORD_S)
        level_dbfs = rms_dbfs(recording.samples)
        if level_dbfs < MIN_RECORDED_DBFS:
            raise InputError(
                f"the microphone heard {fixed(level_dbfs, 1)} dBFS, which is silence",
                remedy="; ".join(self._faults) or "Raise the gain of the microphone, and check its connection",
            )
        if self._speaker is None and not is_tone(recording):
            raise InputError(
                "the microphone does not hear the tone of a sound calibrator",
                remedy="Put the calibrator on the microphone, and switch it on",
            )
        return round(level_dbfs, 2)

    def demand_louder_than_room(self, recorded_dbfs: float) -> None:
        """Stops the sound.

        Raises SoundError if the microphone hears the room nearly as loudly as it heard the sound.
        """
        from harness.sound.level import rms_dbfs

        above_db = recorded_dbfs - rms_dbfs(self._recorded_after_stop().samples)
        if above_db < ABOVE_ROOM_DB:
            raise SoundError(
                f"the sound at the microphone is {fixed(above_db, 0)} dB above the room's noise",
                remedy=f"Raise --level-dbfs or the volume until the sound is {exact(ABOVE_ROOM_DB)} dB above the noise",
            )

    def recorded_with_played(self) -> tuple[Waveform, Waveform, Waveform]:
        """Records while the sound plays, and again after it has stopped.

        Returns EQUALISE_S seconds from the microphone, what was played in that time, and QUIET_S seconds of quiet.
        """
        from harness.model.stimulus import Waveform

        recorded, start_s = self._record(EQUALISE_S)
        first = round((start_s - self._started_s) * self._sound.rate_hz)
        count = round(recorded.duration_s * self._sound.rate_hz)
        played = Waveform(self._sound.samples[max(0, first) : first + count], self._sound.rate_hz)
        return recorded, played, self._recorded_after_stop()

    def _recorded_after_stop(self) -> Waveform:
        """Stops the sound, and records QUIET_S seconds of the room without it."""
        self._speaker_driver.stop()
        quiet, _ = self._record(QUIET_S)
        return quiet

    def _record(self, duration_s: float) -> tuple[Waveform, float]:
        """Records, and returns the recording and the time of its first sample.

        It begins RAMP_S from now, when a sound that has just begun is at its full level, and one just stopped is over.
        """
        from harness.sound.calibration import RAMP_S

        start_s = self._clock.now_s() + RAMP_S
        time.sleep(self._clock.real_s(RAMP_S + duration_s))
        recording: tuple[Waveform, float] = self._microphone_driver.cut(start_s, start_s + duration_s)
        return recording

    def __exit__(self, *_: object) -> None:
        self._exit_stack.close()
