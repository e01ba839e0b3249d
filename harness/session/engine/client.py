"""A client's side of the engine's socket: a reading thread with callbacks, commands by `send`."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from harness.base.codec import COMMANDS, MESSAGES, CodecError, decode, encode
from harness.model.errors import EngineError
from harness.model.feed import Command, Goodbye, Hello, Message
from harness.session.engine.lines import lines


class EngineClient:
    """A connection to a running engine; says hello at once. EngineError when nobody answers.

    on_message: called on the reading thread for each message, in order. on_closed: called once, at the end, with words
    for people ("" after a Goodbye or our own close); no message follows it.
    """

    def __init__(
        self,
        socket_path: Path,
        hello: Hello,
        on_message: Callable[[Message], None],
        on_closed: Callable[[str], None],
    ) -> None:
        self._on_message = on_message
        self._on_closed = on_closed
        self._closing = False
        self._sending = threading.Lock()
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._connection.connect(str(socket_path))
        except OSError as error:
            self._connection.close()
            raise EngineError(
                f"no engine answers at {socket_path}: {error.strerror}",
                remedy="See which sessions there are: harness attach; go on with one: harness resume SESSION",
            ) from error
        self._thread = threading.Thread(target=self._read, name="engine-client", daemon=True)
        try:
            self.send(hello)
        except EngineError:
            self._connection.close()
            raise
        self._thread.start()

    def send(self, command: Command) -> None:
        """Sends a command; the engine's Answered comes as a message. EngineError when the engine is gone."""
        text = encode(COMMANDS, command) + b"\n"
        try:
            with self._sending:
                self._connection.sendall(text)
        except OSError as error:
            raise EngineError(
                f"the engine is gone: {error.strerror or error}", remedy="Go on with: harness resume SESSION"
            ) from error

    def close(self) -> None:
        """Ends the connection; the session goes on. May be called from any thread, twice, and from a callback."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _read(self) -> None:
        why = "the engine ended without a word; go on with: harness resume SESSION"
        try:
            for line in lines(self._connection, None):
                message = decode(MESSAGES, line)
                if isinstance(message, Goodbye):
                    why = ""
                self._on_message(message)
        except OSError as error:
            why = f"the connection broke: {error.strerror or error}" if why else ""
        except CodecError as error:
            why = f"the engine speaks another version: {error.what}"
        with self._sending:
            self._connection.close()
        self._on_closed("" if self._closing else why)
