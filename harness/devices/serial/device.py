"""A board on a serial port. Read this driver first: its methods are in the order of a session.

    board ──► OpenPort.read ──► SerialLink._read ──► Peer.receive ───► DriverOutlet ──► the sink of `open`
              port.py           link.py: the time    peers.py: the meaning    outlet.py: until `close`
    board ◄── OpenPort.write ◄─ SerialLink._write ◄─ Peer.output ◄──── Peer.play, BoardSession.command

Threads: callers run these methods, which change the peer under the outlet's lock and wake the link, whose thread does
the rest. The sink is called under the same lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from harness.base.host_check import Check
from harness.base.ports import Sink, Surroundings
from harness.devices.declared import Abilities, About
from harness.devices.framing.board_session import BoardSession
from harness.devices.outlet import DriverOutlet
from harness.devices.serial.link import SerialLink
from harness.devices.serial.monitor_source import SerialMonitorSource
from harness.devices.serial.options import SerialOptions
from harness.devices.serial.peers import FramedPeer, Peer, peer_for
from harness.devices.serial.port import OpenPort, PortLocation, check_ports, explain_silence, find_port
from harness.devices.wire.console import maps_lines
from harness.devices.wire.messages import Set, SetKey, TextCommand
from harness.model.bench import AudioDialogue, DeviceProfile
from harness.model.errors import DeviceError
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
        """Returns when the board has answered and its clock is known; DeviceError if not within 5 s."""
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

    def connect(self, usb_serial: str = "") -> OpenPort:
        """Finds and opens the port; DeviceError when that fails. usb_serial: serial number of the last adapter."""
        location = find_port(self._options, usb_serial)
        port = OpenPort(location.path, self._baud)
        self._location = location
        return port

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Sends the sound to the board; DeviceError when it accepts none over its port, or is not open."""
        if self.link is None:
            raise DeviceError(f"{self.id} is not open")
        if not self.abilities(self._options, self._profile).injects:
            raise DeviceError(
                f"{self.id} does not accept sound over its port", remedy="Use a loudspeaker, or set `injection`"
            )
        sound = self.peer.prepare(waveform)  # slow: without the lock
        if sound is None:
            raise DeviceError(f"the board {self.id} reports that it does not accept sound", remedy="Use a loudspeaker")
        with self._outlet.lock:
            self.peer.play(play_id, sound, self._clock.now_s())
        self._wake_link()

    def stop(self) -> None:
        """Ends the sound being sent; StimulusEnded(complete=False) follows."""
        with self._outlet.lock:
            self.peer.stop(self._clock.now_s())
        self._wake_link()

    def level_dbfs(self) -> float | None:
        """RMS level of the last 100 ms sent; None when no sound is being sent."""
        with self._outlet.lock:
            return self.peer.level_dbfs()

    def say(self, text: str) -> None:
        """Sends a query as text; returns when the board has acknowledged it. DeviceError if not within 5 s."""
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
        framed, rate_hz = self.framed_peer, self.peer.rate_hz
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
        """DeviceError when the port is missing."""
        find_port(options)

    # The board's protocol

    @property
    def framed_peer(self) -> FramedPeer | None:
        """The board's state and counters by the harness's framing; None for a board that prints log lines only."""
        return self.peer if isinstance(self.peer, FramedPeer) else None

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

    def _require_session(self) -> BoardSession:
        """The session of a framed board; DeviceError for other boards."""
        if self.framed_peer is None:
            raise DeviceError(
                f"{self.id} does not accept commands", remedy="Only boards with `framing: vh` accept commands"
            )
        return self.framed_peer.session

    def _send_command(self, message: TextCommand | Set) -> None:
        """Returns when the board has acknowledged a command; DeviceError if it does not, or the link is lost."""
        with self._outlet.lock:
            session = self._require_session()
            if self.link is None or not self._outlet.link_is_up:
                raise DeviceError(f"{self.id} cannot be reached", remedy="Wait until it is connected again")
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
