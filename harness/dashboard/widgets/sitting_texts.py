"""What stands in the place of the keys: the explanation of an exercise, and the end of a sitting."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.text import Text

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.painted import Painted
from harness.dashboard.wording import NOT_AVAILABLE
from harness.rating.desk import Explained, SittingView
from harness.rating.guide import GUIDE, LABELS


class Explanation(Painted):
    """Whether an exercise was answered rightly, and why."""

    DEFAULT_CSS = "Explanation { height: 11; padding: 1 2; border-left: thick $primary; display: none; }"

    def __init__(self) -> None:
        super().__init__()
        self._explained: Explained | None = None

    def show(self, explained: Explained | None) -> None:
        self._explained = explained
        self.display = explained is not None
        self.refresh()

    def paint(self, width: int, height: int) -> Text:
        one = self._explained
        if one is None:
            return Text()
        wanted = LABELS[one.exercise.category]
        text = Text()
        if one.given is one.exercise.category:
            text.append(f"Right: {wanted}", style=f"bold {palette.GREEN}")
        elif one.right:
            text.append(f"{LABELS[one.given]} can be defended; {wanted} is better", style=f"bold {palette.GREEN}")
        else:
            text.append(f"Not {LABELS[one.given]}, but {wanted}", style=f"bold {palette.ORANGE}")
        text.append(f"\n\n{plain_text(one.exercise.why, 600)}\n\n", style=palette.TEXT)
        text.append(f"{wanted}: {GUIDE[one.exercise.category].test}\n", style=palette.QUIET)
        lines = list(text.wrap(self.app.console, width))[: max(1, height - 1)]
        return Text("\n").join([*lines, Text("any key goes on", style=f"bold {palette.BLUE}")])


class Finished(Painted):
    """The counts, what is held and why, the pace, and what to do next."""

    DEFAULT_CSS = "Finished { height: 1fr; padding: 1 2; display: none; }"

    def __init__(self, sessions: tuple[str, ...], release_key: str) -> None:
        super().__init__()
        self._sessions = " ".join(shlex.quote(plain_text(_short(one), 300)) for one in sessions)
        self._release_key = release_key
        self._view: SittingView | None = None
        self._waiting: tuple[str, ...] = ()

    def show(self, view: SittingView, waiting: tuple[str, ...]) -> None:
        """waiting: what held items wait for, in words."""
        self._view, self._waiting = view, waiting
        self.refresh()

    def paint(self, width: int, height: int) -> Text:
        if self._view is None:
            return Text()
        count = self._view.count
        pace = NOT_AVAILABLE if self._view.pace_s is None else f"{self._view.pace_s:.1f} s each"
        none = "There is nothing to judge here for you yet." if not count.total else ""
        if self._view.stopped:
            none = "You get no more responses in this round: too many of your answers differ from known ones."
        head = none or ("All is judged. Thank you." if not count.held else "All that can be judged now is judged.")
        text = Text.assemble((f"{head}\n\n", f"bold {palette.GREEN}"))
        rows = [("done", f"{count.done} of {count.total}"), ("put aside", str(count.flagged)), ("pace", pace)]
        for label, words in rows:
            text.append(f"{label:<11}", style=palette.QUIET)
            text.append(f"{words}\n", style=palette.TEXT)
        if count.held:
            text.append(f"{'held':<11}", style=palette.QUIET)
            text.append(f"{count.held}, until somebody says what the device did:\n", style=palette.YELLOW)
            for words in self._waiting[:5]:
                text.append(f"{'':<11}· {plain_text(words, 100)}\n", style=palette.TEXT)
            if len(self._waiting) > 5:
                text.append(f"{'':<11}and {len(self._waiting) - 5} more\n", style=palette.QUIET)
            text.append(f"{'':<11}say it with  harness effects {self._sessions}\n", style=palette.TEXT)
            text.append(f"{'':<11}{self._release_key} judges them all the same\n", style=palette.TEXT)
        text.append("\nHow far raters agree:  ", style=palette.QUIET)
        text.append(f"harness agreement {self._sessions}\n", style=palette.TEXT)
        text.append("New responses and answers show here by themselves.", style=palette.QUIET)
        return Text("\n").join(list(text.wrap(self.app.console, width))[:height])


def _short(path: str) -> str:
    """As one would type it here."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
