"""Ports of the loopback for servers of tests."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_DRAWS = random.SystemRandom()


def free_port() -> int:
    """A port that nothing uses, and that no other process of the tests is given until this one ends.

    A port that the system names (0) may be gone before it is used: it is one of those that each outgoing connection is
    given, too. And a client that tries again and again to reach one of these may reach itself.
    """
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    while True:
        port = _DRAWS.randrange(first_given // 2, first_given)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0voice-harness-tests-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        claim.detach()  # open until this process ends, which is no leak
        return port


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
