"""Widgets of wake results: limits in words, the funnel of a rate, the timeline of events, a block per device."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.cells import set_cell_size
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content

from harness.base.foreign import plain_text
from harness.base.grouping import group_by
from harness.base.text_table import note
from harness.dashboard import palette
from harness.dashboard.watch import View
from harness.dashboard.widgets.bars import RowList
from harness.model.frozen import frozen
from harness.model.numbers import NOTHING, exact, exposure, fixed, hours, number, p_is, percent, seconds
from harness.model.scenario import WakeSettings
from harness.session.figures.limits import limits_so_far
from harness.statistics.text import TOO_FEW_VOICES, clocks, number_interval, percent_interval
from harness.statistics.verdict import SEVERITY, DeclaredLimit, LimitVerdict
from harness.wake.reports.figures_text import correction_note, disagreements, heard_sentence
from harness.wake.wake import DevicePair
from harness.wake.wake_progress import DeviceWake, MarkKind, Ratio, TimelineMark

COLOURS = {
    LimitVerdict.PASS: palette.GREEN,
    LimitVerdict.MARGINAL: palette.YELLOW,
    LimitVerdict.OPEN: palette.YELLOW,
    LimitVerdict.UNDECIDED: palette.YELLOW,
    LimitVerdict.FAIL: palette.RED,
}
_REJECTS = {
    "max_false_reject_share": "",
    "max_false_reject_upper": "upper ",
    "false_rejects_test": "test",
    "min_command_share": "commands ",
    "max_wake_delay_p95_ms": "p95 ",
    "max_first_sound_p95_ms": "sound ",
    "max_request_gap_ms": "pause ",
}
_ACCEPTS = {
    "max_false_accepts_per_hour": "",
    "max_false_accepts_upper_per_hour": "upper ",
    "false_accepts_test": "test",
    "min_exposure_hours": "",
}
"""Short names of limits, shown beside the result that they limit; rates are per hour."""


@frozen
class LimitText:
    """A limit as text, such as `≤ 5 %`, and its verdict."""

    text: str
    verdict: LimitVerdict


def limits_of(view: View) -> dict[str, dict[str, DeclaredLimit]]:
    """The limits and tests of each device by their keys, by the rule that sets the exit status."""
    limits = limits_so_far(view.declared.limits, view.declared.stopping, view.judged, view.wake)
    keys = (limit.name.removesuffix("]").partition("[") for limit in limits)
    by_device = group_by((device, (key, limit)) for (key, _, device), limit in zip(keys, limits, strict=True))
    return {device: dict(pairs) for device, pairs in by_device.items()}


def limits_beside(names: Mapping[str, str], limits: Mapping[str, DeclaredLimit]) -> list[LimitText]:
    return [
        LimitText(name if limits[key].of_test else f"{name}{limits[key].wanted_text}", limits[key].verdict)
        for key, name in names.items()
        if key in limits
    ]


_BRAILLE_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # Added to U+2800, by row and column.
MIN_BAND_DOTS = 3
"""Least height of a band with a line of its own, in dots."""

# The present band and the limit end at five eighths of the height at most, so that wider bands show above them.
_HEADROOM = 1.6
_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


@frozen
class Point:
    """A rate after this many trials or hours, low ≤ value ≤ high."""

    after: float
    low: float
    value: float
    high: float


def nice_top(value: float) -> float:
    """The smallest round number that is not below the value, which is > 0."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step * scale for step in _STEPS if step * scale >= value * (1 - 1e-9))


def top_of(points: Sequence[Point], limit: float | None, highest: float = math.inf) -> float:
    """The end of the scale: it fits the present band and the limit. Earlier, wider bands are cut."""
    last = points[-1] if points else None
    least_top = _HEADROOM * max(0.0 if last is None else last.high, 0.0 if limit is None else limit)
    return min(highest, nice_top(least_top))


