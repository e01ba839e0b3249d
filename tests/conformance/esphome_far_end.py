"""An ESPHome device on the loopback: its native API, plain or encrypted, by the definitions of aioesphomeapi."""

from __future__ import annotations

import base64
import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from aioesphomeapi import api_pb2
from aioesphomeapi._frame_helper.packets import make_plain_text_packets
from aioesphomeapi.core import MESSAGE_TYPE_TO_PROTO
from cryptography.exceptions import InvalidTag
from google.protobuf.message import Message
from noise.connection import NoiseConnection

from tests.conformance.far_end import TcpFarEnd
from tests.seen import until

pb: Any = api_pb2
NUMBERS = {message: number for number, message in MESSAGE_TYPE_TO_PROTO.items()}
KEY = base64.b64encode(bytes(range(32))).decode()
OTHER_KEY = base64.b64encode(bytes(32)).decode()
MUTE, PLAYER, SENSITIVITY, RESTART, HEARD, GAIN = 1, 2, 3, 4, 5, 6
ENTITIES = (
    pb.ListEntitiesSwitchResponse(key=MUTE, object_id="mute", name="Mute"),
    pb.ListEntitiesMediaPlayerResponse(key=PLAYER, object_id="media_player", name="Media Player"),
    pb.ListEntitiesSelectResponse(key=SENSITIVITY, name="Wake word sensitivity", options=["Slightly", "Very"]),
    pb.ListEntitiesButtonResponse(key=RESTART, object_id="restart", name="Restart"),
    pb.ListEntitiesTextSensorResponse(key=HEARD, object_id="heard", name="Heard"),
    pb.ListEntitiesNumberResponse(key=GAIN, object_id="gain", name="Gain", min_value=0, max_value=31, step=0.1),
)
STATES = (
    pb.SwitchStateResponse(key=MUTE, state=False),
    pb.MediaPlayerStateResponse(key=PLAYER, state=1),
    pb.SelectStateResponse(key=SENSITIVITY, state="Slightly"),
    pb.TextSensorStateResponse(key=HEARD, state="what time is it"),
    pb.NumberStateResponse(key=GAIN, state=0.1),
)
VOICE, API_AUDIO, ANNOUNCE = 1, 4, 16
"""Features of its voice assistant."""
DEVICE = pb.DeviceInfoResponse(
    name="voice-pe",
    mac_address="20:F8:3B:00:00:01",
    model="Home Assistant Voice PE",
    manufacturer="Nabu Casa",
    esphome_version="2025.11.0",
    project_name="Nabu Casa.Voice PE",
    project_version="25.11.0",
    voice_assistant_feature_flags=VOICE | API_AUDIO | ANNOUNCE,
)


