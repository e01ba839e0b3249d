"""What crosses from a thread, or from a widget to the app; everything else is drawn from a `View`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from textual.message import Message

from harness.dashboard.watch import Then
from harness.model.clip import Clip
from harness.model.feed import Command


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
