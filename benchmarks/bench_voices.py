"""How long the voices take: ms a sentence, real-time factor, and the ratio to espeak in the same run.

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
    VoiceSpec("espeak", "en-us"),
    VoiceSpec("flite", "kal16"),
    VoiceSpec("flite", "rms"),
    VoiceSpec("flite", "slt"),
    VoiceSpec("flite", "awb"),
    VoiceSpec("hibari", "heart"),
)


def main() -> None:
    base_ms = base_s = 0.0
    print(f"{'voice':<16}{'ms p50':>8}{'ms max':>8}{'real-time factor':>18}{'ratio to espeak':>17}")
    for spec in VOICES:
        voice = load(Group.VOICES, spec.engine)()
        voice.speak("Ready.", spec)
        took, sound_s, active_s = [], 0.0, 0.0
        for sentence in sized(SENTENCES, SENTENCES[:1]) * ROUNDS:
            start = time.perf_counter()
            waveform = voice.speak(sentence, spec)
            took.append(1000 * (time.perf_counter() - start))
            sound_s += waveform.duration_s
            span = active_span(waveform)
            if span is not None:
                active_s += (span[1] - span[0]) / waveform.rate_hz
        middle = statistics.median(took)
        if not base_ms:
            base_ms, base_s = middle, active_s
        factor = sum(took) / 1000 / sound_s
        rate = f"{175 * base_s / active_s:6.0f}" if "--rates" in sys.argv else ""
        name = f"{spec.engine}:{spec.name}"
        print(f"{name:<16}{middle:8.1f}{max(took):8.1f}{factor:18.4f}{middle / base_ms:17.2f}{rate}")


if __name__ == "__main__":
    main()
