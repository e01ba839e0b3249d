"""The messages between an engine and its clients: JSON lines over a local socket, with a limit on their length."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from harness.base.codec import CodecError, decode, encode
from harness.model.errors import EngineError, LogError
from harness.model.feed import Answered, Command, Goodbye, Hello, Logged, Message, Meters, StateChanged, Welcome
from harness.model.record import Entry
from harness.session.log.reader import LogReader

MESSAGES: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="kind")])
COMMANDS: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="kind")])
MAX_LINE_BYTES = 1 << 20
"""Longest line in bytes. A command is far shorter. A row with a session's plan is longer, but rows are only sent."""


class LineTooLong(ValueError):
    """A line is longer than its limit."""


def lines(connection: socket.socket, max_bytes: int | None = MAX_LINE_BYTES) -> Iterator[bytes]:
    """Yields lines, without their newline, until the other side closes. An incomplete line at the end is dropped.

    max_bytes: length of the longest line; None: no limit (for lines from an engine, which is trusted).
    Raises LineTooLong, and OSError if the connection breaks.
    """
    pieces: list[bytes] = []
    length = 0
    while piece := connection.recv(65536):
        *line_ends, incomplete = piece.split(b"\n")
        for line_end in line_ends:
            yield b"".join([*pieces, line_end])
            pieces, length = [], 0
        pieces.append(incomplete)
        length += len(incomplete)
        if max_bytes is not None and length > max_bytes:
            raise LineTooLong(f"a line is longer than {max_bytes:,} bytes")


MAX_CLIENTS = 32
MAX_WAITING = 2000
"""Number of messages that a client may leave waiting, and of rows that the server keeps in memory."""
SEND_WITHIN_S = 10.0
HELLO_WITHIN_S = 10.0
"""A client that reads nothing for SEND_WITHIN_S, or sends no Hello within HELLO_WITHIN_S, is dropped."""
ACCEPT_AGAIN_S = 0.5
"""Wait before the server accepts connections again after an error."""
MAX_COMMAND_BYTES = 1 << 16
"""Longest line that a client may send, in bytes."""
RESUME = ". Resume: harness run resume SESSION"
"""Follows the reason why the engine is gone. A client that knows the session's folder names it instead."""

Reply = Callable[[Answered], None]


