r"""Wald's sequential test of a rate and of a share: stop as soon as the question is decided.

    log likelihood ratio, bad against good
      FAILED ------------------------------
         \      |\
          \     | \     |\          an event adds `up` at once;
           \    |  \    | \         time, or a trial without an event, takes `down` away
            \___|   \___|  \
      PASSED ---------------\--------------

Wald's boundaries would be exact if the ratio stopped on them. An event carries it past FAILED, which uses up less of α
and lets β be exceeded. `_corrected_boundaries` therefore computes how often a good device really fails, and moves the
boundaries so that neither error is exceeded.

`rate_sequence` and `share_sequence` are intervals that hold at every look at once: mixtures of likelihood ratios over a
prior, by Ville's inequality. Sources: Robbins, Ann. Math. Stat. 41 (1970); Howard et al., Ann. Stat. 49 (2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from harness.statistics.intervals import CONFIDENCE, Interval

if TYPE_CHECKING:
    from harness.model.scenario import SequentialTest

MAX_STEPS = 20_000  # For a rate, 20 times as long as a pass without events takes.
STEPS_TO_PASS = 1000
"""For a rate, the time of a pass without events is divided into this many steps, to compute how often a good device
fails."""


class SequentialVerdict(Enum):
    """The result of a sequential test so far.

    PASSED: as good as `good`. FAILED: as bad as `bad`. OPEN: more data are needed.
    """

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"


Boundaries = tuple[float, float]
"""Two log likelihood ratios (bad against good). At or below the first, a device has passed; at or above the second, it
has failed."""


def wald(test: SequentialTest) -> Boundaries:
    """Wald's own boundaries: ln(β/(1−α)) and ln((1−β)/α).

    They keep α + β. A failing event that jumps far past its boundary uses less of α than they assume. Then β is
    exceeded (5.3 % for 5 %). Source: Wald, Sequential Analysis (1947), 3.3.
    """
    if not (0 < test.good < test.bad and 0 < test.alpha < 1 and 0 < test.beta < 1 and test.alpha + test.beta < 1):
        raise ValueError(f"a sequential test needs 0 < good < bad and 0 < alpha + beta < 1, not {test}")
    return math.log(test.beta / (1 - test.alpha)), math.log((1 - test.beta) / test.alpha)


@lru_cache(maxsize=64)
def rate_boundaries(test: SequentialTest) -> Boundaries:
    """The boundaries for a Poisson rate that is looked at often: Wald's, corrected so that neither α nor β is
    exceeded."""
    step = -wald(test)[0] / (test.bad - test.good) / STEPS_TO_PASS
    expected = test.good * step
    # Five or more events in so short a step are too unlikely to matter.
    events = np.array([expected**count / math.factorial(count) for count in range(5)]) * math.exp(-expected)
    return _corrected_boundaries(
        test, math.log(test.bad / test.good), (test.bad - test.good) * step, events / events.sum()
    )


@lru_cache(maxsize=64)
def share_boundaries(test: SequentialTest) -> Boundaries:
    """The boundaries for a share that is looked at after every trial: Wald's, corrected so that neither α nor β is
    exceeded."""
    if test.bad >= 1:
        raise ValueError(f"a tested share must be below 1, not {test.bad}")
    down = -math.log((1 - test.bad) / (1 - test.good))
    return _corrected_boundaries(
        test, math.log(test.bad / test.good) + down, down, np.array([1 - test.good, test.good])
    )


def rate_verdict(test: SequentialTest, count: int, hours: float) -> SequentialVerdict:
    """The verdict of the test of a Poisson rate after `count` events in `hours`; good and bad are per hour."""
    ratio = count * math.log(test.bad / test.good) - (test.bad - test.good) * hours
    return _verdict(ratio, rate_boundaries(test))


def share_verdict(test: SequentialTest, count: int, total: int) -> SequentialVerdict:
    """The verdict of the test of a share after `count` of `total`; good and bad are below 1."""
    boundaries = share_boundaries(test)
    other_count = total - count
    ratio = count * math.log(test.bad / test.good) + other_count * math.log((1 - test.bad) / (1 - test.good))
    return _verdict(ratio, boundaries)


def hours_to_pass(test: SequentialTest) -> float:
    """Hours after which a rate has passed if there is no event."""
    return -rate_boundaries(test)[0] / (test.bad - test.good)


def _verdict(ratio: float, boundaries: Boundaries) -> SequentialVerdict:
    """The verdict for a log likelihood ratio."""
    passed, failed = boundaries
    if ratio <= passed:
        return SequentialVerdict.PASSED
    return SequentialVerdict.FAILED if ratio >= failed else SequentialVerdict.OPEN


def _corrected_boundaries(test: SequentialTest, up: float, down: float, events: npt.NDArray[np.float64]) -> Boundaries:
    """Boundaries that keep α and β.

    P(bad passes) ≤ e^pass_boundary · P(good passes), so e^pass_boundary = β / P(good passes) certainly keeps β.

    - up: the amount that an event adds to the log likelihood ratio.
    - down: the amount that a step subtracts.
    - events: the probabilities of 0, 1, 2, … events in a step of a good device.
    """
    pass_boundary, fail_boundary = wald(test)
    failed_share, undecided_share = _wrong_failure_chances(pass_boundary, fail_boundary, up, down, events)
    if failed_share + undecided_share > test.alpha:
        fail_boundary = -math.log(test.alpha)  # e^−fail_boundary bounds α by itself
        failed_share, _ = _wrong_failure_chances(pass_boundary, fail_boundary, up, down, events)
    # Devices that are still undecided may yet pass, so they count as passed.
    return math.log(test.beta / (1 - min(failed_share, test.alpha))), fail_boundary


def _wrong_failure_chances(
    passed: float, failed: float, up: float, down: float, events: npt.NDArray[np.float64]
) -> tuple[float, float]:
    """The probability that a good device fails, and that of no decision after MAX_STEPS. passed, failed: the
    boundaries."""
    undecided_chances = np.ones(1)
    lowest, failed_chance = 0, 0.0  # undecided_chances[i]: probability of being undecided with lowest + i events
    for step in range(1, MAX_STEPS + 1):
        undecided_chances = np.convolve(undecided_chances, events)
        decrease = down * step
        failed_from = math.ceil((failed + decrease) / up - 1e-12) - lowest
        if failed_from < len(undecided_chances):
            failed_chance += float(undecided_chances[failed_from:].sum())
            undecided_chances = undecided_chances[:failed_from]
        undecided_from = math.floor((passed + decrease) / up + 1e-12) - lowest + 1
        if undecided_from > 0:
            undecided_chances, lowest = undecided_chances[undecided_from:], lowest + undecided_from
        if undecided_chances.sum() < 1e-12:
            return failed_chance, 0.0
    return failed_chance, float(undecided_chances.sum())


PRIOR_EVENTS, PRIOR_EXPOSURE = 0.5, 1.0
"""Parameters (shape and rate) of the gamma prior on a rate. The intervals are valid with any prior. With this one they
are narrowest for usual rates of devices, between 0.1 and 2 events per hour."""
PRIOR_YES, PRIOR_NO = 0.5, 0.5
"""Parameters (α and β) of the beta prior on a share."""
_MIN_SHARE = 1e-12  # Relative. The search for the ends starts here, since 0 and 1 have infinite logarithms.


@lru_cache(maxsize=8192)
def rate_sequence(count: int, exposure: float) -> Interval | None:
    """Time-uniform interval of a Poisson rate, per unit of exposure; None over nothing. Exposure in hours."""
    if count < 0 or exposure < 0:
        raise ValueError(f"a rate cannot be {count} events in {exposure}")
    if exposure == 0:
        return None
    a, b = PRIOR_EVENTS, PRIOR_EXPOSURE
    from harness.statistics.special_functions import special  # here, since it loads slowly

    log_mixture = (
        a * math.log(b)
        - float(special.gammaln(a))
        + float(special.gammaln(a + count))
        - (a + count) * math.log(b + exposure)
        + math.log(1 - CONFIDENCE)
    )

    def excess(rate: float) -> float:
        # log of martingale × (1 − CONFIDENCE): convex, least at count / exposure, negative inside the interval
        return log_mixture + rate * exposure - (count * math.log(rate) if count else 0.0)

    best = count / exposure
    high = (best or 1.0 / exposure) + 1.0 / exposure
    while excess(high) < 0:
        high *= 2
    if not count:
        return 0.0, -log_mixture / exposure  # without events, excess is a linear function
    return _sign_change(excess, best * _MIN_SHARE, best), _sign_change(excess, best, high)


@lru_cache(maxsize=8192)
def share_sequence(count: float, total: float) -> Interval | None:
    """Time-uniform interval of a share, `count` of `total`; None over nothing. For voices, see `voices.over_voices`."""
    if not 0 <= count <= total:
        raise ValueError(f"a share cannot be {count} of {total}")
    if total == 0:
        return None
    other_count = total - count
    from harness.statistics.special_functions import special  # here, since it loads slowly

    log_mixture = float(
        special.betaln(PRIOR_YES + count, PRIOR_NO + other_count) - special.betaln(PRIOR_YES, PRIOR_NO)
    ) + math.log(1 - CONFIDENCE)

    def excess(share: float) -> float:
        # As in `rate_sequence`. A term without trials is left out, since 0 and 1 have infinite logarithms.
        value = log_mixture
        if count:
            value -= count * math.log(share)
        if other_count:
            value -= other_count * math.log1p(-share)
        return value

    best = count / total
    low = _sign_change(excess, best * _MIN_SHARE, best) if count else 0.0
    # The share next below 1, at most: with many trials, the other end of the search would be rounded to 1.
    end = min(1 - (1 - best) * _MIN_SHARE, math.nextafter(1.0, 0.0))
    high = _sign_change(excess, best, end) if other_count else 1.0
    return low, high


def _sign_change(excess: Callable[[float], float], start: float, end: float) -> float:
    """The place between `start` and `end` at which `excess` changes sign. If `end` still lies inside the interval, that
    is the result."""
    at_start, at_end = excess(start), excess(end)
    if at_start * at_end > 0:
        return start if abs(at_start) < abs(at_end) else end
    low, high = start, end
    # Bisection to the last digit, since SciPy's solvers take longer to import than all calls of a run.
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if excess(middle) * at_start > 0 else (low, middle)
    return middle
