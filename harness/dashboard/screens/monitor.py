"""The device monitor: a device's lines on the left, the profile's events on the right."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import ClassVar

from rich.cells import set_cell_size
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.screens.panels import HelpPanel
from harness.dashboard.widgets.bars import RowList, TextBlock, move_keys
from harness.dashboard.wording import screen_text
from harness.devices.device_monitor import DeviceMonitor, MonitorRow
from harness.devices.device_sources import DeviceSource, Picture, ShowsPicture, take_outputs
from harness.model.numbers import local_time

MAX_ROWS = 5000
REDRAW_S = 0.1
MAX_BYTES_PER_REDRAW = 64 * 1024  # 640 kB a second, more than a serial port delivers.
CLOCK_WIDTH = 13  # columns of hh:mm:ss.mmm and a blank
PICTURE_COLUMNS, PICTURE_ROWS = 36, 10

HELP = screen_text("monitor.txt")


class MonitorRows(RowList):
    """The last rows in two columns. Follows the newest until you choose a line."""

    BINDINGS: ClassVar[list[BindingType]] = move_keys("Previous line", "Next line", "First line", ("follow", "Newest"))

    def __init__(self, *, unmapped: bool) -> None:
        super().__init__(id="rows")
        self.only_unmapped = unmapped
        self.is_following = True
        self._all_rows: deque[MonitorRow] = deque(maxlen=MAX_ROWS)
        self._waiting: deque[MonitorRow] = deque(maxlen=MAX_ROWS)
        self._shown_rows: list[MonitorRow] = []
        self._chosen_index = -1

    @property
    def count(self) -> int:
        return len(self._shown_rows)

    @property
    def chosen(self) -> MonitorRow | None:
        if not self._shown_rows:
            return None
        if self.is_following:
            return self._shown_rows[-1]
        return self._shown_rows[min(self._chosen_index, len(self._shown_rows) - 1)]

    @property
    def waiting_count(self) -> int:
        """Number of rows that wait until the list follows again."""
        return len(self._waiting)

    def extend(self, rows: list[MonitorRow]) -> None:
        """Adds rows; while paused they wait."""
        if not rows:
            return
        if not self.is_following:
            self._waiting.extend(rows)
            return
        self._all_rows.extend(rows)
        self._apply_filter()

    def replace(self, rows: list[MonitorRow]) -> None:
        """Shows these rows only. A chosen line stays in place."""
        self._all_rows.clear()
        self._waiting.clear()
        self._all_rows.extend(rows)
        self._apply_filter()

    def set_only_unmapped(self, only: bool) -> None:
        self.only_unmapped = only
        self._apply_filter()

    def pause(self) -> None:
        self.is_following = False
        self._chosen_index = max(0, len(self._shown_rows) - 1)
        self.refresh()

    def action_follow(self) -> None:
        self.is_following = True
        self._all_rows.extend(self._waiting)
        self._waiting.clear()
        self._apply_filter()

    def action_move(self, step: int) -> None:
        if self.is_following:
            self.pause()
        self._chosen_index = min(max(0, self._chosen_index + step), max(0, len(self._shown_rows) - 1))
        self.scroll_to(y=max(0, self._chosen_index - self.size.height // 2), animate=False)
        self.refresh()

    def on_resize(self) -> None:
        self._scroll_to_newest()

    def _apply_filter(self) -> None:
        self._shown_rows = [row for row in self._all_rows if not (self.only_unmapped and row.mapped)]
        self.fit()
        self._scroll_to_newest()

    def _scroll_to_newest(self) -> None:
        if self.is_following:
            self.call_after_refresh(self.scroll_end, animate=False)

    def line(self, index: int, width: int) -> Text:
        row = self._shown_rows[index]
        clock = local_time(row.wall_s)
        columns_width = max(8, width - CLOCK_WIDTH - 3)
        line_width = columns_width * 11 // 20
        style = f"on {palette.SELECTED}" if not self.is_following and index == self._chosen_index else ""
        text = Text(f"{clock} ", style=style)
        text.stylize(palette.QUIET)
        # Foreign text may hold wide characters: cut it to its column here.
        text.append(_fit_width(row.said, line_width), palette.TEXT)
        if row.mapped:
            separator, outcome, colour = " > ", row.made, palette.GREEN
        else:
            separator, outcome = " - ", row.why or "not mapped"
            colour = palette.YELLOW if row.why else palette.QUIET
        if row.times:
            outcome = f"({row.times}) {outcome}"
        text.append(separator, palette.RULE)
        return text.append(_fit_width(outcome, columns_width - line_width), colour)


class MonitorApp(App[None]):
    """Reads a bounded number of bytes ten times a second, so that keys still work in a flood."""

    CSS = f"""
    Screen {{ background: {palette.BACKGROUND}; }}
    #head {{ height: 1; background: {palette.PANEL}; padding: 0 1; }}
    #rows {{ height: 1fr; padding: 0 1; }}
    #picture {{ height: auto; padding: 0 1; display: none; }}
    #problem {{ height: auto; max-height: 6; color: {palette.RED}; padding: 0 1; display: none; }}
    #notice {{ height: 1; color: {palette.CYAN}; padding: 0 1; }}
    """
    TITLE = "device monitor"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,p", "pause", "Pause"),
        Binding("u", "unmapped", "Unmapped only"),
        Binding("c", "sample", "Copy as sample"),
        Binding("question_mark,f1", "help", "Help"),
        Binding("q,ctrl+q,ctrl+c", "quit", "Quit", priority=False),
    ]

    def __init__(self, monitor: DeviceMonitor, source: DeviceSource, snippets: Path, *, unmapped: bool) -> None:
        super().__init__()
        self._monitor = monitor
        self._source = source
        self._snippets = snippets
        self._rows = MonitorRows(unmapped=unmapped)
        self._notice_text = ""

    def compose(self) -> ComposeResult:
        yield TextBlock(id="head")
        yield TextBlock(id="picture")
        yield self._rows
        yield TextBlock(id="problem")
        yield TextBlock(id="notice")
        yield Footer()

    def on_mount(self) -> None:
        self.register_theme(palette.THEME)
        self.theme = palette.THEME.name
        self._rows.focus()
        self.set_interval(REDRAW_S, self.redraw)

    def redraw(self) -> None:
        """Reads new lines, and applies the profile anew if its file has changed."""
        if not self.is_running or not self._rows.is_mounted:
            return
        rows: list[MonitorRow] = []
        for output in take_outputs(self._source, MAX_BYTES_PER_REDRAW):
            rows += self._monitor.feed(output)
        self._rows.extend(rows)
        if self._monitor.reload_if_changed(time.monotonic()) and not self._monitor.problem:
            self._notice_text = "the profile was reloaded and applied to all lines"
            self._rows.replace(self._monitor.replay())
        self._show()

    def _show(self) -> None:
        monitor, source = self._monitor, self._source
        # The most important comes first: a narrow screen cuts the end.
        parts = (
            (True, f"lines {monitor.lines}, not mapped {monitor.unmapped}"),
            (not self._rows.is_following, f"PAUSED, {self._rows.waiting_count} waiting"),
            (self._rows.only_unmapped, "unmapped only"),
            (source.queue.lost_bytes, f"{source.queue.lost_bytes} bytes arrived too fast"),
            (source.ended, "ended"),
            (True, f"{monitor.profile.id} · {source.name}"),
        )
        if isinstance(source, ShowsPicture):
            picture = self.query_one("#picture", TextBlock)
            picture.write(picture_text(source.picture(PICTURE_COLUMNS, 2 * PICTURE_ROWS), monitor.latest))
            picture.display = True
        head = self.query_one("#head", TextBlock)
        head.write(Text(plain_text("  ".join(words for applies, words in parts if applies)), style=palette.TEXT))
        problem = self.query_one("#problem", TextBlock)
        problem_text = "\n".join(filter(None, (monitor.problem, monitor.noise, plain_text(source.trouble))))
        problem.write(Text(problem_text, style=palette.RED))
        problem.display = bool(problem_text)
        notice = self.query_one("#notice", TextBlock)
        notice.write(Text(plain_text(self._notice_text), style=palette.CYAN))

    def action_pause(self) -> None:
        if self._rows.is_following:
            self._rows.pause()
        else:
            self._rows.action_follow()
        self._show()

    def action_unmapped(self) -> None:
        self._rows.set_only_unmapped(not self._rows.only_unmapped)
        self._show()

    def action_sample(self) -> None:
        row = self._rows.chosen
        if row is None or not row.snippet:
            self._notice_text = "this line is not a complete sample: choose the line that completes it"
        else:
            try:
                with self._snippets.open("a", encoding="utf-8") as file:
                    file.write(row.snippet)
            except OSError as error:
                self._notice_text = f"{self._snippets} cannot be written: {error.strerror}"
            else:
                self.copy_to_clipboard(row.snippet)
                self._notice_text = f"added to {self._snippets}: paste it under `samples:` in the profile"
        self._show()

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpPanel):
            self.push_screen(HelpPanel(HELP))


def run_monitor(monitor: DeviceMonitor, source: DeviceSource, snippets: Path, *, unmapped: bool) -> None:
    MonitorApp(monitor, source, snippets, unmapped=unmapped).run()


def picture_text(picture: Picture, latest: str) -> Text:
    """A camera's picture beside its rectangle, two pixels per character, and the current numbers below."""
    text = Text()
    for row in range(0, len(picture[0]), 2):
        for image in picture:
            for upper, lower in zip(image[row], image[row + 1], strict=True):
                text.append("▀", f"{_hex_colour(upper)} on {_hex_colour(lower)}")
            text.append("  ")
        text.append("\n")
    return text.append(latest, palette.CYAN)


def _hex_colour(pixel: tuple[int, int, int]) -> str:
    red, green, blue = pixel
    return f"#{red:02x}{green:02x}{blue:02x}"


def _fit_width(text: str, width: int) -> str:
    """A text cut or filled with spaces to this many cells. A text that is cut ends in an ellipsis."""
    cut = set_cell_size(text, width)
    return cut if cut.rstrip() == text.rstrip() else set_cell_size(text, max(0, width - 1)) + "…"
