"""The item to judge: the query, the response as text, its attempts, and its effect."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.text import Text

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.bars import Painted, Showing
from harness.dashboard.widgets.response import bars
from harness.model.judgment import SUB_FLAGS_OF, Category, JudgmentStatus, RaterKeys
from harness.model.numbers import NOTHING, fixed, seconds
from harness.model.trial import Recognition
from harness.rating.desk import ExerciseResult, SittingView, effect_words, given_words
from harness.rating.guide import GUIDE, LABELS, RULES, SUB_FLAG_TEXTS
from harness.rating.items import Item
from harness.statistics.text import measured

_LABEL_WIDTH = 8
MAX_TEXT_CHARS = 2000
Row = tuple[str, Text]


class JudgedItem(Showing[SittingView]):
    """The item in rows with labels. Long rows wrap if there is room, else they end in an ellipsis."""

    DEFAULT_CSS = "JudgedItem { height: 1fr; padding: 0 1; }"

    def __init__(self, transcript_key: str, *, show_names: bool) -> None:
        super().__init__()
        self._key, self._show_names = transcript_key, show_names

    def draw(self, view: SittingView, width: int, height: int) -> Text:
        return Text() if view.item is None else fold(self.rows(view), self.app.console, width, height)

    def rows(self, view: SittingView) -> list[Row]:
        item = view.item
        if item is None:
            return []
        rows = [("asked", Text(f"“{plain_text(item.query, MAX_TEXT_CHARS)}”", style=f"bold {palette.TEXT}"))]
        rows += self._transcript_rows(item, view)
        rows += self._inputs(item)
        if view.proposal is not None:
            rows.append(("classifier", Text(view.proposal.words, style=palette.ORANGE)))
        if item.effect is not None:
            expected, state = effect_words(item.effect)
            rows.append(("wanted", Text(expected, style=palette.TEXT)))
            rows.append(("seen", Text(state, style=palette.YELLOW)))
        if item.note:
            rows.append(
                (
                    "note" if item.exercise is None else "seen",
                    Text(plain_text(item.note, MAX_TEXT_CHARS), style=palette.TEXT),
                )
            )
        rows.append(("", _facts(item)))
        if view.own is not None and (view.again or view.own.status is not JudgmentStatus.SUBMITTED):
            earlier = given_words(view.own)
            if view.own.comment and view.own.category is None:
                earlier += f", “{plain_text(view.own.comment, 200)}”"
            rows.append(("before", Text(earlier, style=palette.VIOLET)))
        return rows

    def _transcript_rows(self, item: Item, view: SittingView) -> list[Row]:
        if not view.draft.transcript_shown:
            words = "hidden in this round" if view.hides_text else f"hidden; {self._key} shows the text"
            return [("said", Text(words, style=palette.QUIET))]
        if item.transcript is None:
            return [("said", Text("there is no text", style=palette.QUIET))]
        return [("said", Text(f"“{plain_text(item.transcript, MAX_TEXT_CHARS)}”", style=palette.TEXT))]

    def _inputs(self, item: Item) -> list[Row]:
        """The raters' judgments for an adjudicator; their names only if wanted."""
        rows = []
        for number, row in enumerate(item.inputs, start=1):
            name = plain_text(row.rater, 30) if self._show_names else f"rater {number}"
            text = Text(f"{name}: " if self._show_names else "", style=palette.QUIET)
            rows.append(("given" if self._show_names else name, text.append(given_words(row), style=palette.ORANGE)))
        return rows


def _facts(item: Item) -> Text:
    attempts_text = "asked once" if item.exercise is None else ""
    if item.attempts > 1:
        waits = ", ".join(seconds(wait_s) for wait_s in item.waits_s)
        attempts_text = f"asked {item.attempts} times" + (f", again after {waits}" if waits else "")
    parts = (
        attempts_text,
        "" if item.latency is None else f"answered after {measured(item.latency)}",
        "" if item.length is None else f"{seconds(item.length.value_s)} long",
    )
    text = Text(" · ".join(filter(None, parts)), style=palette.QUIET)
    for is_so, words, colour in (
        (item.core_capability, "a core capability", palette.YELLOW),
        (item.truncated, "cut off: the response went on", palette.ORANGE),
        (item.exercise is None and item.recognition is Recognition.NO, "other words were heard", palette.ORANGE),
    ):
        if is_so:
            text.append(" · " if len(text) else "", style=palette.QUIET)
            text.append(words, style=colour)
    return text


