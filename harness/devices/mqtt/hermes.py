"""Sound for a device that speaks Hermes (Rhasspy, Snips): as its microphone's frames, or through its loudspeaker.

    HermesMicrophone:  play ──► its thread ── audioFrame, every 30 ms ──► broker ──► the site's services.
                       receive ◄── audioFrame, its own or another microphone's ◄──┘.
    HermesSpeaker:     play ── playBytes ──► broker ──► device ── playFinished ──► receive.

Threads: `play` and `stop` run in the caller's, `receive` in the MQTT client's. All share the outlet's lock.
"""

from __future__ import annotations

import io
import threading
import zlib
from collections import deque
from collections.abc import Callable

import numpy as np
import soundfile

from harness.base import threads
from harness.base.ports import Surroundings
from harness.devices.active_play import ActivePlay, to_pcm
from harness.devices.outlet import DriverOutlet
from harness.devices.wire.lines import MappingError
from harness.devices.wire.mappings import parse_json, resolve_pointer
from harness.model.errors import DeviceError
from harness.model.numbers import seconds
from harness.model.observation import StimulusEnded, StimulusStarted
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

PLAY_TOPIC = "hermes/audioServer/{device}/playBytes/{id}"
FRAME_TOPIC = "hermes/audioServer/{device}/audioFrame"
FRAME_S = 0.03
"""Length of a frame in seconds, which the speech detectors of Hermes services process at a time."""
OWN_FRAMES_S = 5.0  # Latest return of the harness's own frame from the broker. Chosen.
FOREIGN_QUIET_S = 2.0
"""How long after its last frame another microphone still counts as feeding the site, in s. Chosen: it sends constantly.
"""
SILENCE_AFTER_S = 30.0
"""Silence that a site hears after a stimulus, in s: longer than its services listen for the end of a query."""
MAX_FRAME_DELAY_S = 1.0
"""A sound ends when its frames are later than this, in s. Chosen: its services would end the query in such a gap."""
_FRAME_ERROR_S = 0.005  # Chosen: from the due time of a frame to its publication, beside how late the thread woke.
_DEFAULT_RATE_HZ = 16000  # What Hermes services expect.
_FINISH_WAIT_S = 5.0  # How much longer than the sound the harness waits for `playFinished`. Chosen.
_BEGIN_ERROR_S = 0.25
"""How long a device may take from the message to its first sample; a longer delay is reported. Chosen."""


Publish = Callable[[str, bytes, int], None]
"""Publishes a message: topic, payload, QoS."""


class HermesSound:
    """Sends sound to a Hermes device. topics: the topics to which the harness subscribes."""

    topics: tuple[str, ...]

    def __init__(
        self, id: str, default_topic: str, surroundings: Surroundings, outlet: DriverOutlet, publish: Publish
    ) -> None:
        self._id = id
        audio = surroundings.profile.audio if surroundings.profile is not None else None
        self._rate_hz = audio.rate_hz if audio is not None else _DEFAULT_RATE_HZ
        self._topic = (audio.topic if audio is not None else "") or default_topic
        self._clock = surroundings.clock
        self._outlet = outlet
        self._publish = publish
        self._playing: ActivePlay | None = None

    def open(self) -> None:
        """Starts to send what must be sent between sounds, if anything."""

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Begins a sound, and returns at once. Raises DeviceError while another one is playing."""
        raise NotImplementedError

    def receive(self, topic: str, payload: bytes, stamp: Stamp) -> None:
        """Handles a message on one of `topics`."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ends the sound. Hermes cannot stop what a device plays itself, so the device may continue."""
        with self._outlet.lock:
            self._end(self._stamp_now(), complete=False)

    def link_down(self) -> None:
        """The broker is gone: a sound that is playing ends incomplete."""
        with self._outlet.lock:
            self._end(self._stamp_now(), complete=False, why="the link to the broker is lost")

    def close(self) -> None:
        """Ends the threads. A sound that is playing ends without StimulusEnded."""
        with self._outlet.lock:
            self._playing = None

    def level_dbfs(self) -> float | None:
        """RMS level of the last 100 ms; None when no sound is playing."""
        playing = self._playing
        return None if playing is None else playing.level_dbfs(self._position())

    def _position(self) -> int:
        """Number of the sample that plays now."""
        raise NotImplementedError

    def _stamp_now(self) -> Stamp:
        return Stamp(self._clock.now_s())

    def _end(self, stamp: Stamp, *, complete: bool, why: str = "") -> None:
        """Reports the end of the sound that is playing, if any. Called under the outlet's lock."""
        playing, self._playing = self._playing, None
        if playing is not None:
            self._outlet.tell(StimulusEnded(self._id, stamp, playing.play_id, complete, why=why))


