"""The last first response: its shape, what our recogniser made of it, and its times."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.painted import Painted
from harness.dashboard.widgets.waveform import Waveform
from harness.dashboard.wording import measured, seconds
from harness.session.figures.progress import Progress
from harness.session.figures.trials import FirstResponse


def transcription(response: FirstResponse | None, limit: int = 300) -> str:
    """Our recogniser's words, harmless."""
    if response is None:
        return ""
    if response.transcript is None:
        return "none yet"
    return f"“{plain_text(response.transcript, limit)}”" if response.transcript else "(no words found)"


class ResponseText(Painted):
    """The times, and what was said."""

    DEFAULT_CSS = "ResponseText { height: 1fr; text-wrap: wrap; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._response: FirstResponse | None = None

    def show(self, response: FirstResponse | None) -> None:
        if response != self._response:
            self._response = response
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        found = self._response
        if found is None:
            return Text()
        text = Text("after ", style=palette.QUIET)
        text.append(measured(found.latency), style=palette.TEXT)
        text.append(" · ", style=palette.QUIET)
        text.append(seconds(found.clip.duration_s), style=palette.TEXT)
        text.append(" long", style=palette.QUIET)
        if found.truncated:
            text.append("  cut", style=palette.ORANGE)
        text.append("\nour transcription: ", style=palette.QUIET)
        text.append(transcription(found), style=palette.TEXT)
        return text


TITLE = "Last response"


class LastResponse(Vertical):
    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = TITLE

    def compose(self) -> ComposeResult:
        yield Waveform()
        yield ResponseText()

    def show(self, progress: Progress, folder: Path) -> None:
        response = None
        if progress.last_response is not None:
            trial = progress.trial(progress.last_response[0])
            response = trial.latest_response if trial else None
        self.border_title = Content(_title(response))
        self.query_one(Waveform).show(response.clip if response else None, folder)
        self.query_one(ResponseText).show(response)


def _title(response: FirstResponse | None) -> str:
    """A narrow title loses its end, so the attempt stands first."""
    return TITLE if response is None else f"Last response, ×{response.attempt}: {plain_text(response.trial.id, 80)}"
