"""The eleven keys with their categories, always in sight."""

from __future__ import annotations

from rich.text import Text

from harness.dashboard import palette
from harness.dashboard.widgets.painted import Painted
from harness.rating.guide import GUIDE, KEYS, LABELS


class CategoryKeys(Painted):
    """A line for each category: key, name, and what it means."""

    DEFAULT_CSS = f"CategoryKeys {{ height: {len(KEYS)}; padding: 0 1; }}"

    def paint(self, width: int, height: int) -> Text:
        name_width = max(len(name) for name in LABELS.values())
        text = Text()
        for key, category in KEYS:
            text.append(f"{key} ", style=f"bold {palette.BLUE}")
            text.append(f"{LABELS[category]:<{name_width}}  ", style=f"bold {palette.TEXT}")
            text.append(f"{GUIDE[category].short}\n", style=palette.QUIET)
        text.right_crop(1)
        return text
