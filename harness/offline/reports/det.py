"""A DET curve as a table, picture and text: one row per threshold, with counts, exposure, rates and exact intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from harness.base.plugins import pip_install
from harness.base.text_file import safe_csv
from harness.model.choices import TargetBasis
from harness.model.errors import LogError, PluginError
from harness.model.numbers import NOTHING, counted, exact, exposure, fixed, number, percent
from harness.model.offline import EngineFacts, OperatingPoint
from harness.offline.figures.det import Det, running_maximum, term_weighted_value
from harness.offline.figures.sweep import ChosenPoint, PointFigures, Sweep, TermWeighted, point_figures, point_of
from harness.offline.request import SweepCriterion, SweepTarget
from harness.statistics.special_functions import special
from harness.statistics.text import basis, number_interval, percent_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MAX_ROWS = 4000
"""Up to this many thresholds, all are written."""
COLUMNS = ("threshold", "operating_point", "chosen", "files", "false_rejects", "fr", "fr_low", "fr_high",
           "false_accepts", "hours", "fa_per_hour", "fa_per_hour_low", "fa_per_hour_high")  # fmt: skip
TWV_COLUMN = "twv"


def det_csv(
    det: Det,
    points: Sequence[OperatingPoint],
    chosen: float | None = None,
    twv: tuple[float, float | None] | None = None,
) -> str:
    """The table as CSV.

    - chosen: the recommended threshold.
    - twv: beta and seconds of speech, for a column of term-weighted values; None without that column. A cell without
      data is n/a. Above MAX_ROWS thresholds, only corners of the curve are included.
    """
    head = [*COLUMNS, TWV_COLUMN] if twv is not None else [*COLUMNS]
    return safe_csv([head, *det_cells(det, points, chosen, twv)])


def threshold_text(threshold: np.float32 | float) -> str:
    """A threshold in the fewest digits that `-s threshold=` reads as the same number."""
    return np.format_float_positional(np.float32(threshold), unique=True, trim="-")


def written_rows(det: Det, points: Sequence[OperatingPoint], chosen: float | None = None) -> npt.NDArray[np.intp]:
    """Indices of the rows to write: all, or above MAX_ROWS an even selection of the curve's corners, with `points` and
    `chosen`."""
    if len(det) <= MAX_ROWS:
        return np.arange(len(det))
    required = [point.threshold for point in points]
    if chosen is not None:
        required.append(chosen)
    is_written = np.isin(det.thresholds, np.array(required, np.float32))
    is_written[[0, -1]] = True
    # Corners: the first and last row of each count of misses, then of each count of false accepts.
    for values in (det.misses, det.false_accepts):
        turns = np.flatnonzero(np.diff(values))
        corners = np.union1d(turns, turns + 1)
        if len(corners):
            is_written[corners[np.unique(np.linspace(0, len(corners) - 1, MAX_ROWS // 4).astype(int))]] = True
            is_written[corners[: MAX_ROWS // 8]] = True  # few events: every corner matters
    return np.flatnonzero(is_written)


def det_cells(
    det: Det,
    points: Sequence[OperatingPoint],
    chosen: float | None = None,
    twv: tuple[float, float | None] | None = None,
) -> Iterator[list[str]]:
    """The rows of `det_csv`."""
    shares, rates = det.false_rejects(), det.per_hour()
    share_band, rate_band = det.false_reject_band(), det.per_hour_band()
    values = term_weighted_value(det, *twv) if twv is not None else None
    chosen_threshold = None if chosen is None else np.float32(chosen)
    for index in written_rows(det, points, chosen):
        operating_point = point_of(det.thresholds[index], points)
        row = [
            threshold_text(det.thresholds[index]),
            "" if operating_point is None else str(operating_point),
            "yes" if det.thresholds[index] == chosen_threshold else "",
            str(det.files),
            str(det.misses[index]),
            *(_cell_text(column[index]) for column in (shares, *share_band)),
            str(det.false_accepts[index]),
            fixed(det.hours[index], 6),
            *(_cell_text(column[index]) for column in (rates, *rate_band)),
        ]
        yield [*row, _cell_text(values[index])] if values is not None else row


def _cell_text(value: np.float64) -> str:
    """A number in a cell of CSV; n/a without data."""
    return f"{value:.6g}" if np.isfinite(value) else "n/a"


ONE_LIST = (
    "chosen and reported on the same list, so the results look better than they are. "
    "Choose on separate lists: --dev-inv, --dev-oov"
)
NOT_MET = "No threshold meets this target. Use more recordings, another target or another model"
FLATTERING_POINT = f"The point was {ONE_LIST}"
DETECTS_NOTHING = "  This threshold rejects every phrase. Use more recordings, another target or another model"


def target_text(target: SweepTarget) -> str:
    """A target in words."""
    basis_text = "the estimate" if target.basis is TargetBasis.ESTIMATE else "the upper end of its 95 % interval"
    match target.criterion:
        case SweepCriterion.FALSE_ACCEPTS:
            noun = "false accept" if target.limit == 1 else "false accepts"
            return f"at most {exact(target.limit)} {noun} per hour ({basis_text})"
        case SweepCriterion.FALSE_REJECTS:
            return f"at most {exact(100 * target.limit)} % false rejects ({basis_text})"
        case SweepCriterion.COST:
            return (
                f"the lowest cost per hour, at {exact(target.miss_cost)} per false reject, "
                f"{exact(target.accept_cost)} per false accept and {exact(target.uses_per_hour)} uses per hour"
            )


def figures_text(figures: PointFigures) -> str:
    """False rejects and false accepts in words, with their counts and exact 95 % intervals."""
    rate = f"{number(figures.per_hour)}/h ({number_interval(figures.per_hour_interval)})"
    accepts = f"{figures.false_accepts} FA in {exposure(figures.hours)} = {rate}" if figures.hours else f"FA {NOTHING}"
    interval = percent_interval(figures.false_reject_interval)
    if figures.talkers:
        interval = f"{interval}, {basis(figures.talkers, figures.unknown_talkers)}"
    share = f"{percent(figures.false_rejects)} ({interval})"
    rejects = f"{figures.misses} of {figures.files} FR = {share}" if figures.files else f"FR {NOTHING}"
    return f"{accepts}; {rejects}"


def point_text(figures: PointFigures) -> str:
    """The threshold of a point, with the number of its operating point if it has one."""
    point = f" (operating point {figures.point})" if figures.point is not None else ""
    return f"threshold {threshold_text(figures.threshold)}{point}"


def chosen_lines(target: SweepTarget, choice: ChosenPoint | None) -> Iterator[str]:
    """Lines with the results of the recommended point on both lists, or a line that there is none."""
    yield f"Target: {target_text(target)}"
    if choice is None:
        yield NOT_MET
        return
    yield f"Chosen: {point_text(choice.chosen)}. Set it with -s threshold={threshold_text(choice.chosen.threshold)}"
    if choice.chosen.misses == choice.chosen.files:
        yield DETECTS_NOTHING
    except_voices = ", except over voices" if choice.chosen.talkers or choice.shown.talkers else ""
    yield f"Results, with 95 % intervals that treat files as independent{except_voices}:"
    if choice.reported is None:
        yield f"  on the same list: {figures_text(choice.chosen)}"
        yield from _shortfall_lines(target, choice.chosen)
        yield FLATTERING_POINT
        return
    yield f"  on the development list: {figures_text(choice.chosen)}"
    yield f"  on the reported list:    {figures_text(choice.reported)}"
    met = choice.reported.meets(target)
    if met is not None:
        yield f"  The target is {'' if met else 'NOT '}met on the reported list."
    yield from _shortfall_lines(target, choice.reported)


def _shortfall_lines(target: SweepTarget, shown: PointFigures) -> Iterator[str]:
    """A line with the amount of data that would show the limit of a target, if the counts meet it but their interval
    reaches beyond. Nothing if phrases depend on each other (talkers, repeated plays): no formula knows by how much."""
    if not target.limit or shown.repeats > 1:
        return
    if target.criterion is SweepCriterion.FALSE_ACCEPTS:
        interval, measured = shown.per_hour_interval, f"{exposure(shown.hours)} of audio"
        errors = counted(shown.false_accepts, "false accept")
    elif target.criterion is SweepCriterion.FALSE_REJECTS and not shown.talkers:
        interval, measured = shown.false_reject_interval, counted(shown.files, "phrase")
        errors = counted(shown.misses, "false reject")
    else:
        return
    if shown.meets(replace(target, basis=TargetBasis.ESTIMATE)) and interval is not None and interval[1] > target.limit:
        needed = _needed_text(target, shown)
        yield (
            "  The 95 % interval reaches beyond the target. "
            f"To show it with {errors}, you need {needed}; the list has {measured}."
        )


def _needed_text(target: SweepTarget, shown: PointFigures) -> str:
    """The least data with which as many errors still show a limit: `3.689 h of audio`, `72 phrases`."""
    from harness.statistics.planning import hours_for_limit, utterances_for_events  # here, since it imports SciPy

    if target.criterion is SweepCriterion.FALSE_ACCEPTS:
        return f"{exposure(hours_for_limit(target.limit, shown.false_accepts))} of audio"
    return counted(utterances_for_events(target.limit, shown.misses), "phrase")


def sweep_lines(
    files: Sequence[str],
    thresholds: int,
    target: SweepTarget | None,
    choice: ChosenPoint | None,
    twv: TermWeighted | None,
) -> Iterator[str]:
    """Lines with the results of a sweep.

    - files: names of the files written.
    - thresholds: number of thresholds.
    - target, twv: None if they are not wanted.
    """
    yield f"Sweep: {thresholds:,} thresholds, in {', '.join(files)}"
    if target is not None:
        yield from chosen_lines(target, choice)
    if twv is not None:
        yield from twv_lines(twv)


def twv_lines(twv: TermWeighted) -> Iterator[str]:
    """Lines with the term-weighted values, and the thresholds to which they belong."""
    denominator = (
        "the hours in which false accepts are counted" if twv.speech_s is None else f"{exact(twv.speech_s)} s of speech"
    )
    if twv.best is None or twv.best_at is None:
        yield f"MTWV n/a (beta {exact(twv.beta)}, over {denominator})"
        return
    yield f"MTWV {fixed(twv.best, 4)} at {point_text(twv.best_at)} (beta {exact(twv.beta)}, over {denominator})"
    yield f"ATWV {fixed(twv.actual, 4)} at {point_text(twv.at_point)}"


def sweep_json(report: Sweep, thresholds: int, facts: EngineFacts, lead_in_ms: float) -> dict[str, Any]:
    """How the counts were made, and those at the operating points."""
    return {
        "fingerprint": facts.fingerprint,
        "lead_in_ms": lead_in_ms,
        "refractory_ms": 1000 * report.rule.refractory_samples / facts.rate_hz,
        "count_in_vocabulary": report.counting.count_in_vocabulary,
        "thresholds": thresholds,
        "rejected_files": report.rejected_files,
        "operating_points": [figures_json(report.figures_at(point.threshold)) for point in report.points],
    }


def chosen_json(target: SweepTarget, choice: ChosenPoint | None) -> dict[str, Any]:
    """The same as plain JSON values; shares are 0–1."""
    target_json: dict[str, Any] = {"aim": target.criterion.value, "by": target.basis.value}
    if target.criterion is SweepCriterion.COST:
        target_json |= {
            "miss": target.miss_cost,
            "false_accept": target.accept_cost,
            "uses_per_hour": target.uses_per_hour,
        }
    else:
        target_json["value"] = target.limit
    if choice is None:
        return {"target": target_json, "chosen": None, "reported": None, "one_list": None}
    return {
        "target": target_json,
        "chosen": figures_json(choice.chosen),
        "reported": figures_json(choice.reported) if choice.reported is not None else None,
        "kept": choice.reported.meets(target) if choice.reported is not None else None,
        "one_list": choice.reported is None,
    }


def figures_json(figures: PointFigures) -> dict[str, Any]:
    """A point's counts and intervals; null without data."""
    return {
        "threshold": float(threshold_text(figures.threshold)),
        "operating_point": figures.point,
        "false_accepts": figures.false_accepts,
        "hours": figures.hours,
        "fa_per_hour": figures.per_hour,
        "fa_per_hour_95": figures.per_hour_interval,
        "false_rejects": figures.misses,
        "files": figures.files,
        "fr": figures.false_rejects,
        "fr_95": figures.false_reject_interval,
    }


