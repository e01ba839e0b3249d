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

from harness.base.foreign import plain_text
from harness.base.text_table import sorted_labels
from harness.model.choices import CategoryGroup
from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.judgment import Category
from harness.model.record import EndReason
from harness.model.scenario import TrialKind
from harness.model.stimulus import Recording
from harness.model.time import MeasuredDuration
from harness.model.trial import Outcome, Trial
from harness.offline.figures.comparison import Clusters
from harness.rating.figures.categories import Figure, counts_as
from harness.rating.figures.judged_responses import QueryOutcome, RatedTrial, rated_trials, read_sessions
from harness.report.session import WholeSession, limits_of, read_session
from harness.session.figures.effects import right_of_known
from harness.session.figures.progress import normalisation_of, totals_of
from harness.session.figures.trials import heard_in
from harness.session.log.reader import later_rows, read_scenario
from harness.session.summary import session_verdict
from harness.statistics.comparison import ComparedUnit, DifferenceVerdict, MeasureKind, compare_units, verdict_of
from harness.statistics.intervals import Interval, Share, is_exact_enough
from harness.statistics.significance import holm
from harness.wake.wake_plays import CommandResult

MAX_SESSIONS = 26  # Each is named by a letter.
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
    def counted(self) -> MeasureKind:
        return _COUNTED.get(self, MeasureKind.SHARE)

    @property
    def more_is_better(self) -> bool:
        return self.counted is MeasureKind.SHARE and self not in (Measure.FALSE_REJECTS, Measure.WRONG)


