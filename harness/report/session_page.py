"""Sessions as one page of HTML that needs no other files: verdict, conditions, times, events with sound, provenance.

Every number comes from `WholeSession`, as in all other exports.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from harness.base.foreign import plain_text
from harness.base.garbage_collection import gc_paused
from harness.base.grouping import group_by
from harness.base.pages import write_filled_page
from harness.base.places import SessionFolder
from harness.base.progress import step
from harness.base.table import Table
from harness.model import numbers
from harness.model.choices import CategoryGroup, Grouping, Reading
from harness.model.frozen import frozen
from harness.model.judgment import Category
from harness.model.scenario import TrialKind
from harness.model.time import MeasuredDuration
from harness.model.trial import Trial
from harness.rating.reports import agreement
from harness.rating.reports.categories import name_of
from harness.report.charts import (
    MAX_POINTS,
    Chart,
    CurveData,
    Lane,
    LaneMark,
    distribution_steps,
    make_chart,
    make_lane,
    time_unit,
)
from harness.report.session import WholeSession, limits_of
from harness.report.session_cases import (
    MARK_OF_OUTCOME,
    MAX_LISTED,
    PageSounds,
    SessionRatings,
    SoundStorage,
    aligned_blocks,
    case_title,
    misheard_in,
    moment_text,
    session_cases,
)
from harness.session.figures.frames_of_session import session_corpora
from harness.session.figures.procedures import clause_rows
from harness.session.figures.progress import Progress, normalisation_of, recognised_of, words_of_session
from harness.session.figures.requests import requests_of_session
from harness.session.figures.trials import TrialProgress, by_group, heard_in
from harness.session.figures.understood_trials import understood_of
from harness.session.log.reader import LogReader, later_rows, read_scenario, sound_changes
from harness.session.summary import disturbance_lines, outcome_in_words, request_pauses, session_verdict, wer_in_words
from harness.session.wording import OUTCOME_WORDS, connection_in_words
from harness.statistics import text
from harness.statistics.intervals import Interval, Share, is_exact_enough
from harness.statistics.verdict import LimitVerdict, worst
from harness.understanding.counts import Rule
from harness.understanding.reports.score_text import SystemReport, interval_unit, label_table
from harness.understanding.reports.shown_utterances import selection
from harness.understanding.scoring import count_system, score
from harness.wake.reports.figures_text import (
    correction_note,
    disagreements,
    heard_sentence,
    lag_text,
    rate_text,
    ratio_text,
    recovery_words,
)
from harness.wake.timeline import mark_of
from harness.wake.wake import WakeFigures, comparisons
from harness.wake.wake_plays import Play
from harness.wake.wake_progress import DeviceWake, Speakers, ratio_with_intervals

T = TypeVar("T")
MAX_ROWS = 2000
_MAX_CROSSED_LABELS = 24
LATENCY_TITLE = "Response latency: cumulative % of the trials"
DELAY_TITLE = "Wake delay: cumulative % of the hits"


@frozen
class Cell:
    """A share under a condition, with its interval (0–1)."""

    share: Share
    interval: Interval | None

    @property
    def whisker(self) -> tuple[float, float, float] | None:
        """Low end, value and high end in percent; None without an interval."""
        if self.share.value is None or self.interval is None:
            return None
        low, high = self.interval
        return 100 * low, 100 * self.share.value, 100 * high


@gc_paused()
def write_report(folders: Sequence[Path], target: Path, sounds: SoundStorage) -> LimitVerdict:
    """Writes the page of the sessions to a file, completely or not at all. Returns the worst verdict.

    Raises LogError, or InputError for a folder that is not a session.
    """
    page_sounds = PageSounds(sounds, target)
    sections = [_session_values(folder, number, page_sounds) for number, folder in enumerate(folders, 1)]
    verdict = worst(section["verdict"] for section in sections)
    step("Writing the page")
    write_filled_page(
        target,
        "harness.report",
        "session_page.html",
        title=_page_title([section["session"] for section in sections]),
        sections=sections,
        verdict=verdict,
        sounds=sounds,
        no_sounds=SoundStorage.NONE,
        missing_sounds=page_sounds.unreadable,
        removed_sounds=[line for folder in folders for line in sound_changes(folder)],
        text=text,
        ratio=ratio_text,
        rate=rate_text,
        wer=wer_in_words,
        moment=moment_text,
        disturbance_lines=disturbance_lines,
        connection_in_words=connection_in_words,
        in_words=OUTCOME_WORDS,
        disagreements=disagreements,
        correction_note=correction_note,
        heard_sentence=heard_sentence,
        lag=lag_text,
        recovery_words=recovery_words,
        figures=((*Category, *CategoryGroup)),
        name_of=name_of,
        agreement_sections=agreement.sections,
        most_ids=MAX_LISTED,
        admitted=Reading.ADMITTED,
    )
    return verdict


def _page_title(sessions: Sequence[WholeSession]) -> str:
    names = [plain_text(session.started.title or session.started.scenario_id, 120) for session in sessions]
    if len(names) > 1 and len(set(names)) == 1:
        return f"{names[0]}, {len(names)} sessions"
    return " and ".join(names) if len(names) < 3 else f"{len(names)} sessions"


def _session_values(path: Path, number: int, sounds: PageSounds) -> dict[str, Any]:
    """Everything that the page shows about one session; texts are escaped by the template."""
    folder = SessionFolder(path)
    with LogReader(path) as reader:
        session = WholeSession.of(reader.entries(), later_rows(path))
    scenario = read_scenario(path)
    wake = session.wake.snapshot()
    limits = limits_of(session, scenario)
    progress = session.progress
    verdict, reasons = session_verdict(limits, progress)
    plays = session.wake.plays_by_trial()
    heard = heard_in(progress.trials, session.wake)
    lanes, span_s = _timeline(session)
    rated = SessionRatings.of(path) if progress.totals.judged else None
    misheard = misheard_in(heard)
    trials = [trial.trial for trial in progress.trials]
    words_by = [(axis, by_group(heard, axis)) for axis in ("device", *_varying_axes(trials))]
    no_clip = "no clip was kept"
    if not any(trial.microphone for trial in trials):
        no_clip += ": the bench has no microphone"
    return {
        "session": session,
        "number": number,
        "verdict": verdict,
        "verdict_why": "; ".join(reasons),
        "limits": limits,
        "procedure": scenario.procedure,
        "clauses": clause_rows(scenario, progress, session.wake),
        "devices": wake.devices,
        "pairs": comparisons(session.wake, every_pair=True),
        "self_wakes": progress.self_wakes,
        "constant": _constant_conditions(trials),
        "conditions": tuple(_condition_values(session)),
        "charts": tuple(_session_charts(session, number)),
        "no_clip": no_clip,
        "lanes": lanes,
        "span_s": span_s,
        "words": words_of_session(progress.totals, wake),
        "requests": request_pauses(progress.totals, wake),
        "words_by": tuple((axis, groups) for axis, groups in words_by if len(groups) > 1),
        "normalisation": normalisation_of(progress),
        "rated": rated,
        "frames": session_frames(progress, MAX_LISTED),
        "misheard": [
            (case_title(trial.trial.id, trial.device), aligned_blocks(trial)) for trial in misheard[:MAX_LISTED]
        ],
        "misheard_total": len(misheard),
        "cases": tuple(session_cases(session, rated, folder, number, sounds)),
        "trials": [_trial_row(trial, plays.get(trial.trial.id, ())) for trial in progress.trials[:MAX_ROWS]],
        "trials_left": len(progress.trials) - MAX_ROWS,
    }


# Frames

RULE = Rule(ordered=False, places=False)
"""Devices report neither the order nor the place of slots."""


def session_frames(progress: Progress, max_listed: int) -> dict[str, Any] | None:
    """The values for the page's section on frames; None if no trial expects an intent, or no frame is known.

    max_listed: most utterances to list. The keys of the result:

    - metrics: those with a value. interval_unit: what their intervals are over if queries are repeated; else "".
    - wrong: utterances with errors, worst first. total: number of all of them, also those not listed.
    - unknown: ids of trials without evidence of the frame, which do not count.
    """
    corpora = session_corpora([progress])
    if not corpora.gold.utterances:
        return None
    scoring = score(corpora.gold, corpora.predicted, RULE)
    reported = SystemReport(count_system([scoring]))
    (figures,) = reported.figures
    shown = selection([scoring], ["told"], max_listed)
    return {
        "utterances": len(corpora.gold.utterances),
        "metrics": Table(reported.table.fields, [row for row in reported.rows if row.value is not None]),
        "interval_unit": interval_unit(scoring.totals),
        "intents": label_table("intent", figures.intents.labels),
        "concepts": label_table("concept", figures.slots.per_concept_set),
        "wrong": [utterance for utterance in shown.utterances if utterance.kinds != "0"],
        "total": shown.with_errors,
        "unknown": corpora.unknown,
    }


# Conditions


def _varying_axes(trials: Sequence[Trial]) -> list[str]:
    """The axes with more than one label, in the order of the plan."""
    labels: dict[str, set[str]] = {}
    for trial in trials:
        for axis, label in trial.conditions:
            labels.setdefault(axis, set()).add(label)
    return [axis for axis, axis_labels in labels.items() if len(axis_labels) > 1]


def _constant_conditions(trials: Sequence[Trial]) -> list[tuple[str, str]]:
    """Each condition that all trials share, with its label: axes with a single label, and a noise that is not an
    axis."""
    counts = Counter(condition for trial in trials for condition in dict.fromkeys(trial.conditions))
    constant = [condition for condition, count in counts.items() if count == len(trials)]
    if "noise" not in {axis for axis, _ in counts}:
        noises = {trial.recipe.noise for trial in trials if trial.kind is not TrialKind.AMBIENT}
        constant += [("noise", noise.label()) for noise in noises if noise is not None and len(noises) == 1]
    return constant


def _condition_values(session: WholeSession) -> Iterator[dict[str, Any]]:
    """For each measure and device, the shares in total and by axis."""
    yield from _query_conditions(session.progress)
    wake = session.wake.snapshot()
    for device, gaps in requests_of_session(session.progress.totals.requests, wake):
        if len(gaps) > 1:
            rows = [(str(gap.gap_ms), _share_cell(gap.whole)) for gap in gaps]
            yield {
                "what": "requests whole",
                "device": device,
                "whole": _share_cell(sum((gap.whole for gap in gaps), Share())),
                "by_axis": [{"axis": Grouping.GAP, "rows": rows, "left_out": 0}],
                "crossed": [],
            }
    for figures in wake.devices:
        plays = [play for play in session.wake.plays(figures.device) if play.kind is TrialKind.WAKE]
        if plays:
            # Trials may also differ in their own level or opening, which are not axes of the matrix.
            named_plays = [({"trial": play.trial.template} | dict(play.trial.conditions), play) for play in plays]
            axes = _varying_axes([play.trial for play in plays])
            if len({play.trial.template for play in plays}) > 1:
                axes.append("trial")
            values = _shares_by_conditions("false rejects", figures.device, axes, named_plays, _reject_cell)
            yield values | {"whole": Cell(figures.false_rejects.share, figures.false_rejects.interval)}


def _query_conditions(progress: Progress) -> Iterator[dict[str, Any]]:
    """The shares of recognised and of understood queries, for each device that has any."""
    queries = group_by((trial.trial.device, trial) for trial in progress.trials if trial.trial.listening is None)
    for device, trials in queries.items():
        with_conditions = [(dict(trial.trial.conditions), trial) for trial in trials]
        axes = _varying_axes([trial.trial for trial in trials])
        if recognised_of(trials)[0].total:
            yield _shares_by_conditions(
                "recognised", device, axes, with_conditions, lambda group: _share_cell(recognised_of(group)[0])
            )
        if understood_of(trials).right.total:
            yield _shares_by_conditions(
                "understood", device, axes, with_conditions, lambda group: _share_cell(understood_of(group).right)
            )


def _share_cell(share: Share) -> Cell:
    return Cell(share, share.interval)


def _reject_cell(plays: Sequence[Play]) -> Cell:
    """The share of false rejects among plays of wake phrases, with an interval over talkers if there are several."""
    missed_by_speaker = group_by((play.trial.speaker, play.reading.hit is None) for play in plays)
    shares = {speaker: Share(sum(missed), len(missed)) for speaker, missed in missed_by_speaker.items()}
    rejects = ratio_with_intervals(sum(shares.values(), Share()), Speakers.of(shares))
    return Cell(rejects.share, rejects.interval)


_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def ordered_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Each label once, in order of occurrence; labels that differ only in their first number are sorted by it."""
    unique = dict.fromkeys(labels)
    stems = list(dict.fromkeys(_NUMBER.sub("", label, count=1) for label in unique))

    def sort_key(label: str) -> tuple[int, float]:
        number = _NUMBER.search(label)
        return stems.index(_NUMBER.sub("", label, count=1)), float(number[0]) if number else 0.0

    return tuple(sorted(unique, key=sort_key))


