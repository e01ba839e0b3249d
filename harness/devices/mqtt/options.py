"""The keys of an MQTT connection in a bench file, and what they say about its broker."""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.devices.wire.adpcm import EncodingName, InjectionPace
from harness.model.bench import AudioDialogue, DeviceProfile, Framing
from harness.model.errors import DeviceError, InputError

DEFAULT_PORT = 1883
DEFAULT_TLS_PORT = 8883
LAB = "lab"
EMBEDDED = "embedded"
_LOGIN = "Write `username` and `password_env`, and give both to the board"


class MessageFraming(StrEnum):
    """What messages mean: as the profile's mappings say, or as docs/framing.md does. AUTO: as the profile has it."""

    AUTO = "auto"
    NONE = "none"
    VH = "vh"


class MqttInjection(StrEnum):
    """How sound is given to the device: as docs/framing.md has it, or as its microphone's frames in Hermes.

    PLAY_BYTES plays WAV files through the device's own loudspeaker, which is no injection. AUTO: as the profile's
    `audio` has it, else as the framing does.
    """

    AUTO = "auto"
    NONE = "none"
    VH = "vh"
    HERMES = "hermes"
    PLAY_BYTES = "hermes_play_bytes"


@dataclass(frozen=True, slots=True)
class MqttOptions:
    """How the broker is reached, and what is spoken over it.

    address: "lab" (the virtual lab's broker), "embedded" (one of ours, at `listen`, for as long as the driver is open),
    "host" or "host:port". listen: host:port of the embedded broker; port 0 is a free one. It asks for username and
    password when they are given, and must when it listens beyond the loopback.
    password_env: environment variable that holds the password. client_id: "" makes one up.
    keepalive_s: a broker that does not answer for so long is lost.
    tls: encrypted, checked against the system's authorities, or against ca_file; any of the files asks for TLS.
    tls_insecure: encrypted, but nobody knows with whom. Files are relative to the working folder; ~ is the home.
    topic_device: what stands for {device} in topics (Hermes: the site), when it is not the connection's own id.
    encoding: of sound in our framing. hello_wait_s: how long `open` waits for a board with our framing.
    answer_wait_s: a board with our framing that says nothing for so long is lost.
    """

    address: str
    username: str = ""
    password_env: str = ""
    client_id: str = ""
    keepalive_s: float = 4.0
    topic_device: str = ""
    tls: bool = False
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    tls_insecure: bool = False
    listen: str = "127.0.0.1:0"
    framing: MessageFraming = MessageFraming.AUTO
    injection: MqttInjection = MqttInjection.AUTO
    pace: InjectionPace = InjectionPace.FASTEST
    encoding: EncodingName = EncodingName.PCM16
    hello_wait_s: float = 5.0
    answer_wait_s: float = 4.0

    def __post_init__(self) -> None:
        host_and_port(self.address)
        host_and_port(self.listen, free=True)
        for name, value, low, high in (
            ("keepalive_s", self.keepalive_s, 1.0, 600.0),
            ("hello_wait_s", self.hello_wait_s, 0.1, 120.0),
            ("answer_wait_s", self.answer_wait_s, 1.0, 120.0),
        ):
            if not low <= value <= high:
                raise InputError(f"{name} is {value:g}", remedy=f"Choose from {low:g} to {high:g}")
        if self.injection is MqttInjection.VH and self.framing is MessageFraming.NONE:
            raise InputError("injection: vh needs our framing", remedy="Remove `framing: none`, or write `framing: vh`")
        if self.key_file and not self.cert_file:
            raise InputError("key_file is given without cert_file", remedy="Name the client's certificate: cert_file")
        if self.password_env and not self.username:
            raise InputError("password_env is given without username", remedy="Name the user: username")
        if self.address in (LAB, EMBEDDED) and self.encrypted:
            raise InputError(f"the broker of `address: {self.address}` has no TLS", remedy="Remove the TLS keys")
        if self.address == LAB and self.username:
            raise InputError("the broker of `address: lab` knows no users", remedy="Remove `username`")
        if self.address == EMBEDDED and bool(self.username) != bool(self.password_env):
            raise InputError("the embedded broker asks for a user and a password, or for neither", remedy=_LOGIN)
        if (
            self.address == EMBEDDED
            and not self.username
            and not _is_loopback(host_and_port(self.listen, free=True)[0])
        ):
            raise InputError(f"`listen: {self.listen}` lets the whole network in without a password", remedy=_LOGIN)

    @property
    def login(self) -> tuple[str, ...]:
        """The embedded broker's user, and the variable with the password; () when it asks for none."""
        return (self.username, self.password_env) if self.username else ()

    @property
    def encrypted(self) -> bool:
        return self.tls or self.tls_insecure or bool(self.ca_file or self.cert_file)

    @property
    def broker(self) -> tuple[str, int]:
        """Host and port of an address that is no word."""
        return host_and_port(self.address, default=DEFAULT_TLS_PORT if self.encrypted else DEFAULT_PORT)

    def framing_of(self, profile: DeviceProfile | None) -> MessageFraming:
        """Never AUTO."""
        if self.injection is MqttInjection.VH:
            return MessageFraming.VH
        if self.framing is not MessageFraming.AUTO:
            return self.framing
        vh = profile is not None and profile.console.framing is Framing.VH
        return MessageFraming.VH if vh else MessageFraming.NONE

    def injection_of(self, profile: DeviceProfile | None) -> MqttInjection:
        """Never AUTO. Of a loudspeaker, which has no profile, Hermes is what plays."""
        if self.injection is MqttInjection.HERMES and profile is None:
            return MqttInjection.PLAY_BYTES
        if self.injection is not MqttInjection.AUTO:
            return self.injection
        if profile is not None and profile.audio is not None:
            match profile.audio.dialogue:
                case AudioDialogue.HERMES:
                    return MqttInjection.HERMES
                case AudioDialogue.HERMES_SPEAKER:
                    return MqttInjection.PLAY_BYTES
                case _:
                    pass
        return MqttInjection.VH if self.framing_of(profile) is MessageFraming.VH else MqttInjection.NONE


