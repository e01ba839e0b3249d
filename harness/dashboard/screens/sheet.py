"""What all our screens have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.screen import ModalScreen, Screen

from harness.dashboard.watch import View


class Sheet(Screen[None]):
    """A full screen that is shown a new view five times a second."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-slim"), (70, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-flat"), (20, "-low"), (32, "-tall")]  # noqa: RUF012
    help_text: ClassVar[str] = ""

    def show(self, view: View) -> None:
        raise NotImplementedError


class Panel(ModalScreen[Any]):
    """A question over a screen."""

    DEFAULT_CSS = """
    Panel { align: center middle; background: $background 60%; }
    Panel > Vertical {
        width: 72; max-width: 96%; height: auto; max-height: 96%;
        padding: 1 2; background: $panel; border: solid $primary;
    }
    Panel Static { height: auto; }
    """
    help_text: ClassVar[str] = ""

    def show(self, view: View) -> None:
        """Most panels do not change while they are open."""
