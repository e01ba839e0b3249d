"""Results of trials that expect intents and slots: what a device understood, and at which attempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from typing import NamedTuple

from harness.model.frozen import frozen
from harness.model.trial import Outcome
from harness.session.figures.trials import DECIDED, AttemptProgress, TrialProgress, tested_attempts
from harness.statistics.intervals import Share

_SILENT = (Outcome.NO_WAKE, Outcome.NO_RESPONSE)


@frozen
class UnderstoodFigures:
    """Results of decided understand trials, each by its latest finished take.

    - right, intents: share of trials with right intents and slots, and with right intents, at the attempt that decided.
    - first_right, first_intents: the same at the first attempt.
    - unknown: number of trials without evidence; they count in no share. No wake event, or silence, counts as not
      understood.
    - attempts: (attempts until intents and slots were right, number of trials), ascending; of those in `right`.
    """

    right: Share = field(default_factory=Share)
    intents: Share = field(default_factory=Share)
    first_right: Share = field(default_factory=Share)
    first_intents: Share = field(default_factory=Share)
    attempts: tuple[tuple[int, int], ...] = ()
    unknown: int = 0

    @property
    def attempts_needed(self) -> tuple[tuple[int | None, Share], ...]:
        """(Attempts until it was understood, share of trials), of those that are known; None: never understood."""
        total = self.right.total
        not_understood = total - sum(count for _, count in self.attempts)
        shares: list[tuple[int | None, Share]] = [(attempts, Share(count, total)) for attempts, count in self.attempts]
        if total:
            shares.append((None, Share(not_understood, total)))
        return tuple(shares)


class FrameVerdict(NamedTuple):
    """Whether an attempt's intents and slots, and its intents alone, were right; None: unknown."""

    right: bool | None
    intents: bool | None


def frame_of(attempt: AttemptProgress) -> FrameVerdict:
    """The verdict on an attempt, by the evidence; silence means that the device did not understand."""
    frame = attempt.verdict.understood if attempt.verdict else None
    if frame is not None and frame.right is not None:
        return FrameVerdict(frame.right, frame.intents_right)
    return FrameVerdict(False, False) if attempt.outcome in _SILENT else FrameVerdict(None, None)


def understood_of(trials: Iterable[TrialProgress]) -> UnderstoodFigures:
    """The results over `trials`; those that expect no intents are left out."""
    deciding: list[FrameVerdict] = []
    first: list[FrameVerdict] = []
    tally: Counter[int] = Counter()
    unknown = 0
    for trial in trials:
        take = trial.counting
        if trial.trial.expects is None or take is None or take.outcome not in DECIDED or take.deciding is None:
            continue
        attempts = tested_attempts(take)
        frames = [frame_of(attempt) for attempt in attempts]
        last = frame_of(take.deciding)
        unknown += last.right is None
        deciding.append(last)
        first.extend(frames[:1])
        attempt_number = next((number for number, frame in enumerate(frames, start=1) if frame.right), None)
        if attempt_number is not None and last.right is not None:
            tally[attempt_number] += 1
    return UnderstoodFigures(
        right=_share(frame.right for frame in deciding),
        intents=_share(frame.intents for frame in deciding),
        first_right=_share(frame.right for frame in first),
        first_intents=_share(frame.intents for frame in first),
        attempts=tuple(sorted(tally.items())),
        unknown=unknown,
    )


def _share(verdicts: Iterable[bool | None]) -> Share:
    decided = [verdict for verdict in verdicts if verdict is not None]
    return Share(sum(decided), len(decided))
