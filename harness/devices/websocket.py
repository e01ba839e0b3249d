"""Devices that report over a web socket, such as the message bus of OpenVoiceOS: each message is one line.

    web socket ──► WebSocketLink._pass_on ──► socket pair ──► TextStream reads lines
                   the link's thread: no echoes               the stream's thread

The socket pair gives the stream a file descriptor to wait for, which the library does not have. When it is full, the
link's thread waits, and with it the far end.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO, ClassVar, cast
from urllib.parse import SplitResult, urlsplit

from harness.base import threads
from harness.base.foreign import plain_text
from harness.base.host_check import Check, check_each
from harness.base.plugins import import_extra
from harness.base.ports import Surroundings
from harness.devices.declared import Abilities
from harness.devices.device_sources import StreamSource
from harness.devices.in_process.device import waveform_sha256
from harness.devices.text_streams import (
    CONNECT_LIMIT_S,
    END_GRACE_S,
    PIECE_BYTES,
    FarEnd,
    FarEndFile,
    TextStream,
    TextStreamOptions,
)
from harness.devices.wire.console import maps_lines
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError, LoginRefused
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.observation import StimulusEnded, StimulusStarted
from harness.model.stimulus import RenderedStimulus, Waveform
from harness.model.time import Stamp
from harness.model.trial import Trial

MAX_MESSAGE_BYTES = 16 * 1024 * 1024  # Chosen: far more than a message of a bus, and little enough for the memory.
_LINE_ENDS_TO_SPACES = bytes.maketrans(b"\r\n", b"  ")
_TEXT = "{text}"
_MAX_ECHOES = 16  # Messages of ours that a bus may still return to us; the device did not report those. Chosen.
_ECHO_S = 5.0  # For how long it may. Chosen: a bus returns them within milliseconds.
_EXTRA = ("the library for WebSockets", "websocket")


@frozen
class WebSocketOptions(TextStreamOptions):
    """url: Address of the WebSocket, such as ws://ovos.local:8181/core. wss:// encrypts and checks the certificate.

    send_on_open: Messages that the harness sends whenever the connection opens, such as subscriptions.
    token_env: Name of the environment variable that holds a token, sent as `Authorization: Bearer TOKEN`.
    text_message: Message that injects an utterance as text, instead of sound. {text} in it stands for the words, with
    the escapes of JSON.
    ping_s: Interval between pings, s. A far end that does not answer one within the same time is lost (0: no pings).
    """

    url: str = ""
    send_on_open: tuple[str, ...] = ()
    token_env: str = ""
    text_message: str = ""
    ping_s: float = 5.0

    def __post_init__(self) -> None:
        super(WebSocketOptions, self).__post_init__()  # noqa: UP008 (slots: the class is made anew)
        checked_url(self.url, ("ws", "wss"), "a WebSocket URL", "Use the form ws://host:port/path")
        if self.text_message and _TEXT not in self.text_message:
            raise InputError(
                f"`text_message` does not contain {_TEXT}",
                remedy=f"Put {_TEXT} in `text_message`, where the words belong",
            )
        if not (self.ping_s == 0 or 0.5 <= self.ping_s <= 600):
            raise InputError(f"ping_s is {exact(self.ping_s)}", remedy="Use 0, or a number from 0.5 to 600")


def checked_url(url: str, schemes: tuple[str, ...], name: str, remedy: str) -> SplitResult:
    """The parts of a URL. Raises InputError if it does not have one of these schemes, or contains a user.

    name: its name in the message, such as "a WebSocket URL".
    """
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in schemes and parts.hostname and parts.port != 0 and not parts.fragment
    except ValueError:
        is_valid = False
    if not is_valid or not url.isprintable() or " " in url:
        if url.count(":") > 2 and "[" not in url:
            remedy += ", with an IPv6 address in brackets"
        raise InputError(f"url: {url!r} is not {name}", remedy=remedy)
    if "@" in parts.netloc:
        raise InputError(
            "`url` contains a user name or a password",
            remedy="Put the token in an environment variable, and set `token_env` to its name",
        )
    return parts


def read_token(variable: str) -> str:
    """The token in an environment variable. Raises InputError when it is not set."""
    token = os.environ.get(variable, "")
    if not (token.isascii() and token.isprintable() and token.strip()):
        raise InputError(
            f"the environment variable {variable} for the token is not set, or is not one line of ASCII",
            remedy=f"Set it: export {variable}=…",
        )
    return token


def _headers(options: WebSocketOptions) -> dict[str, str]:
    """The headers of the request that opens the connection. Raises InputError when the token's variable is not set."""
    return {"Authorization": f"Bearer {read_token(options.token_env)}"} if options.token_env else {}


