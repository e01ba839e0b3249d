"""The far end of a serial port. No I/O: bytes and times in, observations and bytes to write out.

`FramedPeer` is a board that speaks docs/reference/framing.md, with log lines between frames. `ConsolePeer` is a board
that prints lines; it may accept sound by the dialogue of TensorFlow Lite Micro's test over serial. `peer_for` chooses.

    FramedPeer:   Decoder ──┬─ frames ──► BoardSession ──► outlet
                            └─ text ──► Console ──► HeartbeatThrottle ──► outlet
    ConsolePeer:  lines ──┬─ "!…", if the board accepts sound ──► TflmDialogue
                          └─ others ──► Console ──► HeartbeatThrottle ──► outlet
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Protocol

from harness.base.ports import Clock
from harness.devices.active_play import ActivePlay, to_pcm
from harness.devices.framing.board_messages import LINE, ReceivedMessage
from harness.devices.framing.board_session import BoardSession
from harness.devices.outlet import DriverOutlet
from harness.devices.serial.options import SerialOptions
from harness.devices.serial.port import hold_back, is_pty
from harness.devices.wire.adpcm import Encoding, Pcm
from harness.devices.wire.console import PROOF_EVERY_S, Console, HeartbeatThrottle
from harness.devices.wire.frames import Decoder
from harness.devices.wire.messages import EVENTS, PayloadError, decode, to_frame
from harness.devices.wire.tflm import RATE_HZ, TflmDialogue
from harness.model.bench import AudioDialogue, DeviceProfile
from harness.model.choices import InjectionPace
from harness.model.observation import (
    Intent,
    ListeningProved,
    LogLine,
    Observation,
    Proof,
    StimulusEnded,
    StimulusStarted,
    Transcript,
    Wake,
)
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

# Bytes that may begin a frame are console text if nothing follows so long. Chosen: frames are written without pauses.
_UNFINISHED_FRAME_S = 0.5
# A session numbers its commands from the wall clock. None sends more, so that no later one repeats a number.
_COMMANDS_A_SECOND = 64
# How long a board with log lines may take for its events after it has acknowledged the last sample. Chosen.
SETTLE_S = 0.3
_REALTIME_AHEAD_S = 0.1  # A sound in real time may run ahead so far. Chosen: more than a late wake-up of the thread.
_REALTIME_WAIT_S = 0.005  # Longest wait while a sound is sent in real time: a twentieth of what it may run ahead.
_PLAYING_WAIT_S = 0.05  # Longest wait while any sound is sent. Bytes that arrive end it. This is for deadlines.
_IDLE_WAIT_S = 0.1  # Longest wait while no sound is sent. Chosen.
_MAX_DIALOGUE_LINE_BYTES = 512  # Bytes. A longer line that begins with "!" cannot be an answer of the dialogue.


class BoardPlayer(Protocol):
    """Plays sound to the board. Called under the lock of its peer."""

    @property
    def ready(self) -> bool:
        """Whether everything that a stimulus needs is known."""

    @property
    def rate_hz(self) -> int | None:
        """Rate of the sound that the board accepts; None if it accepts none, or has not reported it yet."""

    def prepare(self, waveform: Waveform) -> Any:
        """The sound in the form that `play` needs; None if the board accepts none. Slow; called without the lock."""

    def play(self, play_id: str, sound: Any, now_s: float) -> None:
        """Begins a sound, and ends an earlier one."""

    def stop(self, now_s: float) -> None:
        """Ends the sound being sent."""

    def level_dbfs(self) -> float | None:
        """RMS level of the last 100 ms sent; None when no sound is being sent."""


class Peer(Protocol):
    """Talks with the board, over all its boots and all openings of its port. Called under one lock.

    The link calls `link_up` when the port is open, then `tick`, `output` and `receive` in turns. It calls `link_lost`
    when the port is gone, and when the board is lost while its port is open. After that either `link_up` follows, or
    the board answers again.
    """

    @property
    def player(self) -> BoardPlayer:
        """What plays sound to the board."""

    def link_up(self, now_s: float) -> None:
        """The port is open, or takes bytes again."""

    def link_lost(self, now_s: float) -> None:
        """The port is gone, or the board does not answer: a sound being sent ends."""

    def tick(self, now_s: float, error_s: float) -> str:
        """Lets time pass. Returns why the board counts as lost; "" if it does not.

        error_s: how late the thread may wake up.
        """

    def receive(self, data: bytes, stamp: Stamp) -> None:
        """Handles bytes that have arrived, and reports the observations."""

    def output(self, now_s: float) -> bytes:
        """The bytes to write now. It is called again only when the port has accepted all of them."""

    def wait_s(self, now_s: float) -> float:
        """Time after which there may be more to write."""


def peer_for(
    id: str,
    options: SerialOptions,
    profile: DeviceProfile | None,
    outlet: DriverOutlet,
    *,
    path: str,
    baud: int,
    clock: Clock,
) -> Peer:
    """The peer that the options or the profile name.

    - path: path of the open port, whose latency timer adds to the errors of times.
    - baud: bit rate of the port.
    """
    hold_back_s, is_stated = hold_back(options, path)
    console = Console(profile, id, baud=None if is_pty(path) else baud, hold_back_s=hold_back_s, measured=is_stated)
    dialogue = options.dialogue(profile)
    realtime = options.pace is InjectionPace.REALTIME
    if not options.is_framed(profile):
        rate_hz = RATE_HZ if dialogue is AudioDialogue.TFLM else None
        return ConsolePeer(id, outlet, console, rate_hz=rate_hz, realtime=realtime)
    board_session = BoardSession(
        id,
        outlet,
        LINE,
        encoding=Encoding[options.encoding.name],
        realtime=realtime,
        injects=dialogue is AudioDialogue.VH,
        ping_period_s=options.ping_period_s,
        answer_limit_s=options.answer_limit_s,
        last_command=int(clock.wall_s() * _COMMANDS_A_SECOND) & 0xFFFFFFFF,
    )
    return FramedPeer(board_session, console, outlet)


class FramedPeer:
    """A board with the harness's framing. session, player: the state of the board, and its counters."""

    def __init__(self, session: BoardSession, console: Console, outlet: DriverOutlet) -> None:
        self.session = self.player = session
        self.decoder = Decoder()
        self.console = console
        self._outlet = outlet
        self._throttle = HeartbeatThrottle()
        self._received_s = float("-inf")

    def link_up(self, now_s: float) -> None:
        self.decoder = Decoder()  # what came before a loss does not continue
        self.session.link_up(now_s)

    def link_lost(self, now_s: float) -> None:
        self._report(self.console.flush(Stamp(now_s)))
        self._throttle.link_lost()
        self.session.await_hello(now_s)  # the port may be open: the session goes on asking for hello

    def tick(self, now_s: float, error_s: float) -> str:
        stamp = Stamp(now_s, error_s)
        if self.decoder.held_bytes and now_s - self._received_s > _UNFINISHED_FRAME_S:
            self._feed_console(self.decoder.release(), stamp)
        self._feed_console(b"", stamp)
        return self.session.tick(now_s)

    def receive(self, data: bytes, stamp: Stamp) -> None:
        self._received_s = stamp.at_s
        for piece in self.decoder.feed(data):
            if isinstance(piece, bytes):
                self._feed_console(piece, stamp)
                continue
            seq = piece.seq if piece.kind in EVENTS else None
            try:
                self.session.receive(ReceivedMessage(decode(piece), seq=seq), stamp)
            except PayloadError:
                if seq is not None:
                    self.session.receive(ReceivedMessage(None, seq=seq), stamp)  # otherwise it would be resent forever

    def output(self, now_s: float) -> bytes:
        return b"".join(to_frame(message, number) for message, number in self.session.due(now_s))

    def wait_s(self, now_s: float) -> float:
        return self.session.wait_s(now_s)

    def _feed_console(self, data: bytes, stamp: Stamp) -> None:
        self._report(self.console.feed(data, stamp))

    def _report(self, observations: Iterable[Observation]) -> None:
        for observation in observations:
            if self._throttle.passes(observation):
                self._outlet.tell(observation)


