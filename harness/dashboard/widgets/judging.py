"""The item to judge: the query, the response as text, its attempts, and its effect."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.text import Text

from harness.base.foreign import MAX_PATH_CHARS, plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.bars import TextWidget, ValueWidget
from harness.dashboard.widgets.response import draw_bars
from harness.model.judgment import SUB_FLAGS_OF, Category, JudgmentStatus, RaterKeys
from harness.model.numbers import NOTHING, fixed, seconds
from harness.model.trial import Recognition
from harness.rating.guide import CUT_OFF, GUIDE, LABELS, OTHER_WORDS, RULES, SUB_FLAG_TEXTS
from harness.rating.items import Item
from harness.rating.view import ExerciseResult, SittingView, effect_in_words, judgment_in_words, visible_latency_s

_MIN_LABEL_WIDTH = 8
MAX_TEXT_CHARS = 2000
LabelledRow = tuple[str, Text]
"""A label, "" for none, and what it labels."""


class JudgedItem(ValueWidget[SittingView]):
    """The item in rows with labels. Long rows wrap if there is room, else they end in an ellipsis.

    The labels, in their order on screen:

    - asked: the query. said: the transcript of the response.
    - given, or the number of a rater: a rater's judgment, for an adjudicator.
    - classifier: a classifier's proposal.
    - wanted, seen: the expected effect, and the evidence for it. For an exercise, seen: a note on the effect.
    - note: the scenario's note for raters.
    - before: the rater's own earlier judgment.
    """

    DEFAULT_CSS = "JudgedItem { height: 1fr; padding: 0 1; }"

    def __init__(self, transcript_key: str, *, show_names: bool) -> None:
        super().__init__()
        self._transcript_key, self._show_names = transcript_key, show_names

    def draw(self, view: SittingView, width: int, height: int) -> Text:
        return Text() if view.item is None else fit_rows(self.rows(view), self.app.console, width, height)

    def rows(self, view: SittingView) -> list[LabelledRow]:
        """The rows in full."""
        item = view.item
        if item is None:
            return []
        rows = [("asked", Text(f"“{plain_text(item.query, MAX_TEXT_CHARS)}”", style=f"bold {palette.TEXT}"))]
        rows += self._transcript_rows(item, view)
        rows += self._rater_rows(item)
        if view.proposal is not None:
            rows.append(("classifier", Text(view.proposal.words, style=palette.ORANGE)))
        if item.effect is not None:
            expected, state = effect_in_words(item.effect)
            rows.append(("wanted", Text(expected, style=palette.TEXT)))
            rows.append(("seen", Text(state, style=palette.YELLOW)))
        if item.note:
            label = "note" if item.exercise is None else "seen"
            rows.append((label, Text(plain_text(item.note, MAX_TEXT_CHARS), style=palette.TEXT)))
        rows.append(("", _facts(item)))
        own = view.own_row
        # An item with a category is shown only if the rater has reopened it.
        if own is not None and (view.is_reopened or own.status is not JudgmentStatus.SUBMITTED):
            earlier = judgment_in_words(own)
            if own.comment and own.category is None:  # with a category, `judgment_in_words` includes the comment
                earlier += f", “{plain_text(own.comment, 200)}”"
            rows.append(("before", Text(earlier, style=palette.VIOLET)))
        return rows

    def _transcript_rows(self, item: Item, view: SittingView) -> list[LabelledRow]:
        if not view.draft.transcript_shown:
            words = "hidden in this round" if view.hides_text else f"hidden; {self._transcript_key} shows the text"
            return [("said", Text(words, style=palette.QUIET))]
        if item.transcript is None:
            return [("said", Text("there is no text", style=palette.QUIET))]
        return [("said", Text(f"“{plain_text(item.transcript, MAX_TEXT_CHARS)}”", style=palette.TEXT))]

    def _rater_rows(self, item: Item) -> list[LabelledRow]:
        """The raters' judgments for an adjudicator; their names only if wanted."""
        rows = []
        for number, judgment in enumerate(item.inputs, start=1):
            if self._show_names:
                label, name = "given", f"{plain_text(judgment.rater, 30)}: "
            else:
                label, name = f"rater {number}", ""
            text = Text(name, style=palette.QUIET).append(judgment_in_words(judgment), style=palette.ORANGE)
            rows.append((label, text))
        return rows


