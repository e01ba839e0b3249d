"""Wald's sequential test of a rate and of a share: stop as soon as the question is decided."""

from __future__ import annotations

import math
from enum import Enum

from harness.model.scenario import SequentialTest


class Verdict(Enum):
    """PASSED: as good as `good`. FAILED: as bad as `bad`. OPEN: more is needed."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"


def boundaries(test: SequentialTest) -> tuple[float, float]:
    """Log likelihood ratios (bad against good) at or below which a device has passed, at or above which it has failed.

    Wald's: ln(β/(1−α)) and ln((1−β)/α). Together the two errors never exceed α + β.
    Source: Wald, Sequential Analysis (1947), 3.3.
    """
    if not (0 < test.good < test.bad and 0 < test.alpha < 1 and 0 < test.beta < 1 and test.alpha + test.beta < 1):
        raise ValueError(f"a sequential test has 0 < good < bad and 0 < alpha + beta < 1, not {test}")
    return math.log(test.beta / (1 - test.alpha)), math.log((1 - test.beta) / test.alpha)


def rate_verdict(test: SequentialTest, count: int, hours: float) -> Verdict:
    """Where the test of a Poisson rate stands after `count` events in `hours`; good and bad are per hour."""
    return _verdict(test, count * math.log(test.bad / test.good) - (test.bad - test.good) * hours)


def share_verdict(test: SequentialTest, count: int, total: int) -> Verdict:
    """Where the test of a share stands after `count` of `total`; good and bad are below 1."""
    if test.bad >= 1:
        raise ValueError(f"a share that is tested lies below 1, not {test.bad}")
    rest = total - count
    return _verdict(test, count * math.log(test.bad / test.good) + rest * math.log((1 - test.bad) / (1 - test.good)))


def hours_to_pass(test: SequentialTest) -> float:
    """Hours without a single event after which a rate has passed."""
    return -boundaries(test)[0] / (test.bad - test.good)


def _verdict(test: SequentialTest, ratio: float) -> Verdict:
    passed, failed = boundaries(test)
    if ratio <= passed:
        return Verdict.PASSED
    return Verdict.FAILED if ratio >= failed else Verdict.OPEN
