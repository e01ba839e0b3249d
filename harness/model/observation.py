"""What drivers saw, stamped where it was seen. A closed set: `match` on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from harness.model.time import Stamp


class DeviceState(StrEnum):
    """What a device says of itself."""

    IDLE = "idle"
    LISTENING = "listening"
    THINKING = "thinking"
    SPEAKING = "speaking"
    DIALOGUE_OPEN = "dialogue_open"
    STARTED = "started"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class StimulusStarted:
    """The first sample of a stimulus left the driver."""

    source: str
    at: Stamp
    play_id: str
    kind: Literal["stimulus_started"] = "stimulus_started"


@dataclass(frozen=True, slots=True)
class StimulusEnded:
    """The last sample left the driver; `complete` is False when it was stopped or cut before."""

    source: str
    at: Stamp
    play_id: str
    complete: bool = True
    kind: Literal["stimulus_ended"] = "stimulus_ended"


@dataclass(frozen=True, slots=True)
class StimulusHeard:
    """A microphone found our own stimulus in its recording; `at` is where its first sample lies.

    correlation: normalised peak, 0–1. Latencies use this when there is one, since query and response then lie on
    one recording and one clock.
    """

    source: str
    at: Stamp
    play_id: str
    correlation: float
    kind: Literal["stimulus_heard"] = "stimulus_heard"


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """A microphone heard somebody begin to speak who is not us; level in dBFS."""

    source: str
    at: Stamp
    level_dbfs: float
    kind: Literal["speech_started"] = "speech_started"


@dataclass(frozen=True, slots=True)
class SpeechEnded:
    """… and stop. Several spans may make one response (see `end_silence_ms`)."""

    source: str
    at: Stamp
    kind: Literal["speech_ended"] = "speech_ended"


@dataclass(frozen=True, slots=True)
class Earcon:
    """A short, tonal sound without speech: never a response."""

    source: str
    at: Stamp
    ends: Stamp
    level_dbfs: float
    kind: Literal["earcon"] = "earcon"


@dataclass(frozen=True, slots=True)
class Wake:
    """A device says that it heard its wake phrase; score 0–1 where it gives one."""

    source: str
    at: Stamp
    phrase: str = ""
    score: float | None = None
    kind: Literal["wake"] = "wake"


@dataclass(frozen=True, slots=True)
class Transcript:
    """A device says what it heard: evidence of recognition when `final`."""

    source: str
    at: Stamp
    text: str
    final: bool = True
    kind: Literal["transcript"] = "transcript"


@dataclass(frozen=True, slots=True)
class ResponseText:
    """A device says what it answers."""

    source: str
    at: Stamp
    text: str
    kind: Literal["response_text"] = "response_text"


@dataclass(frozen=True, slots=True)
class Status:
    """A device says how it is."""

    source: str
    at: Stamp
    state: DeviceState
    detail: str = ""
    kind: Literal["status"] = "status"


@dataclass(frozen=True, slots=True)
class LogLine:
    """Something a device said that no mapping understood; kept as evidence."""

    source: str
    at: Stamp
    text: str
    kind: Literal["log_line"] = "log_line"


@dataclass(frozen=True, slots=True)
class OperatorAnswer:
    """The operator says whether the device understood; `heard` is what it understood, as far as they can tell.

    recognised None: the operator cannot tell.
    """

    source: str
    at: Stamp
    recognised: bool | None
    heard: str = ""
    kind: Literal["operator_answer"] = "operator_answer"


@dataclass(frozen=True, slots=True)
class LinkLost:
    """A driver lost its far end (sound server, broker, port); what is going on is interrupted."""

    source: str
    at: Stamp
    what: str
    kind: Literal["link_lost"] = "link_lost"


@dataclass(frozen=True, slots=True)
class LinkBack:
    """… and has it again."""

    source: str
    at: Stamp
    kind: Literal["link_back"] = "link_back"


@dataclass(frozen=True, slots=True)
class Overrun:
    """Samples were late or lost on a sound stream since the last such message."""

    source: str
    at: Stamp
    count: int
    kind: Literal["overrun"] = "overrun"


Observation = (
    StimulusStarted
    | StimulusEnded
    | StimulusHeard
    | SpeechStarted
    | SpeechEnded
    | Earcon
    | Wake
    | Transcript
    | ResponseText
    | Status
    | LogLine
    | OperatorAnswer
    | LinkLost
    | LinkBack
    | Overrun
)
