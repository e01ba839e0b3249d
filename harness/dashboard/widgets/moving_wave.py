"""The shape of a response, with a cursor that moves while it is heard."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rich.text import Text

from harness.dashboard import palette
from harness.dashboard.waves import slices
from harness.dashboard.widgets.painted import Painted

_BARS = " ▁▂▃▄▅▆▇█"
_LABEL_WIDTH = 22


class MovingWave(Painted):
    """On the left what plays and the time, on the right the shape; loudest moment at full height."""

    DEFAULT_CSS = "MovingWave { height: 1; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._peaks: npt.NDArray[np.float32] | None = None
        self._length_s: float | None = None
        self._what = ""
        self._at_s: float | None = None
        self._said = ""

    @property
    def drawn(self) -> bool:
        """True when the sound's shape is known."""
        return self._peaks is not None

    def clear(self, said: str) -> None:
        """Nothing is known of the sound but this."""
        self._peaks, self._length_s, self._said = None, None, said
        self._what, self._at_s = "", None
        self.refresh()

    def shape(self, peaks: npt.NDArray[np.float32], length_s: float) -> None:
        self._peaks, self._length_s = peaks, length_s
        self.refresh()

    def move(self, what: str, at_s: float | None) -> None:
        """what: plays, "" when nothing does. at_s: how far into the response; None: it is no part of it."""
        if (what, at_s) != (self._what, self._at_s):
            self._what, self._at_s = what, at_s
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        if self._peaks is None:
            return Text(self._said, style=palette.QUIET)
        label = self._label()
        if not len(self._peaks) or width < 2 * _LABEL_WIDTH:
            return label
        room = width - _LABEL_WIDTH
        shape = slices(self._peaks, room)
        places = np.linspace(0, len(shape) - 1, room)
        loudest = max(float(shape.max()), 1e-9)
        heights = np.interp(places, np.arange(len(shape)), shape) / loudest
        steps = np.clip(np.round(heights * height * 8), 1, height * 8).astype(int)
        cursor = self._cursor(room)
        text = Text()
        for row in reversed(range(height)):
            head = label if row == height - 1 else Text()
            head.pad_right(_LABEL_WIDTH - head.cell_len)
            bars = "".join(_BARS[max(0, min(8, step - 8 * row))] for step in steps)
            text.append_text(head)
            if cursor is None:
                text.append(bars, style=palette.CYAN)
            else:
                text.append(bars[:cursor], style=palette.CYAN)
                text.append("┃", style=f"bold {palette.YELLOW}")
                text.append(bars[cursor + 1 :], style=palette.RULE)
            text.append("\n")
        text.right_crop(1)
        return text

    def _label(self) -> Text:
        length_s = self._length_s or 0.0
        if self._at_s is None:
            text = Text(f"{length_s:.1f} s", style=palette.QUIET)
        else:
            text = Text(f"{min(self._at_s, length_s):.1f} of {length_s:.1f} s", style=palette.TEXT)
        if self._what:
            text.append(f" {self._what}", style=f"bold {palette.YELLOW}")
        return text

    def _cursor(self, room: int) -> int | None:
        if self._at_s is None or not self._length_s:
            return None
        return min(room - 1, int(self._at_s / self._length_s * room))
