"""A Wyoming satellite, or a client that connects as Home Assistant does, by the wyoming package.

python -m tests.conformance.wyoming_program satellite|client PORT

A line of JSON on standard input is an event to send: its type, its data, and the size of its payload. Each event
received is written likewise, without its data. The type `microphone` sends a WAV file in chunks, at `speed`; `garbage`
sends 2 MB that are not events.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import wave
from functools import partial

from wyoming.audio import wav_to_chunks
from wyoming.client import AsyncTcpClient
from wyoming.event import Event
from wyoming.info import Attribution, Describe, Info, Satellite
from wyoming.satellite import RunSatellite
from wyoming.server import AsyncEventHandler, AsyncTcpServer

_INFO = Info(
    satellite=Satellite(
        name="kitchen", description="kitchen", attribution=Attribution(name="", url=""), installed=True, version="1"
    )
)


class _Served(AsyncEventHandler):
    def __init__(self, peers: set[_Served], *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.peers = peers

    async def handle_event(self, event: Event) -> bool:
        if Describe.is_type(event.type):
            await self.write_event(_INFO.event())
            return True
        self.peers.add(self)
        _told(event)
        return True

    async def disconnect(self) -> None:
        self.peers.discard(self)


def _told(event: Event) -> None:
    sys.stdout.write(json.dumps([event.type, len(event.payload or b"")]) + "\n")
    sys.stdout.flush()


async def _events_to_send() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _event(line: bytes) -> Event:
    kind, data, payload_bytes = json.loads(line)
    return Event(kind, data, bytes(payload_bytes) or None)


async def _microphone(peer: _Served, path: str, speed: float) -> None:
    with wave.open(path) as file:
        for chunk in wav_to_chunks(file, 1024):
            await peer.write_event(chunk.event())
            await asyncio.sleep(1024 / file.getframerate() / speed)


async def _satellite(port: int) -> None:
    peers: set[_Served] = set()
    server = AsyncTcpServer("127.0.0.1", port)
    await server.start(partial(_Served, peers))
    reader = await _events_to_send()
    while line := await reader.readline():
        event = _event(line)
        for peer in [*peers]:
            with contextlib.suppress(ConnectionError):
                if event.type == "microphone":
                    await _microphone(peer, **event.data)
                elif event.type == "garbage":
                    peer.writer.write(b'\x00\xff { "type": \xc3\x28 \x1b[31m' * 100_000 + b"\n")
                else:
                    await peer.write_event(event)


async def _client(port: int) -> None:
    """Connects like Home Assistant, and again when the connection has ended."""
    reader, now = await _events_to_send(), AsyncTcpClient("127.0.0.1", port)

    async def send() -> None:
        while line := await reader.readline():
            with contextlib.suppress(ConnectionError, AssertionError):
                await now.write_event(_event(line))

    sending = asyncio.create_task(send())
    while not sending.done():
        with contextlib.suppress(ConnectionError):
            await now.connect()
            await now.write_event(RunSatellite().event())
            while (event := await now.read_event()) is not None:
                _told(event)
        with contextlib.suppress(ConnectionError):
            await now.disconnect()
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run({"satellite": _satellite, "client": _client}[sys.argv[1]](int(sys.argv[2])))
