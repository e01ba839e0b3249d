"""Connections of the raters' site: whoever sends a request too slowly makes room for others."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol


class PromptConnection(H11Protocol):
    """Is cut when a request is not here as a whole, its body too, `request_s` after it or the connection began.

    uvicorn itself waits for ever for what has begun: some hundred half requests would keep all raters out. Nor may one
    address hold more than `most_waiting` connections on which the site waits, whether for the rest of a request or for
    the next one: another one cuts the one that has waited longest. So nobody is shut out who shares the address, as
    behind a proxy, and sends whole requests.
    """

    request_s: ClassVar[float] = 20.0
    most_waiting: ClassVar[int] = 48
    _deadline: asyncio.TimerHandle | None = None
    _since_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since_s = self.loop.time()
        self._wait()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_our_hands:
            self._stop_waiting()
        elif self._deadline is None:
            self._wait()

    def on_response_complete(self) -> None:
        self._since_s = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _in_our_hands(self) -> bool:
        """Whether a request is here as a whole and not answered yet."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _make_room(self) -> None:
        """Cuts the connection of the same address that has waited longest, when there are too many."""
        address = self.client and self.client[0]
        waiting = [
            one
            for one in self.connections
            if isinstance(one, PromptConnection)
            and not one._in_our_hands
            and not one.transport.is_closing()
            and (one.client and one.client[0]) == address
        ]
        if len(waiting) > self.most_waiting:
            min(waiting, key=lambda one: one._since_s).transport.abort()

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(self.request_s, self._late)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        if not self._in_our_hands:
            self.transport.abort()
