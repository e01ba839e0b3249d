"""ESPHome devices over their native API: the log, the states of entities, and the harness as their voice assistant.

A thread of its own runs the event loop of aioesphomeapi and writes lines. `TextStream` reads and maps them.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import enum
import logging
import os
import re
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, cast

from harness.base import threads
from harness.base.foreign import plain_text
from harness.base.host_check import Check, check_each
from harness.base.plugins import import_extra
from harness.base.ports import Surroundings
from harness.devices import tcp
from harness.devices.declared import Abilities, SetupAdvice
from harness.devices.device_sources import StreamSource
from harness.devices.esphome_assistant import AssistantTaken, EsphomeAssistant
from harness.devices.spoken_commands import Answerer, AnsweringStream, ServerUse, demand_answerer
from harness.devices.text_streams import FAR_END, PIECE_BYTES, STOP_CHECK_S, FarEnd, FarEndFile, TextStreamOptions
from harness.model.bench import DeviceProfile, DeviceSetting
from harness.model.errors import DeviceError, InputError, refuse_out_of_range
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.observation import DeviceDescribed
from harness.model.time import Stamp

if TYPE_CHECKING:
    from aioesphomeapi.client import APIClient
    from aioesphomeapi.model import ConnectionClosedEvent, DeviceInfo, EntityInfo, EntityState

CONNECT_LIMIT_S = 10.0
WAKE_PHRASES_LIMIT_S = 3.0
"""Time limit for connecting to ask for wake phrases, and again for the device's answer, in seconds."""
CLOSE_STEP_LIMIT_S = 0.5  # for each step of closing, and for a press of the button, which waits for no answer
SOCKETS_LIMIT_S = 2.0
"""Time in which the library must close its sockets if the connection never opened, in seconds."""
RESTORE_LIMIT_S = 1.0  # for each setting that is restored after a loss
SETTING_LIMIT_S = 10.0
"""Time limit of each of three waits, in s: for a lost device to return, to report all its states, or a new value."""
PORT = 6053  # Of ESPHome's native API.
_KEY_BYTES = 32  # Of the `encryption: key` in ESPHome's `api`.


class EsphomeLogLevel(StrEnum):
    """The lowest level of the log lines that the device sends."""

    ERROR = "error"
    WARN = "warn"
    INFO = "info"
    CONFIG = "config"
    DEBUG = "debug"
    VERBOSE = "verbose"
    VERY_VERBOSE = "very_verbose"


class EsphomeRole(StrEnum):
    """The role of the harness for the device."""

    OBSERVER = "observer"
    ASSISTANT = "assistant"


@frozen
class EsphomeOptions:
    """Options of ESPHome devices.

    address: host or host:port of the native API (port 6053 by default).
    key_env: Name of the environment variable that holds the encryption key (empty: the device does not encrypt).
    log_level: Lowest level of the log lines that the device sends. Its firmware may include fewer levels.
    states: Whether to report the states of entities.
    restart_button: Object ID of the button entity that restarts the device.
    hold_back_ms: How long the device and its Wi-Fi may hold a line back, ms (part of the error of its times).
    keepalive_s: Interval between pings, s. A device that does not answer for 4.5 intervals counts as lost.
    role: observer (Home Assistant stays the voice assistant) or assistant. As the assistant, the harness keeps the
        sound of commands.
    recogniser: As the assistant: entry point of `harness.recognisers` that recognises commands (empty: none).
    media: As the assistant: URL of the sound that the device plays as every answer (empty: no answer).
    answer: As the assistant: the words of `media`; {text} stands for the recognised words.
    listen_limit_s: As the assistant: longest command, s.
    """

    address: str
    key_env: str = ""
    log_level: EsphomeLogLevel = EsphomeLogLevel.DEBUG
    states: bool = True
    restart_button: str = ""
    hold_back_ms: float = 100.0  # Assumed, not measured.
    keepalive_s: float = 4.0
    role: EsphomeRole = EsphomeRole.OBSERVER
    recogniser: str = ""
    media: str = ""
    answer: str = ""
    listen_limit_s: float = 15.0

    # What `TextStream` asks for: the connection is ready when it is there, and pings show whether it lives.
    ready: ClassVar[str] = ""
    ready_within_s: ClassVar[float] = 0.0
    silence_limit_s: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        _ = self.host_and_port  # raises InputError for a wrong address
        if self.role is EsphomeRole.OBSERVER and (self.recogniser or self.media or self.answer):
            raise InputError(
                "only an assistant has `recogniser`, `media` and `answer`",
                remedy="Set `role: assistant`, or remove these keys",
            )
        if self.answer and not self.media:
            raise InputError("`answer` needs `media`", remedy="Set `media` to a URL of the spoken answer")
        if self.media and not self.media.startswith(("http://", "https://")):
            raise InputError(
                f"media is {self.media!r}", remedy="Use an http:// or https:// URL that the device can open"
            )
        refuse_out_of_range(self, listen_limit_s=(1, 120), hold_back_ms=(0, 86_400), keepalive_s=(0.1, 600))

    @property
    def host_and_port(self) -> tuple[str, int]:
        return tcp.host_and_port(self.address, default=PORT, remedy="Use host or host:port")

    @property
    def restart_line(self) -> str:
        """The line with which `TextStream` restarts the device; sending it presses the button."""
        return self.restart_button