def _facts(item: Item) -> Text:
    """Attempts, times, and what is special about an item, on one line."""
    attempts_text = "asked once" if item.exercise is None else ""
    if item.attempts > 1:
        waits = ", ".join(seconds(wait_s) for wait_s in item.waits_s)
        attempts_text = f"asked {item.attempts} times" + (f", repeated after {waits}" if waits else "")
    latency_s = visible_latency_s(item)
    facts = (
        attempts_text,
        "" if latency_s is None else f"answered after {fixed(latency_s, 1, 's')}",
        "" if item.length is None else f"{seconds(item.length.value_s)} long",
    )
    text = Text(" · ".join(filter(None, facts)), style=palette.QUIET)
    for applies, words, colour in (
        (item.core_capability, "a core capability", palette.YELLOW),
        (item.truncated, CUT_OFF, palette.ORANGE),
        (item.exercise is None and item.recognition is Recognition.NO, OTHER_WORDS, palette.ORANGE),
    ):
        if applies:
            text.append(" · " if len(text) else "", style=palette.QUIET)
            text.append(words, style=colour)
    return text


def fit_rows(rows: list[LabelledRow], console: Console, width: int, height: int) -> Text:
    """Rows on at most `height` lines.

    Leaves out the last rows if there are too many for a line each. Then the longest rows lose lines, and end in an
    ellipsis.
    """
    label_width = max([_MIN_LABEL_WIDTH, *(len(label) + 1 for label, _ in rows)])
    text_width = max(1, width - label_width)
    wrapped_rows = [(label, list(text.wrap(console, text_width))) for label, text in rows[:height]]
    while sum(len(lines) for _, lines in wrapped_rows) > height:
        # Of several longest rows, the last one.
        _, longest = max(reversed(wrapped_rows), key=lambda row: len(row[1]))
        del longest[-1]
        last_line = longest[-1]
        last_line.rstrip()
        last_line.truncate(text_width - 1)
        last_line.append("…", style=palette.QUIET)
    fitted = Text()
    for label, lines in wrapped_rows:
        for number, line in enumerate(lines):
            shown_label = f"{label if number == 0 else '':<{label_width}}"
            fitted.append_text(Text.assemble((shown_label, palette.QUIET), line, "\n"))
    fitted.right_crop(1)  # the last line end
    return fitted


MIN_WIDTH_FOR_TESTS = 40
"""Least width, in columns, at which the guide's tests are shown."""


class GuideKeys(TextWidget):
    """A line for each category. If there is room: the guide's test below each, and the general rules."""

    DEFAULT_CSS = f"GuideKeys {{ height: {len(Category)}; padding: 0 1; }}"

    def __init__(self, keys: RaterKeys) -> None:
        super().__init__()
        self._keys = keys

    def paint(self, width: int, height: int) -> Text:
        lines = self._lines(width, height)[:height]
        if height < len(Category):
            # The last line names the keys whose lines are off screen.
            keys = " ".join(self._keys.categories[category] for category in list(Category)[height - 1 :])
            last_line = Text(f"{keys} … enlarge to 24 lines to show all keys", palette.YELLOW)
            lines = [*lines[: height - 1], self._cut_line(last_line, width)]
        return Text("\n").join(lines)

    def _lines(self, width: int, height: int) -> list[Text]:
        """The most detailed lines that fit.

        These are the tests below the names; else the short texts, which are below the names only if they do not fit
        beside them. The rules follow if they fit too.
        """
        names = self._name_lines()
        shorts = [GUIDE[category].short for category in Category]
        lines = [
            self._cut_line(Text.assemble(name, "  ", (short, palette.QUIET)), width)
            for name, short in zip(names, shorts, strict=True)
        ]
        if width < MIN_WIDTH_FOR_TESTS:
            return lines
        beside_width = max(name.cell_len + 2 + len(short) for name, short in zip(names, shorts, strict=True))
        choices = [[GUIDE[category].test for category in Category]]
        if beside_width > width:
            choices.append(shorts)
        for texts in choices:
            blocks = [self._wrap(text, width, "  ") for text in texts]
            if len(names) + sum(map(len, blocks)) <= height:
                lines = [line for name, block in zip(names, blocks, strict=True) for line in (name, *block)]
                break
        rules = [line for rule in RULES for line in self._wrap(f"· {rule}", width, "")]
        return [*lines, Text(), *rules] if len(lines) + 1 + len(rules) <= height else lines

    def _name_lines(self) -> list[Text]:
        """The key, the letter if there are letters, and the name of each category."""
        key_width, letters = max(len(key) for key in self._keys.categories.values()), self._keys.letters
        name_width = max(len(name) for name in LABELS.values())
        return [
            Text.assemble(
                (f"{self._keys.categories[category]:>{key_width}} ", f"bold {palette.BLUE}"),
                (f"{letters.get(category, ' ')} " if letters else "", palette.BLUE),
                (f"{LABELS[category]:<{name_width}}", f"bold {palette.TEXT}"),
            )
            for category in Category
        ]

    def _cut_line(self, line: Text, width: int) -> Text:
        line.truncate(width, overflow="ellipsis")
        return line

    def _wrap(self, text: str, width: int, indent: str) -> list[Text]:
        lines = Text(text, style=palette.QUIET).wrap(self.app.console, max(1, width - len(indent)))
        return [Text.assemble((indent, ""), line) for line in lines]