class HermesMicrophone(HermesSound):
    """Replaces the microphone of a site: publishes one WAV per frame, in real time, with silence between stimuli.

    It sends from the first stimulus until SILENCE_AFTER_S after the last, so that a site that should hear a loudspeaker
    keeps its own microphone. A frame is published when its last sample would have been recorded. The device reports no
    positions in the sound. Nothing is played while another microphone feeds the site: its frames would be mixed in.
    """

    def __init__(self, id: str, site: str, surroundings: Surroundings, outlet: DriverOutlet, publish: Publish) -> None:
        super().__init__(id, FRAME_TOPIC, surroundings, outlet, publish)
        self._topic = self._topic.replace("{device}", site)
        self.topics = (self._topic,)
        self._foreign_reason = f"another microphone feeds {self._topic}"
        self._frame_samples = round(FRAME_S * self._rate_hz)
        self._published_samples = 0  # of the sound that plays
        self._own_checksums: deque[int] = deque(maxlen=round(OWN_FRAMES_S / FRAME_S))
        self._foreign_s = float("-inf")  # last frame of another microphone
        self._foreign_reported = False
        self._sends_until_s = float("-inf")
        self._closing = threads.event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        self._closing.clear()
        self._thread = threads.thread(self._run, name=f"{self._id}-hermes")
        self._thread.start()

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Raises DeviceError while a sound is being sent, or another microphone feeds the site."""
        samples = to_pcm(waveform, self._rate_hz)
        with self._outlet.lock:
            if self._playing is not None:
                raise DeviceError(
                    f"{self._id} is already receiving {self._playing.play_id}", remedy="Stop the current sound first"
                )
            if self._clock.now_s() - self._foreign_s < FOREIGN_QUIET_S:
                raise DeviceError(f"{self._id}: {self._foreign_reason}", remedy="Switch off the site's own microphone")
            self._playing = ActivePlay(play_id, samples, self._rate_hz, 0, len(samples))
            self._published_samples = 0
            self._sends_until_s = self._clock.now_s() + SILENCE_AFTER_S

    def receive(self, topic: str, payload: bytes, stamp: Stamp) -> None:
        """Handles a frame from the broker, which also returns the harness's own. A foreign one ends the sound."""
        if zlib.crc32(payload) in self._own_checksums:
            return
        with self._outlet.lock:
            self._foreign_s = stamp.at_s
            if not self._foreign_reported and stamp.at_s < self._sends_until_s:
                self._foreign_reported = True
                self._outlet.remark(self._foreign_reason)
            self._end(stamp, complete=False, why=self._foreign_reason)

    def close(self) -> None:
        super().close()
        self._closing.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(1.0)

    def _position(self) -> int:
        return self._published_samples

    def _run(self) -> None:
        """Publishes a frame each FRAME_S until closed. After a stall of the host, frames go on from now."""
        due_s = self._clock.now_s() + FRAME_S
        while not self._closing.wait(self._clock.real_s(max(0.0, due_s - self._clock.now_s()))):
            late_s = max(0.0, self._clock.now_s() - due_s)
            if late_s > MAX_FRAME_DELAY_S:  # the host stood still, so these samples were never sent
                with self._outlet.lock:
                    why = f"its frames were {seconds(late_s)} late"
                    self._end(self._stamp_now(), complete=False, why=why)
                due_s = self._clock.now_s()
            self._publish_frame(due_s, late_s)
            due_s += FRAME_S

    def _publish_frame(self, due_s: float, late_s: float) -> None:
        """Publishes the frame whose last sample is due at due_s."""
        with self._outlet.lock:
            if not self._outlet.link_is_up:  # such as a service that shows no sign of life: the broker is still there
                self._end(self._stamp_now(), complete=False, why="the link is lost")
                return
            playing = self._playing
            if playing is None and due_s > self._sends_until_s:
                return
            frame = np.zeros(self._frame_samples, np.int16)
            if playing is not None:
                self._sends_until_s = due_s + SILENCE_AFTER_S
                start = self._published_samples
                part = playing.samples[start : start + self._frame_samples]
                frame[: len(part)] = part
                if start == 0:
                    began = Stamp(due_s - FRAME_S, late_s + _FRAME_ERROR_S)
                    self._outlet.tell(StimulusStarted(self._id, began, playing.play_id))
                self._published_samples += len(part)
            wav = io.BytesIO()
            soundfile.write(wav, frame, self._rate_hz, format="WAV", subtype="PCM_16")
            self._own_checksums.append(zlib.crc32(wav.getvalue()))
            self._publish(self._topic, wav.getvalue(), 0)
            if playing is not None and self._published_samples >= playing.end:
                self._end(Stamp(due_s, late_s + _FRAME_ERROR_S), complete=True)


