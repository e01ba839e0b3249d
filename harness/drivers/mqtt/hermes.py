"""Sound for a device that speaks Hermes (Rhasspy, Snips): WAV files by `playBytes`, their ends by `playFinished`."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable

import soundfile

from harness.drivers.mqtt.injection import Injection, at_rate, pcm16
from harness.drivers.mqtt.outlet import Outlet
from harness.model.errors import DeviceError
from harness.model.observation import StimulusEnded, StimulusStarted
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.ports import Surroundings
from harness.wire.mappings import Unmapped, parse, pointed

PLAY_TOPIC = "hermes/audioServer/{device}/playBytes/{id}"
_RATE_HZ = 16000
_LATE_S = 5.0
_BEGIN_ERROR_S = 0.25
"""How long a device may take from the message to its first sample; what is later is told."""


class HermesSound:
    """One WAV after the other. The device plays at its own pace and tells no positions: there is no audio line."""

    def __init__(
        self, id: str, site: str, surroundings: Surroundings, outlet: Outlet, publish: Callable[[str, bytes, int], None]
    ) -> None:
        self._id = id
        self._site = site
        audio = surroundings.profile.audio if surroundings.profile is not None else None
        self._rate_hz = audio.rate_hz if audio is not None else _RATE_HZ
        self._topic = (audio.topic if audio is not None else "") or PLAY_TOPIC
        self._now_s = surroundings.clock.now_s
        self._real_s = surroundings.clock.real_s
        self._outlet = outlet
        self._publish = publish
        self._playing: Injection | None = None
        self._began_s = 0.0
        self._timer: threading.Timer | None = None

    @property
    def finished_topic(self) -> str:
        return f"hermes/audioServer/{self._site}/playFinished"

    def play(self, play_id: str, waveform: Waveform) -> None:
        """DeviceError while something is being played."""
        samples = at_rate(waveform, self._rate_hz)
        wav = io.BytesIO()
        soundfile.write(wav, pcm16(samples), self._rate_hz, format="WAV", subtype="PCM_16")
        with self._outlet.lock:
            if self._playing is not None:
                raise DeviceError(f"{self._id} is playing {self._playing.play_id} already", remedy="Stop it first")
            self._playing = Injection(play_id, samples, self._rate_hz, 0, len(samples), started=True)
            self._began_s = self._now_s()
            self._publish(self._topic.format(device=self._site, id=play_id), wav.getvalue(), 1)
            self._timer = threading.Timer(self._real_s(waveform.duration_s + _LATE_S), self._overdue, (play_id,))
            self._timer.name, self._timer.daemon = f"{self._id}-hermes", True
            self._timer.start()
            self._outlet.tell(StimulusStarted(self._id, Stamp(self._began_s, _BEGIN_ERROR_S), play_id))

    def finished(self, payload: bytes, at: Stamp) -> None:
        """A `playFinished` came; those of others are nothing to us."""
        try:
            play_id = pointed(parse(payload), "/id")
        except Unmapped as error:
            self._outlet.remark(f"playFinished: {error}")
            return
        with self._outlet.lock:
            playing = self._playing
            if playing is None or play_id != playing.play_id:
                return
            delay_s = at.at_s - self._began_s - len(playing.samples) / playing.rate_hz
            if delay_s < -_BEGIN_ERROR_S:
                self._outlet.remark(f"{play_id} was finished {-delay_s:.2f} s too early: it was cut off")
                self._end(at, complete=False)
                return
            if delay_s > _BEGIN_ERROR_S:
                self._outlet.remark(f"{play_id} was played up to {delay_s:.2f} s later than it was sent")
            self._end(at, complete=True)

    def stop(self) -> None:
        """Hermes cannot break a sound off: for us it is over."""
        with self._outlet.lock:
            self._end(Stamp(self._now_s()), complete=False)

    def link_down(self) -> None:
        self.stop()

    def close(self) -> None:
        with self._outlet.lock:
            self._playing = None
            self._cancel()

    def level_dbfs(self) -> float | None:
        playing = self._playing
        if playing is None:
            return None
        return playing.level_dbfs(round((self._now_s() - self._began_s) * playing.rate_hz))

    def _overdue(self, play_id: str) -> None:
        with self._outlet.lock:
            if self._playing is not None and self._playing.play_id == play_id:
                self._outlet.remark(f"no {self.finished_topic} for {play_id}: nobody says that it was played")
                self._end(Stamp(self._now_s()), complete=False)

    def _end(self, at: Stamp, *, complete: bool) -> None:
        playing, self._playing = self._playing, None
        self._cancel()
        if playing is not None:
            self._outlet.tell(StimulusEnded(self._id, at, playing.play_id, complete))

    def _cancel(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