class ConsolePeer:
    """A board that prints lines. It is ready as soon as its port is open.

    rate_hz: sample rate of the sound in TFLM's dialogue; None if the board does not accept sound over the port.

        play ─► StimulusStarted, with the first `output` ─► all samples acknowledged ─► SETTLE_S later StimulusEnded
                                                        └─ `stop`, a refusal or a lost link: StimulusEnded(False)
    """

    def __init__(
        self, source: str, outlet: DriverOutlet, console: Console, *, rate_hz: int | None, realtime: bool
    ) -> None:
        self.player = self
        self.console = console
        self._source = source
        self._report = outlet.tell
        self.rate_hz = rate_hz
        self._realtime = realtime
        self._dialogue = TflmDialogue()
        self._throttle = HeartbeatThrottle()
        self.ready = False
        self._dialogue_line = b""  # unfinished, begins with "!"
        self._at_line_start = True
        self._playing: ActivePlay | None = None
        self._started_s = 0.0
        self._settle_until_s: float | None = None  # end of SETTLE_S, once the last sample is acknowledged
        self._earlier_sample_count = 0  # of all earlier sounds
        self._listening_reported_s = float("-inf")

    def link_up(self, now_s: float) -> None:
        self.ready = True
        self._dialogue_line = b""
        self._at_line_start = True

    def link_lost(self, now_s: float) -> None:
        self._report_lines(self.console.flush(Stamp(now_s)))  # what comes next is the beginning of a line
        self.ready = False
        self._throttle.link_lost()
        self._end_sound(now_s, complete=False)
        self._dialogue.abandon()

    def tick(self, now_s: float, error_s: float) -> str:
        self._feed_console(b"", Stamp(now_s, error_s))
        self._dialogue.tick(now_s)
        self._report_progress(now_s)
        return ""

    def receive(self, data: bytes, stamp: Stamp) -> None:
        if self.rate_hz is None:
            self._feed_console(data, stamp)
            return
        for piece in data.splitlines(keepends=True):
            self._route_piece(piece, stamp)
        self._report_progress(stamp.at_s)

    def output(self, now_s: float) -> bytes:
        playing = self._playing
        if playing is None or not self.ready:
            return b""
        if not playing.has_started:
            playing.has_started, self._started_s = True, now_s
            self._dialogue.begin(playing.samples, now_s)
            self._report(StimulusStarted(self._source, Stamp(now_s), playing.play_id, self._audio_line_s(0)))
        limit = len(playing.samples)
        if self._realtime:
            limit = min(limit, int((now_s - self._started_s + _REALTIME_AHEAD_S) * playing.rate_hz))
        return self._dialogue.output(limit, now_s)

    def wait_s(self, now_s: float) -> float:
        if self._playing is None:
            return _IDLE_WAIT_S
        return _REALTIME_WAIT_S if self._realtime and self._dialogue.is_active else _PLAYING_WAIT_S

    def prepare(self, waveform: Waveform) -> Pcm | None:
        return to_pcm(waveform, self.rate_hz) if self.rate_hz is not None else None

    def play(self, play_id: str, sound: Pcm, now_s: float) -> None:
        self.stop(now_s)
        if not self.ready:
            self._report(StimulusEnded(self._source, Stamp(now_s), play_id, complete=False))
            return
        self._playing = ActivePlay(play_id, sound, RATE_HZ, 0, len(sound))
        self._settle_until_s = None

    def stop(self, now_s: float) -> None:
        if self._playing is not None:
            self._dialogue.abandon()
            self._end_sound(now_s, complete=False)

    def level_dbfs(self) -> float | None:
        return self._playing.level_dbfs(self._dialogue.sent) if self._playing is not None else None

    def _route_piece(self, piece: bytes, stamp: Stamp) -> None:
        """Passes the dialogue's lines to the dialogue. All others go to the console, as early as possible."""
        ends_line = piece.endswith((b"\n", b"\r"))
        if self._dialogue_line or (self._at_line_start and piece.startswith(b"!")):
            self._dialogue_line += piece
            if ends_line or len(self._dialogue_line) > _MAX_DIALOGUE_LINE_BYTES:
                line, self._dialogue_line = self._dialogue_line, b""
                self._dialogue.receive(line.strip().decode("ascii", "replace"), stamp.at_s)
        else:
            self._feed_console(piece, stamp)
        self._at_line_start = ends_line

    def _feed_console(self, data: bytes, stamp: Stamp) -> None:
        self._report_lines(self.console.feed(data, stamp))

    def _report_lines(self, observations: Iterable[Observation]) -> None:
        for observation in observations:
            if self._throttle.passes(observation):
                self._report(self._add_position(observation))

    def _add_position(self, event: Observation) -> Observation:
        """Adds the position in the sent audio: the last acknowledged sample is the latest possible cause."""
        if not isinstance(event, Wake | Transcript | Intent) or event.audio_s is not None or self.rate_hz is None:
            return event
        sample = self._dialogue.acknowledged if self._playing else 0
        return dataclasses.replace(event, audio_s=self._audio_line_s(sample))

    def _report_progress(self, now_s: float) -> None:
        """Ends a sound whose dialogue has failed, or was complete SETTLE_S ago. Reports that the board listens."""
        playing = self._playing
        if playing is None or not playing.has_started:
            return
        if self._dialogue.failed:
            self._report(LogLine(self._source, Stamp(now_s), f"injection: {self._dialogue.failed}"))
            self._end_sound(now_s, complete=False)
        elif self._dialogue.complete:
            if self._settle_until_s is None:
                self._settle_until_s = now_s + SETTLE_S
            if now_s >= self._settle_until_s:
                self._report_listening(now_s)
                self._end_sound(now_s, complete=True)
        elif self._dialogue.acknowledged and now_s - self._listening_reported_s >= PROOF_EVERY_S:
            self._report_listening(now_s)

    def _report_listening(self, now_s: float) -> None:
        self._listening_reported_s = now_s
        audio_s = self._audio_line_s(self._dialogue.acknowledged)
        self._report(ListeningProved(self._source, Stamp(now_s), Proof.ACKNOWLEDGED, audio_s))

    def _audio_line_s(self, sample: int) -> float:
        """Position of a sample of the current sound in all audio that was sent, in seconds."""
        return (self._earlier_sample_count + sample) / self.rate_hz if self.rate_hz else 0.0

    def _end_sound(self, now_s: float, *, complete: bool) -> None:
        playing, self._playing = self._playing, None
        if playing is None:
            return
        if playing.has_started:
            self._earlier_sample_count += len(playing.samples) if complete else self._dialogue.sent
        self._report(StimulusEnded(self._source, Stamp(now_s), playing.play_id, complete, self._audio_line_s(0)))
