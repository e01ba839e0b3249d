"""The keys of an MQTT connection in a bench file, and the broker that they name."""

from __future__ import annotations

import ipaddress
import os
from enum import StrEnum
from typing import TYPE_CHECKING

from harness.devices import tcp
from harness.model.bench import AudioDialogue, DeviceProfile, Framing, Notify
from harness.model.choices import EncodingName, InjectionPace
from harness.model.errors import DeviceError, InputError, refuse_out_of_range
from harness.model.frozen import frozen

if TYPE_CHECKING:
    import ssl

DEFAULT_PORT = 1883  # Registered for MQTT with IANA.
DEFAULT_TLS_PORT = 8883  # Registered for MQTT over TLS.
LAB = "lab"
EMBEDDED = "embedded"
_LOGIN_REMEDY = "Set `username` and `password_env`, and use the same login on the board"


class MessageFraming(StrEnum):
    """Meaning of messages: the profile's mappings, or docs/reference/framing.md. AUTO: the profile decides."""

    AUTO = "auto"
    NONE = "none"
    VH = "vh"


class MqttInjection(StrEnum):
    """How sound reaches the device: by docs/reference/framing.md, or as microphone frames in Hermes.

    PLAY_BYTES plays WAV files through the device's own loudspeaker, which is not an injection.
    AUTO: the profile's `audio` decides, otherwise the framing.
    """

    AUTO = "auto"
    NONE = "none"
    VH = "vh"
    HERMES = "hermes"
    PLAY_BYTES = "hermes_play_bytes"


@frozen
class MqttOptions:
    """How to reach the broker, and which messages it carries.

    Files are relative to the working folder, and ~ is the home folder.

    - address: "lab" (the virtual lab's broker), "embedded" (a broker that runs during the session), "host" or
      "host:port".
    - username: User name for the broker. Also required by the embedded broker if it is set.
    - password_env: Name of the environment variable that holds the password.
    - client_id: Client id for the broker. Default: a generated one.
    - keepalive_s: Time without an answer after which the broker counts as lost, s.
    - topic_device: Value of {device} in topics (Hermes: the site). Default: the connection's id.
    - tls: Encrypt, and check the certificate. Any of the three files implies TLS.
    - ca_file: PEM file of the authority that signed the broker's certificate. Default: the system's authorities.
    - cert_file: PEM file with a client certificate, if the broker requires one.
    - key_file: PEM file with the key of `cert_file`.
    - tls_insecure: Encrypt without checking the certificate.
    - listen: Address (host:port) of the embedded broker. Port 0 selects a free port. Beyond the loopback interface, it
      requires `username` and `password_env`.
    - framing: `vh` (the harness's framing), `none`, or `auto` (the profile's).
    - injection: How the device accepts sound: `vh`, `hermes` (as its microphone), `hermes_play_bytes` (through its
      loudspeaker), `none`, or `auto` (the profile's).
    - pace: As fast as the board acknowledges sound, or in real time.
    - encoding: Encoding of sound in the harness's framing. Only `pcm16` leaves the samples unchanged.
    - hello_wait_s: How long `open` waits for the board's hello, s.
    - answer_wait_s: Time of silence after which a board with the harness's framing counts as lost, s.
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
        refuse_out_of_range(self, keepalive_s=(1, 600), hello_wait_s=(0.1, 120), answer_wait_s=(1, 120))
        if set(self.topic_device) & set("+#"):
            raise InputError(f"topic_device: {self.topic_device!r} is not a single device", remedy="Remove + and #")
        if self.injection is MqttInjection.VH and self.framing is MessageFraming.NONE:
            raise InputError(
                "`injection: vh` needs `framing: vh`", remedy="Remove `framing: none`, or set `framing: vh`"
            )
        if self.key_file and not self.cert_file:
            raise InputError(
                "`key_file` is set, but `cert_file` is not", remedy="Set `cert_file` to the client's certificate"
            )
        if self.password_env and not self.username:
            raise InputError("`password_env` is set, but `username` is not", remedy="Set `username`")
        if self.address in (LAB, EMBEDDED) and self.encrypted:
            raise InputError(f"`address: {self.address}` does not support TLS", remedy="Remove the TLS keys")
        if self.address == LAB and self.username:
            raise InputError("`address: lab` does not support users", remedy="Remove `username`")
        if self.address == EMBEDDED and bool(self.username) != bool(self.password_env):
            raise InputError("the embedded broker needs both a user and a password, or neither", remedy=_LOGIN_REMEDY)
        listen_host, _ = host_and_port(self.listen, free=True)
        if self.address == EMBEDDED and not self.username and not _is_loopback(listen_host):
            raise InputError(
                f"`listen: {self.listen}` admits the whole network without a password", remedy=_LOGIN_REMEDY
            )

    @property
    def login(self) -> tuple[str, ...]:
        """The embedded broker's user and the variable with the password; () when it requires none."""
        return (self.username, self.password_env) if self.username else ()

    @property
    def encrypted(self) -> bool:
        """Whether the connection uses TLS, with or without a check of the certificate."""
        return self.tls or self.tls_insecure or bool(self.ca_file or self.cert_file)

    @property
    def broker(self) -> tuple[str, int]:
        """Host and port of an address that is neither lab nor embedded."""
        return host_and_port(self.address, default=DEFAULT_TLS_PORT if self.encrypted else DEFAULT_PORT)

    def framing_of(self, profile: DeviceProfile | None) -> MessageFraming:
        """The framing to use with a profile; never AUTO."""
        if self.injection is MqttInjection.VH:
            return MessageFraming.VH
        if self.framing is not MessageFraming.AUTO:
            return self.framing
        is_framed = profile is not None and profile.console.framing is Framing.VH
        return MessageFraming.VH if is_framed else MessageFraming.NONE

    def injection_of(self, profile: DeviceProfile | None) -> MqttInjection:
        """The way to inject sound with a profile; never AUTO. A loudspeaker, which has no profile, plays by Hermes."""
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