class HermesSpeaker(HermesSound):
    """Plays through the device: one WAV at a time by `playBytes`, its end by `playFinished`.

    The device plays at its own pace, and reports no positions in the sound.
    """

    def __init__(self, id: str, site: str, surroundings: Surroundings, outlet: DriverOutlet, publish: Publish) -> None:
        super().__init__(id, PLAY_TOPIC, surroundings, outlet, publish)
        self._site = site
        self.topics = (f"hermes/audioServer/{site}/playFinished",)
        self._play_began_s = 0.0
        self._timer: threads.DelayedCall | None = None

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Sends the whole sound to the device. Raises DeviceError while a sound is playing."""
        samples = to_pcm(waveform, self._rate_hz)
        wav = io.BytesIO()
        soundfile.write(wav, samples, self._rate_hz, format="WAV", subtype="PCM_16")
        with self._outlet.lock:
            if self._playing is not None:
                raise DeviceError(
                    f"{self._id} is already playing {self._playing.play_id}", remedy="Stop the current sound first"
                )
            self._playing = ActivePlay(play_id, samples, self._rate_hz, 0, len(samples), has_started=True)
            self._play_began_s = self._clock.now_s()
            self._publish(self._topic.replace("{device}", self._site).replace("{id}", play_id), wav.getvalue(), 1)
            overdue_after_s = self._clock.real_s(waveform.duration_s + _FINISH_WAIT_S)
            self._timer = threads.DelayedCall(overdue_after_s, self._end_overdue, play_id, name=f"{self._id}-hermes")
            self._timer.start()
            self._outlet.tell(StimulusStarted(self._id, Stamp(self._play_began_s, _BEGIN_ERROR_S), play_id))

    def receive(self, topic: str, payload: bytes, stamp: Stamp) -> None:
        """Handles a `playFinished`, which ends the sound; those of other sounds are ignored."""
        try:
            play_id = resolve_pointer(parse_json(payload), "/id")
        except MappingError as error:
            self._outlet.remark(f"playFinished: {error}")
            return
        with self._outlet.lock:
            playing = self._playing
            if playing is None or play_id != playing.play_id:
                return
            delay_s = stamp.at_s - self._play_began_s - len(playing.samples) / playing.rate_hz
            if delay_s < -_BEGIN_ERROR_S:
                why = f"the device finished {seconds(-delay_s)} too early"
                self._outlet.remark(f"{play_id}: {why}")
                self._end(stamp, complete=False, why=why)
                return
            if delay_s > _BEGIN_ERROR_S:
                self._outlet.remark(f"{play_id} may have started up to {seconds(delay_s)} late")
            self._end(stamp, complete=True)

    def close(self) -> None:
        super().close()
        self._cancel_timer()

    def _position(self) -> int:
        return round((self._clock.now_s() - self._play_began_s) * self._rate_hz)

    def _end_overdue(self, play_id: str) -> None:
        """Ends a sound whose `playFinished` has not arrived in time. Runs in the timer's thread."""
        with self._outlet.lock:
            if self._playing is not None and self._playing.play_id == play_id:
                why = f"no {self.topics[0]} arrived, so it may not have been played"
                self._outlet.remark(f"{play_id}: {why}")
                self._end(self._stamp_now(), complete=False, why=why)

    def _end(self, stamp: Stamp, *, complete: bool, why: str = "") -> None:
        self._cancel_timer()
        super()._end(stamp, complete=complete, why=why)

    def _cancel_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
