"""When devices of the bench speak: a device that wakes at that time was woken by a device, not by a person."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial

from harness.model.observation import DeviceState, Status
from harness.model.record import ReviewVerdict

SPANS_KEPT = 1000
SPEECH_LINGERS_S = 0.5
"""How long a device's sound may be heard after it has stopped."""
ANSWERS_WITHIN_S = 8.0
"""Speech that begins within this time of a wake event counts as the device's answer."""
MAX_SPEECH_S = 300.0  # Speech counts no longer than this, in case the report of its end was lost.


@dataclass(slots=True)
class Utterances:
    """When devices on the bench spoke, from their own reports or from the microphone.

    spans: (device, start, end) of speech; the device is None if it is not known. woken: (time, device) of wake events.
    open: source → (device, start) of speech that has not ended.
    """

    spans: deque[tuple[str | None, float, float]] = field(default_factory=partial(deque, maxlen=SPANS_KEPT))
    woken: deque[tuple[float, str]] = field(default_factory=partial(deque, maxlen=SPANS_KEPT))
    open: dict[str, tuple[str | None, float]] = field(default_factory=dict)

    def begin_run(self) -> None:
        """Forgets everything, since another process resumes the session: its clock may begin at 0."""
        self.spans.clear()
        self.woken.clear()
        self.open.clear()

    def woke(self, device: str, at_s: float) -> None:
        self.woken.append((at_s, device))

    def status(self, device: str, status: Status) -> None:
        """Speech lasts from SPEAKING to the device's next status."""
        self.ended(device, status.at.at_s)
        if status.state is DeviceState.SPEAKING:
            self.open[device] = (device, status.at.at_s)

    def heard(self, microphone: str, at_s: float) -> None:
        """Handles speech that is not the harness's own. It counts as a device's if it follows a wake event."""
        self.ended(microphone, at_s)
        self.open[microphone] = (None, at_s)

    def ended(self, source: str, at_s: float) -> None:
        if (opening := self.open.pop(source, None)) is not None:
            self.spans.append((*opening, at_s))

    def rule(self, device: str, at_s: float) -> tuple[ReviewVerdict | None, str]:
        """The explanation of an event by the rule, and the reason in words; None and "" unless it fell into speech."""
        for speaker, start_s in self.open.values():
            if start_s <= at_s <= start_s + MAX_SPEECH_S and (speaker := speaker or self._answering_device(start_s)):
                return ReviewVerdict.SELF_WAKE, _speech_reason(device, speaker)
        for speaker, start_s, end_s in reversed(self.spans):
            if start_s <= at_s <= end_s + SPEECH_LINGERS_S and (speaker := speaker or self._answering_device(start_s)):
                return ReviewVerdict.SELF_WAKE, _speech_reason(device, speaker)
            if end_s < at_s - MAX_SPEECH_S:
                break
        return None, ""

    def _answering_device(self, speech_s: float) -> str | None:
        """The device that answers with the speech that began at speech_s, since it woke shortly before."""
        answered = [event for event in self.woken if 0 <= speech_s - event[0] <= ANSWERS_WITHIN_S]
        return max(answered)[1] if answered else None


def _speech_reason(device: str, speaker: str) -> str:
    return "during its own speech" if speaker == device else f"during speech of {speaker}"
