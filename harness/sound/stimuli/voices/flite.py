"""Flite: small English voices."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from harness.model.errors import VoiceError
from harness.model.stimulus import VoiceSpec, Waveform
from harness.sound.stimuli.voices import program
from harness.sound.stimuli.voices.program import (
    checked_range,
    one_line,
    refuse_foreign,
    refuse_silence,
    same_language,
    unknown_name,
    wrong_language,
)

REMEDY = "Install it: apt-get install flite"
# Rates at duration_stretch 1 on eSpeak's scale (benchmarks/bench_voices.py --rates). One rate_wpm thus takes about
# equally long with every engine. It lacks awb_time, which knows only words for the time of day.
OWN_RATE_WPM: Mapping[str, float] = {"awb": 160, "kal": 161, "kal16": 163, "rms": 146, "slt": 164}
PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": " - ", "…": "...", "\u00a0": " "})


class FliteVoice:
    """Speaks with `flite`: awb, kal (8 kHz), kal16, rms, slt.

    rate_wpm 80–400. No pitch: rms ignores the setting, and the others follow it only roughly. English in ASCII only
    (typographic quotes and dashes become plain ones). Markup is read as text.
    """

    licence: ClassVar[str] = "BSD-like (CMU)"
    remedy: ClassVar[str] = REMEDY

    def names(self) -> tuple[str, ...]:
        """Voices that are compiled in. Raises VoiceError if flite is not installed."""
        output = program.run([self._program, "-lv"], timeout_s=10).decode(errors="replace")
        available = set(output.partition(":")[2].split())
        return tuple(name for name in OWN_RATE_WPM if name in available)

    def version(self) -> str:
        return "flite " + program.version(self._program, r"version: flite-(\S+)", REMEDY)

    def language_of(self, name: str) -> str:
        """BCP 47 tag that the voice speaks."""
        return "en-GB" if name == "awb" else "en-US"

    def speak(self, text: str, voice: VoiceSpec) -> Waveform:
        """8 or 16 kHz mono. VoiceError: unknown name, a pitch, rate out of range, not English, nothing to hear."""
        # The program silently replaces an unknown voice by its first one.
        if voice.name not in self._names:
            raise unknown_name("flite", voice.name, self._names)
        if voice.pitch is not None:
            raise VoiceError("flite does not support pitch", remedy="Remove `pitch`, or use another voice or engine")
        if not same_language(voice.language, ("en",)):
            raise wrong_language("flite", voice.name, voice.language, "en-US")
        line = one_line(text, "flite").translate(PLAIN)
        foreign = (character for character in line if not character.isascii())
        refuse_foreign("flite", foreign, text, "Use plain English letters, or an espeak voice")
        argv = [self._program, "-voice", voice.name]
        if voice.rate_wpm is not None:
            rate = checked_range("flite", "rate_wpm", voice.rate_wpm, 80, 400)
            argv += ["--setf", f"duration_stretch={OWN_RATE_WPM[voice.name] / rate:.4f}"]
        # Through files: flite sometimes waits forever when it reads from a pipe.
        with tempfile.TemporaryDirectory(prefix="flite-") as folder:
            script, sound = Path(folder, "text"), Path(folder, "speech.wav")
            script.write_text(line + "\n", encoding="ascii")
            program.run([*argv, "-f", str(script), "-o", str(sound)])
            speech = sound.read_bytes() if sound.exists() else b""
        return refuse_silence(program.parse_wav(speech, "flite"), "flite", text)

    @property
    def _program(self) -> str:
        return program.program_path("flite", REMEDY)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return self.names()