def twv_json(twv: TermWeighted) -> dict[str, Any]:
    """Term-weighted values; null without data."""
    return {
        "beta": twv.beta,
        "speech_s": twv.speech_s,
        "mtwv": twv.best,
        "mtwv_at": figures_json(twv.best_at) if twv.best_at is not None else None,
        "atwv": twv.actual,
        "atwv_at": figures_json(twv.at_point),
    }


Floats = npt.NDArray[np.float64]
BLUE, ORANGE, RED, GREY = "#0072B2", "#E69F00", "#D55E00", "#555555"
COLOURS, STYLES = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", GREY), ("-", "--", "-.", ":")
TICKS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99)
ENDINGS = ("png", "svg")
_BEYOND_X, _BEYOND_Y = 0.35, 0.22
"""How far beyond the end of its scale the place of zero or of 100 % lies, in decades and in normal deviates."""
_BAND_X, _BAND_Y = 0.12, 0.08
"""Half the width of the grey band around such a place."""
_NUMBER_X, _NUMBER_Y = 0.16, 0.13
"""Numbers of operating points overlap if they are nearer than this in both directions."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A curve with its name in the legend.

    - as_run: the point at which the engine ran, to be marked; None for none.
    - chosen: the recommended point, which a page marks; None for none.
    """

    name: str
    det: Det
    as_run: PointFigures | None = None
    chosen: PointFigures | None = None


