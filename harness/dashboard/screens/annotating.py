"""Annotation: proposals in groups, and labels by hand. A label is on the disk before the next page shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, Static

from harness.annotation.desk import AnnotationDesk
from harness.annotation.project import AnnotationRoom
from harness.annotation.view import AnnotationPhase, AnnotationView
from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.key_guard import guarded
from harness.dashboard.rating_words import DIGIT_ROW, key_name
from harness.dashboard.screens.panels import LinePrompt, Panel, ReadingPanel
from harness.dashboard.screens.sitting import SittingScreen
from harness.dashboard.widgets.annotating import (
    LONGEST,
    AnnotationEnd,
    AnnotationProgress,
    AnnotationTitle,
    ChoiceLines,
    GroupHead,
    InputColumns,
    LabelGrid,
    LabelPressed,
    PageLines,
    UtteranceText,
    WordsSelected,
    label_name,
)
from harness.dashboard.widgets.sitting_lines import MessageLine, OfferedKeys, Trouble
from harness.dashboard.widgets.written_line import WrittenLine
from harness.model.annotation import (
    LINE_KEYS,
    SLOT_ACTIONS,
    AnnotationAction,
    Example,
    Label,
    LabelSet,
    action_key,
    action_of,
    keys_of,
    label_keys,
    line_of,
)
from harness.model.understanding import joined

LONGEST_GUIDE = 2000


def guide_text(labels: LabelSet, wanted: str = "") -> Text:
    """The rules, and each label with key, description, examples and counterexamples.

    wanted: only labels that contain all of these words, in any case.
    """
    text, keys = Text(), label_keys(labels)
    words = wanted.casefold().split()
    if not words:
        text.append(f"{plain_text(labels.title or labels.id, 200)}\n", style=f"bold {palette.TEXT}")
        for line in labels.intro.splitlines():
            text.append(f"{plain_text(line, LONGEST_GUIDE)}\n", style=palette.TEXT)
        for rule in rules(labels):
            text.append(f"· {rule}\n", style=palette.TEXT)
    found = [label for label in labels.labels if _has(label, words)]
    for label in found:
        text.append(f"\n{plain_text(keys[label.id], 1) if keys[label.id] else ' '} ", style=f"bold {palette.BLUE}")
        text.append(label_name(label), style=f"bold {palette.TEXT}")
        text.append("  stands alone\n" if label.alone else "\n", style=palette.ORANGE)
        if label.description:
            text.append(f"  {plain_text(label.description, LONGEST_GUIDE)}\n", style=palette.TEXT)
        for one in label.examples:
            _example(text, "yes", one, (label.id,), palette.GREEN)
        for one in label.counterexamples:
            _example(text, "not", one, (), palette.RED)
    marks = keys_of(labels.concepts)
    for concept in (one for one in labels.concepts if _has(one, words)):
        found.append(concept)
        text.append(f"\n{plain_text(marks[concept.id], 1) or ' '} ", style=f"bold {palette.BLUE}")
        text.append(label_name(concept), style=f"bold {palette.TEXT}")
        text.append(f"  marked in the words\n  {plain_text(concept.description, LONGEST_GUIDE)}\n", style=palette.QUIET)
    if not found:
        text.append("\nno label in the guide has these words\n", style=palette.YELLOW)
    return text


def rules(labels: LabelSet) -> list[str]:
    alone = [plain_text(label.id, 60) for label in labels.labels if label.alone]
    found = [f"never beside another label: {', '.join(alone)}"] if alone else []
    found += [
        f"never together: {plain_text(first, 60)} and {plain_text(second, 60)}"
        for first, second in labels.never_together
    ]
    return [*found, "an utterance may have no label" if labels.may_be_empty else "an utterance has at least one label"]


def _example(text: Text, word: str, one: Example, labels: tuple[str, ...], colour: str) -> None:
    text.append(f"  {word} ", style=colour)
    text.append(f"“{plain_text(one.text, LONGEST_GUIDE)}”", style=palette.TEXT)
    if one.labels and one.labels != labels:
        text.append(f"  is {plain_text(joined(one.labels), 200)}", style=palette.VIOLET)
    if one.why:
        text.append(f"  {plain_text(one.why, LONGEST_GUIDE)}", style=palette.QUIET)
    text.append("\n")


def _has(label: Label, words: list[str]) -> bool:
    examples = (*label.examples, *label.counterexamples)
    parts = [label.id, label.title, label.description]
    parts += [part for one in examples for part in (one.text, one.why, *one.labels)]
    whole = " ".join(parts).casefold()
    return all(word in whole for word in words)


class GuidePanel(Panel):
    """Arrows and page keys scroll, letters search, escape and enter go back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1", "leave", "Back", priority=True),
        Binding("up", "scroll(-1)", "Up", priority=True),
        Binding("down", "scroll(1)", "Down", priority=True),
        Binding("pageup", "pages(-1)", "Page up", priority=True),
        Binding("pagedown", "pages(1)", "Page down", priority=True),
    ]
    DEFAULT_CSS = """
    GuidePanel > VerticalScroll {
        width: 100; max-width: 98%; height: 1fr; max-height: 98%; margin: 0 0 1 0;
        padding: 0 2; background: $panel; border: solid $primary; scrollbar-size-vertical: 1;
    }
    GuidePanel > Input { width: 100; max-width: 98%; height: 3; }
    """

    def __init__(self, labels: LabelSet) -> None:
        super().__init__()
        self._labels = labels

    def compose(self) -> ComposeResult:
        yield WrittenLine(placeholder="search the guide; ↑ ↓ scroll, escape goes back")
        with VerticalScroll(can_focus=False):
            yield Static(guide_text(self._labels), id="guide", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one("#guide", Static).update(guide_text(self._labels, event.value))
        self._scroll.scroll_home(animate=False)

    def action_send(self) -> None:
        self.dismiss(None)

    @property
    def _scroll(self) -> VerticalScroll:
        return self.query_one(VerticalScroll)

    def action_scroll(self, by: int) -> None:
        self._scroll.scroll_relative(y=by, animate=False)

    def action_pages(self, by: int) -> None:
        self._scroll.scroll_relative(y=by * max(1, self._scroll.size.height - 2), animate=False)


def annotator_keys(view: AnnotationView, labels: LabelSet, *, marking: bool = False) -> tuple[tuple[str, str], ...]:
    """marking: whether words are selected."""
    if marking:
        keys = _range(tuple(one for one in keys_of(labels.concepts).values() if one))
        marks = ((keys, "mark as"), ("space", "mark as ›"), ("-", "clear"), ("← →", "other words"))
        return (*marks, ("< > shift+← →", "fewer, more words"), ("escape", "labels"))
    match view.phase:
        case AnnotationPhase.REVIEWING:
            return _reviewing(view)
        case AnnotationPhase.LABELLING:
            return _labelling(view, labels)
        case AnnotationPhase.FINISHED:
            found = [("u", "undo")] if view.can_undo else []
            return (*found, ("?", "guide"), ("q", "quit"))


def _reviewing(view: AnnotationView) -> tuple[tuple[str, str], ...]:
    struck = sum(line.struck for line in view.page)
    kept = len(view.page) - struck
    words = f"accept {'all ' if kept and not struck else ''}{kept}" if kept else "accept none"
    if struck:
        words += f", label {struck} by hand"
    last = min(len(view.page), len(LINE_KEYS))
    lines = _range(LINE_KEYS[:last])
    found = [("enter", words), (lines, "strike"), ("space", "strike ›"), ("↑ ↓ j k", "move"), ("v", "whole")]
    found += [("u", "undo")] * view.can_undo
    found.append(("x", "group later"))
    found += [("l", "label by hand now")] * bool(view.count.to_label)
    return (*found, ("?", "guide"), ("q", "quit"))


def _labelling(view: AnnotationView, labels: LabelSet) -> tuple[tuple[str, str], ...]:
    def key(action: AnnotationAction) -> str:
        return action_key(action, labels)

    saved = view.item is not None and view.item.saved
    keys = [one for one in label_keys(labels).values() if one]
    found = [("enter", "next" if saved else "save"), (_range(tuple(keys)), "labels"), ("space", "label ›")]
    found += [("← → mouse", "mark words")] * bool(labels.concepts)
    found += [("=", "mark as proposed")] * bool(view.item and view.item.proposed_slots)
    found += [("↑ ↓", "move"), (key(AnnotationAction.SKIP), "skip"), (key(AnnotationAction.COMMENT), "comment")]
    found += [(key(AnnotationAction.WHOLE), "whole")]
    found += [(key(AnnotationAction.UNDO), "undo")] * view.can_undo
    found += [(key(AnnotationAction.REVIEW), "review")] * bool(view.count.to_review)
    return (*found, (key(AnnotationAction.GUIDE), "guide"), (key(AnnotationAction.QUIT), "quit"))


def _range(keys: tuple[str, ...]) -> str:
    """The keys of lines, shortened to ranges."""
    if len(keys) < 4:
        return " ".join(keys)
    if keys == LINE_KEYS[: len(keys)]:
        return f"{keys[0]}-{keys[-1]}" if len(keys) < 10 else f"1-9 0{f' a-{keys[-1]}' if len(keys) > 10 else ''}"
    return " ".join(keys) if len(keys) < 12 else "its key"


WRITING = (
    AnnotationAction.ENTER,
    AnnotationAction.SKIP,
    AnnotationAction.UNDO,
    AnnotationAction.MARK,
    AnnotationAction.COMMENT,
    AnnotationAction.CLEAR,
    AnnotationAction.TAKE,
)
"""Actions for the item that the annotator saw. The keys of labels and lines belong here too."""


class AnnotatingScreen(SittingScreen):
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-tiny"), (12, "-flat"), (20, "-low"), (32, "-tall")]  # noqa: RUF012
    GONE = "that utterance is no longer on screen; nothing was done"
    CSS_PATH = Path(__file__).with_name("annotating.tcss")

    def __init__(self, room: AnnotationRoom, desk: AnnotationDesk) -> None:
        super().__init__(room)
        self._room, self._desk, self._labels = room, desk, room.label_set
        self._keys = label_keys(room.label_set)
        self._concepts = replace(room.label_set, labels=room.label_set.concepts)
        self._at = 0
        self._selected: tuple[int, int] | None = None
        self._next_word = 0
        self._in_sight: object = None

    def compose(self) -> ComposeResult:
        yield AnnotationTitle()
        yield AnnotationProgress()
        with Vertical(id="review"):
            yield GroupHead(self._labels)
            yield PageLines()
        with Vertical(id="label"):
            yield UtteranceText(marks=bool(self._concepts.labels))
            yield InputColumns()
            yield LabelGrid(self._labels, id="labels")
            yield LabelGrid(self._concepts, id="concepts")
            yield ChoiceLines()
        yield AnnotationEnd(plain_text(str(self._room.folder.path), 200))
        yield Trouble("the page")
        yield MessageLine()
        yield OfferedKeys()

    def asked_about(self) -> object:
        item = self._desk.view.item
        return item and item.utterance

    def take_in(self) -> None:
        self._desk.refresh(self._room.rows)

    # What is shown

    def show(self) -> None:
        view = self._desk.view
        in_sight = _in_sight(view)
        if in_sight != self._in_sight:
            self._in_sight, self._at, self._next_word = in_sight, 0, 0
            self._selected = None
        guarded(self).in_sight(self, in_sight)
        for phase in AnnotationPhase:
            self.set_class(view.phase is phase, f"-{phase.value}")
        self.query_one(AnnotationTitle).show(view, self._room.project.id)
        self.query_one(AnnotationProgress).show(view)
        match view.phase:
            case AnnotationPhase.REVIEWING:
                self.query_one(GroupHead).show(view)
                self.query_one(PageLines).show(view.page, view.cursor)
            case AnnotationPhase.LABELLING:
                self.query_one(UtteranceText).show(view.item)
                self.query_one(InputColumns).show(view.item)
                self.query_one(UtteranceText).select(self._selected)
                self._show_grid(view)
                self.query_one(ChoiceLines).show(view.item)
            case AnnotationPhase.FINISHED:
                self.query_one(AnnotationEnd).show(view)
        self._show_message(view.said)
        self.query_one(OfferedKeys).show(annotator_keys(view, self._labels, marking=self._selected is not None))

    def _show_grid(self, view: AnnotationView) -> None:
        """The labels, or the concepts while words are selected."""
        item, selected = view.item, self._selected
        for name, is_shown in (("#labels", selected is None), ("#concepts", selected is not None)):
            self.query_one(name).display = is_shown
        if item is not None and selected is not None:
            here = tuple(one.concept for one in item.slots if (one.start, one.end) == selected)
            self.query_one("#concepts", LabelGrid).show(here, self._at)
        elif item is not None:
            self.query_one("#labels", LabelGrid).show(item.chosen, self._at)

    # Keys

    def on_key(self, event: events.Key) -> None:
        key = key_name(event)
        view = self._desk.view
        keys = self._keys if self._selected is None else keys_of(self._concepts.labels)
        label = next((id_ for id_, its in keys.items() if its == key), None)
        labelling = view.phase is AnnotationPhase.LABELLING
        action = action_of(key) if label is None or not labelling else None
        if action in SLOT_ACTIONS and not (labelling and self._concepts.labels):
            action = None
        line = line_of(key) if view.phase is AnnotationPhase.REVIEWING else None
        if action is None and line is None and not (label is not None and labelling):
            if key in DIGIT_ROW:
                self._tell("on this keyboard the digits need Shift; ↑ ↓ and space need none")
                self.show()
            return
        event.stop()
        event.prevent_default()
        self._said = ""
        app = guarded(self)
        if (action is None or action in WRITING) and not app.counts(event, self.on_key, self._tell):
            pass
        elif action in (None, AnnotationAction.MARK) and app.guard.is_repeat(event):
            pass  # A held key would set and clear the label again and again.
        elif action is not None:
            self._act(action, view)
        elif line is not None:
            self._strike(line)
        elif label is not None:
            self._give(label)
        self.show()

    def _give(self, label: str) -> None:
        """Gives or takes away a label; with words selected, marks them as a slot."""
        if self._selected is None:
            self._desk.toggle(label)
        elif self._desk.mark(label, *self._selected):
            self._select(None)

    # Words

    def on_words_selected(self, message: WordsSelected) -> None:
        message.stop()
        if self._concepts.labels:
            self._said = ""
            self._select((message.start, message.end))
            self.show()

    def on_label_pressed(self, message: LabelPressed) -> None:
        message.stop()
        self._said = ""
        self._give(message.id)
        self.show()

    def _select(self, words: tuple[int, int] | None) -> None:
        if (words is None) is not (self._selected is None):
            self._at = 0
        self._selected = words
        if words is not None:
            self._next_word = words[1]

    def _select_by(self, action: AnnotationAction, view: AnnotationView) -> None:
        """Moves or stretches the selection; without one, it begins behind the previous one."""
        many = len(view.item.words) if view.item is not None else 0
        start, end = self._selected or (self._next_word, self._next_word)
        if action is AnnotationAction.RIGHT:
            start = min(end, many - 1)
            end = start + 1
        elif action is AnnotationAction.LEFT:
            start = max(0, start - 1)
            end = start + 1
        else:
            end += 1 if action is AnnotationAction.FARTHER else -1
            end = min(many, max(end, start + 1))
        self._select((start, end) if 0 <= start < end <= many else None)

    def _clear(self) -> None:
        if self._selected is not None and self._desk.clear_slots(*self._selected):
            self._select(None)

    def _act(self, action: AnnotationAction, view: AnnotationView) -> None:
        labelling = view.phase is AnnotationPhase.LABELLING
        does: dict[AnnotationAction, Callable[[], object]] = {
            AnnotationAction.ENTER: lambda: self._write(self._desk.save) if labelling else self._accept(view),
            AnnotationAction.MARK: lambda: self._mark(view),
            AnnotationAction.UP: lambda: self._move(view, -1),
            AnnotationAction.DOWN: lambda: self._move(view, 1),
            AnnotationAction.UNDO: lambda: self._write(self._desk.undo),
            AnnotationAction.SKIP: lambda: self._write(self._desk.skip),
            AnnotationAction.COMMENT: lambda: self._comment(view) if labelling else self.app.bell(),
            AnnotationAction.WHOLE: lambda: self._whole(view),
            AnnotationAction.GUIDE: lambda: self.app.push_screen(GuidePanel(self._labels)),
            AnnotationAction.REVIEW: lambda: self._desk.go_to(AnnotationPhase.REVIEWING),
            AnnotationAction.LABEL: lambda: self._desk.go_to(AnnotationPhase.LABELLING),
            AnnotationAction.QUIT: lambda: self.app.exit(0),
            AnnotationAction.CLEAR: self._clear,
            AnnotationAction.TAKE: self._desk.take_proposed_slots,
            AnnotationAction.LEAVE: lambda: self._select(None),
        }
        for moves in (AnnotationAction.LEFT, AnnotationAction.RIGHT, AnnotationAction.FARTHER, AnnotationAction.NEARER):
            does[moves] = lambda: self._select_by(action, view)
        does.get(action, self.app.bell)()

    def _accept(self, view: AnnotationView) -> None:
        """Accepts only lines that were on screen; otherwise it scrolls to the others first."""
        if view.phase is not AnnotationPhase.REVIEWING:
            return
        lines = self.query_one(PageLines)
        if (unseen := lines.unseen) is not None:
            self._desk.move(unseen - view.cursor)
            lines.turn_to(unseen)
            guarded(self).cover()
            self._tell(f"{len(view.page) - unseen} lines of this page were not on screen yet: here they are")
            return
        self._write(self._desk.accept_page)

    def _strike(self, line: int) -> None:
        lines = self.query_one(PageLines)
        if line not in lines.in_sight:
            self.app.bell()
            self._tell("that line is not on screen")
        else:
            self._desk.strike_number(line + 1)

    def _mark(self, view: AnnotationView) -> None:
        if view.phase is AnnotationPhase.REVIEWING:
            self._desk.strike()
        elif view.phase is AnnotationPhase.LABELLING and self._at < len(self._listed.ids):
            self._give(self._listed.ids[self._at])

    def _move(self, view: AnnotationView, step: int) -> None:
        if view.phase is AnnotationPhase.REVIEWING:
            self._desk.move(step)
        else:
            self._at = max(0, min(len(self._listed.ids) - 1, self._at + step))

    @property
    def _listed(self) -> LabelSet:
        """The labels, or the concepts while words are selected."""
        return self._labels if self._selected is None else self._concepts

    # Panels

    def _comment(self, view: AnnotationView) -> None:
        if view.item is not None:
            prompt = LinePrompt("Comment, kept with the labels", needed=False, line=view.item.comment)
            self._ask(prompt, self._desk.comment)

    def _whole(self, view: AnnotationView) -> None:
        """The utterance under the cursor, or the one to label, with its id."""
        if view.item is not None:
            id_, text = view.item.utterance, view.item.text
        elif view.page:
            id_, text = view.page[view.cursor].utterance, view.page[view.cursor].text
        else:
            return
        whole = Text.assemble((f"{plain_text(id_, 200)}\n", palette.QUIET), plain_text(text, 10 * LONGEST), "\n")
        self.app.push_screen(ReadingPanel(whole))


def _in_sight(view: AnnotationView) -> object:
    """The item that a saving key applies to."""
    if view.item is not None:
        return view.item.utterance, view.item.proposal
    return tuple(line.utterance for line in view.page)
