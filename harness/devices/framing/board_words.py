"""What passes between a board's session and its wire, how wires differ, and what events are to the harness."""

from __future__ import annotations

from dataclasses import dataclass

from harness.devices.wire.audio_link import AudioLink
from harness.devices.wire.messages import (
    ErrorCode,
    ErrorEvent,
    Event,
    IntentEvent,
    Log,
    Message,
    ResponseEvent,
    StatusEvent,
    ToBoard,
    TranscriptEvent,
    WakeMessage,
)
from harness.model.observation import Intent, LogLine, Observation, ResponseText, Status, Transcript, Wake
from harness.model.time import Stamp

Outgoing = tuple[ToBoard, int]
"""A message, and its number (0 where it has none)."""


@dataclass(frozen=True, slots=True)
class Received:
    """What a wire has decoded. boot: "" where messages do not name it. seq: of events that are numbered.

    message: None for an event whose payload says nothing; what is not for a host is passed over.
    """

    message: Message | None
    boot: str = ""
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class WireManner:
    """What differs from wire to wire.

    loses: frames may be lost on it; events are then sent until they are acknowledged, one board is at its end, and a
    boot is told by its hello alone. Otherwise every message arrives, perhaps twice, and names its boot.
    first_pings: answers before the board is ready. at_once: audio messages at a time. events_s: how long the last
    events of a sound may take.
    """

    loses: bool
    hello_again_s: float
    command_again_s: float
    first_pings: int
    at_once: int
    events_s: float


LINE = WireManner(True, 0.5, 0.2, 8, 4, 10.0)
BROKER = WireManner(False, 1.0, 1.0, 0, 32, 3.0)


def observation(event: Event | Log, source: str, at: Stamp, link: AudioLink) -> Observation:
    """What a board's event is to the harness, with the place on the audio line that it names."""

    def audio_s(sample: int | None) -> float | None:
        return None if sample is None else link.audio_s(sample)

    match event:
        case WakeMessage(_, sample, score, phrase):
            return Wake(source, at, phrase, score, audio_s(sample))
        case TranscriptEvent(_, sample, final, text):
            return Transcript(source, at, text, final, audio_s(sample))
        case IntentEvent(_, sample, score, name, slots):
            return Intent(source, at, name, slots, score, audio_s(sample))
        case ResponseEvent(_, text):
            return ResponseText(source, at, text)
        case StatusEvent(_, state, detail):
            return Status(source, at, state, detail)
        case ErrorEvent(_, ErrorCode.NOT_UNDERSTOOD, _):
            return Intent(source, at, "")
        case ErrorEvent(_, code, text):
            return LogLine(source, at, f"error {code}: {text}")
        case Log(_, _, text):
            return LogLine(source, at, text)
