"""How fast an annotator goes: seconds for an utterance."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from harness.annotation.ledger import settles
from harness.model.annotation import Accepted, Act, Skipped, Struck, utterances_of

PACE_ACTS = 30
"""Of how many of the last pages and utterances the pace is the median."""


def pace_s(acts: Sequence[Act], annotator: str, *, adjudicating: bool) -> float | None:
    """The median over the last acts in force; each utterance of a page took its share of the page's time.

    None before there is one.
    """
    times: dict[str, tuple[float, int]] = {}
    for row in reversed(acts):
        if row.annotator != annotator or isinstance(row, Skipped) or settles(row) is not adjudicating:
            continue
        if row.time_s is None:
            continue
        key = row.page if isinstance(row, Accepted | Struck) else row.id
        if key not in times and len(times) == PACE_ACTS:
            break
        _, many = times.get(key, (0.0, 0))
        times[key] = (row.time_s, many + len(utterances_of(row)))
    each = [seconds / many for seconds, many in times.values() for _ in range(many)]
    return statistics.median(each) if each else None
