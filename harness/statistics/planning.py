"""How many hours or utterances must be played before a claim can be made."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from harness.model.choices import ALPHA, POWER
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.statistics.intervals import CONFIDENCE, Share, mean_ends, share_ends
from harness.statistics.special_functions import special
from harness.statistics.voices import over_voices

MAX_UTTERANCES = 1_000_000
"""Most utterances with which a claim is considered."""


def hours_for_claim(below_per_hour: float, events: int = 0, confidence: float = CONFIDENCE) -> float:
    """Hours after which `events` false accepts still show a rate below `below_per_hour` (one-sided, exact)."""
    if below_per_hour <= 0 or events < 0:
        raise ValueError(f"no number of hours shows a rate below {below_per_hour} with {events} events")
    return float(special.gammaincinv(events + 1, confidence)) / below_per_hour


def hours_for_limit(below_per_hour: float, events: int = 0, confidence: float = CONFIDENCE) -> float:
    """Hours after which the interval of `events` false accepts (`intervals.garwood`) ends at `below_per_hour`.

    Limits need as many, since they are compared with the two-sided interval. `hours_for_claim` is one-sided.
    """
    return mean_ends(events, confidence)[1] / below_per_hour


def utterances_for_claim(below: float, expected: float, confidence: float = CONFIDENCE) -> int:
    """Utterances that show a share of false rejects below `below` if it is `expected`.

    It is the least number at which the exact two-sided interval of the expected count (rounded) ends below `below`.
    """
    if not 0 <= expected < below < 1:
        raise ValueError(f"a share of {expected} cannot be shown to lie below {below}")
    for total in range(1, MAX_UTTERANCES):
        count = round(expected * total)
        if share_ends(count, total - count, confidence)[1] < below:
            return total
    raise ValueError(f"more than {MAX_UTTERANCES} utterances are needed to distinguish {expected} from {below}")


MAX_EVENTS = 100_000
"""Most events or misses with which a claim is considered."""
MAX_FILES = 10_000_000


@frozen
class ClaimNeed:
    """What a claim needs.

    - amount: hours or utterances.
    - events: most events that still show the claim.
    - power: probability that the claim is shown.
    """

    amount: float
    events: int
    power: float


def hours_with_power(
    below_per_hour: float, expected_per_hour: float, power: float = POWER, confidence: float = CONFIDENCE
) -> ClaimNeed:
    """Hours after which a rate of `expected_per_hour` is shown, with this power, to lie below `below_per_hour` (one-
    sided, exact).

    Raises ValueError if the two are too close to distinguish, or in the wrong order.
    """
    if not 0 <= expected_per_hour < below_per_hour:
        raise ValueError(f"a rate of {exact(expected_per_hour)} cannot be shown to lie below {exact(below_per_hour)}")
    for events in _event_counts():
        hours = hours_for_claim(below_per_hour, events, confidence)
        actual_power = float(special.pdtr(events, expected_per_hour * hours))
        if actual_power >= power:
            return ClaimNeed(hours, events, actual_power)
    problem = f"more than {MAX_EVENTS} events are needed"
    raise ValueError(f"{problem} to distinguish {exact(expected_per_hour)} from {exact(below_per_hour)}")


def utterances_with_power(
    below: float, expected: float, power: float = POWER, confidence: float = CONFIDENCE
) -> ClaimNeed:
    """Utterances after which a share of `expected` is shown, with this power, to lie below `below`.

    It is shown if the upper end of the two-sided exact interval lies below. ValueError as in `hours_with_power`.
    """
    if not 0 <= expected < below < 1:
        raise ValueError(f"a share of {exact(expected)} cannot be shown to lie below {exact(below)}")
    for events in _event_counts():
        utterances = utterances_for_events(below, events, confidence)
        actual_power = float(special.bdtr(events, utterances, expected))
        if actual_power >= power:
            return ClaimNeed(utterances, events, actual_power)
    raise ValueError(f"more than {MAX_EVENTS} misses are needed to distinguish {exact(expected)} from {exact(below)}")


def utterances_for_events(below: float, events: int, confidence: float = CONFIDENCE) -> int:
    """The least number of utterances with which `events` misses still show a share below `below`."""
    level = 1 - (1 - confidence) / 2
    return _smallest_enough(
        lambda utterances: bool(special.betaincinv(events + 1, utterances - events, level) < below),
        events,
        max(2 * events, 16),
    )


def voices_for_claim(below: float, per_voice: int, confidence: float = CONFIDENCE) -> int:
    """The least number of voices that show a share below `below` for voices like these.

    Each voice has `per_voice` utterances, of which none is rejected. The share is shown if the upper end of the
    interval in reports lies below.
    """

    def shown(voices: int) -> bool:
        intervals = over_voices([Share(0, per_voice)] * voices, confidence)
        return intervals is not None and intervals.interval[1] < below

    return _smallest_enough(shown, 1, 16)


def _smallest_enough(enough: Callable[[int], bool], low: int, high: int, max_value: float = math.inf) -> int:
    """The least number above `low` that is enough, found by bisection. Raises ValueError if it exceeds `max_value`."""
    while not enough(high):
        low, high = high, 2 * high
        if high > max_value:
            raise ValueError(f"more than {max_value:,} files are needed to distinguish the two systems")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@frozen
class Discordant:
    """How often two systems on the same files differ.

    - only_first: share of files on which only the first errs.
    - only_second: share on which only the second errs.
    """

    only_first: float
    only_second: float

    def __post_init__(self) -> None:
        if min(self.only_first, self.only_second) < 0 or self.only_first + self.only_second > 1:
            raise ValueError("shares of files on which two systems differ must be from 0 to 1, and together at most 1")

    @classmethod
    def of(cls, first: float, second: float, discordant: float | None = None) -> Discordant:
        """From the error shares of both. discordant: share of the files on which only one of them errs; None if their
        errors are independent."""
        if discordant is None:
            return cls(first * (1 - second), second * (1 - first))
        # Neither the share on which both err nor the share on which none errs can be negative.
        min_share, max_share = abs(first - second), min(first + second, 2 - first - second)
        if not min_share - 1e-12 <= discordant <= max_share + 1e-12:
            raise ValueError(
                f"{exact(first)} and {exact(second)} can differ on {exact(min_share)} to {exact(max_share)} of the "
                f"files, not on {exact(discordant)}"
            )
        return cls(max(0.0, (discordant + first - second) / 2), max(0.0, (discordant - first + second) / 2))


def mcnemar_power(files: int, differing: Discordant, alpha: float = ALPHA) -> float:
    """The power of McNemar's exact test: the probability that it shows the difference on this many files.

    Source: Duffy, Biometrics 40 (1984): the mean over the possible numbers of differing files of the power given each.
    """
    differing_share = differing.only_first + differing.only_second
    if differing_share <= 0:
        return 0.0
    margin = 9 * math.sqrt(files * differing_share * (1 - differing_share)) + 9  # beyond lies less than rounding
    counts = np.arange(
        max(0, math.floor(files * differing_share - margin)),
        min(files, math.ceil(files * differing_share + margin)) + 1,
    )
    chances = np.diff(
        np.append(
            0.0 if counts[0] == 0 else special.bdtr(counts[0] - 1, files, differing_share),
            special.bdtr(counts, files, differing_share),
        )
    )
    # The largest count of the rarer kind that is still significant; −1 if none is. SciPy's inverse may be off by one.
    critical = np.floor(np.nan_to_num(special.bdtrik(alpha / 2, counts, 0.5), nan=-1.0)).astype(np.int64)
    critical = np.where(
        2 * special.bdtr(np.maximum(critical + 1, 0), np.maximum(counts, critical + 1), 0.5) <= alpha,
        critical + 1,
        critical,
    )
    critical = np.where(
        (critical >= 0) & (2 * special.bdtr(np.maximum(critical, 0), counts, 0.5) > alpha), critical - 1, critical
    )
    share = differing.only_first / differing_share
    power = special.bdtr(np.maximum(critical, 0), counts, share) + special.bdtr(
        np.maximum(critical, 0), counts, 1 - share
    )
    return float((chances * np.where(critical >= 0, power, 0.0)).sum())


def files_for_difference(differing: Discordant, power: float = POWER, alpha: float = ALPHA) -> int:
    """Number of files on which McNemar's exact test shows the difference with this power, give or take a few.

    The power of an exact test does not grow steadily with the number of files, so bisection does not always find the
    least number. ValueError without a difference, or for more than MAX_FILES files.
    """
    if differing.only_first == differing.only_second:
        raise ValueError("no test separates two systems that are equally good")
    return _smallest_enough(lambda files: mcnemar_power(files, differing, alpha) >= power, 1, 16, MAX_FILES)


def design_effect(per_talker: float, correlation: float) -> float:
    """The factor by which more utterances are needed if each talker speaks several, which resemble each other.

    - per_talker: utterances of each talker.
    - correlation: within talkers, from 0 (as if each utterance had a talker of its own) to 1 (further utterances of a
      talker add nothing).

    Source: Kish, Survey Sampling (1965), 5.4.
    """
    if per_talker < 1 or not 0 <= correlation <= 1:
        raise ValueError(
            f"no design has {exact(per_talker)} utterances per talker with a correlation of {exact(correlation)}"
        )
    return 1 + (per_talker - 1) * correlation


def _event_counts() -> list[int]:
    """Numbers of events: 0, 1, 2, …, then in steps of 1 %."""
    steps = list(range(200))
    while steps[-1] < MAX_EVENTS:
        steps.append(math.ceil(steps[-1] * 1.01))
    return steps
