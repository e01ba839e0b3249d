"""`harness admin sound`: list sound devices, and check that sound travels from a loudspeaker to a microphone."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.foreign import plain_text
from harness.base.places import lab_state
from harness.cli.options import A_FILE, A_FOLDER, argument, json_option, option, output_option, repeatable, verb
from harness.model.errors import InputError, LabError, Place
from harness.model.numbers import counted, fixed, seconds

if TYPE_CHECKING:
    from harness.model.bench import Bench
    from harness.session.talker import Talker, TalkerFolder

_SERVER = option(
    "Use the host's sound server or the virtual lab's.", type=click.Choice(["system", "virtual_lab"]), default="system"
)
_JSON = json_option("Print one JSON object instead of text.")
TRIES = 3
"""How often a prompt is shown in all, if the talker's speech cannot be used."""


@click.group("sound")
def command() -> None:
    """List sound devices, check the sound path, record people, and find recordings that cannot be played."""


@verb("list", parent=command)
def list_devices(*, sound_server: str = _SERVER, as_json: bool = _JSON) -> None:
    """List the sound devices. A bench names one of them as `sound_device`."""
    from harness.base.text_table import Column, text_table
    from harness.sound.sound_devices import sound_devices

    devices = sound_devices(sound_server)
    if as_json:
        click.echo(json.dumps([asdict(device) for device in devices]))
        return
    if not devices:
        try:
            lab_state()
        except LabError:
            lab_command = "harness admin lab up, then "
        else:
            lab_command = ""
        click.echo(f"No sound device was found. For the virtual lab: {lab_command}--sound-server virtual_lab")
        return
    columns = (Column("name"), Column("in"), Column("out"), Column("default rate"))
    rows = [(device.name, str(device.inputs), str(device.outputs), f"{device.rate_hz} Hz") for device in devices]
    for line in text_table(columns, rows, shutil.get_terminal_size((120, 24)).columns):
        click.echo(line)


@verb("recordings", parent=command, short_help="List recordings that a run would reject.")
def list_recordings(
    *,
    paths: tuple[Path, ...] = argument(required=True),
    rescue: Path | None = option(
        "Decode damaged recordings up to the damage, and write them to this folder as FLAC.", type=A_FOLDER
    ),
    as_json: bool = _JSON,
) -> None:
    """Read recordings completely, and list those that a run would reject, with the reasons.

    PATHS are sound files, or folders that are searched with their subfolders. `harness check validate` does the same
    for the recordings of a scenario.

    Exit status: 0 all can be played · 2 some cannot, or no recording was found.
    """
    from harness.sound import recordings

    files = list(_sound_files(paths))
    rejections = list(_rejections(files))
    if rescue is not None:
        _demand_distinct([rescue_name for _, rescue_name, _ in rejections], rescue)
    rows: list[dict[str, object]] = []
    for path, rescue_name, error in rejections:
        row: dict[str, object] = {"file": str(error.place), "what": error.what, "remedy": error.remedy}
        line = str(error)
        if rescue is not None:
            rescued = _write_decodable(path, rescue / rescue_name)
            row["rescued"] = rescued
            line = f"{error.place}: {error.what}. {_decodable_text(rescued)}"
        rows.append(row)
        if not as_json:
            click.echo(plain_text(line, 2000))
    notes = [{"file": str(path), "what": note} for path, _ in files if (note := recordings.assumed(str(path)))]
    if as_json:
        click.echo(json.dumps({"files": len(files), "refused": rows, "notes": notes}))
    else:
        for entry in notes:
            click.echo(plain_text(f"{entry['file']}: note: {entry['what']}", 2000))
        rescue_note = f", {sum(row['rescued'] is not None for row in rows)} rescued" if rescue is not None else ""
        click.echo(f"{counted(len(files), 'recording')}, {len(rows)} cannot be played{rescue_note}")
    if rows or not files:
        sys.exit(2)


