"""How much later sound arrives through the Wyoming proxy than without it. The target is 2 ms.

python benchmarks/bench_wyoming_proxy.py [CHUNKS]

Chunks of 64 ms are sent in real time over a direct connection and through the proxy. The proxy runs in its own process,
as the engine does. The delay of a chunk ends when its last byte has arrived. The yardstick is a plain relay: a process
that passes bytes on and does nothing else.
"""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from sizes import sized
from wyoming.event import Event, write_event

from harness.devices.profiles.profile import load_profile
from harness.devices.wyoming import Wyoming, WyomingMode, WyomingOptions
from tests.ports import free_port
from tests.seen import Around, Seen, until

CHUNK_S = 0.064


def main() -> None:
    if sys.argv[1:2] == ["relay"]:
        {"proxy": proxy, "plain": plain}[sys.argv[2]](int(sys.argv[3]), int(sys.argv[4]))
        return
    count = int(sys.argv[1]) if sys.argv[1:] else sized(500, 5)
    chunk = io.BytesIO()
    write_event(Event("audio-chunk", {"rate": 16000, "width": 2, "channels": 1}, bytes(2048)), chunk)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server = listening.getsockname()[1]
        ways = {"direct": Way(server, listening)}
        for name in ("plain", "proxy"):
            port = free_port()
            child = subprocess.Popen([sys.executable, __file__, "relay", name, str(port), str(server)])
            stack.callback(child.wait)
            stack.callback(child.kill)
            if name == "proxy":
                listening.accept()[0].close()  # the driver asks whether the server is there
            ways[name] = Way(port, listening)
        time.sleep(1)
        delays_ms = measured(ways, chunk.getvalue(), count)
    print(f"{count} chunks{'':12}" + "".join(f"{name:>12}" for name in ("median", "95 %", "99 %", "largest")))
    added = {f"added by {name}": delays_ms[name] - delays_ms["direct"] for name in ("plain", "proxy")}
    for name, values in {**delays_ms, **added}.items():
        print(f"{name:22}" + "".join(f"{one:9.3f} ms" for one in (*np.percentile(values, [50, 95, 99]), values.max())))
    for name, values in added.items():
        print(f"less than 2 ms {name}: {np.mean(values < 2):.2%} of the chunks")


class Way:
    """From a client to the server."""

    def __init__(self, port: int, listening: socket.socket) -> None:
        until(lambda: self._connects(port))
        self.server, _ = listening.accept()
        self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _connects(self, port: int) -> bool:
        try:
            self.client = socket.create_connection(("127.0.0.1", port), 5)
        except ConnectionRefusedError:
            return False
        return True

    def delay_ms(self, chunk: bytes) -> float:
        began_s = time.perf_counter()
        self.client.sendall(chunk)
        left = len(chunk)
        while left:
            received = len(self.server.recv(left))
            assert received, "the other side closed the connection"
            left -= received
        return (time.perf_counter() - began_s) * 1000


def measured(ways: dict[str, Way], chunk: bytes, count: int) -> dict[str, np.ndarray]:
    found: dict[str, list[float]] = {name: [] for name in ways}
    began_s = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began_s + number * CHUNK_S - time.monotonic()))
        for name in (*ways, *ways)[number % len(ways) :][: len(ways)]:
            found[name].append(ways[name].delay_ms(chunk))
    return {name: np.array(delays) for name, delays in found.items()}


def proxy(port: int, server: int) -> None:
    options = WyomingOptions(address=f"127.0.0.1:{port}", mode=WyomingMode.PROXY, server=f"127.0.0.1:{server}")
    Wyoming("satellite", options, Around(profile=load_profile("wyoming_events", beside=Path()))).open(Seen())
    threading.Event().wait()


def plain(port: int, server: int) -> None:
    """Passes bytes on and does nothing else: what any other process costs on this machine."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        client, _ = listening.accept()
    onward = socket.create_connection(("127.0.0.1", server))
    onward.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := client.recv(65_536):
        onward.sendall(data)


if __name__ == "__main__":
    main()
