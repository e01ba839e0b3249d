"""What crosses from a thread, or from a widget to the app; everything else is drawn from a `View`."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from textual.message import Message

from harness.dashboard.watch import Then
from harness.model.feed import Command
from harness.model.record import Clip


def new_id() -> str:
    """Of a command, so that its answer is known."""
    return str(uuid.uuid4())


@dataclass
class ClipRead(Message):
    """The shape of a clip is known; None: it could not be read."""

    clip: Clip
    peaks: npt.NDArray[np.float32] | None


@dataclass
class CommandWanted(Message):
    """A screen asks the engine for something; `then` is called with the answer."""

    command: Command
    label: str
    then: Then | None = None


@dataclass
class NoticeWanted(Message):
    """Something to show above the keys."""

    text: str
    ok: bool | None = False


@dataclass
class SoundRead(Message):
    """The shape of an item's response is known: peaks from 0 to 1."""

    item_id: str
    peaks: npt.NDArray[np.float32]
    length_s: float


@dataclass
class SoundEnded(Message):
    """A play has ended; fault: why the output was lost, or ""."""

    number: int
    fault: str


@dataclass
class SoundFailed(Message):
    """A sound cannot be read, spoken or played. played: it was to be heard, not only drawn."""

    number: int
    item_id: str
    what: str
    remedy: str
    played: bool


@dataclass
class RoomRead(Message):
    """What the sessions have come to was read again; why it could not be, or ""."""

    fault: str
