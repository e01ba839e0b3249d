"""Stimuli and wake events of a device along the time, a character for each stretch of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text

from harness.dashboard import palette
from harness.dashboard.wake_wording import short_span
from harness.wake.wake_progress import MarkKind, TimelineMark

GLYPHS: dict[MarkKind, str] = {
    MarkKind.HIT: "✓",
    MarkKind.FALSE_REJECT: "✗",
    MarkKind.UNMATCHED: "!",
    MarkKind.AMBIENT: "░",
    MarkKind.INTERRUPTED: "~",
    MarkKind.PROBE: "p",
    MarkKind.PROBE_UNHEARD: "p",
}
LEGEND = (
    (MarkKind.HIT, "hit"),
    (MarkKind.FALSE_REJECT, "false reject"),
    (MarkKind.UNMATCHED, "unmatched"),
    (MarkKind.AMBIENT, "ambient"),
    (MarkKind.INTERRUPTED, "interrupted"),
)
SPANS_S = (5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0, 7200.0, 21600.0, 86400.0)
LABEL = 9

# What is seen where several things fall into one character; a later one hides an earlier one.
_RANK = (
    MarkKind.AMBIENT,
    MarkKind.PROBE,
    MarkKind.HIT,
    MarkKind.INTERRUPTED,
    MarkKind.PROBE_UNHEARD,
    MarkKind.FALSE_REJECT,
    MarkKind.UNMATCHED,
)


def legend() -> Text:
    """What the characters mean."""
    text = Text()
    for kind, word in LEGEND:
        text.append(GLYPHS[kind], style=palette.MARKS[kind])
        text.append(f" {word}  ", style=palette.QUIET)
    text.rstrip()
    return text


def span_s(marks: Sequence[TimelineMark], columns: int) -> float:
    """The time that the strip covers: enough for all marks, or for a third as many as there are columns."""
    if not marks:
        return SPANS_S[0]
    last = max(mark.end_s for mark in marks)
    wanted = max(1, min(len(marks), columns // 3))
    oldest = sorted((mark.start_s for mark in marks), reverse=True)[wanted - 1]
    return next((span for span in SPANS_S if last - oldest <= span), SPANS_S[-1])


def timeline(marks: Sequence[TimelineMark], width: int, now_s: float | None = None) -> Text:
    """One line: how far back it reaches, and the marks up to the last one; now_s: sound that is still to come is not
    drawn yet, on the clock of the marks.
    """
    columns = max(1, width - LABEL)
    if now_s is not None:
        marks = [replace(one, end_s=min(one.end_s, now_s)) for one in marks if one.start_s <= now_s]
    span = span_s(marks, columns)
    text = Text(f"{f'−{short_span(span)}':>{LABEL - 1}} ", style=palette.QUIET)
    cells: list[tuple[str, str]] = [("·", palette.RULE)] * columns
    if marks:
        begins = max(mark.end_s for mark in marks) - span
        for kind in _RANK:
            for mark in marks:
                if mark.kind is kind and mark.end_s >= begins:
                    _draw(mark, begins, span, cells)
    for character, colour in cells:
        text.append(character, style=colour)
    return text


def _draw(mark: TimelineMark, begins: float, span: float, cells: list[tuple[str, str]]) -> None:
    columns = len(cells)
    first, last = (max(0, min(columns - 1, int((at - begins) / span * columns))) for at in (mark.start_s, mark.end_s))
    glyph, colour = GLYPHS[mark.kind], palette.MARKS[mark.kind]
    if mark.kind is MarkKind.AMBIENT:
        cells[first : last + 1] = [(glyph, colour)] * (last + 1 - first)
        return
    if mark.kind is not MarkKind.UNMATCHED:
        cells[first:last] = [("─", colour)] * (last - first)
    cells[last] = (glyph, f"bold {colour}" if mark.kind is MarkKind.UNMATCHED else colour)