def encryption_key(options: EsphomeOptions) -> str | None:
    """The encryption key from the environment; InputError when it is not set, or not a key."""
    name = options.key_env
    if not name:
        return None
    if name not in os.environ:
        raise InputError(f"the environment variable {name} for the key is not set", remedy=f"Set it: export {name}=…")
    with contextlib.suppress(binascii.Error, ValueError):
        if len(base64.b64decode(os.environ[name], validate=True)) == _KEY_BYTES:
            return os.environ[name]
    problem = f"the environment variable {name} does not contain a base64 key of {_KEY_BYTES} bytes"
    raise InputError(problem, remedy="Copy `key` under `encryption` from the device's YAML file")


def demand_library() -> None:
    """PluginError when aioesphomeapi is not installed."""
    import_extra("aioesphomeapi", "the library for ESPHome devices", "esphome")
    log = logging.getLogger("aioesphomeapi")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # what it has to say is in its errors, too


class EsphomeLink:
    """A connection to a device. Its log lines and states come out as lines of bytes.

    A state at connection is `switch.mute is off`, a change is `switch.mute=on`: only a change has a time.
    """

    def __init__(self, options: EsphomeOptions, use: ServerUse | None = None) -> None:
        """use: the surroundings of a voice assistant; None if the harness only observes.

        PluginError without the library, InputError without a valid key.
        """
        demand_library()
        self._options = options
        self._use = use
        self._assistant: EsphomeAssistant | None = None
        self._encryption_key = encryption_key(options)
        self._end_reason = "the connection was closed"
        self._entities: dict[tuple[str, int, int], str] = {}
        """Kind, device and key of an entity → its name, such as switch.mute."""
        self._entities_reported: set[tuple[str, int, int]] = set()
        self._button: EntityInfo | None = None
        self._settable: dict[str, EntityInfo] = {}
        self._values: dict[str, str] = {}  # of settings, as the device reported them last
        self._disconnected = False
        self._changed = threads.condition()
        self._client: APIClient | None = None
        self.device: DeviceInfo | None = None
        self._lines, self._reader = socket.socketpair()
        self._loop = asyncio.new_event_loop()
        self._executor = ThreadPoolExecutor()
        self._loop.set_default_executor(self._executor)  # of our own, so that `close` can bound the wait for its jobs
        self._loop.set_exception_handler(self._on_loop_error)
        self._thread = threads.thread(self._loop.run_forever, name=f"esphome {options.address}")

    def open(self, stop: threading.Event) -> EsphomeLink:
        """Connects, and returns itself; DeviceError when the device does not answer or refuses, or `stop` is set."""
        self._thread.start()
        connecting = asyncio.run_coroutine_threadsafe(self._connect(), self._loop)
        try:
            while True:
                try:
                    self.device = connecting.result(STOP_CHECK_S)
                    break
                except TimeoutError:
                    if stop.is_set():
                        raise DeviceError(
                            f"{self._options.address}: no answer", remedy="Open the connection again"
                        ) from None
        except BaseException:
            connecting.cancel()
            self.close()
            raise
        return self

    def fileno(self) -> int:
        return self._reader.fileno()

    def read(self) -> bytes:
        return self._reader.recv(PIECE_BYTES)

    def write(self, data: bytes) -> None:
        """Presses the button that restarts the device, since no other line is ever sent; OSError when it cannot."""
        try:
            asyncio.run_coroutine_threadsafe(self._press_button(), self._loop).result(CLOSE_STEP_LIMIT_S)
        except Exception as error:
            raise OSError(f"{self._options.restart_button}: {error}") from error

    def settings(self, limit_s: float = SETTING_LIMIT_S) -> dict[str, DeviceSetting]:
        """Switches, numbers and selects with their values; DeviceError if the device does not report all in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._disconnected or self._settable.keys() <= self._values.keys(), limit_s)
            if self._disconnected:
                raise DeviceError(self.end_reason(), remedy="Wait until the device is connected again")
            return {
                name: _device_setting(name, entity, self._values.get(name, ""))
                for name, entity in self._settable.items()
            }

    def set_setting(self, name: str, value: str, limit_s: float = SETTING_LIMIT_S) -> None:
        """Returns when the device has reported the value; DeviceError if it does not in time."""
        if name not in self._settable:
            raise DeviceError(
                f"{self._options.address} has no setting {name}",
                remedy=f"Use one of its settings: {', '.join(sorted(self._settable)) or 'none'}",
            )

        def has_value() -> bool:
            return _device_setting(name, self._settable[name], self._values.get(name, "")).holds(value)

        self._loop.call_soon_threadsafe(self._send_value, self._settable[name], value)
        with self._changed:
            self._changed.wait_for(lambda: self._disconnected or has_value(), limit_s)
            if self._disconnected:
                raise DeviceError(self.end_reason(), remedy="Wait until the device is connected again")
            if not has_value():
                reported_value = self._values.get(name, "no value")
                raise DeviceError(
                    f"{self._options.address} did not report {name}={value} within {exact(limit_s)} s, "
                    f"but {reported_value}",
                    remedy="Change the setting by hand, and check whether the device accepts the value",
                )

    def _send_value(self, entity: EntityInfo, value: str) -> None:
        """Sends a new value of a setting. Runs on the event loop."""
        if self._client is None:
            return
        match _entity_kind(entity):
            case "switch":
                self._client.switch_command(entity.key, value == "on", entity.device_id)
            case "select":
                self._client.select_command(entity.key, value, entity.device_id)
            case "number":
                self._client.number_command(entity.key, float(value), entity.device_id)

    def wake_phrases(self) -> tuple[str, ...]:
        """The phrases that the device listens for now; () if it reports none. It reports them only to its assistant."""
        return asyncio.run_coroutine_threadsafe(self._ask_wake_phrases(), self._loop).result(2 * WAKE_PHRASES_LIMIT_S)

    async def _ask_wake_phrases(self) -> tuple[str, ...]:
        from aioesphomeapi.core import APIConnectionError

        async def ignore(*_: object) -> None:
            """The harness takes no commands during this connection."""

        assert self._client is not None
        unsubscribe = self._client.subscribe_voice_assistant(handle_start=ignore, handle_stop=ignore)
        try:
            reported = await self._client.get_voice_assistant_configuration(WAKE_PHRASES_LIMIT_S)
        except (APIConnectionError, TimeoutError):
            return ()
        finally:
            unsubscribe()
        phrases = {wake_word.id: plain_text(wake_word.wake_word, 80) for wake_word in reported.available_wake_words}
        return tuple(phrases[id] for id in reported.active_wake_words if id in phrases)

    def end_reason(self) -> str:
        return f"{self._options.address}: {self._end_reason}"

    def close(self) -> None:
        """Ends the connection, the event loop and its thread, in any state. Each step has a time limit."""
        with contextlib.suppress(OSError):
            self._lines.shutdown(socket.SHUT_RDWR)  # ends a write that waits for the reader
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._close_connection(), self._loop).result(
                2 * CLOSE_STEP_LIMIT_S + SOCKETS_LIMIT_S
            )
        shutdown = threads.thread(self._executor.shutdown)
        shutdown.start()
        shutdown.join(CLOSE_STEP_LIMIT_S)  # the device has been let go, whatever the disk takes
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_STEP_LIMIT_S)
        if not self._thread.is_alive():
            self._loop.close()
        self._lines.close()
        self._reader.close()

    async def _connect(self) -> DeviceInfo:
        """Connects, and subscribes to what the device reports; DeviceError when it does not answer or refuses."""
        from aioesphomeapi.client import APIClient
        from aioesphomeapi.core import APIConnectionError
        from aioesphomeapi.model import LogLevel

        options = self._options
        self._client = client = APIClient(
            *options.host_and_port,
            None,
            client_info="voice-harness",
            keepalive=options.keepalive_s,
            noise_psk=self._encryption_key,
            provide_time=False,
        )
        client.add_connection_closed_callback(self._on_close)
        try:
            async with asyncio.timeout(CONNECT_LIMIT_S):
                await client.connect(log_errors=False)
                device, entities, _ = await client.device_info_and_list_entities()
        except (APIConnectionError, TimeoutError) as error:
            reason = plain_text(str(error), 300) or f"no answer within {exact(CONNECT_LIMIT_S)} s"
            raise DeviceError(
                f"{options.address} cannot be reached: {reason}",
                remedy="Check that the device is on, and that `address` and `key_env` are correct",
            ) from error
        self._note_entities(entities)
        client.subscribe_logs(
            lambda message: self._on_log(message.message), log_level=LogLevel[f"LOG_LEVEL_{options.log_level.name}"]
        )
        client.subscribe_states(self._on_state)
        if self._use is not None:
            self._assistant = EsphomeAssistant(client, self._use, options.media, self._report, self._end_lines)
            try:
                async with asyncio.timeout(CONNECT_LIMIT_S):
                    await self._assistant.begin(device)
            except (APIConnectionError, TimeoutError, OSError) as error:
                raise DeviceError(
                    f"{options.address} does not accept the harness as its assistant: {plain_text(str(error), 300)}",
                    remedy="Restart the device",
                ) from error
        return device

    def _note_entities(self, entities: Sequence[EntityInfo]) -> None:
        """Notes the entities, the settings and the button among them; DeviceError without the button of the options."""
        buttons: dict[str, EntityInfo] = {}
        for entity in entities:
            kind = _entity_kind(entity)
            name = f"{kind}.{entity.object_id}"
            self._entities[kind, entity.device_id, entity.key] = name
            if kind in _SETTABLE_KINDS:
                self._settable[name] = entity
            if kind == "button":
                buttons[entity.object_id] = entity
        button_id = self._options.restart_button
        self._button = buttons.get(button_id)
        if button_id and self._button is None:
            raise DeviceError(
                f"{self._options.address} has no button {button_id}",
                remedy=f"Use one of its buttons: {', '.join(sorted(buttons)) or 'none'}",
            )

    def _on_log(self, line: bytes) -> None:
        self._write_line(line)
        if self._assistant is not None:
            self._assistant.receive_log_line(line)

    def _report(self, line: str) -> None:
        self._write_line(" ".join(line.split()).encode("utf-8", "replace"))

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handles an error that nothing else handles: the link ends, instead of staying silent."""
        loop.default_exception_handler(context)
        error = plain_text(str(context.get("exception") or context["message"]), 200)
        self._end_lines(f"the driver failed with an error ({error})")

    def _end_lines(self, why: str) -> None:
        """Ends what `read` returns; its reader then closes the link."""
        self._end_reason = why
        with contextlib.suppress(OSError):
            self._lines.shutdown(socket.SHUT_WR)

    def _on_close(self, event: ConnectionClosedEvent) -> None:
        self._end_lines(plain_text(str(event.error or "the device closed the connection"), 300))
        with self._changed:
            self._disconnected = True
            self._changed.notify_all()

    async def _press_button(self) -> None:
        if self._client is not None and self._button is not None:
            self._client.button_command(self._button.key, self._button.device_id)

    async def _close_connection(self) -> None:
        """Disconnects, and ends everything else that runs on the event loop."""
        if self._assistant is not None:
            self._assistant.close()
        if self._client is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._client.disconnect(), CLOSE_STEP_LIMIT_S)
            self._client.force_disconnect()
        other_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if other_tasks and self.device is None:  # the library closes the sockets with which it looked for the device
            await asyncio.wait(other_tasks, timeout=SOCKETS_LIMIT_S)
        for task in other_tasks:
            task.cancel()
        await asyncio.gather(*other_tasks, return_exceptions=True)
        await asyncio.sleep(0)  # what was closed just now ends in the next turn

    def _on_state(self, state: EntityState) -> None:
        """Notes the value of a setting, and writes a line if states are reported."""
        entity = (_entity_kind(state), state.device_id, state.key)
        value = _value(state)
        name = self._entities.get(entity)
        if name is None or value is None:
            return
        if name in self._settable:
            with self._changed:
                self._values[name] = _exact_value(state, value)
                self._changed.notify_all()
        if not self._options.states:
            return
        is_first = entity not in self._entities_reported and entity[0] != "event"  # an event always happens now
        self._entities_reported.add(entity)
        self._write_line(f"{name}{' is ' if is_first else '='}{value}".encode())

    def _write_line(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            self._lines.sendall(line + b"\n")


def _entity_kind(entity: EntityInfo | EntityState) -> str:
    """The kind of an entity: `media_player` for MediaPlayerInfo and for MediaPlayerEntityState."""
    name = re.sub(r"(Info|EntityState|State)$", "", type(entity).__name__)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _value(state: EntityState) -> str | None:
    """The state in one word; None for kinds of entities that have no such state."""
    value = getattr(state, "event_type", None) or getattr(state, "state", None)
    if getattr(state, "missing_state", False):
        return "unknown"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, float):
        return f"{value:g}"
    return " ".join(value.split()) if isinstance(value, str) else None


