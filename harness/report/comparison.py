"""Compares sessions with a first one: which measures became worse, became better, or are undecided.

The value of a measure in one trial is what `total`, `heard_in`, `counts_as` and `WakeFigures` give for that trial
alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from harness.base.foreign import plain_text, shell_word
from harness.base.places import demand_distinct
from harness.base.text_table import sorted_labels
from harness.model.choices import CategoryGroup
from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.judgment import Category
from harness.model.numbers import counted
from harness.model.scenario import TrialKind
from harness.model.stimulus import Recording
from harness.model.time import MeasuredDuration
from harness.model.trial import Outcome, Trial
from harness.offline.figures.comparison import Clusters
from harness.rating.figures.categories import Figure, counts_as
from harness.rating.figures.judged_responses import QueryOutcome, RatedTrial, rated_trials, read_sessions
from harness.report.session import WholeSession, limits_of, read_session
from harness.report.session_facts import difference_notes, labels_of, letter
from harness.session.figures.effects import right_effects
from harness.session.figures.progress import totals_of
from harness.session.figures.trials import TrialProgress, heard_in
from harness.session.log.reader import later_rows, read_scenario
from harness.session.summary import session_verdict
from harness.statistics.comparison import ComparedUnit, DifferenceVerdict, MeasureKind, compare_units, verdict_of
from harness.statistics.intervals import Interval, Share, is_exact_enough
from harness.statistics.significance import holm
from harness.wake.wake import WakeFigures
from harness.wake.wake_plays import CommandResult

MAX_SESSIONS = 26  # each is named by a letter
MAX_LABELS = 24
"""If an axis has at most this many labels, each label is compared by itself."""


class Measure(StrEnum):
    """The measures that are compared. Values are their names in reports."""

    FALSE_REJECTS = "false rejects"
    FALSE_ACCEPTS = "false accepts"
    WAKE_DELAY = "wake delay"
    FIRST_ATTEMPT = "recognised at the first attempt"
    RECOGNISED = "recognised"
    ANSWERED = "answered"
    IN_TIME = "answered in time"
    LATENCY = "latency"
    UNDERSTOOD = "understood"
    EFFECTS = "correct effects"
    COMMANDS = "commands understood"
    FIRST_WER = "WER, first attempt"
    FINAL_WER = "WER, final attempt"
    SATISFIED = "judged correct"
    HELPFUL = "judged helpful"
    WRONG = "judged wrong"

    @property
    def kind(self) -> MeasureKind:
        return _KINDS.get(self, MeasureKind.SHARE)

    @property
    def more_is_better(self) -> bool:
        return self.kind is MeasureKind.SHARE and self not in (Measure.FALSE_REJECTS, Measure.WRONG)


_KINDS = {
    Measure.FALSE_ACCEPTS: MeasureKind.RATE,
    Measure.WAKE_DELAY: MeasureKind.TIME,
    Measure.LATENCY: MeasureKind.TIME,
    Measure.FIRST_WER: MeasureKind.WORDS,
    Measure.FINAL_WER: MeasureKind.WORDS,
}
_JUDGED_FIGURES: dict[Measure, Figure] = {
    Measure.SATISFIED: CategoryGroup.SATISFIED,
    Measure.HELPFUL: CategoryGroup.HELPFUL,
    Measure.WRONG: Category.WRONG,
}


@frozen
class ComparedMeasure:
    """A measure of one device in a later session, compared with the first session.

    - session: index of the later session, from 1.
    - axis, label: the condition; "" for all trials together.
    - first, second: the two results as text.
    - difference: second minus first (in the unit of `MeasureKind`), with its 95 % interval.
    - p: p-value of this test alone.
    - how: the method and the number of units, in words.
    - p_holm: p, corrected for all tests.
    - change: the verdict.
    - why: the reason, if the verdict is UNDECIDED.
    """

    session: int
    device: str
    measure: Measure
    axis: str
    label: str
    first: str
    second: str
    difference: float | None
    interval: Interval | None
    p: float | None
    how: str
    p_holm: float | None = None
    change: DifferenceVerdict = DifferenceVerdict.UNDECIDED
    why: str = ""


@frozen
class SessionComparison:
    """Sessions compared with a baseline.

    - sessions: the first is the baseline.
    - verdicts: the verdict on each, with its reason.
    - rows: worse ones first.
    - warnings: lines for people, escaped.
    """

    sessions: tuple[WholeSession, ...]
    verdicts: tuple[str, ...]
    rows: tuple[ComparedMeasure, ...]
    warnings: tuple[str, ...]

    def rows_with(self, change: DifferenceVerdict) -> tuple[ComparedMeasure, ...]:
        return tuple(row for row in self.rows if row.change is change)


_DeviceUnits = Mapping[Measure, Sequence[ComparedUnit]]
"""The values of each measure in the trials of a device, from `device_results`."""


def compare_sessions(folders: Sequence[Path], clusters: Clusters | None = None) -> SessionComparison:
    """Compares each session with the first.

    clusters: assigns trials to clusters, by the name of their speaker or recording; None for each stimulus by itself.
    Raises LogError, and InputError if two sessions have nothing in common.
    """
    if not 2 <= len(folders) <= MAX_SESSIONS:
        raise InputError(
            f"{counted(len(folders), 'session')} cannot be compared", remedy=f"Specify 2 to {MAX_SESSIONS} sessions"
        )
    demand_distinct(folders)
    sessions = [read_session(folder, later_rows(folder)) for folder in folders]
    for folder, session in zip(folders, sessions, strict=True):
        if not any(trial.takes for trial in session.progress.trials):
            raise InputError(
                f"{folder}: no trial was played, so nothing can be compared",
                remedy=f"Resume the session: harness run resume {shell_word(folder)}",
            )
    rated = [rated_trials(read_sessions([folder])) for folder in folders]
    warnings, rows = list(difference_notes(sessions)), list[ComparedMeasure]()
    for number in range(1, len(sessions)):
        pair, rated_pair = (sessions[0], sessions[number]), (rated[0], rated[number])
        new_rows = list(_compare_pair(number, pair, rated_pair, clusters, warnings))
        if not new_rows:
            problem = f"A and {letter(number)} have no device with results in common"
            raise InputError(problem, remedy="List the devices of a session: harness report show SESSION")
        rows += new_rows
    verdicts = []
    for folder, session in zip(folders, sessions, strict=True):
        verdict, reasons = session_verdict(limits_of(session, read_scenario(folder)), session.progress)
        verdicts.append(f"{verdict}: {'; '.join(reasons)}")
    return SessionComparison(tuple(sessions), tuple(verdicts), _with_verdicts(rows), tuple(dict.fromkeys(warnings)))


def _compare_pair(
    number: int,
    sessions: tuple[WholeSession, WholeSession],
    rated: tuple[Sequence[RatedTrial], Sequence[RatedTrial]],
    clusters: Clusters | None,
    warnings: list[str],
) -> Iterator[ComparedMeasure]:
    """The rows of a later session, whose index is `number`. Adds what is not compared to the warnings."""
    varying = {axis for session in sessions for axis, labels in labels_of(session).items() if len(labels) > 1}
    pairs = _device_pairs(*sessions)
    for side, name in ((0, "A"), (1, letter(number))):
        compared = {pair[side] for pair in pairs}
        unmatched = [plain_text(device, 80) for device in device_names(sessions[side]) if device not in compared]
        warnings += [f"only {name} has the device {device}, which is not compared" for device in unmatched]
    for first_device, second_device in pairs:
        base = device_results(sessions[0], first_device, rated[0], varying, clusters)
        other = device_results(sessions[1], second_device, rated[1], varying, clusters)
        labels_by_axis = {axis: _common_labels(axis, base, other) for axis in sorted(varying)}
        for axis, labels in list(labels_by_axis.items()):
            if len(labels) > MAX_LABELS:
                del labels_by_axis[axis]
                warnings.append(f"the {len(labels)} labels of {plain_text(axis, 40)} are not compared individually")
        name = first_device if first_device == second_device else f"{first_device} → {second_device}"
        yield from _compared_rows(number, name, base, other, labels_by_axis)


def _device_pairs(first: WholeSession, second: WholeSession) -> list[tuple[str, str]]:
    """The pairs of devices to compare in two sessions: those with the same name. If there are none, but each session
    has only one device, these two."""
    first_names, second_names = device_names(first), device_names(second)
    shared_names = [name for name in first_names if name in second_names]
    if not shared_names and len(first_names) == len(second_names) == 1:
        return [(first_names[0], second_names[0])]
    return [(name, name) for name in shared_names]


def device_names(session: WholeSession) -> list[str]:
    """The devices of a session, in the order of the plan."""
    return list(dict.fromkeys([*(trial.trial.device for trial in session.progress.trials), *session.devices]))


# The measures of each trial


def _recording(trial: Trial) -> str:
    """The path of the recording that a trial plays; "" if it plays none."""
    spoken = trial.recipe.spoken_by
    return spoken.path if isinstance(spoken, Recording) else ""


def device_results(
    session: WholeSession,
    device: str,
    rated: Sequence[RatedTrial],
    varying: Collection[str] = (),
    clusters: Clusters | None = None,
) -> Mapping[Measure, Sequence[ComparedUnit]]:
    """For each measure, its value in each trial of a device. varying: axes on which partners in two sessions must have
    the same label."""
    results = _DeviceResults(varying, clusters)
    for progress in session.progress.trials:
        if progress.trial.device == device and progress.trial.listening is None:
            results.add_query(progress, session)
    results.add_plays(session.wake, device)
    for heard_trial in heard_in(session.progress.trials, session.wake):
        for measure, attempt in ((Measure.FIRST_WER, heard_trial.first), (Measure.FINAL_WER, heard_trial.final)):
            if heard_trial.device == device and attempt is not None and attempt.counts is not None:
                results.add(measure, heard_trial.trial, attempt.counts.errors, attempt.counts.words)
    for response in rated:
        if response.trial.device == device and response.outcome is QueryOutcome.CATEGORY:
            for measure, figure in _JUDGED_FIGURES.items():
                results.add(measure, response.trial, counts_as(response, figure))
    return results.units


class _DeviceResults:
    """Collects the values of measures in trials. The parameters are as in `device_results`."""

    def __init__(self, varying: Collection[str], clusters: Clusters | None) -> None:
        self.units: dict[Measure, list[ComparedUnit]] = defaultdict(list)
        self._varying, self._clusters = varying, clusters
        self._empty_units: dict[str, ComparedUnit] = {}
        """For each trial, its partners, cluster and labels, without a value."""

    def add(
        self, measure: Measure, trial: Trial, count: float, total: float = 1, time: MeasuredDuration | None = None
    ) -> None:
        """Adds a value of a trial that `add_query` or `add_plays` has added."""
        self.units[measure].append(replace(self._empty_units[trial.id], count=count, total=total, time=time))

    def _add_trial(self, trial: Trial, stimulus: str) -> None:
        labels = {axis: label for axis, label in trial.conditions if axis in self._varying}
        cluster = stimulus
        if self._clusters is not None:
            cluster = self._clusters.cluster_of(trial.speaker or _recording(trial))
        key = (trial.kind, stimulus, *sorted(labels.items()))
        self._empty_units[trial.id] = ComparedUnit(key, cluster, labels)

    def add_query(self, progress: TrialProgress, session: WholeSession) -> None:
        """Adds the values of a query, if it was played."""
        trial, take = progress.trial, progress.counting
        if take is None or not take.attempts:
            return
        self._add_trial(trial, take.attempts[0].stimulus_sha256)
        totals = totals_of([progress])
        in_time = totals.answered.count if take.outcome is Outcome.RESPONDED else 0
        for measure, share in (
            (Measure.FIRST_ATTEMPT, totals.first_attempt),
            (Measure.RECOGNISED, totals.recognised),
            (Measure.ANSWERED, totals.answered),
            (Measure.IN_TIME, Share(in_time, totals.answered.total)),
            (Measure.UNDERSTOOD, totals.understood.right),
        ):
            if share.total:
                self.add(measure, trial, share.count)
        response = progress.response
        if trial.effect is not None and response is not None:
            effect = session.progress.effects.get((trial.id, response.take, response.attempt))
            right_share = right_effects([] if effect is None else [effect])
            if right_share.total:
                self.add(Measure.EFFECTS, trial, right_share.count)
        for measure, p50 in ((Measure.LATENCY, totals.latency.p50), (Measure.WAKE_DELAY, totals.wake_delay.p50)):
            if p50 is not None:
                self.add(measure, trial, 1, time=MeasuredDuration(p50.value_s, p50.clock_error_s))

    def add_plays(self, wake: WakeFigures, device: str) -> None:
        """Adds the values of listening trials, and the false accepts outside of them."""
        false_accepts = Counter(
            event.trial_id for event in wake.unmatched(device) if wake.is_false_accept(event, use_reviews=True)
        )
        for play in wake.plays(device):
            self._add_trial(play.trial, play.row.stimulus_sha256)
            reading = play.reading
            if play.kind is TrialKind.WAKE:
                self.add(Measure.FALSE_REJECTS, play.trial, reading.hit is None)
            if play.kind is TrialKind.COMMAND:
                self.add(Measure.COMMANDS, play.trial, reading.command is CommandResult.MATCH)
            if play.kind is not TrialKind.PROBE and reading.delay is not None and is_exact_enough(reading.delay):
                self.add(Measure.WAKE_DELAY, play.trial, 1, time=reading.delay)
            count = false_accepts.pop(play.trial.id, 0)
            if reading.exposure_s or count:
                self.add(Measure.FALSE_ACCEPTS, play.trial, count, reading.exposure_s / 3600)
        outside_count = false_accepts.total()
        if outside_count:
            # Events outside of all trials that count have no condition, and a key that has no partner.
            self.units[Measure.FALSE_ACCEPTS].append(ComparedUnit((object(),), "", count=outside_count))


# Comparison


def _compared_rows(
    session: int, device: str, base: _DeviceUnits, other: _DeviceUnits, axes: Mapping[str, Sequence[str]]
) -> Iterator[ComparedMeasure]:
    for axis, label in [("", ""), *((axis, label) for axis, labels in axes.items() for label in labels)]:
        for measure in Measure:
            first = _units_under(base, measure, axis, label)
            second = _units_under(other, measure, axis, label)
            # Over all trials, one side is enough for a row, which shows that the other has no result.
            if (first and second) or ((first or second) and not axis):
                compared = compare_units(measure.kind, first, second)
                estimate = compared.difference
                yield ComparedMeasure(
                    session=session,
                    device=device,
                    measure=measure,
                    axis=axis,
                    label=label,
                    first=compared.first,
                    second=compared.second,
                    difference=None if estimate is None else estimate.difference,
                    interval=None if estimate is None else estimate.interval,
                    p=None if estimate is None else estimate.p,
                    how=compared.how,
                )


def _units_under(units: _DeviceUnits, measure: Measure, axis: str, label: str) -> list[ComparedUnit]:
    """The values of a measure in trials with a label; with all labels if `axis` is ""."""
    return [unit for unit in units.get(measure, ()) if not axis or unit.labels.get(axis) == label]


def _common_labels(axis: str, base: _DeviceUnits, other: _DeviceUnits) -> list[str]:
    """The labels of an axis that occur on both sides."""
    base_labels = {unit.labels[axis] for units in base.values() for unit in units if axis in unit.labels}
    other_labels = {unit.labels[axis] for units in other.values() for unit in units if axis in unit.labels}
    return sorted_labels(list(base_labels & other_labels))


# Verdicts


def _with_verdicts(rows: Sequence[ComparedMeasure]) -> tuple[ComparedMeasure, ...]:
    """The rows with corrected p and verdict, in the order of reports.

    In the correction, measures over all trials have half of the weight, and all conditions the other half. So many
    conditions do not hide an overall regression.
    """
    tested_rows = [row for row in rows if row.p is not None]
    condition_count = sum(1 for row in tested_rows if row.axis)
    overall_count = len(tested_rows) - condition_count
    weights = [1 / max(1, condition_count if row.axis else overall_count) for row in rows]
    corrected = holm([row.p for row in rows], weights)
    judged_rows = [_with_verdict(row, p) for row, p in zip(rows, corrected, strict=True)]
    order = list(DifferenceVerdict)
    return tuple(sorted(judged_rows, key=lambda row: (order.index(row.change), bool(row.axis), row.session)))


def _with_verdict(row: ComparedMeasure, corrected: float | None) -> ComparedMeasure:
    change = verdict_of(row.difference, row.p, more_is_better=row.measure.more_is_better, corrected=corrected)
    why = ""
    if change is DifferenceVerdict.UNDECIDED:
        why = "too little was measured" if row.p is None else "it may be due to chance, given so many tests"
    return replace(row, p_holm=corrected, change=change, why=why)