def _shares_by_conditions(
    measure: str,
    device: str,
    axes: Sequence[str],
    trials: Sequence[tuple[dict[str, str], T]],
    make_cell: Callable[[Sequence[T]], Cell],
) -> dict[str, Any]:
    """Shares by the labels of each axis, and of each pair of the first three axes.

    trials: each with its conditions. A cell of a pair is None if no trial was planned.
    """
    by_axis = []
    for axis in axes:
        labels = ordered_labels(conditions[axis] for conditions, _ in trials if axis in conditions)
        rows = [
            (label, make_cell([trial for conditions, trial in trials if conditions.get(axis) == label]))
            for label in labels[:MAX_LISTED]
        ]
        by_axis.append({"axis": axis, "rows": rows, "left_out": len(labels) - len(rows)})
    crossed = []
    for first, second in combinations(axes[:3], 2):
        cells = group_by(
            ((conditions[first], conditions[second]), trial)
            for conditions, trial in trials
            if first in conditions and second in conditions
        )
        row_labels = ordered_labels(label for label, _ in cells)
        column_labels = ordered_labels(label for _, label in cells)
        if cells and max(len(column_labels), len(row_labels)) <= _MAX_CROSSED_LABELS:
            made = {labels: make_cell(trials_of_pair) for labels, trials_of_pair in cells.items()}
            rows_of_pair = [
                (label, tuple(made.get((label, column_label)) for column_label in column_labels))
                for label in row_labels
            ]
            crossed.append({"axes": (first, second), "heads": column_labels, "rows": rows_of_pair})
    whole = make_cell([trial for _, trial in trials])
    return {"what": measure, "device": device, "whole": whole, "by_axis": by_axis, "crossed": crossed}


