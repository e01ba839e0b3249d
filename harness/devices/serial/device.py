"""A board on a serial port. Read this driver first: its methods are in the order of a session.

    board ──► OpenPort.read ──► SerialLink._read ──► Peer.receive ───► DriverOutlet ──► the sink of `open`
              port.py           below: the time      peers.py: the meaning    outlet.py: until `close`
    board ◄── OpenPort.write ◄─ SerialLink._write ◄─ Peer.output ◄──── BoardPlayer.play, BoardSession.command

The link has one thread, which writes what is due, reads and stamps what arrives, and reopens a lost port.

    port opened ──► peer.link_up ──► rounds of `_send` and `_receive` ──► PortLost: peer.link_lost
         ▲                                                                       │
         └───────────────── after 0.1 s, doubling up to 2 s ◄────────────────────┘

A board that is silent, or accepts no bytes, is lost as well (peer.link_lost). Its port stays open, and the rounds go
on. The link is back when the peer is ready again.

Threads: callers run the methods of `SerialDevice`, and `start`, `wake` and `close` of the link. These change the peer
under the outlet's lock and wake the link's thread, which does the rest. The peer and the sink are called under that
lock. Reads, writes and waits happen without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from typing import ClassVar

from harness.base import threads
from harness.base.host_check import Check
from harness.base.ports import Clock, Sink, Surroundings
from harness.devices.declared import Abilities, About
from harness.devices.framing.board_session import BoardSession
from harness.devices.outlet import DriverOutlet
from harness.devices.serial.options import SerialOptions
from harness.devices.serial.peers import FramedPeer, Peer, peer_for
from harness.devices.serial.port import (
    FIRST_BYTES_KEPT,
    OpenPort,
    PortLocation,
    PortLost,
    SerialMonitorSource,
    check_ports,
    explain_silence,
    find_port,
)
from harness.devices.wire.console import maps_lines
from harness.devices.wire.lateness import Lateness
from harness.devices.wire.messages import Set, SetKey, TextCommand
from harness.model.bench import AudioDialogue, DeviceProfile
from harness.model.errors import DeviceError
from harness.model.numbers import seconds
from harness.model.observation import DeviceDescribed
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

DEFAULT_BAUD = 115200  # The rate of most boards' consoles.
OPEN_LIMIT_S = 5.0  # Chosen: a board that restarts when its port is opened boots and answers a few pings within it.
# Chosen: a board acknowledges within milliseconds. One that restarts meanwhile fails the command earlier.
COMMAND_LIMIT_S = 5.0


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
        self._location = PortLocation("")
        self.link: SerialLink | None = None
        self.peer = self._new_peer()

    def open(self, sink: Sink) -> None:
        """Returns when the board has answered and its clock is known. Raises DeviceError if not within 5 s."""
        port = self.connect()
        try:
            link = self._new_link(port, sink)
        except BaseException:
            port.close()
            raise
        if not link.start(OPEN_LIMIT_S):
            received, remedy = explain_silence(link.first_bytes, link.received_bytes)
            self.close()
            raise DeviceError(
                f"{self.id}: the board at {self._location.path} does not answer in the harness's framing: {received}",
                remedy=remedy,
            )

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Sends the sound to the board. Raises DeviceError when it accepts none over its port, or is not open."""
        if self.link is None:
            raise DeviceError(f"{self.id} is not open")
        if not self.abilities(self._options, self._profile).injects:
            raise DeviceError(
                f"{self.id} does not accept sound over its port", remedy="Use a loudspeaker, or set `injection`"
            )
        sound = self.peer.player.prepare(waveform)  # slow: without the lock
        if sound is None:
            raise DeviceError(f"the board {self.id} reports that it does not accept sound", remedy="Use a loudspeaker")
        with self._outlet.lock:
            self.peer.player.play(play_id, sound, self._clock.now_s())
        self._wake_link()

    def stop(self) -> None:
        """Ends the sound being sent; StimulusEnded(complete=False) follows."""
        with self._outlet.lock:
            self.peer.player.stop(self._clock.now_s())
        self._wake_link()

    def level_dbfs(self) -> float | None:
        """RMS level of the last 100 ms sent; None when no sound is being sent."""
        with self._outlet.lock:
            return self.peer.player.level_dbfs()

    def say(self, text: str) -> None:
        """Sends a query as text; returns when the board has acknowledged it. Raises DeviceError if not within 5 s."""
        self._send_command(TextCommand(text))

    def set_operating_point(self, value: int) -> None:
        """Sets the sensitivity of its wake word, 0–100; returns and raises like `say`."""
        if not 0 <= value <= 100:
            raise DeviceError(f"an operating point must be 0 to 100, not {value}")
        self._send_command(Set(SetKey.OPERATING_POINT, value))

    def restart(self) -> None:
        """Asks the board to reset itself; Status(STARTED) follows."""
        with self._outlet.lock:
            self._require_session().reset()
        self._wake_link()

    def close(self) -> None:
        """Ends the thread and releases the port, in any state."""
        self._outlet.close()
        link, self.link = self.link, None
        if link is not None:
            link.close()

    # What it declares (`devices/declared.py`)

    def about(self) -> About:
        """What the board's hello reports; for a board with log lines only the rate of its sound."""
        framed, rate_hz = self.framed_peer, self.peer.player.rate_hz
        hello = framed.session.hello if framed is not None else None
        if framed is None or hello is None:
            return About(rate_hz=rate_hz)
        return About(hello.firmware, hello.wake_phrases, rate_hz, framed.session.lost_events)

    @staticmethod
    def abilities(options: SerialOptions, profile: DeviceProfile | None) -> Abilities:
        """Boards with the harness's framing have all abilities; others may accept sound by TFLM's dialogue."""
        is_framed = options.is_framed(profile)
        injects = options.dialogue(profile) in (AudioDialogue.VH, AudioDialogue.TFLM)
        return Abilities(injects=injects, restarts=is_framed, tunes=is_framed, hears=is_framed or maps_lines(profile))

    @staticmethod
    def source(
        options: SerialOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]
    ) -> SerialMonitorSource:
        """The bytes of the port."""
        return SerialMonitorSource(options, options.baud or profile.console.baud)

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, SerialOptions]]) -> Iterator[Check]:
        """Checks each port of this host, and each named one."""
        return check_ports(connections)

    @staticmethod
    def far_end(options: SerialOptions, id: str) -> str:
        """The port, or the adapter."""
        return options.port or options.usb

    @staticmethod
    def demand_host(options: SerialOptions) -> None:
        """Raises DeviceError when the port is missing."""
        find_port(options)

    # The port and its peer

    def connect(self, usb_serial: str = "") -> OpenPort:
        """Finds and opens the port.

        Raises DeviceError when that fails. usb_serial: serial number of the last adapter.
        """
        location = find_port(self._options, usb_serial)
        port = OpenPort(location.path, self._baud)
        self._location = location
        return port

    def _new_link(self, port: OpenPort, sink: Sink) -> SerialLink:
        self.peer = self._new_peer()  # `connect` has set the latency timer, which the peer must know
        self._outlet.open(sink)
        if usb_serial := self._location.usb_serial:
            self._outlet.tell(DeviceDescribed(self.id, Stamp(self._clock.now_s()), serial=usb_serial))
        self.link = SerialLink(
            self.id,
            port,
            self.peer,
            self._outlet,
            clock=self._clock,
            write_limit_s=self._options.write_limit_s,
            reconnect=lambda: self.connect(self._location.usb_serial),
        )
        return self.link

    def _new_peer(self) -> Peer:
        return peer_for(
            self.id,
            self._options,
            self._profile,
            self._outlet,
            path=self._location.path,
            baud=self._baud,
            clock=self._clock,
        )

    # The board's protocol

    @property
    def framed_peer(self) -> FramedPeer | None:
        """The board's state and counters by the harness's framing; None for a board that prints log lines only."""
        return self.peer if isinstance(self.peer, FramedPeer) else None

    def _require_session(self) -> BoardSession:
        """The session of a framed board. Raises DeviceError for other boards."""
        if self.framed_peer is None:
            raise DeviceError(
                f"{self.id} does not accept commands", remedy="Only boards with `framing: vh` accept commands"
            )
        return self.framed_peer.session

    def _send_command(self, message: TextCommand | Set) -> None:
        """Returns when the board has acknowledged a command. Raises DeviceError if it does not, or the link is lost."""
        with self._outlet.lock:
            session = self._require_session()
            if self.link is None or not self._outlet.link_is_up:
                raise DeviceError(f"{self.id} cannot be reached", remedy="Wait until the device is connected again")
            command = session.command(message)
        self._wake_link()
        if not command.done.wait(COMMAND_LIMIT_S):
            with self._outlet.lock:
                session.drop(command)
        if not command.acknowledged:
            raise DeviceError(
                f"{self.id} has not acknowledged {message}", remedy="Check whether the board restarted or was lost"
            )

    def _wake_link(self) -> None:
        """Wakes the link's thread, which sends what the peer has to send now."""
        if (link := self.link) is not None:
            link.wake()


