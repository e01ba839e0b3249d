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
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from harness.base.foreign import plain_text
from harness.base.garbage_collection import gc_paused
from harness.base.grouping import group_by
from harness.base.pages import filled_page
from harness.base.places import SessionFolder
from harness.base.progress import step
from harness.base.table import Table
from harness.base.whole_file import write_atomically
from harness.model import numbers
from harness.model.choices import CategoryGroup, Grouping, Reading
from harness.model.frozen import frozen
from harness.model.judgment import Category
from harness.model.scenario import TrialKind
from harness.model.time import MeasuredDuration
from harness.model.trial import Trial
from harness.rating.reports import agreement
from harness.rating.reports.categories import name_of
from harness.report.charts import MAX_POINTS, Band, Chart, Lane, LaneMark, Point, chart, lane, steps, time_unit
from harness.report.session import WholeSession, limits_of
from harness.report.session_cases import (
    MARK_OF_OUTCOME,
    MAX_LISTED,
    PageSounds,
    SessionRatings,
    SoundStorage,
    aligned,
    case_title,
    cases_of,
    misheard_in,
    moment_of,
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
from harness.statistics.intervals import Interval, Share
from harness.statistics.verdict import LimitVerdict, worst
from harness.understanding.counts import Rule
from harness.understanding.reports.score_html import selection
from harness.understanding.reports.score_text import SystemReport, label_table
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
from harness.wake.wake import WakeFigures, comparisons
from harness.wake.wake_plays import CommandResult, Play
from harness.wake.wake_progress import Speakers, ratio_with_intervals

T = TypeVar("T")
MAX_ROWS = 2000
_MAX_LABELS = 24


@frozen
class Cell:
    """A share under a condition, with its interval (0–1)."""

    share: Share
    interval: Interval | None

    @property
    def whisker(self) -> tuple[float, float, float] | None:
        if self.share.value is None or self.interval is None:
            return None
        return 100 * self.interval[0], 100 * self.share.value, 100 * self.interval[1]


@gc_paused()
def write_report(folders: Sequence[Path], target: Path, sounds: SoundStorage) -> LimitVerdict:
    """Writes the page of the sessions to a file, completely or not at all; returns the worst verdict.

    LogError, InputError for a folder that is not a session.
    """
    shelf = PageSounds(sounds, target)
    sections = [_section(folder, number, shelf) for number, folder in enumerate(folders, 1)]
    verdict = worst(section["verdict"] for section in sections)
    started = [section["session"].started for section in sections]
    names = [plain_text(start.title or start.scenario_id, 120) for start in started]
    title = " and ".join(names) if len(names) < 3 else f"{len(names)} sessions"
    if len(names) > 1 and len(set(names)) == 1:
        title = f"{names[0]}, {len(names)} sessions"
    step("Writing the page")
    page = filled_page(
        "harness.report",
        "session_page.html",
        title=title,
        sections=sections,
        verdict=verdict,
        sounds=sounds,
        no_sounds=SoundStorage.NONE,
        missing_sounds=shelf.unreadable,
        removed_sounds=[line for folder in folders for line in sound_changes(folder)],
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        text=text,
        ratio=ratio_text,
        rate=rate_text,
        wer=wer_in_words,
        moment=moment_of,
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
    write_atomically(target, page.encode("utf-8"))
    return verdict


def _section(path: Path, number: int, sounds: PageSounds) -> dict[str, Any]:
    """Everything that the page shows about one session; texts are escaped by the template."""
    folder = SessionFolder(path)
    with LogReader(path) as reader:
        session = WholeSession.of(reader.entries(), later_rows(path))
    scenario = read_scenario(path)
    wake = session.wake.snapshot()
    limits = limits_of(session, scenario)
    verdict, why = session_verdict(limits, session.progress)
    progress = session.progress
    plays = session.wake.plays_by_trial()
    heard = heard_in(progress.trials, session.wake)
    lanes, span_s = _timeline(session)
    rated = SessionRatings.of(path) if progress.totals.judged else None
    misheard = misheard_in(heard)
    axes = ("device", *_axes([trial.trial for trial in progress.trials]))
    words_by = [(axis, by_group(heard, axis)) for axis in axes]
    return {
        "session": session,
        "number": number,
        "verdict": verdict,
        "verdict_why": "; ".join(why),
        "limits": limits,
        "procedure": scenario.procedure,
        "clauses": clause_rows(scenario, progress, session.wake),
        "devices": wake.devices,
        "pairs": comparisons(session.wake, every_pair=True),
        "self_wakes": progress.self_wakes,
        "constant": _constant([trial.trial for trial in progress.trials]),
        "conditions": tuple(_conditions(session)),
        "charts": tuple(_charts(session, number)),
        "no_clip": "no clip was kept" + (": the bench has no microphone" if _is_deaf(progress) else ""),
        "lanes": lanes,
        "span_s": span_s,
        "words": words_of_session(progress.totals, wake),
        "requests": request_pauses(progress.totals, wake),
        "words_by": tuple((axis, groups) for axis, groups in words_by if len(groups) > 1),
        "normalisation": normalisation_of(progress),
        "rated": rated,
        "frames": session_frames(progress, MAX_LISTED),
        "misheard": [(case_title(trial.trial.id, trial.device), aligned(trial)) for trial in misheard[:MAX_LISTED]],
        "misheard_total": len(misheard),
        "cases": tuple(cases_of(session, rated, folder, number, sounds)),
        "trials": [_trial_row(trial, plays.get(trial.trial.id, ())) for trial in progress.trials[:MAX_ROWS]],
        "trials_left": len(progress.trials) - MAX_ROWS,
    }


# Frames

RULE = Rule(ordered=False, places=False)
"""Devices report neither the order nor the place of slots."""


def session_frames(progress: Progress, most: int) -> dict[str, Any] | None:
    """The values for the page's section on frames; None if no trial expects an intent, or no frame is known.

    most: most utterances to list. In the result, metrics are those with a value. wrong: utterances with errors, worst
    first; total: number of all of them, also those not listed. unknown: ids of trials without evidence of the frame,
    which do not count.
    """
    corpora = session_corpora([progress])
    if not corpora.gold.utterances:
        return None
    scoring = score(corpora.gold, corpora.predicted, RULE)
    reported = SystemReport(count_system([scoring]))
    (figures,) = reported.figures
    shown = selection([scoring], ["told"], most)
    return {
        "utterances": len(corpora.gold.utterances),
        "metrics": Table(reported.table.fields, [row for row in reported.rows if row.value is not None]),
        "intents": label_table("intent", figures.intents.labels),
        "concepts": label_table("concept", figures.slots.per_concept_set),
        "wrong": [utterance for utterance in shown.utterances if utterance.kinds != "0"],
        "total": shown.with_errors,
        "unknown": corpora.unknown,
    }


# Conditions


def _axes(trials: Sequence[Trial]) -> list[str]:
    """The axes with more than one label, in the order of the plan."""
    labels: dict[str, set[str]] = {}
    for trial in trials:
        for axis, label in trial.conditions:
            labels.setdefault(axis, set()).add(label)
    return [axis for axis, axis_labels in labels.items() if len(axis_labels) > 1]


def _is_deaf(progress: Progress) -> bool:
    return not any(trial.trial.microphone for trial in progress.trials)


def _constant(trials: Sequence[Trial]) -> list[tuple[str, str]]:
    """Each condition that all trials share, with its label: axes with a single label, and a noise that is not an
    axis."""
    labels = Counter(condition for trial in trials for condition in dict.fromkeys(trial.conditions))
    noises = {trial.recipe.noise for trial in trials if trial.kind is not TrialKind.AMBIENT}
    constant = [condition for condition, count in labels.items() if count == len(trials)]
    if len(noises) == 1 and (noise := noises.pop()) is not None and "noise" not in {axis for axis, _ in labels}:
        constant.append(("noise", noise.label()))
    return constant


def _conditions(session: WholeSession) -> Iterator[dict[str, Any]]:
    """For each measure and device, the shares in total and by axis."""
    queries = group_by(
        (trial.trial.device, trial) for trial in session.progress.trials if trial.trial.listening is None
    )
    for device, trials in queries.items():
        with_conditions = [(dict(trial.trial.conditions), trial) for trial in trials]
        axes = _axes([trial.trial for trial in trials])
        if recognised_of(trials)[0].total:
            yield _by_conditions(
                "recognised", device, axes, with_conditions, lambda group: _cell(recognised_of(group)[0])
            )
        if understood_of(trials).right.total:
            yield _by_conditions(
                "understood", device, axes, with_conditions, lambda group: _cell(understood_of(group).right)
            )
    wake = session.wake.snapshot()
    for device, gaps in requests_of_session(session.progress.totals.requests, wake):
        if len(gaps) > 1:
            rows = [(str(gap.gap_ms), _cell(gap.whole)) for gap in gaps]
            yield {
                "what": "requests whole",
                "device": device,
                "whole": _cell(sum((gap.whole for gap in gaps), Share())),
                "by_axis": [{"axis": Grouping.GAP, "rows": rows, "left_out": 0}],
                "crossed": [],
            }
    for figures in wake.devices:
        plays = [play for play in session.wake.plays(figures.device) if play.kind is TrialKind.WAKE]
        if plays:
            # Trials may also differ in their own level or opening, which are not axes of the matrix.
            named_plays = [({"trial": play.trial.template} | dict(play.trial.conditions), play) for play in plays]
            axes = _axes([play.trial for play in plays])
            if len({play.trial.template for play in plays}) > 1:
                axes.append("trial")
            of_device = _by_conditions("false rejects", figures.device, axes, named_plays, _rejected)
            yield of_device | {"whole": Cell(figures.false_rejects.share, figures.false_rejects.interval)}


def _cell(share: Share) -> Cell:
    return Cell(share, share.interval)


def _rejected(plays: Sequence[Play]) -> Cell:
    by_speaker = group_by((play.trial.speaker, play.reading.hit is None) for play in plays)
    shares = {speaker: Share(sum(missed), len(missed)) for speaker, missed in by_speaker.items()}
    rejects = ratio_with_intervals(sum(shares.values(), Share()), Speakers.of(shares))
    return Cell(rejects.share, rejects.interval)


_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Each label once, in order of occurrence; labels that differ only in their first number are sorted by it."""
    unique = dict.fromkeys(labels)
    stems = list(dict.fromkeys(_NUMBER.sub("", label, count=1) for label in unique))

    def place(label: str) -> tuple[int, float]:
        number = _NUMBER.search(label)
        return stems.index(_NUMBER.sub("", label, count=1)), float(number[0]) if number else 0.0

    return tuple(sorted(unique, key=place))


def _by_conditions(
    measure: str,
    device: str,
    axes: Sequence[str],
    trials: Sequence[tuple[dict[str, str], T]],
    cell: Callable[[Sequence[T]], Cell],
) -> dict[str, Any]:
    """Shares by the labels of each axis, and of each pair of axes. A cell of a pair is None if no trial was planned."""
    by_axis = []
    for axis in axes:
        labels = in_order(conditions[axis] for conditions, _ in trials if axis in conditions)
        rows = [
            (label, cell([trial for conditions, trial in trials if conditions.get(axis) == label]))
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
        heads = in_order(label for _, label in cells)
        names = in_order(label for label, _ in cells)
        if cells and max(len(heads), len(names)) <= _MAX_LABELS:
            crossing = [
                (name, tuple(cell(cells[name, head]) if (name, head) in cells else None for head in heads))
                for name in names
            ]
            crossed.append({"axes": (first, second), "heads": heads, "rows": crossing})
    whole = cell([trial for _, trial in trials])
    return {"what": measure, "device": device, "whole": whole, "by_axis": by_axis, "crossed": crossed}


def wake_charts(id: str, wake: WakeFigures, first_s: float) -> list[Chart | None]:
    """Charts of the false rejects and false accepts so far, over the time since first_s (Unix time), and of the wake
    delays of hits."""
    rejects, accepts = [], []
    devices = wake.snapshot().devices
    unit, unit_s = time_unit(
        max((device.looks[-1].wall_s - first_s for device in devices if device.looks), default=0.0)
    )
    for device in devices:
        shares = [
            ((look.wall_s - first_s) / unit_s, 100 * look.false_rejects.share.value, look.false_rejects.interval)
            for look in device.looks
            if look.false_rejects.share.value is not None
        ]
        line = [(x, y) for x, y, _ in shares]
        rejects.append((device.device, line, [(x, 100 * ends[0], 100 * ends[1]) for x, _, ends in shares if ends]))
        hourly = [
            ((look.wall_s - first_s) / unit_s, look.false_accepts.per_hour, look.false_accepts.interval)
            for look in device.looks
            if look.false_accepts.per_hour is not None
        ]
        most = 4 * max((y for _, y, _ in hourly), default=0.0) or 10.0
        band = [(x, ends[0], min(ends[1], most)) for x, _, ends in hourly if ends]
        accepts.append((device.device, [(x, y) for x, y, _ in hourly], band))
    words = "The final values are in the table of devices."
    time_axis = f"{unit} since the start"
    title = "False rejects so far (% of the wake trials), with 95 % interval"
    return [
        chart(f"rejects-{id}", title, time_axis, words, rejects),
        chart(f"accepts-{id}", "False accepts per hour so far, with 95 % interval", time_axis, words, accepts),
        distribution(f"delay-{id}", "Wake delay: % of the hits up to", delays_of(wake)),
    ]


def _charts(session: WholeSession, number: int) -> Iterator[Chart]:
    rejects, accepts, delay = wake_charts(str(number), session.wake, session.first_s)
    latency = distribution(f"latency-{number}", "Response latency: % of the trials up to", latencies_of(session))
    charts = [rejects, accepts, _trade_off(f"trade-off-{number}", session), latency, delay]
    yield from (drawn for drawn in charts if drawn is not None)


def _trade_off(id: str, session: WholeSession) -> Chart | None:
    curves: list[tuple[str, list[Point], list[Band]]] = []
    for device in session.wake.snapshot().devices:
        hours, tried = device.after_review.hours, device.false_rejects.share.total
        if hours and tried:
            line = [
                (accepts / hours, 100 * rejects / tried)
                for _, rejects, accepts in raised_thresholds(session.wake, device.device)
            ]
            curves.append(
                (f"{device.device}, {numbers.counted(tried, 'trial')}, {numbers.hours(device.exposure_s, 1)}", line, [])
            )
    words = (
        "The right end is the result of this session. It does not include events that would only have occurred later."
    )
    return chart(id, "False rejects (%) if the threshold were raised", "false accepts per hour", words, curves)


def raised_thresholds(wake: WakeFigures, device: str) -> list[tuple[float, int, int]]:
    """For each level of the score, the false rejects and false accepts (after review) if only events with a score above
    it counted.

    Returns (level, rejects, accepts), beginning with −∞, which is the session's own result. Events without a score
    count at every level. An event that a higher threshold would have caused by suppressing an earlier one is not known.
    """
    tried = [play.reading.hit for play in wake.plays(device) if play.kind is TrialKind.WAKE]
    hits = sorted(hit.score for hit in tried if hit is not None and hit.score is not None)
    events = [event for event in wake.unmatched(device) if wake.is_false_accept(event, use_reviews=True)]
    accepts = sorted(event.score for event in events if event.score is not None)
    missed = sum(hit is None for hit in tried)
    levels = sorted({*hits, *accepts})
    return [(-math.inf, missed, len(events))] + [
        (level, missed + bisect_right(hits, level), len(events) - bisect_right(accepts, level))
        for level in levels[:: max(1, len(levels) // MAX_POINTS)]
    ]


def distribution(id: str, title: str, durations: dict[str, list[MeasuredDuration]]) -> Chart | None:
    """A chart of the distributions of durations, by name; None with too few durations."""
    curves: list[tuple[str, list[Point], list[Band]]] = [
        (f"{name}, n = {len(times)}", steps([duration.value_s * 1000 for duration in times]), [])
        for name, times in durations.items()
        if times
    ]
    words = "The tables give the median and the 95th and 99th percentiles, with intervals and clock errors."
    return chart(id, title, "ms", words, curves, y_most=100.0)


def latencies_of(session: WholeSession) -> dict[str, list[MeasuredDuration]]:
    """The latencies of responses, by device."""
    latencies: dict[str, list[MeasuredDuration]] = {}
    for trial in session.progress.trials:
        take = trial.counting
        verdict = take.deciding.verdict if take is not None and take.deciding is not None else None
        # The same trials as in `Totals.latency`.
        answered = take is not None and take.outcome is not None and take.outcome.answered
        if answered and trial.trial.memory is None and verdict is not None and verdict.latency is not None:
            latencies.setdefault(trial.trial.device, []).append(verdict.latency)
    return latencies


def delays_of(wake: WakeFigures) -> dict[str, list[MeasuredDuration]]:
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
    outcomes = {trial.trial.id: trial for trial in session.progress.trials}
    plays = session.wake.plays_by_trial()
    trials = []
    for (trial_id, take), (start_s, end_s) in session.spans.items():
        trial, kind, words = outcomes.get(trial_id), "interrupted", ""
        if trial is not None:
            counts = trial.counting is not None and trial.counting.take == take
            until_take = replace(trial, takes=tuple(other for other in trial.takes if other.take <= take))
            words = outcome_in_words(until_take, plays.get(trial_id, ()) if counts else ())
            if until_take.outcome is not None:
                kind = MARK_OF_OUTCOME.get(until_take.outcome, "failed")
        words = f"{trial_id}, take {take}: {words}"
        trials.append(LaneMark(start_s - session.first_s, end_s - start_s, kind, words))
    lanes = [lane("trials", trials, span_s)]
    answers = [LaneMark(at_s - session.first_s, s, "hit", f"response to {id}") for id, at_s, s in session.responses]
    faults = [
        LaneMark(at_s - session.first_s, 0.0, "fault", f"fault: {fault.source}: {fault.what}")
        for at_s, fault in session.faults_met
    ]
    lanes += [lane(name, marks, span_s) for name, marks in (("responses", answers), ("faults", faults)) if marks]
    for device in session.wake.snapshot().devices:
        marks = []
        for play in session.wake.plays(device.device):
            start_s, end_s = session.spans[play.trial.id, play.row.take]
            kind = _kind_of(play)
            words = f"{kind.replace('_', ' ')}: {play.trial.id}"
            marks.append(LaneMark(start_s - session.first_s, end_s - start_s, kind, words))
        for event in session.wake.unmatched(device.device):
            words = f"unmatched event {event.seq}: {event.phrase}"
            marks.append(LaneMark(event.wall_s - session.first_s, 0.0, "unmatched", words))
        lanes.append(lane(device.device, marks, span_s))
    return tuple(lanes), span_s


def _kind_of(play: Play) -> str:
    match play.kind:
        case TrialKind.AMBIENT:
            return "ambient"
        case TrialKind.COMMAND:
            return "hit" if play.reading.command is CommandResult.MATCH else "false_reject"
        case TrialKind.PROBE:
            return "probe" if play.reading.hit is not None else "probe_unheard"
        case _:
            return "hit" if play.reading.hit is not None else "false_reject"


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
