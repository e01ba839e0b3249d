"""Half-sent requests are cut, whole ones are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from harness.web.connections import PromptConnection

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"
Visit = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


LIMIT = 200
"""As `serve_site` has it."""


class Hasty(PromptConnection):
    request_s = 0.2


async def gone(state: ServerState) -> None:
    """Returns when the server has seen each connection end: one left open would be reported in another test."""
    while state.connections:
        await asyncio.sleep(0.01)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(body)(scope, receive, send)


def visited(visit: Visit) -> None:
    async def served() -> None:
        config = uvicorn.Config(app, lifespan="off", log_level="critical", access_log=False, limit_concurrency=LIMIT)
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(lambda: Hasty(config, state, {}), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        async with asyncio.timeout(60):
            await visit(reader, writer)
            writer.close()
            await gone(state)
        server.close()
        assert not state.tasks

    asyncio.run(served())


def test_half_requests_of_one_address_leave_room_for_others() -> None:
    async def served() -> None:
        config = uvicorn.Config(app, lifespan="off", log_level="critical", access_log=False, limit_concurrency=LIMIT)
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: PromptConnection(config, state, {}), "127.0.0.1", 0
        )
        address = server.sockets[0].getsockname()
        half = [await asyncio.open_connection(*address) for _ in range(260)]
        for _, writer in half:
            writer.write(HEAD[:-2])
        # From the same address, as behind a proxy, and from another one.
        for source in ("127.0.0.1", "127.0.0.2"):
            reader, writer = await asyncio.open_connection(*address, local_addr=(source, 0))
            writer.write(HEAD + b"abcd")
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
            writer.close()
        assert len(state.connections) <= PromptConnection.max_waiting + 2
        for _, writer in half:
            writer.close()
        await gone(state)
        server.close()

    async def in_time() -> None:
        async with asyncio.timeout(60):
            await served()

    asyncio.run(in_time())


async def cut(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHo", HEAD, HEAD + b"abc"])
def test_unfinished_request_is_disconnected(sent: bytes) -> None:
    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        assert await cut(reader)

    visited(visit)


def test_trickled_bytes_do_not_delay_the_disconnect() -> None:
    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD[:-2])
        ended = asyncio.ensure_future(cut(reader))
        while not ended.done():
            writer.write(b"x: y\r\n")
            await asyncio.wait([ended], timeout=0.05)
        assert ended.result()

    visited(visit)


def test_whole_requests_are_answered_and_a_half_one_after_them_is_cut() -> None:
    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            writer.write(HEAD + b"abcd")
            assert (await reader.readuntil(b"abcd")).startswith(b"HTTP/1.1 200")
        writer.write(HEAD + b"abc")
        assert await cut(reader)

    visited(visit)
