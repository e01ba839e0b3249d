"""Messages from threads and widgets to the app. Everything else is drawn from a `View`."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from textual.message import Message

from harness.dashboard.watch import AnswerCallback
from harness.model.feed import Command
from harness.model.record import Clip


def new_id() -> str:
    """Identifies a command, to match its answer."""
    return str(uuid.uuid4())


@dataclass
class ClipRead(Message):
    """The shape of a clip; None when the clip cannot be read. gone: how somebody removed its sound; "" otherwise."""

    clip: Clip
    peaks: npt.NDArray[np.float32] | None
    gone: str = ""


@dataclass
class CommandWanted(Message):
    """A screen's command for the engine; `then` gets the answer."""

    command: Command
    label: str
    then: AnswerCallback | None = None


@dataclass
class NoticeWanted(Message):
    """A notice to show above the keys. ok: True in green, False in red, None in yellow."""

    text: str
    ok: bool | None = False


@dataclass
class SoundRead(Message):
    """The shape of an item's response: peaks from 0 to 1."""

    item_id: str
    peaks: npt.NDArray[np.float32]
    length_s: float


@dataclass
class SoundEnded(Message):
    """A play ended. fault: why the output was lost, or ""."""

    number: int
    fault: str


@dataclass
class SoundFailed(Message):
    """A sound cannot be read, spoken or played. played: it should have played, not only been drawn."""

    number: int
    item_id: str
    what: str
    remedy: str
    played: bool


@dataclass
class RoomRead(Message):
    """The sessions were read again. fault: why they cannot be read, or ""."""

    fault: str
