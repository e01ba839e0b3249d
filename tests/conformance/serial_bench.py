"""What the tests of the serial driver share: an open driver with what it saw, and sound whose wake events are known."""

from __future__ import annotations

import subprocess
import threading
from functools import cache
from pathlib import Path

import numpy as np
import soxr

from harness.devices.serial.device import SerialDevice
from harness.devices.serial.options import SerialOptions
from harness.model.bench import DeviceProfile
from harness.model.observation import DeviceState, Observation, Status, StimulusEnded, Wake
from harness.model.stimulus import VoiceSpec, Waveform
from harness.sound.stimuli.voices.espeak import EspeakVoice
from tests.conformance.boards import built
from tests.known import known
from tests.seen import Around, Seen, until

RATE_HZ = 16000


class Bench(Seen):
    """A driver and all that it told."""

    def __init__(self, folder: Path, port: str, profile: DeviceProfile | None = None, **options: object) -> None:
        super().__init__()
        self.threads: set[str] = set()
        self.driver = SerialDevice(
            "board",
            SerialOptions(port=port, **options),  # type: ignore[arg-type]
            Around(folder, profile),
        )

    def __enter__(self) -> Bench:
        self.driver.open(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.close()

    def __call__(self, observation: Observation) -> None:
        self.threads.add(threading.current_thread().name)
        super().__call__(observation)

    def states(self, state: DeviceState) -> list[Status]:
        return [status for status in self.of(Status) if status.state is state]

    def play(self, waveform: Waveform, play_id: str = "p", limit_s: float = 60.0) -> StimulusEnded:
        """Gives a sound and waits for its end."""
        self.driver.play(play_id, waveform)
        until(lambda: any(end.play_id == play_id for end in self.of(StimulusEnded)), limit_s)
        return next(end for end in self.of(StimulusEnded) if end.play_id == play_id)

    def wakes(self, since_s: float = 0.0) -> list[tuple[int, float, str]]:
        """Sample since a moment of the audio line, score, phrase."""
        return [
            (round((known(wake.audio_s) - since_s) * RATE_HZ), round(known(wake.score), 6), wake.phrase)
            for wake in self.of(Wake)
            if known(wake.audio_s) > since_s
        ]


@cache
def spoken() -> Waveform:
    """`alexa` by a few voices, in silence."""
    pieces = []
    for voice in ("en-us", "en-gb"):
        speech = EspeakVoice().speak("alexa", VoiceSpec(name=voice))
        samples = soxr.resample(speech.samples, speech.rate_hz, RATE_HZ)
        samples = samples / np.abs(samples).max() * 0.3
        pieces += [np.zeros(RATE_HZ), samples, np.zeros(RATE_HZ)]
    whole = np.concatenate(pieces)
    return Waveform((whole + np.random.default_rng(1).normal(0, 5e-4, len(whole))).astype(np.float32), RATE_HZ)


def repeated(waveform: Waveform, times: int) -> Waveform:
    return Waveform(np.tile(waveform.samples, times), waveform.rate_hz)


def truth(folder: Path, waveform: Waveform) -> list[tuple[int, float, str]]:
    """What the firmware's own spotter finds in it: sample, score, phrase."""
    assert waveform.rate_hz == RATE_HZ
    path = folder / "truth.s16"
    np.clip(np.round(waveform.samples * 32768), -32768, 32767).astype("<i2").tofile(path)
    result = subprocess.run([str(built("host") / "vh_spot"), str(path)], capture_output=True, text=True, check=True)
    rows = (line.split(maxsplit=2) for line in result.stdout.splitlines())
    return [(int(sample), float(score), phrase) for sample, score, phrase in rows]


def near(events: list[tuple[int, float, str]], expected: list[tuple[int, float, str]]) -> bool:
    """The same events at the same samples; scores are rounded to a 65535th on their way."""
    return [(sample, phrase) for sample, _, phrase in events] == [
        (sample, phrase) for sample, _, phrase in expected
    ] and all(abs(event[1] - other[1]) < 1e-4 for event, other in zip(events, expected, strict=True))
