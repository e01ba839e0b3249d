"""The link to a board: one thread writes what is due, reads and stamps what arrives, and reopens a lost port.

    port opened ──► peer.link_up ──► rounds of `_send` and `_receive` ──► PortLost: peer.link_lost
         ▲                                                                       │
         └───────────────── after 0.1 s, doubling up to 2 s ◄────────────────────┘

A board that is silent, or accepts no bytes, is lost as well (peer.link_lost). Its port stays open, and the rounds go
on. The link is back when the peer is ready again.

Threads: `start`, `wake` and `close` run in the threads of the driver's users, all else in the link's own thread. The
peer is called under the outlet's lock. Reads, writes and waits happen without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing, suppress

from harness.base import threads
from harness.base.ports import Clock
from harness.devices.outlet import DriverOutlet
from harness.devices.serial.peers import Peer
from harness.devices.serial.port import FIRST_BYTES_KEPT, OpenPort, PortLost
from harness.devices.wire.lateness import Lateness
from harness.model.errors import DeviceError
from harness.model.numbers import seconds
from harness.model.time import Stamp

CLOSE_LIMIT_S = 1.5  # A driver closes within 2 s (`ports.Driver`): this leaves 0.5 s for the rest.
_FIRST_REOPEN_S = 0.1  # Chosen: a board whose USB resets with it is found again soon after.
# Chosen: a board that is plugged in again is back soon. A port that lasts longer counts as working.
_MAX_REOPEN_S = 2.0
_MAX_WAIT_S = 0.2  # Chosen: a closing driver and a peer without deadlines look at least this often.
_PEER_TICK_S = 0.05  # Chosen: the peer need not look at its deadlines more often, however many bytes arrive.
_PORT_PART = "port"  # The part of the driver whose loss this module reports to the outlet.


class SerialLink:
    """Lives as long as the driver is open, over all openings of the port. Only its thread touches the port.

    received_bytes: number of bytes received. first_bytes: the first FIRST_BYTES_KEPT of them.
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
        self._stuck_since_s = math.inf  # first write in vain since the port last took bytes
        self._ticked_s = -math.inf
        self._lateness = Lateness()
        self._reopen_s = _FIRST_REOPEN_S
        self._closing = False

    def start(self, limit_s: float) -> bool:
        """Starts the thread, and waits until the peer is ready. Returns False if it is not within the limit."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._peer.ready or not self._outlet.link_is_up, limit_s)
            return self._peer.ready and self._outlet.link_is_up

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
            if self._stuck_since_s < math.inf and not self._outlet.link_is_up:  # a lost board takes bytes again
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
        if self._peer.ready:
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
