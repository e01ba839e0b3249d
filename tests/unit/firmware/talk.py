"""The simplest host of a board."""

from __future__ import annotations

import os
import time

from harness.devices.wire import frames, messages
from tests.seen import PATIENCE


class Talk:
    """A host at a board's pty, made of the harness's own frames."""

    def __init__(self, port: str, padding: int = 14) -> None:
        self.padding = padding
        self.line = os.open(port, os.O_RDWR | os.O_NOCTTY)
        os.set_blocking(self.line, False)
        self.decoder = frames.Decoder()
        self.console = b""

    def say(self, message: messages.Message, seq: int = 0) -> None:
        waiting = messages.to_frame(message, seq) + bytes(self.padding)
        while waiting:
            waiting = waiting[os.write(self.line, waiting) :]

    def hear(self, kind: type, count: int = 1, limit_s: float = 60.0) -> list[tuple[int, messages.Message]]:
        """The next `count` messages of a kind, with their numbers; events are acknowledged."""
        matches: list[tuple[int, messages.Message]] = []
        deadline = time.monotonic() + PATIENCE * limit_s
        while len(matches) < count:
            assert time.monotonic() < deadline, f"no {kind.__name__}"
            try:
                received = os.read(self.line, 65536)
            except BlockingIOError:
                time.sleep(0.001)
                continue
            for part in self.decoder.feed(received):
                if isinstance(part, bytes):
                    self.console += part
                    continue
                if part.seq:
                    self.say(messages.EventAck(part.seq))
                message = messages.decode(part)
                if isinstance(message, kind):
                    matches.append((part.seq, message))
        return matches

    def close(self) -> None:
        os.close(self.line)
