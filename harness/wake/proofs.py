"""When a device was known to listen: its proofs, and the time that two of them prove.

    proofs   x  x   x           x   x  x     a report, a heartbeat, a phrase that woke it
    cuts                  |                  the link was lost, a probe was missed
    spans    └──────┘           └──────┘     from proof to proof, if they lie within `within_s` and no cut is between

Ambient sound counts as exposure only within the spans. All times are in s on the host's clock.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

from harness.model.observation import ListeningProved, Proof
from harness.model.time import Stamp
from harness.wake.wake_plays import Play, Span

MAX_KEPT = 1000
"""Number of latest spans, of proofs and of cuts that are kept."""


@dataclass(slots=True)
class Proofs:
    """A device's proofs of listening, in their order.

    The device listened between two proofs if they are at most `within_s` apart and the link was not lost between them.
    A device that acknowledges audio has heard all of it, whenever that was sent.

    - spans: times in which it listened, ascending.
    - heard_to_s: position in injected audio up to which it acknowledged audio; None if it has not.
    - last_s: time of the last proof; None before the first.
    - cuts_s: times across which two proofs prove nothing, ascending.
    - moments_s: times of proofs, ascending.
    """

    within_s: float
    spans: list[Span] = field(default_factory=list)
    heard_to_s: float | None = None
    last_s: float | None = None
    cuts_s: list[float] = field(default_factory=list)
    moments_s: list[float] = field(default_factory=list)

    def add(self, proof: ListeningProved) -> None:
        """Adds a proof, which may be reported after later ones."""
        at_s = proof.at.at_s
        insort(self.moments_s, at_s)
        del self.moments_s[:-MAX_KEPT]
        if proof.proof is Proof.ACKNOWLEDGED and proof.audio_s is not None:
            self.heard_to_s = max(proof.audio_s, -math.inf if self.heard_to_s is None else self.heard_to_s)
        if self.last_s is not None and at_s < self.last_s:
            self._add_late(at_s)
            return
        if self.last_s is None or not self._proves_between(self.last_s, at_s):
            self.spans.append((at_s, at_s))
        else:
            self.spans.append((self.spans.pop()[0], at_s))
        self.last_s = at_s
        del self.spans[:-MAX_KEPT]

    def add_cut(self, at_s: float) -> bool:
        """Adds a moment across which two proofs prove nothing.

        Returns True if that splits a span that was proved already, because the moment is reported late.
        """
        if at_s != self.last_s:
            at_s = math.nextafter(at_s, -math.inf)  # so that a proof of the same moment that follows lies after it
        insort(self.cuts_s, at_s)
        del self.cuts_s[:-MAX_KEPT]
        index = bisect_left(self.spans, at_s, key=lambda span: span[1])
        if index == len(self.spans):
            return False
        low_s, high_s = self.spans[index]
        if not low_s <= at_s < high_s:
            return False
        earlier_s = max((moment_s for moment_s in self.moments_s if low_s <= moment_s <= at_s), default=low_s)
        later_s = min((moment_s for moment_s in self.moments_s if at_s < moment_s <= high_s), default=high_s)
        self.spans[index : index + 1] = [(low_s, earlier_s), (later_s, high_s)]
        return True

    def _add_late(self, at_s: float) -> None:
        """Adds a proof that is reported after a later one. It joins its neighbours as if it had come in time."""
        index = bisect_left(self.spans, (at_s, at_s))
        low_s = high_s = at_s
        first = last = index
        if index and self._proves_between(self.spans[index - 1][1], at_s):
            first, low_s, high_s = index - 1, self.spans[index - 1][0], max(at_s, self.spans[index - 1][1])
        if index < len(self.spans) and self._proves_between(high_s, self.spans[index][0]):
            last, high_s = index + 1, self.spans[index][1]
        self.spans[first:last] = [(low_s, high_s)]

    def _proves_between(self, from_s: float, to_s: float) -> bool:
        """Whether two proofs, at from_s and to_s, prove the time between them."""
        cut = bisect_left(self.cuts_s, from_s) < bisect_right(self.cuts_s, to_s)
        return to_s - from_s <= self.within_s and not cut

    def spans_of(self, play: Play) -> list[Span]:
        """Spans of a play's time line during which the device was known to listen."""
        if not play.on_audio_line:
            return list(self._spans_since(play.start_s))
        if self.heard_to_s is not None:
            return [(play.start_s, self.heard_to_s)] if self.heard_to_s > play.start_s else []
        began_s = play.started.at_s if play.started else 0.0
        return [
            (play.position_s(Stamp(low), None), play.position_s(Stamp(high), None))
            for low, high in self._spans_since(began_s)
        ]

    def _spans_since(self, at_s: float) -> list[Span]:
        """The spans that end at at_s or later. Searched from the end, since plays are usually the latest ones."""
        spans: list[Span] = []
        for span in reversed(self.spans):
            if span[1] < at_s:
                break
            spans.append(span)
        return spans[::-1]