CLOSE_LIMIT_S = 1.5  # A driver closes within 2 s (`ports.Driver`): this leaves 0.5 s for the rest.
_FIRST_REOPEN_S = 0.1  # Chosen: a board whose USB resets with it is found again soon after.
# Chosen: a board that is plugged in again is back soon. A port that lasts longer counts as working.
_MAX_REOPEN_S = 2.0
_MAX_WAIT_S = 0.2  # Chosen: a closing driver and a peer without deadlines look at least this often.
_PEER_TICK_S = 0.05  # Chosen: the peer need not look at its deadlines more often, however many bytes arrive.
_PORT_PART = "port"  # The part of the driver whose loss this module reports to the outlet.


class SerialLink:
    """The driver's connection while it is open, over all openings of the port. Only its thread uses the port.

    - received_bytes: number of bytes received.
    - first_bytes: the first FIRST_BYTES_KEPT of them.
    """

    def __init__(
        self,
        id: str,
        port: OpenPort,
        peer: Peer,
        outlet: DriverOutlet,
        *,
        clock: Clock,
        write_limit_s: float,
        reconnect: Callable[[], OpenPort],
    ) -> None:
        """port: the open port. reconnect: opens it again; DeviceError while that fails."""
        self.received_bytes = 0
        self.first_bytes = b""
        self._peer = peer
        self._outlet = outlet
        self._now_s = clock.now_s
        self._write_limit_s = write_limit_s
        self._reconnect = reconnect
        self._changed = threads.condition(outlet.lock)
        self._bell = threads.bell()
        self._thread = threads.thread(self._run, port, name=f"serial {id}")
        self._unwritten = b""
        self._stuck_since_s = math.inf  # when the port first refused bytes after it last accepted some
        self._ticked_s = -math.inf
        self._lateness = Lateness()
        self._reopen_s = _FIRST_REOPEN_S
        self._closing = False

    def start(self, limit_s: float) -> bool:
        """Starts the thread, and waits until the peer is ready. Returns False if it is not within the limit."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._peer.player.ready or not self._outlet.link_is_up, limit_s)
            return self._peer.player.ready and self._outlet.link_is_up

    def wake(self) -> None:
        """Wakes the link's thread, since the peer has something to send."""
        self._bell.ring()

    def close(self) -> None:
        """Ends the thread, which releases the port."""
        self._closing = True
        self._bell.ring()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_LIMIT_S)
        if not self._thread.is_alive():
            self._bell.close()

    # The link's thread

    def _run(self, port: OpenPort | None) -> None:
        """Uses the port, and reopens it after each loss, until the driver is closed."""
        with self._outlet.reports_errors():
            while port is not None:
                with closing(port):
                    self._use_port(port)
                port = self._reopen()

    def _use_port(self, port: OpenPort) -> None:
        """Uses an open port. Returns when the port is lost, or the driver closed."""
        opened_s = self._now_s()
        with self._outlet.lock:
            if self._closing:
                return  # a bridge may have taken longer to connect than `close` waits
            self._unwritten, self._stuck_since_s = b"", math.inf
            self._peer.link_up(opened_s)
            self._report_if_ready()
        try:
            while not self._closing:
                wait_s = self._send(port)
                self._receive(port, wait_s)
        except PortLost as error:
            if not self._closing:
                self._report_loss(error.what)
        if self._now_s() - opened_s > _MAX_REOPEN_S:
            self._reopen_s = _FIRST_REOPEN_S

    def _send(self, port: OpenPort) -> float:
        """Writes what is due. Returns the time until more may be due, at most _MAX_WAIT_S."""
        with self._outlet.lock:
            now_s = self._now_s()
            if now_s - self._ticked_s >= _PEER_TICK_S:
                self._ticked_s = now_s
                if reason := self._peer.tick(now_s, self._lateness.seconds):
                    self._report_loss(reason)
            if not self._unwritten:
                self._unwritten = self._peer.output(now_s)
            wait_s = min(self._peer.wait_s(now_s), _MAX_WAIT_S)
        if not self._unwritten:
            return wait_s
        self._write(port)
        return _MAX_WAIT_S if self._unwritten else 0.0  # the port has room: ask the peer for more at once

    def _receive(self, port: OpenPort, wait_s: float) -> None:
        """Waits until bytes arrive, the port has room, or the bell rings; then reads."""
        before_s = self._now_s()
        readable, writable = self._bell.wait(port, wait_s, writes=bool(self._unwritten))
        waited_s = self._now_s() - before_s
        if readable:
            self._read(port, self._lateness.arrival_error_s(waited_s, wait_s))
        elif wait_s > 0 and not writable:
            self._lateness.record_sleep(waited_s, wait_s)

    def _write(self, port: OpenPort) -> None:
        """Writes as much as the port accepts. A board that accepts nothing for too long counts as lost."""
        accepted = port.write(self._unwritten)
        self._unwritten = self._unwritten[accepted:]
        if accepted:
            if self._stuck_since_s < math.inf and not self._outlet.link_is_up:  # a lost board accepts bytes again
                with self._outlet.lock:
                    self._peer.link_up(self._now_s())
                    self._report_if_ready()
            self._stuck_since_s = math.inf
            return
        now_s = self._now_s()
        self._stuck_since_s = min(self._stuck_since_s, now_s)
        stuck_s = now_s - self._stuck_since_s
        if stuck_s > self._write_limit_s and self._outlet.link_is_up:
            self._report_loss(f"the board has accepted no bytes for {seconds(stuck_s)}; its port is still there")

    def _read(self, port: OpenPort, error_s: float) -> None:
        """Passes the bytes that have arrived to the peer. error_s: how much earlier they may have arrived."""
        data = port.read()
        now_s = self._now_s()
        if not data:
            return
        self.received_bytes += len(data)
        self.first_bytes += data[: FIRST_BYTES_KEPT - len(self.first_bytes)]
        with self._outlet.lock:
            self._peer.receive(data, Stamp(now_s, error_s))
            self._report_if_ready()

    def _report_if_ready(self) -> None:
        """The link is back if the peer is ready. Called under the outlet's lock."""
        if self._peer.player.ready:
            self._changed.notify_all()
            self._outlet.back(_PORT_PART)

    def _report_loss(self, reason: str) -> None:
        """Reports the loss before the sound that it cuts off, so that the session knows the reason."""
        with self._outlet.lock:
            self._outlet.lose(_PORT_PART, reason)
            self._changed.notify_all()
            self._peer.link_lost(self._now_s())

    def _reopen(self) -> OpenPort | None:
        """Waits until the port is back; None when the driver is closed."""
        while not self._closing:
            self._bell.wait(None, self._reopen_s)
            self._reopen_s = min(self._reopen_s * 2, _MAX_REOPEN_S)
            if not self._closing:
                with suppress(DeviceError):  # not back yet; the next try may find it
                    return self._reconnect()
        return None