def funnel(points: Sequence[Point], width: int, height: int, top: float) -> list[Text]:
    """The band as `height` lines of `width` characters, from 0 to `top`; the rate is the free line."""
    if not points:
        return [Text("·" * width if row == height - 1 else " " * width, style=palette.RULE) for row in range(height)]
    dots_high, dots_wide = height * 4, width * 2
    band = [[0] * width for _ in range(height)]
    lined: list[set[int]] = [set() for _ in range(height)]
    for column, point in enumerate(_columns(points, dots_wide)):
        low, value, high = (
            min(dots_high - 1, int(max(0.0, rate) / top * dots_high)) for rate in (point.low, point.value, point.high)
        )
        # A rate beyond the scale has no line: it would seem to be at the edge.
        line = value if point.value <= top and height > 1 and high - low >= MIN_BAND_DOTS else None
        for y in range(low, high + 1):
            row, within = divmod(dots_high - 1 - y, 4)
            if y == line:
                lined[row].add(column // 2)
            else:
                band[row][column // 2] |= _BRAILLE_DOTS[within][column % 2]
    rows: list[Text] = []
    for cells, bright in zip(band, lined, strict=True):
        text = Text()
        for cell, bits in enumerate(cells):
            text.append(chr(0x2800 + bits) if bits else " ", style=palette.CYAN if cell in bright else palette.BLUE)
        rows.append(text)
    return rows


def _columns(points: Sequence[Point], count: int) -> list[Point]:
    """The latest point at each of `count` equal steps from zero to the last."""
    column_points: list[Point] = []
    index = 0
    whole = points[-1].after
    for column in range(count):
        place = whole * (column + 1) / count
        while index + 1 < len(points) and points[index + 1].after <= place * (1 + 1e-12):
            index += 1
        column_points.append(points[index])
    return column_points


GLYPHS: dict[MarkKind, str] = {
    MarkKind.HIT: "✓",
    MarkKind.FALSE_REJECT: "✗",
    MarkKind.UNMATCHED: "!",
    MarkKind.AMBIENT: "░",
    MarkKind.INTERRUPTED: "~",
    MarkKind.PROBE: "p",
    MarkKind.PROBE_UNHEARD: "p",
}
LEGEND = (
    (MarkKind.HIT, "hit"),
    (MarkKind.FALSE_REJECT, "false reject"),
    (MarkKind.UNMATCHED, "unmatched"),
    (MarkKind.AMBIENT, "ambient"),
    (MarkKind.INTERRUPTED, "interrupted"),
)
SPANS_S = (5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0, 7200.0, 21600.0, 86400.0)
LABEL = 9

# Priority within one character: a later mark hides an earlier one.
_RANK = (
    MarkKind.AMBIENT,
    MarkKind.PROBE,
    MarkKind.HIT,
    MarkKind.INTERRUPTED,
    MarkKind.PROBE_UNHEARD,
    MarkKind.FALSE_REJECT,
    MarkKind.UNMATCHED,
)


def legend() -> Text:
    pairs = (((GLYPHS[kind], palette.MARKS[kind]), (f" {word}  ", palette.QUIET)) for kind, word in LEGEND)
    text = Text.assemble(*(part for pair in pairs for part in pair))
    text.rstrip()
    return text


def span_s(marks: Sequence[TimelineMark], columns: int) -> float:
    """The time that the strip covers: all marks, or a third as many as there are columns."""
    if not marks:
        return SPANS_S[0]
    last = max(mark.end_s for mark in marks)
    shown_count = max(1, min(len(marks), columns // 3))
    oldest = sorted((mark.start_s for mark in marks), reverse=True)[shown_count - 1]
    return next((span for span in SPANS_S if last - oldest <= span), SPANS_S[-1])


def timeline(marks: Sequence[TimelineMark], width: int, now_s: float | None = None) -> Text:
    """One line: how far back it reaches, and the marks up to the last one.

    now_s: the present time on the clock of the marks; sound after it is not drawn.
    """
    columns = max(1, width - LABEL)
    if now_s is not None:
        marks = [replace(mark, end_s=min(mark.end_s, now_s)) for mark in marks if mark.start_s <= now_s]
    span = span_s(marks, columns)
    text = Text(f"{f'−{short_span(span)}':>{LABEL - 1}} ", style=palette.QUIET)
    cells: list[tuple[str, str]] = [("·", palette.RULE)] * columns
    if marks:
        begins = max(mark.end_s for mark in marks) - span
        for kind in _RANK:
            for mark in marks:
                if mark.kind is kind and mark.end_s >= begins:
                    _draw(mark, begins, span, cells)
    for character, colour in cells:
        text.append(character, style=colour)
    return text


def _draw(mark: TimelineMark, begins: float, span: float, cells: list[tuple[str, str]]) -> None:
    columns = len(cells)
    first, last = (
        max(0, min(columns - 1, int((time_s - begins) / span * columns))) for time_s in (mark.start_s, mark.end_s)
    )
    glyph, colour = GLYPHS[mark.kind], palette.MARKS[mark.kind]
    if mark.kind is MarkKind.AMBIENT:
        cells[first : last + 1] = [(glyph, colour)] * (last + 1 - first)
        return
    if mark.kind is not MarkKind.UNMATCHED:
        cells[first:last] = [("─", colour)] * (last - first)
    cells[last] = (glyph, f"bold {colour}" if mark.kind is MarkKind.UNMATCHED else colour)


FIGURES = 30
"""Width of the results in words, left of the plot, in columns."""
SCALE = 6
"""Width of the plot's scale, right of it, in columns."""
MAX_NAME_COLUMNS = 20
COMPACT, FULL, TALL = 1, 2, 4
"""Number of lines for each rate, in the three layouts of a block."""


def lines_of(figure_lines: int) -> int:
    """Number of lines of a block with this many lines for each rate."""
    return 2 * figure_lines + (2 if figure_lines == COMPACT else 3)


class DeviceBlocks(RowList):
    """A block for each device, with as many details as fit, the same for all. Scrolls if even the fewest do not."""

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
        """Shows a view. room: lines of the screen for all blocks together."""
        width = max(20, self.scrollable_content_region.width)
        shown = (id(view.wake), view.declared, int(view.session_s), view.over, view.all_played, width, room)
        if shown == self._shown:
            return
        # Keeps the view, so that no other object reuses its identity.
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
    compared = [line for pair in view.comparisons for line in _compared_in_words(pair, width)]
    compared += [Text(words, palette.QUIET) for words in correction_note(view.comparisons)]
    if len(devices) * lines_of(COMPACT) + len(compared) > room:
        compared = [
            _compare(pair).append(f" · McNemar {p_is(pair.counts.p)}", palette.TEXT) for pair in view.comparisons
        ]
    rows_per_device = (room - len(compared)) // len(devices)
    figure_lines = next((layout for layout in (TALL, FULL) if lines_of(layout) <= rows_per_device), COMPACT)
    settings = next((trial.trial.listening.settings for trial in view.progress.trials if trial.trial.listening), None)
    rows: list[Text] = []
    limits = limits_of(view)
    for device in devices:
        rows += _block(device, view, limits.get(device.device, {}), width, figure_lines, settings or WakeSettings())
    return rows + compared


def _block(
    device: DeviceWake, view: View, limits: Mapping[str, DeclaredLimit], width: int, lines: int, settings: WakeSettings
) -> list[Text]:
    ratio, rate = device.false_rejects, device.after_review
    running, declared = not view.over and view.progress.finished is None, view.declared.limits
    if lines == COMPACT:
        reject_words = [[f" FR    {percent(ratio.share.value)} ({percent_interval(ratio.any_time)})"]]
        accept_words = [[f" FA/h  {number(rate.per_hour)} ({number_interval(rate.any_time)})"]]
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
    reject_top = top_of(rejects, declared.max_false_reject_share, 1.0)
    accept_top = top_of(accepts, declared.max_false_accepts_per_hour)
    head = _head(device, view, settings)
    if lines == COMPACT:
        head.append(f" · {hours(device.exposure_s)} heard", style=palette.QUIET)
    rows = [head]
    rows += _figure(
        reject_words,
        points=rejects,
        top=reject_top,
        scale=f"{exact(reject_top * 100)} %",
        limit_texts=limits_beside(_REJECTS, limits),
        width=width,
        lines=lines,
    )
    rows += _figure(
        accept_words,
        points=accepts,
        top=accept_top,
        scale=f"{exact(accept_top)}/h",
        limit_texts=limits_beside(_ACCEPTS, limits),
        width=width,
        lines=lines,
    )
    if lines != COMPACT:
        rows.append(_exposure(device))
    rows.append(timeline(device.timeline, width, view.session_s if running else None))
    return rows


def _around(interval: tuple[float, float] | None, value: float | None) -> tuple[float, float, float]:
    low, high = interval or (0.0, 0.0)
    return low, min(high, max(low, value or 0.0)), high


def _compared_in_words(pair: DevicePair, width: int) -> list[Text]:
    return [_compare(pair), *(Text(line, palette.TEXT) for line in note("", heard_sentence(pair, 14), width, 1))]


def _compare(pair: DevicePair) -> Text:
    counts = pair.counts
    first, second = plain_text(pair.first, 14), plain_text(pair.second, 14)
    discordance = f"  same {counts.total}: only 1st {counts.only_first}, only 2nd {counts.only_second}"
    return Text.assemble((f"{first} : {second}", f"bold {palette.TEXT}"), (discordance, palette.TEXT))


def _head(device: DeviceWake, view: View, settings: WakeSettings) -> Text:
    why = plain_text(device.link_trouble, 60)
    # A device whose lines have times has no clock that pings measure; its delays know their error.
    error_s = device.clock_error_s
    if error_s is None and device.delays.total:
        error_s = device.delays.error_s
    lost = f"  LINK LOST{': ' if why else ''}{why}", f"bold {palette.RED}"
    return Text.assemble(
        (plain_text(device.device, MAX_NAME_COLUMNS), f"bold {palette.TEXT}"),
        ("  link up", palette.GREEN) if device.link_up else lost,
        (f" · {clocks(error_s)} · ", palette.QUIET),
        _proof(device, view, settings),
    )


def _proof(device: DeviceWake, view: View, settings: WakeSettings) -> Text:
    """Words on whether listening is proved, and since when."""
    last = device.listening_proved_s
    if last is None:
        return Text("listening unproven", style=palette.YELLOW)
    ago = max(0.0, view.session_s - last)
    age_text = hours(ago) if ago >= 60 else f"{fixed(ago, 0)} s"
    if view.over or view.progress.running is None:
        # Nothing plays that needs a proof.
        return Text("listening proved" if view.over else f"listening last proved {age_text} ago", style=palette.QUIET)
    if ago > settings.proof_within_s:
        return Text(f"listening unproven for {age_text}", style=palette.YELLOW)
    return Text(f"listening proved {fixed(ago, 0)} s ago", style=palette.GREEN)


def _reject_words(device: DeviceWake) -> list[list[str]]:
    ratio = device.false_rejects
    return [
        [f" FR    {percent(ratio.share.value)}", f"{ratio.share.count} of {ratio.share.total}"],
        *_reject_intervals(ratio),
        [f" hits {device.hits}, talkers unknown" if ratio.speakers.unknown else f"       hits {device.hits}"],
    ]


def _reject_intervals(ratio: Ratio) -> list[list[str]]:
    if ratio.share.value is not None and ratio.interval is None:
        few, why = TOO_FEW_VOICES.split(" for ")
        return [[f"       {few}"], [f"       for {why}"]]
    method = "exact" if ratio.voices is None else f"{ratio.voices} voices"
    return [
        [f"       any time {percent_interval(ratio.any_time)}"],
        [f"       {method:<8} {percent_interval(ratio.interval)}"],
    ]


def _accept_words(device: DeviceWake) -> list[list[str]]:
    rate, before = device.after_review, device.false_accepts
    return [
        [f" FA/h  {number(rate.per_hour)}", f"{rate.count} in {exposure(rate.hours)}"],
        [f"       any time {number_interval(rate.any_time)}"],
        [f"       exact    {number_interval(rate.interval)}"],
        [f"       before review {before.count}, {number(before.per_hour)}"],
    ]


def _figure(
    words: Sequence[Sequence[str]],
    points: Sequence[Point],
    top: float,
    scale: str,
    limit_texts: Sequence[LimitText],
    width: int,
    lines: int,
) -> list[Text]:
    """The rate in words, its band, the scale, and its limits."""
    free_width = width - FIGURES - SCALE
    tenths = 3 if lines == COMPACT else 4
    plot_width = max(8, free_width // 2 if free_width >= 60 else free_width * tenths // 10)
    plot = funnel(points, plot_width, lines, top)
    rows: list[Text] = []
    for index in range(lines):
        name, *more = words[index]
        text = Text(set_cell_size(f"{name}  {' '.join(more)}", FIGURES - 1) + " ", style=palette.TEXT)
        if index == 0:
            text.stylize(f"bold {palette.TEXT}", 0, len(name))
        text.append_text(plot[index])
        mark = {lines - 1: "0", 0: scale}.get(index, "")  # a single line shows the scale
        text.append(set_cell_size(f" {mark}", SCALE + 1), style=palette.QUIET)
        # Most urgent first: the end may be cut off.
        ordered = sorted(limit_texts, key=lambda limit: SEVERITY.index(limit.verdict), reverse=True)
        for place, limit in enumerate(ordered[index::lines]):
            text.append("  " if place else "", style=palette.QUIET)
            text.append(f"{limit.text} ", style=palette.TEXT)
            text.append(limit.verdict.in_words.partition(",")[0], style=COLOURS[limit.verdict])
        rows.append(text)
    return rows


def _exposure(device: DeviceWake) -> Text:
    """Sound heard with and without proof, and other counts, the least important last."""
    counts = (
        (device.probes.total, f"probes {device.probes.count} of {device.probes.total}"),
        (True, delays(device)),
        (device.commands.total, f"commands {device.commands.count} of {device.commands.total}"),
        (device.ambient_events_outside, f"{device.ambient_events_outside} outside exposure"),
        (device.uncounted_events, f"{device.uncounted_events} in trials that do not count"),
        (device.in_vocabulary_events, f"{device.in_vocabulary_events} in wake trials"),
        (device.disagreements, f"sources disagree: {disagreements(device)}"),
        (device.suppressed, f"{device.suppressed} within refractory"),
    )
    return Text.assemble(
        " heard ",
        (f"{hours(device.exposure_s)} proved", palette.TEXT),
        (f", {hours(device.unproven_s)} unproven", palette.YELLOW if device.unproven_s >= 1 else palette.QUIET),
        ("".join(f" · {words}" for shown, words in counts if shown), palette.QUIET),
        style=palette.QUIET,
    )


def short_span(value_s: float) -> str:
    """`12 s`, `5 min`, `2 h`."""
    if value_s < 60:
        return fixed(value_s, 0, "s")
    return f"{fixed(value_s / 60, 0)} min" if value_s < 3600 else f"{fixed(value_s / 3600, 0)} h"


def delays(device: DeviceWake) -> str:
    """`delay p50 310 p95 520 ms`, `delay p50 812 ms p95 1.20 s`."""
    p50, p95 = device.delays.p50, device.delays.p95
    if p50 is None or p95 is None:
        return f"delay {NOTHING}"
    (usual, usual_unit), (most, most_unit) = seconds(p50.value_s).split(" "), seconds(p95.value_s).split(" ")
    return f"delay p50 {usual}{'' if usual_unit == most_unit else f' {usual_unit}'} p95 {most} {most_unit}"
