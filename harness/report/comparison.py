"""Sessions against a first one: what got worse, better, or stayed undecided, measure by measure.

What one trial says of a measure is what `total`, `heard_in`, `counts_as` and `WakeFigures` say of that trial alone.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from statistics import fmean

from harness.base.foreign import plain_text
from harness.base.gathering import gathered
from harness.base.text_table import sorted_labels
from harness.model.choices import Derived
from harness.model.errors import InputError
from harness.model.judgment import Category
from harness.model.numbers import NOTHING, number, percent
from harness.model.record import EndReason
from harness.model.scenario import TrialKind
from harness.model.stimulus import Recording
from harness.model.time import Measured
from harness.model.trial import Trial
from harness.offline.figures.comparison import Clusters
from harness.rating.figures.categories import Figure, counts_as
from harness.rating.figures.judged import Fate, RatedTrial, rated_trials, read_sessions
from harness.report.session import WholeSession, read_session
from harness.session.figures.effects import right_of_known
from harness.session.figures.progress import normalisation_of, total
from harness.session.figures.trials import heard_in
from harness.session.log.reader import later_rows
from harness.statistics.intervals import CONFIDENCE, Interval, Share, exact_enough, latency_figures
from harness.statistics.latency import paired_shift, unpaired_shift
from harness.statistics.significance import Difference, holm
from harness.statistics.text import delays, share
from harness.statistics.word_intervals import (
    FEWEST_UNITS,
    LEAST_QUERIES,
    rates_apart,
    share_difference,
    shares_apart,
    wer_difference,
    wers_apart,
)
from harness.wake.wake_plays import CommandWord

MOST_SESSIONS = 26
MOST_LABELS = 24
"""Labels of an axis up to which each is compared by itself."""
LEAST_PAIRED = 0.5
"""Share of the smaller session's trials that must have a partner. With fewer, the sessions are compared unpaired."""
_SAME_HOURS = 0.01


class Counted(StrEnum):
    """What a measure counts. Differences are shares, errors per word, events per hour, or seconds."""

    SHARE = "share"
    WORDS = "words"
    RATE = "rate"
    TIME = "time"


class Measure(StrEnum):
    """What is compared, by its name in reports."""

    FALSE_REJECTS = "false rejects"
    FALSE_ACCEPTS = "false accepts"
    WAKE_DELAY = "wake delay"
    FIRST_ATTEMPT = "recognised at the first attempt"
    RECOGNISED = "recognised"
    ANSWERED = "answered"
    LATENCY = "latency"
    UNDERSTOOD = "understood"
    EFFECTS = "right effects"
    COMMANDS = "commands understood"
    FIRST_WER = "WER, first attempt"
    FINAL_WER = "WER, final attempt"
    SATISFIED = "judged correct"
    HELPFUL = "judged helpful"
    WRONG = "judged wrong"

    @property
    def counted(self) -> Counted:
        return _COUNTED.get(self, Counted.SHARE)

    @property
    def more_is_better(self) -> bool:
        return self.counted is Counted.SHARE and self not in (Measure.FALSE_REJECTS, Measure.WRONG)


_COUNTED = {
    Measure.FALSE_ACCEPTS: Counted.RATE,
    Measure.WAKE_DELAY: Counted.TIME,
    Measure.LATENCY: Counted.TIME,
    Measure.FIRST_WER: Counted.WORDS,
    Measure.FINAL_WER: Counted.WORDS,
}
_JUDGED: dict[Measure, Figure] = {
    Measure.SATISFIED: Derived.SATISFIED,
    Measure.HELPFUL: Derived.HELPFUL,
    Measure.WRONG: Category.WRONG,
}


class MeasureVerdict(StrEnum):
    """In the order of reports. UNDECIDED: too little was measured, or only the correction for many tests hides it."""

    WORSE = "worse"
    BETTER = "better"
    UNDECIDED = "undecided"
    NOT_SHOWN = "no difference shown"


