"""What was understood at the last attempt beside what was expected, and at the attempts before it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text
from textual.content import Content

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.painted import Painted
from harness.model.record import Understood
from harness.model.trial import EvidenceSource, Trial
from harness.session.figures.progress import Progress
from harness.session.figures.trials import AttemptProgress
from harness.understanding.understood import Mark, Part, compared, parts_of, verdict_in_words

TITLE = "Last frame"
_STYLES: dict[Mark, Style] = {
    Mark.RIGHT: Style(color=palette.GREEN),
    Mark.OTHER_VALUE: Style(color=palette.ORANGE, strike=True),
    Mark.MISSING: Style(color=palette.RED),
    Mark.TOO_MANY: Style(color=palette.RED, strike=True),
    Mark.ASIDE: Style(color=palette.QUIET),
}


class FramePanel(Painted):
    """A line for each part with its sign: what is wrong can be read without a colour."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = TITLE
        self._trial: Trial | None = None
        self._attempts: tuple[AttemptProgress, ...] = ()

    def show(self, progress: Progress) -> None:
        """The last attempt that a frame is known of, or known to be unknown; those of its take before it."""
        if progress.last_frame is None:
            return
        trial_id, take_number, number = progress.last_frame
        found = progress.trial(trial_id)
        take = next((one for one in found.takes if one.take == take_number), None) if found else None
        if found is None or take is None:
            return
        attempts = tuple(one for one in take.attempts if one.attempt <= number and _told(one) is not None)
        if (found.trial, attempts) == (self._trial, self._attempts):
            return
        self._trial, self._attempts = found.trial, attempts
        self.border_title = Content(f"{TITLE}, ×{number}: {plain_text(trial_id, 80)}")
        self.refresh()

    def paint(self, width: int, height: int) -> Text:
        if self._trial is None or not self._attempts:
            return Text("none yet", style=palette.QUIET)
        *before, last = self._attempts
        head, *found = _last(self._trial, last)
        if 1 + len(found) > height:
            found = _packed(found, width)
        lines = [head, *found, *(_before(self._trial, one) for one in reversed(before))]
        if 1 + len(found) > height:
            lines = [*lines[: height - 1], Text(f"… {1 + len(found) - height + 1} more lines", style=palette.QUIET)]
        return Text("\n").join(lines[:height])


def _told(attempt: AttemptProgress) -> Understood | None:
    return None if attempt.verdict is None else attempt.verdict.understood


def _packed(parts: Sequence[Text], width: int) -> list[Text]:
    """As many parts on a line as fit."""
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + 2 + part.cell_len <= width:
            lines[-1] = Text("  ").join((lines[-1], part))
        else:
            lines.append(part)
    return lines


def _last(trial: Trial, attempt: AttemptProgress) -> list[Text]:
    """The verdict, and a line for each part."""
    told, row = _told(attempt), attempt.verdict
    if told is None or row is None:
        return [Text()]
    colour = palette.CYAN if told.right is None else palette.GREEN if told.right else palette.RED
    head = Text(verdict_in_words(told), style=colour)
    if told.source is EvidenceSource.OPERATOR:
        head.append(", by the operator", style=palette.QUIET)
    found = parts_of(trial, row)
    if not found and told.intents is not None:
        head.append(": nothing, as it should" if told.right else ": nothing", style=palette.QUIET)
    return [head, *(_part(one) for one in found)]


def _part(part: Part) -> Text:
    style = _STYLES[part.mark]
    sign = Text(f"{part.mark.sign} ", style=Style(color=style.color))
    text = (
        plain_text(part.name, 80) if part.value is None else f"{plain_text(part.name, 40)} “{plain_text(part.value)}”"
    )
    sign.append(text, style=style)
    if part.mark is Mark.OTHER_VALUE:
        sign.append(f", not “{plain_text(part.wanted or '')}”", style=palette.TEXT)
    return sign


def _before(trial: Trial, attempt: AttemptProgress) -> Text:
    """An attempt before the last on one line: what of it was not right."""
    told, row = _told(attempt), attempt.verdict
    wrong = [] if row is None else [one for one in parts_of(trial, row) if one.mark is not Mark.RIGHT]
    what = compared(wrong) or ("" if told is None else verdict_in_words(told))
    return Text(f"×{attempt.attempt} {what}", style=palette.QUIET)
