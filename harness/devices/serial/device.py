"""A board on a serial port: one thread reads, stamps and writes, and reopens the port when it is lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import serial

from harness.base import threads
from harness.base.host_check import Check
from harness.base.ports import Sink, Surroundings
from harness.devices.declared import Abilities, About
from harness.devices.device_sources import CHUNK_BYTES, HELD_BYTES, DeviceOutputQueue, now_heard
from harness.devices.framing.board_messages import LINE
from harness.devices.framing.board_session import BoardSession
from harness.devices.outlet import DriverOutlet
from harness.devices.serial.options import DEFAULT_HOLD_BACK_MS, SerialOptions
from harness.devices.serial.peers import RATE_HZ, ConsolePeer, FramedPeer
from harness.devices.serial.port import (
    KEPT_BYTES,
    Port,
    PortLost,
    SerialLine,
    find,
    hold_back_s,
    is_pty,
    no_answer,
    open_port,
    ports,
)
from harness.devices.wire.adpcm import Encoding
from harness.devices.wire.console import RATES, Console
from harness.devices.wire.lateness import Lateness
from harness.devices.wire.messages import Set, SetKey, TextCommand
from harness.model.bench import AudioDialogue, DeviceProfile
from harness.model.choices import InjectionPace
from harness.model.errors import DeviceError
from harness.model.numbers import exact, seconds
from harness.model.observation import DeviceDescribed
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

DEFAULT_BAUD = 115200
OPEN_LIMIT_S = 5.0
CLOSE_LIMIT_S = 1.5
COMMAND_LIMIT_S = 5.0
_BACK_OFF_S = (0.1, 2.0)
_WAIT_S = 0.2
_TICK_S = 0.05
_COMMANDS_A_SECOND = 64
_REOPEN_S = 1.0
_PORT = "port"
_JOIN_S = 2.0


Peer = FramedPeer | ConsolePeer
"""Talks with the board, over all its boots and all openings of its port. Called under one lock."""


class SerialDevice:
    """Observes the board, and injects stimuli if the board accepts sound over the port.

    A lost port gives LinkLost, and so does a framed board that stops answering. LinkBack follows when everything
    that a stimulus needs is known again.
    """

    Options: ClassVar[type] = SerialOptions

    def __init__(self, id: str, options: SerialOptions, surroundings: Surroundings) -> None:
        self.id = id
        self._options = options
        self._clock = surroundings.clock
        self._profile = surroundings.profile
        self._baud = options.baud or (self._profile.console.baud if self._profile is not None else DEFAULT_BAUD)
        self._outlet = DriverOutlet(id, surroundings)
        self._lock = self._outlet.lock
        self._changed = threads.condition(self._lock)
        self._thread: threading.Thread | None = None
        self._line: SerialLine | None = None
        self._port = Port("")
        self._pending = self._first = b""
        self._stuck_since_s: float | None = None
        self._closing = False
        self._late = Lateness()
        self._ticked_s = float("-inf")
        self._bell: threads.Bell | None = None
        self.received_bytes = self.sent_bytes = 0
        self.peer: Peer = self._new_peer("")

    @property
    def framed(self) -> FramedPeer | None:
        """The board's state and counters by the harness's framing; None for a board that prints log lines only."""
        return self.peer if isinstance(self.peer, FramedPeer) else None

    @staticmethod
    def abilities(options: SerialOptions, profile: DeviceProfile | None) -> Abilities:
        """Boards with the harness's framing have all abilities; others may accept sound by TFLM's dialogue."""
        framed = options.framed(profile)
        return Abilities(options.dialogue(profile) in (AudioDialogue.VH, AudioDialogue.TFLM), framed, framed)

    @staticmethod
    def source(options: SerialOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> SerialSource:
        """The bytes of the port."""
        return SerialSource(options, options.baud or profile.console.baud)

    @staticmethod
    def host_checks(named: Sequence[tuple[str, SerialOptions]]) -> Iterator[Check]:
        """Checks each port of this host, and each named one."""
        return ports(named)

    @staticmethod
    def far_end(options: SerialOptions, id: str) -> str:
        """The port, or the adapter."""
        return options.port or options.usb

    def about(self) -> About:
        """What the board's hello reports; for a board with log lines only the rate of its sound."""
        framed, rate_hz = self.framed, self.peer.rate_hz
        hello = framed.session.hello if framed is not None else None
        if framed is None or hello is None:
            return About(rate_hz=rate_hz)
        return About(hello.firmware, hello.wake_phrases, rate_hz, framed.session.lost_events)

    @staticmethod
    def demand_host(options: SerialOptions) -> None:
        """DeviceError when the port is missing."""
        find(options)

    def connect(self, usb_serial: str = "") -> tuple[Port, SerialLine]:
        """Finds and opens the port; DeviceError when that fails. usb_serial: of the adapter used so far."""
        port = find(self._options, usb_serial)
        return port, SerialLine(port.path, self._baud)

    def open(self, sink: Sink) -> None:
        """Returns when the board has answered and its clock is known; DeviceError if not within 5 s."""
        self._port, self._line = self.connect()
        self.peer = self._new_peer(self._port.path)  # after the setup of the port, which sets its latency timer
        self._closing = False
        self._outlet.open(sink)
        self._pending, self._stuck_since_s = b"", None
        self._bell = bell = threads.bell()
        self.peer.linked(self._clock.now_s())
        self._thread = threads.thread(self._run, bell, name=f"serial {self.id}")
        self._thread.start()
        if self._port.usb_serial:
            self._outlet.tell(DeviceDescribed(self.id, Stamp(self._clock.now_s()), serial=self._port.usb_serial))
        with self._lock:
            ready = self._changed.wait_for(lambda: self.peer.ready or not self._outlet.linked, OPEN_LIMIT_S)
            ready = ready and self._outlet.linked
        if not ready:
            seen, remedy = no_answer(self._first, self.received_bytes)
            self.close()
            raise DeviceError(
                f"{self.id}: the board at {self._port.path} does not answer in the harness's framing: {seen}",
                remedy=remedy,
            )

    def close(self) -> None:
        """Ends the thread and releases the port, in any state."""
        self._closing = True
        self._outlet.close()
        self._wake_thread()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(CLOSE_LIMIT_S)
        line, self._line = self._line, None
        if line is not None:
            line.close()
        bell, self._bell = self._bell, None
        if bell is not None and (thread is None or not thread.is_alive()):
            bell.close()

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Sends the sound to the board; DeviceError when it accepts none over its port, or is not open."""
        if self._thread is None:
            raise DeviceError(f"{self.id} is not open")
        if not self.abilities(self._options, self._profile).injects:
            raise DeviceError(
                f"{self.id} does not accept sound over its port", remedy="Use a loudspeaker, or set `injection`"
            )
        sound: Any = self.peer.prepared(waveform)  # slow: without the lock
        if sound is None:
            raise DeviceError(f"the board {self.id} reports that it does not accept sound", remedy="Use a loudspeaker")
        with self._lock:
            self.peer.play(play_id, sound, self._clock.now_s())
        self._wake_thread()

    def stop(self) -> None:
        """Ends the sound being sent; StimulusEnded(complete=False) follows."""
        with self._lock:
            self.peer.stop(self._clock.now_s())
        self._wake_thread()

    def level_dbfs(self) -> float | None:
        """RMS of the last 100 ms sent; None when no sound is being sent."""
        with self._lock:
            return self.peer.level_dbfs()

    def say(self, text: str) -> None:
        """Sends a query as text; returns when the board has acknowledged it. DeviceError if not within 5 s."""
        self._command(TextCommand(text))

    def set_operating_point(self, value: int) -> None:
        """Sets the sensitivity of its wake word, 0–100; returns and raises like `say`."""
        if not 0 <= value <= 100:
            raise DeviceError(f"an operating point must be 0 to 100, not {value}")
        self._command(Set(SetKey.OPERATING_POINT, value))

    def restart(self) -> None:
        """Asks the board to reset itself; Status(STARTED) follows."""
        with self._lock:
            self._session().reset()
        self._wake_thread()

    def _new_peer(self, path: str) -> Peer:
        options = self._options
        stated_s = options.hold_back_ms / 1000
        found_s = hold_back_s(path) if options.hold_back_ms == DEFAULT_HOLD_BACK_MS else stated_s
        console = Console(
            self._profile,
            self.id,
            baud=None if is_pty(path) else self._baud,
            hold_back_s=stated_s if found_s is None else found_s,
            measured=found_s is not None,
        )
        dialogue = options.dialogue(self._profile)
        realtime = options.pace is InjectionPace.REALTIME
        if not options.framed(self._profile):
            rate_hz = RATE_HZ if dialogue is AudioDialogue.TFLM else None
            return ConsolePeer(self.id, self._outlet, console, rate_hz=rate_hz, realtime=realtime)
        session = BoardSession(
            self.id,
            self._outlet,
            LINE,
            encoding=Encoding[options.encoding.name],
            realtime=realtime,
            injects=dialogue is AudioDialogue.VH,
            ping_period_s=options.ping_period_s,
            answer_limit_s=options.answer_limit_s,
            last_command=int(self._clock.wall_s() * _COMMANDS_A_SECOND) & 0xFFFFFFFF,
        )
        return FramedPeer(session, console, self._outlet)

    def _session(self) -> BoardSession:
        if not isinstance(self.peer, FramedPeer):
            raise DeviceError(
                f"{self.id} does not accept commands", remedy="Only boards with `framing: vh` accept commands"
            )
        return self.peer.session

    def _command(self, message: TextCommand | Set) -> None:
        with self._lock:
            session = self._session()
            if self._thread is None or not self._outlet.linked:
                raise DeviceError(f"{self.id} cannot be reached", remedy="Wait until its link is back")
            command = session.command(message)
        self._wake_thread()
        if not command.done.wait(COMMAND_LIMIT_S):
            with self._lock:
                session.drop(command)
        if not command.acknowledged:
            raise DeviceError(
                f"{self.id} has not acknowledged {message}", remedy="Check whether the board restarted or was lost"
            )

    def _wake_thread(self) -> None:
        if (bell := self._bell) is not None:
            bell.ring()

    def _run(self, bell: threads.Bell) -> None:
        with self._outlet.reports_errors():
            self._serve(bell)

    def _serve(self, bell: threads.Bell) -> None:
        back_off_s, opened_s = _BACK_OFF_S[0], self._clock.now_s()
        while not self._is_over(bell):
            if self._line is None:
                bell.wait(None, back_off_s)
                back_off_s = min(back_off_s * 2, _BACK_OFF_S[1])
                if not self._is_over(bell) and self._reopen(bell):
                    opened_s = self._clock.now_s()
                continue
            try:
                self._turn(self._line, bell)
            except PortLost as error:
                if self._is_over(bell):
                    return
                with self._lock:
                    line, self._line, self._pending = self._line, None, b""
                if line is not None:
                    line.close()
                self._lose(error.what)
                if self._clock.now_s() - opened_s > _BACK_OFF_S[1]:
                    back_off_s = _BACK_OFF_S[0]

    def _is_over(self, bell: threads.Bell) -> bool:
        """Whether the driver was closed since this thread began, also if it was opened again."""
        return self._closing or self._bell is not bell

    def _turn(self, line: SerialLine, bell: threads.Bell) -> None:
        """Writes what is due, waits for the next event, reads what has arrived."""
        with self._lock:
            now_s = self._clock.now_s()
            if now_s - self._ticked_s >= _TICK_S:
                self._ticked_s = now_s
                if why := self.peer.tick(now_s, self._late.seconds):
                    self._lose(why)
            if not self._pending:
                self._pending = self.peer.output(now_s)
            wait_s = 0.0 if self._pending else self.peer.wait_s(now_s)
        if self._pending:
            self._write(line)
        blocked = bool(self._pending)
        wait_s = _WAIT_S if blocked else min(wait_s, _WAIT_S)
        before_s = self._clock.now_s()
        readable, writable = bell.wait(line, wait_s, writes=blocked)
        waited_s = self._clock.now_s() - before_s
        if wait_s > 0 and not readable and not writable:
            self._late.woke(waited_s, wait_s)
        if readable:
            self._read(line, self._late.found(waited_s, wait_s))

    def _read(self, line: SerialLine, error_s: float) -> None:
        data = line.read()
        now_s = self._clock.now_s()
        if not data:
            return
        self.received_bytes += len(data)
        self._first += data[: KEPT_BYTES - len(self._first)]
        with self._lock:
            self.peer.received(data, Stamp(now_s, error_s))
            if self.peer.ready:
                self._changed.notify_all()
                self._outlet.back(_PORT)

    def _write(self, line: SerialLine) -> None:
        taken = line.write(self._pending)
        self._pending = self._pending[taken:]
        self.sent_bytes += taken
        now_s = self._clock.now_s()
        if taken:
            self._stuck_since_s = None
        elif self._stuck_since_s is None:
            self._stuck_since_s = now_s
        elif now_s - self._stuck_since_s > self._options.write_limit_s and self._outlet.linked:
            stuck_s = now_s - self._stuck_since_s
            self._lose(f"the board has accepted no bytes for {seconds(stuck_s)}; its port is still there")

    def _reopen(self, bell: threads.Bell) -> bool:
        try:
            self._port, line = self.connect(self._port.usb_serial)
        except DeviceError:
            return False  # not back yet; the next try may find it
        with self._lock:
            if not self._is_over(bell):
                self._line, self._pending, self._stuck_since_s = line, b"", None
                self.peer.linked(self._clock.now_s())
                if self.peer.ready:
                    self._outlet.back(_PORT)
                return True
        line.close()  # a bridge may have taken longer to connect than `close` waits
        return False

    def _lose(self, reason: str) -> None:
        with self._lock:
            self._outlet.lose(_PORT, reason)
            self._changed.notify_all()
            self.peer.lost(self._clock.now_s())


class SerialSource:
    """A port, read for the monitor and reopened when it was lost. Also accepts pyserial's URLs (rfc2217://…)."""

    live = True
    ended = False

    def __init__(self, options: SerialOptions, baud: int) -> None:
        self.baud = baud
        self.queue = DeviceOutputQueue()
        self.trouble = ""
        self._options = options
        self._path = find(options).path
        found_s = hold_back_s(self._path)
        self.hold_back_s = DEFAULT_HOLD_BACK_MS / 1000 if found_s is None else found_s
        self.name = f"{self._path} at {baud}"
        self._line: serial.SerialBase | None = None
        self._stop = threads.event()
        self._thread = threads.thread(self._run, name="monitor-serial")

    def open(self) -> None:
        """DeviceError when the port cannot be opened."""
        self._line = self._opened()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        line = self._line
        if line is not None and hasattr(line, "cancel_read"):
            with contextlib.suppress(OSError, TypeError, AttributeError):
                line.cancel_read()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)

    def at_other_rates(self, seconds: float) -> Iterator[tuple[int, bytes | DeviceError]]:
        for rate in (other_rate for other_rate in RATES if other_rate != self.baud):
            source = SerialSource(replace(self._options, baud=rate), rate)
            try:
                source.open()
            except DeviceError as error:
                yield rate, error
                continue
            threads.sleep(seconds)
            source.close()
            yield rate, b"".join(piece.data for piece in source.queue.take(HELD_BYTES))

    def _opened(self) -> serial.SerialBase:
        if "://" not in self._path:
            return open_port(self._path, self.baud, timeout=0.1)
        try:
            return serial.serial_for_url(self._path, baudrate=self.baud, timeout=0.1)
        except (OSError, ValueError) as error:  # SerialException is an OSError
            raise DeviceError(
                f"{self._path} cannot be opened: {error}", remedy="List the ports: harness check doctor"
            ) from error

    def _run(self) -> None:
        while not self._stop.is_set():
            line = self._line
            if line is None:
                self._stop.wait(_REOPEN_S)
                with contextlib.suppress(DeviceError):
                    self._line = self._opened()
                    self.trouble = ""
                continue
            try:
                data = line.read(max(1, min(CHUNK_BYTES, getattr(line, "in_waiting", 1))))
            except (OSError, TypeError) as error:
                self.trouble = f"the port is gone ({error}); the monitor tries again every {exact(_REOPEN_S)} s"
                self._shut()
                continue
            if data:
                self.queue.put(now_heard(data))
        self._shut()

    def _shut(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            with contextlib.suppress(OSError):
                line.close()