def wake_charts(id: str, wake: WakeFigures, first_s: float) -> list[Chart | None]:
    """Charts of the false rejects and false accepts so far, over the time since first_s (Unix time), and of the wake
    delays of hits. id: ends the ids of the charts."""
    devices = wake.snapshot().devices
    span_s = max((device.looks[-1].wall_s - first_s for device in devices if device.looks), default=0.0)
    unit, unit_s = time_unit(span_s)
    rejects = [_reject_curve(device, first_s, unit_s) for device in devices]
    accepts = [_accept_curve(device, first_s, unit_s) for device in devices]
    words = "The final values are in the table of devices."
    time_axis = f"{unit} since the start"
    title = "False rejects so far (% of the wake trials), with 95 % interval"
    return [
        make_chart(f"rejects-{id}", title, time_axis, words, rejects),
        make_chart(f"accepts-{id}", "False accepts per hour so far, with 95 % interval", time_axis, words, accepts),
        distribution(f"delay-{id}", DELAY_TITLE, delays_by_device(wake)),
    ]


def _reject_curve(device: DeviceWake, first_s: float, unit_s: float) -> CurveData:
    """The false rejects of a device in percent. unit_s: length of the unit of the x axis, from first_s on."""
    ratios = [((look.wall_s - first_s) / unit_s, look.false_rejects) for look in device.looks]
    line = [(x, 100 * ratio.share.value) for x, ratio in ratios if ratio.share.value is not None]
    band = [(x, 100 * ratio.interval[0], 100 * ratio.interval[1]) for x, ratio in ratios if ratio.interval is not None]
    return device.device, line, band


