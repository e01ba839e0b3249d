"""The dashboard, a client of the engine that may start and end at any time. Nothing is timed here."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from harness.base.foreign import plain_text, shell_word
from harness.base.places import SessionFolder
from harness.dashboard import palette
from harness.dashboard.key_guard import GuardedApp
from harness.dashboard.messages import CommandWanted, NoticeWanted
from harness.dashboard.screens.panels import HelpPanel, Panel, Sheet
from harness.dashboard.screens.questions import AskingPanel, QuestionKey, QuestionPanel, SpeakingPanel
from harness.dashboard.screens.rating import RatingScreen
from harness.dashboard.screens.run import RunScreen
from harness.dashboard.screens.wake import REVIEW_KEYS, WakeScreen
from harness.dashboard.watch import View, Watch
from harness.model.errors import EngineError, LogError
from harness.model.feed import Answered, Hello, Message, StateWord
from harness.model.record import Question
from harness.session.engine.feed import EngineClient
from harness.session.log.reader import later_rows
from harness.wake.reports.figures_text import REVIEW_WORDS

Connect = Callable[[Hello, Callable[[Message], None], Callable[[str], None]], EngineClient]
"""Connects to the engine: takes hello, on_message and on_closed. The connection's thread calls the last two."""


REDRAW_S = 0.2
ANSWER_REDRAW_S = 0.05
"""Interval of redraws while the engine's answer to a key is awaited."""
GONE_EXIT_CODE = 3  # As for any fault.
GOODBYE_TIMEOUT_S = 15.0
"""Time that the engine has to end a session in which every trial is played, before the dashboard leaves anyway."""


