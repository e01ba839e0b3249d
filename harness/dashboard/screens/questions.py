"""The engine asks the operator whether the device understood, or what it did."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from harness.base.foreign import plain_text
from harness.base.user_text import checked_text
from harness.dashboard import palette
from harness.dashboard.key_guard import guarded_app
from harness.dashboard.messages import CommandWanted, new_id
from harness.dashboard.screens.panels import Panel
from harness.dashboard.watch import View
from harness.dashboard.widgets.bars import LargeText, TextBlock, key_words
from harness.dashboard.widgets.response import transcript_text
from harness.dashboard.widgets.verbatim_input import VerbatimInput
from harness.dashboard.wording import query_text, screen_text
from harness.model.effect import EffectOutcome
from harness.model.errors import InputError
from harness.model.feed import Answered, AnswerEffect, AnswerOperator, Misspoke
from harness.model.frozen import frozen
from harness.model.numbers import fixed
from harness.model.record import Question
from harness.model.trial import Trial

HELP = screen_text("asking.txt")
EFFECT_HELP = screen_text("asking_effect.txt")
SPEAKING_HELP = screen_text("speaking.txt")
QuestionKey = tuple[str, int, Question]
"""Identifies a question: trial, attempt, and subject."""


@frozen
class _Answer:
    """An answer to a question.

    - value: for the engine.
    - wants_detail: whether the operator then adds what they saw.
    """

    text: str
    value: str
    wants_detail: bool = False


@frozen
class _QuestionText:
    """The texts of a kind of question.

    - title: the question.
    - answers: the answers by their keys.
    - hint: what to write as a detail.
    - help: the help of the panel.
    """

    title: str
    answers: dict[str, _Answer]
    hint: str
    help: str


QUESTIONS = {
    Question.RECOGNITION: _QuestionText(
        "Did the device understand?",
        {
            "y": _Answer("recognised", "yes"),
            "n": _Answer("not recognised", "no", wants_detail=True),
            "u": _Answer("cannot tell", "unknown"),
        },
        "what it seems to have understood; press enter to send",
        HELP,
    ),
    Question.EFFECT: _QuestionText(
        "Did it do what was asked?",
        {
            "r": _Answer("right", EffectOutcome.RIGHT),
            "p": _Answer("partly", EffectOutcome.PARTIAL, wants_detail=True),
            "w": _Answer("wrong", EffectOutcome.WRONG, wants_detail=True),
            "c": _Answer("cannot tell", EffectOutcome.UNKNOWN),
        },
        "what it did instead; press enter to send",
        EFFECT_HELP,
    ),
}


class QuestionPanel(Panel):
    """A question of the engine at the bench. operator: who answers it."""

    def __init__(self, question: QuestionKey, operator: str) -> None:
        super().__init__()
        self.question, self._operator = question, operator

    def action_leave(self) -> None:
        self.dismiss(False)


class SpeakingPanel(QuestionPanel):
    """What a person at the bench is asked to say, in letters that are read from 2 m."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "misspoke", "I misspoke"),
        Binding("escape", "leave", "Look behind"),
        Binding("question_mark,f1", "app.help", "Help"),
    ]
    DEFAULT_CSS = """
    SpeakingPanel > Vertical { width: 100%; height: 100%; max-width: 100%; max-height: 100%; border: heavy $warning; }
    SpeakingPanel LargeText { height: 1fr; }
    """
    help_text = SPEAKING_HELP

    def compose(self) -> ComposeResult:
        with Vertical():
            yield TextBlock(id="about")
            yield LargeText()
            yield Static(key_words((("x", "I misspoke"), ("escape", "look behind")), "   "), markup=False)

    def show(self, view: View) -> None:
        prompt = view.state.prompt if view.state is not None else None
        if prompt is None:
            return
        about = Text(plain_text(prompt.talker, 40), style=f"bold {palette.TEXT}")
        if prompt.again:
            about.append(f"   {plain_text(prompt.again, 80)}", style=f"bold {palette.YELLOW}")
        if view.remaining_s is not None:
            about.append(f"   {fixed(view.remaining_s, 0)} s", style=palette.QUIET)
        self.query_one("#about", TextBlock).write(about)
        self.query_one(LargeText).show((prompt.stand, f"{prompt.say}:", prompt.text))

    def action_misspoke(self) -> None:
        trial_id, attempt, _ = self.question
        self.post_message(CommandWanted(Misspoke(new_id(), self._operator, trial_id, attempt), "repeat"))


