"""Makes a spoken corpus: each text in one of several synthetic voices, and lists of the sounds."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.base.grouping import group_by
from harness.base.progress import tracked
from harness.base.text_file import safe_csv
from harness.base.whole_file import atomic_folder, disk_errors, write_atomically
from harness.model.choices import SPLIT
from harness.model.errors import InputError
from harness.model.stimulus import SpokenText, StimulusRecipe, VoiceSpec
from harness.model.understanding import Utterance
from harness.sound.stimuli.renderer import Renderer
from harness.understanding.files.corpus_writing import refuse_split_path

LEVEL_DBFS = -26.0
"""The default level of stimuli in a session."""
RATE_HZ = 16_000
"""The sample rate that recognisers take."""


def voices_of(names: str) -> tuple[VoiceSpec, ...]:
    """The voices in a text such as ENGINE:NAME,…, each with its own language.

    Raises InputError, VoiceError, PluginError.
    """
    renderer = Renderer(None)
    voices = []
    for part in names.split(","):
        text = part.strip()
        if not text:
            continue
        engine, _, name = text.partition(":")
        if not name:
            raise InputError(
                f"the voice {text!r} must have the form ENGINE:NAME",
                remedy="Use names such as espeak:en-us+f3,flite:slt",
            )
        language_of = getattr(renderer.voice(engine), "language_of", None)
        voices.append(VoiceSpec(engine, name, None, None, language_of(name) if language_of else "en-US"))
    if not voices:
        raise InputError(
            "there are no voices", remedy="Use ENGINE:NAME,…; `harness admin voices list` lists all voices"
        )
    return tuple(voices)


def speak(
    utterances: Sequence[Utterance], voices: Mapping[str, Sequence[VoiceSpec]], seed: int, folder: Path
) -> dict[str, int]:
    """Writes a new folder with a WAV file for each utterance and a list for each split, completely or not at all.

    Lists have the columns id, audio and voice. The voice of an utterance depends only on the seed and its id. Returns
    the number of sounds of each split. Raises InputError for a split whose name cannot be that of a file, LogError,
    VoiceError.

    voices: those of each split; the key "" has those of every other split.
    """
    import soundfile  # imported here, so that --help does not load it

    for utterance in utterances:
        refuse_split_path(dict(utterance.groups).get(SPLIT, ""), utterance.place)

    renderer = Renderer(None)
    rows: list[tuple[str, tuple[str, str, str]]] = []
    with disk_errors(f"{folder} cannot be written"), atomic_folder(folder) as new_folder:
        for number, utterance in enumerate(tracked(utterances, "Speaking"), 1):
            split = dict(utterance.groups).get(SPLIT, "")
            voice = random.Random(f"{seed} {utterance.id}").choice(voices.get(split, voices[""]))
            recipe = StimulusRecipe(
                query=SpokenText(utterance.text), wake_phrase=None, voice=voice, level_dbfs=LEVEL_DBFS, rate_hz=RATE_HZ
            )
            name = f"sound/{number:06}.wav"
            (new_folder / "sound").mkdir(exist_ok=True)
            rendered = renderer.render(recipe).waveform
            soundfile.write(new_folder / name, rendered.samples, rendered.rate_hz, format="WAV", subtype="PCM_16")
            rows.append((split or "sounds", (utterance.id, name, f"{voice.engine}:{voice.name}")))
        by_split = group_by(rows)
        for split, split_rows in by_split.items():
            write_atomically(
                new_folder / f"{split}.csv", safe_csv([("id", "audio", "voice"), *split_rows]).encode("utf-8")
            )
    return {split: len(split_rows) for split, split_rows in by_split.items()}
