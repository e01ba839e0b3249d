"""Judging first responses at the bench."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from harness.base.foreign import plain_text
from harness.base.presence import Presence
from harness.base.user_text import name_key
from harness.dashboard import palette
from harness.dashboard.key_guard import guarded_app
from harness.dashboard.messages import CommandWanted, new_id
from harness.dashboard.rating_words import DIGIT_ROW, NEEDS_SHIFT, AzertyDigitCheck, key_name
from harness.dashboard.screens.panels import ChoicePanel, LinePrompt, Sheet
from harness.dashboard.watch import View
from harness.dashboard.widgets.bars import GoneBanner, KeyBar, NoticeLine, StateStrip, TextLine, TextWidget, ValueWidget
from harness.dashboard.widgets.response import ClipShape, transcript_text
from harness.dashboard.wording import query_text
from harness.model.feed import Answered, Judge
from harness.model.judgment import CATEGORY_LETTERS, Category, Judgment, JudgmentStatus
from harness.model.numbers import seconds
from harness.rating.guide import CUT_OFF, FLAG_TEXTS, GUIDE, KEYS, LABELS, RULES
from harness.rating.items import Subject, new_row, withdrawal
from harness.session.figures.progress import Progress
from harness.session.figures.trials import FirstResponse
from harness.statistics.text import measured


def own_judgment(item: FirstResponse, rater: str) -> Judgment | None:
    """The rater's latest judgment of a response; None without one."""
    own_judgments = [judgment for judgment in item.judgments if name_key(judgment.rater) == name_key(rater)]
    return own_judgments[-1] if own_judgments else None


def responses_to_judge(progress: Progress, rater: str, own_rows: Sequence[Judgment] = ()) -> tuple[FirstResponse, ...]:
    """Responses that this rater has not judged, in the order of playing; skipped ones last, as they were skipped.

    own_rows: the rater's rows of this sitting, oldest first.
    """
    positions = {judgment.id: number for number, judgment in enumerate(own_rows, start=1)}
    unjudged: list[FirstResponse] = []
    postponed: list[tuple[int, FirstResponse]] = []
    for trial in progress.trials:
        item = trial.response
        if item is None:
            continue
        judgment = own_judgment(item, rater)
        if judgment is None:
            unjudged.append(item)
        elif judgment.status in (JudgmentStatus.SKIPPED, JudgmentStatus.HELD):
            postponed.append((positions.get(judgment.id, 0), item))
    return (*unjudged, *(item for _, item in sorted(postponed, key=itemgetter(0))))


def is_in_log(progress: Progress, judgment: Judgment) -> bool:
    """Whether the rows so far show the effect of a judgment."""
    trial = progress.trial(judgment.trial_id)
    if trial is None:
        return True
    ids = {row.id for row in trial.judgments}
    return judgment.replaces not in ids if judgment.status is JudgmentStatus.WITHDRAWN else judgment.id in ids


LETTERS = {**CATEGORY_LETTERS, Category.SLOT_REQUEST: "t", Category.CORRECT_REJECTION: "e"}
"""The letters of the categories, as `CATEGORY_LETTERS`, except that o and j have another use during a run."""
BY_LETTER = {letter: category for category, letter in LETTERS.items()}


class CategoryKeys(TextWidget):
    """A line for each category: key, name, and what it means."""

    DEFAULT_CSS = f"CategoryKeys {{ height: {len(KEYS)}; padding: 0 1; }}"

    def paint(self, width: int, height: int) -> Text:
        name_width = max(len(name) for name in LABELS.values())
        return Text("\n").join(
            Text.assemble(
                (f"{key} ", f"bold {palette.BLUE}"),
                (f"{LETTERS[category]} ", palette.BLUE),
                (f"{LABELS[category]:<{name_width}}  ", f"bold {palette.TEXT}"),
                (GUIDE[category].short, palette.QUIET),
            )
            for key, category in KEYS
        )


