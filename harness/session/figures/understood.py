"""How often devices understood what was asked: frames and intents right, of the trials that say so, by counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.model.trial import Outcome
from harness.session.figures.trials import DECIDED, AttemptProgress, TakeProgress, TrialProgress
from harness.statistics.intervals import Share

_SILENT = (Outcome.NO_WAKE, Outcome.NO_RESPONSE)


@dataclass(frozen=True, slots=True)
class UnderstoodFigures:
    """Of understand trials that were decided, each by its latest finished take.

    right, intents: whole frames, and intents alone, at the attempt that decided; first_right, first_intents: at the
    first attempt. A device that did not wake, or was silent to the query, has not understood it; a trial of which
    nothing says what was understood counts in no share (`unknown`). attempts: (attempts until a frame was right,
    trials), ascending; of those in `right`.
    """

    right: Share = field(default_factory=Share)
    intents: Share = field(default_factory=Share)
    first_right: Share = field(default_factory=Share)
    first_intents: Share = field(default_factory=Share)
    attempts: tuple[tuple[int, int], ...] = ()
    unknown: int = 0

    @property
    def attempts_needed(self) -> tuple[tuple[int | None, Share], ...]:
        """Attempts until it was understood → trials, of all that are known; None: never understood."""
        known = self.right.total
        never = known - sum(n for _, n in self.attempts)
        return (
            *((needed, Share(n, known)) for needed, n in self.attempts),
            *(((None, Share(never, known)),) if known else ()),
        )


class Frame(NamedTuple):
    """Whether an attempt's frame, and its intents, were right; None: nobody knows."""

    right: bool | None
    intents: bool | None


def frame_of(attempt: AttemptProgress) -> Frame:
    """By its evidence; silence is "no"."""
    told = attempt.verdict.understood if attempt.verdict else None
    if told is not None and told.right is not None:
        return Frame(told.right, told.intents_right)
    return Frame(False, False) if attempt.outcome in _SILENT else Frame(None, None)


def tested(take: TakeProgress) -> list[AttemptProgress]:
    """The attempts that say something of the device: they have ended, and were not interrupted."""
    return [one for one in take.attempts if one.outcome not in (None, Outcome.INTERRUPTED)]


def understood_of(trials: Iterable[TrialProgress]) -> UnderstoodFigures:
    """The figures over `trials`; those that expect nothing are left out."""
    deciding: list[Frame] = []
    first: list[Frame] = []
    needed: Counter[int] = Counter()
    unknown = 0
    for one in trials:
        take = one.counting
        if one.trial.expects is None or take is None or take.outcome not in DECIDED or take.deciding is None:
            continue
        attempts = tested(take)
        frames = [frame_of(attempt) for attempt in attempts]
        last = frame_of(take.deciding)
        unknown += last.right is None
        deciding.append(last)
        first.extend(frames[:1])
        at = next((number for number, found in enumerate(frames, start=1) if found.right), None)
        if at is not None and last.right is not None:
            needed[at] += 1
    return UnderstoodFigures(
        right=_share(found.right for found in deciding),
        intents=_share(found.intents for found in deciding),
        first_right=_share(found.right for found in first),
        first_intents=_share(found.intents for found in first),
        attempts=tuple(sorted(needed.items())),
        unknown=unknown,
    )


def _share(found: Iterable[bool | None]) -> Share:
    known = [one for one in found if one is not None]
    return Share(sum(known), len(known))