class FeedServer:
    """Serves one session on a local socket (mode 0600).

    Each client has its own two threads, so a slow, frozen or hostile client delays nobody else. Rows are read from
    the log and never queued per client. A client that leaves other messages waiting is dropped, and may reconnect with
    `since_seq`.

    - welcome: makes the first message.
    - on_command: called on a client's thread; its answer goes to that client. Must not block for long.
    - on_clients_changed: called after a client has connected or left. Must not block for long.
    """

    def __init__(
        self,
        path: Path,
        folder: Path,
        welcome: Callable[[], Welcome],
        on_command: Callable[[Command, Reply], None],
        on_clients_changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = path
        self._folder = folder
        self._make_welcome = welcome
        self._on_command = on_command
        self._on_clients_changed = on_clients_changed
        self._changed = threading.Condition()
        self._recent: deque[Entry] = deque(maxlen=MAX_WAITING)
        self._last_seq = 0
        self._clients: list[_Client] = []
        self._client_has_connected = threading.Event()
        self._goodbye: Goodbye | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            path.unlink(missing_ok=True)  # left by an engine that was killed
            self._listener.bind(str(path))
            path.chmod(0o600)  # before listen, so that no other user can connect
            self._listener.listen(MAX_CLIENTS)
        except OSError as error:
            self._listener.close()
            raise EngineError(
                f"the socket {path} cannot be created: {error}",
                remedy="Set HARNESS_RUNTIME to a folder with a short path",
            ) from error
        self._accepting = threading.Thread(target=self._accept, name="feed-accept", daemon=True)
        self._accepting.start()

    @property
    def attended(self) -> bool:
        """Whether a client with an operator is connected."""
        with self._changed:
            return any(client.hello is not None and client.hello.attended for client in self._clients)

    @property
    def wants_meters(self) -> bool:
        with self._changed:
            return any(client.hello is not None and client.hello.meters for client in self._clients)

    @property
    def clients(self) -> int:
        """Number of connections that sent Hello and are open."""
        with self._changed:
            return sum(client.hello is not None for client in self._clients)

    def wait_for_a_client(self, timeout_s: float) -> bool:
        """Waits until a client has connected. Returns whether one has."""
        return self._client_has_connected.wait(timeout_s)

    def committed(self, entry: Entry) -> None:
        """Announces a row to the clients; called in order of seq. Never blocks."""
        with self._changed:
            self._recent.append(entry)
            self._last_seq = entry.seq
            self._changed.notify_all()

    def publish(self, message: StateChanged | Meters | Answered) -> None:
        """Sends a message to all clients. Never blocks."""
        with self._changed:
            for client in self._clients:
                client.enqueue(message)
            self._changed.notify_all()

    def close(self, goodbye: Goodbye, within_s: float = 3.0) -> None:
        """Sends Goodbye after all rows, lets clients read it, and removes the socket. A second call does nothing."""
        with self._changed:
            if self._goodbye is not None:
                return
            self._goodbye = goodbye
            for client in self._clients:
                client.enqueue(goodbye)
            clients = list(self._clients)
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept(), which close() would not
        self._listener.close()
        self._accepting.join()
        for client in clients:
            client.writing.join(within_s)
            client.disconnect()
            client.reading.join()
        self._path.unlink(missing_ok=True)

    def rows_after(self, seq: int) -> list[Entry]:
        """The next committed rows after a seq, at most MAX_WAITING, in order; [] without new rows. Raises LogError."""
        with self._changed:
            if seq >= self._last_seq:
                return []
            if self._recent and self._recent[0].seq <= seq + 1:
                return [entry for entry in self._recent if entry.seq > seq]
        entries: list[Entry] = []
        with LogReader(self._folder) as reader:
            for entry in reader.entries(seq):
                entries.append(entry)
                if len(entries) >= MAX_WAITING:
                    break
        return entries

    def start_at(self, last_seq: int) -> None:
        """Records that the rows up to this one were committed before the server started."""
        with self._changed:
            self._last_seq = last_seq

    def _accept(self) -> None:
        """Accepts connections until `close`. Runs in a thread of its own."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                with self._changed:
                    if self._goodbye is not None:
                        return  # closed by close()
                    self._changed.wait(ACCEPT_AGAIN_S)  # such as too many open files, which may pass
                continue
            with self._changed:
                if self._goodbye is not None or len(self._clients) >= MAX_CLIENTS:
                    connection.close()
                    continue
                client = _Client(self, connection)
                self._clients.append(client)
            client.start()

    def _forget(self, client: _Client) -> None:
        with self._changed:
            if client in self._clients:
                self._clients.remove(client)
            self._changed.notify_all()
        self._on_clients_changed()


class _Client:
    """One connection, with a thread that reads and a thread that writes.

    hello: the client's greeting; None before it. The server's condition `_changed` guards the fields.
    """

    def __init__(self, server: FeedServer, connection: socket.socket) -> None:
        self._server = server
        self._connection = connection
        self._waiting: deque[Message] = deque()
        self._meters: Meters | None = None
        self._is_closed = False
        self._running_threads = 2
        self.hello: Hello | None = None
        self.reading = threading.Thread(target=self._read, name="feed-read", daemon=True)
        self.writing = threading.Thread(target=self._write, name="feed-write", daemon=True)

    def start(self) -> None:
        self.writing.start()
        self.reading.start()

    def enqueue(self, message: Message) -> None:
        """Queues a message for the writing thread. Drops the client when too many wait. The caller holds `_changed`."""
        if isinstance(message, Meters):
            if self.hello is not None and self.hello.meters:
                self._meters = message  # only the newest level matters
        elif self.hello is not None:
            self._waiting.append(message)
            if len(self._waiting) > MAX_WAITING:
                self.disconnect()

    def disconnect(self) -> None:
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        self._connection.settimeout(HELLO_WITHIN_S)
        try:
            for line in lines(self._connection, MAX_COMMAND_BYTES):
                try:
                    command = decode(COMMANDS, line)
                except CodecError as error:
                    self._answer(Answered("", False, error.what))
                    continue
                if isinstance(command, Hello):
                    self._connection.settimeout(None)  # from now on it may be silent
                    self._greet(command)
                elif self.hello is None:
                    return  # a client of this harness sends Hello first
                else:
                    self._server._on_command(command, self._answer)
        except (OSError, LineTooLong):
            pass  # gone, silent for too long, or hostile: dropped below
        finally:
            self._end_thread()

    def _greet(self, hello: Hello) -> None:
        """Queues the welcome after the first Hello. A further Hello only changes `attended` and `meters`."""
        with self._server._changed:
            is_first = self.hello is None
            self.hello = hello
            if is_first:
                self._waiting.append(self._server._make_welcome())
                if self._server._goodbye is not None:  # it came too late for the one that `close` sends
                    self._waiting.append(self._server._goodbye)
            self._server._changed.notify_all()
        self._server._client_has_connected.set()
        self._server._on_clients_changed()

    def _answer(self, answered: Answered) -> None:
        with self._server._changed:
            self.enqueue(answered)
            self._server._changed.notify_all()

    def _end_thread(self) -> None:
        """Ends one of the two threads. The first one to end wakes the other; the last one closes the connection."""
        with self._server._changed:
            self.disconnect()
            self._running_threads -= 1
            if not self._running_threads:
                self._connection.close()
        self._server._forget(self)

    def _write(self) -> None:
        """Sends the welcome, rows and messages, until the client is closed or has everything after a Goodbye."""
        sent_seq = -1  # of the last row that was sent; -1 before the welcome
        try:
            while (messages := self._await_messages(sent_seq)) is not None:
                if sent_seq < 0 and self.hello is not None:
                    self._send(messages[:1])  # the welcome
                    messages = messages[1:]
                    sent_seq = max(0, self.hello.since_seq)
                # Rows go first, so that answers and Goodbye follow the rows that they refer to.
                while rows := self._server.rows_after(sent_seq):
                    self._send([Logged(entry) for entry in rows])
                    sent_seq = rows[-1].seq
                self._send(messages)
        except (OSError, LogError):
            pass  # the client is gone or frozen, or the log cannot be read: it may come back
        finally:
            self._end_thread()

    def _await_messages(self, sent_seq: int) -> list[Message] | None:
        """Waits until there is something to send, and takes the messages from the queue. None if nothing will follow.

        The list is empty if there are only rows to send.
        """
        with self._server._changed:
            while not (self._is_closed or self._has_messages(sent_seq)):
                if self._server._goodbye is not None and sent_seq >= self._server._last_seq:
                    return None
                self._server._changed.wait(1.0)
            if self._is_closed:
                return None
            messages: list[Message] = list(self._waiting)
            self._waiting.clear()
            if self._meters is not None:
                messages.append(self._meters)
                self._meters = None
        return messages

    def _has_messages(self, sent_seq: int) -> bool:
        if self.hello is None:
            return False
        return bool(self._waiting) or self._meters is not None or 0 <= sent_seq < self._server._last_seq

    def _send(self, messages: list[Message]) -> None:
        if messages:
            text = b"".join(encode(MESSAGES, message) + b"\n" for message in messages)
            _send_within(self._connection, text, SEND_WITHIN_S)


def _send_within(connection: socket.socket, text: bytes, timeout_s: float) -> None:
    """Sends all data, each piece within timeout_s. Raises TimeoutError for a client that does not read."""
    poll = select.poll()  # a timeout of the socket would also limit the thread that reads it
    poll.register(connection, select.POLLOUT)
    view = memoryview(text)
    while view:
        if not poll.poll(timeout_s * 1000):
            raise TimeoutError("the client has stopped reading")
        with contextlib.suppress(BlockingIOError):
            view = view[connection.send(view[:65536], socket.MSG_DONTWAIT) :]


class EngineClient:
    """A connection to a running engine. It sends Hello at once. Raises EngineError if it cannot connect.

    - on_message: called on the reading thread for each message, in order.
    - on_closed: called once, after the last message, with a text for people ("" after a Goodbye or after `close`).
    """

    def __init__(
        self, socket_path: Path, hello: Hello, on_message: Callable[[Message], None], on_closed: Callable[[str], None]
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
                remedy="List the running sessions: harness run attach. Resume a session: harness run resume SESSION",
            ) from error
        self._thread = threading.Thread(target=self._read, name="engine-client", daemon=True)
        try:
            self.send(hello)
        except EngineError:
            self._connection.close()
            raise
        self._thread.start()

    def send(self, command: Command) -> None:
        """Sends a command. The engine's Answered comes as a message. Raises EngineError when the engine is gone."""
        text = encode(COMMANDS, command) + b"\n"
        try:
            with self._sending:
                self._connection.sendall(text)
        except OSError as error:
            raise EngineError(
                f"the engine is gone: {error.strerror or error}", remedy=RESUME.removeprefix(". ")
            ) from error

    def close(self) -> None:
        """Ends the connection; the session goes on. May be called from any thread, twice, and from a callback."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _read(self) -> None:
        why = f"the engine ended unexpectedly{RESUME}"
        try:
            for line in lines(self._connection, None):
                message = decode(MESSAGES, line)
                if isinstance(message, Goodbye):
                    why = ""
                self._on_message(message)
        except OSError as error:
            if why:  # after a Goodbye, the end is expected
                why = f"the connection broke: {error.strerror or error}"
        except CodecError as error:
            why = f"the engine has a different version: {error.what}"
        with self._sending:  # not while another thread sends: the system may give the socket's number to another file
            self._connection.close()
        self._on_closed("" if self._closing else why)