def fold(rows: list[Row], console: Console, width: int, height: int) -> Text:
    """Rows on at most `height` lines: the longest rows lose lines first, then the last rows are left out."""
    label_width = max([_LABEL_WIDTH, *(len(label) + 1 for label, _ in rows)])
    room = max(1, width - label_width)
    visible_rows = [(label, text.wrap(console, room)) for label, text in rows[:height]]
    lines = [list(wrapped) for _, wrapped in visible_rows]
    while sum(map(len, lines)) > height:
        longest = max(range(len(lines)), key=lambda index: (len(lines[index]), index))
        del lines[longest][-1]
        last = lines[longest][-1]
        last.rstrip()
        last.truncate(room - 1)
        last.append("…", style=palette.QUIET)
    whole = Text()
    for (label, _), parts in zip(visible_rows, lines, strict=True):
        for number, part in enumerate(parts):
            head = f"{label if number == 0 else '':<{label_width}}"
            whole.append_text(Text.assemble((head, palette.QUIET), part, "\n"))
    whole.right_crop(1)
    return whole


LONG_FROM = 40
"""Least width in columns at which the guide's tests are shown."""


class GuideKeys(Painted):
    """A line for each category. If there is room: the guide's test below each, and the general rules."""

    DEFAULT_CSS = f"GuideKeys {{ height: {len(Category)}; padding: 0 1; }}"

    def __init__(self, keys: RaterKeys) -> None:
        super().__init__()
        self._keys = keys

    def paint(self, width: int, height: int) -> Text:
        lines = self._lines(width, height)[:height]
        if height < len(Category):
            # Names a key that is off screen.
            keys = " ".join(self._keys.categories[category] for category in list(Category)[height - 1 :])
            lines[height - 1 :] = [
                self._cut_line(Text(f"{keys} … enlarge to 24 lines to show all keys", palette.YELLOW), width)
            ]
        return Text("\n").join(lines)

    def _lines(self, width: int, height: int) -> list[Text]:
        """The most detailed lines that fit: tests below the names, short texts below them, or short texts beside."""
        heads, short = self._heads(), [GUIDE[category].short for category in Category]
        lines = [
            self._cut_line(Text.assemble(head, "  ", (text, palette.QUIET)), width)
            for head, text in zip(heads, short, strict=True)
        ]
        if width < LONG_FROM:
            return lines
        beside_fits = max(head.cell_len + 2 + len(text) for head, text in zip(heads, short, strict=True)) <= width
        tests = [GUIDE[category].test for category in Category]
        for texts in (tests,) if beside_fits else (tests, short):
            below = [self._fold(text, width, "  ") for text in texts]
            if len(heads) + sum(map(len, below)) <= height:
                lines = [line for head, parts in zip(heads, below, strict=True) for line in (head, *parts)]
                break
        rules = [line for rule in RULES for line in self._fold(f"· {rule}", width, "")]
        return [*lines, Text(), *rules] if len(lines) + 1 + len(rules) <= height else lines

    def _heads(self) -> list[Text]:
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

    def _fold(self, text: str, width: int, indent: str) -> list[Text]:
        words = Text(text, style=palette.QUIET)
        lines = words.wrap(self.app.console, max(1, width - len(indent)))
        return [Text.assemble((indent, ""), line) for line in lines]


_WAVE_LABEL = 22


class MovingWave(Painted):
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
    def drawn(self) -> bool:
        return self._peaks is not None

    def clear(self, message: str) -> None:
        self._peaks, self._length_s, self._message = None, None, message
        self._sound, self._position_s = "", None
        self.refresh()

    def shape(self, peaks: npt.NDArray[np.float32], length_s: float) -> None:
        self._peaks, self._length_s = peaks, length_s
        self.refresh()

    def move(self, sound: str, at_s: float | None) -> None:
        """Moves the cursor. sound: name of the sound that plays; "" for none. at_s: position in the response; None for
        other sounds."""
        if (sound, at_s) != (self._sound, self._position_s):
            self._sound, self._position_s = sound, at_s
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        if self._peaks is None:
            return Text(self._message, style=palette.QUIET)
        label = self._label()
        if not len(self._peaks) or width < 2 * _WAVE_LABEL:
            return label
        room = width - _WAVE_LABEL
        cursor = self._cursor(room)
        text = Text()
        for row, line in enumerate(bars(self._peaks, room, height)):
            head = Text() if row else label
            head.pad_right(_WAVE_LABEL - head.cell_len)
            text.append_text(head)
            parts = [(line, palette.CYAN)]
            if cursor is not None:
                left, right = (line[:cursor], palette.CYAN), (line[cursor + 1 :], palette.RULE)
                parts = [left, ("┃", f"bold {palette.YELLOW}"), right]
            text.append_text(Text.assemble(*parts, "\n"))
        text.right_crop(1)
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

    def _cursor(self, room: int) -> int | None:
        if self._position_s is None or not self._length_s:
            return None
        return min(room - 1, int(self._position_s / self._length_s * room))


