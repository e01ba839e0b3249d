"""TCP addresses and connections, as all drivers use them."""

from __future__ import annotations

import socket

from harness.model.errors import DeviceError, InputError

_KEEPALIVE = (("TCP_KEEPIDLE", 3), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 3))
"""Detects a peer that has lost its power after DEAD_AFTER_S, if everything sent to it had been acknowledged."""
DEAD_AFTER_S = 6.0
"""The time that _KEEPALIVE takes: 3 s of silence, and 3 probes a second apart."""


def host_and_port(
    address: str, *, free: bool = False, default: int | None = None, remedy: str = "Use host:port"
) -> tuple[str, int]:
    """The parts of host:port. Raises InputError for any other text.

    - default: the port if the text is only a host; None: it must have one.
    - free: whether port 0 is allowed.
    """
    host, colon, port = address.rpartition(":")
    if default is not None and (not colon or address.endswith("]")):
        host, port = address, str(default)
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise InputError(f"{address!r} is not an address", remedy=f"{remedy}, with an IPv6 address in brackets")
    lowest = 0 if free else 1
    if not host or not (port.isascii() and port.isdecimal()) or not lowest <= int(port) < 65536:
        raise InputError(f"{address!r} is not an address", remedy=remedy)
    return host.strip("[]"), int(port)


def listen(address: str) -> socket.socket:
    """A listening socket at host:port of this host. Raises DeviceError when the address is not free."""
    host, port = host_and_port(address)
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise DeviceError(
            f"cannot listen on {address}: {error}", remedy="Use a free address of this host, such as 0.0.0.0:10700"
        ) from error


def connect(host: str, port: int, limit_s: float) -> socket.socket:
    """A blocking connection. Raises OSError when the peer does not answer within the limit."""
    connection = socket.create_connection((host, port), timeout=limit_s)
    connection.settimeout(None)
    keep_alive(connection)
    return connection


def keep_alive(connection: socket.socket) -> None:
    """Makes a connection send small packets at once, and notice a peer that is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        if (number := getattr(socket, option, None)) is not None:
            connection.setsockopt(socket.IPPROTO_TCP, number, value)


def limit_unacknowledged(connection: socket.socket, limit_s: float = DEAD_AFTER_S) -> None:
    """Makes a connection also notice a peer that has not acknowledged data, or had no space for it, for limit_s.

    Without this, keep-alive does not apply while data is unacknowledged, and the kernel retries for about 15 minutes.
    """
    if (option := getattr(socket, "TCP_USER_TIMEOUT", None)) is not None:
        connection.setsockopt(socket.IPPROTO_TCP, option, round(limit_s * 1000))
