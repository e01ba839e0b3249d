"""A board's events as observations."""

from __future__ import annotations

from harness.devices.wire.audio_link import AudioLink
from harness.devices.wire.device_clock import DeviceClock
from harness.devices.wire.messages import (
    ErrorCode,
    ErrorEvent,
    Event,
    IntentEvent,
    Log,
    ResponseEvent,
    StatusEvent,
    TranscriptEvent,
    WakeEvent,
)
from harness.model.observation import Intent, LogLine, Observation, ResponseText, Status, Transcript, Wake


def observation(event: Event | Log, source: str, clock: DeviceClock, link: AudioLink) -> Observation:
    """With the host's time, and the place on the audio line that the board names; ValueError without a fitted clock."""
    at = clock.host_time(event.time_us)
    match event:
        case WakeEvent(_, sample, score, phrase):
            return Wake(source, at, phrase, score, link.audio_s(sample))
        case TranscriptEvent(_, sample, final, text):
            return Transcript(source, at, text, final, link.audio_s(sample))
        case IntentEvent(_, sample, score, name, slots):
            return Intent(source, at, name, slots, score, link.audio_s(sample))
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