def demand_library() -> tuple[Any, Any]:
    """The library's client and its exceptions. Raises PluginError when it is not installed."""
    return import_extra("websockets.sync.client", *_EXTRA), import_extra("websockets.exceptions", *_EXTRA)


def open_socket(url: str, headers: Mapping[str, str] = MappingProxyType({}), ping_s: float = 0.0) -> Any:
    """An open connection of the library. Raises DeviceError when nobody answers, LoginRefused for HTTP 401 and 403."""
    client, errors = demand_library()
    try:
        return client.connect(
            url,
            additional_headers=headers,
            open_timeout=CONNECT_LIMIT_S,
            close_timeout=END_GRACE_S,
            ping_interval=ping_s or None,
            ping_timeout=ping_s or None,
            max_size=MAX_MESSAGE_BYTES,
            compression=None,
            proxy=None,
        )
    except (OSError, ValueError, AssertionError, errors.WebSocketException) as error:
        # ValueError: a host name that cannot be encoded. AssertionError: the library's, when the peer closes early.
        why = plain_text(str(error), 300) or "it closed the connection during the handshake"
        if isinstance(error, errors.InvalidStatus) and error.response.status_code in (401, 403):
            raise LoginRefused(
                f"{url} refuses the harness: {why}", remedy="Correct the token, then start again"
            ) from error
        raise DeviceError(
            f"{url} cannot be reached: {why}", remedy="Check that the program is running, and that `url` is its address"
        ) from error


def _parse_json(message: bytes) -> object:
    """The JSON in a message; the message itself if it is not JSON."""
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return message


class WebSocketLink:
    """An open WebSocket, whose messages arrive as lines at a file descriptor."""

    def __init__(self, options: WebSocketOptions) -> None:
        _, self._errors = demand_library()
        self._url, self._end_reason = options.url, "closed"
        self._sent_messages = deque[tuple[float, object]](maxlen=_MAX_ECHOES)  # time and content
        self._socket = open_socket(options.url, _headers(options), options.ping_s)
        self._lines_out, self._lines_in = socket.socketpair()
        self._thread = threads.thread(self._pass_on, name="web socket")
        self._thread.start()
        try:
            for message in options.send_on_open:
                self._send(message)
        except OSError as error:
            self.close()
            raise DeviceError(
                f"{options.url} did not accept a message: {error}", remedy="Check the log of the program at this URL"
            ) from error

    def fileno(self) -> int:
        return self._lines_out.fileno()

    def read(self) -> bytes:
        try:
            return self._lines_out.recv(PIECE_BYTES)
        except OSError:
            return b""

    def write(self, data: bytes) -> None:
        self._send(data.decode().removesuffix("\n"))

    def end_reason(self) -> str:
        return f"{self._url}: {self._end_reason}"

    def close(self) -> None:
        """Ends the connection and the thread, in any state."""
        with contextlib.suppress(OSError):
            self._lines_out.shutdown(socket.SHUT_RDWR)  # first: the thread may wait until its lines are read
        self._socket.close()
        self._thread.join(END_GRACE_S)
        self._lines_out.close()

    def _send(self, message: str) -> None:
        """Sends a message, whose echo is then left out. Raises ConnectionError when the connection has ended."""
        self._sent_messages.append((threads.monotonic(), _parse_json(message.encode())))
        try:
            self._socket.send(message)
        except self._errors.ConnectionClosed as error:
            raise ConnectionError(plain_text(str(error), 300)) from error

    def _is_echo(self, message: bytes) -> bool:
        """Whether a message is one of the harness's own that the bus returns, perhaps with further keys.

        Each of the harness's messages has one echo, which counts only within _ECHO_S.
        """
        while self._sent_messages and threads.monotonic() - self._sent_messages[0][0] > _ECHO_S:
            self._sent_messages.popleft()
        document = _parse_json(message) if self._sent_messages else None
        for index, (_, own_document) in enumerate(self._sent_messages):
            has_all_keys = (
                isinstance(own_document, dict)
                and isinstance(document, dict)
                and {**document, **own_document} == document
            )
            if document == own_document or has_all_keys:
                del self._sent_messages[index]
                return True
        return False

    def _pass_on(self) -> None:
        """Runs in the link's thread: passes messages on until either side closes the socket."""
        with self._lines_in:
            try:
                while True:
                    message: bytes = self._socket.recv(decode=False)
                    if self._is_echo(message):
                        continue
                    self._lines_in.sendall(message.translate(_LINE_ENDS_TO_SPACES) + b"\n")
            except self._errors.ConnectionClosed as error:
                self._end_reason = plain_text(str(error), 300)
            except OSError:
                pass  # closed by us