def host_and_port(address: str, *, free: bool = False, default: int = DEFAULT_PORT) -> tuple[str, int]:
    """InputError for what is no address of a broker; `free` allows port 0."""
    host, colon, port = address.rpartition(":")
    if not colon and address:
        return address, default
    lowest = 0 if free else 1
    if not host or not (port.isascii() and port.isdecimal()) or not lowest <= int(port) < 65536:
        raise InputError(
            f"{address!r} is no address of a broker", remedy="Write `lab`, `embedded`, `host` or `host:port`"
        )
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def password(options: MqttOptions) -> str | None:
    """From the environment; InputError when it is not there."""
    name = options.password_env
    if not name:
        return None
    if name not in os.environ:
        raise InputError(f"the environment has no {name}, which is to hold the password", remedy=f"export {name}=…")
    return os.environ[name]


def encryption(options: MqttOptions) -> ssl.SSLContext | None:
    """None without TLS; DeviceError, naming the file, for one that cannot be used."""
    if not options.encrypted:
        return None
    context = ssl.create_default_context()
    if options.tls_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if options.ca_file:
        try:
            context.load_verify_locations(_path(options.ca_file))
        except OSError as error:  # ssl.SSLError is one
            raise _unusable("ca_file", options.ca_file, error) from error
    if options.cert_file:
        # A key that asks for its pass phrase at the terminal would freeze a run.
        try:
            context.load_cert_chain(_path(options.cert_file), _path(options.key_file) or None, password=_refuse)
        except (OSError, ValueError) as error:
            raise _unusable("cert_file, key_file", f"{options.cert_file} {options.key_file}".strip(), error) from error
    return context


def _refuse() -> str:
    raise ValueError("the key has a pass phrase; give one without")


def _path(written: str) -> str:
    return str(Path(written).expanduser()) if written else ""


def _unusable(key: str, name: str, error: Exception) -> DeviceError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DeviceError(
        f"{key}: {name} cannot be used: {why}", remedy="Name a PEM file; relative to the folder that you start in"
    )
