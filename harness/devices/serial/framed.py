"""The host's side of docs/framing.md: a board's boots, clock, events, commands and sound. No I/O."""

from __future__ import annotations

from collections import deque

from harness.devices.serial.commands import Command, Commands
from harness.devices.serial.event_order import EventOrder, Heard
from harness.devices.serial.injection import FramedInjection
from harness.devices.serial.peer import Tell
from harness.devices.serial.playing import Playing, quantised
from harness.devices.serial.telling import observation
from harness.devices.wire.adpcm import ADPCM_CHUNK, EncodedSound, Encoding, Pcm
from harness.devices.wire.audio_link import Answer
from harness.devices.wire.console import Console
from harness.devices.wire.device_clock import DeviceClock, PingSchedule, Sync
from harness.devices.wire.frames import Decoder, Frame
from harness.devices.wire.messages import (
    EVENTS,
    AudioAck,
    CommandAck,
    Event,
    EventAck,
    Hello,
    HelloRequest,
    Log,
    PayloadError,
    Ping,
    Pong,
    Reset,
    Set,
    StatusEvent,
    Text,
    decode,
    to_frame,
)
from harness.model.observation import ClockFitted, DeviceDescribed, DeviceState, LogLine, Proof, Status, StimulusEnded
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

FIRST_PINGS = 8
SETTLED_PINGS = 30
HELLO_AGAIN_S = 0.5
CLOCK_TOLD_EVERY_S = 30.0
_BATCH_BYTES = 4096
_MOST_ACKS = 256
_MOST_PINGS = 64
_HELD_LIMIT_S = 0.5
_TICK_S = 0.2
_OVERSLEPT_S = 1.0
"""Far more than there is between two ticks of a thread that gets its time."""


