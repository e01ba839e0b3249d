"""What devices should understand and what they understood, as annotated corpora (gold and predicted) from logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from harness.model.choices import CountedAttempt
from harness.model.frozen import frozen
from harness.model.trial import Trial
from harness.model.understanding import Corpus, Utterance
from harness.session.figures.progress import Progress
from harness.session.figures.trials import TESTED, AttemptProgress, TrialProgress, tested_attempts
from harness.session.figures.understood_trials import frame_of
from harness.understanding.reported_frames import normalised_slots

Groups = tuple[tuple[str, str], ...]
"""(name of a group, its value), as `model.understanding.Utterance` has them."""


@frozen
class SessionCorpora:
    """The trials that expect intents and slots, as two corpora.

    - gold, predicted: an utterance for each trial with evidence of what the device understood, in the same order and
      with the same ids. For a device that stayed silent, the prediction has no intents and no slots.
    - unknown: ids of trials that tested the device, but without evidence of what it understood. They are in neither
      corpus. An operator's yes or no is not such evidence.
    - trials: the trials of both corpora by id, with the expected values as written, and the rule that normalises
      values.
    """

    gold: Corpus
    predicted: Corpus
    unknown: tuple[str, ...] = ()
    trials: Mapping[str, Trial] = field(default_factory=dict)


def session_corpora(
    sessions: Iterable[Progress], counted_attempt: CountedAttempt = CountedAttempt.DECIDING
) -> SessionCorpora:
    """The corpora of one session or several; with several, ids begin with the session's.

    Each understand trial is represented by its latest finished take, if that tested the device. The id is the trial's,
    and the words are those of the reference. groups: device, query_class, query, session, attempt (its number) and
    every condition of the matrix. Slots are not linked to words, and their values are normalised on both sides. If the
    trial does not check slots, the gold has None.
    """
    progresses = list(sessions)
    gold: list[Utterance] = []
    predicted: list[Utterance] = []
    unknown: list[str] = []
    trials: dict[str, Trial] = {}
    names: list[str] = []
    for number, progress in enumerate(progresses, start=1):
        name = progress.session.session_id if progress.session else str(number)
        if name in names:  # the same session twice: its ids must differ
            name = f"{name}~{number}"
        names.append(name)
        for trial_progress in progress.trials:
            attempt = _counting_attempt(trial_progress, counted_attempt)
            if attempt is None:
                continue
            trial = trial_progress.trial
            trial_id = trial.id if len(progresses) == 1 else f"{name}:{trial.id}"
            groups = _groups(trial, name, attempt.attempt)
            prediction = _predicted_utterance(trial, attempt, trial_id, groups)
            if prediction is None:
                unknown.append(trial_id)
                continue
            trials[trial_id] = trial
            gold.append(_expected_utterance(trial, trial_id, groups))
            predicted.append(prediction)
    path = ", ".join(names)
    return SessionCorpora(Corpus(path, tuple(gold)), Corpus(path, tuple(predicted)), tuple(unknown), trials)


def _counting_attempt(trial: TrialProgress, counted_attempt: CountedAttempt) -> AttemptProgress | None:
    """The attempt that counts; None if the trial expects nothing or did not test the device."""
    take = trial.counting
    if trial.trial.expects is None or take is None or take.outcome not in TESTED:
        return None
    attempts = tested_attempts(take)
    if counted_attempt is CountedAttempt.FIRST:
        return attempts[0] if attempts else None
    return next((attempt for attempt in attempts if attempt.attempt == take.deciding_attempt), None)


def _expected_utterance(trial: Trial, trial_id: str, groups: Groups) -> Utterance:
    assert trial.expects is not None, trial.id
    words, expected = tuple(trial.reference.split()), trial.expects
    slots = None if expected.slots is None else normalised_slots(expected.slots, trial.recognised)
    return Utterance(trial_id, words, expected.intents, None, slots, groups)


def _predicted_utterance(trial: Trial, attempt: AttemptProgress, trial_id: str, groups: Groups) -> Utterance | None:
    """What the device understood, by its reports; without intents if it was silent, None if unknown."""
    frame = attempt.verdict.understood if attempt.verdict else None
    words = tuple(trial.reference.split())
    if frame is not None and frame.intents is not None:
        expected = trial.expects.slots if trial.expects else None
        slots = normalised_slots(frame.slots or (), trial.recognised, expected or ())
        return Utterance(trial_id, words, frame.intents, None, slots, groups)
    silent = frame_of(attempt).right is False and (frame is None or frame.right is None)
    return Utterance(trial_id, words, (), None, (), groups) if silent else None


def _groups(trial: Trial, session: str, attempt: int) -> Groups:
    own_groups = {
        "device": trial.device,
        "query_class": trial.query_class,
        "query": trial.query_id,
        "session": session,
        "attempt": str(attempt),
    }
    # A column of a list of recordings may have the name of a group, which it does not replace.
    conditions = {name: label for name, label in trial.conditions if name not in own_groups}
    return (*own_groups.items(), *conditions.items())