@dataclass(frozen=True, slots=True)
class ComparedMeasure:
    """A measure of a session (1 and up) against the first one, for a device; axis, label: of a condition, or "".

    first, second: what was measured, as text. difference: second less first (unit: `Counted`), with its 95 % interval.
    p: by itself; p_holm: corrected for all tests. how: what was compared. why: of UNDECIDED.
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
    change: MeasureVerdict = MeasureVerdict.UNDECIDED
    why: str = ""


@dataclass(frozen=True, slots=True)
class SessionComparison:
    """sessions: the first is the baseline. rows: worse ones first. warnings: lines for people, escaped."""

    sessions: tuple[WholeSession, ...]
    rows: tuple[ComparedMeasure, ...]
    warnings: tuple[str, ...]

    def of(self, change: MeasureVerdict) -> tuple[ComparedMeasure, ...]:
        return tuple(one for one in self.rows if one.change is change)


@dataclass(frozen=True, slots=True)
class Tried:
    """What a trial says of a measure: so many of so many, or a duration. place: what its partner has too."""

    place: tuple[object, ...]
    cluster: str
    labels: Mapping[str, str] = field(default_factory=dict)
    count: float = 0.0
    of: float = 0.0
    time: Measured | None = None


_Side = Mapping[Measure, Sequence[Tried]]


def compare_sessions(folders: Sequence[Path], clusters: Clusters | None = None) -> SessionComparison:
    """Compares each session with the first. LogError; InputError where they have nothing in common.

    clusters: of trials, by the name of their speaker or recording (default: each stimulus by itself).
    """
    if not 2 <= len(folders) <= MOST_SESSIONS:
        raise InputError(f"{len(folders)} sessions cannot be compared", remedy=f"Name 2 to {MOST_SESSIONS}")
    if len({one.resolve() for one in folders}) < len(folders):
        raise InputError("a session is named twice", remedy="Name each only once")
    sessions = [read_session(one, later_rows(one)) for one in folders]
    rated = [rated_trials(read_sessions([one])) for one in folders]
    warnings, rows = list(_warnings(sessions)), list[ComparedMeasure]()
    for at in range(1, len(sessions)):
        pair = sessions[0], sessions[at]
        varying = {axis for one in pair for axis, labels in labels_of(one).items() if len(labels) > 1}
        shared, before = _devices(*pair), len(rows)
        for side, name in ((0, "A"), (1, letter(at))):
            compared = {devices[side] for devices in shared}
            alone = [plain_text(one, 80) for one in device_names(pair[side]) if one not in compared]
            warnings += [f"only {name} has the device {one}, which is not compared" for one in alone]
        for devices in shared:
            one, other = (
                tried_in(session, device, judged, varying, clusters)
                for session, device, judged in zip(pair, devices, (rated[0], rated[at]), strict=True)
            )
            axes = {axis: _labels(axis, one, other) for axis in sorted(varying)}
            for axis in [axis for axis, labels in axes.items() if len(labels) > MOST_LABELS]:
                warnings.append(f"the {len(axes.pop(axis))} labels of {plain_text(axis, 40)} are not compared singly")
            rows += _rows(at, " → ".join(dict.fromkeys(devices)), one, other, axes)
        if len(rows) == before:
            what = f"A and {letter(at)} have no device with results in common"
            raise InputError(what, remedy="See the devices of each: harness show SESSION")
    return SessionComparison(tuple(sessions), _judged(rows), tuple(dict.fromkeys(warnings)))


def letter(at: int) -> str:
    """What a session is called in tables; A is the baseline."""
    return chr(ord("A") + at)


def labels_of(session: WholeSession) -> dict[str, set[str]]:
    """The labels of each axis."""
    found: dict[str, set[str]] = defaultdict(set)
    for one in session.progress.trials:
        for axis, label in one.trial.conditions:
            found[axis].add(label)
    return found


def _devices(*pair: WholeSession) -> list[tuple[str, str]]:
    """Those of one name. Where there are none, the two that are alone in their sessions."""
    names = [device_names(one) for one in pair]
    shared = [(name, name) for name in names[0] if name in names[1]]
    alone = [(one, other) for one in names[0] for other in names[1]]
    return shared or (alone if len(alone) == 1 else [])


def device_names(session: WholeSession) -> list[str]:
    """Its devices, in the order of the plan."""
    return list(dict.fromkeys([*(one.trial.device for one in session.progress.trials), *session.devices]))


def _warnings(sessions: Sequence[WholeSession]) -> Iterator[str]:
    first = sessions[0]
    for at, one in enumerate(sessions):
        name, progress = letter(at), one.progress
        if progress.finished is not EndReason.COMPLETED:
            yield f"{name} is not complete: {progress.totals.finished} of {progress.totals.planned} trials are finished"
        if one.started.scenario_sha256 != first.started.scenario_sha256:
            yield f"the scenario of {name} differs from that of A: differences may come from its trials"
        if one.wake.settings != first.wake.settings:
            yield f"{name} counts wake events by other settings than A"
        if normalisation_of(progress) != normalisation_of(first.progress):
            yield f"{name} compares words by another normalisation than A"
        if _is_reviewed(one) != _is_reviewed(first):
            yield f"wake events are reviewed in only one of A and {name}, which changes false accepts"


def _is_reviewed(session: WholeSession) -> bool:
    return any(event.reviewed_by for device in session.devices for event in session.wake.unmatched(device))


# What each trial says


def _recording(trial: Trial) -> str:
    """The path of the recording that is played."""
    spoken = trial.recipe.spoken_by
    return spoken.path if isinstance(spoken, Recording) else ""


def tried_in(
    session: WholeSession,
    device: str,
    rated: Sequence[RatedTrial],
    varying: Collection[str] = (),
    clusters: Clusters | None = None,
) -> Mapping[Measure, Sequence[Tried]]:
    """What each trial of a device says. varying: axes that separate partners."""
    found: dict[Measure, list[Tried]] = defaultdict(list)
    places: dict[str, Tried] = {}

    def place(trial: Trial, stimulus: str) -> None:
        labels = {axis: label for axis, label in trial.conditions if axis in varying}
        cluster = stimulus if clusters is None else clusters.of(trial.speaker or _recording(trial))
        places[trial.id] = Tried((trial.kind, stimulus, *sorted(labels.items())), cluster, labels)

    def add(measure: Measure, trial: Trial, count: float, of: float = 1, time: Measured | None = None) -> None:
        found[measure].append(replace(places[trial.id], count=count, of=of, time=time))

    for one in session.progress.trials:
        take = one.counting
        if one.trial.device != device or one.trial.listening is not None or take is None or not take.attempts:
            continue
        place(one.trial, take.attempts[0].stimulus_sha256)
        alone = total([one])
        for measure, of in (
            (Measure.FIRST_ATTEMPT, alone.first_attempt),
            (Measure.RECOGNISED, alone.recognised),
            (Measure.ANSWERED, alone.answered),
            (Measure.UNDERSTOOD, alone.understood.right),
        ):
            if of.total:
                add(measure, one.trial, of.count)
        if one.trial.effect is not None and one.response is not None:
            seen = session.progress.effects.get((one.trial.id, one.response.take, one.response.attempt))
            known = right_of_known([] if seen is None else [seen])
            if known.total:
                add(Measure.EFFECTS, one.trial, known.count)
        for measure, p50 in ((Measure.LATENCY, alone.latency.p50), (Measure.WAKE_DELAY, alone.wake_delay.p50)):
            if p50 is not None:
                add(measure, one.trial, 1, time=Measured(p50.value_s, p50.clock_error_s))
    events = Counter(one.trial_id for one in session.wake.unmatched(device) if session.wake.false_accept(one, True))
    for play in session.wake.plays(device):
        place(play.trial, play.row.stimulus_sha256)
        if play.kind is TrialKind.WAKE:
            add(Measure.FALSE_REJECTS, play.trial, play.reading.hit is None)
        if play.kind is TrialKind.COMMAND:
            add(Measure.COMMANDS, play.trial, play.reading.command is CommandWord.MATCH)
        if play.kind is not TrialKind.PROBE and (delay := play.reading.delay) is not None and exact_enough(delay):
            add(Measure.WAKE_DELAY, play.trial, 1, time=delay)
        if play.reading.exposure_s or events[play.trial.id]:
            add(Measure.FALSE_ACCEPTS, play.trial, events.pop(play.trial.id, 0), play.reading.exposure_s / 3600)
    if outside := events.total():  # events of no trial that counts have neither partner nor condition
        found[Measure.FALSE_ACCEPTS].append(Tried((object(),), "", count=outside))
    for said in heard_in(session.progress.trials, session.wake):
        for measure, attempt in ((Measure.FIRST_WER, said.first), (Measure.FINAL_WER, said.final)):
            if said.device == device and attempt is not None and (counts := attempt.counts) is not None:
                add(measure, said.trial, counts.errors, counts.words)
    for response in rated:
        if response.trial.device == device and response.fate is Fate.CATEGORY:
            for measure, figure in _JUDGED.items():
                add(measure, response.trial, counts_as(response, figure))
    return found


# Comparison


def _rows(
    session: int, device: str, one: _Side, other: _Side, axes: Mapping[str, Sequence[str]]
) -> Iterator[ComparedMeasure]:
    for axis, label in [("", ""), *((axis, label) for axis, labels in axes.items() for label in labels)]:
        for measure in Measure:
            first, second = (
                [said for said in side.get(measure, ()) if not axis or said.labels.get(axis) == label]
                for side in (one, other)
            )
            if (first and second) or ((first or second) and not axis):
                apart, how, words = _compared(measure.counted, first, second)
                value, ends, p = (apart.difference, apart.interval, apart.p) if apart else (None, None, None)
                yield ComparedMeasure(session, device, measure, axis, label, *words, value, ends, p, how)


def _labels(axis: str, one: _Side, other: _Side) -> list[str]:
    """Those of both."""
    sides = [{said.labels[axis] for of in side.values() for said in of if axis in said.labels} for side in (one, other)]
    return sorted_labels(list(sides[0] & sides[1]))


def _compared(
    counted: Counted, first: Sequence[Tried], second: Sequence[Tried]
) -> tuple[Difference | None, str, tuple[str, str]]:
    """The difference, what was compared, and both sides in words."""
    pairs = _pairs(first, second)
    if counted is Counted.WORDS:  # against another reference it is another question
        pairs = [(one, other) for one, other in pairs if one.of == other.of]
    paired = bool(pairs) and len(pairs) >= LEAST_PAIRED * min(len(first), len(second))
    if counted is Counted.RATE:  # without a difference its variance is unknown
        paired = len(first) == len(second) == len(pairs) >= FEWEST_UNITS
        paired &= all(math.isclose(one.of, other.of, rel_tol=_SAME_HOURS) for one, other in pairs)
        paired &= any(one.count != other.count for one, other in pairs)
    left = f", {len(first) + len(second) - 2 * len(pairs)} without a partner" if paired else ""
    if paired:
        first, second = [one for one, _ in pairs], [other for _, other in pairs]
    clusters, tries = min(len({one.cluster for one in side}) for side in (first, second)), min(len(first), len(second))
    # As for a WER: few stimuli say too little of further ones, but their repetitions say something of them.
    single = clusters < LEAST_QUERIES or clusters == tries
    groups = [[str(at) if single else one.cluster for at, one in enumerate(side)] for side in (first, second)]
    theirs, mine = groups[0], groups[0 if paired else 1]
    how = f"{'paired' if paired else 'unpaired'}, {tries if single else clusters} {'trials' if single else 'clusters'}"
    if counted is Counted.RATE and not paired:
        how = "Poisson, of all trials"
    apart: Difference | None = None
    if counted is Counted.RATE or (tries if single else clusters) >= LEAST_QUERIES:
        apart = difference_of(counted, second, first, mine, theirs, paired)
    return apart, how + left.replace(", 0 without a partner", ""), (_words(counted, first), _words(counted, second))


def _pairs(first: Sequence[Tried], second: Sequence[Tried]) -> list[tuple[Tried, Tried]]:
    """Trials of the same stimulus under the same conditions, repetitions in their order."""
    waiting = gathered((one.place, one) for one in reversed(first))
    return [(waiting[other.place].pop(), other) for other in second if waiting.get(other.place)]


def difference_of(
    counted: Counted, one: Sequence[Tried], other: Sequence[Tried], mine: list[str], theirs: list[str], paired: bool
) -> Difference | None:
    """One less the other. mine, theirs: the cluster of each trial, the same where they are paired."""
    counts, others = ([said.count for said in side] for side in (one, other))
    among, of = ([said.of for said in side] for side in (one, other))
    match counted:
        case Counted.SHARE if paired:
            return share_difference(counts, others, None if len(set(mine)) == len(mine) else mine)
        case Counted.SHARE:
            return shares_apart(_by_cluster(one, mine), _by_cluster(other, theirs))
        case Counted.WORDS | Counted.RATE if paired:
            return wer_difference(counts, others, of, mine)
        case Counted.WORDS:
            return wers_apart((counts, among, mine), (others, of, theirs))
        case Counted.RATE:
            return rates_apart(int(sum(counts)), sum(among), int(sum(others)), sum(of))
        case Counted.TIME:
            after, before = _means(one, mine), _means(other, theirs)
            if not paired:
                return unpaired_shift(list(after.values()), list(before.values()))
            both = [(after[cluster], was) for cluster, was in before.items()]
            return paired_shift([Measured(a.value_s - b.value_s, a.error_s + b.error_s) for a, b in both])


def _by_cluster(tried: Sequence[Tried], clusters: Sequence[str]) -> list[Share]:
    sums: dict[str, Share] = defaultdict(Share)
    for one, cluster in zip(tried, clusters, strict=True):
        sums[cluster] += Share(int(one.count), int(one.of))
    return list(sums.values())


def _means(of: Sequence[Tried], clusters: Sequence[str]) -> dict[str, Measured]:
    """The mean duration of each cluster, with the mean of its errors."""
    held: dict[str, list[Measured]] = defaultdict(list)
    for one, cluster in zip(of, clusters, strict=True):
        held[cluster] += [one.time] if one.time is not None else []
    return {name: Measured(fmean(t.value_s for t in of), fmean(t.error_s for t in of)) for name, of in held.items()}


def _words(counted: Counted, of: Sequence[Tried]) -> str:
    count, among = sum(one.count for one in of), sum(one.of for one in of)
    match counted:
        case Counted.SHARE:
            return share(Share(int(count), int(among)))
        case Counted.WORDS:
            return f"{count:.0f} of {among:.0f} words = {percent(count / among if among else None)}"
        case Counted.RATE:
            return f"{count:.0f} in {among:.3f} h = {number(count / among) + '/h' if among else NOTHING}"
        case Counted.TIME:
            return delays(latency_figures([one.time for one in of if one.time is not None])).partition(", p95")[0]


# Verdicts


def _judged(rows: Sequence[ComparedMeasure]) -> tuple[ComparedMeasure, ...]:
    """The rows with corrected p and verdict, in the order of reports.

    Measures as a whole have half of the weight, and all conditions the other half: many conditions do not hide a
    regression of the whole.
    """
    conditions = sum(bool(one.axis) for one in rows if one.p is not None)
    whole = sum(one.p is not None for one in rows) - conditions
    weights = [1 / max(1, conditions if one.axis else whole) for one in rows]
    corrected = holm([one.p for one in rows], weights)
    found = [_with_verdict(one, p) for one, p in zip(rows, corrected, strict=True)]
    order = list(MeasureVerdict)
    return tuple(sorted(found, key=lambda one: (order.index(one.change), bool(one.axis), one.session)))


def _with_verdict(one: ComparedMeasure, corrected: float | None) -> ComparedMeasure:
    if one.p is None or corrected is None:
        return replace(one, why="too little was measured")
    by_chance = 1 - CONFIDENCE
    if one.difference and corrected < by_chance:
        better = (one.difference > 0) == one.measure.more_is_better
        return replace(one, p_holm=corrected, change=MeasureVerdict.BETTER if better else MeasureVerdict.WORSE)
    if one.p < by_chance:
        return replace(one, p_holm=corrected, why="it may be chance among so many tests")
    return replace(one, p_holm=corrected, change=MeasureVerdict.NOT_SHOWN)