_SETTABLE_KINDS = ("number", "select", "switch")


def _exact_value(state: EntityState, value: str) -> str:
    """The value of a setting with all its digits; "" if the device has none."""
    if getattr(state, "missing_state", False):
        return ""
    number = getattr(state, "state", None)
    if isinstance(number, float):
        short = f"{number:.7g}"  # the device counts in single precision: 0.1, not 0.10000000149
        return short if number == struct.unpack("f", struct.pack("f", float(short)))[0] else repr(number)
    return number if isinstance(number, str) else value


def _device_setting(name: str, entity: EntityInfo, value: str) -> DeviceSetting:
    """A setting with its value and the values that it accepts."""
    match _entity_kind(entity):
        case "switch":
            return DeviceSetting(name, value, ("on", "off"))
        case "select":
            return DeviceSetting(name, value, tuple(getattr(entity, "options", ())))
        case _:
            low, high = getattr(entity, "min_value", 0.0), getattr(entity, "max_value", 0.0)
            return DeviceSetting(name, value, low=low, high=high)


class EsphomeDevice(AnsweringStream):
    """The log lines, the states and the settings of an ESPHome device."""

    Options: ClassVar[type] = EsphomeOptions
    BACK_OFF_S = (0.5, 10.0)

    def __init__(self, id: str, options: EsphomeOptions, surroundings: Surroundings) -> None:
        super().__init__(id, options, surroundings)
        self._values_to_restore: dict[str, str] = {}

    def new_answerer(self) -> Answerer | None:
        options: EsphomeOptions = self._options
        if options.role is EsphomeRole.OBSERVER:
            return None
        return Answerer(options.recogniser, "", options.answer)

    def connect(self) -> FarEnd:
        """Connects, and restores the settings that were set since `open`, which a restart may have cleared."""
        use = None if self._options.role is EsphomeRole.OBSERVER else self.server_use()
        try:
            link = EsphomeLink(self._options, use).open(self._stop)
        except AssistantTaken as error:
            self._outlet.lose(FAR_END, str(error), urgent=True)
            raise
        try:
            for name, value in tuple(self._values_to_restore.items()):
                link.set_setting(name, value, RESTORE_LIMIT_S)
        except DeviceError:
            link.close()
            raise
        return link

    @staticmethod
    def abilities(options: TextStreamOptions, profile: DeviceProfile | None) -> Abilities:
        return Abilities(restarts=bool(options.restart_line), sets=True)

    def settings(self) -> Mapping[str, DeviceSetting]:
        return self._connected_link().settings()

    def set_setting(self, name: str, value: str) -> None:
        self._connected_link().set_setting(name, value)
        self._values_to_restore[name] = value

    def _connected_link(self) -> EsphomeLink:
        """The connection, as soon as it is back. DeviceError if it does not come back within SETTING_LIMIT_S."""
        deadline_s = threads.monotonic() + SETTING_LIMIT_S
        while (link := self._far_end) is None:
            if threads.monotonic() > deadline_s or self._stop.wait(STOP_CHECK_S):
                problem = f"the connection to {self.id} was lost: {self._end_reason}"
                raise DeviceError(problem, remedy="Switch the device on, then run: harness run resume")
        return cast(EsphomeLink, link)

    def _read_to_end(self, far_end: FarEnd, bell: threads.Bell) -> str:
        device = cast(EsphomeLink, far_end).device
        assert device is not None
        self._outlet.tell(DeviceDescribed(self.id, Stamp(self._clock.now_s()), _firmware(device), device.mac_address))
        return super()._read_to_end(far_end, bell)

    @staticmethod
    def source(options: EsphomeOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> StreamSource:
        use = ServerUse(device, threads.monotonic, lambda _: None, options.listen_limit_s)
        assistant_use = use if options.role is EsphomeRole.ASSISTANT else None
        return StreamSource(
            options.address,
            lambda: cast(BinaryIO, FarEndFile(EsphomeLink(options, assistant_use).open(threads.event()))),
        )

    @staticmethod
    def demand_host(options: EsphomeOptions) -> None:
        """PluginError when a library is not installed, InputError when the key is missing."""
        demand_library()
        encryption_key(options)
        demand_answerer(options.recogniser, "", "")

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, EsphomeOptions]]) -> Iterator[Check]:
        def attempt(options: EsphomeOptions) -> str:
            with contextlib.closing(EsphomeLink(options).open(threads.event())) as link:
                assert link.device is not None
                return f"{options.address} answers: {_firmware(link.device)}"

        return check_each("esphome", connections, attempt)

    @staticmethod
    def setup_advice(options: EsphomeOptions) -> SetupAdvice:
        stop = threads.event()
        limit_timer = threads.DelayedCall(WAKE_PHRASES_LIMIT_S, stop.set)
        limit_timer.start()
        try:
            with contextlib.closing(EsphomeLink(options).open(stop)) as link:
                return SetupAdvice(link.wake_phrases())
        finally:
            limit_timer.cancel()

    @staticmethod
    def far_end(options: EsphomeOptions, id: str) -> str:
        host, port = options.host_and_port
        return f"{host}:{port}"


def _firmware(device: DeviceInfo) -> str:
    """Project, version and model, as the device reports them."""
    project = f"{device.project_name} {device.project_version}".strip()
    esphome = f"ESPHome {device.esphome_version}" + (f" of {device.compilation_time}" if not project else "")
    model = " ".join(part for part in (device.manufacturer, device.model) if part)
    return plain_text(", ".join(part for part in (project, esphome, model) if part), 200)