class FramedPeer:
    """A board that speaks our framing. first_command: see `Commands`."""

    def __init__(
        self,
        source: str,
        tell: Tell,
        console: Console,
        *,
        encoding: Encoding,
        realtime: bool,
        injects: bool,
        ping_period_s: float,
        answer_limit_s: float,
        first_command: int,
    ) -> None:
        self.clock = DeviceClock()
        self.order = EventOrder()
        self.injection = FramedInjection(source, tell, self.order, realtime=realtime, enabled=injects)
        self.decoder = Decoder()
        self.console = console
        self.hello: Hello | None = None
        self.stale = self.malformed = self.strange = 0
        self._source = source
        self._tell = tell
        self._encoding = encoding
        self._answer_limit_s = answer_limit_s
        self._first_command = first_command
        self._commands = Commands(first_command)
        self._schedule = PingSchedule(ping_period_s)
        self._known = False  # the board's hello of this link has come
        self._pongs = 0  # of this link and boot
        self._acks: deque[bytes] = deque(maxlen=_MOST_ACKS)
        self._asks_hello = self._asks_sync = self._asks_reset = False
        self._asked_hello_s = float("-inf")
        self._pings: dict[int, float] = {}
        self._token = 0
        self._frame_s = float("-inf")
        self._data_s = float("-inf")
        self._clock_told_s = float("-inf")
        self._opened_s = float("inf")
        self._ticked_s = float("inf")

    @property
    def ready(self) -> bool:
        takes_sound = self.hello is not None and self.hello.window > 0
        return (
            self._known
            and self._pongs >= FIRST_PINGS
            and self.order.expected is not None
            and (self.injection.link.ready or not takes_sound)
        )

    @property
    def rate_hz(self) -> int | None:
        hello = self.hello
        return hello.rate_hz if self.injection.enabled and hello is not None and hello.window > 0 else None

    def linked(self, now_s: float) -> None:
        self.decoder = Decoder()
        self._frame_s = now_s
        self._opened_s = min(self._opened_s, now_s)
        self._asks_hello, self._asked_hello_s = True, float("-inf")

    def lost(self, now_s: float) -> None:
        self._known = False
        self._pongs = 0
        self._asks_hello = True
        self._pings.clear()
        self._acks.clear()
        self._commands.fail()
        self.injection.lose(now_s)

    def tick(self, now_s: float, error_s: float) -> str:
        if self.decoder.holds and now_s - self._data_s > _HELD_LIMIT_S:
            self._console(b"".join(one for one in self.decoder.release() if isinstance(one, bytes)), now_s, error_s)
        self._console(b"", now_s, error_s)
        gone = self.order.skip(now_s)
        if gone:
            self._log(f"{gone} of its events are missing before the next one", now_s)
            self._tell_due()
        self.injection.tick(now_s)
        if now_s - self._ticked_s > _OVERSLEPT_S:
            # A silence that we slept through on a busy host, with the answer still unread, is none of the board's.
            self._frame_s += now_s - self._ticked_s
        self._ticked_s = now_s
        silent_s = now_s - self._frame_s
        if self._known and silent_s > self._answer_limit_s:
            return f"the board has not answered for {silent_s:.1f} s; its port is still there"
        return ""

    def received(self, data: bytes, at: Stamp) -> None:
        self._data_s = at.at_s
        for one in self.decoder.feed(data):
            if isinstance(one, bytes):
                self._console(one, at.at_s, at.error_s)
                continue
            self._frame_s = at.at_s
            try:
                self._take(one, at.at_s)
            except PayloadError:
                self.malformed += 1

    def output(self, now_s: float) -> bytes:
        if not self._known:
            if now_s - self._asked_hello_s < HELLO_AGAIN_S:
                return b""
            self._asked_hello_s = now_s
            return to_frame(HelloRequest())
        if self._asks_reset:
            self._asks_reset = False
            # An event of its next boot that comes before that boot's hello may look like one that was told already.
            self._known, self._asked_hello_s = False, now_s
            return to_frame(Reset())
        if self._asks_hello and now_s - self._asked_hello_s >= HELLO_AGAIN_S:
            self._asked_hello_s = now_s
            return to_frame(HelloRequest())
        if self._schedule.wait_s(now_s) <= 0:
            # By itself, so that its time is that of its leaving.
            return self._ping(now_s)
        frames = [*self._acks, self._commands.due(now_s)]
        self._acks.clear()
        size = sum(map(len, frames))
        while size < _BATCH_BYTES and (frame := self.injection.frame(now_s)):
            frames.append(frame)
            size += len(frame)
        return b"".join(frames)

    def wait_s(self, now_s: float) -> float | None:
        if not self._known:
            return max(0.0, self._asked_hello_s + HELLO_AGAIN_S - now_s)
        waits = [_TICK_S, self._schedule.wait_s(now_s)]
        waits += [one for one in (self._commands.wait_s(now_s), self.injection.link.wait_s(now_s)) if one is not None]
        return 0.0 if self._acks else min(waits)

    def prepared(self, waveform: Waveform, rate_hz: int) -> tuple[Pcm, object]:
        samples = quantised(waveform, rate_hz)
        window = self.hello.window if self.hello is not None else 0
        encoding = self._encoding if window >= ADPCM_CHUNK or self._encoding is not Encoding.ADPCM else Encoding.PCM16
        return samples, EncodedSound(samples, encoding)

    def play(self, play_id: str, sound: tuple[Pcm, object], rate_hz: int, now_s: float) -> None:
        samples, encoded = sound
        if not self.ready or rate_hz != self.rate_hz or not isinstance(encoded, EncodedSound):
            self._tell(StimulusEnded(self._source, Stamp(now_s), play_id, complete=False))
            return
        self.injection.play(Playing(play_id, samples, rate_hz), encoded, now_s)

    def stop(self, now_s: float) -> None:
        self.injection.stop(now_s)

    def level_dbfs(self) -> float | None:
        return self.injection.level_dbfs()

    def command(self, message: Text | Set) -> Command:
        return self._commands.add(message)

    def drop(self, command: Command) -> None:
        self._commands.drop(command)

    def reset(self) -> None:
        self._asks_reset = True

    def _ping(self, now_s: float) -> bytes:
        self._token = (self._token + 1) & 0xFFFFFFFF
        while len(self._pings) >= _MOST_PINGS:
            del self._pings[next(iter(self._pings))]
        self._pings[self._token] = now_s
        self._schedule.sent(now_s)
        return to_frame(Ping(self._token))

    def _take(self, frame: Frame, now_s: float) -> None:
        message = decode(frame)
        match message:
            case Hello():
                self._greeted(message, now_s)
            case Pong():
                self._answered(message, now_s)
            case AudioAck(expected, events):
                self._heard(expected, events, now_s)
            case CommandAck(number):
                self._commands.acknowledge(number)
            case Log() if self.clock.fitted:
                self._tell(observation(message, self._source, self.clock, self.injection.link))
            case _ if frame.kind in EVENTS and self._known and self.clock.fitted:
                match self.order.offer(frame, now_s):
                    case Heard.TAKEN:
                        self._acks.append(to_frame(EventAck(frame.seq)))
                        self._tell_due()
                        self._finish(now_s)
                    case Heard.STRANGE:
                        self._wonder()
                    case Heard.LEFT:
                        pass
            case _:
                pass  # an event before we know the board's boot comes again; nothing else is for us

    def _greeted(self, hello: Hello, now_s: float) -> None:
        before, self.hello = self.hello, hello
        if hello.firmware and (before is None or before.firmware != hello.firmware):
            self._tell(DeviceDescribed(self._source, Stamp(now_s), hello.firmware))
        rebooted = before is not None and before.boot != hello.boot
        self._asks_hello = False
        if not rebooted and self._known and not self._asks_sync:
            return
        if rebooted:
            self._tell(Status(self._source, Stamp(now_s), DeviceState.STARTED, f"boot {hello.boot_name}"))
            self.order.start(0)
            self._commands.fail()
            self._commands = Commands(self._first_command)
            self._pings.clear()
            self._pongs = 0
            self._acks.clear()
        self.injection.stop(now_s)
        self.clock.start(hello.boot_name)
        self._schedule.burst()
        self._known, self._asks_sync = True, False
        if hello.window > 0:
            self.injection.link.start(hello.rate_hz, hello.window)
        elif self.order.expected is None:
            self.order.start(0)

    def _answered(self, pong: Pong, now_s: float) -> None:
        sent_s = self._pings.pop(pong.token, None)
        if sent_s is None or not self._known:
            return
        self._schedule.answered()
        match self.clock.ping(sent_s, pong.received_us, pong.sent_us, now_s):
            case Sync.IMPOSSIBLE:
                return
            case Sync.JUMPED:
                self._log("its clock has jumped", now_s)
                self._schedule.burst()
                self._asks_hello = True
                self._clock_told_s = float("-inf")
            case Sync.TAKEN:
                pass
        self._pongs += 1
        every_s = CLOCK_TOLD_EVERY_S if self._pongs > SETTLED_PINGS else CLOCK_TOLD_EVERY_S / 6
        if self._pongs == FIRST_PINGS or (self._pongs > FIRST_PINGS and now_s - self._clock_told_s >= every_s):
            self._tell_clock(now_s)
        if pong.listening:
            self.injection.prove(Proof.HEARTBEAT, now_s)

    def _heard(self, expected: int, events: int, now_s: float) -> None:
        match self.injection.heard(expected, events, now_s):
            case Answer.FOUND:
                if self.order.expected is None:
                    self.stale = events
                    self.order.start(events)
                elif missing := self.order.resume(events):
                    self._log(f"{missing} of its events are missing: it kept no more", now_s)
            case Answer.FOREIGN:
                self._wonder()
            case Answer.ADVANCED | Answer.REPEATED:
                pass
        self._finish(now_s)

    def _finish(self, now_s: float) -> None:
        if self.injection.finish(now_s):
            self._schedule.burst()  # the line is free now: its round trips are short

    def _wonder(self) -> None:
        """Something that this boot cannot have said: it may have restarted."""
        self.strange += 1
        self._asks_hello = self._asks_sync = True

    def _tell_due(self) -> None:
        for frame in self.order.due():
            try:
                event = decode(frame)
            except PayloadError:
                self.malformed += 1
                continue
            if isinstance(event, StatusEvent) and event.state is DeviceState.STARTED:
                continue  # told when its HELLO came, or of before
            if not isinstance(event, Event):
                continue
            seen = observation(event, self._source, self.clock, self.injection.link)
            if seen.at.at_s + seen.at.error_s < self._opened_s:
                self.stale += 1
            else:
                self._tell(seen)

    def _tell_clock(self, now_s: float) -> None:
        fit = self.clock.fit()
        if fit is not None:
            self._clock_told_s = now_s
            at = Stamp(now_s)
            self._tell(ClockFitted(self._source, at, fit.boot, fit.offset_s, fit.skew_ppm, fit.error_s))

    def _console(self, data: bytes, now_s: float, error_s: float) -> None:
        for one in self.console.feed(data, Stamp(now_s, error_s)):
            self._tell(one)

    def _log(self, text: str, now_s: float) -> None:
        self._tell(LogLine(self._source, Stamp(now_s), text))
