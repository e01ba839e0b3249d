"""How the host disturbed an attempt: it stalled, or was late with blocks of sound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.base.foreign import plain_text
from harness.model.frozen import frozen
from harness.model.numbers import counted, percent, seconds
from harness.model.observation import HostStalled, Overrun, stalled_s
from harness.model.time import MeasuredDuration, Stamp, between
from harness.model.trial import Target
from harness.statistics.intervals import MAX_ERROR_S

BLOCK_S = 0.05
"""Time by which a report of late or lost blocks may have shifted sound: one block of a stream on a busy host
(`frames_per_buffer` 2400)."""
MAX_LATE_SHARE = 0.005
"""Share of a stream's sound up to which late and lost blocks are not mentioned with the verdict."""


@frozen
class LateSound:
    """Late and lost sound in a whole session, also outside its attempts.

    - blocks: number of late and lost blocks.
    - reports: (id of a stream, number of its reports of them).
    - session_s: how long the session ran.
    """

    blocks: int = 0
    reports: tuple[tuple[str, int], ...] = ()
    session_s: float = 0.0

    def shares(self) -> list[tuple[str, float]]:
        """(stream, share of its time that was late or lost), largest first. Each report counts as one block."""
        if self.session_s <= 0:
            return []
        shares = [(source, min(1.0, BLOCK_S * count / self.session_s)) for source, count in self.reports]
        return sorted(shares, key=lambda share: -share[1])

    @property
    def in_words(self) -> str:
        """`180 blocks late or lost: about 1.38 % of near, 1.08 % of far`; "" if there are none."""
        shares_text = ", ".join(f"{percent(share)} of {plain_text(source, 40)}" for source, share in self.shares())
        about = f": about {shares_text}" if shares_text else ""
        return f"{counted(self.blocks, 'block')} late or lost{about}" if self.blocks else ""

    @property
    def consequence(self) -> str:
        """What it means for the results, in a sentence; "" if it is too little to matter."""
        shares = self.shares()
        if not shares or shares[0][1] <= MAX_LATE_SHARE:
            return ""
        source, share = shares[0]
        return (
            f"about {percent(share)} of the sound of {plain_text(source, 40)} was late or lost"
            f" (more than {percent(MAX_LATE_SHARE, 1)}). Misses and slow responses may be due to this computer, not the"
            " device. Repeat the run when the computer is less busy."
        )


@dataclass(slots=True)
class Disturbance:
    """How the host disturbed one attempt.

    - stalls: times in which the host ran no thread of the harness.
    - late_sound, gaps: reports of late or lost blocks, from the loudspeaker and from the microphone.
    """

    stalls: list[HostStalled] = field(default_factory=list)
    late_sound: list[Overrun] = field(default_factory=list)
    gaps: list[Overrun] = field(default_factory=list)

    def in_words(self, from_s: float, until_s: float) -> str:
        """`the host stalled for 800 ms; 12 blocks of mic were late or lost`; "" if no measured time is affected.

        Times are affected by any stall, and by reports of blocks that together may have shifted sound by more than
        MAX_ERROR_S.
        """
        stalled = [stall.lasted_s for stall in self.stalls if stall.falls_within(from_s, until_s)]
        late = _within((*self.late_sound, *self.gaps), from_s, until_s)
        if not stalled and BLOCK_S * len(late) <= MAX_ERROR_S:
            return ""
        words = []
        if stalled:
            stall_count = f" in {len(stalled)} stalls" if len(stalled) > 1 else ""
            words.append(f"the host stalled for {seconds(sum(stalled))}{stall_count}")
        blocks_by_source = Counter[str]()
        for overrun in late:
            blocks_by_source[overrun.source] += overrun.count
        for source, count in blocks_by_source.items():
            words.append(f"{counted(count, 'block')} of {source} {'was' if count == 1 else 'were'} late or lost")
        return "; ".join(words)

    def duration_between(self, begun_s: float, start: Stamp, end: Stamp) -> MeasuredDuration:
        """The time from a moment of the stimulus to one of the device; its error includes shifts by the host.

        begun_s: when the attempt began. Late blocks of the stimulus shift all of the stimulus that follows.
        """
        duration = between(start, end)
        overruns = _within(self.late_sound, begun_s, start.at_s) + _within(self.gaps, start.at_s, end.at_s)
        shift_s = stalled_s(self.stalls, start.at_s, end.at_s) + BLOCK_S * len(overruns)
        return MeasuredDuration(duration.value_s, duration.error_s + shift_s)

    def unheard_chime(self, target: Target, from_s: float) -> str:
        """The cause that a device without a wake event may have woken: its chime was lost since `from_s`; "" if not."""
        gap = next((gap for gap in self.gaps if gap.at.at_s >= from_s), None)
        if gap is None or not target.chimes:
            return ""
        return f"stream_gap: {gap.source} lost sound, in which {target.device} may have chimed"

    def add(self, other: Disturbance) -> None:
        """Adds how the host disturbed another attempt."""
        self.stalls += other.stalls
        self.late_sound += other.late_sound
        self.gaps += other.gaps


def _within(overruns: Iterable[Overrun], from_s: float, until_s: float) -> list[Overrun]:
    return [overrun for overrun in overruns if from_s <= overrun.at.at_s <= until_s]
