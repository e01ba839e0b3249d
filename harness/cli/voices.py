"""`harness admin voices`: list the installed voices, and speak a text into a file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.base.progress import step, tracked
from harness.cli.options import argument, option, output_option, verb
from harness.cli.streams import drawn_progress
from harness.model.errors import HarnessError, InputError, VoiceError
from harness.model.numbers import fixed, moment, percent
from harness.model.stimulus import SpokenText, StimulusRecipe, VoiceSpec


@click.group()
def command() -> None:
    """List the installed voices, or speak a text into a file."""


@verb("list", parent=command, short_help="List the speech engines and their voices.")
def list_voices(*, engine: str | None = option("List every voice of this engine.")) -> None:
    """List the speech engines, their versions and voices, and how to install missing engines."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from harness.base.plugins import Group, load, names

    if engine is not None:
        _print_voices(engine)
        return
    table = Table(box=None, pad_edge=False)
    for title in ("engine", "version", "voices", "licence"):
        table.add_column(title, overflow="fold")

    def cells_of(name: str) -> tuple[str, ...]:
        try:
            speech_engine = load(Group.VOICES, name)()
            voice_names = speech_engine.names()
            plain_names = [voice_name for voice_name in voice_names if "+" not in voice_name]
            names_text = f"{len(plain_names)} ({len(voice_names)} with variants)"
            if len(plain_names) <= 8:
                names_text = " ".join(plain_names)
            licence = str(getattr(speech_engine, "licence", "not stated"))
            # Model hashes belong in the log, not in a table.
            return name, " ".join(speech_engine.version().split()[:2]), names_text, licence
        except HarnessError as error:
            return name, "not installed", str(error), ""

    with drawn_progress():
        for name in tracked(names(Group.VOICES), "Querying speech engines"):
            table.add_row(*map(Text, cells_of(name)))
    Console(file=sys.stdout).print(table)


@verb("say", parent=command)
def say(
    *,
    text: str = argument(),
    voice: str = option("Voice, as ENGINE:NAME.", "--voice", default="espeak:en-us"),
    wake_phrase: str | None = option(
        "Wake phrase, spoken before TEXT by the same voice.", "--phrase", former=("--wake-phrase",)
    ),
    gap_ms: int = option("Silence after the wake phrase, in ms.", default=250),
    rate_wpm: int | None = option("Words per minute.", show_default="the voice's own"),
    pitch: int | None = option("Pitch from 0 to 99; 50 is the voice's own."),
    language: str | None = option("Language as a BCP 47 tag.", show_default="the voice's own"),
    level_dbfs: float = option("Active speech level in dBFS.", default=-26.0),
    rate_hz: int = option("Sample rate, Hz.", default=48000),
    out: Path | None = output_option("16-bit WAV file to write."),
) -> None:
    """Speak TEXT as a trial would play it. Print the level, duration and parts of the stimulus.

    Most engines of `harness evaluate` need --rate-hz 16000.
    """
    import soundfile

    from harness.sound.level import active_speech_level
    from harness.sound.stimuli.renderer import Renderer

    engine, _, name = voice.partition(":")
    if not name:
        raise InputError(
            f"--voice {voice!r} must have the form ENGINE:NAME", remedy="For example: --voice espeak:en-us+f3"
        )
    renderer = Renderer(None)
    own_language = getattr(renderer.voice(engine), "language_of", None)
    if not language:
        language = own_language(name) if own_language else "en-US"
    recipe = StimulusRecipe(
        query=SpokenText(text),
        wake_phrase=SpokenText(wake_phrase) if wake_phrase else None,
        voice=VoiceSpec(engine, name, rate_wpm, pitch, language),
        gap_ms=gap_ms,
        level_dbfs=level_dbfs,
        rate_hz=rate_hz,
    )
    with drawn_progress():
        step(f"Synthesising speech with {recipe.voice.label()}")
        rendered = renderer.render(recipe)
    waveform = rendered.waveform
    level = active_speech_level(waveform)
    if level is None:
        raise VoiceError("the stimulus is silent", remedy="Raise --level-dbfs")
    if out is not None:
        try:
            soundfile.write(out, waveform.samples, waveform.rate_hz, format="WAV", subtype="PCM_16")
        except (OSError, soundfile.LibsndfileError) as error:
            raise InputError(f"{out} cannot be written: {error}", remedy="Choose another file with --output") from error
        click.echo(f"written   {out}")
    click.echo(f"voice     {recipe.voice.label()} ({renderer.voice(engine).version()})")
    click.echo(f"duration  {moment(waveform.duration_s)} at {waveform.rate_hz} Hz")
    click.echo(f"level     {fixed(level.level_dbfs, 2)} dBFS active speech, {percent(level.activity, 0)} of the time")
    for part in rendered.parts:
        start_s, end_s = part.start_sample / waveform.rate_hz, part.end_sample / waveform.rate_hz
        span = f"{fixed(start_s, 3):>7} to {fixed(end_s, 3):>7} s"
        click.echo(f"part      {part.role.value:<12} {span}  {part.text}".rstrip())
    click.echo(f"sha256    {rendered.sha256}")


def _print_voices(engine_name: str) -> None:
    """Prints the version of a speech engine, its voices, and its variants, each of which every voice can have."""
    from harness.base.plugins import Group, load

    engine = load(Group.VOICES, engine_name)()
    voice_names = engine.names()
    plain_names = [name for name in voice_names if "+" not in name]
    variants = sorted({name.partition("+")[2] for name in voice_names if "+" in name})
    click.echo(f"{engine_name}: {engine.version()}")
    click.echo("voices:   " + " ".join(plain_names))
    if variants:
        click.echo(f"variants (after a +, as in {plain_names[0]}+{variants[0]}): " + " ".join(variants))
