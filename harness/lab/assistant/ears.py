"""The assistant's ears: sound in, wake events and recordings of queries out. Samples are the only clock.

    WAITING ─► LISTENING ─┬─ speech, then silence ─► SpokenRequest, and WAITING again
                          └─ nobody speaks ────────► NoRequest, and WAITING again

The wake phrase, or `listen_for_answer`, leads to LISTENING. In MUTED the assistant itself speaks. Then it hears only
the wake phrase, and only with barge-in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from harness.base.ports import SpeechDetector, WakeEngine
from harness.lab.assistant.settings import AssistantSettings
from harness.model.frozen import frozen
from harness.model.stimulus import Waveform
from harness.sound.frames import NoiseFloor, Normaliser

RATE_HZ = 16000
_BEFORE_DETECTION_S = 1.0
"""Sound that a request keeps before the detection of the wake phrase, in seconds: it covers the whole phrase.

With it, the recogniser understands the query better (49 of 65 sentences of poor voices right, 41 without it). Half of
the phrase would become other words.
"""
_BEFORE_SPEECH_S = 0.3
_AFTER_SPEECH_S = 0.2
"""Sound that is kept around speech, in seconds."""
_MIN_SPEECH_S = 0.2
"""Voiced sound from which on somebody has spoken, in seconds."""
_PATIENCE_S = 4.0
"""How long it waits for the query after the wake phrase, in seconds."""
_SAME_UTTERANCE_S = 1.5
"""A detection this soon after another belongs to the same utterance."""
_GUARD_S = 0.2
"""How long it hears nothing after its own voice, in seconds."""
_ABOVE_FLOOR_DB = 6.0
"""Speech is this much louder than the noise."""
_MIN_FLOOR_DBFS = -72.0


@frozen
class PhraseDetection:
    """The wake phrase was detected. score: 0–1; None if the engine gives none."""

    phrase: str
    score: float | None


@dataclass(frozen=True, slots=True, eq=False)
class SpokenRequest:
    """A request was spoken. after_s: time since its end."""

    waveform: Waveform
    after_s: float


@frozen
class NoRequest:
    """The assistant listened, and nobody spoke."""


EarsEvent = PhraseDetection | SpokenRequest | NoRequest


class _Mode(Enum):
    WAITING = auto()
    LISTENING = auto()
    MUTED = auto()


class Ears:
    """The assistant's hearing. It takes 16 kHz samples, and listens after the wake phrase, or `listen_for_answer`."""

    def __init__(self, engine: WakeEngine, detector: SpeechDetector, settings: AssistantSettings) -> None:
        if engine.rate_hz != RATE_HZ or detector.rate_hz != RATE_HZ:
            raise ValueError(f"the ears work at {RATE_HZ} Hz")
        self._engine = engine
        self._detector = detector
        self._settings = settings
        self._frame_samples = detector.frame_samples
        frames_per_s = RATE_HZ // self._frame_samples
        self._floor = NoiseFloor(frames_per_s=frames_per_s)
        self._gain = Normaliser(frames_per_s=frames_per_s)
        self._partial_frame: npt.NDArray[np.int16] = np.zeros(0, np.int16)
        self._recent: deque[npt.NDArray[np.int16]] = deque(maxlen=frames_per_s)
        self._mode = _Mode.WAITING
        self._guard_frames = 0
        self.frames = 0
        """Number of frames that the wake engine has received."""
        self._begin_listening(frames_before=0, patience_s=0.0)  # makes the fields of a request
        self._mode = _Mode.WAITING

    def wait_for_call(self) -> None:
        """Listens for the wake phrase only."""
        self._mode = _Mode.WAITING

    def listen_for_answer(self, patience_s: float | None = None) -> None:
        """Listens without the wake phrase for the answer to a question. patience_s: default is the dialogue time."""
        patience_s = self._settings.dialogue_s if patience_s is None else patience_s
        self._begin_listening(frames_before=0, patience_s=patience_s)

    def mute(self) -> None:
        """Stops listening, except for the wake phrase if barge-in is on."""
        self._mode = _Mode.MUTED

    def unmute(self) -> None:
        """Waits for the wake phrase again, after its own voice has died away."""
        self._mode = _Mode.WAITING
        if not self._settings.barge_in:
            self._guard_frames = self._frames_in(_GUARD_S)
            self._engine.reset()

    def feed(self, samples: npt.NDArray[np.int16]) -> tuple[EarsEvent, ...]:
        """The events within these samples, int16 (n,) at 16 kHz."""
        pending = np.concatenate([self._partial_frame, samples])
        end = len(pending) - len(pending) % self._frame_samples
        events: list[EarsEvent] = []
        for start in range(0, end, self._frame_samples):
            event = self._process_frame(pending[start : start + self._frame_samples])
            if event is not None:
                events.append(event)
        self._partial_frame = pending[end:]
        return tuple(events)

    def _process_frame(self, frame: npt.NDArray[np.int16]) -> EarsEvent | None:
        if self._guard_frames:
            self._guard_frames -= 1
            return None
        if self._mode is _Mode.MUTED and not self._settings.barge_in:
            return None
        voiced = self._is_voiced(frame)
        self._recent.append(frame)
        detections = self._engine.feed(frame)
        self.frames += 1
        if detections and not self._has_just_been_called():
            self._begin_listening(
                frames_before=self._frames_in(_BEFORE_DETECTION_S), patience_s=_PATIENCE_S, called=True
            )
            return PhraseDetection(detections[0].phrase, detections[0].score)
        if self._mode is not _Mode.LISTENING:
            return None
        return self._collect(frame, voiced)

    def _has_just_been_called(self) -> bool:
        """Whether the wake phrase was detected so recently that another detection belongs to the same utterance."""
        is_called = self._mode is _Mode.LISTENING and self._was_called
        return is_called and self._seconds(self._listened_frames) < _SAME_UTTERANCE_S

    def _begin_listening(self, *, frames_before: int, patience_s: float, called: bool = False) -> None:
        """Begins a request.

        - frames_before: number of frames so far that belong to it.
        - called: by the wake phrase.
        """
        self._mode = _Mode.LISTENING
        self._was_called = called
        self._patience_s = patience_s
        self._request_frames = list(self._recent)[len(self._recent) - frames_before :] if frames_before else []
        self._listened_frames = self._voiced_frames = self._silent_frames = 0

    def _collect(self, frame: npt.NDArray[np.int16], voiced: bool) -> EarsEvent | None:
        """Adds a frame to the request. Returns its end: the request, or that nobody spoke; None while it goes on."""
        self._request_frames.append(frame)
        self._listened_frames += 1
        self._silent_frames = 0 if voiced else self._silent_frames + 1
        if voiced:
            self._voiced_frames += 1
        spoke = self._seconds(self._voiced_frames) >= _MIN_SPEECH_S
        if not self._was_called and not self._voiced_frames:
            del self._request_frames[: -self._frames_in(_BEFORE_SPEECH_S)]
        has_ended = self._seconds(self._silent_frames) * 1000 >= self._settings.endpoint_ms
        if spoke and (has_ended or self._seconds(self._listened_frames) >= self._settings.query_max_s):
            self._mode = _Mode.WAITING
            return SpokenRequest(self._speech(), self._seconds(self._silent_frames))
        # A breath or a click is not speech: it neither uses up the patience nor ends the query.
        if not spoke and has_ended and self._seconds(self._listened_frames) >= self._patience_s:
            self._mode = _Mode.WAITING
            return NoRequest()
        return None

    def _speech(self) -> Waveform:
        """The sound of the request, without most of the silence at its end."""
        surplus_frames = max(0, self._silent_frames - self._frames_in(_AFTER_SPEECH_S))
        frames = self._request_frames[: len(self._request_frames) - surplus_frames]
        samples = np.concatenate(frames).astype(np.float32) / np.float32(32768)
        return Waveform(samples, RATE_HZ)

    def _is_voiced(self, frame: npt.NDArray[np.int16]) -> bool:
        """Whether a frame holds speech that is louder than the noise."""
        power = float(np.mean(np.square(frame, dtype=np.float64))) / 32768**2
        level_dbfs = 10 * np.log10(max(power, 1e-12))
        # Silence in the lab may be digital zero, and noise then starts abruptly. Real microphones are never that quiet.
        floor_dbfs = max(self._floor.feed(level_dbfs), _MIN_FLOOR_DBFS)
        gain_db = self._gain.gain_db(level_dbfs, floor_dbfs)
        scaled = np.clip(frame * 10 ** (gain_db / 20), -32768, 32767).astype(np.int16)
        # Called for every frame, since the detector has state. It may take amplified noise for speech.
        return self._detector.is_speech(scaled) and level_dbfs > floor_dbfs + _ABOVE_FLOOR_DB

    def _seconds(self, frames: int) -> float:
        return frames * self._frame_samples / RATE_HZ

    def _frames_in(self, duration_s: float) -> int:
        return round(duration_s * RATE_HZ / self._frame_samples)