class ItemText(ValueWidget[tuple[FirstResponse | None, int, str]]):
    """The query, the times and the comment, cut to four lines. The sound is what raters judge.

    Its value: the response (None without one), the number of all responses, and the comment.
    """

    DEFAULT_CSS = "ItemText { height: 4; padding: 0 1; }"

    def paint(self, width: int, height: int) -> Text:
        item, responses, comment = self.shown or (None, 0, "")
        if item is None:
            if responses:
                return Text("Every response is judged. New ones appear here automatically.", style=palette.GREEN)
            return Text("No response to judge yet. They appear here automatically.", style=palette.QUIET)
        times = f"attempt {item.attempt} · after {measured(item.latency)} · {seconds(item.clip.duration_s)} long"
        return Text.assemble(
            "asked  ",
            (f"“{query_text(item.trial)}”\n", f"bold {palette.TEXT}"),
            ("said   ", palette.QUIET),
            (transcript_text(item), palette.TEXT),
            ("  (our transcription)\n", palette.QUIET),
            ("       ", palette.QUIET),
            (times, palette.QUIET),
            (f" · {CUT_OFF}" if item.truncated else "", palette.ORANGE),
            (" · a core capability" if item.trial.core_capability else "", palette.YELLOW),
            ("\nnote   " if comment else "\n", palette.QUIET),
            (plain_text(comment), palette.YELLOW),
            style=palette.QUIET,
        )


FLAGS = tuple(FLAG_TEXTS.items())

KEY_BAR = (
    ("1-9 0 -", "judge"),
    ("space", "play"),
    ("u", "undo"),
    ("x", "skip"),
    ("f", "flag"),
    ("c", "note"),
    ("?", "guide"),
    ("esc", "back"),
)

HELP = "\n".join(
    [
        "Judging first responses",
        "",
        "A category key saves the judgment. Nothing is ever overwritten.",
        "u withdraws your last judgment and shows the response again.",
        "x leaves a response for later, f puts it aside with a reason, c adds a comment to the next key.",
        "",
        *(f"{key} {LETTERS[category]}  {LABELS[category]}: {GUIDE[category].test}" for key, category in KEYS),
        "",
        "The letters do the same as the digits, which need Shift on some keyboards.",
        "",
        *(f"· {rule}" for rule in RULES),
    ]
)


