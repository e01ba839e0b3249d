"""A device's speech in a trial: the first response, the quiet after the last sound, and whether the device is busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.model.frozen import frozen
from harness.model.observation import DeviceState, Intent, Observation, SpeechEnded, SpeechStarted, Status, Wake
from harness.model.scenario import RepromptRule
from harness.model.time import Stamp

GUARD_S = 0.1
"""Speech that starts up to this much before the end of the query still counts as after it (error of the onset)."""
DETECTION_LAG_S = 0.3
"""How long after its timestamp a detector's report of an onset or end of speech may arrive."""


@dataclass(slots=True)
class Span:
    """Speech of the device; ends is None while it speaks."""

    starts: Stamp
    ends: Stamp | None = None


@frozen
class Response:
    """The first response as far as it is known.

    - closes_s: when it is complete if nothing more is heard.
    - truncated: it reached the longest allowed length.
    """

    starts: Stamp
    ends: Stamp
    closes_s: float
    complete: bool
    truncated: bool


def first_response(spans: Sequence[Span], query_end_s: float, now_s: float, rule: RepromptRule) -> Response | None:
    """The first speech after the query, with the speech that follows within `end_silence_ms`; None without any.

    Speech that began during the query is left out, unless it continues past the query's end.
    """
    silence_s = rule.end_silence_ms / 1000
    response_spans: list[Span] = []
    later_speech_follows = False
    for span in spans:
        if not response_spans:
            is_earlier = span.starts.at_s < query_end_s - GUARD_S
            until_s = now_s if span.ends is None else span.ends.at_s
            if not is_earlier or until_s > query_end_s:
                response_spans.append(span)
            continue
        ends = response_spans[-1].ends
        if ends is not None and span.starts.at_s - ends.at_s > silence_s:
            later_speech_follows = True
            break
        response_spans.append(span)
    if not response_spans:
        return None
    starts, ends = response_spans[0].starts, response_spans[-1].ends
    limit_s = starts.at_s + rule.response_max_s
    if (now_s if ends is None else ends.at_s) >= limit_s:
        return Response(starts, Stamp(limit_s, starts.error_s), limit_s, complete=True, truncated=True)
    if ends is None:
        return Response(starts, Stamp(max(now_s, starts.at_s)), limit_s, complete=False, truncated=False)
    closes_s = ends.at_s + silence_s + DETECTION_LAG_S
    return Response(starts, ends, closes_s, complete=later_speech_follows or now_s >= closes_s, truncated=False)


class Quiet:
    """Tracks the sounds of a trial.

    - last_sound_s: when the latest sound was heard; None before the first.
    - span: speech that has not ended.
    """

    def __init__(self, longest_s: float) -> None:
        """longest_s: endless speech counts as over after this time."""
        self.last_sound_s: float | None = None
        self.span: Span | None = None
        self._longest_s = longest_s

    def note_sound(self, at_s: float) -> None:
        self.last_sound_s = at_s if self.last_sound_s is None else max(self.last_sound_s, at_s)

    def start_speech(self, stamp: Stamp) -> Span | None:
        """Records that speech begins. Returns its span; None if earlier speech has not ended."""
        self.note_sound(stamp.at_s)
        if self.span is not None:
            return None
        self.span = Span(stamp)
        return self.span

    def end_speech(self, stamp: Stamp) -> None:
        """Records that speech has ended, which also closes the span that `start_speech` returned."""
        self.note_sound(stamp.at_s)
        if self.span is not None:
            # Stamps have errors: speech never ends before it starts.
            self.span.ends = stamp if stamp.at_s >= self.span.starts.at_s else self.span.starts
            self.span = None

    def since_s(self, now_s: float) -> float | None:
        """The start of the current quiet: now during speech, None if nothing was heard."""
        if self.span is None:
            return self.last_sound_s
        return min(max(now_s, self.span.starts.at_s), self.span.starts.at_s + self._longest_s)

    def until_s(self, quiet_s: float, entered_s: float) -> float:
        """When the room will have been quiet for quiet_s if nothing more is heard; from `entered_s` if nothing was.

        The wait for a device that never stops talking is limited.
        """
        last_s = entered_s if self.last_sound_s is None else self.last_sound_s
        if self.span is not None:
            last_s = self.span.starts.at_s + self._longest_s
        return min(last_s + quiet_s, entered_s + quiet_s + 2 * self._longest_s)


STATE_WORDS = {
    DeviceState.LISTENING: "is listening",
    DeviceState.THINKING: "is thinking",
    DeviceState.SPEAKING: "is speaking",
    DeviceState.DIALOGUE_OPEN: "waits for an answer",
}


@dataclass(slots=True)
class Activity:
    """What a device is doing, by its own reports and by what the microphone hears.

    - state, since_s: the state that it last reported, and when.
    - over_s: when the microphone heard the end of an answer, or the device reported that it understood nothing. Some
      devices report no state after that.
    - speech_from_s: when the speech that the microphone hears began.
    """

    state: DeviceState | None = None
    since_s: float = 0.0
    over_s: float | None = None
    speech_from_s: float | None = None

    def observe(self, observation: Observation) -> None:
        """Takes what the device reports, and what the microphone hears, in order of arrival."""
        match observation:
            case Status(state=state, at=at):
                self.state, self.since_s, self.over_s = state, at.at_s, None
            case Wake(at=at) if self.state is DeviceState.IDLE and at.at_s > self.since_s:
                self.state = None  # it is not idle any more, and may not report what it does
            case Intent(name="", at=at) if self.state in (DeviceState.LISTENING, DeviceState.THINKING):
                self.over_s = at.at_s
            case SpeechStarted(at=at) if self.speech_from_s is None:
                self.speech_from_s = at.at_s
            case SpeechEnded(at=at):
                from_s, self.speech_from_s = self.speech_from_s, None
                answered = self.state is DeviceState.THINKING and from_s is not None and from_s >= self.since_s
                if answered or self.state is DeviceState.SPEAKING or self.over_s is not None:
                    self.over_s = at.at_s
            case _:
                pass

    def until_s(self, quiet_s: float, longest_s: float) -> float:
        """Until when it counts as busy: for longest_s, or for quiet_s after the end of its activity."""
        if self.over_s is None or self.speech_from_s is not None:
            return longest_s
        return min(longest_s, self.over_s + quiet_s)

    def in_words(self, device: str) -> str:
        """Why a trial waits for the device."""
        state_words = STATE_WORDS.get(self.state, "is busy") if self.state is not None else "is busy"
        if self.over_s is not None and self.speech_from_s is None:
            return f"{device} still reports that it {state_words}, but is quiet"
        return f"{device} reports that it {state_words}"
