"""Widgets of the last response: the shape of its clip, its times, its words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.worker import get_current_worker

from harness.base.foreign import plain_text
from harness.base.places import SessionFolder
from harness.dashboard import palette
from harness.dashboard.messages import ClipRead
from harness.dashboard.widgets.bars import TextWidget, ValueWidget, named_title
from harness.model.errors import LogError
from harness.model.numbers import seconds
from harness.model.record import Clip
from harness.rating.guide import CUT_OFF
from harness.session.figures.progress import Progress
from harness.session.figures.trials import FirstResponse
from harness.session.log.clips import clip_samples
from harness.session.log.reader import removals
from harness.statistics.text import measured

SLICE_COUNT = 600
"""Number of slices of a clip, enough for any width. Drawing takes the maximum of neighbours."""


def read_peaks(folder: Path, clip: Clip) -> npt.NDArray[np.float32] | None:
    """Peaks of a clip, from 0 to 1, at most SLICE_COUNT; None if its file is missing or damaged. folder: the clips'
    folder."""
    try:
        samples = clip_samples(folder, clip)
    except LogError:
        return None
    return slice_maxima(np.abs(samples), SLICE_COUNT)


def slice_maxima(values: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """The maximum of each of at most `count` equal slices."""
    if len(values) <= count:
        return values
    edges = np.linspace(0, len(values), count, endpoint=False).astype(int)
    maxima: npt.NDArray[np.float32] = np.maximum.reduceat(values, edges)
    return maxima


_BAR_CHARS = " ▁▂▃▄▅▆▇█"


def draw_bars(values: npt.NDArray[np.float32], width: int, height: int) -> list[str]:
    """A non-empty shape as lines of characters, top line first. The loudest moment has full height."""
    maxima = slice_maxima(values, width)
    positions = np.linspace(0, len(maxima) - 1, width)
    heights = np.interp(positions, np.arange(len(maxima)), maxima) / max(float(maxima.max()), 1e-9)
    # In eighths of a line; silence has one, so that the shape is never interrupted.
    eighths = np.clip(np.round(heights * height * 8), 1, height * 8).astype(int)
    return [
        "".join(_BAR_CHARS[max(0, min(8, count - 8 * row))] for count in eighths) for row in reversed(range(height))
    ]


class ClipShape(TextWidget):
    """The shape of a clip, which a thread reads once. The loudest moment has full height."""

    DEFAULT_CSS = "ClipShape { height: 3; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._clip: Clip | None = None
        self._peaks: npt.NDArray[np.float32] | None = None
        self._is_read = False
        self._removal = ""

    @property
    def is_drawn(self) -> bool:
        return self._peaks is not None

    def show(self, clip: Clip | None, folder: Path) -> None:
        """Draws a clip of the session in `folder`."""
        if clip == self._clip:
            return
        self._clip, self._peaks, self._is_read, self._removal = clip, None, False, ""
        self.refresh()
        if clip is not None:
            self._read_clip(clip, folder)

    @work(thread=True, exclusive=True, group="clip")
    def _read_clip(self, clip: Clip, folder: Path) -> None:
        clip_peaks = read_peaks(SessionFolder(folder).clips, clip)
        removal = removals(folder).get(clip.name, "") if clip_peaks is None else ""
        if not get_current_worker().is_cancelled:
            self.post_message(ClipRead(clip, clip_peaks, removal))

    def on_clip_read(self, message: ClipRead) -> None:
        message.stop()
        if message.clip == self._clip:
            self._peaks, self._is_read, self._removal = message.peaks, True, message.removal
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        if self._clip is None:
            return Text("no response yet", style=palette.QUIET)
        if self._peaks is None and self._removal:
            return Text(f"the sound {self._removal}", style=palette.QUIET)
        if self._peaks is None:
            return Text("the clip cannot be read here" if self._is_read else "reading the clip …", style=palette.QUIET)
        if not len(self._peaks):
            return Text("the clip is empty", style=palette.QUIET)
        return Text("\n".join(draw_bars(self._peaks, width, height)), style=palette.CYAN)


def transcript_text(response: FirstResponse | None, limit: int = 300) -> str:
    """The transcript of a response, escaped; "" without a response."""
    if response is None:
        return ""
    if response.transcript is None:
        return "none yet"
    return f"“{plain_text(response.transcript, limit)}”" if response.transcript else "(no words found)"


class ResponseTimes(ValueWidget[FirstResponse]):
    """Times and text of the response."""

    DEFAULT_CSS = "ResponseTimes { height: 1fr; text-wrap: wrap; }"

    def draw(self, response: FirstResponse, width: int, height: int) -> Text:
        return Text.assemble(
            "after ",
            (measured(response.latency), palette.TEXT),
            (" · ", palette.QUIET),
            (seconds(response.clip.duration_s), palette.TEXT),
            (" long", palette.QUIET),
            (f" · {CUT_OFF}" if response.truncated else "", palette.ORANGE),
            ("\nour transcription: ", palette.QUIET),
            (transcript_text(response), palette.TEXT),
            style=palette.QUIET,
        )


TITLE = "Last response"


class LastResponse(Vertical):
    """The shape, times and text of the last response, in a box with the name of its trial."""

    BORDER_TITLE = TITLE

    def compose(self) -> ComposeResult:
        yield ClipShape()
        yield ResponseTimes()

    def show(self, progress: Progress, folder: Path) -> None:
        response = None
        if progress.last_response is not None:
            trial_id, *_ = progress.last_response
            trial = progress.trial(trial_id)
            response = trial.latest_response if trial else None
        self.border_title = Content(TITLE)
        if response is not None:
            self.border_title = named_title(self, f"{TITLE}, ×{response.attempt}: ", response.trial.id)
        self.query_one(ClipShape).show(response.clip if response else None, folder)
        self.query_one(ResponseTimes).show(response)