def draw(
    path: Path,
    title: str,
    curves: Sequence[Curve],
    points: Sequence[OperatingPoint] = (),
    chosen: ChosenPoint | None = None,
) -> None:
    """Writes a PNG or an SVG, by the path's ending. PluginError without matplotlib, LogError if it cannot be written.

    - curves: the first is the main one, and `points` are its operating points.
    - chosen: a point that was chosen on the last curve.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PluginError(
            "pictures need matplotlib, which is not installed",
            remedy=f"Install it: {pip_install('pictures')}, or add --no-picture",
        ) from error
    # Text stays text, and pictures of the same curve have the same bytes.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "det", "font.size": 11}):
        figure = Figure(figsize=(9.6, 6.4), layout="constrained")
        _Picture(figure, curves).draw(title, points, chosen)
        dates = {"Date": None} if path.suffix == ".svg" else {}
        try:
            figure.savefig(path, dpi=130, metadata=dates)
        except OSError as error:
            raise LogError(f"the picture {path} cannot be written: {error.strerror or error}") from error


class DetScales:
    """Turns values into places on the axes of a DET curve. False accepts per hour (x) are logarithmic, shares of false
    rejects (y) are normal deviates. Neither scale has a place for zero, nor the second for 100 %; so these get a place
    of their own beyond the scale.

    - left, right: ends of the x axis.
    - zero_x, zero_y, all_y: the places of zero, and of 100 %.
    - x_ticks, y_ticks: place and label of each tick.
    - small_ticks: places on the x axis between the labelled ticks.
    """

    def __init__(self, dets: Sequence[Det]) -> None:
        rates = np.concatenate([det.per_hour()[det.false_accepts > 0] for det in dets])
        shares = np.concatenate([det.false_rejects()[det.misses > 0] for det in dets])
        one_accept = min((1 / det.hours.max() for det in dets), default=1.0)  # the rate of a single false accept
        self.left = math.floor(math.log10(min(rates.min(initial=one_accept), one_accept)) - 0.05)
        # Choices lie below 200 per hour; beyond that the curve only trails off.
        self.right = max(self.left + 2.0, math.log10(min(rates.max(initial=10.0), 200.0) * 1.2))
        self.zero_x = self.left - _BEYOND_X
        least_share = min(shares.min(initial=0.5), 0.2)
        low = next((tick for tick in reversed(TICKS) if tick <= least_share), TICKS[0])
        high = next((tick for tick in TICKS if tick >= min(0.9, shares.max(initial=0.4))), 0.9)
        self.zero_y = float(special.ndtri(low)) - _BEYOND_Y
        self.all_y = float(special.ndtri(high)) + _BEYOND_Y
        decades = [float(decade) for decade in range(math.ceil(self.left), math.floor(self.right) + 1)]
        self.x_ticks = [(self.zero_x, "0"), *((decade, exact(10**decade)) for decade in decades)]
        small_ticks = [decade + math.log10(digit) for decade in [decades[0] - 1, *decades] for digit in range(2, 10)]
        self.small_ticks = [tick for tick in small_ticks if self.left <= tick <= self.right]
        ticks = [(float(special.ndtri(tick)), exact(100 * tick)) for tick in TICKS if low <= tick <= high]
        self.y_ticks = [(self.zero_y, "0"), *ticks, (self.all_y, "100")]

    def x(self, rates: Floats) -> Floats:
        """The places of false accepts per hour."""
        with np.errstate(divide="ignore"):
            return np.where(rates > 0, np.maximum(np.log10(rates), self.zero_x), self.zero_x)

    def y(self, shares: Floats) -> Floats:
        """The places of shares of false rejects."""
        with np.errstate(divide="ignore"):
            places: Floats = np.where(shares > 0, np.clip(special.ndtri(shares), self.zero_y, self.all_y), self.zero_y)
        return places

    def place(self, figures: PointFigures) -> tuple[float, float]:
        """The place of a point: x and y."""
        x = self.x(np.array([figures.per_hour or 0.0]))[0]
        y = self.y(np.array([figures.false_rejects or 0.0]))[0]
        return float(x), float(y)

    def steps(self, det: Det) -> tuple[Floats, Floats, Floats, Floats]:
        """The curve as places: x, y, and the ends of the 95 % interval of y. At each x, y is the least share of false
        rejects at no more false accepts."""
        # At thresholds below that of the most false accepts, a detector is stuck rather than lenient.
        rows = written_rows(det, ())
        rows = rows[rows <= int(np.argmax(det.per_hour()))]
        x = self.x(running_maximum(det.per_hour())[rows])
        shares, (lows, highs) = det.false_rejects()[rows], det.false_reject_band()
        best = np.minimum.accumulate(shares)
        firsts = np.maximum.accumulate(np.where(shares == best, np.arange(len(rows)), 0))
        columns = x, self.y(best), self.y(lows[rows][firsts]), self.y(highs[rows][firsts])
        # The curve goes on to the right edge of the picture.
        x, best, low, high = (np.append(column, column[-1]) for column in columns)
        x[-1] = max(x[-1], self.right + 1)
        return x, best, low, high


class _Picture:
    """Draws curves and points into a picture."""

    def __init__(self, figure: Figure, curves: Sequence[Curve]) -> None:
        self._figure = figure
        self._axes: Axes = figure.add_subplot()
        self._curves = curves
        self._places = DetScales([curve.det for curve in curves])

    def draw(self, title: str, points: Sequence[OperatingPoint], chosen: ChosenPoint | None) -> None:
        for index in range(len(self._curves)):
            self._draw_curve(index)
        self._draw_points(self._curves[0].det, points)
        if chosen is not None:
            self._draw_chosen(chosen, is_on_other_list=len(self._curves) > 1)
        self._draw_scales()
        self._axes.set_title(title, loc="left", fontsize=12)
        self._figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=10)

    def _draw_curve(self, index: int) -> None:
        """Draws a curve with its band, and marks the point at which its engine ran. index: 0 for the main curve."""
        curve = self._curves[index]
        layer = 3 - index / 100  # the main curve lies above the others
        det, colour = curve.det, COLOURS[index % len(COLOURS)]
        hours = f"{number(det.hours.max())} h"
        label = f"{curve.name}: {det.files} utterances, {hours} (band: 95 %)"
        if curve.as_run is not None:
            as_run_x, as_run_y = self._places.place(curve.as_run)
            self._axes.plot(
                min(as_run_x, self._places.right), as_run_y, "o", color=colour, markersize=8, clip_on=False, zorder=4,
                label=None if index else f"as run: threshold {threshold_text(curve.as_run.threshold)}",
            )  # fmt: skip
        x, best, low, high = self._places.steps(det)
        self._axes.fill_between(x, low, high, step="post", color=colour, alpha=0.18, linewidth=0)
        self._axes.step(x, best, where="post", color=colour, linestyle=STYLES[index % len(STYLES)],
                        linewidth=2, label=label, zorder=layer)  # fmt: skip

    def _draw_points(self, det: Det, points: Sequence[OperatingPoint]) -> None:
        """Marks the operating points on a curve, with their numbers."""
        label_places: list[tuple[float, float]] = []
        label: str | None = "operating points"
        # As in `DetScales.steps`: at lower thresholds, a detector is stuck rather than lenient.
        most_lenient = int(np.argmax(det.per_hour()))
        for point in points:
            rows = np.flatnonzero(det.thresholds == np.float32(point.threshold))
            if not len(rows) or rows[0] > most_lenient:
                continue
            x, y = self._places.place(point_figures(det, int(rows[0]), points))
            if x > self._places.right or y >= self._places.all_y:
                continue
            self._axes.plot(x, y, "o", color=BLUE, markersize=5, clip_on=False, zorder=4, label=label)
            label = None
            # Numbers that would overlap are left out; the table has all.
            if all(abs(x - label_x) > _NUMBER_X or abs(y - label_y) > _NUMBER_Y for label_x, label_y in label_places):
                label_places.append((x, y))
                self._axes.annotate(
                    str(point.number), (x, y), xytext=(5, 5), textcoords="offset points", fontsize=9, color=BLUE
                )

    def _draw_chosen(self, chosen: ChosenPoint, *, is_on_other_list: bool) -> None:
        """Marks the chosen point with its intervals. is_on_other_list: whether it was chosen on another curve, where it
        is marked, too."""
        shown = chosen.shown
        if is_on_other_list:
            x, y = self._places.place(chosen.chosen)
            self._axes.plot(x, y, "D", color=ORANGE, markeredgecolor="black", markersize=9, zorder=5, clip_on=False,
                            label=f"chosen here: threshold {threshold_text(shown.threshold)}")  # fmt: skip
        x, y = self._places.place(shown)
        rates, shares = shown.per_hour_interval, shown.false_reject_interval
        if rates is not None and shares is not None:
            across, up = self._places.x(np.array(rates)), self._places.y(np.array(shares))
            self._axes.errorbar(
                [x], [y], xerr=[[max(0.0, x - across[0])], [max(0.0, across[1] - x)]],
                yerr=[[max(0.0, y - up[0])], [max(0.0, up[1] - y)]],
                color=RED, linewidth=2, capsize=5, zorder=5,
            )  # fmt: skip
        name = "reported" if chosen.reported is not None else f"chosen: threshold {threshold_text(shown.threshold)}"
        label = f"{name}: {shown.false_accepts} FA in {exposure(shown.hours)}, {shown.misses} of {shown.files} FR"
        self._axes.plot(x, y, "*", color=RED, markeredgecolor="black", markersize=16, zorder=6, clip_on=False,
                        linestyle="none", label=label)  # fmt: skip

    def _draw_scales(self) -> None:
        axes = self._axes
        scale = self._places
        axes.set_xticks(*zip(*scale.x_ticks, strict=True))
        axes.set_xticks(scale.small_ticks, minor=True)
        axes.set_xlim(scale.zero_x - _BAND_X, scale.right)
        axes.set_yticks(*zip(*scale.y_ticks, strict=True))
        axes.set_ylim(scale.zero_y - _BAND_Y, scale.all_y + _BAND_Y)
        # There is no scale between an edge for zero and the axis.
        axes.axvspan(scale.zero_x - _BAND_X, scale.zero_x + _BAND_X, color=GREY, alpha=0.10, linewidth=0)
        for place in (scale.zero_y, scale.all_y):
            axes.axhspan(place - _BAND_Y, place + _BAND_Y, color=GREY, alpha=0.10, linewidth=0)
        axes.grid(color="#cccccc", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlabel("false accepts per hour")
        axes.set_ylabel("false rejects, %")
