"""JSON lines over a local socket, with a limit on their length."""

from __future__ import annotations

import socket
from collections.abc import Iterator

LONGEST_LINE = 1 << 20
"""Bytes. A command is far shorter; a row with a session's whole plan is longer, but rows only go out."""


class LineTooLong(ValueError):
    """A line went on for longer than its limit."""


def lines(connection: socket.socket, longest: int | None = LONGEST_LINE) -> Iterator[bytes]:
    """Lines without their newline until the other side closes; OSError, LineTooLong. Half a line at the end is lost.

    longest: in bytes; None: whatever comes (from an engine, which is ours).
    """
    pieces: list[bytes] = []
    length = 0
    while piece := connection.recv(65536):
        *whole, rest = piece.split(b"\n")
        for part in whole:
            yield b"".join([*pieces, part])
            pieces, length = [], 0
        pieces.append(rest)
        length += len(rest)
        if longest is not None and length > longest:
            raise LineTooLong(f"a line is longer than {longest} bytes")