def broker_of(notify: Notify) -> MqttOptions:
    """How to reach the broker that gets a run's messages. Raises InputError for an invalid address."""
    if notify.mqtt == EMBEDDED:
        raise InputError("the embedded broker ends with the run", remedy="Use the `host:port` of a permanent broker")
    return MqttOptions(notify.mqtt, notify.username, notify.password_env, tls=notify.tls, ca_file=notify.ca_file)


def host_and_port(address: str, *, free: bool = False, default: int = DEFAULT_PORT) -> tuple[str, int]:
    """The parts of a broker's address. Raises InputError for any other text. free: whether port 0 is allowed."""
    remedy = "Use `lab`, `embedded`, `host` or `host:port`"
    return tcp.host_and_port(address, free=free, default=default, remedy=remedy)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def password(options: MqttOptions) -> str | None:
    """The password from the environment. Raises InputError when the variable is not set."""
    name = options.password_env
    if not name:
        return None
    if name not in os.environ:
        raise InputError(
            f"the environment variable {name} for the password is not set", remedy=f"Set it: export {name}=…"
        )
    return os.environ[name]


def encryption(options: MqttOptions) -> ssl.SSLContext | None:
    """The TLS context; None without encryption. DeviceError names a file that cannot be used."""
    if not options.encrypted:
        return None
    import ssl  # here, since few brokers encrypt

    context = ssl.create_default_context()
    if options.tls_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if options.ca_file:
        try:
            context.load_verify_locations(_expand_home(options.ca_file))
        except OSError as error:  # includes ssl.SSLError
            raise _file_error("ca_file", options.ca_file, error) from error
    if options.cert_file:
        # A key with a pass phrase would prompt at the terminal and freeze a run.
        try:
            context.load_cert_chain(
                _expand_home(options.cert_file), _expand_home(options.key_file) or None, password=_refuse_pass_phrase
            )
        except (OSError, ValueError) as error:
            raise _file_error(
                "cert_file, key_file", f"{options.cert_file} {options.key_file}".strip(), error
            ) from error
    return context


def _refuse_pass_phrase() -> str:
    raise ValueError("the key has a pass phrase; use a key without one")


def _expand_home(path: str) -> str:
    return os.path.expanduser(path)


def _file_error(key: str, name: str, error: Exception) -> DeviceError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DeviceError(
        f"{key}: {name} cannot be used: {why}", remedy="Use a PEM file; a relative path starts at the working folder"
    )
