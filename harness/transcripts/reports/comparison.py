"""Several systems on the same references: the word error rate of each, and each two of them against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.cells import shown, width_of
from harness.transcripts.groups import GroupedComparison, Interval, SystemComparison
from harness.transcripts.reports.groups import differences
from harness.transcripts.reports.summary import NOTHING, note, per_cent, points, probability, wer_in_words
from harness.transcripts.scoring import Scoring

WIDEST_TITLE = 40


def lines(
    scorings: Sequence[Scoring],
    intervals: Sequence[Interval | None],
    found: Sequence[SystemComparison],
    width: int,
    by_groups: Sequence[Sequence[GroupedComparison]] = (),
) -> Iterator[str]:
    """A line for each system, then one block for each two. by_groups: each two of them by groups, one for one."""
    room = max(8, min(WIDEST_TITLE, width // 3))
    titles = [shown(scoring.title, room) for scoring in scorings]
    widest = max(map(width_of, titles))
    for title, scoring, interval in zip(titles, scorings, intervals, strict=True):
        yield from note(title, f"WER {wer_in_words(scoring.totals, interval)}", width, widest + 2)
    for index, one in enumerate(found):
        yield ""
        yield f"{shown(one.first, room)} against {shown(one.second, room)}"
        yield f"  on the same {one.utterances:,} utterances: {per_cent(one.first_counts.wer)} against " + per_cent(
            one.second_counts.wer
        )
        for name, count in ((one.first, one.first_missing), (one.second, one.second_missing)):
            if count:
                yield f"  {shown(name, room)} has no hypothesis for {count:,} of them: each word counts as deleted"
        yield f"  difference {_difference(one)}"
        if by_groups:
            yield from differences(by_groups[index], width)


def _difference(one: SystemComparison) -> str:
    if one.difference is None:
        return f"{NOTHING} (of no words)"
    interval = NOTHING if one.interval is None else f"{points(one.interval[0])} to {points(one.interval[1])}"
    p = probability(one.p)
    sign = "" if p.startswith("<") else "= "
    return f"{points(one.difference)} points (95 % interval {interval}), p {sign}{p}"