class AskingPanel(QuestionPanel):
    """A question that a key answers; some keys open an input first. Closes when the engine has the answer, or stops
    waiting for it."""

    AUTO_FOCUS = ""  # A hidden input would receive the keys.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Look behind"),
        Binding("question_mark,f1", "app.help", "Help"),
    ]
    DEFAULT_CSS = """
    AskingPanel > Vertical { border: heavy $warning; }
    AskingPanel Input { display: none; margin-top: 1; }
    AskingPanel.-detail Input { display: block; }
    """

    def __init__(self, question: QuestionKey, operator: str) -> None:
        super().__init__(question, operator)
        _, _, subject = question
        self._wording = QUESTIONS[subject]
        self.help_text = self._wording.help
        self._answer_value = ""
        self._is_sent = False

    def compose(self) -> ComposeResult:
        keys = [(key, answer.text) for key, answer in self._wording.answers.items()]
        with Vertical():
            yield Static(Text(self._wording.title, style=f"bold {palette.YELLOW}"), markup=False)
            yield TextBlock(id="about")
            yield Static(key_words((*keys, ("escape", "look behind")), "   "), id="keys", markup=False)
            yield VerbatimInput(placeholder=self._wording.hint)
            yield Static(id="said", markup=False)

    def show(self, view: View) -> None:
        trial_id, attempt, _ = self.question
        trial = view.progress.trial(trial_id)
        about = Text("\n")
        if trial is not None:
            self._add_trial(about, trial.trial)
            response = trial.latest_response
            if response is not None and response.attempt == attempt:
                about.append("it said  ", style=palette.QUIET)
                about.append(transcript_text(response, 120), style=palette.TEXT)
                about.append("  (our transcription)\n", style=palette.QUIET)
        if view.remaining_s is not None:
            about.append(f"\n{fixed(view.remaining_s, 0)} s left to answer\n", style=palette.QUIET)
        self.query_one("#about", TextBlock).write(about)

    def _add_trial(self, about: Text, trial: Trial) -> None:
        _, attempt, question = self.question
        if question is Question.EFFECT and trial.effect is not None:
            for name, text in (("wanted", trial.effect.wanted), ("question", trial.effect.question)):
                about.append(f"{name:<9}", style=palette.QUIET)
                about.append(f"{plain_text(text, 160)}\n", style=f"bold {palette.TEXT}")
        about.append_text(
            Text.assemble(
                ("asked    ", palette.QUIET),
                (f"“{query_text(trial, 120)}”\n", f"bold {palette.TEXT}"),
                ("of       ", palette.QUIET),
                (f"{plain_text(trial.device, 30)}, attempt {attempt}\n", palette.TEXT),
            )
        )

    def on_key(self, event: events.Key) -> None:
        """Handles the keys of answers, and escape. Ignores a key that was meant for the previous screen."""
        answer = self._wording.answers.get(event.key)
        if answer is None and event.key != "escape":
            return
        is_accepted = guarded_app(self).accepts_key(event, lambda _: None, lambda message: self._set_notice(message))
        if is_accepted and answer is None:
            return  # the binding of escape acts
        event.stop()
        event.prevent_default()
        if is_accepted and answer is not None:
            self._answer_value = answer.value
            if answer.wants_detail:
                self.add_class("-detail")
                self.query_one(VerbatimInput).focus()
            else:
                self._send("")

    def _set_notice(self, message: str, colour: str = palette.YELLOW) -> None:
        self.query_one("#said", Static).update(Text(message, style=colour))

    def action_send(self) -> None:
        try:
            self._send(checked_text(self.query_one(VerbatimInput).value, "the answer"))
        except InputError as error:
            self._set_notice(f"Not accepted: {error}.", palette.RED)

    def action_leave(self) -> None:
        if self.has_class("-detail"):
            self.remove_class("-detail")
            self.set_focus(None)
        else:
            super().action_leave()

    def _send(self, detail: str) -> None:
        """Sends the chosen answer, once."""
        if self._is_sent:
            return
        trial_id, attempt, question = self.question
        command: AnswerEffect | AnswerOperator
        if question is Question.EFFECT:
            command = AnswerEffect(
                new_id(), self._operator, trial_id, attempt, EffectOutcome(self._answer_value), detail
            )
        else:
            recognised = {"yes": True, "no": False}.get(self._answer_value)
            command = AnswerOperator(new_id(), self._operator, trial_id, attempt, recognised, detail)
        self._is_sent = True
        self._set_notice("…")
        self.post_message(CommandWanted(command, "answer", self._on_answer))

    def _on_answer(self, answer: Answered) -> None:
        if not self.is_attached:
            return
        if answer.ok:
            self.dismiss(True)
            return
        self._is_sent = False
        self._set_notice(f"Not accepted: {plain_text(answer.why, 120) or 'the engine gave no reason'}", palette.RED)
