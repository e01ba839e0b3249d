"""The server's side of a spoken command: its sound as it arrives, its words, and the answer."""

from __future__ import annotations

import queue
from collections.abc import Callable

import numpy as np

from harness.base import threads
from harness.base.plugins import Group, load
from harness.base.ports import Sink, Voice
from harness.devices.text_streams import TextStream
from harness.model.errors import DeviceError, EngineError, HarnessError, InputError, VoiceError
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.observation import Observation, SoundKept, Unread
from harness.model.stimulus import Clip, Samples, VoiceSpec, Waveform
from harness.model.time import Stamp
from harness.sound.frames import ANALYSIS_HZ, Frames
from harness.sound.recogniser_process import RecogniserProcess

ANSWER_HZ = 22_050  # That of espeak, the default voice.
RECOGNISER_TIMEOUT_S = 180.0
"""Above what `RecogniserProcess` takes at most: two children, each 60 s to load and 20 s to answer."""
_SPEECH_FRAMES = 30
"""Frames of 10 ms with speech that begin a command, as in Home Assistant."""
_SILENCE_FRAMES = 70
"""Frames of 10 ms in a row without speech that end a command, as in Home Assistant."""
_QUIET_DBFS = -60.0
"""The level that is assumed before the first sound, since a command may begin with speech."""
_QUIET_FRAMES = 10
"""For how many frames that level is assumed."""
_FULL_SCALE = 32768
"""The sample of 16 bits that stands for 1."""
NOTHING_HEARD = "stt-no-text-recognized"
SOUND_GRACE_S = 1.0
"""How much longer than the longest command to wait for a device that sends less sound than it should, in seconds."""
StoreClip = Callable[[Waveform, float], Clip]