_COUNTED = {
    Measure.FALSE_ACCEPTS: MeasureKind.RATE,
    Measure.WAKE_DELAY: MeasureKind.TIME,
    Measure.LATENCY: MeasureKind.TIME,
    Measure.FIRST_WER: MeasureKind.WORDS,
    Measure.FINAL_WER: MeasureKind.WORDS,
}
_JUDGED: dict[Measure, Figure] = {
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
    - p: p-value of this test alone. p_holm: the same, corrected for all tests.
    - how: the method and the number of units, in words.
    - change: the verdict. why: the reason, if it is UNDECIDED.
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
    """Sessions compared with a baseline. sessions: the first is the baseline. verdicts: the verdict on each, with its
    reason. rows: worse ones first. warnings: lines for people, escaped."""

    sessions: tuple[WholeSession, ...]
    verdicts: tuple[str, ...]
    rows: tuple[ComparedMeasure, ...]
    warnings: tuple[str, ...]

    def rows_with(self, change: DifferenceVerdict) -> tuple[ComparedMeasure, ...]:
        return tuple(row for row in self.rows if row.change is change)


_Side = Mapping[Measure, Sequence[ComparedUnit]]


def compare_sessions(folders: Sequence[Path], clusters: Clusters | None = None) -> SessionComparison:
    """Compares each session with the first. LogError; InputError if they have nothing in common.

    clusters: assigns trials to clusters, by the name of their speaker or recording; None for each stimulus by itself.
    """
    if not 2 <= len(folders) <= MAX_SESSIONS:
        raise InputError(f"{len(folders)} sessions cannot be compared", remedy=f"Name 2 to {MAX_SESSIONS}")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError("a session is named twice", remedy="Name each only once")
    sessions = [read_session(folder, later_rows(folder)) for folder in folders]
    for folder, session in zip(folders, sessions, strict=True):
        if not any(trial.takes for trial in session.progress.trials):
            raise InputError(
                f"{folder}: no trial was played, so nothing can be compared",
                remedy=f"Play it: harness run resume {folder}",
            )
    rated = [rated_trials(read_sessions([folder])) for folder in folders]
    warnings, rows = list(_warnings(sessions)), list[ComparedMeasure]()
    for number in range(1, len(sessions)):
        pair = sessions[0], sessions[number]
        varying = {axis for session in pair for axis, labels in labels_of(session).items() if len(labels) > 1}
        shared, before = _devices(*pair), len(rows)
        for side, name in ((0, "A"), (1, letter(number))):
            compared = {devices[side] for devices in shared}
            alone = [plain_text(device, 80) for device in device_names(pair[side]) if device not in compared]
            warnings += [f"only {name} has the device {device}, which is not compared" for device in alone]
        for devices in shared:
            base, other = (
                device_results(session, device, judged, varying, clusters)
                for session, device, judged in zip(pair, devices, (rated[0], rated[number]), strict=True)
            )
            axes = {axis: _labels(axis, base, other) for axis in sorted(varying)}
            for axis in [axis for axis, labels in axes.items() if len(labels) > MAX_LABELS]:
                warnings.append(
                    f"the {len(axes.pop(axis))} labels of {plain_text(axis, 40)} are not compared individually"
                )
            rows += _rows(number, " → ".join(dict.fromkeys(devices)), base, other, axes)
        if len(rows) == before:
            problem = f"A and {letter(number)} have no device with results in common"
            raise InputError(problem, remedy="See the devices of each: harness report show SESSION")
    verdicts = (
        session_verdict(limits_of(session, read_scenario(folder)), session.progress)
        for folder, session in zip(folders, sessions, strict=True)
    )
    in_words = tuple(f"{verdict}: {'; '.join(why)}" for verdict, why in verdicts)
    return SessionComparison(tuple(sessions), in_words, _judged(rows), tuple(dict.fromkeys(warnings)))


def letter(index: int) -> str:
    """The name of a session in tables: A for the baseline, then B, C and so on."""
    return chr(ord("A") + index)


def labels_of(session: WholeSession) -> dict[str, set[str]]:
    """The labels that occur on each axis."""
    labels_by_axis: dict[str, set[str]] = defaultdict(set)
    for trial in session.progress.trials:
        for axis, label in trial.trial.conditions:
            labels_by_axis[axis].add(label)
    return labels_by_axis


def _devices(*pair: WholeSession) -> list[tuple[str, str]]:
    """The pairs of devices to compare in two sessions: those with the same name. If there are none, but each session
    has only one device, these two."""
    names = [device_names(session) for session in pair]
    shared = [(name, name) for name in names[0] if name in names[1]]
    alone = [(name, other) for name in names[0] for other in names[1]]
    return shared or (alone if len(alone) == 1 else [])


def device_names(session: WholeSession) -> list[str]:
    """The devices of a session, in the order of the plan."""
    return list(dict.fromkeys([*(trial.trial.device for trial in session.progress.trials), *session.devices]))


def _warnings(sessions: Sequence[WholeSession]) -> Iterator[str]:
    first = sessions[0]
    for number, session in enumerate(sessions):
        name, progress = letter(number), session.progress
        if progress.finished is not EndReason.COMPLETED:
            yield f"{name} is not complete: {progress.totals.finished_in_words} are finished"
        if session.started.scenario_sha256 != first.started.scenario_sha256:
            yield f"the scenario of {name} differs from that of A: differences may come from its trials"
        if session.wake.settings != first.wake.settings:
            yield f"{name} counts wake events with different settings from A"
        if normalisation_of(progress) != normalisation_of(first.progress):
            yield f"{name} compares words with a different normalisation from A"
        if _is_reviewed(session) != _is_reviewed(first):
            yield f"wake events are reviewed in only one of A and {name}, which changes false accepts"
    if not any(board.firmware for session in sessions for board in session.progress.boards):
        yield "no device reported its firmware: nothing shows which builds these are"


def _is_reviewed(session: WholeSession) -> bool:
    return any(event.reviewed_by for device in session.devices for event in session.wake.unmatched(device))


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
    units: dict[Measure, list[ComparedUnit]] = defaultdict(list)
    places: dict[str, ComparedUnit] = {}

    def place(trial: Trial, stimulus: str) -> None:
        labels = {axis: label for axis, label in trial.conditions if axis in varying}
        cluster = stimulus if clusters is None else clusters.cluster_of(trial.speaker or _recording(trial))
        places[trial.id] = ComparedUnit((trial.kind, stimulus, *sorted(labels.items())), cluster, labels)

    def add(
        measure: Measure, trial: Trial, count: float, out_of: float = 1, time: MeasuredDuration | None = None
    ) -> None:
        units[measure].append(replace(places[trial.id], count=count, of=out_of, time=time))

    for progress in session.progress.trials:
        take = progress.counting
        if progress.trial.device != device or progress.trial.listening is not None or take is None or not take.attempts:
            continue
        place(progress.trial, take.attempts[0].stimulus_sha256)
        alone = totals_of([progress])
        for measure, share in (
            (Measure.FIRST_ATTEMPT, alone.first_attempt),
            (Measure.RECOGNISED, alone.recognised),
            (Measure.ANSWERED, alone.answered),
            (Measure.IN_TIME, Share(take.outcome is Outcome.RESPONDED, alone.answered.total)),
            (Measure.UNDERSTOOD, alone.understood.right),
        ):
            if share.total:
                add(measure, progress.trial, share.count)
        if progress.trial.effect is not None and progress.response is not None:
            effect = session.progress.effects.get(
                (progress.trial.id, progress.response.take, progress.response.attempt)
            )
            right_effects = right_of_known([] if effect is None else [effect])
            if right_effects.total:
                add(Measure.EFFECTS, progress.trial, right_effects.count)
        for measure, p50 in ((Measure.LATENCY, alone.latency.p50), (Measure.WAKE_DELAY, alone.wake_delay.p50)):
            if p50 is not None:
                add(measure, progress.trial, 1, time=MeasuredDuration(p50.value_s, p50.clock_error_s))
    events = Counter(
        event.trial_id
        for event in session.wake.unmatched(device)
        if session.wake.is_false_accept(event, use_reviews=True)
    )
    for play in session.wake.plays(device):
        place(play.trial, play.row.stimulus_sha256)
        if play.kind is TrialKind.WAKE:
            add(Measure.FALSE_REJECTS, play.trial, play.reading.hit is None)
        if play.kind is TrialKind.COMMAND:
            add(Measure.COMMANDS, play.trial, play.reading.command is CommandResult.MATCH)
        if play.kind is not TrialKind.PROBE and (delay := play.reading.delay) is not None and is_exact_enough(delay):
            add(Measure.WAKE_DELAY, play.trial, 1, time=delay)
        if play.reading.exposure_s or events[play.trial.id]:
            add(Measure.FALSE_ACCEPTS, play.trial, events.pop(play.trial.id, 0), play.reading.exposure_s / 3600)
    if outside := events.total():  # events outside of all trials that count have neither partner nor condition
        units[Measure.FALSE_ACCEPTS].append(ComparedUnit((object(),), "", count=outside))
    for heard_trial in heard_in(session.progress.trials, session.wake):
        for measure, attempt in ((Measure.FIRST_WER, heard_trial.first), (Measure.FINAL_WER, heard_trial.final)):
            if heard_trial.device == device and attempt is not None and (counts := attempt.counts) is not None:
                add(measure, heard_trial.trial, counts.errors, counts.words)
    for response in rated:
        if response.trial.device == device and response.outcome is QueryOutcome.CATEGORY:
            for measure, figure in _JUDGED.items():
                add(measure, response.trial, counts_as(response, figure))
    return units


# Comparison


def _rows(
    session: int, device: str, base: _Side, other: _Side, axes: Mapping[str, Sequence[str]]
) -> Iterator[ComparedMeasure]:
    for axis, label in [("", ""), *((axis, label) for axis, labels in axes.items() for label in labels)]:
        for measure in Measure:
            first, second = (
                [unit for unit in side.get(measure, ()) if not axis or unit.labels.get(axis) == label]
                for side in (base, other)
            )
            if (first and second) or ((first or second) and not axis):
                sides = compare_units(measure.counted, first, second)
                estimate = sides.difference
                value, ends, p = (
                    (estimate.difference, estimate.interval, estimate.p) if estimate else (None, None, None)
                )
                row_key = (session, device, measure, axis, label, sides.first, sides.second)
                yield ComparedMeasure(*row_key, value, ends, p, sides.how)


def _labels(axis: str, base: _Side, other: _Side) -> list[str]:
    """The labels of an axis that occur on both sides."""
    sides = [
        {unit.labels[axis] for units in side.values() for unit in units if axis in unit.labels}
        for side in (base, other)
    ]
    return sorted_labels(list(sides[0] & sides[1]))


# Verdicts


def _judged(rows: Sequence[ComparedMeasure]) -> tuple[ComparedMeasure, ...]:
    """The rows with corrected p and verdict, in the order of reports.

    In the correction, measures over all trials have half of the weight, and all conditions the other half. So many
    conditions do not hide an overall regression.
    """
    conditions = sum(bool(row.axis) for row in rows if row.p is not None)
    whole = sum(row.p is not None for row in rows) - conditions
    weights = [1 / max(1, conditions if row.axis else whole) for row in rows]
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
