"""A block of lines for each device that listens: link, figures that narrow, limits, timeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import set_cell_size
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.wake_limits import COLOURS, Standing, Wanted, of_false_accepts, of_false_rejects
from harness.dashboard.wake_wording import (
    delays,
    hours,
    plus_minus,
    rate_interval,
    rate_value,
    ratio_interval,
    ratio_value,
)
from harness.dashboard.watch import View
from harness.dashboard.widgets.funnel import Point, funnel, top_of
from harness.dashboard.widgets.lines import Lines
from harness.dashboard.widgets.timeline import legend, timeline
from harness.model.scenario import WakeSettings
from harness.wake.wake import DevicePair
from harness.wake.wake_progress import DeviceWake, Rate

FIGURES = 30
SCALE = 6
LONGEST_NAME = 20
COMPACT, FULL, TALL = 1, 2, 4
"""Lines that each figure gets."""


def lines_of(figure_lines: int) -> int:
    """Lines of a block whose figures get so many lines each."""
    return 2 * figure_lines + (2 if figure_lines == COMPACT else 3)


class DeviceBlocks(Lines):
    """As much of each device as fits, all devices alike; scrolls where not even the least fits."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", "Up", show=False),
        Binding("down", "scroll_down", "Down", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = Content("Devices  ") + Content.from_rich_text(legend())
        self._view: View | None = None
        self._shown: object = None
        self._rows: list[Text] = []
        self._lines_high = 0

    @property
    def count(self) -> int:
        return len(self._rows)

    def show(self, view: View, room: int) -> None:
        """room: lines that the screen can give to all blocks together."""
        width = max(20, self.scrollable_content_region.width)
        shown = (id(view.wake), view.declared, int(view.session_s), view.over, width, room)
        if shown == self._shown:
            return
        # The view is kept, so that no other figures can come to have its place in memory.
        self._shown, self._view = shown, view
        count = len(self._rows)
        self._rows = block_rows(view, width, room)
        height = min(len(self._rows), room) + 1
        if len(self._rows) != count or height != self._lines_high:
            self._lines_high = self.styles.height = height
            self.fit()
        self.refresh()

    def line(self, index: int, width: int) -> Text:
        return self._rows[index].copy()


def block_rows(view: View, width: int, room: int) -> list[Text]:
    """All lines of all devices, `width` characters wide."""
    devices = view.wake.devices
    if not devices:
        return [Text("no device listens yet", style=palette.QUIET)]
    compared = [_compared(one) for one in view.comparisons]
    each = (room - len(compared)) // len(devices)
    figure_lines = next((one for one in (TALL, FULL) if lines_of(one) <= each), COMPACT)
    settings = next((one.trial.listening.settings for one in view.progress.trials if one.trial.listening), None)
    rows: list[Text] = []
    for device in devices:
        rows += _block(device, view, width, figure_lines, settings or WakeSettings())
    return rows + compared


def _block(device: DeviceWake, view: View, width: int, lines: int, settings: WakeSettings) -> list[Text]:
    ratio, rate = device.false_rejects, device.after_review
    limits = view.declared.limits
    if lines == COMPACT:
        reject_words = [[f" FR    {ratio_value(ratio)} ({ratio_interval(ratio.any_time)})"]]
        accept_words = [[f" FA/h  {rate_value(rate)} ({rate_interval(rate.any_time)})"]]
    else:
        reject_words = _reject_words(device)
        accept_words = _accept_words(device)
    rejects = [
        Point(look.trials, *_around(look.false_rejects.any_time, look.false_rejects.share.value))
        for look in device.looks
        if look.false_rejects.any_time is not None
    ]
    accepts = [
        Point(look.exposure_hours, *_around(look.false_accepts.any_time, look.false_accepts.per_hour))
        for look in device.looks
        if look.false_accepts.any_time is not None
    ]
    reject_top = top_of(rejects, limits.max_false_reject_share, 1.0)
    accept_top = top_of(accepts, limits.max_false_accepts_per_hour)
    head = _head(device, view, settings)
    if lines == COMPACT:
        head.append(f" · {hours(device.exposure_s)} heard", style=palette.QUIET)
    rows = [head]
    rows += _figure(
        reject_words,
        rejects,
        reject_top,
        f"{reject_top * 100:g} %",
        of_false_rejects(device, view.declared),
        width,
        lines,
    )
    rows += _figure(
        accept_words, accepts, accept_top, f"{accept_top:g}/h", of_false_accepts(device, view.declared), width, lines
    )
    if lines != COMPACT:
        rows.append(_exposure(device))
    ended = view.over or view.progress.finished is not None
    rows.append(timeline(device.timeline, width, None if ended else view.session_s))
    return rows


def _around(interval: tuple[float, float] | None, value: float | None) -> tuple[float, float, float]:
    low, high = interval or (0.0, 0.0)
    return low, min(high, max(low, value or 0.0)), high


def _compared(one: DevicePair) -> Text:
    found = one.counts
    first, second = plain_text(one.first, 14), plain_text(one.second, 14)
    p = "n/a" if found.p is None else f"{found.p:.2g}"
    text = Text.assemble((f"{first} : {second}", f"bold {palette.TEXT}"))
    text.append(
        f"  same {found.total}: only 1st {found.only_first}, only 2nd {found.only_second} · McNemar p {p}",
        style=palette.TEXT,
    )
    return text


def _head(device: DeviceWake, view: View, settings: WakeSettings) -> Text:
    text = Text.assemble((plain_text(device.device, LONGEST_NAME), f"bold {palette.TEXT}"))
    if device.link_up:
        text.append("  link up", style=palette.GREEN)
    else:
        why = plain_text(device.link_trouble, 60)
        text.append(f"  LINK LOST{': ' if why else ''}{why}", style=f"bold {palette.RED}")
    text.append(f" · clock {plus_minus(device.clock_error_s)} · ", style=palette.QUIET)
    text.append_text(_proof(device, view, settings))
    return text


def _proof(device: DeviceWake, view: View, settings: WakeSettings) -> Text:
    """Whether it is known to listen, and since when."""
    last = device.listening_proved_s
    if last is None:
        return Text("listening unproven", style=palette.YELLOW)
    ago = max(0.0, view.session_s - last)
    since = hours(ago) if ago >= 60 else f"{ago:.0f} s"
    if view.over or view.progress.running is None:
        # Nothing is played that a proof would be needed for.
        return Text("listening proved" if view.over else f"listening last proved {since} ago", style=palette.QUIET)
    if ago > settings.proof_within_s:
        return Text(f"listening unproven for {since}", style=palette.YELLOW)
    return Text(f"listening proved {ago:.0f} s ago", style=palette.GREEN)


def _reject_words(device: DeviceWake) -> list[list[str]]:
    ratio = device.false_rejects
    return [
        [f" FR    {ratio_value(ratio)}", f"{ratio.share.count} of {ratio.share.total}"],
        [f"       any time {ratio_interval(ratio.any_time)}"],
        [f"       {f'{ratio.speakers} voices' if ratio.speakers else 'exact':<8} {ratio_interval(ratio.interval)}"],
        [f"       hits {device.hits}"],
    ]


def _accept_words(device: DeviceWake) -> list[list[str]]:
    rate = device.after_review
    return [
        [f" FA/h  {rate_value(rate)}", f"{rate.count} in {rate.hours:.3f} h"],
        [f"       any time {rate_interval(rate.any_time)}"],
        [f"       exact    {rate_interval(rate.interval)}"],
        [f"       before review {_counted(device.false_accepts)}"],
    ]


def _counted(rate: Rate) -> str:
    return f"{rate.count}, {rate_value(rate)}"


def _figure(
    words: Sequence[Sequence[str]],
    points: Sequence[Point],
    top: float,
    scale: str,
    wanted: Sequence[Wanted],
    width: int,
    lines: int,
) -> list[Text]:
    """The figure in words, how it narrowed, the scale of that, and what is wanted of it."""
    left = width - FIGURES - SCALE
    plot_width = max(8, left * (3 if lines == COMPACT else 4) // 10 if left < 60 else left // 2)
    plot = funnel(points, plot_width, lines, top)
    rows: list[Text] = []
    for index in range(lines):
        name, *more = words[index]
        text = Text(set_cell_size(f"{name}  {' '.join(more)}", FIGURES - 1) + " ", style=palette.TEXT)
        if index == 0:
            text.stylize(f"bold {palette.TEXT}", 0, len(name))
        text.append_text(plot[index])
        mark = scale if index == 0 else "0" if index == lines - 1 else ""
        text.append(set_cell_size(f" {mark}", SCALE + 1), style=palette.QUIET)
        # Most urgent first, for what does not fit is cut off.
        ordered = sorted(wanted, key=lambda one: list(Standing).index(one.standing))
        for place, one in enumerate(ordered[index::lines]):
            text.append("  " if place else "", style=palette.QUIET)
            text.append(f"{one.text} ", style=palette.TEXT)
            text.append(one.standing.value, style=COLOURS[one.standing])
        rows.append(text)
    return rows


def _exposure(device: DeviceWake) -> Text:
    """What was heard with and without proof, and what else is known; what matters least stands last."""
    text = Text(" heard ", style=palette.QUIET)
    text.append(f"{hours(device.exposure_s)} proved", style=palette.TEXT)
    text.append(
        f", {hours(device.unproven_s)} unproven", style=palette.YELLOW if device.unproven_s >= 1 else palette.QUIET
    )
    parts = [delays(device)]
    if device.probes.total:
        parts.insert(0, f"probes {device.probes.count} of {device.probes.total}")
    if device.commands.total:
        parts.append(f"commands {device.commands.count} of {device.commands.total}")
    if device.ambient_events_outside:
        parts.append(f"{device.ambient_events_outside} outside exposure")
    if device.uncounted_events:
        parts.append(f"{device.uncounted_events} in trials that do not count")
    if device.in_vocabulary_events:
        parts.append(f"{device.in_vocabulary_events} in wake trials")
    if device.suppressed:
        parts.append(f"{device.suppressed} within refractory")
    text.append("".join(f" · {part}" for part in parts), style=palette.QUIET)
    return text
