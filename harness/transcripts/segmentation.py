"""Time-marked words of a hypothesis, cut by the segments of a reference, as sclite does.

Source: NIST SCTK 2.4.10, sclite with an stm reference and a ctm hypothesis.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from harness.model.transcript import Segment, TimedWord


def cut(words: Sequence[TimedWord], segments: Sequence[Segment]) -> tuple[tuple[TimedWord, ...], ...]:
    """The words of each segment, one for one with `segments`; words of a place without segments are in none.

    Within a file and channel (case does not count) a segment takes all words that are left up to the first whose
    midpoint is not before its end; the last takes all the rest. So words between two segments go to the later one,
    words before the first to the first, and of two segments that overlap the earlier takes what lies in both.
    Words and segments of one file and channel are taken in the order given. A midpoint that lies on a border is of the
    later segment, or of the earlier where the border's time rounds up in single precision, in which sclite keeps it.
    """
    waiting = _by_place(words)
    last = {place_of(segment): number for number, segment in enumerate(segments)}
    taken = dict.fromkeys(waiting, 0)
    pieces: list[tuple[TimedWord, ...]] = []
    for number, segment in enumerate(segments):
        place = place_of(segment)
        those = waiting.get(place, [])
        start = end = taken.get(place, 0)
        if number == last[place]:
            end = len(those)
        else:
            border_s = _single(segment.end_s)
            while end < len(those) and those[end].start_s + those[end].duration_s / 2 < border_s:
                end += 1
        taken[place] = end
        pieces.append(tuple(those[start:end]))
    return tuple(pieces)


def place_of(one: Segment | TimedWord) -> tuple[str, str]:
    """File and channel in lower case: what sclite compares."""
    return one.file.lower(), one.channel.lower()


def _single(time_s: float) -> float:
    """As sclite keeps the times of segments: in single precision, which settles midpoints that lie on a border."""
    try:
        return float(struct.unpack("f", struct.pack("f", time_s))[0])
    except OverflowError:
        return time_s


def _by_place(words: Sequence[TimedWord]) -> dict[tuple[str, str], list[TimedWord]]:
    places: dict[tuple[str, str], list[TimedWord]] = {}
    for word in words:
        places.setdefault(place_of(word), []).append(word)
    return places
