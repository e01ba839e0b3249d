"""eSpeak NG: formant synthesis, about 130 languages and 100 variants of each voice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from harness.model.errors import VoiceError
from harness.model.stimulus import VoiceSpec, Waveform
from harness.sound.stimuli.voices import program
from harness.sound.stimuli.voices.program import (
    checked_range,
    one_line,
    refuse_silence,
    same_language,
    unknown_name,
    wrong_language,
)

REMEDY = "Install it: apt-get install espeak-ng"
# The program silently uses 80 for lower rates. 450 is the documented maximum.
RATE_WPM = (80, 450)


class EspeakVoice:
    """Speaks with `espeak-ng`. A name is a language code (`en-us`), optionally with a variant (`en-us+f3`).

    rate_wpm 80–450, pitch 0–99. Markup, entities, `[[phonemes]]` and embedded commands are read out or dropped, never
    interpreted: the text of a stimulus is its reference transcript.
    """

    licence: ClassVar[str] = "GPL-3.0-or-later"
    remedy: ClassVar[str] = REMEDY

    def names(self) -> tuple[str, ...]:
        """Language codes first, then every code with every variant. Raises VoiceError if espeak-ng is not installed."""
        plain = sorted(self._languages)
        return (*plain, *(f"{code}+{variant}" for code in plain for variant in sorted(self._variants)))

    def version(self) -> str:
        return "espeak-ng " + program.version(self._program, r"text-to-speech: (\S+)", REMEDY)

    def language_of(self, name: str) -> str:
        """BCP 47 tag that the voice speaks. Raises VoiceError if there is no such voice."""
        return self._split(name)[0]

    def speak(self, text: str, voice: VoiceSpec) -> Waveform:
        """22,050 Hz mono. VoiceError: unknown name, rate or pitch out of range, other language, nothing to hear."""
        code, variant = self._split(voice.name)
        if not same_language(voice.language, self._languages[code]):
            raise wrong_language("espeak", voice.name, voice.language, code)
        argv = [self._program, "-b", "1", "--stdin", "--stdout", "-v", f"{code}+{variant}" if variant else code]
        if voice.rate_wpm is not None:
            argv += ["-s", str(checked_range("espeak", "rate_wpm", voice.rate_wpm, *RATE_WPM))]
        if voice.pitch is not None:
            argv += ["-p", str(checked_range("espeak", "pitch", voice.pitch, 0, 99))]
        # "[[" starts phoneme mnemonics, and no option prevents that. A space between the brackets does.
        line = re.sub(r"\[(?=\[)", "[ ", one_line(text, "espeak"))
        return refuse_silence(program.parse_wav(program.run(argv, line), "espeak"), "espeak", text)

    def _split(self, name: str) -> tuple[str, str]:
        """The language code and the variant ("" for none) of a name. Raises VoiceError if there is no such voice."""
        code, plus, variant = name.partition("+")
        if code not in self._languages:
            raise unknown_name("espeak", name, self._languages)
        # The program silently ignores an unknown variant and speaks with the plain voice.
        if plus and variant not in self._variants:
            raise unknown_name("espeak", name, (f"{code}+{known_variant}" for known_variant in self._variants))
        return code, variant

    @property
    def _program(self) -> str:
        return program.program_path("espeak-ng", REMEDY)

    @cached_property
    def _languages(self) -> Mapping[str, frozenset[str]]:
        """Voices by code, with the languages of each."""
        voices: dict[str, frozenset[str]] = {}
        for row in self._list_rows("--voices"):
            code, other_codes = row[1], re.findall(r"\((\S+) \d+\)", " ".join(row[5:]))
            voices[code] = voices.get(code, frozenset()) | {code, *other_codes}
        if not voices:
            raise VoiceError("espeak-ng lists no voices", remedy="Install its voices: apt-get install espeak-ng-data")
        return voices

    @cached_property
    def _variants(self) -> frozenset[str]:
        files = (row[4] for row in self._list_rows("--voices=variant") if len(row) > 4)
        return frozenset(name.removeprefix("!v/") for name in files if name.startswith("!v/"))

    def _list_rows(self, option: str) -> list[list[str]]:
        """The fields of each row that espeak-ng lists, without the heading."""
        output = program.run([self._program, option], timeout_s=10).decode(errors="replace")
        return [row for line in output.splitlines()[1:] if len(row := line.split()) >= 4]
