"""What is to be judged: the query, and our transcription of the response."""

from __future__ import annotations

from rich.text import Text

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.last_response import transcription
from harness.dashboard.widgets.painted import Painted
from harness.dashboard.wording import measured, query_text, seconds
from harness.session.figures.trials import FirstResponse


class ItemText(Painted):
    """Four lines; the long ones are cut (the sound is what counts)."""

    DEFAULT_CSS = "ItemText { height: 4; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._item: FirstResponse | None = None
        self._shown: tuple[FirstResponse | None, int, str] = (None, 0, "")

    def show(self, item: FirstResponse | None, responses: int, comment: str) -> None:
        if (item, responses, comment) != self._shown:
            self._shown = (item, responses, comment)
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        item, responses, comment = self._shown
        if item is None:
            said = (
                "Every response is judged. New ones appear here by themselves."
                if responses
                else ("No response to judge yet. They appear here by themselves.")
            )
            return Text(said, style=palette.GREEN if responses else palette.QUIET)
        text = Text("asked  ", style=palette.QUIET)
        text.append(f"“{query_text(item.trial)}”\n", style=f"bold {palette.TEXT}")
        text.append("said   ", style=palette.QUIET)
        text.append(transcription(item), style=palette.TEXT)
        text.append("  (our transcription)\n", style=palette.QUIET)
        text.append("       ", style=palette.QUIET)
        text.append(
            f"attempt {item.attempt} · after {measured(item.latency)} · {seconds(item.clip.duration_s)} long",
            style=palette.QUIET,
        )
        if item.truncated:
            text.append(" · cut at its longest", style=palette.ORANGE)
        if item.trial.core_capability:
            text.append(" · a core capability", style=palette.YELLOW)
        text.append("\nnote   " if comment else "\n", style=palette.QUIET)
        text.append(plain_text(comment), style=palette.YELLOW)
        return text