_WAVE_LABEL_WIDTH = 22


class MovingWave(TextWidget):
    """The name of the sound that plays and the time on the left, its shape on the right.

    The loudest moment has full height.
    """

    DEFAULT_CSS = "MovingWave { height: 1; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._peaks: npt.NDArray[np.float32] | None = None
        self._length_s: float | None = None
        self._sound = ""
        self._position_s: float | None = None
        self._message = ""

    @property
    def has_shape(self) -> bool:
        return self._peaks is not None

    def clear(self, message: str) -> None:
        """Shows a message in place of a shape."""
        self._peaks, self._length_s, self._message = None, None, message
        self._sound, self._position_s = "", None
        self.refresh()

    def set_shape(self, peaks: npt.NDArray[np.float32], length_s: float) -> None:
        """Shows the shape of a response. peaks: from 0 to 1, at equal intervals."""
        self._peaks, self._length_s = peaks, length_s
        self.refresh()

    def move_cursor(self, sound: str, position_s: float | None) -> None:
        """Moves the cursor.

        - sound: name of the sound that plays; "" for none.
        - position_s: position in the response; None for other sounds.
        """
        if (sound, position_s) != (self._sound, self._position_s):
            self._sound, self._position_s = sound, position_s
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        if self._peaks is None:
            return Text(self._message, style=palette.QUIET)
        label = self._label()
        if not len(self._peaks) or width < 2 * _WAVE_LABEL_WIDTH:
            return label
        shape_width = width - _WAVE_LABEL_WIDTH
        cursor = self._cursor(shape_width)
        text = Text()
        for row, line in enumerate(draw_bars(self._peaks, shape_width, height)):
            left_cell = label if row == 0 else Text()
            left_cell.pad_right(_WAVE_LABEL_WIDTH - left_cell.cell_len)
            text.append_text(left_cell)
            parts = [(line, palette.CYAN)]
            if cursor is not None:
                parts = [
                    (line[:cursor], palette.CYAN),
                    ("┃", f"bold {palette.YELLOW}"),
                    (line[cursor + 1 :], palette.RULE),
                ]
            text.append_text(Text.assemble(*parts, "\n"))
        text.right_crop(1)  # the last line end
        return text

    def _label(self) -> Text:
        length_s = self._length_s or 0.0
        if self._position_s is None:
            text = Text(fixed(length_s, 1, "s"), style=palette.QUIET)
        else:
            text = Text(f"{fixed(min(self._position_s, length_s), 1)} of {fixed(length_s, 1)} s", style=palette.TEXT)
        if self._sound:
            text.append(f" {self._sound}", style=f"bold {palette.YELLOW}")
        return text

    def _cursor(self, shape_width: int) -> int | None:
        """The column of the cursor in the shape; None if the response does not play."""
        if self._position_s is None or not self._length_s:
            return None
        return min(shape_width - 1, int(self._position_s / self._length_s * shape_width))


class Explanation(ValueWidget[ExerciseResult]):
    """Whether the answer to an exercise is right, and why."""

    DEFAULT_CSS = "Explanation { height: 11; padding: 1 2; border-left: thick $primary; display: none; }"

    def show(self, value: ExerciseResult | None) -> None:
        self.display = value is not None
        super().show(value)

    def draw(self, explained: ExerciseResult, width: int, height: int) -> Text:
        best = LABELS[explained.exercise.category]
        if explained.category is explained.exercise.category:
            verdict = f"Right: {best}"
        elif explained.right:
            verdict = f"{LABELS[explained.category]} can be defended; {best} is better"
        else:
            verdict = f"Not {LABELS[explained.category]}, but {best}"
        text = Text.assemble(
            (verdict, f"bold {palette.GREEN if explained.right else palette.ORANGE}"),
            (f"\n\n{plain_text(explained.exercise.why, 600)}\n\n", palette.TEXT),
            (f"{best}: {GUIDE[explained.exercise.category].test}\n", palette.QUIET),
        )
        lines = list(text.wrap(self.app.console, width))[: max(1, height - 1)]
        return Text("\n").join([*lines, Text("any key continues", style=f"bold {palette.BLUE}")])


_MAX_WAITING_LINES = 5


