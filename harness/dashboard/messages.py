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
    """A clip was read, to draw its shape.

    - peaks: 0–1; None if it cannot be read.
    - removal: who removed its sound, when and why; "" if nobody did.
    """

    clip: Clip
    peaks: npt.NDArray[np.float32] | None
    removal: str = ""


@dataclass
class CommandWanted(Message):
    """A screen's command for the engine.

    - label: what it does, for notices.
    - then: gets the answer.
    """

    command: Command
    label: str
    then: AnswerCallback | None = None


@dataclass
class NoticeWanted(Message):
    """A notice to show above the keys. ok: True is shown in green, False in red, None in yellow."""

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
    """A sound has ended.

    - number: number of the play.
    - fault: why the output was lost; "" if it was not.
    """

    number: int
    fault: str


@dataclass
class SoundFailed(Message):
    """A sound cannot be read, spoken or played. number: number of the request."""

    number: int
    item_id: str
    what: str
    remedy: str


@dataclass
class RoomRead(Message):
    """The sessions were read again. fault: why they cannot be read; "" if they can."""

    fault: str
