"""The shape of a stored clip."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.text import Text
from textual import work
from textual.worker import get_current_worker

from harness.dashboard import palette
from harness.dashboard.messages import ClipRead
from harness.dashboard.waves import peaks, slices
from harness.dashboard.widgets.painted import Painted
from harness.model.record import Clip

_BARS = " ▁▂▃▄▅▆▇█"


class Waveform(Painted):
    """Reads the clip in a thread of its own, once; loudest moment at full height."""

    DEFAULT_CSS = "Waveform { height: 3; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._clip: Clip | None = None
        self._peaks: npt.NDArray[np.float32] | None = None
        self._read = False

    @property
    def drawn(self) -> bool:
        """True when the clip's shape is known."""
        return self._peaks is not None

    def show(self, clip: Clip | None, folder: Path) -> None:
        """Draws a clip of the session in `folder`."""
        if clip == self._clip:
            return
        self._clip, self._peaks, self._read = clip, None, False
        self.refresh()
        # A name with a folder in it would lead out of clips/.
        if clip is not None and Path(clip.name).name == clip.name:
            self._read_clip(clip, folder / "clips" / clip.name)

    @work(thread=True, exclusive=True, group="clip")
    def _read_clip(self, clip: Clip, path: Path) -> None:
        found = peaks(path)
        if not get_current_worker().is_cancelled:
            self.post_message(ClipRead(clip, found))

    def on_clip_read(self, message: ClipRead) -> None:
        message.stop()
        if message.clip == self._clip:
            self._peaks, self._read = message.peaks, True
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        if self._clip is None:
            return Text("no response yet", style=palette.QUIET)
        if self._peaks is None:
            return Text("the clip cannot be read here" if self._read else "reading the clip …", style=palette.QUIET)
        if not len(self._peaks):
            return Text("the clip is empty", style=palette.QUIET)
        shape = slices(self._peaks, width)
        places = np.linspace(0, len(shape) - 1, width)
        heights = np.interp(places, np.arange(len(shape)), shape) / max(float(shape.max()), 1e-9)
        steps = np.clip(np.round(heights * height * 8), 1, height * 8).astype(int)
        rows = ["".join(_BARS[max(0, min(8, step - 8 * row))] for step in steps) for row in reversed(range(height))]
        return Text("\n".join(rows), style=palette.CYAN)
