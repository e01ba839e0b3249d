"""The trials in the order of playing, with their outcomes in words and colour."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import set_cell_size
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.lines import Lines
from harness.dashboard.wording import OUTCOME_WORDS, query_text, seconds
from harness.rating.guide import LABELS
from harness.session.figures.names import short_names
from harness.session.figures.progress import Progress
from harness.session.figures.trials import TrialProgress, TrialState

LONGEST_NAME = 24


class TrialList(Lines):
    """Follows the trial that is going on, until somebody moves the selection; `end` follows again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Trial before", show=False),
        Binding("down", "move(1)", "Next trial", show=False),
        Binding("pageup", "move(-10)", "Ten back", show=False),
        Binding("pagedown", "move(10)", "Ten on", show=False),
        Binding("home", "move(-1000000)", "First trial", show=False),
        Binding("end", "follow", "Follow the run", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = "Trials"
        self._trials: tuple[TrialProgress, ...] = ()
        self._selected = 0
        self._following = True
        self._names: list[str] = []
        self._names_for = 0

    @property
    def count(self) -> int:
        return len(self._trials)

    @property
    def selected(self) -> TrialProgress | None:
        return self._trials[self._selected] if self._selected < len(self._trials) else None

    @property
    def in_sight(self) -> bool:
        """True when the selected trial is among the rows that are drawn."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        return top <= self._selected < top + height

    def show(self, progress: Progress) -> None:
        if progress.trials == self._trials:
            return
        grown = len(progress.trials) != len(self._trials)
        self._trials = progress.trials
        if grown:
            self._names_for = 0
            self.fit()
        if self._following:
            going = next((n for n, one in enumerate(self._trials) if one.state is TrialState.RUNNING), None)
            last = next((n for n in reversed(range(self.count)) if self._trials[n].outcome is not None), 0)
            self._select(last if going is None else going)
        self.refresh()

    def action_move(self, by: int) -> None:
        self._following = False
        self._select(self._selected + by)

    def action_follow(self) -> None:
        self._following = True
        trials, self._trials = self._trials, ()
        self.show(Progress(trials=trials))

    def _select(self, index: int) -> None:
        self._selected = max(0, min(index, self.count - 1))
        chosen = None if self._following else self.selected
        # Set as content, since a text would be read as markup.
        self.border_title = Content(f"Trials: {plain_text(chosen.trial.id, 80)}" if chosen else "Trials")
        if not self.in_sight:
            # The list may not be laid out yet, and then cannot be scrolled.
            self.call_after_refresh(self._bring_into_sight)
        self.refresh()

    def _bring_into_sight(self) -> None:
        """By what is selected and how high the list is by then; without a height, a resize is to come."""
        height = self.scrollable_content_region.height
        if height and not self.in_sight:
            # Forced: a list whose scroll bar is not drawn yet would refuse, and stay where it is.
            self.scroll_to(y=self._selected - height // 2, animate=False, force=True)

    def on_resize(self) -> None:
        self._select(self._selected)

    def line(self, index: int, width: int) -> Text:
        one = self._trials[index]
        chosen = index == self._selected
        word, colour = self._outcome(one)
        take = one.counting or one.current
        attempts = len(take.attempts) if take else 0
        deciding = take.deciding if take else None
        latency = deciding.verdict.latency if deciding and deciding.verdict else None
        mark = "▶" if one.state is TrialState.RUNNING else "›" if chosen else " "
        digits = max(2, len(str(self.count)))
        text = Text(f"{mark}{one.trial.number:>{digits}} ", style=palette.TEXT if chosen else palette.QUIET)
        # mark and number, outcome 13, attempts 3, latency 7; what is left goes to the name
        names = self._names_within(max(8, min(LONGEST_NAME, width - digits - 26)))
        name_width = max(map(len, names))
        text.append(f"{set_cell_size(names[index], name_width)} ", style=palette.TEXT)
        text.append(f"{word:<12} ", style=colour)
        text.append(f"{f'×{attempts}' if attempts else '':<3}", style=palette.QUIET)
        text.append(f"{seconds(latency.value_s) if latency else '':>7}", style=palette.TEXT)
        response = one.response
        if response is not None and response.judgment is not None and width >= 58:
            given = response.judgment
            text.append(f"  {LABELS[given.category] if given.category else given.status.value}", style=palette.BLUE)
        if width >= 64:
            text.append(f"  {query_text(one.trial)}", style=palette.QUIET)
        if chosen:
            text.pad_right(max(0, width - text.cell_len))
            text.stylize(Style(bgcolor=palette.SELECTED))
        return text

    def _names_within(self, width: int) -> list[str]:
        if width != self._names_for:
            self._names = short_names([one.trial.id for one in self._trials], width)
            self._names_for = width
        return self._names

    @staticmethod
    def _outcome(one: TrialProgress) -> tuple[str, str]:
        if one.state is TrialState.RUNNING:
            return "running", palette.BLUE
        if one.rerun_asked:
            return "once more", palette.BLUE
        if one.outcome is None:
            return "to come", palette.QUIET
        return OUTCOME_WORDS[one.outcome], palette.OUTCOMES[one.outcome]
