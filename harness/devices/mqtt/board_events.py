"""What a board's event is to the harness."""

from __future__ import annotations

from harness.devices.mqtt.board_messages import Answered, Is, Meant, Said, Understood, Woke
from harness.model.observation import Intent, LogLine, Observation, ResponseText, Status, Transcript, Wake
from harness.model.time import Stamp


def observation(
    source: str, what: Woke | Understood | Meant | Answered | Is | Said, at: Stamp, audio_s: float | None
) -> Observation:
    """At a host time, and at a place of the audio line where it has one."""
    match what:
        case Woke(phrase, score):
            return Wake(source, at, phrase, score, audio_s)
        case Understood(text, final):
            return Transcript(source, at, text, final, audio_s)
        case Meant(name, slots, score):
            return Intent(source, at, name, slots, score, audio_s)
        case Answered(text):
            return ResponseText(source, at, text)
        case Is(state, detail):
            return Status(source, at, state, detail)
        case Said(text):
            return LogLine(source, at, text)
