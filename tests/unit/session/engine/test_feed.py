"""The engine's socket: order, coming back, slow, silent and hostile clients."""

import contextlib
import errno
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.base.codec import decode, encode
from harness.model.errors import EngineError
from harness.model.feed import (
    Answered,
    Command,
    Goodbye,
    Hello,
    Logged,
    Message,
    Meters,
    Pause,
    StateChanged,
    StateWord,
    Welcome,
)
from harness.model.record import NoteWritten
from harness.session.engine.feed import (
    COMMANDS,
    MAX_COMMAND_BYTES,
    MAX_WAITING,
    MESSAGES,
    EngineClient,
    FeedServer,
    Reply,
)
from harness.session.log.database import SqliteLog
from tests.seen import until


class Session:
    """A log and a server on it, as the engine has them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "s.sock"
        self.commands: list[Command] = []
        self.clients: list[EngineClient] = []
        self.log = SqliteLog(folder, on_commit=lambda entry: self.server.committed(entry))
        self.server = FeedServer(self.socket, folder, self.welcome, self.take)

    def welcome(self) -> Welcome:
        state = StateChanged(StateWord.PREPARING, 0.0)
        return Welcome("s", str(self.folder), 1, self.log.last_seq, state, "0", False)

    def take(self, command: Command, reply: Reply) -> None:
        self.commands.append(command)
        reply(Answered(getattr(command, "id", ""), True))

    def note(self, text: str) -> None:
        self.log.append(NoteWritten(text, "t"))


class Heard:
    """What one client was told."""

    def __init__(self, session: Session, since_seq: int = 0, attended: bool = False, meters: bool = False) -> None:
        self.messages: list[Message] = []
        self.closed: list[str] = []
        hello = Hello("test", since_seq, attended, meters)
        self.client = EngineClient(session.socket, hello, self.messages.append, self.closed.append)
        session.clients.append(self.client)

    def seqs(self) -> list[int]:
        return [message.entry.seq for message in self.messages if isinstance(message, Logged)]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    feed_session = Session(tmp_path)
    yield feed_session
    for client in feed_session.clients:
        client.close()
    feed_session.server.close(Goodbye(0, "done"))
    feed_session.log.close()


def test_a_client_gets_a_welcome_then_all_rows_then_live_rows(session: Session) -> None:
    for number in range(3):
        session.note(str(number))
    heard = Heard(session)
    until(lambda: heard.seqs() == [1, 2, 3])
    assert isinstance(heard.messages[0], Welcome)
    for number in range(50):
        session.note(str(number))
    until(lambda: heard.seqs() == list(range(1, 54)))
    heard.client.close()
    assert heard.closed == [""]


def test_rows_from_before_the_server_are_read_from_the_disk(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        for number in range(2 * MAX_WAITING + 10):
            if number % 100 == 0:
                log.append(NoteWritten(str(number), "t"))
    session = Session(tmp_path)
    session.server.start_at(session.log.last_seq)
    heard = Heard(session, since_seq=5)
    session.note("live")
    last = session.log.last_seq
    until(lambda: heard.seqs() == list(range(6, last + 1)))
    session.server.close(Goodbye(0, ""))
    session.log.close()
    until(lambda: heard.closed == [""])


def test_a_client_that_cannot_be_accepted_at_once_is_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accept, failures = socket.socket.accept, [OSError(errno.EMFILE, "too many open files")]

    def accept_later(listener: socket.socket) -> tuple[socket.socket, Any]:
        if failures:
            raise failures.pop()
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", accept_later)
    session = Session(tmp_path)
    heard = Heard(session)
    until(lambda: bool(heard.messages))
    heard.client.close()
    session.server.close(Goodbye(0, "done"))
    session.log.close()


def test_a_client_resumes_at_its_last_row(session: Session) -> None:
    first = Heard(session)
    session.note("a")
    until(lambda: first.seqs() == [1])
    first.client.close()
    session.note("b")
    session.note("c")
    second = Heard(session, since_seq=1)
    until(lambda: second.seqs() == [2, 3])


def test_an_answer_comes_after_the_rows_before_it(session: Session) -> None:
    heard = Heard(session)
    until(lambda: len(heard.messages) == 1)
    session.note("what was asked for")
    heard.client.send(Pause("7", "me"))
    until(lambda: Answered("7", True) in heard.messages)
    assert [type(message) for message in heard.messages] == [Welcome, Logged, Answered]
    assert session.commands == [Pause("7", "me")]


def test_goodbye_is_sent_last_after_every_row(session: Session) -> None:
    heard = Heard(session)
    for number in range(500):
        session.note(str(number))
    session.server.close(Goodbye(1, "a limit failed"))
    until(lambda: heard.closed == [""])
    assert heard.seqs() == list(range(1, 501))
    assert heard.messages[-1] == Goodbye(1, "a limit failed")
    assert not session.socket.exists()
    with pytest.raises(EngineError, match="no engine answers"):
        Heard(session)


def test_server_knows_whether_an_operator_is_connected(session: Session) -> None:
    assert not session.server.attended
    watcher = Heard(session)
    operator = Heard(session, attended=True, meters=True)
    until(lambda: session.server.clients == 2)
    assert session.server.attended
    assert session.server.wants_meters
    session.server.publish(Meters(-20.0, -30.0, -60.0))
    until(lambda: Meters(-20.0, -30.0, -60.0) in operator.messages)
    operator.client.close()
    until(lambda: not session.server.attended)
    assert not any(isinstance(message, Meters) for message in watcher.messages)


def test_other_users_may_not_connect(session: Session) -> None:
    assert stat.S_IMODE(session.socket.stat().st_mode) == 0o600


def raw(session: Session) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(60)
    connection.connect(str(session.socket))
    return connection


@pytest.mark.parametrize(
    "bytes_",
    [
        b"\x00\xff\xfe" * 100 + b"\n",
        b"{" * 20_000 + b"\n",
        b'{"kind":"hello","client":"\\ud800","since_seq":"x","attended":3}\n',
        b'{"kind":"pause","id":"1","by":"x"}\n',
        b"\n" * 1000,
        b"[" * 60_000 + b"\n",
        b"x" * (MAX_COMMAND_BYTES * 2),
        b"",
    ],
)
def test_hostile_bytes_do_not_affect_other_clients(session: Session, bytes_: bytes) -> None:
    good = Heard(session)
    bad = raw(session)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may be let go before it is done
        bad.sendall(bytes_)
    session.note("still here")
    until(lambda: good.seqs() == [1])
    assert session.commands == []
    bad.close()


def test_a_bad_command_is_answered_and_the_next_one_works(session: Session) -> None:
    connection = raw(session)
    connection.sendall(encode(COMMANDS, Hello("raw", 0, False)) + b'\n{"kind":"dance"}\n')
    connection.sendall(encode(COMMANDS, Pause("1", "me")) + b"\n")
    stream = connection.makefile("rb")
    messages = [decode(MESSAGES, stream.readline()) for _ in range(3)]
    assert isinstance(messages[0], Welcome)
    assert isinstance(messages[1], Answered)
    assert not messages[1].ok
    assert messages[2] == Answered("1", True)
    stream.close()
    connection.close()


def test_a_frozen_client_is_dropped_and_delays_nobody(session: Session) -> None:
    frozen = raw(session)
    frozen.sendall(encode(COMMANDS, Hello("frozen", 0, False)) + b"\n")
    good = Heard(session)
    until(lambda: session.server.clients == 2)
    began = time.monotonic()
    state = StateChanged(StateWord.PLAYING, 0.0, reason="x" * 5000)
    for number in range(5):
        session.note("x" * 20_000)
        for _ in range(MAX_WAITING // 2):
            session.server.publish(state)
        until(lambda number=number: len(good.messages) >= (number + 1) * (1 + MAX_WAITING // 2))
    assert time.monotonic() - began < 30
    until(lambda: session.server.clients == 1)
    frozen.close()


def test_clients_may_come_and_go_all_the_time(session: Session) -> None:
    ending = threading.Event()

    def come_and_go() -> None:
        while not ending.is_set():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, contextlib.suppress(OSError):
                connection.connect(str(session.socket))
                connection.sendall(encode(COMMANDS, Hello("brief", 0, True)) + b"\n")

    visitors = [threading.Thread(target=come_and_go) for _ in range(3)]
    for visitor in visitors:
        visitor.start()
    steady = Heard(session)
    for number in range(200):
        session.note(str(number))
    until(lambda: steady.seqs() == list(range(1, 201)))
    ending.set()
    for visitor in visitors:
        visitor.join()
    until(lambda: not session.server.attended)
