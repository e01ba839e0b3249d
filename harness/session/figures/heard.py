"""What devices heard against what was said to them: words at the first and at the deciding attempt.

Pure functions over a session's progress: live, resumed and finished sessions give the same. docs/sessions.md says what
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.model.bench import ObservationKind
from harness.model.choices import Grouping
from harness.model.scenario import TrialKind
from harness.model.stimulus import QUIET, Recording
from harness.model.transcript import WordCounts
from harness.model.trial import EvidenceSource, Outcome, Trial
from harness.session.figures.trials import DECIDED, AttemptProgress, TakeProgress, TrialProgress
from harness.transcripts.recognition import WordsHeard
from harness.wake.wake import WakeFigures

TESTED = DECIDED | {Outcome.INCONCLUSIVE}
"""Outcomes of takes whose attempts say something of the device."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a device made of one attempt. heard: as it came; None without a transcript. counts: of it.

    typed: an operator typed it, having read it from the device or guessed it from the answer.
    """

    attempt: int
    heard: str | None = None
    counts: WordCounts | None = None
    typed: bool = False


@dataclass(frozen=True, slots=True)
class HeardTrial:
    """One trial with one device: its first attempt that tests something, and the one that decided it.

    Of a command both are its one attempt. final: None where the attempt that decided was interrupted.
    """

    trial: Trial
    device: str
    first: Said
    final: Said | None


def heard_trial(one: TrialProgress) -> HeardTrial | None:
    """Of a query, by its latest finished take; None when that says nothing of the device, and for other kinds."""
    take = one.counting
    asked = one.trial.listening is None and one.trial.memory is None and _tells_words(one.trial)
    if take is None or take.outcome not in TESTED or not asked:
        return None
    tested = [attempt for attempt in take.attempts if tests(attempt)]
    if not tested:
        return None
    deciding = take.deciding
    return HeardTrial(
        one.trial, one.trial.device, _said(tested[0]), _said(deciding) if deciding and tests(deciding) else None
    )


def _tells_words(trial: Trial) -> bool:
    """Whether words are asked for: of a device that tells only what it understood, none are missing."""
    return not trial.until_understood or ObservationKind.TRANSCRIPT in trial.reports


def tests(attempt: AttemptProgress) -> bool:
    """Whether an attempt says something of the device: it has ended, and was not interrupted."""
    return attempt.outcome is not None and attempt.outcome is not Outcome.INTERRUPTED


def heard_commands(wake: WakeFigures) -> Iterator[HeardTrial]:
    """Of commands, one for each device that reports transcripts."""
    for device in wake.snapshot().devices:
        for play in wake.plays(device.device):
            if play.transcribes:
                said = Said(play.row.attempt, None if play.reading.counts is None else play.reading.heard,
                            play.reading.counts)  # fmt: skip
                yield HeardTrial(play.trial, play.target.device, said, said)


def heard_in(trials: Iterable[TrialProgress], wake: WakeFigures | None = None) -> tuple[HeardTrial, ...]:
    """Of a session: its queries, then its commands, each in the order of the plan."""
    queries = (found for one in trials if (found := heard_trial(one)) is not None)
    return (*queries, *(heard_commands(wake) if wake else ()))


@dataclass(frozen=True, slots=True)
class Heard:
    """The words of a group of trials, at the first attempt and at the one that decided."""

    first: WordsHeard
    final: WordsHeard


def words_of(trials: Iterable[HeardTrial]) -> Heard:
    """The words of all of them together."""
    found = list(trials)
    return Heard(
        _words((one.trial.query_id, one.first) for one in found),
        _words((one.trial.query_id, one.final) for one in found if one.final is not None),
    )


def _words(attempts: Iterable[tuple[str, Said]]) -> WordsHeard:
    found = list(attempts)
    return WordsHeard.of(((query, said.counts) for query, said in found), sum(said.typed for _, said in found))


def by_group(trials: Iterable[HeardTrial], grouping: str) -> tuple[tuple[str, Heard], ...]:
    """Label → words, in the order in which labels first occur; "" for trials that have none."""
    groups: dict[str, list[HeardTrial]] = {}
    for one in trials:
        groups.setdefault(group_of(one, grouping), []).append(one)
    return tuple((label, words_of(group)) for label, group in groups.items())


def group_of(one: HeardTrial, grouping: str) -> str:
    """The label of a trial with one of its devices; see `label_of`."""
    return label_of(one.trial, one.device, grouping)


def label_of(trial: Trial, device: str, grouping: str) -> str:
    """The label of a trial: of the matrix where that varies it, else of how it sounds; "" where it has none.

    grouping: a `Grouping`, or a column of a list of recordings.
    """
    recipe = trial.recipe
    if grouping is Grouping.VOICE and isinstance(recipe.query, Recording):
        return "recording"  # the voice of the matrix says no more than the wake phrase before it
    label = dict(trial.conditions).get(str(grouping))
    if label is not None:
        return label
    match grouping:
        case Grouping.VOICE:
            return recipe.voice.label()
        case Grouping.LEVEL if recipe.as_recorded:
            return "as recorded"
        case Grouping.LEVEL:
            return f"{recipe.level_dbfs:g}"
        case Grouping.GAP:
            return f"{recipe.gap_ms:g}"
        case Grouping.NOISE:
            return QUIET if recipe.noise is None else recipe.noise.label()
        case Grouping.POSITION:
            return ""
        case Grouping.CONDITION:
            return " ".join(f"{axis}={label}" for axis, label in trial.conditions)
        case Grouping.DEVICE:
            return device
        case Grouping.QUERY:
            return trial.query_id
        case Grouping.QUERY_CLASS:
            return trial.query_class
        case Grouping.KIND:
            return (TrialKind.QUERY if trial.memory is not None else trial.kind).value
        case Grouping.RECORDING:
            return trial.recording
        case _:
            return ""


def _said(attempt: AttemptProgress) -> Said:
    verdict = attempt.verdict
    heard = verdict.heard if verdict else None
    typed = verdict is not None and heard is not None and verdict.evidence is EvidenceSource.OPERATOR
    return Said(attempt.attempt, heard, attempt.words, typed)


def deciding_words(take: TakeProgress | None) -> WordCounts | None:
    """Of the attempt that decided a take; None without a transcript."""
    return take.deciding.words if take and take.deciding else None