class SittingEnd(ValueWidget[tuple[SittingView, tuple[str, ...]]]):
    """The counts, what held items wait for, the pace, and what to do next. Its value: a view, and a text for each item
    that waits for its effect.

    Raters of a shared round are not sent to their agreement, which is measured when all have finished.
    """

    DEFAULT_CSS = "SittingEnd { height: 1fr; padding: 1 0; display: none; }"

    def __init__(self, sessions: tuple[str, ...], release_key: str, *, is_shared: bool) -> None:
        super().__init__()
        self._is_shared = is_shared
        self._sessions = " ".join(_shell_word(plain_text(_short_path(session), MAX_PATH_CHARS)) for session in sessions)
        self._release_key = release_key

    def draw(self, value: tuple[SittingView, tuple[str, ...]], width: int, height: int) -> Text:
        view, waiting = value
        count = view.count
        pace = NOTHING if view.pace_s is None else f"{seconds(view.pace_s)} each"
        rows = [
            self._row("done", f"{count.done} of {count.total}"),
            self._row("put aside", str(count.flagged)),
            self._row("pace", pace),
        ]
        if count.held:
            rows += self._held_rows(count.held, waiting, width)
        text = Text.assemble((f"  {self._title(view)}\n\n", f"bold {palette.GREEN}"), *rows)
        if not self._is_shared:
            text.append("\n  How far raters agree:\n", style=palette.QUIET)
            text.append(_shell_lines(f"  harness report agreement {self._sessions}", width), style=palette.TEXT)
        text.append("  New responses and answers appear here automatically.", style=palette.QUIET)
        return Text("\n").join(list(text.wrap(self.app.console, width))[:height])

    def _title(self, view: SittingView) -> str:
        if view.stopped:
            return "You get no more responses in this round: too many of your answers differ from known ones."
        if not view.count.total:
            return "You have nothing to judge here yet."
        return "All done, except held responses." if view.count.held else "All done. Thank you."

    def _held_rows(self, held: int, waiting: tuple[str, ...], width: int) -> list[Text]:
        rows = [self._row("held", f"{held}, until someone reports what the device did:", palette.YELLOW)]
        rows += [self._row("", f"· {plain_text(effect, 100)}") for effect in waiting[:_MAX_WAITING_LINES]]
        if len(waiting) > _MAX_WAITING_LINES:
            rows.append(self._row("", f"and {len(waiting) - _MAX_WAITING_LINES} more", palette.QUIET))
        rows.append(self._row("", f"{self._release_key} judges them anyway. To report effects:"))
        rows.append(Text(_shell_lines(f"  harness report effects {self._sessions}", width), style=palette.TEXT))
        return rows

    def _row(self, label: str, words: str, colour: str = palette.TEXT) -> Text:
        return Text.assemble((f"  {label:<11}", palette.QUIET), (f"{words}\n", colour))


def _short_path(path: str) -> str:
    """A path relative to the current folder if it is in there; else the path."""
    current_folder = Path.cwd()
    return str(Path(path).relative_to(current_folder)) if Path(path).is_relative_to(current_folder) else path


def _shell_word(path: str) -> str:
    """The path for a shell. In double quotes, since a line may be continued within these."""
    return path if shlex.quote(path) == path else '"' + re.sub(r'["\\$`]', r"\\\g<0>", path) + '"'


def _shell_lines(command: str, width: int) -> str:
    """The command in lines that a shell reads as one when they are pasted.

    They have no margin, which would be part of the command, and none ends within an escape.
    """
    return "\\\n".join(re.findall(rf".{{0,{max(1, width - 2)}}}[^\\]", command)) + "\n"


def guide_text(keys: RaterKeys) -> Text:
    """Rules, then each category with its key, test, examples and sub-flags."""
    text = Text.assemble(("How to judge\n\n", f"bold {palette.TEXT}"))
    for rule in RULES:
        text.append(f"· {rule}\n", style=palette.TEXT)
    for category in Category:
        guide = GUIDE[category]
        flags = ", ".join(SUB_FLAG_TEXTS[flag] for flag in SUB_FLAGS_OF.get(category, ()))
        text.append(f"\n{keys.categories[category]} ", style=f"bold {palette.BLUE}")
        text.append(LABELS[category], style=f"bold {palette.TEXT}")
        text.append(f"  {guide.short}\n", style=palette.QUIET)
        text.append(f"{guide.test}\n", style=palette.TEXT)
        for example in guide.examples:
            effect = f" ({example.seen})" if example.seen else ""
            text.append(f"  “{example.query}” “{example.response}”{effect}\n", style=palette.QUIET)
        if flags:
            text.append(f"  sub-flags: {flags}\n", style=palette.VIOLET)
    return text
