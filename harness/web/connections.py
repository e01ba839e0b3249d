"""Connections of the raters' site. A client that sends too slowly is disconnected."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol


class PromptConnection(H11Protocol):
    """A connection that is closed if a request, with its body, is not complete within `request_s`. For the first
    request this time counts from the beginning of the connection, for the others from their first byte.

    uvicorn has no such timeout, so a hundred half-sent requests would lock out all raters. An address may also have at
    most `max_waiting` connections that wait for the rest of a request or for the next one. A further one closes the
    one that has waited longest. Raters who share an address (behind a proxy) and send whole requests are not affected.
    """

    request_s: ClassVar[float] = 20.0
    max_waiting: ClassVar[int] = 48
    _deadline: asyncio.TimerHandle | None = None
    _waiting_since_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting_since_s = self.loop.time()
        self._start_timer()
        self._close_longest_waiting()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_being_answered:
            self._cancel_timer()
        elif self._deadline is None:
            self._start_timer()

    def on_response_complete(self) -> None:
        self._waiting_since_s = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    @property
    def _is_being_answered(self) -> bool:
        """Whether a request is complete, but not answered yet."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _close_longest_waiting(self) -> None:
        """Closes the connection of this address that has waited longest, if there are too many."""
        address = self.client and self.client[0]
        waiting = [
            connection
            for connection in self.connections
            if isinstance(connection, PromptConnection)
            and not connection._is_being_answered
            and not connection.transport.is_closing()
            and (connection.client and connection.client[0]) == address
        ]
        if len(waiting) > self.max_waiting:
            min(waiting, key=lambda connection: connection._waiting_since_s).transport.abort()

    def _start_timer(self) -> None:
        self._deadline = self.loop.call_later(self.request_s, self._close_if_unanswered)

    def _cancel_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_if_unanswered(self) -> None:
        self._deadline = None
        if not self._is_being_answered:
            self.transport.abort()
