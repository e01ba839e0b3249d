"""hibari: a small neural English voice with its model in its package."""

from __future__ import annotations

import os
import threading
import unicodedata
from functools import cached_property
from importlib import import_module
from importlib.metadata import version as package_version
from importlib.util import find_spec
from runpy import run_path
from typing import Any, ClassVar

import numpy as np

from harness.base.plugins import pip_install
from harness.model.errors import VoiceError
from harness.model.stimulus import VoiceSpec, Waveform
from harness.sound.stimuli.voices.program import (
    checked_range,
    one_line,
    refuse_foreign,
    refuse_silence,
    same_language,
    unknown_name,
    wrong_language,
)

REMEDY = f"Install it: {pip_install('neural-voice')}"
# Its rate at speed 1 on eSpeak's scale (benchmarks/bench_voices.py --rates).
OWN_RATE_WPM = 179.0
SEED = 0  # Any fixed one: the same text then gives the same sound.


class HibariVoice:
    """Speaks with hibari-tts, in this process. Offers only voices with an installed model; nothing is downloaded.

    rate_wpm 90–270 (the range in which its speed follows the setting), no pitch, English only.
    """

    licence: ClassVar[str] = "Apache-2.0"
    remedy: ClassVar[str] = REMEDY

    def __init__(self) -> None:
        self._models: dict[str, Any] = {}
        self._lock = threading.Lock()

    def names(self) -> tuple[str, ...]:
        """Voices in the package or in hibari's own folder. Raises VoiceError if the package is not installed."""
        return tuple(name for name, is_installed in self._catalogue if is_installed)

    def version(self) -> str:
        """Versions of package and runtime, and the hashes of the installed models."""
        registry = self._registry["VOICES"]
        models = " ".join(f"{name}={registry[name]['sha256'][:12]}" for name in self.names())
        return f"hibari-tts {package_version('hibari-tts')} onnxruntime {package_version('onnxruntime')} {models}"

    def language_of(self, name: str) -> str:
        """BCP 47 tag that the voice speaks. Raises VoiceError if there is no such voice."""
        if name not in self.names():
            raise unknown_name("hibari", name, self.names())
        return str(self._registry["VOICES"][name]["language"])

    def speak(self, text: str, voice: VoiceSpec) -> Waveform:
        """24 kHz mono. VoiceError: unknown name, a pitch, rate out of range, not English, nothing to hear."""
        spoken = self.language_of(voice.name)
        if voice.pitch is not None:
            raise VoiceError("hibari does not support pitch", remedy="Remove `pitch`, or use an espeak voice")
        if not same_language(voice.language, (spoken,)):
            raise wrong_language("hibari", voice.name, voice.language, spoken)
        speed = 1.0
        if voice.rate_wpm is not None:
            speed = checked_range("hibari", "rate_wpm", voice.rate_wpm, 90, 270) / OWN_RATE_WPM
        line = one_line(text, "hibari")
        # The model silently drops unknown characters.
        refuse_foreign("hibari", filter(_is_unpronounceable, line), text, "Use English letters, or an espeak voice")
        # "[word](/phonemes/)" would be interpreted. With a space in between, the brackets are read as text.
        samples = self._model(voice.name)(line.replace("](", "] ("), speed=speed, seed=SEED)
        return refuse_silence(Waveform(np.asarray(samples, dtype=np.float32), 24_000), "hibari", text)

    def _model(self, name: str) -> Any:
        """The model of a voice, loaded once."""
        with self._lock:
            if name not in self._models:
                self._models[name] = self._package.Hibari(voice=name)
            return self._models[name]

    @cached_property
    def _package(self) -> Any:
        try:
            return import_module("hibari")
        except ImportError as error:
            raise VoiceError(f"hibari-tts is not installed: {error}", remedy=REMEDY) from error

    @cached_property
    def _registry(self) -> dict[str, Any]:
        """The contents of hibari/voices.py. Importing hibari would import scipy, which stored stimuli do not need."""
        package = find_spec("hibari")
        if package is None or not package.submodule_search_locations or find_spec("onnxruntime") is None:
            raise VoiceError("hibari-tts is not installed, or its onnxruntime is missing", remedy=REMEDY)
        return run_path(os.path.join(package.submodule_search_locations[0], "voices.py"))

    @cached_property
    def _catalogue(self) -> tuple[tuple[str, bool], ...]:
        """The name of each voice, and whether its model is installed."""
        folder = self._registry["cache_dir"]()
        return tuple(
            (name, bool(voice_facts.get("bundled")) or os.path.exists(os.path.join(folder, voice_facts["file"])))
            for name, voice_facts in self._registry["VOICES"].items()
        )


def _is_unpronounceable(character: str) -> bool:
    """Whether a character is a symbol, or a letter of another script than Latin."""
    if character.isascii():
        return False
    category = unicodedata.category(character)
    return category == "So" or (category[0] in "LM" and "LATIN" not in unicodedata.name(character, ""))
