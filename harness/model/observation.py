"""What drivers saw, stamped where it was seen. A closed set: `match` on it.

There are two time lines. `at` is on the host's clock. `audio_s` is the position in the audio that a driver sends to a
device over a wire, in seconds since the driver opened. It never goes back, even when the board restarts. It is None
where sound goes through the air.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from harness.model.frozen import frozen
from harness.model.stimulus import Clip
from harness.model.time import Stamp


class DeviceState(StrEnum):
    """The state that a device reports."""

    IDLE = "idle"
    LISTENING = "listening"
    THINKING = "thinking"
    SPEAKING = "speaking"
    DIALOGUE_OPEN = "dialogue_open"
    STARTED = "started"
    GONE = "gone"


@frozen
class ObservationBase:
    """What every observation has: id of the driver that saw it, and when."""

    source: str
    at: Stamp


@frozen
class StimulusStarted(ObservationBase):
    """The first sample of a stimulus left the driver."""

    play_id: str
    audio_s: float | None = None
    kind: Literal["stimulus_started"] = "stimulus_started"


@frozen
class StimulusEnded(ObservationBase):
    """The last sample left the driver; `complete` is False when it was stopped or cut before, and `why` says why.

    Over a wire: the device has acknowledged the last sample, and all its reports about samples up to there came before.
    """

    play_id: str
    complete: bool = True
    audio_s: float | None = None
    why: str = ""
    kind: Literal["stimulus_ended"] = "stimulus_ended"


@frozen
class StimulusHeard(ObservationBase):
    """A microphone found our own stimulus in its recording; `at` is where its first sample lies.

    correlation: normalised peak, 0–1. Latencies use this when there is one, since query and response then lie on
    one recording and one clock.
    """

    play_id: str
    correlation: float
    kind: Literal["stimulus_heard"] = "stimulus_heard"


@frozen
class SpeechStarted(ObservationBase):
    """A microphone heard somebody begin to speak who is not us; level in dBFS."""

    level_dbfs: float
    kind: Literal["speech_started"] = "speech_started"


@frozen
class SpeechEnded(ObservationBase):
    """… and stop. Several spans may make one response (see `end_silence_ms`)."""

    kind: Literal["speech_ended"] = "speech_ended"


@frozen
class Earcon(ObservationBase):
    """A short, tonal sound without speech: never a response. A learned one may have any timbre.

    of, meaning, score: of a learned earcon: id of the device's source, what it means (EarconMeaning), and the score 0–1
    of the match.
    """

    ends: Stamp
    level_dbfs: float
    of: str = ""
    meaning: str = ""
    score: float | None = None
    kind: Literal["earcon"] = "earcon"


@frozen
class Wake(ObservationBase):
    """A device says that it heard its wake phrase; score 0–1 where it gives one.

    inferred: what it was inferred from, such as network traffic; weak evidence. "": the device reports or shows it.
    """

    phrase: str = ""
    score: float | None = None
    audio_s: float | None = None
    inferred: str = ""
    kind: Literal["wake"] = "wake"


def weak_evidence_text(inferred: str, prefix: str = "") -> str:
    """`weak evidence: network traffic`, after the text `prefix`; "" for an event that the device reports or shows."""
    return f"{prefix}weak evidence: {inferred}" if inferred else ""


@frozen
class Transcript(ObservationBase):
    """A device says what it heard: evidence of recognition when `final`."""

    text: str
    final: bool = True
    audio_s: float | None = None
    kind: Literal["transcript"] = "transcript"


@frozen
class Intent(ObservationBase):
    """A device says what it understood to be wanted; slots: name → value, in its order; score 0–1.

    name: one intent, or several with `#` between; "" when it says that it understood nothing.
    """

    name: str
    slots: tuple[tuple[str, str], ...] = ()
    score: float | None = None
    audio_s: float | None = None
    kind: Literal["intent"] = "intent"


@frozen
class ResponseText(ObservationBase):
    """A device says what it answers."""

    text: str
    kind: Literal["response_text"] = "response_text"


@frozen
class Status(ObservationBase):
    """A device says how it is."""

    state: DeviceState
    detail: str = ""
    kind: Literal["status"] = "status"


@frozen
class SoundKept(ObservationBase):
    """A device sent the sound of its microphone, now stored; `at` is when its last sample arrived."""

    clip: Clip
    kind: Literal["sound_kept"] = "sound_kept"


@frozen
class StateTold(ObservationBase):
    """A part of a device's state: a timer that runs, a list that changed. value "": it has ended."""

    name: str
    value: str = ""
    kind: Literal["state_told"] = "state_told"