MAX_PROBE_INTERVALS = 2.0
"""Two probes prove the time between them if they are at most this many times the declared interval apart.

Pauses and other trials can make that time longer than the interval.
"""
PROBE_SLACK_S = 60.0
"""Added to that time."""


@dataclass(slots=True)
class ListeningProofs:
    """All proofs that a device listened.

    - own: reports of the device itself.
    - woken: phrases that woke it; None if the plan has no probes.
    - unproven_plays: ambient plays since the last phrase that woke it. The next such phrase may prove that the device
      heard them.
    """

    own: Proofs
    woken: Proofs | None = None
    unproven_plays: list[Play] = field(default_factory=list)

    def expect_probes(self, every_s: float) -> None:
        """Lets phrases prove listening, if a probe is planned every_s seconds. The longest such interval applies."""
        within_s = MAX_PROBE_INTERVALS * every_s + PROBE_SLACK_S
        if self.woken is None:
            self.woken = Proofs(within_s)
        self.woken.within_s = max(self.woken.within_s, within_s)

    def add_woken(self, source: str, stamp: Stamp) -> list[Play]:
        """Adds a phrase that woke the device. Returns the plays that this may prove, and forgets them."""
        if self.woken is None:
            return []
        self.woken.add(ListeningProved(source, stamp, Proof.PROBE))
        plays, self.unproven_plays = self.unproven_plays, []
        return plays

    def for_next_run(self) -> ListeningProofs:
        """Empty proofs for a resumed run, whose audio positions, and after a reboot its clock, begin at 0."""
        return ListeningProofs(
            Proofs(self.own.within_s), Proofs(self.woken.within_s) if self.woken is not None else None
        )

    def add_cut(self, at_s: float) -> bool:
        """Adds a moment across which two proofs prove nothing, see `Proofs.add_cut`."""
        changed = self.own.add_cut(at_s)
        return self.add_missed_probe(at_s) or changed

    def add_missed_probe(self, at_s: float) -> bool:
        """Adds a missed probe: phrases do not prove the time since the last one that woke the device.

        Returns True if that splits a span that was proved already.
        """
        self.unproven_plays.clear()
        return self.woken is not None and self.woken.add_cut(at_s)

    def spans_of(self, play: Play) -> list[Span]:
        """Separate spans of a play's time line during which the device was known to listen, in order."""
        if self.woken is None:
            return self.own.spans_of(play)
        merged: list[Span] = []
        for low, high in sorted([*self.own.spans_of(play), *self.woken.spans_of(play)]):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        return merged

    @property
    def last_s(self) -> float | None:
        """Time of the last proof of either kind; None without one."""
        times_s = (self.own.last_s, None if self.woken is None else self.woken.last_s)
        return max((time_s for time_s in times_s if time_s is not None), default=None)
