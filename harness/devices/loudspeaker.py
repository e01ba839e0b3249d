"""A loudspeaker: plays stimuli through a sound device."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from harness.base import threads
from harness.base.ports import Sink, Surroundings
from harness.model.errors import DeviceError
from harness.model.frozen import frozen
from harness.model.observation import LinkBack, LinkLost, Overrun, StimulusEnded, StimulusStarted
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.sound.child import Output
from harness.sound.equaliser import Equaliser, parse
from harness.sound.playback import Playback

MAX_OUTPUTS = 64


@frozen
class LoudspeakerOptions:
    """The keys of a loudspeaker in a bench file.

    sound_device: Name of the device, or a unique part of it (`harness admin sound list`).
    frames_per_buffer: Samples per callback. Use 2400 on a busy computer.
    gain_db: Gain for everything that it plays, at most 0.
    equaliser: Pairs of frequency (Hz) and gain (dB), such as "125:-3 250:0" (`harness admin calibrate --equalise`).
        Default: none.
    output: Output of the device that the loudspeaker is connected to, counted from 1. 0: every output gets the sound.
    outputs: Number of outputs of the device, if `output` is given.
    """

    sound_device: str
    # 10 ms. In the lab, sound then arrives 30 ms after `play` (measured), with 1024 after 64 ms.
    frames_per_buffer: int = 480
    gain_db: float = 0.0
    equaliser: str = ""
    output: int = 0
    outputs: int = 0

    def __post_init__(self) -> None:
        if not self.sound_device:
            raise ValueError("sound_device is empty")
        if not 64 <= self.frames_per_buffer <= 9600:
            raise ValueError(f"frames_per_buffer must be 64 to 9600, not {self.frames_per_buffer}")
        if not (math.isfinite(self.gain_db) and self.gain_db <= 0):
            raise ValueError(f"gain_db must be at most 0, not {self.gain_db}: louder sound would clip")
        parse(self.equaliser)
        if not 0 <= self.outputs <= MAX_OUTPUTS:
            raise ValueError(f"outputs must be 0 to {MAX_OUTPUTS}, not {self.outputs}")
        if not 0 <= self.output <= self.outputs or (self.outputs > 0 and self.output == 0):
            bounds = f"output must be from 1 to `outputs` ({self.outputs}), not {self.output}"
            raise ValueError(f"{bounds}. For example: output: 3, outputs: 8")


class Loudspeaker:
    """Plays stimuli. Stamps are the times at which samples leave, with an error of some milliseconds.

    Reports LinkLost and LinkBack when the sound server disappears and returns. A sound that is playing ends incomplete.
    """

    Options: ClassVar[type] = LoudspeakerOptions

    def __init__(self, id: str, options: LoudspeakerOptions, surroundings: Surroundings) -> None:
        self.id = id
        self._options = options
        self._sound_server = surroundings.sound_server
        self._gain = np.float32(10 ** (options.gain_db / 20))
        self._equaliser = Equaliser(options.equaliser)
        self._playback: Playback | None = None

    def open(self, sink: Sink) -> None:
        """Returns when the output runs. Raises SoundError with a remedy when the device is missing."""
        playback = Playback(
            self._options.sound_device,
            self._sound_server,
            on_started=lambda play_id, stamp: sink(StimulusStarted(self.id, stamp, play_id)),
            on_ended=lambda play_id, stamp, complete: sink(StimulusEnded(self.id, stamp, play_id, complete)),
            on_fault=lambda stamp, reason: sink(LinkLost(self.id, stamp, reason)),
            on_back=lambda stamp: sink(LinkBack(self.id, stamp)),
            on_overrun=lambda count: sink(Overrun(self.id, Stamp(threads.monotonic(), 0.02), count)),
            frames_per_buffer=self._options.frames_per_buffer,
            output=Output(self._options.output, self._options.outputs) if self._options.outputs else Output(),
        )
        playback.open()
        self._playback = playback

    def close(self) -> None:
        """Closes within 1.5 s, in any state; a sound that plays is cut off without a further event."""
        if self._playback is not None:
            self._playback.close()
            self._playback = None

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Returns at once; accepts any rate.

        Raises DeviceError when the loudspeaker is not open, or the sound would clip.
        """
        if self._playback is None:
            raise DeviceError(f"the loudspeaker {self.id} is not open")
        equalised = self._equaliser(waveform)
        samples = equalised.samples if self._gain == 1 else equalised.samples * self._gain
        if equalised is not waveform and np.abs(samples).max(initial=0.0) > 1:
            raise DeviceError(f"{self.id}: with its equaliser, the sound would clip", remedy="Lower the level")
        self._playback.play(play_id, Waveform(samples, waveform.rate_hz))

    def stop(self) -> None:
        """Stops the sound that plays; StimulusEnded(complete=False) follows."""
        if self._playback is not None:
            self._playback.stop()

    def level_dbfs(self) -> float | None:
        """RMS level of the last 100 ms that were played; None when closed or lost."""
        return self._playback.level_dbfs() if self._playback is not None else None
