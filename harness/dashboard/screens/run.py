"""The running session: state, progress, trials, levels, last response, events and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from harness.base.foreign import plain_text
from harness.dashboard.events import EventLine
from harness.dashboard.messages import CommandWanted, new_id
from harness.dashboard.screens.panels import Confirm, LinePrompt, Sheet
from harness.dashboard.watch import View
from harness.dashboard.widgets.bars import KeyBar, NoticeLine
from harness.dashboard.widgets.response import LastResponse
from harness.dashboard.widgets.run import EventLog, FramePanel, LevelMeters, TotalsPanel, TrialList
from harness.dashboard.wording import screen_text
from harness.model.feed import Abort, Misspoke, Rerun, SetMark, Skip, WriteNote

HELP = screen_text("run.txt")

KEYS = (
    ("p", "pause"),
    ("s", "skip"),
    ("r", "re-run"),
    ("n", "note"),
    ("m", "mark"),
    ("j", "judge"),
    ("a", "abort"),
    ("?", "help"),
    ("^q", "detach"),
)
WAKE_KEYS = (
    ("p", "pause"),
    ("s", "skip"),
    ("r", "re-run"),
    ("n", "note"),
    ("j", "judge"),
    ("w", "wake"),
    ("a", "abort"),
    ("?", "help"),
    ("^q", "detach"),
)
"""The keys on offer if there are wake trials. A mark can be set in any session."""


class RunScreen(Sheet):
    """Every key sends a command, and shows `…` until the engine answers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause or continue"),
        Binding("s", "skip", "Skip the running trial"),
        Binding("r", "rerun", "Run the selected trial again"),
        Binding("n", "note", "Write a note"),
        Binding("m", "mark", "Mark this moment"),
        Binding("a", "abort", "Abort the session"),
        Binding("j", "app.judge", "Judge responses"),
        Binding("w", "app.wake", "Wake results"),
        Binding("x", "misspoke", "The talker misspoke"),
        Binding("o", "app.question", "The operator's question"),
        Binding("question_mark,f1", "app.help", "Help"),
    ]
    help_text = HELP

    def compose(self) -> ComposeResult:
        yield from self.session_lines()
        yield LevelMeters()
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield TrialList(id="trials")
                yield EventLog(id="events")
            with Vertical(id="right"):
                yield LastResponse(id="response")
                yield FramePanel(id="frame")
                yield TotalsPanel(id="totals")
        yield NoticeLine()
        yield KeyBar(KEYS)

    def on_mount(self) -> None:
        self.query_one(TrialList).focus()

    def show(self, view: View) -> None:
        super().show(view)
        if view.meters is not None:
            self.query_one(LevelMeters).show(view.meters)
        self.query_one(TrialList).show(view.progress)
        folder = Path(view.welcome.session_folder) if view.welcome else Path()
        self.query_one(LastResponse).show(view.progress, folder)
        self.set_class(any(trial.trial.expects is not None for trial in view.progress.trials), "-frames")
        self.query_one(FramePanel).show(view.progress)
        self.query_one(TotalsPanel).show(view.progress_for_limits, view.wake, view.criteria)
        self.query_one(KeyBar).show(WAKE_KEYS if view.wake.planned else KEYS)

    def add_events(self, lines: Sequence[EventLine]) -> None:
        self.query_one(EventLog).extend(lines)

    def action_skip(self) -> None:
        self._ask("Skip the running trial. Why?", lambda why: CommandWanted(Skip(new_id(), self._person, why), "skip"))

    def action_rerun(self) -> None:
        selected = self.query_one(TrialList).selected
        if selected is None:
            return
        name = plain_text(selected.trial.id, 30)
        self.post_message(CommandWanted(Rerun(new_id(), self._person, selected.trial.id), f"run {name} again"))

    def action_note(self) -> None:
        running = self._view.progress.running if self._view else None
        self._ask("Note", lambda text: CommandWanted(WriteNote(new_id(), self._person, text, running), "note"))

    def action_mark(self) -> None:
        self._ask(
            "Mark this moment. Label?",
            lambda label: CommandWanted(SetMark(new_id(), self._person, label or "mark"), "mark"),
            required=False,
        )

    def action_misspoke(self) -> None:
        state = self._view.state if self._view else None
        if state is not None and state.trial_id is not None and state.attempt is not None:
            self.post_message(CommandWanted(Misspoke(new_id(), self._person, state.trial_id, state.attempt), "repeat"))

    def action_abort(self) -> None:
        def on_decided(is_confirmed: bool | None) -> None:
            if is_confirmed:
                self.post_message(CommandWanted(Abort(new_id(), self._person), "abort"))

        if self._refuses():
            return
        if self._view is not None and self._view.all_played:
            text = "All trials are played and stored: aborting changes no result. It ends the session, as ctrl+q does."
        else:
            text = (
                "The running attempt is discarded, and the remaining trials are not run. The log keeps everything "
                "else. An aborted session cannot be resumed; one that `harness run stop` has ended can."
            )
        self.app.push_screen(Confirm("Abort this session?", text), on_decided)

    def _refuses(self) -> bool:
        """Whether the engine is not running. If so, a notice says it before the operator writes a text in vain."""
        is_over = self._view is not None and self._view.is_over
        if is_over:
            self.post_notice("refused, the engine is not running")
        return is_over

    def _ask(self, question: str, make_command: Callable[[str], CommandWanted], *, required: bool = True) -> None:
        """Asks for a text, and sends the command that `make_command` makes from it, unless the operator cancels."""
        if self._refuses():
            return

        def on_written(line: str | None) -> None:
            if line is not None:
                self.post_message(make_command(line))

        self.app.push_screen(LinePrompt(question, required=required), on_written)
