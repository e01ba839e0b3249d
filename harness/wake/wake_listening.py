"""When a device was known to listen, and when a device spoke."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from harness.model.observation import DeviceState, ListeningProved, Proof, Status
from harness.model.record import ReviewWord
from harness.model.time import Stamp
from harness.wake.wake_plays import Play, Span

SPANS_KEPT = 1000
SPEECH_LINGERS_S = 0.5
"""A device's own sound may still reach an ear for so long after it has stopped."""
ANSWERS_WITHIN_S = 8.0
"""Speech that begins within this time of a wake event is taken for a device's answer to it."""
LONGEST_SPEECH_S = 300.0


@dataclass(slots=True)
class Proofs:
    """A device's proofs of listening, in their order.

    Between two proofs on the host's clock it listened when they lie no further apart than `within_s` and the link was
    not lost between them. A device that acknowledges audio has heard all of it, whenever it was given.
    """

    within_s: float
    spans: deque[Span] = field(default_factory=lambda: deque(maxlen=SPANS_KEPT))
    heard_to_s: float | None = None
    last_s: float | None = None
    broken: bool = True

    def add(self, proof: ListeningProved) -> None:
        at_s = proof.at.at_s
        if proof.proof is Proof.ACKNOWLEDGED and proof.audio_s is not None:
            self.heard_to_s = max(proof.audio_s, -math.inf if self.heard_to_s is None else self.heard_to_s)
        if self.last_s is not None and at_s < self.last_s:
            return  # an older one says nothing that a newer has not said
        if self.broken or self.last_s is None or at_s - self.last_s > self.within_s:
            self.spans.append((at_s, at_s))
        else:
            self.spans.append((self.spans.pop()[0], at_s))
        self.last_s, self.broken = at_s, False

    def cut(self) -> None:
        """The link was lost, or the device began anew: nothing is known until the next proof."""
        self.broken = True

    def of(self, play: Play) -> list[Span]:
        """Where on a play's line the device was known to listen."""
        if not play.on_audio_line:
            return list(self._since(play.start_s))
        if self.heard_to_s is not None:
            return [(play.start_s, self.heard_to_s)] if self.heard_to_s > play.start_s else []
        began_s = play.started.at_s if play.started else 0.0
        place = play.position_s
        return [(place(Stamp(low), None), place(Stamp(high), None)) for low, high in self._since(began_s)]

    def _since(self, at_s: float) -> list[Span]:
        found: list[Span] = []
        for span in reversed(self.spans):
            if span[1] < at_s:
                break
            found.append(span)
        return found[::-1]


PROBE_REACH = 2.0
"""Two probes prove what lies between them up to so many times the declared time apart (pauses, other trials)."""
PROBE_SLACK_S = 60.0


@dataclass(slots=True)
class Listened:
    """All that proves that a device listened: its own proofs, and phrases that it woke to where probes are declared.

    doubtful: ambient plays since the last phrase that it woke to; the next one may prove them.
    """

    own: Proofs
    woken: Proofs | None = None
    doubtful: list[Play] = field(default_factory=list)

    def expect_probes(self, every_s: float) -> None:
        """Probes are planned, so much ambient sound apart at most."""
        within_s = PROBE_REACH * every_s + PROBE_SLACK_S
        if self.woken is None:
            self.woken = Proofs(within_s)
        self.woken.within_s = max(self.woken.within_s, within_s)

    def woke(self, source: str, at: Stamp) -> list[Play]:
        """It woke to a phrase of ours; the plays that this may prove."""
        if self.woken is None or (self.woken.last_s is not None and at.at_s <= self.woken.last_s):
            return []
        self.woken.add(ListeningProved(source, at, Proof.PROBE))
        plays, self.doubtful = self.doubtful, []
        return plays

    def begin_run(self) -> None:
        """Another process goes on with the session, and counts the audio that it gives from 0."""
        self.cut()
        self.own.heard_to_s = None

    def cut(self) -> None:
        """Nothing is known until the next proof, of either kind."""
        self.own.cut()
        self.unheard()

    def unheard(self) -> None:
        """It did not wake to a probe: nothing since the last phrase that it woke to is proved by phrases."""
        if self.woken is not None:
            self.woken.cut()
        self.doubtful.clear()

    def of(self, play: Play) -> list[Span]:
        """Where on a play's line the device was known to listen; spans apart from each other, in their order."""
        if self.woken is None:
            return self.own.of(play)
        merged: list[Span] = []
        for low, high in sorted([*self.own.of(play), *self.woken.of(play)]):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        return merged

    @property
    def last_s(self) -> float | None:
        """Host time of the latest proof."""
        found = [one.last_s for one in (self.own, self.woken) if one is not None and one.last_s is not None]
        return max(found, default=None)


@dataclass(slots=True)
class Utterances:
    """Who on the bench spoke and when: by devices' own word, or by a microphone that heard an answer."""

    spans: deque[tuple[str, float, float]] = field(default_factory=lambda: deque(maxlen=SPANS_KEPT))
    woken: deque[tuple[str, float]] = field(default_factory=lambda: deque(maxlen=SPANS_KEPT))
    open: dict[str, tuple[str, float]] = field(default_factory=dict)

    def woke(self, device: str, at_s: float) -> None:
        self.woken.append((device, at_s))

    def status(self, device: str, status: Status) -> None:
        """Speech lasts from SPEAKING to whatever the device says of itself next."""
        self.ended(device, status.at.at_s)
        if status.state is DeviceState.SPEAKING:
            self.open[device] = (device, status.at.at_s)

    def heard(self, microphone: str, at_s: float) -> None:
        """Somebody who is not us began to speak: a device, when one has just woken."""
        self.ended(microphone, at_s)
        for device, woke_s in reversed(self.woken):
            if 0 <= at_s - woke_s <= ANSWERS_WITHIN_S:
                self.open[microphone] = (device, at_s)
                return

    def ended(self, source: str, at_s: float) -> None:
        if (found := self.open.pop(source, None)) is not None:
            self.spans.append((*found, at_s))

    def rule(self, device: str, at_s: float) -> tuple[ReviewWord | None, str]:
        """What the rule says of an event of `device`, and why: it fell into speech, or the rule is silent."""
        for speaker, start_s in self.open.values():
            if start_s <= at_s <= start_s + LONGEST_SPEECH_S:
                return ReviewWord.SELF_WAKE, _why(device, speaker)
        for speaker, start_s, end_s in reversed(self.spans):
            if start_s <= at_s <= end_s + SPEECH_LINGERS_S:
                return ReviewWord.SELF_WAKE, _why(device, speaker)
            if end_s < at_s - LONGEST_SPEECH_S:
                break
        return None, ""


def _why(device: str, speaker: str) -> str:
    return "during its own speech" if speaker == device else f"during speech of {speaker}"