@frozen
class LogLine(ObservationBase):
    """Something a device said that no mapping understood; kept as evidence."""

    text: str
    kind: Literal["log_line"] = "log_line"


@frozen
class Unread(ObservationBase):
    """Words of a device were lost on our side (a line that is too long), or before: whatever they said is not known.

    count: lines or messages since the last such observation.
    """

    what: str
    count: int = 1
    kind: Literal["unread"] = "unread"


class Proof(StrEnum):
    """How a device has shown that it listens: it acknowledged audio, answered a ping, said so, or woke to a probe."""

    ACKNOWLEDGED = "acknowledged"
    HEARTBEAT = "heartbeat"
    STATUS = "status"
    PROBE = "probe"


@frozen
class ListeningProved(ObservationBase):
    """A device was listening at this moment. Drivers report it at most every 5 s, and at the end of each injection.

    audio_s: up to where on its audio line it has heard.
    """

    proof: Proof
    audio_s: float | None = None
    kind: Literal["listening_proved"] = "listening_proved"


@frozen
class ClockFitted(ObservationBase):
    """The device's clock against the host's: host = device_s0 … see wire/device_clock.py; skew in parts per million.

    offset_s: host time at the device's time 0 of this boot. error_s: bound of the error of a time that it converts.
    """

    boot: str
    offset_s: float
    skew_ppm: float
    error_s: float
    kind: Literal["clock_fitted"] = "clock_fitted"


@frozen
class DeviceDescribed(ObservationBase):
    """Who a device says that it is; what it does not say is empty. Told when it is met, and when that changes."""

    firmware: str = ""
    serial: str = ""
    kind: Literal["device_described"] = "device_described"


@frozen
class OperatorAnswer(ObservationBase):
    """The operator says whether the device understood; `heard` is what it understood, as far as they can tell.

    recognised None: the operator cannot tell.
    """

    recognised: bool | None
    heard: str = ""
    kind: Literal["operator_answer"] = "operator_answer"


@frozen
class LinkLost(ObservationBase):
    """A driver lost its far end (sound server, broker, port); what is going on is interrupted."""

    what: str
    kind: Literal["link_lost"] = "link_lost"


@frozen
class LinkBack(ObservationBase):
    """… and has it again."""

    kind: Literal["link_back"] = "link_back"


@frozen
class Overrun(ObservationBase):
    """Samples were late or lost on a sound stream since the last such message."""

    count: int
    kind: Literal["overrun"] = "overrun"


@frozen
class HostStalled(ObservationBase):
    """The host let no thread of the harness run since `at`, except for moments. Reported when one runs again.

    load: processes that ran or wanted to, over the last minute. steal: share of the processors' time that the machine's
    own host took since the last look, 0–1; None where the system does not say.
    """

    lasted_s: float
    load: float
    steal: float | None
    kind: Literal["host_stalled"] = "host_stalled"

    def falls_within(self, from_s: float, until_s: float) -> bool:
        """Whether any of it does. What it delayed happened right after it."""
        begins_s = self.at.at_s - self.at.error_s
        return begins_s <= until_s and from_s <= begins_s + self.lasted_s + 2 * self.at.error_s


def stalled_s(stalls: Iterable[HostStalled], from_s: float, until_s: float) -> float:
    """By how much the host may have shifted what was seen at the end of that time."""
    return sum(stall.lasted_s for stall in stalls if stall.falls_within(from_s, until_s))


Observation = (
    StimulusStarted | StimulusEnded | StimulusHeard | SpeechStarted | SpeechEnded | Earcon | Wake | Transcript |
    Intent | ListeningProved | ClockFitted | DeviceDescribed | ResponseText | Status | SoundKept | StateTold |
    LogLine | Unread | OperatorAnswer | LinkLost | LinkBack | Overrun | HostStalled
)  # fmt: skip