class RatingScreen(Sheet):
    """One response at a time. A judgment is in the log before the next one shows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "replay", "Replay"),
        Binding("o", "app.question", "The operator's question"),
        Binding("question_mark,f1", "app.help", "Guide"),
        Binding("escape,j", "app.close_screen", "Back"),
    ]
    help_text = HELP

    def __init__(self, rater: str, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__(rater)
        self._item: FirstResponse | None = None
        self._item_id_to_show: tuple[str, str] | None = None
        """The response that stays or comes back on screen, if it is still to be judged."""
        self._presence = Presence(now_s)
        self._plays = 0
        self._comment = ""
        self._pending_judgment: Judgment | None = None
        """A judgment that was sent, until its effect is in the view. Meanwhile, keys write nothing."""
        self._is_committed = False
        """Whether the engine has committed the pending judgment."""
        self._given_judgments: list[Judgment] = []
        self._is_undo_due = False
        """Whether undo was pressed while a judgment was pending."""
        self._azerty_check = AzertyDigitCheck(dict(KEYS).get)

    def compose(self) -> ComposeResult:
        yield StateStrip(id="strip")
        yield GoneBanner()
        yield TextLine(id="rated")
        yield ItemText()
        yield ClipShape(id="wave")
        yield CategoryKeys()
        yield NoticeLine()
        yield KeyBar(KEY_BAR)

    def show(self, view: View) -> None:
        super().show(view)
        if (
            self._pending_judgment is not None
            and self._is_committed
            and is_in_log(view.progress, self._pending_judgment)
        ):
            self._pending_judgment, self._is_committed = None, False
        if self._pending_judgment is None:
            self._show_next(view)
            if self._is_undo_due:
                self._is_undo_due = False
                self.action_undo()
        self._write_progress(view)

    def _show_next(self, view: View) -> None:
        waiting = responses_to_judge(view.progress, self._person, self._given_judgments)
        current = next((response for response in waiting if _item_id(response) == self._item_id_to_show), None)
        item = current or (waiting[0] if waiting else None)
        if _item_id(item) != _item_id(self._item):
            self._plays, self._comment = 0, ""
            self._presence.begin()
        guarded_app(self).set_shown_item(self, (RatingScreen, _item_id(item)))
        if item != self._item:
            self._item, self._item_id_to_show = item, _item_id(item)
            folder = Path(view.welcome.session_folder) if view.welcome else Path()
            self.query_one(ClipShape).show(item.clip if item else None, folder)
        self.query_one(ItemText).show((self._item, view.progress.totals.to_judge, self._comment))

    def _write_progress(self, view: View) -> None:
        waiting = len(responses_to_judge(view.progress, self._person))
        total = view.progress.totals.to_judge
        text = Text.assemble(
            ("Judging ", f"bold {palette.TEXT}"),
            (f"{total - waiting} of {total} done, {waiting} left", palette.TEXT),
            (f"   rater {self._person}", palette.QUIET),
            ("" if self._pending_judgment is None else "   saving …", palette.YELLOW),
        )
        self.query_one("#rated", TextLine).write(text)

    def _judge(
        self, label: str, status: JudgmentStatus, category: Category | None = None, flags: tuple[str, ...] = ()
    ) -> None:
        """Saves a row, unless there is nothing to judge or the last key is not saved yet."""
        if self._item is None or self._pending_judgment is not None:
            return
        earlier = own_judgment(self._item, self._person)
        row = new_row(
            Subject(self._item.trial.id, self._item.attempt, self._item.clip.sha256, take=self._item.take),
            self._person,
            status,
            category,
            replaces=earlier.id if earlier else None,
            comment=self._comment,
            plays=self._plays,
            time_to_answer_s=self._presence.time_to_answer_s,
            flags=flags,
        )
        self._save(row, label)

    def on_key(self, event: events.Key) -> None:
        """Handles the labelling keys. A binding would act later, when another response may be on screen."""
        self._presence.note_activity()
        key = key_name(event)
        category = dict(KEYS).get(key) or BY_LETTER.get(key)
        if category is None and key not in ("u", "x", "f", "c"):
            if key in DIGIT_ROW:
                self.post_notice(NEEDS_SHIFT)
            return
        event.stop()
        event.prevent_default()
        if not guarded_app(self).accepts_key(event, self.on_key, self.post_notice):
            return
        if category is not None:
            question = self._azerty_check.question(key, category)
            if question:
                self.post_notice(question)
            elif self._pending_judgment is not None:
                self.app.bell()  # the next response is not on screen yet
            else:
                self._judge(f"saved as “{LABELS[category]}”", JudgmentStatus.SUBMITTED, category)
        else:
            actions = {"x": self.action_skip, "f": self.action_flag, "c": self.action_comment, "u": self.action_undo}
            actions[key]()

    def action_skip(self) -> None:
        self._judge("left for later", JudgmentStatus.SKIPPED)

    def action_flag(self) -> None:
        item_id = _item_id(self._item)

        def on_chosen(index: int | None) -> None:
            if index is None or self._item is None or self._pending_judgment is not None:
                return
            if _item_id(self._item) == item_id:
                flag, _ = FLAGS[index]
                self._judge("put aside", JudgmentStatus.FLAGGED, flags=(flag.value,))
            else:
                self.post_notice("that response is no longer on screen; nothing was changed")

        if item_id is not None:
            self.app.push_screen(
                ChoicePanel("Put this response aside. Why?", tuple(text for _, text in FLAGS)), on_chosen
            )

    def action_comment(self) -> None:
        item_id = _item_id(self._item)

        def on_written(line: str | None) -> None:
            if line is not None and _item_id(self._item) == item_id:
                self._comment = line
                if self._view is not None:
                    self.show(self._view)

        if item_id is not None:
            prompt = LinePrompt("Comment, saved with the next judgment", required=False, line=self._comment)
            self.app.push_screen(prompt, on_written)

    def action_undo(self) -> None:
        if self._pending_judgment is not None:
            self._is_undo_due = True
            return
        if not self._given_judgments:
            self.app.bell()
            self.post_notice("there is nothing to undo")
            return
        self._save(withdrawal(self._given_judgments[-1]), "undone")

    def action_replay(self) -> None:
        def on_answer(answer: Answered) -> None:
            if answer.ok:
                self._plays += 1

        if self._item is not None:
            self.replay(self._item.clip, on_answer)

    def _save(self, judgment: Judgment, label: str) -> None:
        """Sends a row to the engine. After a withdrawal, its response comes back; else the next one."""

        def on_answer(answer: Answered) -> None:
            if not answer.ok:
                self._pending_judgment = None
                return
            self._is_committed = True
            self._given_judgments = [row for row in self._given_judgments if row.id != judgment.replaces]
            self._item, self._item_id_to_show = None, None
            if judgment.status is JudgmentStatus.WITHDRAWN:
                self._item_id_to_show = (judgment.trial_id, judgment.clip_sha256)
            else:
                self._given_judgments.append(judgment)

        self._pending_judgment, self._is_committed = judgment, False
        self.post_message(CommandWanted(Judge(new_id(), self._person, judgment), label, on_answer))


def _item_id(item: FirstResponse | None) -> tuple[str, str] | None:
    return None if item is None else (item.trial.id, item.clip.sha256)
