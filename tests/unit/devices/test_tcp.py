"""Connections to devices that may lose power."""

from __future__ import annotations

import socket
import threading

import pytest

from harness.base import threads
from harness.devices.spoken_commands import ServerUse
from harness.devices.tcp import host_and_port
from harness.devices.text_streams import TcpOptions, connect_tcp
from harness.devices.wyoming_server import ServerLink
from harness.model.errors import InputError


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("a", "a", 1883), ("a:80", "a", 80), ("[::1]", "::1", 1883), ("[fe80::1]:80", "fe80::1", 80)],
)
def test_addresses_are_read_with_and_without_a_port(address: str, host: str, port: int) -> None:
    assert host_and_port(address, default=1883) == (host, port)


@pytest.mark.parametrize("address", ["fe80::1", "::1", "a:b:1", "[::1", "", ":80", "a:0", "a:x"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="is not an address"):
        host_and_port(address, default=1883)


def unacknowledged_ms(connection: socket.socket) -> int:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)


def test_peers_that_owe_an_acknowledgement_are_not_awaited_for_15_minutes() -> None:
    """Keep-alive is silent then: a command to a device, and the pings to a satellite, would hide that it is gone."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        device = connect_tcp(TcpOptions(address=address))
        listening.accept()[0].close()
        assert unacknowledged_ms(device._socket) == 6000
        device.close()

        def answer() -> None:
            accepted.append(listening.accept()[0])
            accepted[0].sendall(b'{"type": "info", "data": {}}\n')

        accepted: list[socket.socket] = []
        satellite = threading.Thread(target=answer)
        satellite.start()
        link = ServerLink(address, ServerUse("hall", threads.monotonic, lambda _: None, 15.0), threads.event())
        assert unacknowledged_ms(link._socket) == 15_000
        link.begin().close()
        satellite.join()
        accepted[0].close()