def _accept_curve(device: DeviceWake, first_s: float, unit_s: float) -> CurveData:
    """The false accepts of a device per hour. Intervals end at four times the highest rate, or at 10 if it is 0."""
    rates = [((look.wall_s - first_s) / unit_s, look.false_accepts) for look in device.looks]
    line = [(x, rate.per_hour) for x, rate in rates if rate.per_hour is not None]
    max_high = 4 * max((per_hour for _, per_hour in line), default=0.0) or 10.0
    band = [(x, rate.interval[0], min(rate.interval[1], max_high)) for x, rate in rates if rate.interval is not None]
    return device.device, line, band


def _session_charts(session: WholeSession, number: int) -> Iterator[Chart]:
    rejects, accepts, delay = wake_charts(str(number), session.wake, session.first_s)
    latency = distribution(f"latency-{number}", LATENCY_TITLE, latencies_by_device(session))
    charts = [rejects, accepts, _trade_off_chart(f"trade-off-{number}", session), latency, delay]
    yield from (drawn for drawn in charts if drawn is not None)


def _trade_off_chart(id: str, session: WholeSession) -> Chart | None:
    curves: list[CurveData] = []
    for device in session.wake.snapshot().devices:
        hours, trials = device.after_review.hours, device.false_rejects.share.total
        if hours and trials:
            line = [
                (accepts / hours, 100 * rejects / trials)
                for _, rejects, accepts in raised_thresholds(session.wake, device.device)
            ]
            name = f"{device.device}, {numbers.counted(trials, 'trial')}, {numbers.hours(device.exposure_s, 1)}"
            curves.append((name, line, []))
    words = (
        "The right end is the result of this session. It does not include events that could only have occurred later."
    )
    return make_chart(id, "False rejects (%) if the threshold were raised", "false accepts per hour", words, curves)