class Plain:
    """Frames without encryption."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._file = link.makefile("rb")

    def frames(self) -> Iterator[tuple[int, bytes]]:
        while (mark := self._file.read(1)) == b"\0":
            size, number = self._varint(), self._varint()
            yield number, self._file.read(size)
        if mark:
            self._link.sendall(b"\0Bad indicator byte")  # as the firmware does

    def send(self, number: int, data: bytes) -> None:
        self._link.sendall(b"".join(make_plain_text_packets([(number, data)])))

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._file.read(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value


class Encrypted:
    """Frames under Noise_NNpsk0_25519_ChaChaPoly_SHA256; the handshake of the device."""

    def __init__(self, link: socket.socket, key: str) -> None:
        self._link = link
        self._file = link.makefile("rb")
        self._noise = NoiseConnection.from_name(b"Noise_NNpsk0_25519_ChaChaPoly_SHA256")
        self._noise.set_as_responder()
        self._noise.set_psks(base64.b64decode(key))
        self._noise.set_prologue(b"NoiseAPIInit\0\0")
        self._noise.start_handshake()
        if self._file.peek(1)[:1] == b"\0":
            self._put(b"\x01Bad indicator byte")  # as the firmware does
            raise OSError("a client without encryption")
        self._frame()
        self._put(b"\x01voice-pe\x0020f83b000001\0")
        try:
            self._noise.read_message(self._frame()[1:])
        except InvalidTag:
            self._put(b"\x01Handshake MAC failure")
            raise OSError("a wrong key") from None
        self._put(b"\0" + bytes(self._noise.write_message()))

    def frames(self) -> Iterator[tuple[int, bytes]]:
        while frame := self._frame():
            data = bytes(self._noise.decrypt(frame))
            yield int.from_bytes(data[:2], "big"), data[4:]

    def send(self, number: int, data: bytes) -> None:
        self._put(bytes(self._noise.encrypt(number.to_bytes(2, "big") + len(data).to_bytes(2, "big") + data)))

    def _frame(self) -> bytes:
        head = self._file.read(3)
        return self._file.read(int.from_bytes(head[1:], "big")) if len(head) == 3 else b""

    def _put(self, data: bytes) -> None:
        self._link.sendall(b"\x01" + len(data).to_bytes(2, "big") + data)


class EsphomeFarEnd(TcpFarEnd):
    """A device for several clients. key: encrypts. frozen: it takes what comes, and answers nothing.

    stubborn: it keeps its settings. commands: changes of settings that it was asked for. features: of its voice
    assistant. events: what its assistant sent, by name, with the data. played: announcements, as (media, text).
    plays: they succeed. taken: another client is its assistant.
    """

    def __init__(self, key: str = "") -> None:
        self.frozen = False
        self.stubborn = False
        self.commands: list[tuple[int, object]] = []
        self.states: dict[int, Any] = {state.key: state for state in STATES}
        self.log_levels: list[int] = []
        self.restarts = 0
        self.features = VOICE | API_AUDIO | ANNOUNCE
        self.assistant: Plain | Encrypted | None = None
        self.events: list[tuple[str, dict[str, str]]] = []
        self.responses: list[Any] = []
        self.played: list[tuple[str, str]] = []
        self.plays = True
        self.taken = False
        self._key = key
        self._listening_to: list[Plain | Encrypted] = []
        self._states_to: list[Plain | Encrypted] = []
        super().__init__()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def connected(self) -> bool:
        return bool(self._peers)

    def lose(self) -> None:
        with self._lock:
            self._listening_to, self._states_to, self.assistant = [], [], None
        super().lose()

    def log(self, line: str) -> None:
        """A line of the log, in the colours of ESPHome, as soon as somebody listens."""
        message = pb.SubscribeLogsResponse(level=5, message=f"\033[0;36m{line}\033[0m".encode())
        until(lambda: self._listening_to, otherwise="nobody listens to its log")
        for peer in tuple(self._listening_to):
            self._send(peer, message)

    def state(self, message: Message) -> None:
        """A new state of an entity, as soon as somebody listens."""
        until(lambda: self._states_to, otherwise="nobody listens to its states")
        for peer in tuple(self._states_to):
            self._send(peer, message)

    def wake(self, phrase: str = "Okay Nabu", flags: int = 0) -> None:
        """It has found its wake phrase, and waits until its assistant has answered."""
        count = len(self.responses)
        self._say(pb.VoiceAssistantRequest(start=True, conversation_id="c1", flags=flags, wake_word_phrase=phrase))
        until(lambda: len(self.responses) > count, otherwise="no answer of the assistant")

    def hear(self, sound: np.ndarray[Any, Any], *, pace: bool = False) -> None:
        """What its microphone hears, float32 (n,) at 16 kHz, in pieces of 32 ms over the API or UDP."""
        data, port = (np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes(), self.responses[-1].port
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
            for start in range(0, len(data), 1024):
                piece = data[start : start + 1024]
                if port:
                    link.sendto(piece, ("127.0.0.1", port))
                else:
                    self.send_sound(piece)
                if port or pace:
                    time.sleep(0.032 if pace else 0.002)

    def send_sound(self, data: bytes) -> None:
        """16 bits per sample."""
        self._say(pb.VoiceAssistantAudio(data=data))

    def stop(self, *, aborted: bool) -> None:
        self._say(pb.VoiceAssistantRequest(start=False) if aborted else pb.VoiceAssistantAudio(end=True))

    def _say(self, message: Message) -> None:
        until(lambda: self.assistant, otherwise="nobody is its assistant")
        assert self.assistant is not None
        self._send(self.assistant, message)

    def garbage(self) -> None:
        """Bytes that are not a frame."""
        for link in tuple(self._peers):
            link.sendall(b"\xff" * 100)

    def _serve(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError, IndexError), link:
            peer = Encrypted(link, self._key) if self._key else Plain(link)
            try:
                for number, data in peer.frames():
                    if not self.frozen:
                        self._answer(peer, MESSAGE_TYPE_TO_PROTO[number].FromString(data))
            finally:
                self._subscribe(peer, False)
                with self._lock:
                    self._peers = [other for other in self._peers if other is not link]
                    # Else `log` and `state` would take it for somebody who listens.
                    self._listening_to = [other for other in self._listening_to if other is not peer]
                    self._states_to = [other for other in self._states_to if other is not peer]

    def _answer(self, peer: Plain | Encrypted, request: Message) -> None:
        match type(request).__name__:
            case "HelloRequest":
                hello = pb.HelloResponse(api_version_major=1, api_version_minor=14, server_info="far end", name="pe")
                self._send(peer, hello)
            case "PingRequest":
                self._send(peer, pb.PingResponse())
            case "DeviceInfoRequest":
                about = pb.DeviceInfoResponse()
                about.CopyFrom(DEVICE)
                about.voice_assistant_feature_flags = self.features
                self._send(peer, about)
            case "ListEntitiesRequest":
                for entity in (*ENTITIES, pb.ListEntitiesDoneResponse()):
                    self._send(peer, entity)
            case "SubscribeLogsRequest":
                self.log_levels.append(request.level)  # type: ignore[attr-defined]
                self._listening_to.append(peer)
            case "SubscribeStatesRequest":
                for state in self.states.values():
                    self._send(peer, state)
                self._states_to.append(peer)
            case "SwitchCommandRequest" | "SelectCommandRequest" | "NumberCommandRequest":
                key, value = request.key, request.state  # type: ignore[attr-defined]
                self.commands.append((key, value))
                if not self.stubborn:
                    self.states[key] = type(self.states[key])(key=key, state=value)
                    self.state(self.states[key])
            case "ButtonCommandRequest":
                self.restarts += 1
            case "SubscribeVoiceAssistantRequest":
                self._subscribe(peer, request.subscribe)  # type: ignore[attr-defined]
            case "VoiceAssistantConfigurationRequest":
                answer = pb.VoiceAssistantConfigurationResponse(max_active_wake_words=2)
                if self.assistant is peer:  # another client gets an empty answer
                    for id, phrase in (("okay_nabu", "Okay Nabu"), ("hey_jarvis", "Hey Jarvis")):
                        answer.available_wake_words.add(id=id, wake_word=phrase, trained_languages=["en"])
                    answer.active_wake_words.append("hey_jarvis")
                self._send(peer, answer)
            case "VoiceAssistantResponse":
                self.responses.append(request)
            case "VoiceAssistantEventResponse":
                name = pb.VoiceAssistantEvent.Name(request.event_type)  # type: ignore[attr-defined]
                data = {entry.name: entry.value for entry in request.data}  # type: ignore[attr-defined]
                self.events.append((name.removeprefix("VOICE_ASSISTANT_"), data))
            case "VoiceAssistantAnnounceRequest":
                self.played.append((request.media_id, request.text))  # type: ignore[attr-defined]
                self._send(peer, pb.VoiceAssistantAnnounceFinished(success=self.plays))
            case "DisconnectRequest":
                self._send(peer, pb.DisconnectResponse())

    def _subscribe(self, peer: Plain | Encrypted, subscribe: bool) -> None:
        """One client at a time, as the firmware does it."""
        if not subscribe:
            self.assistant = None if self.assistant is peer else self.assistant
        elif self.assistant is None and not self.taken:
            self.assistant = peer
        else:
            for line in ("Multiple API Clients attempting to connect to Voice Assistant", "Current client: …"):
                self.log(f"[E][voice_assistant:474]: {line}")

    def _send(self, peer: Plain | Encrypted, message: Message) -> None:
        with self._lock, contextlib.suppress(OSError):
            peer.send(NUMBERS[type(message)], message.SerializeToString())
