"""Colours, legible on the background (contrast ≥ 4.5). A word or sign always carries the meaning too."""

from __future__ import annotations

from textual.theme import Theme

from harness.model.feed import StateWord
from harness.model.trial import Outcome
from harness.wake.wake_progress import MarkKind

BACKGROUND = "#13171c"
PANEL = "#1c232b"
SELECTED = "#263441"
TEXT = "#d9dfe7"
QUIET = "#94a2b1"
RULE = "#5d6b79"
BLUE = "#82b7ea"
GREEN = "#84d196"
CYAN = "#78d0d0"
YELLOW = "#e7c96f"
ORANGE = "#f1a872"
RED = "#f4938a"
VIOLET = "#cfa6ea"

ON_TEXT: tuple[str, ...] = (TEXT, QUIET, BLUE, GREEN, CYAN, YELLOW, ORANGE, RED, VIOLET)

THEME = Theme(
    name="bench",
    primary=BLUE,
    secondary=CYAN,
    accent=BLUE,
    warning=YELLOW,
    error=RED,
    success=GREEN,
    foreground=TEXT,
    background=BACKGROUND,
    surface=BACKGROUND,
    panel=PANEL,
    dark=True,
)

OUTCOMES: dict[Outcome, str] = {
    Outcome.RESPONDED: GREEN,
    Outcome.LATE: YELLOW,
    Outcome.MISHEARD: ORANGE,
    Outcome.NO_WAKE: RED,
    Outcome.NO_RESPONSE: RED,
    Outcome.INTERRUPTED: VIOLET,
    Outcome.INCONCLUSIVE: CYAN,
    Outcome.SKIPPED: QUIET,
    Outcome.ABORTED: QUIET,
    Outcome.COUNTED: BLUE,
    Outcome.UNDERSTOOD: GREEN,
}

MARKS: dict[MarkKind, str] = {
    MarkKind.HIT: GREEN,
    MarkKind.FALSE_REJECT: RED,
    MarkKind.UNMATCHED: YELLOW,
    MarkKind.AMBIENT: RULE,
    MarkKind.INTERRUPTED: VIOLET,
    MarkKind.PROBE: GREEN,
    MarkKind.PROBE_UNHEARD: YELLOW,
}

STATES: dict[StateWord, str] = {
    StateWord.PREPARING: QUIET,
    StateWord.PLAYING: BLUE,
    StateWord.LISTENING: GREEN,
    StateWord.RESPONSE: CYAN,
    StateWord.CHECKING: CYAN,
    StateWord.ASKING: YELLOW,
    StateWord.CLOSING: QUIET,
    StateWord.WAITING: VIOLET,
    StateWord.INTERRUPTED: RED,
    StateWord.PAUSED: YELLOW,
    StateWord.FINISHED: GREEN,
}
