"""When devices of the bench speak: a device that wakes at that time was woken by a device, not by a person."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial

from harness.model.observation import DeviceState, Status
from harness.model.record import ReviewVerdict

MAX_KEPT = 1000
"""Number of latest speeches and wake events that are kept."""
LINGERING_S = 0.5
"""How long a device's sound may be heard after it has stopped."""
MAX_ANSWER_DELAY_S = 8.0
"""Speech that begins within this time of a wake event counts as the device's answer."""
MAX_SPEECH_S = 300.0
"""Speech counts no longer than this, in case the report of its end was lost."""


@dataclass(slots=True)
class Utterances:
    """When devices on the bench spoke during a run of the engine, from their own reports or from the microphone.

    Times are in s on the host's clock.
    - speeches: (device, start, end) of speech; the device is None if it is not known.
    - wakes: (time, device) of wake events.
    - open_speech: source → (device, start) of speech that has not ended.
    """

    speeches: deque[tuple[str | None, float, float]] = field(default_factory=partial(deque, maxlen=MAX_KEPT))
    wakes: deque[tuple[float, str]] = field(default_factory=partial(deque, maxlen=MAX_KEPT))
    open_speech: dict[str, tuple[str | None, float]] = field(default_factory=dict)

    def add_wake(self, device: str, at_s: float) -> None:
        self.wakes.append((at_s, device))

    def add_status(self, device: str, status: Status) -> None:
        """Adds a device's status. Its speech lasts from SPEAKING to its next status."""
        self.end_speech(device, status.at.at_s)
        if status.state is DeviceState.SPEAKING:
            self.open_speech[device] = (device, status.at.at_s)

    def begin_speech(self, microphone: str, at_s: float) -> None:
        """Adds speech that is not the harness's own. It counts as a device's if it follows a wake event."""
        self.end_speech(microphone, at_s)
        self.open_speech[microphone] = (None, at_s)

    def end_speech(self, source: str, at_s: float) -> None:
        """Ends the open speech of a device or microphone, if there is any."""
        opening = self.open_speech.pop(source, None)
        if opening is not None:
            device, start_s = opening
            self.speeches.append((device, start_s, min(at_s, start_s + MAX_SPEECH_S)))

    def explain_wake(self, device: str, at_s: float) -> tuple[ReviewVerdict | None, str]:
        """The explanation of a wake event by the rule, and the reason in words.

        Returns (None, "") unless the event fell into the speech of a known device.
        """
        for known_device, start_s in self.open_speech.values():
            if start_s <= at_s <= start_s + MAX_SPEECH_S:
                speaker = known_device or self._answering_device(start_s)
                if speaker:
                    return ReviewVerdict.SELF_WAKE, _speech_reason(device, speaker)
        for known_device, start_s, end_s in reversed(self.speeches):
            if start_s <= at_s <= end_s + LINGERING_S:
                speaker = known_device or self._answering_device(start_s)
                if speaker:
                    return ReviewVerdict.SELF_WAKE, _speech_reason(device, speaker)
        return None, ""

    def _answering_device(self, start_s: float) -> str | None:
        """The device that answers with the speech from start_s, since it was the last to wake shortly before."""
        wakes = [(wake_s, device) for wake_s, device in self.wakes if 0 <= start_s - wake_s <= MAX_ANSWER_DELAY_S]
        return max(wakes)[1] if wakes else None


def _speech_reason(device: str, speaker: str) -> str:
    return "during its own speech" if speaker == device else f"during speech of {speaker}"
