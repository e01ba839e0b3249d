"""The shortest pause between wake phrase and request from which on requests arrive whole.

A device that reports its wake event at once may still lose the beginning of the request. So the pause is measured by
what arrives: requests are said after growing pauses, and the share that arrives whole is counted for each pause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from harness.base.grouping import group_by
from harness.model.frozen import frozen
from harness.model.transcript import WordCounts
from harness.statistics.intervals import Share
from harness.statistics.isotonic import crossing, falling_shares

RELIABLE = 0.9
"""Share of requests that must arrive whole, for the estimate."""
CONSISTENT = 10
"""Number of requests that must all arrive whole after one pause, as published procedures count."""
CRITICAL = 5.4
"""Twice the log likelihood ratio up to which a pause is in the interval.

With 3.84, 19 requests in a row would rule out a share just below 90 %, which lets 13 % of such rows pass. With 5.4, 26
are needed (6.5 %). For the coverage, see docs/explanation/wake-statistics.md.
"""
_ROUNDING = 1e-9
"""More than the rounding error of a share."""


class RequestResult(NamedTuple):
    """The result of one request.

    - gap_ms: pause after its wake phrase.
    - arrived: whether it arrived whole; None if that is unknown.
    - by_response: whether that was judged by the expected response, because there is no transcript.
    - woken: whether the device reported a wake event for its phrase, or never reports any.
    """

    gap_ms: int
    arrived: bool | None
    by_response: bool
    woken: bool


def words_arrived(counts: WordCounts) -> bool:
    """Whether every word of the reference is in the transcript, which may contain further words."""
    return not counts.deletions and not counts.substitutions


@frozen
class GapRequests:
    """The results of the requests after one pause.

    - whole: share that arrived whole, of those for which this is known.
    - by_response: how many of the known ones were judged by the expected response.
    - unknown: number of requests without evidence.
    - unwoken: number of all requests whose phrase did not wake the device.
    """

    gap_ms: int
    whole: Share
    by_response: int = 0
    unknown: int = 0
    unwoken: int = 0

    @property
    def total(self) -> int:
        return self.whole.total + self.unknown

    def __add__(self, other: GapRequests) -> GapRequests:
        return GapRequests(
            self.gap_ms,
            self.whole + other.whole,
            self.by_response + other.by_response,
            self.unknown + other.unknown,
            self.unwoken + other.unwoken,
        )


def by_gap(requests: Counter[RequestResult]) -> tuple[GapRequests, ...]:
    """The results for each pause, the shortest first."""
    gaps = []
    counts_by_gap = group_by((request.gap_ms, (request, count)) for request, count in requests.items())
    for gap_ms, results in sorted(counts_by_gap.items()):
        known_results = [(request, count) for request, count in results if request.arrived is not None]
        gap = GapRequests(
            gap_ms,
            Share(
                sum(count for request, count in known_results if request.arrived),
                sum(count for _, count in known_results),
            ),
            by_response=sum(count for request, count in known_results if request.by_response),
            unknown=sum(count for request, count in results if request.arrived is None),
            unwoken=sum(count for request, count in results if not request.woken),
        )
        if gap.total:
            gaps.append(gap)
    return tuple(gaps)


def add_by_gap(*kinds: Iterable[GapRequests]) -> tuple[GapRequests, ...]:
    """The results of several kinds of trials, added up for each pause; the shortest pause first."""
    gaps: dict[int, GapRequests] = {}
    for gap in chain(*kinds):
        gaps[gap.gap_ms] = gaps[gap.gap_ms] + gap if gap.gap_ms in gaps else gap
    return tuple(gaps[gap_ms] for gap_ms in sorted(gaps))


@frozen
class ShortestPause:
    """The shortest pause (ms) from which at least 90 % of requests arrive whole, by the isotonic estimate.

    - too_short, enough: the neighbouring played pauses between which it lies; None if there is none on that side.
    - interval: the 95 % interval, between played pauses. Its start is 0 if it begins before the shortest pause; its end
      is None if it ends beyond the longest one.
    - consistent: the shortest pause after which all of at least 10 requests arrived, as published procedures count;
      None if there is none.
    """

    too_short: int | None
    enough: int | None
    interval: tuple[float, float | None]
    consistent: int | None

    def compared_with(self, limit_ms: float) -> float | None:
        """The pause in ms that is compared with a limit; None if the played pauses cannot decide it."""
        if self.enough is not None and self.enough <= limit_ms:
            return float(self.enough)
        if self.too_short is not None and self.too_short >= limit_ms:
            # If no pause was enough, the shortest one is longer than the longest that was played: by 1 ms at least.
            return self.too_short + 1.0 if self.enough is None else float(self.enough)
        return None


def shortest_pause(gaps: Sequence[GapRequests]) -> ShortestPause | None:
    """The shortest pause of one device; None if nothing is known of any request."""
    known_gaps = [gap for gap in gaps if gap.whole.total]
    if not known_gaps:
        return None
    pauses, totals = [gap.gap_ms for gap in known_gaps], [gap.whole.total for gap in known_gaps]
    lost_counts = [gap.whole.total - gap.whole.count for gap in known_gaps]
    is_enough = [share <= 1 - RELIABLE + _ROUNDING for share in falling_shares(lost_counts, totals)]
    first = is_enough.index(True) if any(is_enough) else len(is_enough)
    _, interval = crossing(pauses, lost_counts, totals, 1 - RELIABLE, CRITICAL)
    return ShortestPause(
        too_short=pauses[first - 1] if first else None,
        enough=pauses[first] if first < len(pauses) else None,
        interval=interval,
        consistent=next((gap.gap_ms for gap in known_gaps if gap.whole.count == gap.total >= CONSISTENT), None),
    )


def pause_compared_with(gaps: Sequence[GapRequests], limit_ms: float) -> float | None:
    """The pause in ms that is compared with a limit; None if nothing was measured, or unknown results could decide."""
    shortest = shortest_pause(gaps)
    if shortest is None:
        return None
    # The verdicts if no unknown request had arrived whole, and if all had.
    verdicts: set[bool | None] = set()
    for arrived in (False, True):
        pause = shortest_pause([_assume_arrival(gap, arrived) for gap in gaps])
        if pause is not None:
            pause_ms = pause.compared_with(limit_ms)
            verdicts.add(None if pause_ms is None else pause_ms <= limit_ms)
    return shortest.compared_with(limit_ms) if len(verdicts) == 1 else None


def _assume_arrival(gap: GapRequests, arrived: bool) -> GapRequests:
    """The results of a pause if all of its unknown requests had arrived whole, or if none had."""
    return GapRequests(gap.gap_ms, gap.whole + Share(gap.unknown if arrived else 0, gap.unknown))
