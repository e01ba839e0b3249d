"""What is to be judged: the query, the response in writing, how it came about, and what it brought about."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.rating_words import effect_words, given_words
from harness.dashboard.widgets.painted import Painted
from harness.dashboard.wording import measured, seconds
from harness.model.judgment import JudgmentStatus
from harness.model.trial import Recognition
from harness.rating.desk import SittingView
from harness.rating.items import Item

_LABEL_WIDTH = 8
LONGEST = 2000
Row = tuple[str, Text]


class JudgedItem(Painted):
    """Rows with labels, folded where there is room; what does not fit ends in an ellipsis (`whole` has it all)."""

    DEFAULT_CSS = "JudgedItem { height: 1fr; padding: 0 1; }"

    def __init__(self, transcript_key: str, *, names: bool) -> None:
        super().__init__()
        self._key, self._names = transcript_key, names
        self._view: SittingView | None = None

    def show(self, view: SittingView) -> None:
        self._view = view
        self.refresh()

    def paint(self, width: int, height: int) -> Text:
        if self._view is None or self._view.item is None:
            return Text()
        return folded(self.rows(self._view), self.app.console, width, height)

    def rows(self, view: SittingView) -> list[Row]:
        """The rows of the item in sight, the weightiest first."""
        item = view.item
        if item is None:
            return []
        rows = [("asked", Text(f"“{plain_text(item.query, LONGEST)}”", style=f"bold {palette.TEXT}"))]
        rows += self._said(item, view.draft.transcript_shown)
        rows += self._inputs(item)
        if view.proposal is not None:
            rows.append(("classifier", Text(view.proposal.words, style=palette.ORANGE)))
        if item.effect is not None:
            wanted, known = effect_words(item.effect)
            rows.append(("wanted", Text(wanted, style=palette.TEXT)))
            rows.append(("seen", Text(known, style=palette.YELLOW)))
        if item.note:
            rows.append(
                ("note" if item.exercise is None else "seen", Text(plain_text(item.note, LONGEST), style=palette.TEXT))
            )
        rows.append(("", _facts(item)))
        if view.own is not None and (view.again or view.own.status is not JudgmentStatus.SUBMITTED):
            own = given_words(view.own)
            if view.own.comment and view.own.category is None:
                own += f", “{plain_text(view.own.comment, 200)}”"
            rows.append(("before", Text(own, style=palette.VIOLET)))
        return rows

    def _said(self, item: Item, shown: bool) -> list[Row]:
        if not shown:
            return [("said", Text(f"not shown; {self._key} shows it in writing", style=palette.QUIET))]
        if item.transcript is None:
            return [("said", Text("nobody has written it down", style=palette.QUIET))]
        return [("said", Text(f"“{plain_text(item.transcript, LONGEST)}”", style=palette.TEXT))]

    def _inputs(self, item: Item) -> list[Row]:
        """What raters gave, to whoever settles it; who they are only when that is asked for."""
        rows = []
        for number, row in enumerate(item.inputs, start=1):
            name = plain_text(row.rater, 30) if self._names else f"rater {number}"
            text = Text(f"{name}: " if self._names else "", style=palette.QUIET)
            rows.append(
                ("given" if self._names else name, text.append(given_words(row), style=palette.ORANGE)),
            )
        return rows


def _facts(item: Item) -> Text:
    parts = []
    if item.attempts > 1:
        waits = ", ".join(seconds(wait_s) for wait_s in item.waits_s)
        parts.append(
            f"asked {item.attempts} times, after waits of {waits}" if waits else f"asked {item.attempts} times"
        )
    elif item.exercise is None:
        parts.append("asked once")
    if item.latency is not None:
        parts.append(f"answered after {measured(item.latency)}")
    if item.length is not None:
        parts.append(f"{seconds(item.length.value_s)} long")
    text = Text(" · ".join(parts), style=palette.QUIET)
    marks = []
    if item.core_capability:
        marks.append(("a core capability", palette.YELLOW))
    if item.truncated:
        marks.append(("cut: it went on", palette.ORANGE))
    if item.exercise is None and item.recognition is Recognition.NO:
        marks.append(("other words were heard", palette.ORANGE))
    for words, colour in marks:
        text.append(" · " if len(text) else "", style=palette.QUIET)
        text.append(words, style=colour)
    return text


def folded(rows: list[Row], console: Console, width: int, height: int) -> Text:
    """Rows on at most `height` lines: the longest lose lines first, and then the last rows are left out."""
    room = max(1, width - _LABEL_WIDTH)
    kept = [(label, text.wrap(console, room)) for label, text in rows[:height]]
    lines = [list(wrapped) for _, wrapped in kept]
    while sum(map(len, lines)) > height:
        longest = max(range(len(lines)), key=lambda index: (len(lines[index]), index))
        del lines[longest][-1]
        last = lines[longest][-1]
        last.rstrip()
        last.truncate(room - 1)
        last.append("…", style=palette.QUIET)
    whole = Text()
    for (label, _), parts in zip(kept, lines, strict=True):
        for number, part in enumerate(parts):
            whole.append(f"{label if number == 0 else '':<{_LABEL_WIDTH}}", style=palette.QUIET)
            whole.append_text(part)
            whole.append("\n")
    whole.right_crop(1)
    return whole
