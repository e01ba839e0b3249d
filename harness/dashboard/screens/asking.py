"""The engine asks the operator whether the device understood, or what it did."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.key_guard import guarded
from harness.dashboard.messages import CommandWanted, new_id
from harness.dashboard.screens.panels import Panel
from harness.dashboard.watch import View
from harness.dashboard.widgets.bars import key_words
from harness.dashboard.widgets.response import transcription
from harness.dashboard.wording import query_text
from harness.model.effect import EffectWord
from harness.model.feed import Answered, AnswerEffect, AnswerOperator
from harness.model.record import Question
from harness.model.trial import Trial

HELP = """\
Did the device understand what was asked?

Only you can tell: this device gives no evidence of its own. Judge what it understood, not how well it answered.

y       yes, it understood the query
n       no; then write what it seems to have understood (may stay empty), and press enter
u       you cannot tell: the trial becomes inconclusive, which is an honest result
escape  look at the screen behind; o brings the question back while it is open

What is written under "our transcription" comes from our own recogniser: a help to your memory, not evidence.
"""
Asked = tuple[str, int, Question]
"""Trial, attempt, and what about."""
EFFECT_HELP = """\
Did it do what was asked?

Look at the device, not at what it said: odd words and the right thing done are right, fine words and nothing done are
wrong. Raters see your answer beside the response, and wait for it.

r       right, it did what was wanted
p       partly; then write what it did (may stay empty), and press enter
w       wrong, or nothing at all; then what it did, and enter
c       you cannot tell: the response is judged without it
escape  look at the screen behind; o brings the question back while it is open

A question that nobody answers in time stays open: harness effects asks it again.
"""


class AskingPanel(Panel):
    """y, n with what it heard, or u. Closes when the engine has the answer, or has stopped waiting."""

    about = Question.RECOGNITION
    title_text: ClassVar[str] = "Did the device understand?"
    answers: ClassVar[tuple[tuple[str, str], ...]] = (
        ("y", "recognised"), ("n", "not recognised"), ("u", "cannot tell"), ("escape", "behind"),
    )  # fmt: skip
    hint: ClassVar[str] = "what it seems to have understood; enter sends"

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
            yield Static(Text(self.title_text, style=f"bold {palette.YELLOW}"), markup=False)
            yield Static(id="about", markup=False)
            yield Static(id="keys", markup=False)
            yield Input(placeholder=self.hint, max_length=300)
            yield Static(id="said", markup=False)

    @property
    def question(self) -> Asked:
        """What this panel asks."""
        return (*self.asked, self.about)

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
        self.query_one("#keys", Static).update(key_words(self.answers, "   "))

    def on_key(self, event: events.Key) -> None:
        """A key that was meant for what lay here before is no answer."""
        if event.key in dict(self.answers) and not guarded(self).counts(event, lambda _: None, self._tell):
            event.stop()
            event.prevent_default()

    def _tell(self, said: str) -> None:
        self.query_one("#said", Static).update(Text(said, style=palette.YELLOW))

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
        self._answer(AnswerOperator(new_id(), self._by, *self.asked, recognised, heard))

    def _answer(self, command: AnswerOperator | AnswerEffect) -> None:
        if self._sent:
            return
        self._sent = True
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


class EffectPanel(AskingPanel, inherit_bindings=False):
    """r, p or w with what it did, or c: what became of the effect."""

    about = Question.EFFECT
    title_text = "Did it do what was asked?"
    answers = (("r", "right"), ("p", "partly"), ("w", "wrong"), ("c", "cannot tell"), ("escape", "behind"))
    hint = "what it did instead; enter sends"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "effect('right')", "Right"),
        Binding("p", "seen('partial')", "Partly"),
        Binding("w", "seen('wrong')", "Wrong"),
        Binding("c", "effect('unknown')", "Cannot tell"),
        Binding("escape", "leave", "Look behind"),
        Binding("question_mark,f1", "app.help", "Help"),
    ]
    help_text = EFFECT_HELP

    def __init__(self, trial_id: str, attempt: int, by: str) -> None:
        super().__init__(trial_id, attempt, by)
        self._word = EffectWord.UNKNOWN

    def _about(self, about: Text, trial: Trial) -> None:
        if trial.effect is not None:
            for name, text in (("wanted", trial.effect.wanted), ("question", trial.effect.question)):
                about.append(f"{name:<9}", style=palette.QUIET)
                about.append(f"{plain_text(text, 160)}\n", style=f"bold {palette.TEXT}")
        super()._about(about, trial)

    def action_effect(self, word: str) -> None:
        self._word = EffectWord(word)
        self._say("")

    def action_seen(self, word: str) -> None:
        self._word = EffectWord(word)
        self.action_heard()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._say(event.value.strip())

    def _say(self, detail: str) -> None:
        self._answer(AnswerEffect(new_id(), self._by, *self.asked, self._word, detail))
