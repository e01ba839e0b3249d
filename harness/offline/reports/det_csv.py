"""A DET curve as a table: a row a threshold, with counts, exposure, rates and their exact intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from harness.base.safe_csv import safe_csv
from harness.model.offline import OperatingPoint
from harness.offline.figures.chosen_point import point_of
from harness.offline.figures.det import Det, term_weighted_value

MOST_ROWS = 4000
COLUMNS = ("threshold", "operating_point", "chosen", "files", "false_rejects", "fr", "fr_low", "fr_high",
           "false_accepts", "hours", "fa_per_hour", "fa_per_hour_low", "fa_per_hour_high")  # fmt: skip
TWV_COLUMN = "twv"


def det_csv(
    det: Det,
    points: Sequence[OperatingPoint],
    chosen: float | None = None,
    twv: tuple[float, float | None] | None = None,
) -> str:
    """The table. chosen: the threshold that is recommended; twv: beta and seconds of speech of a column of values.

    A cell over nothing is n/a. Of more than MOST_ROWS thresholds those are told at which the curve turns.
    """
    head = [*COLUMNS, TWV_COLUMN] if twv is not None else [*COLUMNS]
    return safe_csv([head, *_rows(det, points, chosen, twv)])


def threshold_text(threshold: np.float32 | float) -> str:
    """As few digits as give back the same threshold: what `-s threshold=` takes."""
    return np.format_float_positional(np.float32(threshold), unique=True, trim="-")


def turning(det: Det, points: Sequence[OperatingPoint], chosen: float | None = None) -> npt.NDArray[np.intp]:
    """Rows worth telling: all, or of very many the corners of the curve, evenly taken, and every named point."""
    if len(det) <= MOST_ROWS:
        return np.arange(len(det))
    named = np.array([one.threshold for one in points] + ([chosen] if chosen is not None else []), np.float32)
    kept = np.isin(det.thresholds, named)
    kept[[0, -1]] = True
    # Corners: the first and last row of each count of misses, then of each count of false accepts.
    for values in (det.misses, det.false_accepts):
        turns = np.flatnonzero(np.diff(values))
        corners = np.union1d(turns, turns + 1)
        if len(corners):
            kept[corners[np.unique(np.linspace(0, len(corners) - 1, MOST_ROWS // 4).astype(int))]] = True
            kept[corners[: MOST_ROWS // 8]] = True  # few events: each of them tells
    return np.flatnonzero(kept)


def _rows(
    det: Det, points: Sequence[OperatingPoint], chosen: float | None, twv: tuple[float, float | None] | None
) -> Iterator[list[str]]:
    shares, rates = det.false_rejects(), det.per_hour()
    share_band, rate_band = det.false_reject_band(), det.per_hour_band()
    values = term_weighted_value(det, *twv) if twv is not None else None
    at = None if chosen is None else np.float32(chosen)
    for index in turning(det, points, chosen):
        number = point_of(det.thresholds[index], points)
        row = [
            threshold_text(det.thresholds[index]),
            "" if number is None else str(number),
            "yes" if det.thresholds[index] == at else "",
            str(det.files),
            str(det.misses[index]),
            *(_number(one[index]) for one in (shares, *share_band)),
            str(det.false_accepts[index]),
            f"{det.hours[index]:.6f}",
            *(_number(one[index]) for one in (rates, *rate_band)),
        ]
        yield [*row, _number(values[index])] if values is not None else row


def _number(value: np.float64) -> str:
    return f"{value:.6g}" if np.isfinite(value) else "n/a"
