"""Measures of many sessions in the order of their start, by scenario and device, with the change points of each.

The value of a measure in a session is the one that `harness report compare` uses (`comparison.device_results`).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from harness.base.foreign import plain_text
from harness.base.places import SessionFolder
from harness.model.errors import HarnessError, InputError, did_you_mean, nearest
from harness.model.frozen import frozen
from harness.model.numbers import hundredths
from harness.model.record import EndReason
from harness.model.time import MeasuredDuration
from harness.rating.figures.judged_responses import rated_trials, read_sessions
from harness.report.comparison import Measure, device_names, device_results
from harness.report.session import WholeSession, read_session
from harness.report.session_facts import DifferingFact, facts_of, facts_that_differ
from harness.session.figures.trials import heard_in, words_of
from harness.session.log.reader import later_rows
from harness.session.summary import session_verdict
from harness.statistics.change_points import ChangePoint, Scan, SeriesToScan, scan_series
from harness.statistics.comparison import ComparedColumns, ComparedUnit, DifferenceVerdict, MeasureKind, difference_of
from harness.statistics.intervals import Interval, Share, garwood, latency_figures


@frozen
class TrendMeasure:
    """A measure to follow. quantile: for durations, 0.5 or 0.95; None for all other measures."""

    measure: Measure
    quantile: float | None = None

    @property
    def kind(self) -> MeasureKind:
        return self.measure.kind

    @property
    def name(self) -> str:
        return self.measure.value + (f" p{hundredths(self.quantile, 0)}" if self.quantile else "")


TREND_MEASURES = tuple(
    TrendMeasure(measure, quantile)
    for measure in Measure
    for quantile in ((0.5, 0.95) if measure.kind is MeasureKind.TIME else (None,))
)
_SCANS = {
    MeasureKind.SHARE: Scan.SHARE,
    MeasureKind.WORDS: Scan.RATE,
    MeasureKind.RATE: Scan.RATE,
    MeasureKind.TIME: Scan.RANK,
}


@frozen
class TrendValue:
    """The value of a measure.

    - value: a share, a rate, or seconds.
    - count, of: `count` out of `of` trials, words or hours; for durations, `of` is their number.
    - interval: 95 % interval. An end is None with too few durations. A level (several sessions together) has none.
    - clock_error_s: error of the clocks, for durations.
    """

    value: float
    count: float
    of: float
    interval: tuple[float | None, float | None] | None = None
    clock_error_s: float = 0.0


@frozen
class TrendSession:
    """A session in a trend.

    - folder: path below the folder that was searched, sanitised.
    - session: its id, sanitised.
    - started_s: Unix time.
    - facts: see `session_facts.facts_of`.
    - values: by device and measure.
    """

    folder: str
    session: str
    started_s: float
    scenario: str
    facts: Mapping[str, str]
    values: Mapping[tuple[str, TrendMeasure], TrendValue]


@frozen
class LevelChange:
    """A change of level.

    - at: index of the first session after it, from 0.
    - before, after: the levels.
    - difference: after minus before, with its interval, which does not include the uncertainty about the place of the
      change.
    - facts: facts that differ between the sessions on both sides of the change.
    """

    at: int
    before: TrendValue
    after: TrendValue
    difference: float
    interval: Interval | None
    p_holm: float
    change: DifferenceVerdict
    facts: tuple[DifferingFact, ...]


@frozen
class Trend:
    """A measure of a device in the sessions of one scenario that have it.

    p_holm: corrected p of the hypothesis that there is no change; None with too few sessions.
    """

    scenario: str
    device: str
    measure: TrendMeasure
    sessions: tuple[TrendSession, ...]
    p_holm: float | None = None
    changes: tuple[LevelChange, ...] = ()

    @property
    def values(self) -> tuple[TrendValue, ...]:
        return tuple(session.values[self.device, self.measure] for session in self.sessions)

    @property
    def levels(self) -> tuple[tuple[int, int, TrendValue], ...]:
        """Start, end and level of each stretch between changes. Start and end are indices of sessions."""
        edges = [0, *(change.at for change in self.changes), len(self.sessions)]
        return tuple((low, high, _level_value(self.measure, self.values[low:high])) for low, high in pairwise(edges))

    def worsened_within(self, sessions: int) -> bool:
        """Whether the last change is for the worse, and lies at one of the last `sessions` sessions."""
        last = self.changes[-1] if self.changes else None
        return last is not None and last.change is DifferenceVerdict.WORSE and last.at >= len(self.sessions) - sessions


@frozen
class TrendFolder:
    """The trends of all sessions below a folder.

    - sessions: sorted by start.
    - trends: sorted by scenario, device and measure.
    - left_out: (folder, reason) for each that is left out, sanitised.
    """

    sessions: tuple[TrendSession, ...]
    trends: tuple[Trend, ...]
    left_out: tuple[tuple[str, str], ...]


def read_trends(
    folder: Path, names: Collection[str] = (), device: str | None = None, since_s: float | None = None
) -> TrendFolder:
    """The trends of all sessions below a folder.

    - names: names of measures; empty for all.
    - device: the only device; None for all.
    - since_s: Unix time; earlier sessions are ignored. None for all.

    Raises InputError without a session, or for a name that is unknown.
    """
    measures = {measure.name: measure for measure in TREND_MEASURES}
    for name in names:
        if name not in measures:
            raise InputError(
                f"there is no measure {plain_text(name, 80)!r}",
                remedy=f"{did_you_mean(name, measures)}Known: {'; '.join(measures)}",
            )
    measures_to_follow = [measure for measure in TREND_MEASURES if not names or measure.name in names]
    left_out: list[tuple[str, str]] = []
    complete: list[TrendSession] = []
    devices: dict[str, None] = {}
    for path in _session_folders(folder, left_out):
        name = plain_text(os.path.relpath(path, folder), 200)
        try:
            session = read_session(path, later_rows(path))
            if since_s is not None and session.first_s < since_s:
                continue
            devices |= dict.fromkeys(device_names(session))
            trend_session = _read_trend_session(path, name, session, measures_to_follow, device)
        except (HarnessError, OSError) as error:
            left_out.append((name, plain_text(error.what if isinstance(error, HarnessError) else str(error))))
            continue
        if session.progress.finished is not EndReason.COMPLETED:
            left_out.append((name, "; ".join(session_verdict((), session.progress)[1])))
        elif not trend_session.values:
            left_out.append((name, "it has no result for " + (plain_text(device, 80) if device else "these measures")))
        else:
            complete.append(trend_session)
    if not complete and not left_out:
        time_limit = "" if since_s is None else " that began on or after --since"
        raise InputError(
            f"there is no session in {folder}{time_limit}", remedy="Specify the folder that contains the sessions"
        )
    if device is not None and device not in devices:
        raise InputError(f"no session has the device {plain_text(device, 80)!r}", remedy=nearest(device, devices))
    unique_sessions: dict[tuple[str, float], TrendSession] = {}
    for candidate in sorted(complete, key=lambda candidate: (candidate.started_s, candidate.folder)):
        first = unique_sessions.setdefault((candidate.session, candidate.started_s), candidate)
        if first is not candidate:
            left_out.append((candidate.folder, f"it is a copy of {first.folder}"))
    sessions = list(unique_sessions.values())
    return TrendFolder(tuple(sessions), tuple(_make_trends(sessions, measures_to_follow)), tuple(left_out))


def _session_folders(folder: Path, left_out: list[tuple[str, str]]) -> Iterator[Path]:
    """The folders of sessions, sorted. Adds folders that cannot be read to `left_out`."""

    def add_unreadable(error: OSError) -> None:
        left_out.append((plain_text(str(error.filename), 200), f"it cannot be read: {error.strerror}"))

    for root, subfolders, files in os.walk(folder, onerror=add_unreadable):
        session = SessionFolder(Path(root))
        if {session.database.name, session.resolved.name, session.summary.name} & set(files):
            subfolders.clear()
            yield session.path
        subfolders.sort()


def _read_trend_session(
    path: Path, name: str, session: WholeSession, measures_to_follow: Sequence[TrendMeasure], device: str | None
) -> TrendSession:
    rated, heard = rated_trials(read_sessions([path])), heard_in(session.progress.trials, session.wake)
    values: dict[tuple[str, TrendMeasure], TrendValue] = {}
    for device_name in device_names(session) if device is None else [device]:
        units, wake = device_results(session, device_name, rated), session.wake.snapshot().device(device_name)
        words = words_of(trial for trial in heard if trial.device == device_name)
        # As in the report: over talkers if there are several, and over queries if there are enough.
        intervals = {Measure.FIRST_WER: words.first.interval, Measure.FINAL_WER: words.final.interval}
        if wake is not None:
            intervals[Measure.FALSE_REJECTS] = wake.false_rejects.interval
        for trend_measure in measures_to_follow:
            value = _trend_value(trend_measure, units.get(trend_measure.measure, ()))
            if value is not None:
                interval = intervals.get(trend_measure.measure, value.interval)
                values[device_name, trend_measure] = replace(value, interval=interval)
    started, session_id = session.started, plain_text(session.started.session_id, 120)
    return TrendSession(name, session_id, session.first_s, started.scenario_id, facts_of(session, path), values)


def _trend_value(measure: TrendMeasure, units: Sequence[ComparedUnit]) -> TrendValue | None:
    """The value of a measure in a session, from its trials; None if it has none. A WER is without its interval."""
    count, total = sum(unit.count for unit in units), sum(unit.total for unit in units)
    if not total:
        return None
    match measure.kind:
        case MeasureKind.TIME:
            figures = latency_figures([unit.time for unit in units if unit.time is not None])
            quantile = figures.p50 if measure.quantile == 0.5 else figures.p95
            if quantile is None:  # no duration is exact enough
                return None
            return TrendValue(
                value=quantile.value_s,
                count=0,
                of=figures.total,
                interval=(quantile.low_s, quantile.high_s),
                clock_error_s=quantile.clock_error_s,
            )
        case MeasureKind.SHARE:
            return TrendValue(count / total, count, total, Share(int(count), int(total)).interval)
        case MeasureKind.RATE:
            return TrendValue(count / total, count, total, garwood(int(count), total))
        case MeasureKind.WORDS:
            return TrendValue(count / total, count, total)


def _make_trends(sessions: Sequence[TrendSession], measures_to_follow: Sequence[TrendMeasure]) -> Iterator[Trend]:
    sessions_by_key: dict[tuple[str, str, TrendMeasure], list[TrendSession]] = {}
    for scenario, device in dict.fromkeys(
        (session.scenario, device) for session in sessions for device, _ in session.values
    ):
        for measure in measures_to_follow:
            series_sessions = [
                session for session in sessions if session.scenario == scenario and (device, measure) in session.values
            ]
            if series_sessions:
                sessions_by_key[scenario, device, measure] = series_sessions
    trends = [Trend(*key, tuple(series_sessions)) for key, series_sessions in sessions_by_key.items()]
    series = []
    for trend in trends:
        kind = trend.measure.kind
        counts = tuple(value.value if kind is MeasureKind.TIME else value.count for value in trend.values)
        series.append(SeriesToScan(_SCANS[kind], counts, tuple(value.of for value in trend.values)))
    for trend, scan in zip(trends, scan_series(series), strict=True):
        yield replace(trend, p_holm=scan.p_holm, changes=_level_changes(trend, scan.changes))


def _level_changes(trend: Trend, points: Sequence[ChangePoint]) -> tuple[LevelChange, ...]:
    """The changes at change points, without those within the errors of the clocks. The levels beside these are one."""
    edges = [0, *(point.at for point in points), len(trend.sessions)]
    changes = [
        _level_change(trend, start, point, end) for start, point, end in zip(edges, points, edges[2:], strict=False)
    ]
    certain_points = [point for point, change in zip(points, changes, strict=True) if change is not None]
    if len(certain_points) < len(points):
        return _level_changes(trend, certain_points)
    return tuple(change for change in changes if change is not None)


def _level_change(trend: Trend, start: int, point: ChangePoint, end: int) -> LevelChange | None:
    """The change at a change point, between the sessions `start` and `end`. None if a time changed by less than the
    errors of the clocks."""
    measure, index = trend.measure, point.at
    sides = trend.values[start:index], trend.values[index:end]
    before, after = (_level_value(measure, side) for side in sides)
    difference = after.value - before.value
    if abs(difference) <= sum(max(value.clock_error_s for value in side) for side in sides):
        return None
    better = (difference > 0) == measure.measure.more_is_better
    change = DifferenceVerdict.BETTER if better else DifferenceVerdict.WORSE
    facts = facts_that_differ([trend.sessions[index - 1].facts, trend.sessions[index].facts])
    interval = _difference_interval(measure.kind, *sides)
    return LevelChange(
        at=index,
        before=before,
        after=after,
        difference=difference,
        interval=interval,
        p_holm=point.p_holm,
        change=change,
        facts=facts,
    )


def _level_value(measure: TrendMeasure, values: Sequence[TrendValue]) -> TrendValue:
    """The value of several sessions: all counts together, or the median of their quantiles."""
    count, total = sum(value.count for value in values), sum(value.of for value in values)
    if measure.kind is MeasureKind.TIME:
        return TrendValue(median(value.value for value in values), count, total)
    return TrendValue(count / total, count, total)


def _difference_interval(
    kind: MeasureKind, before: Sequence[TrendValue], after: Sequence[TrendValue]
) -> Interval | None:
    """The interval of after minus before. Sessions are the units, except for rates per hour (Poisson)."""
    estimate = difference_of(kind, _compared_columns(after), _compared_columns(before), paired=False)
    return None if estimate is None else estimate.interval


def _compared_columns(values: Sequence[TrendValue]) -> ComparedColumns:
    times = [MeasuredDuration(value.value, value.clock_error_s) for value in values]
    return ComparedColumns([value.count for value in values], [value.of for value in values], times=times)