class Answerer:
    """Turns a command's sound into words, and an answer into sound. Its constructor loads what commands need.

    - recogniser: an entry point of `harness.recognisers`; "" for none.
    - voice: engine:name; "" if the harness does not speak its answers.
    - answer: the text of every answer, in which {text} stands for the recognised words; "" for none.
    """

    def __init__(self, recogniser: str, voice: str, answer: str) -> None:
        engine, _, name = voice.partition(":")
        self._voice: Voice | None = load(Group.VOICES, engine)() if engine else None
        self._answer, self._spec = answer, VoiceSpec()
        if self._voice is not None and answer:
            self._spec = VoiceSpec(engine, name, language=self._voice.language_of(name))
        _warm_up_detectors()
        self.recogniser = RecogniserProcess(recogniser) if recogniser else None

    def await_recogniser(self) -> None:
        """Returns when the recogniser is loaded. Raises DeviceError if it cannot be."""
        answers: queue.SimpleQueue[str | HarnessError] = threads.simple_queue()
        if self.recogniser is not None:
            silence = Waveform(np.zeros(ANALYSIS_HZ // 2, np.float32), ANALYSIS_HZ)
            self.recogniser.transcribe_later(silence, answers.put)
            try:
                answer = answers.get(timeout=RECOGNISER_TIMEOUT_S)
            except queue.Empty:
                answer = EngineError(f"it did not answer within {exact(RECOGNISER_TIMEOUT_S)} s")
            if isinstance(answer, HarnessError):
                raise DeviceError(
                    f"the recogniser does not work: {answer}", remedy="Find the cause: harness check doctor"
                ) from answer

    def answer(self, words: str) -> str:
        """The text of the answer to these words; "" for none."""
        return self._answer.replace("{text}", words)

    def speak(self, text: str) -> Samples:
        """The text as sound, at ANSWER_HZ. Raises VoiceError if that fails."""
        import soxr

        if self._voice is None:
            raise VoiceError("the harness has no voice for answers", remedy="Set `voice`")
        spoken = self._voice.speak(text, self._spec)
        return np.asarray(soxr.resample(spoken.samples, spoken.rate_hz, ANSWER_HZ), np.float32)

    def close(self) -> None:
        if self.recogniser is not None:
            self.recogniser.close()


def _warm_up_detectors() -> None:
    """Analyses a second of silence: the imports that this needs would delay the first event of a command."""
    CommandSound(ANALYSIS_HZ, 1, 0.0).feed(bytes(2 * ANALYSIS_HZ), 0.0)


class CommandSound:
    """The sound of one command, as its chunks arrive. start_s: latest possible host time of its first sample."""

    def __init__(self, rate_hz: int, channels: int, limit_s: float) -> None:
        import soxr

        self.rate_hz, self.channels = rate_hz, channels
        self.start_s, self.arrived_s = float("inf"), 0.0
        self._limit_s = limit_s
        self._frames = Frames(load(Group.SPEECH_DETECTORS, "webrtcvad")())
        for _ in range(_QUIET_FRAMES):
            self._frames.floor.feed(_QUIET_DBFS)
        self._resampler = soxr.ResampleStream(rate_hz, ANALYSIS_HZ, 1, dtype="float32")
        self._partial_frame = b""
        self._pieces: list[Samples] = []
        self._sample_count = 0
        self._speech_frames = 0  # since the last long silence
        self._silent_frames = 0  # since the last speech
        self._has_speech = False

    def feed(self, data: bytes, at_s: float) -> bool:
        """Adds a chunk. Returns whether the command has ended, because its speech or the time for it is over."""
        data, size = self._partial_frame + data, 2 * self.channels
        end = len(data) - len(data) % size
        self._partial_frame = data[end:]
        sample_frames = np.frombuffer(data[:end], "<i2").reshape(-1, self.channels)
        samples = (sample_frames.mean(axis=1) / _FULL_SCALE).astype(np.float32)
        self._pieces.append(samples)
        self._sample_count += len(samples)
        self.arrived_s = at_s
        self.start_s = min(self.start_s, at_s - self._sample_count / self.rate_hz)
        resampled = self._resampler.resample_chunk(samples)
        for frame in self._frames.feed(resampled, np.zeros(len(resampled), np.bool_)):
            if self._ends_with(frame.speech):
                return True
        return self._sample_count >= self._limit_s * self.rate_hz

    def _ends_with(self, is_speech: bool) -> bool:
        """Counts a frame. Returns whether the silence after the command is long enough with it."""
        if is_speech:
            self._speech_frames += 1
            self._silent_frames = 0
        else:
            self._silent_frames += 1
        if self._silent_frames >= _SILENCE_FRAMES:
            if self._has_speech:
                return True
            self._speech_frames = 0
        if self._speech_frames >= _SPEECH_FRAMES:
            self._has_speech = True
        return False

    def waveform(self) -> Waveform | None:
        """The sound so far; None without a sample."""
        if not self._sample_count:
            return None
        return Waveform(np.concatenate(self._pieces), self.rate_hz)


@frozen
class ServerUse:
    """What a connection needs when the harness is the device's server.

    - id: id of the driver.
    - report: called with observations.
    - limit_s: length of the longest command.
    - hold_back_s: how long the far end may hold an event back, which is part of the error of its time.
    - keep: stores the sound of a command.
    - answerer: answers it; None for no answers.
    """

    id: str
    now_s: Callable[[], float]
    report: Callable[[Observation], None]
    limit_s: float
    hold_back_s: float = 0.0
    keep: StoreClip | None = None
    answerer: Answerer | None = None

    def keep_command(self, command: CommandSound) -> Waveform | None:
        """Stores a command's sound, and reports that or the failure. Returns the sound; None without a sample."""
        waveform = command.waveform()
        if waveform is not None and self.keep is not None:
            try:
                clip = self.keep(waveform, command.start_s)
                self.report(SoundKept(self.id, Stamp(command.arrived_s, self.hold_back_s), clip))
            except HarnessError as error:
                problem = f"the sound of its microphone could not be kept: {error}"
                self.report(Unread(self.id, Stamp(self.now_s()), problem))
        return waveform


class AnsweringStream(TextStream):
    """A text stream whose device sends the harness the sound of commands, which the harness may keep and answer."""

    _keep: StoreClip | None = None
    _answerer: Answerer | None = None

    def new_answerer(self) -> Answerer | None:
        """The answerer that the options describe; None if the harness is not the device's server."""
        raise NotImplementedError

    def keep_sound(self, save: StoreClip) -> None:
        """Stores the sound of commands from the next connection on."""
        self._keep = save

    def open(self, sink: Sink) -> None:
        self._answerer = answerer = self.new_answerer()
        try:
            super().open(sink)
            if answerer is not None:
                answerer.await_recogniser()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        super().close()
        answerer, self._answerer = self._answerer, None
        if answerer is not None:
            answerer.close()

    def server_use(self) -> ServerUse:
        """What a connection of this driver needs."""
        return ServerUse(
            id=self.id,
            now_s=self._clock.now_s,
            report=self._outlet.tell,
            limit_s=self._options.listen_limit_s,
            hold_back_s=self.hold_back_s,
            keep=self._keep,
            answerer=self._answerer,
        )


def demand_answerer(recogniser: str, voice: str, answer: str) -> None:
    """Raises PluginError, InputError or VoiceError when the recogniser or the voice is not on this host."""
    if recogniser and not load(Group.RECOGNISERS, recogniser).installed():
        raise InputError(
            f"the packages for the recogniser {recogniser} are not installed",
            remedy="Find the cause: harness check doctor",
        )
    if answer:
        Answerer("", voice, answer)  # raises if the voice is missing
