"""How much later sound arrives through the Wyoming proxy than without it. The target is 2 ms.

python benchmarks/bench_wyoming_proxy.py [CHUNKS]

Chunks of 64 ms are sent in real time over a direct connection and through the proxy. The proxy runs in a process of its
own, as the engine does. The delay of a chunk ends when its last byte has arrived. The yardstick is a plain relay: a
process that passes bytes on and does nothing else.
"""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import threading
import time
from collections import deque
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
        relay = {"proxy": run_proxy, "plain": run_plain_relay}[sys.argv[2]]
        relay(port=int(sys.argv[3]), server_port=int(sys.argv[4]))
        return
    count = int(sys.argv[1]) if sys.argv[1:] else sized(500, 5)
    chunk = io.BytesIO()
    write_event(Event("audio-chunk", {"rate": 16000, "width": 2, "channels": 1}, bytes(2048)), chunk)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server_port = listening.getsockname()[1]
        routes = {"direct": Route(server_port, listening)}
        for name in ("plain", "proxy"):
            port = free_port()
            child = subprocess.Popen([sys.executable, __file__, "relay", name, str(port), str(server_port)])
            stack.callback(child.wait)
            stack.callback(child.kill)
            if name == "proxy":
                listening.accept()[0].close()  # the driver asks whether the server is there
            routes[name] = Route(port, listening)
        time.sleep(1)
        delays_ms = measure(routes, chunk.getvalue(), count)
    print(f"{count} chunks{'':12}" + "".join(f"{name:>12}" for name in ("median", "95 %", "99 %", "largest")))
    added_ms = {f"added by {name}": delays_ms[name] - delays_ms["direct"] for name in ("plain", "proxy")}
    for name, values_ms in {**delays_ms, **added_ms}.items():
        columns = (*np.percentile(values_ms, [50, 95, 99]), values_ms.max())
        print(f"{name:22}" + "".join(f"{delay_ms:9.3f} ms" for delay_ms in columns))
    for name, values_ms in added_ms.items():
        print(f"less than 2 ms {name}: {np.mean(values_ms < 2):.2%} of the chunks")


class Route:
    """A connection from a client to the server, directly or through a relay on a port."""

    def __init__(self, port: int, listening: socket.socket) -> None:
        """Connects, as soon as a relay listens."""
        until(lambda: self._connect(port))
        self.server, _ = listening.accept()
        self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _connect(self, port: int) -> bool:
        """Returns False if nobody listens yet."""
        try:
            self.client = socket.create_connection(("127.0.0.1", port), 5)
        except ConnectionRefusedError:
            return False
        return True

    def send(self, chunk: bytes) -> float:
        """Sends a chunk, and returns the ms until all of it has arrived."""
        began_s = time.perf_counter()
        self.client.sendall(chunk)
        left = len(chunk)
        while left:
            received = len(self.server.recv(left))
            assert received, "the other side closed the connection"
            left -= received
        return (time.perf_counter() - began_s) * 1000


def measure(routes: dict[str, Route], chunk: bytes, count: int) -> dict[str, np.ndarray]:
    """Sends a chunk over each route every CHUNK_S, each time another route first. Returns the delays in ms."""
    delays_ms: dict[str, list[float]] = {name: [] for name in routes}
    began_s = time.monotonic()
    names = deque(routes)
    for number in range(count):
        time.sleep(max(0.0, began_s + number * CHUNK_S - time.monotonic()))
        for name in names:
            delays_ms[name].append(routes[name].send(chunk))
        names.rotate(-1)
    return {name: np.array(values_ms) for name, values_ms in delays_ms.items()}


def run_proxy(port: int, server_port: int) -> None:
    """Runs the driver as a proxy until the process is ended."""
    options = WyomingOptions(address=f"127.0.0.1:{port}", mode=WyomingMode.PROXY, server=f"127.0.0.1:{server_port}")
    Wyoming("satellite", options, Around(profile=load_profile("wyoming_events", beside=Path()))).open(Seen())
    threading.Event().wait()


def run_plain_relay(port: int, server_port: int) -> None:
    """Passes bytes on and does nothing else: what any other process costs on this machine."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        client, _ = listening.accept()
    onward = socket.create_connection(("127.0.0.1", server_port))
    onward.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := client.recv(65_536):
        onward.sendall(data)


if __name__ == "__main__":
    main()
