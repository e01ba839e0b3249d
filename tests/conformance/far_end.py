"""Far ends on the loopback that can go away and come back."""

from __future__ import annotations

import contextlib
import socket
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from tests.ports import free_port


class FarEnd(ABC):
    """It is lost at the end of the `with` statement."""

    @abstractmethod
    def lose(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.lose()


class TcpFarEnd(FarEnd):
    """A TCP server. `_serve` is called for each connection, in a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._peers: list[socket.socket] = []
        self._listening: socket.socket | None = None
        self.port = free_port()
        self.mend()

    def mend(self) -> None:
        self._listening = listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def lose(self) -> None:
        with self._lock:
            listening, self._listening = self._listening, None
            peers, self._peers = self._peers, []
        if listening is not None:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
            peer.close()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listening.accept()
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    if self._listening is not listening:
                        peer.close()
                        return
                    self._peers.append(peer)
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    @abstractmethod
    def _serve(self, peer: socket.socket) -> None: ...
