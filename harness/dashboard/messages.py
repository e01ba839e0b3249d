"""What crosses from a thread, or from a widget to the app; everything else is drawn from a `View`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from textual.message import Message

from harness.dashboard.watch import Then
from harness.model.feed import Command
from harness.model.record import Clip


class ClipRead(Message):
    """The shape of a clip is known; None: it could not be read."""

    def __init__(self, clip: Clip, peaks: npt.NDArray[np.float32] | None) -> None:
        super().__init__()
        self.clip = clip
        self.peaks = peaks


class CommandWanted(Message):
    """A screen asks the engine for something; `then` is called with the answer."""

    def __init__(self, command: Command, label: str, then: Then | None = None) -> None:
        super().__init__()
        self.command = command
        self.label = label
        self.then = then


class Told(Message):
    """Something to show above the keys."""

    def __init__(self, text: str, ok: bool | None = False) -> None:
        super().__init__()
        self.text = text
        self.ok = ok


class SoundRead(Message):
    """The shape of an item's response is known: peaks from 0 to 1."""

    def __init__(self, item_id: str, peaks: npt.NDArray[np.float32], length_s: float) -> None:
        super().__init__()
        self.item_id = item_id
        self.peaks = peaks
        self.length_s = length_s


class SoundEnded(Message):
    """A play has ended; fault: why the output was lost, or ""."""

    def __init__(self, number: int, fault: str) -> None:
        super().__init__()
        self.number = number
        self.fault = fault


class SoundFailed(Message):
    """A sound cannot be read, spoken or played. played: it was to be heard, not only drawn."""

    def __init__(self, number: int, item_id: str, what: str, remedy: str, *, played: bool) -> None:
        super().__init__()
        self.number = number
        self.item_id = item_id
        self.what = what
        self.remedy = remedy
        self.played = played


class RoomRead(Message):
    """What the sessions have come to was read again; why it could not be, or ""."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault
