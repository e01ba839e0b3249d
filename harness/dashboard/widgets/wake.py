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
from harness.base.text_table import note
from harness.dashboard import palette
from harness.dashboard.watch import View
from harness.dashboard.widgets.bars import RowList
from harness.model.frozen import frozen
from harness.model.numbers import NOTHING, exact, exposure, fixed, hours, number, p_is, percent, seconds
from harness.model.scenario import WakeSettings
from harness.session.figures.limits import limits_so_far
from harness.session.wording import short_names
from harness.statistics.text import TOO_FEW_VOICES, clocks, number_interval, percent_interval
from harness.statistics.verdict import SEVERITY, DeclaredLimit, LimitVerdict
from harness.wake.reports.figures_text import correction_note, disagreements, heard_sentence
from harness.wake.wake import DevicePair
from harness.wake.wake_progress import DeviceWake, MarkKind, Ratio, TimelineMark, WakeProgress

COLOURS = {
    LimitVerdict.PASS: palette.GREEN,
    LimitVerdict.MARGINAL: palette.YELLOW,
    LimitVerdict.OPEN: palette.YELLOW,
    LimitVerdict.UNDECIDED: palette.YELLOW,
    LimitVerdict.FAIL: palette.RED,
}
_REJECT_LIMITS = {
    "max_false_reject_share": "",
    "max_false_reject_upper": "upper ",
    "false_rejects_test": "test",
    "min_command_share": "commands ",
    "max_wake_delay_p95_ms": "p95 ",
    "max_first_sound_p95_ms": "sound ",
    "max_request_gap_ms": "pause ",
}
_ACCEPT_LIMITS = {
    "max_false_accepts_per_hour": "",
    "max_false_accepts_upper_per_hour": "upper ",
    "false_accepts_test": "test",
    "min_exposure_hours": "",
}
"""Short names of limits, shown beside the result that they limit; rates are per hour."""


def limits_by_device(view: View) -> dict[str, dict[str, DeclaredLimit]]:
    """The limits and tests of each device by their keys, by the rule that sets the exit status."""
    limits: dict[str, dict[str, DeclaredLimit]] = {}
    for limit in limits_so_far(view.criteria.limits, view.criteria.stopping, view.progress_for_limits, view.wake):
        key, _, device = limit.name.removesuffix("]").partition("[")  # KEY[DEVICE]
        limits.setdefault(device, {})[key] = limit
    return limits


def limit_texts_of(names: Mapping[str, str], limits: Mapping[str, DeclaredLimit]) -> list[tuple[str, LimitVerdict]]:
    """The texts and verdicts of the limits that have a short name. names: short names by the keys of limits."""
    texts = []
    for key, name in names.items():
        if key in limits:
            limit = limits[key]
            texts.append((name if limit.of_test else f"{name}{limit.wanted_text}", limit.verdict))
    return texts


_BRAILLE_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # added to U+2800, by row and column
MIN_BAND_DOTS = 3
"""Least height of a band with a line of its own, in dots."""

# The present band and the limit end at five eighths of the height at most, so that wider bands show above them.
_HEADROOM = 1.6
_ROUND_FACTORS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


@frozen
class Point:
    """A rate with its interval after this many trials or hours: low ≤ value ≤ high."""

    after: float
    low: float
    value: float
    high: float


def round_up_nicely(value: float) -> float:
    """The smallest round number that is not below the value; 1 for a value that is not a positive number."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(factor * scale for factor in _ROUND_FACTORS if factor * scale >= value * (1 - 1e-9))


def scale_top(points: Sequence[Point], limit: float | None, highest: float = math.inf) -> float:
    """The end of the scale: it fits the present band and the limit. Earlier, wider bands are cut."""
    last = points[-1] if points else None
    least_top = _HEADROOM * max(0.0 if last is None else last.high, 0.0 if limit is None else limit)
    return min(highest, round_up_nicely(least_top))


def funnel(points: Sequence[Point], width: int, height: int, top: float) -> list[Text]:
    """The band of the points' intervals as `height` lines of `width` characters, from 0 to `top`.

    The line of the rate is left free in the band, and its characters are brighter. A character has 4 × 2 dots.
    """
    if not points:
        return [Text("·" * width if row == height - 1 else " " * width, style=palette.RULE) for row in range(height)]
    dots_high, dots_wide = height * 4, width * 2
    band = [[0] * width for _ in range(height)]
    line_cells: list[set[int]] = [set() for _ in range(height)]

    def dot(rate: float) -> int:
        return min(dots_high - 1, int(max(0.0, rate) / top * dots_high))

    for column, point in enumerate(_resample(points, dots_wide)):
        low, high = dot(point.low), dot(point.high)
        # A rate beyond the scale has no line: it would seem to be at the edge.
        has_line = point.value <= top and height > 1 and high - low >= MIN_BAND_DOTS
        for y in range(low, high + 1):
            row, row_in_cell = divmod(dots_high - 1 - y, 4)
            if has_line and y == dot(point.value):
                line_cells[row].add(column // 2)
            else:
                band[row][column // 2] |= _BRAILLE_BITS[row_in_cell][column % 2]
    rows: list[Text] = []
    for cells, bright_cells in zip(band, line_cells, strict=True):
        text = Text()
        for cell, bits in enumerate(cells):
            colour = palette.CYAN if cell in bright_cells else palette.BLUE
            text.append(chr(0x2800 + bits) if bits else " ", style=colour)
        rows.append(text)
    return rows


def _resample(points: Sequence[Point], count: int) -> list[Point]:
    """The latest point at each of `count` equal steps from zero to the last."""
    column_points: list[Point] = []
    index = 0
    end = points[-1].after
    for column in range(count):
        position = end * (column + 1) / count
        while index + 1 < len(points) and points[index + 1].after <= position * (1 + 1e-12):
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
LABEL_WIDTH = 9
"""Width of the text left of a timeline, in columns."""

# Within one character, a later mark hides an earlier one.
_DRAWING_ORDER = (
    MarkKind.AMBIENT,
    MarkKind.PROBE,
    MarkKind.HIT,
    MarkKind.INTERRUPTED,
    MarkKind.PROBE_UNHEARD,
    MarkKind.FALSE_REJECT,
    MarkKind.UNMATCHED,
)


def legend() -> Text:
    text = Text()
    for kind, name in LEGEND:
        text.append(GLYPHS[kind], style=palette.MARKS[kind])
        text.append(f" {name}  ", style=palette.QUIET)
    text.rstrip()
    return text


def choose_span_s(marks: Sequence[TimelineMark], columns: int) -> float:
    """The time that the timeline covers: all marks, or the last ones, a third as many as there are columns."""
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
    columns = max(1, width - LABEL_WIDTH)
    if now_s is not None:
        marks = [replace(mark, end_s=min(mark.end_s, now_s)) for mark in marks if mark.start_s <= now_s]
    span = choose_span_s(marks, columns)
    text = Text(f"{f'−{span_text(span)}':>{LABEL_WIDTH - 1}} ", style=palette.QUIET)
    cells: list[tuple[str, str]] = [("·", palette.RULE)] * columns
    if marks:
        begin_s = max(mark.end_s for mark in marks) - span
        for kind in _DRAWING_ORDER:
            for mark in marks:
                if mark.kind is kind and mark.end_s >= begin_s:
                    _draw_mark(mark, begin_s, span, cells)
    for character, colour in cells:
        text.append(character, style=colour)
    return text


def _draw_mark(mark: TimelineMark, begin_s: float, span_s: float, cells: list[tuple[str, str]]) -> None:
    """Draws a mark into the cells (character and colour) of a timeline."""
    columns = len(cells)

    def column(time_s: float) -> int:
        return max(0, min(columns - 1, int((time_s - begin_s) / span_s * columns)))

    first, last = column(mark.start_s), column(mark.end_s)
    glyph, colour = GLYPHS[mark.kind], palette.MARKS[mark.kind]
    if mark.kind is MarkKind.AMBIENT:
        cells[first : last + 1] = [(glyph, colour)] * (last + 1 - first)
        return
    if mark.kind is not MarkKind.UNMATCHED:
        cells[first:last] = [("─", colour)] * (last - first)
    cells[last] = (glyph, f"bold {colour}" if mark.kind is MarkKind.UNMATCHED else colour)


WORDS_WIDTH = 30
"""Width of the results in words, left of the plot, in columns."""
SCALE_WIDTH = 6
"""Width of the plot's scale, right of it, in columns."""
MAX_NAME_COLUMNS = 20
COMPACT, FULL, TALL = 1, 2, 4
"""Number of lines for each rate, in the three layouts of a block."""


def block_height(figure_lines: int) -> int:
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
        self._drawn_from: object = None
        """What the present rows were drawn from."""
        self._rows: list[Text] = []
        self._line_count = 0

    @property
    def count(self) -> int:
        return len(self._rows)

    def show(self, view: View, max_lines: int) -> None:
        """Shows a view. max_lines: lines of the screen for all blocks together."""
        width = max(20, self.scrollable_content_region.width)
        source = (id(view.wake), view.criteria, int(view.session_s), view.is_over, view.all_played, width, max_lines)
        if source == self._drawn_from:
            return
        # Keeps the view, so that no other object reuses its identity.
        self._drawn_from, self._view = source, view
        previous_count = len(self._rows)
        self._rows = block_rows(view, width, max_lines)
        line_count = min(len(self._rows), max_lines) + 1
        if len(self._rows) != previous_count or line_count != self._line_count:
            self._line_count = line_count
            self.styles.height = line_count
            self.fit()
        self.refresh()

    def line(self, index: int, width: int) -> Text:
        return self._rows[index].copy()


def block_rows(view: View, width: int, max_lines: int) -> list[Text]:
    """The blocks of all devices, then their comparisons, `width` characters wide.

    They take at most max_lines, except that each device has at least a compact block.
    """
    devices = view.wake.devices
    if not devices:
        return [Text("no device is listening yet", style=palette.QUIET)]
    pairs = _with_short_names(view)
    comparison_rows = [line for pair in pairs for line in _comparison_lines(pair, width)]
    comparison_rows += [Text(words, palette.QUIET) for words in correction_note(view.comparisons)]
    if len(devices) * block_height(COMPACT) + len(comparison_rows) > max_lines:
        comparison_rows = [
            _comparison_line(pair).append(f" · McNemar {p_is(pair.counts.p)}", palette.TEXT) for pair in pairs
        ]
    rows_per_device = (max_lines - len(comparison_rows)) // len(devices)
    figure_lines = next((layout for layout in (TALL, FULL) if block_height(layout) <= rows_per_device), COMPACT)
    settings = next((trial.trial.listening.settings for trial in view.progress.trials if trial.trial.listening), None)
    rows: list[Text] = []
    limits = limits_by_device(view)
    for device, name in zip(devices, device_names(view.wake, MAX_NAME_COLUMNS), strict=True):
        rows += _device_lines(
            replace(device, device=name),
            view,
            limits.get(device.device, {}),
            width,
            figure_lines,
            settings or WakeSettings(),
        )
    return rows + comparison_rows


def _device_lines(
    device: DeviceWake, view: View, limits: Mapping[str, DeclaredLimit], width: int, lines: int, settings: WakeSettings
) -> list[Text]:
    """The block of a device. lines: number of lines for each rate."""
    ratio, rate = device.false_rejects, device.after_review
    limits_of_session = view.criteria.limits
    if lines == COMPACT:
        reject_words = [[f" FR    {percent(ratio.share.value)} ({percent_interval(ratio.any_time)})"]]
        accept_words = [[f" FA/h  {number(rate.per_hour)} ({number_interval(rate.any_time)})"]]
    else:
        reject_words = _reject_words(device)
        accept_words = _accept_words(device)
    rejects = [
        _point(look.trials, look.false_rejects.any_time, look.false_rejects.share.value)
        for look in device.looks
        if look.false_rejects.any_time is not None
    ]
    accepts = [
        _point(look.exposure_hours, look.false_accepts.any_time, look.false_accepts.per_hour)
        for look in device.looks
        if look.false_accepts.any_time is not None
    ]
    reject_top = scale_top(rejects, limits_of_session.max_false_reject_share, 1.0)
    accept_top = scale_top(accepts, limits_of_session.max_false_accepts_per_hour)
    head = _title_line(device, view, settings)
    if lines == COMPACT:
        head.append(f" · {hours(device.exposure_s)} heard", style=palette.QUIET)
    rows = [head]
    rows += _rate_lines(
        reject_words,
        points=rejects,
        top=reject_top,
        scale=f"{exact(reject_top * 100)} %",
        limit_texts=limit_texts_of(_REJECT_LIMITS, limits),
        width=width,
        lines=lines,
    )
    rows += _rate_lines(
        accept_words,
        points=accepts,
        top=accept_top,
        scale=f"{exact(accept_top)}/h",
        limit_texts=limit_texts_of(_ACCEPT_LIMITS, limits),
        width=width,
        lines=lines,
    )
    if lines != COMPACT:
        rows.append(_exposure_line(device))
    is_running = not view.is_over and view.progress.finished is None
    rows.append(timeline(device.timeline, width, view.session_s if is_running else None))
    return rows


def _point(after: float, interval: tuple[float, float], value: float | None) -> Point:
    low, high = interval
    return Point(after, low, min(high, max(low, value or 0.0)), high)


def device_names(wake: WakeProgress, width: int) -> list[str]:
    """The names of the devices, shortened such that they stay different."""
    return short_names([device.device for device in wake.devices], width)


def _with_short_names(view: View) -> list[DevicePair]:
    """The comparisons, with shortened names of the devices."""
    names = dict(zip((device.device for device in view.wake.devices), device_names(view.wake, 14), strict=True))
    return [replace(pair, first=names[pair.first], second=names[pair.second]) for pair in view.comparisons]


def _comparison_lines(pair: DevicePair, width: int) -> list[Text]:
    return [
        _comparison_line(pair),
        *(Text(line, palette.TEXT) for line in note("", heard_sentence(pair, 14), width, 1)),
    ]


def _comparison_line(pair: DevicePair) -> Text:
    counts = pair.counts
    first, second = plain_text(pair.first, 14), plain_text(pair.second, 14)
    discordance = f"  same {counts.total}: only 1st {counts.only_first}, only 2nd {counts.only_second}"
    return Text.assemble((f"{first} : {second}", f"bold {palette.TEXT}"), (discordance, palette.TEXT))


def _title_line(device: DeviceWake, view: View, settings: WakeSettings) -> Text:
    trouble = plain_text(device.link_trouble, 60)
    # A device whose lines have times has no clock that pings measure; its delays know their error.
    error_s = device.clock_error_s
    if error_s is None and device.delays.total:
        error_s = device.delays.error_s
    link = ("  link up", palette.GREEN)
    if not device.link_up:
        link = (f"  LINK LOST{': ' if trouble else ''}{trouble}", f"bold {palette.RED}")
    return Text.assemble(
        (plain_text(device.device, MAX_NAME_COLUMNS), f"bold {palette.TEXT}"),
        link,
        (f" · {clocks(error_s)} · ", palette.QUIET),
        _proof_text(device, view, settings),
    )


def _proof_text(device: DeviceWake, view: View, settings: WakeSettings) -> Text:
    """Words on whether listening is proved, and since when."""
    proved_s = device.listening_proved_s
    if proved_s is None:
        return Text("listening unproven", style=palette.YELLOW)
    age_s = max(0.0, view.session_s - proved_s)
    age_text = hours(age_s) if age_s >= 60 else f"{fixed(age_s, 0)} s"
    if view.is_over:
        return Text("listening proved", style=palette.QUIET)
    if view.progress.running is None:  # nothing plays that needs a proof
        return Text(f"listening last proved {age_text} ago", style=palette.QUIET)
    if age_s > settings.proof_within_s:
        return Text(f"listening unproven for {age_text}", style=palette.YELLOW)
    return Text(f"listening proved {fixed(age_s, 0)} s ago", style=palette.GREEN)


def _reject_words(device: DeviceWake) -> list[list[str]]:
    """The false rejects in words: a list of texts for each line, the first one in bold if it is the first line's."""
    ratio = device.false_rejects
    return [
        [f" FR    {percent(ratio.share.value)}", f"{ratio.share.count} of {ratio.share.total}"],
        *_reject_intervals(ratio),
        [f" hits {device.hits}, talkers unknown" if ratio.speakers.unknown else f"       hits {device.hits}"],
    ]


def _reject_intervals(ratio: Ratio) -> list[list[str]]:
    if ratio.share.value is not None and ratio.interval is None:
        few, purpose = TOO_FEW_VOICES.split(" for ")
        return [[f"       {few}"], [f"       for {purpose}"]]
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


def _rate_lines(
    words: Sequence[Sequence[str]],
    points: Sequence[Point],
    top: float,
    scale: str,
    limit_texts: Sequence[tuple[str, LimitVerdict]],
    width: int,
    lines: int,
) -> list[Text]:
    """The rate in words, its band, the scale, and its limits."""
    free_width = width - WORDS_WIDTH - SCALE_WIDTH
    if free_width >= 60:
        plot_width = free_width // 2
    else:  # the limits need more of it
        tenths = 3 if lines == COMPACT else 4
        plot_width = max(8, free_width * tenths // 10)
    plot = funnel(points, plot_width, lines, top)
    rows: list[Text] = []
    for index in range(lines):
        figure, *details = words[index]
        text = Text(set_cell_size(f"{figure}  {' '.join(details)}", WORDS_WIDTH - 1) + " ", style=palette.TEXT)
        if index == 0:
            text.stylize(f"bold {palette.TEXT}", 0, len(figure))
        text.append_text(plot[index])
        scale_mark = ""
        if index == 0:  # also of a single line
            scale_mark = scale
        elif index == lines - 1:
            scale_mark = "0"
        text.append(set_cell_size(f" {scale_mark}", SCALE_WIDTH + 1), style=palette.QUIET)
        # Most urgent first: the end may be cut off.
        urgent_first = sorted(limit_texts, key=lambda limit: SEVERITY.index(limit[1]), reverse=True)
        for position, (limit, verdict) in enumerate(urgent_first[index::lines]):
            text.append("  " if position else "", style=palette.QUIET)
            text.append(f"{limit} ", style=palette.TEXT)
            text.append(verdict.in_words.partition(",")[0], style=COLOURS[verdict])
        rows.append(text)
    return rows


def _exposure_line(device: DeviceWake) -> Text:
    """Sound heard with and without proof, and other counts, the least important last."""
    counts = (
        (device.probes.total, f"probes {device.probes.count} of {device.probes.total}"),
        (True, delay_text(device)),
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
        ("".join(f" · {words}" for applies, words in counts if applies), palette.QUIET),
        style=palette.QUIET,
    )


def span_text(value_s: float) -> str:
    """`12 s`, `5 min`, `2 h`."""
    if value_s < 60:
        return fixed(value_s, 0, "s")
    return f"{fixed(value_s / 60, 0)} min" if value_s < 3600 else f"{fixed(value_s / 3600, 0)} h"


def delay_text(device: DeviceWake) -> str:
    """`delay p50 310 p95 520 ms`, `delay p50 812 ms p95 1.20 s`."""
    p50, p95 = device.delays.p50, device.delays.p95
    if p50 is None or p95 is None:
        return f"delay {NOTHING}"
    p50_text, p95_text = seconds(p50.value_s), seconds(p95.value_s)
    p50_number, p50_unit = p50_text.split(" ")
    _, p95_unit = p95_text.split(" ")
    return f"delay p50 {p50_number if p50_unit == p95_unit else p50_text} p95 {p95_text}"
