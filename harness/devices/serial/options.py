"""How a board on a serial port is reached: the keys of its connection in a bench file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from harness.devices.wire.adpcm import EncodingName, InjectionPace
from harness.model.bench import AudioDialogue, DeviceProfile, Framing
from harness.model.errors import InputError

DEFAULT_HOLD_BACK_MS = 16.0
"""The latency timer of an FTDI adapter as it comes."""
_USB = re.compile(r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}")


class FramingChoice(StrEnum):
    """What the bytes are: as the profile says, docs/framing.md with log lines between, or log lines only."""

    PROFILE = "profile"
    VH = "vh"
    NONE = "none"


class SerialInjection(StrEnum):
    """How it takes sound over the port: as the profile says, not at all, or in one of these dialogues."""

    PROFILE = "profile"
    NONE = "none"
    VH = "vh"
    TFLM = "tflm"


@dataclass(frozen=True, slots=True)
class SerialOptions:
    """One of `port` and `usb` names the port.

    port: a path, best one of /dev/serial/by-id, or socket://host:port of a bridge. usb: the adapter's USB serial
    number, or its vid:pid when there is only one of them. baud 0: the profile's. encoding: of the sound on the wire.
    ping_period_s: between measurements of its clock. hold_back_ms: for how long an adapter may hold a line back
    (`harness devices test` measures it); as long as it is the default, the driver of an FTDI adapter is asked.
    answer_limit_s: a board that says nothing for so long is lost. write_limit_s: and so is one without framing that
    takes nothing for so long.
    """

    port: str = ""
    usb: str = ""
    baud: int = 0
    framing: FramingChoice = FramingChoice.PROFILE
    injection: SerialInjection = SerialInjection.PROFILE
    encoding: EncodingName = EncodingName.PCM16
    pace: InjectionPace = InjectionPace.FASTEST
    hold_back_ms: float = DEFAULT_HOLD_BACK_MS
    ping_period_s: float = 1.0
    answer_limit_s: float = 3.0
    write_limit_s: float = 3.0

    def __post_init__(self) -> None:
        if bool(self.port) == bool(self.usb):
            raise InputError("a serial connection has either a `port` or a `usb`", remedy="See docs/boards.md, Serial")
        if self.baud < 0:
            raise InputError(f"baud is {self.baud}", remedy="Write its rate, or leave it out: the profile has one")
        if not 0.0 <= self.hold_back_ms <= 1000.0:
            raise InputError(f"hold_back_ms is {self.hold_back_ms:g}", remedy="Choose from 0 to 1000")
        for name in ("ping_period_s", "answer_limit_s", "write_limit_s"):
            if not 0.1 <= (value := getattr(self, name)) <= 600.0:
                raise InputError(f"{name} is {value:g}", remedy="Choose from 0.1 to 600")
        if self.answer_limit_s < 2 * self.ping_period_s:
            raise InputError(
                f"answer_limit_s is {self.answer_limit_s:g}, and a ping goes out every {self.ping_period_s:g} s",
                remedy="Make answer_limit_s twice ping_period_s or more",
            )
        if self.framing is FramingChoice.NONE and self.injection is SerialInjection.VH:
            raise InputError(
                "injection vh needs framing vh", remedy="Write `framing: vh`, or leave both to the profile"
            )

    @property
    def usb_ids(self) -> tuple[int, int] | None:
        """Vendor and product, when `usb` is such a pair."""
        if not _USB.fullmatch(self.usb):
            return None
        vendor, product = self.usb.split(":")
        return int(vendor, 16), int(product, 16)

    def framed(self, profile: DeviceProfile | None) -> bool:
        """Whether it speaks docs/framing.md; without a profile and a word in the bench it does."""
        if self.framing is FramingChoice.PROFILE:
            return profile is None or profile.console.framing is Framing.VH
        return self.framing is FramingChoice.VH

    def dialogue(self, profile: DeviceProfile | None) -> AudioDialogue | None:
        """How it takes sound; None: not over this port."""
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
                return AudioDialogue.VH if self.framed(profile) else None
