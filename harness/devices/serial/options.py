"""How a board on a serial port is reached: the keys of its connection in a bench file."""

from __future__ import annotations

from enum import StrEnum

from harness.devices.tcp import host_and_port
from harness.model.bench import AudioDialogue, DeviceProfile, Framing
from harness.model.choices import EncodingName, InjectionPace
from harness.model.errors import InputError, refuse_out_of_range
from harness.model.frozen import frozen
from harness.model.numbers import exact

DEFAULT_HOLD_BACK_S = 0.016
"""The default latency timer of an FTDI adapter, in seconds."""
NETWORK = "socket://"


class FramingChoice(StrEnum):
    """Form of the bytes: the profile's, docs/reference/framing.md with log lines between, or log lines only."""

    PROFILE = "profile"
    VH = "vh"
    NONE = "none"


class SerialInjection(StrEnum):
    """How the board accepts sound over the port: the profile's way, not at all, or one of these dialogues."""

    PROFILE = "profile"
    NONE = "none"
    VH = "vh"
    TFLM = "tflm"


@frozen
class SerialOptions:
    """Either `port` or `usb` names the port.

    - port: A path, preferably in /dev/serial/by-id, or socket://host:port of a bridge.
    - usb: The adapter's USB serial number, or its vid:pid if there is only one such adapter.
    - baud: 0 means the profile's rate.
    - framing: `vh` (frames and log lines), `none` (log lines only), or the profile's.
    - injection: How the board accepts sound: `vh`, `tflm` (TFLM's test-over-serial), `none`, or the profile's.
    - encoding: Encoding of the sound on the wire. Only `pcm16` leaves the samples unchanged.
    - pace: As fast as the board acknowledges sound, or in real time.
    - ping_period_s: Time between measurements of the board's clock, s.
    - hold_back_ms: How long an adapter may hold a line back, ms. `harness admin devices test` measures it. Default: the
      value of an FTDI adapter's driver, or 16.
    - answer_limit_s: Time without an answer after which a framed board counts as lost, s.
    - write_limit_s: Time without progress in writing after which a board counts as lost, s.
    """

    port: str = ""
    usb: str = ""
    baud: int = 0
    framing: FramingChoice = FramingChoice.PROFILE
    injection: SerialInjection = SerialInjection.PROFILE
    encoding: EncodingName = EncodingName.PCM16
    pace: InjectionPace = InjectionPace.FASTEST
    hold_back_ms: float | None = None
    ping_period_s: float = 1.0
    answer_limit_s: float = 3.0
    write_limit_s: float = 3.0

    def __post_init__(self) -> None:
        if bool(self.port) == bool(self.usb):
            raise InputError(
                "a serial connection needs either `port` or `usb`", remedy="See docs/how-to/serial-boards.md"
            )
        if self.port.startswith(NETWORK):
            host_and_port(self.port.removeprefix(NETWORK), remedy="Use socket://host:port")
        elif "://" in self.port:
            raise InputError(
                f"port: {self.port!r} is not supported",
                remedy="Use socket://HOST:PORT, or the path of a device such as /dev/ttyUSB0",
            )
        if self.baud < 0:
            raise InputError(
                f"baud is {self.baud}", remedy="Use a positive baud rate, or remove `baud` to use the profile's"
            )
        refuse_out_of_range(
            self, hold_back_ms=(0, 1000), ping_period_s=(0.1, 600), answer_limit_s=(0.1, 600), write_limit_s=(0.1, 600)
        )
        if self.answer_limit_s < 2 * self.ping_period_s:
            raise InputError(
                f"`answer_limit_s` is {exact(self.answer_limit_s)}, but `ping_period_s` is {exact(self.ping_period_s)}",
                remedy="Make `answer_limit_s` at least twice `ping_period_s`",
            )
        if self.framing is FramingChoice.NONE and self.injection is SerialInjection.VH:
            raise InputError(
                "`injection: vh` needs `framing: vh`",
                remedy="Set `framing: vh`, or remove both keys to use those of the profile",
            )

    def is_framed(self, profile: DeviceProfile | None) -> bool:
        """Whether the board speaks docs/reference/framing.md; True if neither profile nor bench says otherwise."""
        if self.framing is FramingChoice.PROFILE:
            return profile is None or profile.console.framing is Framing.VH
        return self.framing is FramingChoice.VH

    def dialogue(self, profile: DeviceProfile | None) -> AudioDialogue | None:
        """How the board accepts sound; None: it does not over this port."""
        match self.injection:
            case SerialInjection.NONE:
                return None
            case SerialInjection.VH:
                return AudioDialogue.VH
            case SerialInjection.TFLM:
                return AudioDialogue.TFLM
            case SerialInjection.PROFILE:
                if profile is not None and profile.audio is not None:
                    return profile.audio.dialogue
                return AudioDialogue.VH if self.is_framed(profile) else None