def _sound_files(paths: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Pairs of a file and the path for its rescued sound, relative to the folder for all of them.

    That path has the same subfolders, and ends with .flac.
    """
    from harness.scenario.assets import SOUND_SUFFIXES

    for path in paths:
        if path.is_dir():
            for file in sorted(file for file in path.rglob("*") if file.suffix.lower() in SOUND_SUFFIXES):
                yield file, _as_flac(file.relative_to(path))
        else:
            yield path, _as_flac(Path(path.name))


def _as_flac(name: Path) -> Path:
    """`a.flac` as it is, and `a.wav` as `a.wav.flac`, so that neither replaces the other."""
    return name if name.suffix.lower() == ".flac" else name.with_name(f"{name.name}.flac")


def _rejections(files: Iterable[tuple[Path, Path]]) -> Iterator[tuple[Path, Path, InputError]]:
    """The pairs of `_sound_files` that a run would reject, each with the reason. Decodes every file."""
    from harness.sound import recordings

    for path, rescue_name in files:
        try:
            recordings.check(str(path))
        except InputError as error:
            yield path, rescue_name, error


def _demand_distinct(rescue_names: Sequence[Path], folder: Path) -> None:
    """Raises InputError if two rescued sounds would have the same path. Raised before anything is written."""
    name_counts = Counter(rescue_names)
    if len(name_counts) < len(rescue_names):
        problem = f"several recordings would be rescued as {name_counts.most_common(1)[0][0]}"
        raise InputError(problem, place=Place(str(folder)), remedy="Pass a folder that contains all the recordings")


def _write_decodable(path: Path, target: Path) -> dict[str, object] | None:
    """Writes what can be decoded of a damaged recording, and returns what the JSON output says about it.

    None if nothing could be decoded. `of_seconds` is None if the file does not declare a greater length.
    """
    from harness.sound import recordings

    lengths = recordings.rescue(str(path), target)
    if lengths is None:
        return None
    decoded_s, declared_s = lengths
    return {"file": str(target), "seconds": decoded_s, "of_seconds": declared_s}


def _decodable_text(rescued: dict[str, Any] | None) -> str:
    if rescued is None:
        return "Nothing in the recording can be rescued"
    total_text = "" if rescued["of_seconds"] is None else f" of {fixed(rescued['of_seconds'], 2)}"
    return f"Rescued {fixed(rescued['seconds'], 2)}{total_text} s: {rescued['file']}"


@verb("check", parent=command)
def check(
    *,
    speaker: str = option("Sound device to play on.", required=True),
    microphone: str = option("Sound device to record with.", required=True),
    count: int = option("Number of chirps.", within=(1, 1000), default=10),
    frames_per_buffer: int = option(
        "Buffer size in samples. Raise it if sound is late.", within=(64, 9600), default=480
    ),
    sound_server: str = _SERVER,
    as_json: bool = _JSON,
) -> None:
    """Play chirps and look for them in the recording.

    Exit status: 0 every chirp was heard · 1 the path varies too much · 3 chirps were missed, or the server was lost.
    """
    from harness.sound.path_check import check_path, path_figures, path_words

    path_check = check_path(speaker, microphone, sound_server, count=count, frames_per_buffer=frames_per_buffer)
    click.echo(json.dumps(path_figures(path_check)) if as_json else path_words(path_check))
    if not path_check.ok or path_check.steady is False:
        sys.exit(1 if path_check.ok else 3)


def recording_device(bench: Bench | None, microphone: str | None, sound_server: str | None) -> tuple[str, str]:
    """The sound device that records and its sound server: those of the options, otherwise those of the bench.

    Raises InputError if neither names a device.
    """
    from harness.sound.sound_devices import list_command

    server = sound_server or (bench.sound_server if bench is not None else "system")
    name = microphone
    if not name and bench is not None and bench.microphone is not None:
        # The bench may listen in another way, such as a plug-in, that has no sound device.
        name = getattr(bench.microphone.options, "sound_device", None)
    if not name:
        problem = "the bench has no microphone that records" if bench is not None else "--microphone is missing"
        raise InputError(problem, remedy=f"Add --microphone NAME. To list the names: {list_command(server)}")
    return name, server


@verb("record", parent=command, short_help="Record a person who reads prompts.")
def record(
    *,
    prompts: Path = argument("PROMPTS", type=A_FILE),
    output: Path = output_option("Folder for the recordings.", folder=True, required=True),
    talker: str = option("Name or number of the talker: lowercase letters, digits, - and _.", required=True),
    bench_file: Path | None = option("Bench with a microphone.", "--bench", type=A_FILE),
    microphone: str | None = option("Sound device to record with.", show_default="the bench's microphone"),
    sound_server: str | None = option(
        "Sound server.", type=click.Choice(["system", "virtual_lab"]), show_default="the bench's, else system"
    ),
    takes: int = option("Number of recordings of each prompt.", within=(1, 100), default=1),
    wait: float = option("Maximum time to wait for the talker to begin, s.", within=(1, 600), default=10.0),
    columns: tuple[str, ...] = repeatable("Extra column, such as distance=3m.", "--column", metavar="NAME=VALUE"),
) -> None:
    """Record a person who reads PROMPTS, a text file with a prompt on each line.

    Each prompt is shown. The speech that follows is detected, checked and saved without a key press. If it is
    clipped, too quiet or missing, the prompt is shown again, three times in all. After an interruption, run the same
    command to continue. To use the recordings in a scenario, write `recordings: FOLDER/list.csv`.

    Exit status: 0 everything is recorded · 1 some prompts are missing · 3 the microphone cannot be used.
    """
    from harness.base.clocks import HostClock
    from harness.devices.microphone import Microphone, MicrophoneOptions
    from harness.scenario.bench import load_bench
    from harness.session.engine.assemble import BenchSurroundings
    from harness.session.talker import LIST, Talker, TalkerFolder, read_prompts

    texts = read_prompts(prompts)
    folder = TalkerFolder(output, talker, _parse_columns(columns))
    bench = load_bench(bench_file) if bench_file is not None else None
    device, server = recording_device(bench, microphone, sound_server)
    missing_texts = folder.missing(texts * takes)
    missing_count = 0
    clock = HostClock()
    surroundings = BenchSurroundings(clock, server, seed=0, folder=output, profile=None)
    if missing_texts:
        with Talker(Microphone("mic", MicrophoneOptions(device), surroundings), clock) as talker_input:
            for number, text in enumerate(missing_texts, 1):
                if not _record_prompt(talker_input, folder, text, f"{number} of {len(missing_texts)}", wait):
                    missing_count += 1
    click.echo(f"{len(missing_texts) - missing_count} recorded, {missing_count} missing.")
    if missing_count < len(missing_texts) or not missing_texts:
        click.echo(plain_text(f"Play them in a scenario with `recordings: {output / LIST}`", 400))
    if missing_count:
        sys.exit(1)


def _record_prompt(talker_input: Talker, folder: TalkerFolder, text: str, progress: str, wait_s: float) -> bool:
    """Shows a prompt and records it, in at most TRIES attempts. Returns whether one was usable."""
    from harness.session.talker import UnusableUtterance

    for _ in range(TRIES):
        click.echo(plain_text(f"{progress}   Say: {text}"))
        try:
            utterance = talker_input.utterance(wait_s)
        except UnusableUtterance as error:
            click.echo(f"    {error}")
            continue
        name = folder.keep(text, utterance)
        level = f"{fixed(utterance.level_dbfs, 0)} dBFS, {fixed(utterance.snr_db, 0, 'dB')} SNR"
        click.echo(f"    {name}: {seconds(utterance.sound.duration_s)}, {level}")
        return True
    return False


def _parse_columns(columns: Iterable[str]) -> dict[str, str]:
    """The values by name, from texts NAME=VALUE.

    Raises InputError for another text, or for a name that occurs twice.
    """
    values: dict[str, str] = {}
    for assignment in columns:
        name, equals, value = assignment.partition("=")
        if not equals or name in values:
            raise InputError(
                f"--column {assignment!r} does not have the form NAME=VALUE, or repeats a name",
                remedy="For example: --column distance=3m",
            )
        values[name] = value
    return values
