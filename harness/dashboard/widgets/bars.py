"""Lines across the screen: title, progress, notice and keys."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Generic, TypeVar

from rich.cells import cell_len, chop_cells
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from harness.base.foreign import plain_text, shell_word
from harness.dashboard import palette
from harness.dashboard.watch import Notice, View
from harness.dashboard.wording import query_text, screen_text
from harness.model.calibration import short_calibration
from harness.model.feed import StateChanged, StateWord
from harness.model.numbers import fixed, percent, time_left
from harness.model.scenario import TrialKind
from harness.session.figures.trials import TrialProgress
from harness.session.wording import cut, interrupted_in_words


class TextWidget(Widget):
    """A widget that draws text. Subclasses set their value and call `refresh`; `paint` returns the text for a size."""

    DEFAULT_CSS = "TextWidget { text-wrap: nowrap; text-overflow: ellipsis; }"

    def paint(self, width: int, height: int) -> Text:
        raise NotImplementedError

    def render(self) -> Text:
        return self.paint(max(1, self.content_size.width), max(1, self.content_size.height))


T = TypeVar("T")


class ValueWidget(TextWidget, Generic[T]):
    """Shows one value, drawn again when it changes; empty before the first. Subclasses define `draw`."""

    has_variable_height: ClassVar[bool] = False
    """Whether its height depends on its value."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shown: T | None = None

    def show(self, value: T | None) -> None:
        if value != self.shown:
            self.shown = value
            self.refresh(layout=self.has_variable_height)

    def paint(self, width: int, height: int) -> Text:
        return Text() if self.shown is None else self.draw(self.shown, width, height)

    def draw(self, value: T, width: int, height: int) -> Text:
        raise NotImplementedError


def progress_bar(share: float, width: int) -> Text:
    """A bar of `width` cells, filled up to the share, 0–1."""
    filled = round(share * width)
    return Text.assemble(("━" * filled, palette.GREEN), ("─" * (width - filled), palette.RULE))


def key_words(keys: Sequence[tuple[str, str]], gap: str = "  ") -> Text:
    """Keys with what they do, on one line."""
    text = Text()
    for key, meaning in keys:
        text.append(key, style=f"bold {palette.BLUE}")
        text.append(f" {meaning}{gap}", style=palette.TEXT)
    return text


