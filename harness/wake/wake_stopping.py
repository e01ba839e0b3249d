"""Which sequential tests have decided, and which trials that leaves needless."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from harness.model.record import DecisionReached
from harness.model.scenario import Stopping, TrialKind
from harness.model.trial import Trial
from harness.statistics.sequential import Verdict, rate_verdict, share_verdict
from harness.wake.wake_progress import DeviceWake, WakeProgress

Figure = Literal["false_accepts", "false_rejects"]
WORDS: dict[Figure, str] = {"false_accepts": "false accepts", "false_rejects": "false rejects"}


def due_decisions(progress: WakeProgress, stopping: Stopping) -> tuple[DecisionReached, ...]:
    """Rows to write now: tests that have decided and whose decision is not in the log yet. A decision stands."""
    return tuple(row for device in progress.devices for row in _due(device, stopping))


def needless(trial: Trial, progress: WakeProgress, stopping: Stopping) -> str:
    """Why a trial need not be played, since its question is decided for every device that it is for; "" when it must.

    Ambient trials are for false accepts, wake trials for false rejects; no test makes a command or a query needless.
    """
    if trial.listening is None:
        return ""
    figure: Figure
    match trial.listening.kind:
        case TrialKind.AMBIENT | TrialKind.PROBE if stopping.false_accepts is not None:
            figure = "false_accepts"
        case TrialKind.WAKE if stopping.false_rejects is not None:
            figure = "false_rejects"
        case _:
            return ""
    for target in trial.listening.targets:
        found = progress.device(target.device)
        if found is None or figure not in dict(found.decisions):
            return ""
    return f"{WORDS[figure]} are decided for every device"


def _due(device: DeviceWake, stopping: Stopping) -> Iterator[DecisionReached]:
    decided = dict(device.decisions)
    if stopping.false_accepts is not None and "false_accepts" not in decided:
        found = device.after_review
        verdict = rate_verdict(stopping.false_accepts, found.count, found.hours)
        if verdict is not Verdict.OPEN:
            yield DecisionReached(device.device, "false_accepts", verdict is Verdict.PASSED)
    if stopping.false_rejects is not None and "false_rejects" not in decided:
        share = device.false_rejects.share
        verdict = share_verdict(stopping.false_rejects, share.count, share.total)
        if verdict is not Verdict.OPEN:
            yield DecisionReached(device.device, "false_rejects", verdict is Verdict.PASSED)