class Dashboard(GuardedApp):
    """The dashboard's app. It draws a new view five times a second, and exits with the exit status of the command."""

    CSS_PATH = Path(__file__).with_name("dashboard.tcss")
    TITLE = "voice-harness"
    STOPPED = "Suspended; the session continues. Return with: fg"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "detach", "Detach", priority=True),
        Binding("f1", "help", "Help", show=False),
    ]

    def __init__(self, connect: Connect, rater: str, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._connect = connect
        self._rater = rater
        self._now = now
        self._client: EngineClient | None = None
        self.watch_ = Watch(now)  # `watch` is a method of Textual's App
        self._run = RunScreen(rater)
        self._answered_question: QuestionKey | None = None
        self._opened_question: QuestionKey | None = None
        """The question whose panel was opened last. It may be closed, without an answer."""
        self._leave_deadline_s: float | None = None
        self._has_opened_wake = False
        self._was_stopped = False

    def on_mount(self) -> None:
        self.register_theme(palette.THEME)
        self.theme = palette.THEME.name
        self.push_screen(self._run)
        try:
            self._client = self._connect_to_engine()
        except EngineError as error:
            self.watch_.note_disconnect(str(error))
        self.set_interval(REDRAW_S, self.redraw)
        self.set_interval(ANSWER_REDRAW_S, self._redraw_if_awaiting_answer)

    def _connect_to_engine(self) -> EngineClient:
        hello = Hello(client="dashboard", since_seq=self.watch_.last_seq, attended=True, meters=True)
        return self._connect(hello, self.watch_.receive, self.watch_.note_disconnect)

    def action_suspend_process(self) -> None:
        super().action_suspend_process()
        self._was_stopped = True

    def on_unmount(self) -> None:
        if self._client is not None:
            self._client.close()

    def redraw(self) -> None:
        """Handles new messages, and shows the present view on all screens."""
        self.watch_.handle_messages()
        if self._was_stopped and self.watch_.view().gone_reason is not None:
            # Connects again after Ctrl-Z: an engine drops a client that reads nothing for long.
            self._was_stopped = False
            with suppress(EngineError):  # the engine has ended meanwhile, as the screen says already
                self._client = self._connect_to_engine()
                self.watch_.note_reconnect()
        view = self.watch_.view()
        # While the app shuts down, screens lose their widgets one by one.
        if not self.is_running or not self._run.is_attached or not self._run.is_mounted:
            return
        self._run.add_events(self.watch_.take_new_events())
        for screen in self.screen_stack:
            if isinstance(screen, Sheet | Panel) and screen.is_mounted and screen.is_running:
                screen.show(view)
        self._open_wake_screen(view)
        self._follow_question(view)
        if self._leave_deadline_s is not None and (self.watch_.is_over or self._now() > self._leave_deadline_s):
            self._leave_with_exit_code(view)

    def _redraw_if_awaiting_answer(self) -> None:
        """Shows the effect of a key before the next regular redraw."""
        if self.watch_.is_awaiting_answer:
            self.redraw()

    def _open_wake_screen(self, view: View) -> None:
        """Opens the wake screen once, if the session has no queries."""
        trials = view.progress.trials
        if self._has_opened_wake or not trials:
            return
        self._has_opened_wake = True
        if all(trial.trial.listening is not None for trial in trials) and self.screen is self._run:
            self.action_wake()

    def _follow_question(self, view: View) -> None:
        """Opens the question when the engine asks, and closes it when the engine stops waiting."""
        question = self._awaited_question(view)
        open_panel = next((screen for screen in self.screen_stack if isinstance(screen, QuestionPanel)), None)
        if open_panel is not None and open_panel.question != question and open_panel is self.screen:
            open_panel.dismiss(False)
            return
        # An open input stays; the question comes after it.
        has_room = open_panel is None and not isinstance(self.screen, Panel)
        if question is None:
            self._opened_question = self._answered_question = None
        elif has_room and question != self._opened_question:
            self._open_question(question)

    def _awaited_question(self, view: View) -> QuestionKey | None:
        """The question whose answer the engine waits for; None if it waits for none."""
        state = view.state
        if self.watch_.is_over or state is None or state.word is not StateWord.ASKING:
            return None
        if state.trial_id is None or state.attempt is None:
            return None
        return state.trial_id, state.attempt, state.asks or Question.RECOGNITION

    def _open_question(self, question: QuestionKey) -> None:
        def on_closed(is_answered: bool | None) -> None:
            if is_answered:
                self._answered_question = question

        self._opened_question = question
        _, _, subject = question
        make_panel = SpeakingPanel if subject is Question.SPEECH else AskingPanel
        panel = make_panel(question, self._rater)
        self.push_screen(panel, on_closed)
        self.call_after_refresh(lambda: panel.show(self.watch_.view()) if panel.is_mounted else None)

    def action_question(self) -> None:
        question = self._awaited_question(self.watch_.view())
        if question is None or question == self._answered_question:
            self.watch_.set_notice("there is no open question", False)
        elif not isinstance(self.screen, Panel):
            self._open_question(question)

    def on_command_wanted(self, message: CommandWanted) -> None:
        """Sends a command. It is refused at once when the engine is gone."""
        if self._client is None or self.watch_.is_over:
            self.watch_.set_notice(f"{message.label}: refused, the engine is not running", False)
            if message.then is not None:
                message.then(Answered("", False, "the engine is not running"))
            return
        self.watch_.expect_answer(message.command, message.label, message.then)
        try:
            self._client.send(message.command)
        except EngineError as error:
            self.watch_.note_lost_engine(str(error))

    def on_notice_wanted(self, message: NoticeWanted) -> None:
        self.watch_.set_notice(message.text, message.ok)

    def action_judge(self) -> None:
        if any(isinstance(screen, RatingScreen) for screen in self.screen_stack):
            return
        welcome = self.watch_.view().welcome
        if welcome is not None and SessionFolder(Path(welcome.session_folder)).judgments.is_file():
            try:
                self.watch_.add_later_judgments(later_rows(Path(welcome.session_folder)))
            except LogError as error:
                problem = f"judgments from other programs cannot be read: {error.what}"
                self.watch_.set_notice(plain_text(problem), False)
        self.push_screen(RatingScreen(self._rater, self._now))

    def action_wake(self) -> None:
        view = self.watch_.view()
        if not view.wake.planned:
            self.watch_.set_notice("this session has no wake, command or ambient trials", False)
        elif not any(isinstance(open_screen, WakeScreen) for open_screen in self.screen_stack):
            screen = WakeScreen(self._rater)
            self.push_screen(screen)
            self.call_after_refresh(lambda: screen.show(self.watch_.view()) if screen.is_mounted else None)

    def action_close_screen(self) -> None:
        if self.screen is not self._run:
            self.pop_screen()

    def action_help(self) -> None:
        if isinstance(self.screen, HelpPanel):
            return
        if isinstance(self.screen, Sheet | Panel) and self.screen.help_text:
            self.push_screen(HelpPanel(self.screen.help_text))

    def action_detach(self) -> None:
        view = self.watch_.view()
        if not self.watch_.is_over and view.all_played and self._leave_deadline_s is None and self._client is not None:
            # Every trial is played. The engine stays only for this client, and its exit status becomes the command's.
            self._leave_deadline_s = self._now() + GOODBYE_TIMEOUT_S
            self.watch_.set_notice("ending the session … (ctrl+q again leaves immediately)", None)
            with suppress(EngineError):
                self._client.send(Hello(client="dashboard", since_seq=0, attended=False))
            return
        self._leave_with_exit_code(view)

    def _leave_with_exit_code(self, view: View) -> None:
        if view.goodbye is not None:
            self.leave(view.goodbye.exit_code)
        else:
            self.leave(GONE_EXIT_CODE if self.watch_.is_over else 0)

    def leave(self, exit_code: int) -> None:
        """Ends the dashboard, never the engine. Workers end first: posting to a closed app raises."""
        self.workers.cancel_all()
        self.exit(exit_code)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        run = self._run
        pause = ("Pause or continue", "Pauses after the attempt that is running (p)", run.action_pause)
        commands: list[tuple[str, str, Callable[[], object]]] = []
        if screen is run:
            commands += [
                pause,
                ("Skip", "Skips the running trial, with a reason (s)", run.action_skip),
                ("Re-run", "Runs the selected trial once more (r)", run.action_rerun),
                ("Note", "Writes a note into the log (n)", run.action_note),
                ("Mark", "Marks this moment (m)", run.action_mark),
                ("Wake results", "Opens the wake screen (w)", self.action_wake),
                ("Judge responses", "Opens the rating screen (j)", self.action_judge),
                ("Operator's question", "Shows the operator's question (o)", self.action_question),
                ("Abort", "Aborts the session, after asking for confirmation (a)", run.action_abort),
            ]
        if isinstance(screen, RatingScreen):
            commands += [
                ("Undo", "Withdraws the last judgment (u)", screen.action_undo),
                ("Replay", "Plays the response on the monitor (space)", screen.action_replay),
                ("Skip response", "Leaves the response for later (x)", screen.action_skip),
                ("Flag response", "Puts the response aside (f)", screen.action_flag),
                ("Back to the run", "Closes the rating screen (escape)", self.action_close_screen),
            ]
        if isinstance(screen, WakeScreen):
            commands.append(("Replay", "Plays the sound around the event (enter)", screen.action_replay))
            for key, verdict in REVIEW_KEYS:
                text = REVIEW_WORDS[verdict]
                review = partial(screen.action_review, verdict.value)
                commands.append((text.capitalize(), f"Marks the event as a {text} ({key})", review))
            commands += [
                ("Take back", "Withdraws a review (u)", screen.action_take_back),
                pause,
                ("Back to the run", "Closes the wake screen (w)", self.action_close_screen),
            ]
        commands += [
            ("Help", "Lists the keys of this screen (?)", self.action_help),
            ("Detach", "Leaves the session running (ctrl+q)", self.action_detach),
        ]
        return [SystemCommand(*command) for command in commands]


def run_dashboard(socket_path: Path, folder: Path, rater: str) -> int:
    """Shows the session behind a socket until the operator leaves. Returns an exit status.

    0 when detached, the engine's status when the session ended, 3 when the engine was lost.
    """
    app = Dashboard(partial(EngineClient, socket_path), rater)
    status = app.run()
    folder_text = shell_word(folder)
    view = app.watch_.view()
    if view.gone_reason is not None:
        sys.stdout.write(f"The engine has ended ({view.gone_reason}). Resume with: harness run resume {folder_text}\n")
    elif view.goodbye is not None:
        sys.stdout.write(f"The session has ended. See its results: harness report show {folder_text}\n")
    else:
        sys.stdout.write(f"Detached; the session continues. Return with: harness run attach {folder_text}\n")
    return GONE_EXIT_CODE if status is None else status
