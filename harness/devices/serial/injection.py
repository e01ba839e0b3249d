"""Sound given to a board in frames, and what is told of it. No I/O."""

from __future__ import annotations

from harness.devices.serial.event_order import EventOrder
from harness.devices.serial.peer import Tell
from harness.devices.serial.playing import Playing
from harness.devices.wire.adpcm import EncodedSound
from harness.devices.wire.audio_link import Answer, AudioLink
from harness.devices.wire.messages import Audio, to_frame
from harness.model.observation import ListeningProved, LogLine, Proof, StimulusEnded, StimulusStarted
from harness.model.time import Stamp

PROOF_EVERY_S = 5.0
NO_PROGRESS_S = 10.0


class FramedInjection:
    """One stimulus at a time. order: of the board's events, since a stimulus is over when they were told."""

    def __init__(self, source: str, tell: Tell, order: EventOrder, *, realtime: bool, enabled: bool) -> None:
        self.link = AudioLink(realtime=realtime)
        self.enabled = enabled
        self._source = source
        self._tell = tell
        self._order = order
        self._playing: Playing | None = None
        self._progress_s = self._proved_s = float("-inf")

    def play(self, playing: Playing, encoded: EncodedSound, now_s: float) -> None:
        self.stop(now_s)
        playing.start, playing.end = self.link.give(encoded)
        self._playing, self._progress_s = playing, now_s
        if playing.start == playing.end:
            self._begin(now_s)
            self._end(now_s, complete=True)

    def stop(self, now_s: float) -> None:
        self._end(now_s, complete=False)

    def lose(self, now_s: float) -> None:
        """The link or the boot is gone."""
        self.stop(now_s)
        self.link.lose()

    def tick(self, now_s: float) -> None:
        if self._playing is not None and now_s - self._progress_s > NO_PROGRESS_S:
            text = f"it answers, but has taken no sound for {NO_PROGRESS_S:g} s"
            self._tell(LogLine(self._source, Stamp(now_s), text))
            self._end(now_s, complete=False, why=text)

    def level_dbfs(self) -> float | None:
        return self._playing.level_dbfs(self.link.sent) if self._playing is not None else None

    def frame(self, now_s: float) -> bytes:
        """The next frame of sound to send now, or b""."""
        chunk = self.link.due(now_s)
        if chunk is None:
            return b""
        playing = self._playing
        if playing is not None and not playing.started and self.link.sent > playing.start:
            self._begin(now_s)
        return to_frame(Audio(chunk.encoding, chunk.first, chunk.data))

    def heard(self, expected: int, events: int, now_s: float) -> Answer:
        """The board acknowledges samples, and names its last event."""
        before = self.link.heard
        answer = self.link.acknowledge(expected, now_s)
        playing = self._playing
        if answer is Answer.ADVANCED:
            self._progress_s = now_s
            if playing is not None and before < playing.end <= self.link.heard:
                playing.events = events  # the caller asks whether it is over
            elif playing is not None:
                self.prove(Proof.ACKNOWLEDGED, now_s)
        return answer

    def finish(self, now_s: float) -> bool:
        """Ends what plays, when its last sample was heard and every event up to there was told."""
        playing = self._playing
        if playing is None or playing.events is None or not self._order.up_to(playing.events):
            return False
        self.prove(Proof.ACKNOWLEDGED, now_s, at_once=True)
        self._end(now_s, complete=True)
        return True

    def prove(self, proof: Proof, now_s: float, *, at_once: bool = False) -> None:
        if at_once or now_s - self._proved_s >= PROOF_EVERY_S:
            self._proved_s = now_s
            audio_s = self.link.line_s(self.link.heard) if self.enabled else None
            self._tell(ListeningProved(self._source, Stamp(now_s), proof, audio_s))

    def _begin(self, now_s: float) -> None:
        playing = self._playing
        assert playing is not None
        playing.started = True
        audio_s = self.link.line_s(playing.start)
        self._tell(StimulusStarted(self._source, Stamp(now_s), playing.play_id, audio_s))

    def _end(self, now_s: float, *, complete: bool, why: str = "") -> None:
        playing, self._playing = self._playing, None
        if playing is None:
            return
        end = playing.end if complete else max(playing.start, min(self.link.cut(), playing.end))
        audio_s = self.link.line_s(end)
        self._tell(StimulusEnded(self._source, Stamp(now_s), playing.play_id, complete, audio_s, why))
