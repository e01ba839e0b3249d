"""Levels of loudspeaker and microphone, with the noise floor."""

from __future__ import annotations

from rich.text import Text

from harness.dashboard import palette
from harness.dashboard.widgets.painted import Painted
from harness.dashboard.wording import level
from harness.model.feed import Meters

LOWEST_DBFS = -80.0
LOUD_DBFS = -6.0
_EIGHTHS = " ▏▎▍▌▋▊▉"


def cells(value_dbfs: float, width: int) -> float:
    """Where a level lies on a scale of `width` cells."""
    return max(0.0, min(1.0, 1 - value_dbfs / LOWEST_DBFS)) * width


class LevelMeters(Painted):
    """Two bars from −80 to 0 dBFS; `│` marks the noise floor."""

    DEFAULT_CSS = "LevelMeters { height: 2; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._meters = Meters(None, None, None)

    def show(self, meters: Meters | None) -> None:
        if meters is not None and meters != self._meters:
            self._meters = meters
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        now = self._meters
        text = self._bar("Speaker   ", now.speaker_dbfs, None, width, palette.BLUE)
        text.append("\n")
        text.append_text(self._bar("Microphone", now.microphone_dbfs, now.noise_floor_dbfs, width, palette.GREEN))
        return text

    @staticmethod
    def _bar(name: str, value: float | None, floor: float | None, width: int, colour: str) -> Text:
        room = max(4, width - 40)
        filled = 0.0 if value is None else cells(value, room)
        whole = int(filled)
        bar = "█" * whole + (_EIGHTHS[int((filled - whole) * 8)] if whole < room else "")
        bar = bar.replace(" ", "").ljust(room, "·")[:room]
        loud = value is not None and value > LOUD_DBFS
        text = Text(f"{name} ", style=palette.QUIET)
        drawn = len(bar.rstrip("·"))
        text.append(bar[:drawn], style=palette.ORANGE if loud else colour)
        text.append(bar[drawn:], style=palette.RULE)
        if floor is not None:
            at = len(name) + 1 + min(room - 1, int(cells(floor, room)))
            marked = Text.assemble(text[:at], ("│", palette.YELLOW), text[at + 1 :])
            text = marked
        text.append(f" {level(value):>8}", style=palette.TEXT)
        if loud:
            text.append(" loud", style=palette.ORANGE)
        elif floor is not None:
            text.append(f"  floor {level(floor)}", style=palette.YELLOW)
        return text
