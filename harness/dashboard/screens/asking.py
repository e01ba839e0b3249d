"""The engine asks the operator whether the device understood."""

from __future__ import annotations

import uuid
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from harness.dashboard import palette
from harness.dashboard.messages import CommandWanted
from harness.dashboard.screens.sheet import Panel
from harness.dashboard.watch import View
from harness.dashboard.widgets.last_response import transcription
from harness.dashboard.wording import query_text
from harness.model.feed import Answered, AnswerOperator
from harness.model.trial import Trial
from harness.wire.foreign import plain_text

HELP = """\
Did the device understand what was asked?

Only you can tell: this device gives no evidence of its own. Judge what it understood, not how well it answered.

y       yes, it understood the query
n       no; then write what it seems to have understood (may stay empty), and press enter
u       you cannot tell: the trial becomes inconclusive, which is an honest result
escape  look at the screen behind; o brings the question back while it is open

What is written under "our transcription" comes from our own recogniser: a help to your memory, not evidence.
"""


class AskingPanel(Panel):
    """y, n with what it heard, or u. Closes when the engine has the answer, or has stopped waiting."""

    AUTO_FOCUS = ""  # A hidden input would take the keys.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('yes')", "Recognised"),
        Binding("n", "heard", "Not recognised"),
        Binding("u", "answer('unknown')", "Cannot tell"),
        Binding("escape", "leave", "Look behind"),
        Binding("question_mark,f1", "app.help", "Help"),
    ]
    DEFAULT_CSS = """
    AskingPanel > Vertical { border: heavy $warning; }
    AskingPanel Input { display: none; margin-top: 1; }
    AskingPanel.-heard Input { display: block; }
    """
    help_text = HELP

    def __init__(self, trial_id: str, attempt: int, by: str) -> None:
        super().__init__()
        self.asked = (trial_id, attempt)
        self._by = by
        self._sent = False

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text("Did the device understand?", style=f"bold {palette.YELLOW}"), markup=False)
            yield Static(id="about", markup=False)
            yield Static(id="keys", markup=False)
            yield Input(placeholder="what it seems to have understood; enter sends", max_length=300)
            yield Static(id="said", markup=False)

    def on_mount(self) -> None:
        self._write_keys()

    def show(self, view: View) -> None:
        found = view.progress.trial(self.asked[0])
        about = Text("\n")
        if found is not None:
            self._about(about, found.trial)
            response = found.latest_response
            if response is not None and response.attempt == self.asked[1]:
                about.append("it said  ", style=palette.QUIET)
                about.append(transcription(response, 120), style=palette.TEXT)
                about.append("  (our transcription)\n", style=palette.QUIET)
        if view.remaining_s is not None:
            about.append(f"\n{view.remaining_s:.0f} s left to answer\n", style=palette.QUIET)
        self.query_one("#about", Static).update(about)

    def _about(self, about: Text, trial: Trial) -> None:
        about.append("asked    ", style=palette.QUIET)
        about.append(f"“{query_text(trial, 120)}”\n", style=f"bold {palette.TEXT}")
        about.append("of       ", style=palette.QUIET)
        about.append(f"{plain_text(trial.device, 30)}, attempt {self.asked[1]}\n", style=palette.TEXT)

    def _write_keys(self) -> None:
        text = Text()
        for key, what in (("y", "recognised"), ("n", "not recognised"), ("u", "cannot tell"), ("escape", "behind")):
            text.append(key, style=f"bold {palette.BLUE}")
            text.append(f" {what}   ", style=palette.TEXT)
        self.query_one("#keys", Static).update(text)

    def action_heard(self) -> None:
        self.add_class("-heard")
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._send(False, event.value.strip())

    def action_answer(self, word: str) -> None:
        self._send(True if word == "yes" else None, "")

    def action_leave(self) -> None:
        if self.has_class("-heard"):
            self.remove_class("-heard")
            self.set_focus(None)
        else:
            self.dismiss(False)

    def _send(self, recognised: bool | None, heard: str) -> None:
        if self._sent:
            return
        self._sent = True
        trial_id, attempt = self.asked
        command = AnswerOperator(str(uuid.uuid4()), self._by, trial_id, attempt, recognised, heard)
        self.query_one("#said", Static).update(Text("…", style=palette.YELLOW))
        self.post_message(CommandWanted(command, "answer", self._answered))

    def _answered(self, answer: Answered) -> None:
        if not self.is_attached:
            return
        if answer.ok:
            self.dismiss(True)
            return
        self._sent = False
        why = plain_text(answer.why, 120) or "the engine gave no reason"
        self.query_one("#said", Static).update(Text(f"Not taken: {why}", style=palette.RED))