def raised_thresholds(wake: WakeFigures, device: str) -> list[tuple[float, int, int]]:
    """For each level of the score, the false rejects and false accepts (after review) if only events with a score above
    it counted.

    Returns (level, rejects, accepts), beginning with −∞, which is the session's own result. Events without a score
    count at every level. An event that a higher threshold would have caused by suppressing an earlier one is not known.
    """
    hits = [play.reading.hit for play in wake.plays(device) if play.kind is TrialKind.WAKE]
    hit_scores = sorted(hit.score for hit in hits if hit is not None and hit.score is not None)
    false_accepts = [event for event in wake.unmatched(device) if wake.is_false_accept(event, use_reviews=True)]
    accept_scores = sorted(event.score for event in false_accepts if event.score is not None)
    missed = sum(hit is None for hit in hits)
    levels = sorted({*hit_scores, *accept_scores})
    thresholds = [(-math.inf, missed, len(false_accepts))]
    for level in levels[:: max(1, len(levels) // MAX_POINTS)]:
        rejects = missed + bisect_right(hit_scores, level)
        accepts = len(false_accepts) - bisect_right(accept_scores, level)
        thresholds.append((level, rejects, accepts))
    return thresholds


def distribution(id: str, title: str, durations: dict[str, list[MeasuredDuration]]) -> Chart | None:
    """A chart of the distributions of durations, by name; None with too few durations.

    Like the tables, it leaves out durations whose errors are too large.
    """
    times_ms = {
        name: [duration.value_s * 1000 for duration in times if is_exact_enough(duration)]
        for name, times in durations.items()
    }
    curves: list[CurveData] = [
        (f"{name}, n = {len(values)}", distribution_steps(values), []) for name, values in times_ms.items() if values
    ]
    words = "The tables give the median and the 95th and 99th percentiles, with intervals and clock errors."
    return make_chart(id, title, "ms", words, curves, y_end=100.0)


def latencies_by_device(session: WholeSession) -> dict[str, list[MeasuredDuration]]:
    """The latencies of responses, by device."""
    latencies: dict[str, list[MeasuredDuration]] = {}
    for trial in session.progress.trials:
        take = trial.counting
        if take is None or take.deciding is None or trial.trial.memory is not None:
            continue
        verdict = take.deciding.verdict
        # The same trials as in `Totals.latency`.
        is_answered = take.outcome is not None and take.outcome.answered
        if is_answered and verdict is not None and verdict.latency is not None:
            latencies.setdefault(trial.trial.device, []).append(verdict.latency)
    return latencies


def delays_by_device(wake: WakeFigures) -> dict[str, list[MeasuredDuration]]:
    """The wake delays of hits, by device. Those of probes are left out, as in `DeviceWake.delays`."""
    return {
        device.device: [
            play.reading.delay
            for play in wake.plays(device.device)
            if play.reading.delay is not None and play.kind is not TrialKind.PROBE
        ]
        for device in wake.snapshot().devices
    }


# Timeline


def _timeline(session: WholeSession) -> tuple[tuple[Lane, ...], float]:
    """The lanes of the timeline by wall time, and its length in seconds: trials, first responses, faults, and a lane
    for each device that listened."""
    span_s = max(session.last_s - session.first_s, 1.0)
    responses = [
        LaneMark(wall_s - session.first_s, length_s, "hit", f"response to {trial_id}")
        for trial_id, wall_s, length_s in session.responses
    ]
    faults = [
        LaneMark(wall_s - session.first_s, 0.0, "fault", f"fault: {fault.source}: {fault.what}")
        for wall_s, fault in session.faults_met
    ]
    lanes = [make_lane("trials", list(_trial_marks(session)), span_s)]
    if responses:
        lanes.append(make_lane("responses", responses, span_s))
    if faults:
        lanes.append(make_lane("faults", faults, span_s))
    for device in session.wake.snapshot().devices:
        marks = []
        for play in session.wake.plays(device.device):
            start_s, end_s = session.spans[play.trial.id, play.row.take]
            kind = mark_of(play).value  # its CSS class
            words = f"{kind.replace('_', ' ')}: {play.trial.id}"
            marks.append(LaneMark(start_s - session.first_s, end_s - start_s, kind, words))
        for event in session.wake.unmatched(device.device):
            words = f"unmatched event {event.seq}: {event.phrase}"
            marks.append(LaneMark(event.wall_s - session.first_s, 0.0, "unmatched", words))
        lanes.append(make_lane(device.device, marks, span_s))
    return tuple(lanes), span_s


def _trial_marks(session: WholeSession) -> Iterator[LaneMark]:
    """A mark for each take of a trial, with its outcome as it was after that take."""
    trials = {trial.trial.id: trial for trial in session.progress.trials}
    plays = session.wake.plays_by_trial()
    for (trial_id, take), (start_s, end_s) in session.spans.items():
        trial, kind, words = trials.get(trial_id), "interrupted", ""
        if trial is not None:
            is_counting = trial.counting is not None and trial.counting.take == take
            until_take = replace(trial, takes=tuple(other for other in trial.takes if other.take <= take))
            words = outcome_in_words(until_take, plays.get(trial_id, ()) if is_counting else ())
            if until_take.outcome is not None:
                kind = MARK_OF_OUTCOME.get(until_take.outcome, "failed")
        yield LaneMark(start_s - session.first_s, end_s - start_s, kind, f"{trial_id}, take {take}: {words}")


def _trial_row(trial: TrialProgress, plays: Sequence[Play]) -> tuple[str, ...]:
    verdict = trial.last_verdict
    return (
        str(trial.trial.number),
        trial.trial.id,
        trial.trial.condition,
        outcome_in_words(trial, plays),
        "" if trial.attempts is None else str(trial.attempts),
        text.measured(verdict.latency) if verdict and verdict.latency else "",
        (verdict.heard or "") if verdict else "",
    )