class Explanation(Showing[ExerciseResult]):
    """Whether the answer to an exercise is right, and why."""

    DEFAULT_CSS = "Explanation { height: 11; padding: 1 2; border-left: thick $primary; display: none; }"

    def show(self, value: ExerciseResult | None) -> None:
        self.display = value is not None
        super().show(value)

    def draw(self, explained: ExerciseResult, width: int, height: int) -> Text:
        best = LABELS[explained.exercise.category]
        verdict = f"{LABELS[explained.given]} can be defended; {best} is better"
        if explained.given is explained.exercise.category:
            verdict = f"Right: {best}"
        elif not explained.right:
            verdict = f"Not {LABELS[explained.given]}, but {best}"
        text = Text.assemble(
            (verdict, f"bold {palette.GREEN if explained.right else palette.ORANGE}"),
            (f"\n\n{plain_text(explained.exercise.why, 600)}\n\n", palette.TEXT),
            (f"{best}: {GUIDE[explained.exercise.category].test}\n", palette.QUIET),
        )
        lines = list(text.wrap(self.app.console, width))[: max(1, height - 1)]
        return Text("\n").join([*lines, Text("any key continues", style=f"bold {palette.BLUE}")])


class SittingEnd(Showing[tuple[SittingView, tuple[str, ...]]]):
    """The counts, what held items wait for, the pace, and what to do next.

    Raters of a shared round are not sent to their agreement, which is measured when all have finished.
    """

    DEFAULT_CSS = "SittingEnd { height: 1fr; padding: 1 2; display: none; }"

    def __init__(self, sessions: tuple[str, ...], release_key: str, *, is_shared: bool) -> None:
        super().__init__()
        self._is_shared = is_shared
        self._sessions = " ".join(shlex.quote(plain_text(_short_path(session), 300)) for session in sessions)
        self._release_key = release_key

    def draw(self, value: tuple[SittingView, tuple[str, ...]], width: int, height: int) -> Text:
        view, waiting = value
        count = view.count
        pace = NOTHING if view.pace_s is None else f"{seconds(view.pace_s)} each"
        none = "You have nothing to judge here yet." if not count.total else ""
        if view.stopped:
            none = "You get no more responses in this round: too many of your answers differ from known ones."
        head = none or ("All done. Thank you." if not count.held else "All done, except held responses.")
        rows = [("done", f"{count.done} of {count.total}"), ("put aside", str(count.flagged)), ("pace", pace)]
        left_out = f"{'':<11}and {len(waiting) - 5} more\n" if len(waiting) > 5 else ""
        held_lines = [
            (f"{'held':<11}", palette.QUIET),
            (f"{count.held}, until someone reports what the device did:\n", palette.YELLOW),
            *((f"{'':<11}· {plain_text(words, 100)}\n", palette.TEXT) for words in waiting[:5]),
            (left_out, palette.QUIET),
            (f"{'':<11}answer with  harness report effects {self._sessions}\n", palette.TEXT),
            (f"{'':<11}{self._release_key} judges them anyway\n", palette.TEXT),
        ]
        agreement = [
            ("\nHow far raters agree:  ", palette.QUIET),
            (f"harness report agreement {self._sessions}\n", palette.TEXT),
        ]
        if not count.held:
            held_lines = []
        if self._is_shared:
            agreement = []
        text = Text.assemble(
            (f"{head}\n\n", f"bold {palette.GREEN}"),
            *(
                cell
                for label, words in rows
                for cell in ((f"{label:<11}", palette.QUIET), (f"{words}\n", palette.TEXT))
            ),
            *held_lines,
            *agreement,
            ("New responses and answers appear here automatically.", palette.QUIET),
        )
        return Text("\n").join(list(text.wrap(self.app.console, width))[:height])


def _short_path(path: str) -> str:
    current_folder = Path.cwd()
    return str(Path(path).relative_to(current_folder)) if Path(path).is_relative_to(current_folder) else path


def guide_text(keys: RaterKeys) -> Text:
    """Rules, then each category with its key, test, examples and sub-flags."""
    text = Text.assemble(("How to judge\n\n", f"bold {palette.TEXT}"))
    for rule in RULES:
        text.append(f"· {rule}\n", style=palette.TEXT)
    for category in Category:
        guide = GUIDE[category]
        flags = ", ".join(SUB_FLAG_TEXTS[flag] for flag in SUB_FLAGS_OF.get(category, ()))
        text.append_text(
            Text.assemble(
                (f"\n{keys.categories[category]} ", f"bold {palette.BLUE}"),
                (LABELS[category], f"bold {palette.TEXT}"),
                (f"  {guide.short}\n", palette.QUIET),
                (f"{guide.test}\n", palette.TEXT),
                *(
                    (
                        f"  “{example.query}” “{example.response}”{f' ({example.seen})' if example.seen else ''}\n",
                        palette.QUIET,
                    )
                    for example in guide.examples
                ),
                (f"  sub-flags: {flags}\n" if flags else "", palette.VIOLET),
            )
        )
    return text
