"""How long the voices take: ms a sentence, real-time factor, and the ratio to espeak in the same run.

python benchmarks/bench_voices.py [--rates]

With --rates: the words a minute of each voice at its own rate, on eSpeak's scale (where 175 is eSpeak's own rate).
"""

from __future__ import annotations

import statistics
import sys
import time

from sizes import sized

from harness.base.plugins import Group, load
from harness.model.stimulus import VoiceSpec
from harness.sound.stimuli.renderer import active_span

SENTENCES = (
    "What time is it?",
    "Turn the lights in the kitchen down a little.",
    "Please remind me to call my sister about the party on Saturday afternoon.",
    "What is the weather going to be like tomorrow morning in the north of the country?",
    "Set a timer for twelve minutes and thirty seconds.",
)
ROUNDS = sized(4, 1)
VOICES = (
    VoiceSpec("espeak", "en-us"),  # first, since the others are compared with it
    VoiceSpec("flite", "kal16"),
    VoiceSpec("flite", "rms"),
    VoiceSpec("flite", "slt"),
    VoiceSpec("flite", "awb"),
    VoiceSpec("hibari", "heart"),
)


def main() -> None:
    espeak_ms = espeak_active_s = 0.0
    print(f"{'voice':<16}{'ms p50':>8}{'ms max':>8}{'real-time factor':>18}{'ratio to espeak':>17}")
    for spec in VOICES:
        voice = load(Group.VOICES, spec.engine)()
        voice.speak("Ready.", spec)  # loads its model
        times_ms, sound_s, active_s = [], 0.0, 0.0
        for sentence in sized(SENTENCES, SENTENCES[:1]) * ROUNDS:
            began_s = time.perf_counter()
            waveform = voice.speak(sentence, spec)
            times_ms.append(1000 * (time.perf_counter() - began_s))
            sound_s += waveform.duration_s
            if (span := active_span(waveform)) is not None:
                first, end = span
                active_s += (end - first) / waveform.rate_hz
        median_ms = statistics.median(times_ms)
        if spec.engine == "espeak":
            espeak_ms, espeak_active_s = median_ms, active_s
        factor = sum(times_ms) / 1000 / sound_s
        rate = f"{175 * espeak_active_s / active_s:6.0f}" if "--rates" in sys.argv else ""
        name = f"{spec.engine}:{spec.name}"
        print(f"{name:<16}{median_ms:8.1f}{max(times_ms):8.1f}{factor:18.4f}{median_ms / espeak_ms:17.2f}{rate}")


if __name__ == "__main__":
    main()
