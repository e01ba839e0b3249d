"""`harness calibrate`: what a loudspeaker's digital level is in the room, by a sound level meter."""

from __future__ import annotations

import math
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from harness.base.foreign import plain_text
from harness.cli.options import SHIPPED_FILE, Command
from harness.model.errors import InputError, SoundError

if TYPE_CHECKING:
    from harness.model.bench import Bench, Equipment

PLAY_S = 60.0


class _Decibels(click.FloatRange):
    """A FloatRange without NaN, which compares as if it were in every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = float(super().convert(value, param, ctx))
        return self.fail(f"{value!r} is not a number.", param, ctx) if math.isnan(found) else found


def _place(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not (0 < len(value) <= 60 and value.isprintable() and not value.isspace()):
        raise click.BadParameter("write 1 to 60 characters, such as 1m", ctx, param)
    return value


@click.command("calibrate", cls=Command)
@click.argument("bench_file", metavar="BENCH", type=SHIPPED_FILE)
@click.argument("loudspeaker", required=False)
@click.option("--tone", is_flag=True, help="Play a tone of 1 kHz instead of pink noise.")
@click.option(
    "--level", type=_Decibels(-60, 0), default=-26.0, show_default=True, help="Level of the sound, dBFS (RMS)."
)
@click.option("--reading", type=_Decibels(30, 130), help="Reading of the meter, dB SPL. Nothing is played.")
@click.option(
    "--weighting", type=click.Choice(["A", "C", "Z"]), default="A", show_default=True, help="Weighting of the meter."
)
@click.option(
    "--at", "place", default="the device", show_default=True, callback=_place, help="Place of the meter, such as 1m."
)
@click.option("--days", type=click.IntRange(1, 3660), default=180, show_default=True, help="Days until it expires.")
@click.option(
    "--max-spl", type=_Decibels(30, 130), default=95.0, show_default=True, help="Highest level allowed, dB SPL."
)
def command(
    bench_file: Path,
    loudspeaker: str | None,
    tone: bool,
    level: float,
    reading: float | None,
    weighting: Literal["A", "C", "Z"],
    place: str,
    days: int,
    max_spl: float,
) -> None:
    """Play noise through a LOUDSPEAKER of BENCH, ask for the reading of a sound level meter, and store the calibration.

    Put the meter where the levels of a scenario shall hold, set it to slow, and protect your ears. The calibration is
    written beside the bench, which must name it. Scenarios may then have levels in dB SPL (`level_spl`).
    """
    from harness.scenario.bench import load_bench
    from harness.sound.calibration import LOUDEST_SPL, QUIETEST_SPL, CalibrationKeys, write_calibration

    bench = load_bench(bench_file)
    speaker = _speaker(bench, loudspeaker)
    signal: Literal["pink noise", "1 kHz"] = "1 kHz" if tone else "pink noise"
    if reading is None:
        with _CalibrationSound(bench, speaker, signal, level):
            click.echo(plain_text(f"Playing {signal} of {level:g} dBFS through {speaker.id} for {PLAY_S:g} s.", 400))
            reading = click.prompt(f"Reading of the meter, dB({weighting})", type=_Decibels(QUIETEST_SPL, LOUDEST_SPL))
    today = datetime.now().astimezone().date()
    keys = CalibrationKeys(
        calibration=speaker.id,
        sound_device=speaker.sound_device,
        signal=signal,
        level_dbfs=level,
        reading_db=reading,
        weighting=weighting,
        at=place,
        measured_on=today.isoformat(),
        expires_on=(today + timedelta(days=days)).isoformat(),
        max_spl=max_spl,
    )
    path = bench_file.parent / f"{speaker.id}.calibration.yaml"
    write_calibration(path, keys)
    full = f"0 dBFS = {reading - level:.1f} dB({weighting}) SPL at {place}, until {keys.expires_on}"
    click.echo(plain_text(f"{path}: {full}", 400))
    if speaker.calibration is None:
        click.echo(plain_text(f"Name it in the bench, below {speaker.id}: `calibration: {path.name}`", 400))


def _speaker(bench: Bench, name: str | None) -> Equipment:
    names = [one.id for one in bench.loudspeakers]
    if not names:
        raise InputError(f"the bench {bench.id!r} has no loudspeaker", remedy="Add one, or choose another bench")
    if name is not None and name not in names:
        raise InputError(f"the bench has no loudspeaker {name!r}", remedy=f"Loudspeakers: {', '.join(names)}")
    return next(one for one in bench.loudspeakers if name in (None, one.id))


class _CalibrationSound:
    """Plays a sound through the bench's own driver while it is entered."""

    def __init__(self, bench: Bench, speaker: Equipment, signal: str, level_dbfs: float) -> None:
        from harness.sound.calibration import noise_of

        self._bench, self._speaker = bench, speaker
        self._sound = noise_of(signal, level_dbfs, PLAY_S)

    def __enter__(self) -> None:
        from harness.base.plugins import Group, load
        from harness.model.observation import LinkLost, Observation, StimulusStarted
        from harness.session.engine.assemble import BenchSurroundings, clock_of

        started: list[Observation] = []
        faults: list[str] = []

        def sink(seen: Observation) -> None:
            match seen:
                case StimulusStarted():
                    started.append(seen)
                case LinkLost(what=what):
                    faults.append(what)
                case _:
                    pass

        scratch = Path(tempfile.gettempdir())
        surroundings = BenchSurroundings(clock_of(self._bench), self._bench.sound_server, 0, scratch, None)
        self._driver = load(Group.DRIVERS, self._speaker.driver)(self._speaker.id, self._speaker.options, surroundings)
        self._driver.open(sink)
        self._driver.play("calibration", self._sound)
        deadline = time.monotonic() + 5
        while not started and not faults and time.monotonic() < deadline:
            time.sleep(0.02)
        if not started:
            self._driver.close()
            raise SoundError(f"{self._speaker.id} did not begin to play", remedy="; ".join(faults) or "Try it again")

    def __exit__(self, *_: object) -> None:
        self._driver.stop()
        self._driver.close()