class WebSocketLog(TextStream):
    """The messages of a WebSocket. With `text_message`, it is a `WebSocketText`, so that only that one has `play`."""

    Options: ClassVar[type] = WebSocketOptions

    def __new__(cls, id: str, options: WebSocketOptions, surroundings: Surroundings) -> WebSocketLog:
        return super().__new__(WebSocketText if options.text_message else cls)

    def connect(self) -> FarEnd:
        return WebSocketLink(self._options)

    @staticmethod
    def abilities(options: Any, profile: DeviceProfile | None) -> Abilities:
        injects, restarts = bool(options.text_message), bool(options.restart_line)
        return Abilities(injects=injects, restarts=restarts, hears=maps_lines(profile))

    @staticmethod
    def source(options: WebSocketOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> StreamSource:
        return StreamSource(options.url, lambda: cast(BinaryIO, FarEndFile(WebSocketLink(options))))

    @staticmethod
    def demand_host(options: WebSocketOptions) -> None:
        """Raises InputError when the token's variable is not set, PluginError when the library is not installed."""
        _headers(options)
        demand_library()

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, WebSocketOptions]]) -> Iterator[Check]:
        def attempt(options: WebSocketOptions) -> str:
            WebSocketLink(options).close()
            return f"{options.url} answers"

        return check_each("websocket", connections, attempt)

    @staticmethod
    def far_end(options: WebSocketOptions, id: str) -> str:
        return options.url


class WebSocketText(WebSocketLog):
    """A device that receives the words of a query as text, when their sound would have begun."""

    def __init__(self, id: str, options: WebSocketOptions, surroundings: Surroundings) -> None:
        super().__init__(id, options, surroundings)
        self._references: dict[str, str] = {}

    def prompt(self, trial: Trial, stimulus: RenderedStimulus) -> None:
        """Notes the words of a query, which `play` sends."""
        if trial.listening is None:
            self._references[waveform_sha256(stimulus.waveform)] = trial.reference

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Sends the words of a query. Raises DeviceError for other sounds, and while the link is lost."""
        words = self._references.get(waveform_sha256(waveform))
        if words is None:
            raise DeviceError(
                f"{self.id} accepts queries as text, not other sounds",
                remedy="Set `route: loudspeaker` for trials with wake words or noise",
            )
        began = Stamp(self._clock.now_s())
        escaped = json.dumps(words).removeprefix('"').removesuffix('"')
        self._send_line(self._options.text_message.replace(_TEXT, escaped))
        self._outlet.tell(StimulusStarted(self.id, began, play_id))
        self._outlet.tell(StimulusEnded(self.id, Stamp(self._clock.now_s()), play_id))

    def stop(self) -> None:
        """Text cannot be stopped."""

    def level_dbfs(self) -> None:
        """Text has no level."""
