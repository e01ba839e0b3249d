"""The labels, their keys and marks, and as much of the guide as fits beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text
from textual import events
from textual.message import Message

from harness.annotation.view import AnnotationPhase, AnnotationView, LabellingItem, PageLine
from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.bars import Painted, Showing, TextLine, highlighted, progress_bar
from harness.model.annotation import LINE_KEYS, Label, LabelSet, label_keys
from harness.model.numbers import seconds, time_left

LONGEST_NAME = 40
LABEL, WORD = "label", "word"
"""What a cell of the screen belongs to."""
_GAP = 2
NARROWEST = 16
"""Cells of a column; longer lists scroll."""


def label_name(label: Label) -> str:
    """The label's title, then its id, escaped."""
    id_ = plain_text(label.id, LONGEST_NAME)
    same = label.title.casefold().replace(" ", "_") in ("", label.id.casefold())
    return id_ if same else f"{plain_text(label.title, LONGEST_NAME)} ({id_})"


@dataclass
class LabelPressed(Message):
    """A label, or a concept, was clicked."""

    id: str


class LabelGrid(Painted):
    """One column with descriptions if that fits, else as many columns as needed."""

    DEFAULT_CSS = "LabelGrid { height: 1fr; padding: 0 1; }"

    def __init__(self, labels: LabelSet, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._labels = labels
        self._keys = label_keys(labels)
        self._given: tuple[str, ...] = ()
        self._cursor = 0
        self._columns = 1

    @property
    def rows(self) -> int:
        """Lines of the labels as last drawn."""
        return -(-len(self._labels.labels) // self._columns)

    def show(self, given: tuple[str, ...], cursor: int) -> None:
        self._given, self._cursor = given, cursor
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        index = event.style.meta.get(LABEL)
        if index is not None:
            self.post_message(LabelPressed(self._labels.ids[index]))

    def paint(self, width: int, height: int) -> Text:
        labels = self._labels.labels
        names = [label_name(label) for label in labels]
        if len(labels) <= height:
            self._columns = 1
            folded = self._folded(names, width)
            if sum(map(len, folded)) > height:
                # Files hold the id. Without the title there is more room for the description.
                folded = self._folded([plain_text(label.id, LONGEST_NAME) for label in labels], width)
            if sum(map(len, folded)) > height:
                folded = [self._cut(parts[0], len(parts) > 1, width) for parts in folded]
            return Text("\n").join(line for parts in folded for line in parts)
        longest = max(map(len, names)) + 7
        self._columns = max(1, min(-(-len(labels) // max(1, height)), width // NARROWEST))
        each = max(10, (width - _GAP * (self._columns - 1)) // self._columns)
        if longest > each:
            names = [plain_text(label.id, LONGEST_NAME) for label in labels]
        rows = []
        top = self._top(height)
        for at in range(top, min(self.rows, top + height)):
            row = Text()
            for index in range(at, len(labels), self.rows):
                cell = self._cell(index, names[index], each)
                cell.truncate(each, overflow="ellipsis", pad=True)
                row.append_text(cell)
                row.append(" " * _GAP)
            rows.append(row)
        return Text("\n").join(rows)

    def _top(self, height: int) -> int:
        return max(0, min(self._cursor % max(1, self.rows) - height + 1, self.rows - height))

    def _folded(self, names: list[str], width: int) -> list[list[Text]]:
        room = max(map(len, names), default=0)
        return [self._row(index, name, room, width) for index, name in enumerate(names)]

    def _row(self, index: int, name: str, room: int, width: int) -> list[Text]:
        label = self._labels.labels[index]
        head = self._cell(index, f"{name:<{room}}  ", width)
        words = f"{'stands alone. ' if label.alone else ''}{plain_text(label.description, 600)}".strip()
        left = width - head.cell_len
        if not words or left < 12:
            head.truncate(width, overflow="ellipsis")
            return [head]
        folded = list(Text(words, style=palette.QUIET).wrap(self.app.console, left))
        rest = [Text.assemble(" " * head.cell_len, line) for line in folded[1:]]
        return [Text.assemble(head, folded[0]), *rest]

    def _cut(self, line: Text, longer: bool, width: int) -> list[Text]:
        if longer:
            line.truncate(width - 2)
            line.rstrip()
            line.append(" …", style=palette.QUIET)
        return [line]

    def _cell(self, index: int, name: str, width: int) -> Text:
        label = self._labels.labels[index]
        given, at = label.id in self._given, index == self._cursor
        text = Text("›" if at else " ", style=f"bold {palette.TEXT}")
        text.append(f"{plain_text(self._keys[label.id], 1) if self._keys[label.id] else ' '} ", f"bold {palette.BLUE}")
        text.append("[x] " if given else "[ ] ", f"bold {palette.GREEN if given else palette.QUIET}")
        text.append(name, Style(color=palette.GREEN if given else palette.TEXT, bold=given))
        text.stylize(Style(bgcolor=palette.SELECTED if at else None, meta={LABEL: index}))
        return text


LONGEST_LINE = 2000
MOST_OF_A_LINE = 5
"""Lines of an utterance; a key shows the rest."""
_INDENT = 5


class PageLines(Painted):
    """Keeps the cursor's line on screen, and records which lines of the page were on screen.

    Lines above and below the screen are counted.
    """

    DEFAULT_CSS = "PageLines { height: 1fr; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._lines: tuple[PageLine, ...] = ()
        self._cursor = 0
        self._top = 0
        self._page: tuple[str, ...] = ()
        self._seen: set[int] = set()
        self._drawn = range(0)

    def show(self, lines: tuple[PageLine, ...], cursor: int) -> None:
        """New utterances begin at the top, unseen."""
        page = tuple(line.utterance for line in lines)
        if page != self._page:
            self._page, self._top, self._seen = page, 0, set()
        self._lines, self._cursor = lines, cursor
        self.refresh()

    @property
    def unseen(self) -> int | None:
        return next((index for index in range(len(self._lines)) if index not in self._seen), None)

    @property
    def in_sight(self) -> range:
        return self._drawn

    def turn_to(self, top: int) -> None:
        self._top = top
        self.refresh()

    def paint(self, width: int, height: int) -> Text:
        folded = [self._folded(index, width) for index in range(len(self._lines))]
        first, after = self._window([len(parts) for parts in folded], height)
        self._top, self._drawn = first, range(first, after)
        self._seen.update(self._drawn)
        rows = [line for parts in folded[first:after] for line in parts]
        if first:
            rows.insert(0, Text(f"     ↑ {first} more above", style=palette.YELLOW))
        if after < len(folded):
            rows.append(Text(f"     ↓ {len(folded) - after} more below", style=palette.YELLOW))
        return Text("\n").join(rows[:height])

    def _window(self, heights: list[int], room: int) -> tuple[int, int]:
        """(first, last + 1) of the drawn lines. The top moves only as far as the cursor needs."""
        first = min(self._top, self._cursor, max(0, len(heights) - 1))
        while True:
            after, used = first, int(first > 0)
            while after < len(heights) and used + heights[after] + (after + 1 < len(heights)) <= room:
                used += heights[after]
                after += 1
            if self._cursor < after or first >= self._cursor:
                return first, max(after, first + 1) if heights else after
            first += 1

    def _folded(self, index: int, width: int) -> list[Text]:
        line, at = self._lines[index], index == self._cursor
        key = LINE_KEYS[index] if index < len(LINE_KEYS) else " "
        head = Text("›" if at else " ", style=f"bold {palette.TEXT}")
        head.append(f"{key} ", style=f"bold {palette.BLUE}")
        head.append("✗ " if line.struck else "  ", style=f"bold {palette.RED}")
        style = Style(color=palette.QUIET, strike=True) if line.struck else Style(color=palette.TEXT, bold=at)
        words = Text(plain_text(line.text, LONGEST_LINE) or "(no words)", style=style)
        parts = list(words.wrap(self.app.console, max(1, width - _INDENT)))
        if len(parts) > MOST_OF_A_LINE:
            parts = parts[:MOST_OF_A_LINE]
            parts[-1].truncate(max(1, width - _INDENT - 12))
            parts[-1].append(" … v: whole", style=palette.YELLOW)
        rows = []
        for number, part in enumerate(parts):
            part.rstrip()
            row = Text.assemble(head if number == 0 else " " * _INDENT, part)
            rows.append(highlighted(row, width) if at else row)
        return rows


LONGEST = 4000
MOST_LINES = 8
"""Of an utterance to label."""


def labels_words(intents: Iterable[str]) -> str:
    return " + ".join(plain_text(one, 60) for one in intents) or "(no label)"


class AnnotationTitle(TextLine):
    """Mode, project and annotator."""

    DEFAULT_CSS = "AnnotationTitle { background: $panel; }"

    def show(self, view: AnnotationView, project: str) -> None:
        text = Text()
        match view.phase:
            case AnnotationPhase.REVIEWING:
                text.append("Reviewing", style=f"bold {palette.TEXT}")
                if view.group is not None:
                    text.append(f" group {view.group.number} of {view.group.groups}", style=palette.TEXT)
            case AnnotationPhase.LABELLING:
                text.append("Settling" if view.adjudicating else "Labelling", style=f"bold {palette.TEXT}")
                if view.item is not None:
                    text.append(f" {plain_text(view.item.utterance, 30)}", style=palette.TEXT)
            case AnnotationPhase.FINISHED:
                text.append("Finished", style=f"bold {palette.GREEN}")
        text.append(f"   {plain_text(project, 30)}   annotator {plain_text(view.annotator, 24)}", style=palette.QUIET)
        self.write(text)


def count_words(view: AnnotationView) -> str:
    count = view.count
    words = f"{count.done} of {count.total} done, "
    words += (
        f"{count.left} left to settle"
        if view.adjudicating
        else f"{count.to_review} to review, {count.to_label} to label"
    )
    words += f", {count.skipped} skipped" * bool(count.skipped)
    if count.left and view.pace_s is not None:
        words += f" · {seconds(view.pace_s)} each · {time_left(view.left_s)}"
    return words + f" · {view.estimate}" * bool(view.estimate)


class AnnotationProgress(Showing[AnnotationView]):
    """A bar, the counts, the pace and the time left."""

    DEFAULT_CSS = "AnnotationProgress { height: 1; padding: 0 1; }"

    def draw(self, view: AnnotationView, width: int, height: int) -> Text:
        count, words = view.count, count_words(view)
        room = width - len(words) - 2
        share = count.done / count.total if count.total else 0.0
        text = progress_bar(share, room).append("  ") if room >= 4 else Text()
        return text.append(words, style=palette.TEXT)


class GroupHead(Showing[AnnotationView]):
    """The proposal of a group, and the guide's description of each label."""

    DEFAULT_CSS = "GroupHead { height: auto; max-height: 9; padding: 0 1; border-left: thick $primary; }"

    folds = True

    def __init__(self, labels: LabelSet) -> None:
        super().__init__()
        self._labels = labels

    def draw(self, view: AnnotationView, width: int, height: int) -> Text:
        group = view.group
        if group is None:
            return Text()
        text = Text("proposed  ", style=palette.QUIET)
        text.append(labels_words(group.intents), style=f"bold {palette.YELLOW}")
        struck = sum(line.struck for line in view.page)
        text.append(f"   {group.left} of {group.total} left", style=palette.QUIET)
        text.append(f" · {struck} struck here" * bool(struck), style=palette.RED)
        lines = [text]
        most = 2 if len(group.intents) < 3 else 1
        for id_ in group.intents:
            label = self._labels.label(id_)
            known = label is not None and bool(label.description)
            words = plain_text(label.description, 600) if label is not None and known else "not in the guide"
            whole = Text.assemble((f"{plain_text(id_, 60)}: ", palette.TEXT), (words, palette.QUIET))
            folded = list(whole.wrap(self.app.console, width))
            if len(folded) > most:
                folded = folded[:most]
                folded[-1].truncate(max(1, width - 2))
                folded[-1].append(" …", style=palette.QUIET)
            lines += folded
        return Text("\n").join(lines)


@dataclass
class WordsSelected(Message):
    """Words were clicked, or the mouse was drawn over them: from 0, half open."""

    start: int
    end: int


class UtteranceText(Showing[LabellingItem]):
    """The text to label, folded. marks: words can be selected and marked; slots are underlined."""

    DEFAULT_CSS = f"UtteranceText {{ height: auto; max-height: {MOST_LINES + 1}; padding: 0 1; }}"
    ALLOW_SELECT = False

    folds = True

    def __init__(self, *, marks: bool = False) -> None:
        super().__init__()
        self._marks = marks
        self._selected: tuple[int, int] | None = None
        self._pressed: int | None = None

    def select(self, words: tuple[int, int] | None) -> None:
        """Shows words as selected."""
        if words != self._selected:
            self._selected = words
            self.refresh()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed = event.style.meta.get(WORD)
        self._select_to(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._select_to(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self._select_to(event)
        self._pressed = None

    def _select_to(self, event: events.MouseEvent) -> None:
        at = event.style.meta.get(WORD)
        if at is not None and self._pressed is not None:
            self.post_message(WordsSelected(min(at, self._pressed), max(at, self._pressed) + 1))

    def draw(self, item: LabellingItem, width: int, height: int) -> Text:
        lines = list((self._words(item) or Text("(no words)")).wrap(self.app.console, width))
        most = MOST_LINES if self.app.size.height >= 30 else 4
        if len(lines) > most:
            lines = lines[:most]
            lines[-1].truncate(max(1, width - 11))
            lines[-1].append(" … v: whole", style=palette.YELLOW)
        return Text("\n").join(lines)

    def _words(self, item: LabellingItem) -> Text:
        text = Text(style=f"bold {palette.TEXT}")
        if not self._marks:
            return text.append(plain_text(item.text, LONGEST))
        slot_at = item.slot_at
        first, after = self._selected or (0, 0)
        for at, word in enumerate(item.words):
            slot = slot_at.get(at)
            selected = palette.SELECTED if first <= at < after else None
            style = Style(
                color=palette.GREEN if slot else None, underline=bool(slot), bgcolor=selected, meta={WORD: at}
            )
            text.append(plain_text(word, LONGEST), style)
            if slot is not None and at + 1 == slot.end:
                text.append(f"·{plain_text(slot.concept, LONGEST_NAME)}", palette.QUIET)
                text.append(" ")
            elif at + 1 < len(item.words):
                text.append(" ", style if slot or (selected and at + 1 < after) else "")
            if text.cell_len > LONGEST:
                break
        text.rstrip()
        return text


class ChoiceLines(Showing[LabellingItem]):
    """The choice, whether it can be saved, the proposal, and the comment."""

    DEFAULT_CSS = "ChoiceLines { height: auto; padding: 0 1; }"

    folds = True

    def draw(self, item: LabellingItem, width: int, height: int) -> Text:
        text = Text("chosen    ", style=palette.QUIET)
        text.append(labels_words(item.chosen) if item.chosen else "nothing yet", style=f"bold {palette.GREEN}")
        text.append("  saved" * item.saved, style=palette.GREEN)
        lines = [text]
        if item.refusal and item.chosen:
            lines.append(Text(f"not allowed: {plain_text(item.refusal, 200)}", style=f"bold {palette.ORANGE}"))
        if item.proposal is not None:
            line = Text("proposed  ", style=palette.QUIET)
            line.append(labels_words(item.proposal), style=palette.YELLOW)
            line.append(f" ({', '.join(item.proposed_slots)})" * bool(item.proposed_slots), style=palette.YELLOW)
            line.append("  you struck it" * item.struck, style=palette.RED)
            line.append("  it differs from yours" * (item.saved and item.differs), style=palette.ORANGE)
            lines.append(line)
        elif item.struck:
            lines.append(Text("you struck what was proposed here", style=palette.QUIET))
        if item.comment:
            lines.append(Text.assemble(("comment   ", palette.QUIET), f"“{plain_text(item.comment, 300)}”"))
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n").join(lines)


class InputColumns(Showing[LabellingItem]):
    """The annotators' labels side by side, without names. A label that not all gave is marked."""

    DEFAULT_CSS = "InputColumns { height: auto; padding: 0 1; border-left: thick $warning; }"

    folds = True

    def show(self, value: LabellingItem | None) -> None:
        self.display = value is not None and bool(value.inputs)
        super().show(value)

    def draw(self, item: LabellingItem, width: int, height: int) -> Text:
        inputs = item.inputs
        if not inputs:
            return Text()
        each = max(8, (width - 2 * (len(inputs) - 1)) // len(inputs))
        shared, columns = item.shared, []
        for number, one in enumerate(inputs, start=1):
            lines = [Text(f"annotator {number}", style=palette.QUIET)]
            for intent in (*(one.intents or ("",)), *one.slots):
                mark, colour = ("= ", palette.TEXT) if intent in shared else ("≠ ", f"bold {palette.ORANGE}")
                lines.append(Text(mark + (plain_text(intent, 60) if intent else "(no label)"), style=colour))
            if one.comment:
                words = Text(f"“{plain_text(one.comment, 300)}”", style=palette.QUIET)
                lines += list(words.wrap(self.app.console, each))[:3]
            columns.append(lines)
        rows = []
        for at in range(max(map(len, columns))):
            row = Text()
            for lines in columns:
                cell = lines[at].copy() if at < len(lines) else Text()
                cell.truncate(each, overflow="ellipsis", pad=True)
                row.append_text(cell)
                row.append("  ")
            rows.append(row)
        return Text("\n").join(rows)


class AnnotationEnd(Showing[AnnotationView]):
    """Counts, and what to do next."""

    DEFAULT_CSS = "AnnotationEnd { height: 1fr; padding: 1 2; }"

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def draw(self, view: AnnotationView, width: int, height: int) -> Text:
        count = view.count
        head = "All is done. Thank you." if count.total else "You have nothing to annotate here yet."
        text = Text.assemble((f"{head}\n\n", f"bold {palette.GREEN}"))
        pace = "n/a" if view.pace_s is None else f"{seconds(view.pace_s)} each"
        rows = [("done", f"{count.done} of {count.total}"), ("struck", str(count.struck)), ("pace", pace)]
        for label, words in rows:
            text.append(f"{label:<9}", style=palette.QUIET)
            text.append(f"{words}\n", style=palette.TEXT)
        text.append("\nTo see the results:  ", style=palette.QUIET)
        text.append(f"harness annotate report {self._folder}\n", style=palette.TEXT)
        text.append("New utterances appear here automatically.", style=palette.QUIET)
        return Text("\n").join(list(text.wrap(self.app.console, width))[:height])
