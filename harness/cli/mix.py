"""`harness evaluate mix`: plant phrases in hours of background, with labels."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from harness.base.text_table import shown
from harness.cli.options import FiniteRange, argument, option, output_option, repeatable, seed_option, verb
from harness.cli.streams import print_lines
from harness.model.errors import InputError, Place
from harness.model.numbers import counted, exposure

_RANGE = {"nargs": 2, "metavar": "LEAST MOST"}


@verb("mix")
def command(
    *,
    phrases: tuple[str, ...] = argument("PLACE...", required=True),
    background: tuple[str, ...] = repeatable(
        "Background sound: a PLACE, as for the phrases.", required=True, metavar="PLACE"
    ),
    output: Path = output_option("New or empty folder for the recordings.", folder=True, required=True),
    hours: float | None = option(
        "Hours of audio to write.",
        type=FiniteRange(0, 10_000, min_open=True),
        show_default="the length of the background",
    ),
    gap: tuple[float, float] = option(
        "Seconds between phrases, drawn uniformly.", type=FiniteRange(0, 86_400), default=(10.0, 60.0), **_RANGE
    ),
    snr: tuple[float, float] = option(
        "SNR of the phrases, dB, drawn uniformly.", type=FiniteRange(-40, 100), default=(10.0, 10.0), **_RANGE
    ),
    phrase: str = option("Phrase to write in the labels, unless a manifest has a column `phrase`.", default=""),
    encoding: str | None = option("Encoding of manifests.", show_default="UTF-8"),
    file_minutes: float = option("Length of each recording.", type=FiniteRange(0.1, 60), default=10.0, metavar="MIN"),
    rate: int = option(
        "Sample rate, Hz.",
        "--rate-hz",
        former=("--rate",),
        type=click.IntRange(8000, 48_000),
        default=16_000,
        metavar="HZ",
    ),
    seed: int = seed_option("Seed for order, gaps and SNRs.", default=0),
) -> None:
    """Plant recordings of phrases in hours of background. Write recordings with labels for `harness evaluate --long`.

    PLACE is a folder, a sound file, a quoted pattern, or a manifest (.csv, .tsv, .jsonl, .parquet, wav.scp) whose
    columns go into the labels.

    Exit status: 0 done · 2 wrong usage or input.
    """
    from harness.offline.file_sources import collect_files
    from harness.offline.mixing import Mixer, MixRequest

    request = MixRequest(
        rate_hz=rate, hours=hours, gap_s=gap, snr_db=snr, file_s=file_minutes * 60, phrase=phrase, seed=seed
    )
    phrase_files = [collect_files(place, encoding) for place in phrases]
    background_files = [collect_files(place, encoding) for place in background]
    if output.is_dir() and any(output.iterdir()):
        raise InputError(
            "the folder is not empty",
            place=Place(str(output)),
            remedy="Choose another folder with -o, or empty this one",
        )
    mixer = Mixer(request, phrase_files, background_files)
    output.mkdir(parents=True, exist_ok=True)
    recording_count = sample_count = phrase_count = 0
    for samples_written, phrases_planted in mixer.write(output):
        recording_count += 1
        sample_count += samples_written
        phrase_count += phrases_planted
    folder = shown(str(output), 200)
    hours_written = exposure(sample_count / rate / 3600)
    counts_text = f"{counted(recording_count, 'recording')}, {hours_written}, {counted(phrase_count, 'phrase')}"
    print_lines([f"{folder}: {counts_text}"])
    print_lines([f"To evaluate: harness evaluate -t ENGINE:MODEL --long {shlex.quote(folder)}"])