def named_title(widget: Widget, before: str, name: str) -> Content:
    """A border title, as content, since text would be read as markup. A long name loses its middle, not its end."""
    name = plain_text(name, 200)
    name_width = widget.outer_size.width - len(before) - 4
    if name_width > 4:
        name = cut(name, name_width, name_width // 2)
    return Content(before + name)


def highlight(text: Text, width: int) -> Text:
    """Colours a selected line up to the edge, and returns it."""
    text.pad_right(max(0, width - text.cell_len))
    text.stylize(Style(bgcolor=palette.SELECTED))
    return text


def move_keys(before: str, after: str, first: str, end: tuple[str, str]) -> list[BindingType]:
    """Keys that move the selection of a list. end: action and meaning of the end key."""
    moves = (("up", -1, before), ("down", 1, after), ("pageup", -10, "Back 10"), ("pagedown", 10, "Forward 10"),
             ("home", -1000000, first))  # fmt: skip
    bindings = [Binding(key, f"move({step})", meaning, show=False) for key, step, meaning in moves]
    return [*bindings, Binding("end", *end, show=False)]


class RowList(ScrollView, can_focus=True):
    """A list that scrolls. Subclasses define `count` and `line`. Only the visible rows are drawn."""

    DEFAULT_CSS = """
    RowList {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        background: $background;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-color: $panel-lighten-3;
    }
    """

    @property
    def count(self) -> int:
        raise NotImplementedError

    def line(self, index: int, width: int) -> Text:
        raise NotImplementedError

    def fit(self) -> None:
        """Adapts the list to the number of rows. Call it when that has changed."""
        self.virtual_size = Size(self.scrollable_content_region.width, self.count)
        self.refresh()
        self.call_after_refresh(self.update_scroll_bar)

    def on_resize(self) -> None:
        self.call_after_refresh(self.update_scroll_bar)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        # Textual does not move a bar that is hidden. A list that is scrolled just before its bar is shown needs it.
        self.vertical_scrollbar.position = new_value

    def update_scroll_bar(self) -> None:
        """Updates the scroll bar, which Textual does not always do when the list becomes lower."""
        bar = self.vertical_scrollbar
        bar.window_virtual_size = self.virtual_size.height
        bar.window_size = self.scrollable_content_region.height

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        if index >= self.count or width < 1:
            return Strip.blank(self.size.width, self.rich_style)
        text = self.line(index, width)
        text.truncate(width, overflow="ellipsis")
        text.end = ""
        strip = Strip(text.render(self.app.console)).apply_style(self.rich_style)
        return strip.adjust_cell_length(self.size.width, self.rich_style)


LETTER_HEIGHT = 5  # rows of a letter in letters.txt

_BLOCKS = [block.splitlines() for block in screen_text("letters.txt").split("\n\n")]
_GLYPHS = {" " if name == "space" else name: rows for name, *rows in _BLOCKS}
"""Character → its rows of dots."""


def _dot_rows(text: str) -> list[str]:
    """Text as rows of `#` and `.`; characters without a large letter are left out."""
    glyphs = [_GLYPHS[character] for character in text if character in _GLYPHS]
    return [".".join(glyph[row] for glyph in glyphs) for row in range(LETTER_HEIGHT)]


def small_letters(text: str) -> list[str]:
    """Three lines of text; each cell shows two dots, one above the other."""
    rows = _dot_rows(text)
    rows.append("." * len(rows[0]))  # an even number of rows
    shapes = {("#", "#"): "█", ("#", "."): "▀", (".", "#"): "▄", (".", "."): " "}
    return [
        "".join(shapes[pair] for pair in zip(rows[y], rows[y + 1], strict=True)) for y in range(0, LETTER_HEIGHT, 2)
    ]


def large_letters(text: str) -> list[str]:
    """Five lines of text; a dot is two cells wide."""
    return ["".join("██" if dot == "#" else "  " for dot in row) for row in _dot_rows(text)]


class LargeText(ValueWidget[tuple[str, str, str]]):
    """Where to stand, what to do, and what to say: the last in the largest letters for which there is room."""

    def draw(self, value: tuple[str, str, str], width: int, height: int) -> Text:
        place, say, text = (plain_text(part, 300) for part in value)
        sizes = ((large_letters, small_letters), (small_letters, small_letters), (small_letters, None), (None, None))
        for draw_text, draw_place in sizes:
            text_rows, is_exact = _letter_rows(text, draw_text, width)
            place_rows, _ = _letter_rows(place, draw_place, width) if place else ([], True)
            rows = [*place_rows, "", say, "", *text_rows]
            if not is_exact:
                rows += ["", *_plain_rows(text, width)]
            if len(rows) <= height and max(map(cell_len, rows)) <= width:
                break
        return Text("\n".join(rows), style=f"bold {palette.TEXT}")


def _letter_rows(line: str, draw: Callable[[str], list[str]] | None, width: int) -> tuple[list[str], bool]:
    """The line in rows of large letters, and whether each letter is drawn as it is written (é is drawn as E).

    As plain text if `draw` is None, and in a script without large letters.
    """
    letters = [(character, _letter(character)) for character in line]
    if draw is None or not all(letter for _, letter in letters):
        return _plain_rows(line, width), True
    draw_line = draw
    words = "".join(letter for _, letter in letters).split()
    lines = _wrap(words, width, lambda text: len(draw_line(text)[0]))
    rows = [row for wrapped in lines for row in (*draw(wrapped), "")]
    return rows[:-1], all(letter == typed.upper() for typed, letter in letters)


def _plain_rows(line: str, width: int) -> list[str]:
    """The line in rows of at most `width` cells. Also breaks words: some scripts have no spaces."""
    return _wrap((part for word in line.split() for part in chop_cells(word, width)), width, cell_len)


def _wrap(words: Iterable[str], width: int, width_of: Callable[[str], int]) -> list[str]:
    """The words in lines, each as full as `width` allows."""
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _letter(character: str) -> str:
    """The large letter for a character, if need be without its accents; "" without one."""
    unaccented = unicodedata.normalize("NFKD", character)[:1].upper()
    return next((letter for letter in (character.upper(), unaccented) if letter in _GLYPHS), "")


TIMED_STATES = frozenset({StateWord.LISTENING, StateWord.ASKING, StateWord.INTERRUPTED})
"""States whose remaining time is shown; the others end long before their timeout."""


def state_words(view: View) -> tuple[str, str]:
    """The word for the state, which is shown in large letters, and its colour."""
    if view.gone_reason is not None:
        return "ENGINE GONE", palette.RED
    if view.state is None:
        return "CONNECTING", palette.QUIET
    word = view.state.word
    colour = palette.STATES[word]
    if word is StateWord.WAITING and view.remaining_s is not None:
        return f"{word.in_words} {fixed(view.remaining_s, 0, 's')}", colour
    return word.in_words, colour


def state_line(view: View) -> str:
    """Trial, attempt, query and reason, escaped."""
    state = view.state
    if view.gone_reason is not None:
        return view.gone_reason
    if state is None:
        return "waiting for the engine"
    parts = list(_operator_prompts(view, state))
    is_interrupted = state.word is StateWord.INTERRUPTED
    if is_interrupted and state.reason:  # the reason comes first, since the end may be cut off
        parts.append(plain_text(state.reason, 120))
    trial = view.progress.trial(state.trial_id) if state.trial_id else None
    if trial is not None:
        parts.append(f"trial {trial.trial.number} of {len(view.progress.trials)}")
        listening = trial.trial.listening
        is_ambient = listening is not None and listening.kind is TrialKind.AMBIENT
        if listening is None and state.attempt is not None:
            parts.append(_attempt_text(state.attempt, trial))
        elif listening is not None and not is_ambient:
            parts.append(listening.kind.value)
        query = query_text(trial.trial)
        parts.append(query if is_ambient else f"“{query}”")
    if view.remaining_s is not None and state.word in TIMED_STATES:
        parts.append(f"{fixed(view.remaining_s, 0)} s left")
    if state.reason and not is_interrupted and state.word not in (StateWord.ASKING, StateWord.PAUSED):
        parts.append(plain_text(state.reason, 120))
    return " · ".join(parts)


def _attempt_text(number: int, trial: TrialProgress) -> str:
    """`attempt 4 of 4 (1 interrupted)`: interrupted ones are repeated, beyond those that the scenario allows."""
    interrupted = 0 if trial.current is None else trial.current.interrupted
    max_attempts = trial.trial.reprompt.max_attempts + interrupted
    return f"attempt {number} of {max_attempts}{interrupted_in_words(interrupted)}"


def _operator_prompts(view: View, state: StateChanged) -> Iterator[str]:
    """Words on what the operator must do. They come first, so that they are never cut off."""
    if state.word is StateWord.ASKING:
        yield "o shows the question"
    elif state.word is StateWord.PAUSED:
        why = plain_text(state.reason, 60)
        yield f"{'paused ' if why.startswith('by ') else ''}{why}, p continues"
    elif view.progress.paused is not None:
        yield "pauses after this attempt"


class StateWordBanner(ValueWidget[tuple[str, str]]):
    """The state in letters of five lines, or of three if there is little room."""

    DEFAULT_CSS = "StateWordBanner { height: 3; padding: 0 1; }"

    def show_view(self, view: View) -> None:
        self.show(state_words(view))

    def paint(self, width: int, height: int) -> Text:
        word, colour = self.shown or ("CONNECTING", palette.QUIET)
        rows = large_letters(word)
        if height < len(rows) or len(rows[0]) > width:
            rows = small_letters(word)
        if len(rows[0]) > width:
            rows = [word]
        return Text("\n".join(rows), style=colour)


class TextLine(TextWidget):
    """One line of text."""

    DEFAULT_CSS = "TextLine { height: 1; padding: 0 1; }"

    def __init__(self, text: Text | None = None, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._text = text or Text()

    def write(self, text: Text) -> None:
        if text != self._text or text.spans != self._text.spans:
            self._text = text
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        return self._text.copy()


class TextBlock(Static):
    """Text of as many lines as it takes. A redraw that changes nothing costs no layout of the screen."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, markup=False)

    def write(self, text: Text) -> None:
        if text != self.content:
            self.update(text)


class TitleLine(TextLine):
    DEFAULT_CSS = "TitleLine { background: $panel; }"

    def show_view(self, view: View) -> None:
        session = view.progress.session
        if session is None:
            self.write(Text("voice-harness", style=palette.QUIET))
            return
        server, *calibrations = session.sound_path.split("; ")
        short_calibrations = filter(None, map(short_calibration, calibrations))
        facts = [
            f"on {plain_text(session.bench_id, 20)}",
            *(plain_text(calibration, 80) for calibration in short_calibrations),
            plain_text(session.session_id, 40),
            f"sound: {plain_text(server, 40)}",
        ]
        title = plain_text(session.title or session.scenario_id, 40)
        text = Text.assemble((title, f"bold {palette.TEXT}"))
        for fact in facts:
            text.append(f"  {fact}", style=palette.QUIET)
        self.write(text)


class StateLine(TextLine):
    def show_view(self, view: View) -> None:
        self.write(Text(state_line(view), style=palette.TEXT))


class ProgressLine(ValueWidget[tuple[float | None, str]]):
    """A bar, the count and the time left."""

    DEFAULT_CSS = "ProgressLine { height: 1; padding: 0 1; }"

    def show_view(self, view: View) -> None:
        totals, progress = view.progress.totals, view.progress
        all_played = totals.planned > 0 and totals.finished == totals.planned and progress.running is None
        if progress.finished:
            ending = "finished"
        elif all_played:
            ending = "all played"
        else:
            ending = time_left(progress.eta_s)
        share = totals.finished / totals.planned if totals.planned else None
        self.show((share, f"{totals.finished_in_words}, {percent(share, 0)} · {ending}"))

    def paint(self, width: int, height: int) -> Text:
        share, words = self.shown or (None, "")
        bar = progress_bar(share or 0.0, max(4, width - max(46, len(words) + 2)))
        return bar.append(f"  {words}", style=palette.TEXT)


class NoticeLine(TextLine):
    """The answer to the last command."""

    def show(self, notice: Notice | None) -> None:
        if notice is None:
            self.write(Text())
            return
        colour = palette.YELLOW
        if notice.ok is not None:
            colour = palette.GREEN if notice.ok else palette.RED
        self.write(Text(plain_text(notice.text, 160), style=colour))


class KeyBar(ValueWidget[tuple[tuple[str, str], ...]]):
    """The keys that work here, always on screen, wrapped onto several lines if needed. keys: the first ones."""

    DEFAULT_CSS = "KeyBar { height: auto; min-height: 1; max-height: 4; padding: 0 1; background: $panel; }"
    has_variable_height = True

    def __init__(self, keys: tuple[tuple[str, str], ...] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shown = keys

    def draw(self, value: tuple[tuple[str, str], ...], width: int, height: int) -> Text:
        lines, line = [], Text()
        for key in value:
            key_text = key_words((key,), "")
            if len(line) and line.cell_len + 2 + key_text.cell_len > width:
                lines.append(line)
                line = Text()
            line.append("  " if len(line) else "")
            line.append_text(key_text)
        lines.append(line)
        return Text("\n").join(lines)


class StateStrip(TextLine):
    """The state in one line, for screens without the large word."""

    def show_view(self, view: View) -> None:
        word, colour = state_words(view)
        self.write(Text.assemble((word, f"bold {colour}"), (f"  {state_line(view)}", palette.QUIET)))


class GoneBanner(ValueWidget[tuple[str, str, str]]):
    """What to do when the engine is gone; hidden while it runs."""

    DEFAULT_CSS = """
    GoneBanner { height: 3; padding: 0 1; background: $panel; border-left: thick $error; display: none; }
    GoneBanner.-shown { display: block; }
    """

    def show_view(self, view: View) -> None:
        folder = shell_word(view.welcome.session_folder) if view.welcome else "SESSION"
        lines = None
        if view.gone_reason is not None:
            lines = (
                f"The engine is gone: {view.gone_reason}",
                "Nothing that was logged is lost. To continue where it stopped:",
                f"harness run resume {folder}",
            )
        elif view.goodbye is not None:
            why = plain_text(view.goodbye.reason, 120) or "the session is over"
            lines = (
                f"The engine has ended: {why} (exit status {view.goodbye.exit_code})",
                "Leave with ctrl+q. Show the results at any time with:",
                f"harness report show {folder}",
            )
        self.set_class(lines is not None, "-shown")
        self.show(lines)

    def draw(self, value: tuple[str, str, str], width: int, height: int) -> Text:
        headline, advice, command = value
        return Text.assemble(
            f"{headline}\n",
            (f"{advice}\n", palette.TEXT),
            (command, f"bold {palette.YELLOW}"),
            style=f"bold {palette.TEXT}",
        )


ViewWidget = TitleLine | StateLine | StateWordBanner | ProgressLine | StateStrip | GoneBanner
