"""The link to a board: one thread writes what is due, reads and stamps what arrives, and reopens a lost port."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing, suppress

from harness.base import threads
from harness.base.ports import Clock
from harness.devices.outlet import DriverOutlet
from harness.devices.serial.peers import Peer
from harness.devices.serial.port import KEPT_BYTES, OpenPort, PortLost
from harness.devices.wire.lateness import Lateness
from harness.model.errors import DeviceError
from harness.model.numbers import seconds
from harness.model.time import Stamp

CLOSE_LIMIT_S = 1.5
_BACK_OFF_S = (0.1, 2.0)
_WAIT_S = 0.2
_TICK_S = 0.05
_PORT = "port"


class SerialLink:
    """Lives as long as the driver is open, over all openings of the port. Only its thread touches the port.

    The peer is called under the outlet's lock. first_bytes: the first KEPT_BYTES received.
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
        self._pending = b""
        self._stuck_since_s = math.inf
        self._ticked_s = -math.inf
        self._late = Lateness()
        self._back_off_s = _BACK_OFF_S[0]
        self._closing = False

    def start(self, limit_s: float) -> bool:
        """Returns whether the peer is ready, at the latest after the limit."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._peer.ready or not self._outlet.linked, limit_s)
            return self._peer.ready and self._outlet.linked

    def ring(self) -> None:
        """The peer has something to send."""
        self._bell.ring()

    def close(self) -> None:
        """Ends the thread, which releases the port."""
        self._closing = True
        self._bell.ring()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_LIMIT_S)
        if not self._thread.is_alive():
            self._bell.close()

    def _run(self, port: OpenPort | None) -> None:
        with self._outlet.reports_errors():
            while port is not None:
                with closing(port):
                    self._follow(port)
                port = self._reopen()

    def _follow(self, port: OpenPort) -> None:
        """Returns when the port is lost, or the driver closed."""
        opened_s = self._now_s()
        with self._outlet.lock:
            if self._closing:
                return  # a bridge may have taken longer to connect than `close` waits
            self._pending, self._stuck_since_s = b"", math.inf
            self._peer.linked(opened_s)
            self._check_ready()
        try:
            while not self._closing:
                self._turn(port)
        except PortLost as error:
            if not self._closing:
                self._lose(error.what)
        if self._now_s() - opened_s > _BACK_OFF_S[1]:
            self._back_off_s = _BACK_OFF_S[0]

    def _turn(self, port: OpenPort) -> None:
        """Writes what is due, waits for the next event, reads what has arrived."""
        with self._outlet.lock:
            now_s = self._now_s()
            if now_s - self._ticked_s >= _TICK_S:
                self._ticked_s = now_s
                if why := self._peer.tick(now_s, self._late.seconds):
                    self._lose(why)
            self._pending = self._pending or self._peer.output(now_s)
            wait_s = min(self._peer.wait_s(now_s), _WAIT_S)
        if self._pending:
            self._write(port)
            wait_s = _WAIT_S if self._pending else 0.0  # the port has room: ask the peer for more at once
        before_s = self._now_s()
        readable, writable = self._bell.wait(port, wait_s, writes=bool(self._pending))
        waited_s = self._now_s() - before_s
        if wait_s > 0 and not readable and not writable:
            self._late.woke(waited_s, wait_s)
        if readable:
            self._read(port, self._late.found(waited_s, wait_s))

    def _write(self, port: OpenPort) -> None:
        taken = port.write(self._pending)
        self._pending = self._pending[taken:]
        if taken:
            if self._stuck_since_s < math.inf and not self._outlet.linked:  # a board that was lost takes bytes again
                with self._outlet.lock:
                    self._peer.linked(self._now_s())
                    self._check_ready()
            self._stuck_since_s = math.inf
            return
        now_s = self._now_s()
        self._stuck_since_s = min(self._stuck_since_s, now_s)
        stuck_s = now_s - self._stuck_since_s
        if stuck_s > self._write_limit_s and self._outlet.linked:
            self._lose(f"the board has accepted no bytes for {seconds(stuck_s)}; its port is still there")

    def _read(self, port: OpenPort, error_s: float) -> None:
        data = port.read()
        now_s = self._now_s()
        if not data:
            return
        self.received_bytes += len(data)
        self.first_bytes += data[: KEPT_BYTES - len(self.first_bytes)]
        with self._outlet.lock:
            self._peer.received(data, Stamp(now_s, error_s))
            self._check_ready()

    def _check_ready(self) -> None:
        if self._peer.ready:
            self._changed.notify_all()
            self._outlet.back(_PORT)

    def _lose(self, reason: str) -> None:
        with self._outlet.lock:
            self._outlet.lose(_PORT, reason)
            self._changed.notify_all()
            self._peer.lost(self._now_s())

    def _reopen(self) -> OpenPort | None:
        """Waits until the port is back; None when the driver is closed."""
        while not self._closing:
            self._bell.wait(None, self._back_off_s)
            self._back_off_s = min(self._back_off_s * 2, _BACK_OFF_S[1])
            if not self._closing:
                with suppress(DeviceError):  # not back yet; the next try may find it
                    return self._reconnect()
        return None
