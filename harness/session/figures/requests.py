"""Requests by the pause after their wake phrase, of a session's queries and commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.model.bench import ObservationKind
from harness.model.scenario import Evidence
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.session.figures.trials import TESTED, AttemptProgress, TrialProgress, tested_attempts
from harness.wake.requests import GapRequests, RequestResult, add_by_gap, by_gap, words_arrived
from harness.wake.wake_progress import WakeProgress

RequestsOfDevice = tuple[str, tuple[GapRequests, ...]]
"""The id of a device, and the results of its requests for each pause after the wake phrase."""


def requests_asked(trials: Iterable[TrialProgress]) -> tuple[RequestsOfDevice, ...]:
    """The queries of each device, in the order of the plan. Each counts once, by the first attempt that tests it."""
    requests_by_device: dict[str, Counter[RequestResult]] = {}
    for progress in trials:
        trial, take = progress.trial, progress.counting
        is_query = trial.listening is None and trial.memory is None and not trial.talker
        if not is_query or trial.recipe.wake_phrase is None or take is None or take.outcome not in TESTED:
            continue
        if attempts := tested_attempts(take):
            requests_by_device.setdefault(trial.device, Counter())[_request_result(progress, attempts[0])] += 1
    return tuple((device, by_gap(requests)) for device, requests in requests_by_device.items())


def _request_result(trial: TrialProgress, attempt: AttemptProgress) -> RequestResult:
    """Whether a request arrived whole: by the device's transcript, else its intents, else the operator's answer."""
    verdict, counts = attempt.verdict, attempt.words
    assert verdict is not None, trial.trial.id  # an attempt that tests something has ended
    gap_ms, woken = trial.trial.recipe.gap_ms, verdict.outcome is not Outcome.NO_WAKE
    if counts is not None and verdict.evidence is EvidenceSource.DEVICE:
        return RequestResult(gap_ms, words_arrived(counts), by_response=False, woken=woken)
    arrived: bool | None = None
    by_response = ObservationKind.TRANSCRIPT not in trial.trial.reports
    if verdict.understood is not None and verdict.understood.right is not None:
        arrived, by_response = verdict.understood.right, True
    elif verdict.recognition in (Recognition.YES, Recognition.NO):
        arrived, by_response = verdict.recognition is Recognition.YES, True
    elif verdict.outcome in (Outcome.NO_WAKE, Outcome.NO_RESPONSE) and trial.trial.evidence is not Evidence.NONE:
        arrived = False  # silence is evidence only where another answer would have been judged
    return RequestResult(gap_ms, arrived, by_response, woken)


def requests_of_session(
    requests: Sequence[RequestsOfDevice], wake: WakeProgress | None
) -> tuple[RequestsOfDevice, ...]:
    """The queries and commands of each device that has some, for each pause."""
    queries = dict(requests)
    devices = wake.devices if wake else ()
    commands = {device_wake.device: device_wake.requests for device_wake in devices if device_wake.requests}
    return tuple(
        (device, add_by_gap(queries.get(device, ()), commands.get(device, ())))
        for device in dict.fromkeys((*queries, *commands))
    )
