"""Wake events of devices during answers, their own and those of other devices."""

from __future__ import annotations

import math
from collections import Counter, deque

from harness.model.frozen import frozen
from harness.model.observation import Wake
from harness.model.record import EngineStarted, Record, ResponseFrozen, SessionStarted
from harness.model.trial import Trial
from harness.statistics.intervals import Share

_MAX_RECENT_WAKES = 256
"""Number of latest wake events with which an answer is compared."""


@frozen
class AnswersHeard:
    """How often a device woke during answers.

    own, others: share of its own answers, and of those of other devices, during which it woke at least once. The wake
    event that led to an answer comes before it, and does not count.
    """

    device: str
    own: Share
    others: Share


class SelfWakes:
    """Counts wake events during answers. Takes a log's rows in their order; not thread-safe.

    Only devices that report wake events count.
    """

    def __init__(self) -> None:
        self._trials: dict[str, Trial] = {}
        self._device_of: dict[str, str] = {}
        self._recent_wakes: deque[tuple[float, str]] = deque(maxlen=_MAX_RECENT_WAKES)
        self._newest_s = -math.inf
        self._answers: Counter[str] = Counter()
        self._wake_counts: Counter[tuple[str, str]] = Counter()
        self._reporting: dict[str, None] = {}  # devices, in the order of their first wake events

    def add_wake(self, wake: Wake) -> None:
        """Adds a wake event. Inferred ones do not count."""
        if not wake.inferred:
            self._recent_wakes.append((wake.at.at_s, wake.source))
            self._newest_s = max(self._newest_s, wake.at.at_s)
            self._reporting[self._device_of.get(wake.source, wake.source)] = None

    def add(self, row: Record) -> None:
        """Adds a row other than an observation."""
        if isinstance(row, SessionStarted):
            self._trials = {trial.id: trial for trial in row.trials}
            targets = [target for trial in row.trials for target in trial.targets]
            self._device_of = {source: target.device for target in targets for source in target.sources}
        elif isinstance(row, EngineStarted):  # after a reboot, the clock of a resumed run starts again
            self._recent_wakes.clear()
            self._newest_s = -math.inf
        elif isinstance(row, ResponseFrozen) and row.trial_id in self._trials:
            speaker = self._trials[row.trial_id].device
            self._answers[speaker] += 1
            from_s, to_s = row.starts.at_s, row.ends.at_s
            if self._newest_s < from_s:  # nearly always
                return
            woken = {source for at_s, source in self._recent_wakes if from_s <= at_s <= to_s}
            for device in {self._device_of.get(source, source) for source in woken}:
                self._wake_counts[device, speaker] += 1

    def snapshot(self) -> tuple[AnswersHeard, ...]:
        """One entry for each device with wake events, in the order of their first ones; () without answers."""
        answer_count = self._answers.total()
        if not answer_count:
            return ()
        results = []
        for device in self._reporting:
            own = Share(self._wake_counts[device, device], self._answers[device])
            wake_count = sum(count for (listener, _), count in self._wake_counts.items() if listener == device)
            results.append(AnswersHeard(device, own, Share(wake_count - own.count, answer_count - own.total)))
        return tuple(results)
