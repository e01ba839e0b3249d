"""A board that speaks docs/framing.md on a line: frames to messages and back, and log lines between. No I/O."""

from __future__ import annotations

from harness.devices.framing.board_session import BoardSession
from harness.devices.framing.board_words import Received
from harness.devices.outlet import DriverOutlet
from harness.devices.wire.adpcm import EncodedSound, Pcm
from harness.devices.wire.console import Console
from harness.devices.wire.frames import Decoder
from harness.devices.wire.messages import EVENTS, PayloadError, decode, to_frame
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

_HELD_LIMIT_S = 0.5


class FramedPeer:
    """session: the board's state, with its counters. malformed: frames whose payload says nothing."""

    def __init__(self, session: BoardSession, console: Console, outlet: DriverOutlet) -> None:
        self.session = session
        self.decoder = Decoder()
        self.console = console
        self.malformed = 0
        self._outlet = outlet
        self._data_s = float("-inf")

    @property
    def ready(self) -> bool:
        return self.session.ready

    @property
    def rate_hz(self) -> int | None:
        return self.session.rate_hz

    def linked(self, now_s: float) -> None:
        self.decoder = Decoder()
        self.session.linked(now_s)

    def lost(self, now_s: float) -> None:
        self.session.lost(now_s)

    def tick(self, now_s: float, error_s: float) -> str:
        at = Stamp(now_s, error_s)
        if self.decoder.holds and now_s - self._data_s > _HELD_LIMIT_S:
            self._read(b"".join(one for one in self.decoder.release() if isinstance(one, bytes)), at)
        self._read(b"", at)
        return self.session.tick(now_s)

    def received(self, data: bytes, at: Stamp) -> None:
        self._data_s = at.at_s
        for one in self.decoder.feed(data):
            if isinstance(one, bytes):
                self._read(one, at)
                continue
            seq = one.seq if one.kind in EVENTS else None
            try:
                self.session.take(Received(decode(one), seq=seq), at)
            except PayloadError:
                self.malformed += 1
                if seq is not None:
                    self.session.take(Received(None, seq=seq), at)  # it would be sent for ever

    def output(self, now_s: float) -> bytes:
        return b"".join(to_frame(message, number) for message, number in self.session.due(now_s))

    def wait_s(self, now_s: float) -> float:
        return self.session.wait_s(now_s)

    def prepared(self, waveform: Waveform) -> tuple[int, Pcm, EncodedSound] | None:
        return self.session.prepared(waveform)

    def play(self, play_id: str, sound: tuple[int, Pcm, EncodedSound], now_s: float) -> None:
        self.session.play(play_id, sound, now_s)

    def stop(self, now_s: float) -> None:
        self.session.stop(now_s)

    def level_dbfs(self) -> float | None:
        return self.session.level_dbfs()

    def _read(self, data: bytes, at: Stamp) -> None:
        for one in self.console.feed(data, at):
            self._outlet.tell(one)
