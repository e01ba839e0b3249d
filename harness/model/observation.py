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
    """What every observation has.

    - source: id of the equipment that saw it.
    - at: when it happened.
    """

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
    """The last sample left the driver. complete: False if it was stopped or cut before; `why` gives the reason.

    If sound is sent over a connection, the device has acknowledged the last sample. All of its reports about the
    samples came before this observation.
    """

    play_id: str
    complete: bool = True
    audio_s: float | None = None
    why: str = ""
    kind: Literal["stimulus_ended"] = "stimulus_ended"


@frozen
class StimulusHeard(ObservationBase):
    """The harness's own stimulus was found in the microphone's recording; `at` is the time of its first sample.

    correlation: peak of the normalised correlation, 0–1. Latencies use this observation if there is one, since query
    and response then lie in one recording, on one clock.
    """

    play_id: str
    correlation: float
    kind: Literal["stimulus_heard"] = "stimulus_heard"


@frozen
class SpeechStarted(ObservationBase):
    """The microphone heard speech begin that the harness does not play."""

    level_dbfs: float
    kind: Literal["speech_started"] = "speech_started"


@frozen
class SpeechEnded(ObservationBase):
    """The speech that the microphone heard has ended. Several such spans may make one response (`end_silence_ms`)."""

    kind: Literal["speech_ended"] = "speech_ended"


@frozen
class Earcon(ObservationBase):
    """A short, tonal sound without speech, such as a chime; never a response. A learned earcon may have any timbre.

    For a learned earcon, of: id of the device's source.

    - meaning: its EarconMeaning.
    - score: of the match, 0–1.
    """

    ends: Stamp
    level_dbfs: float
    of: str = ""
    meaning: str = ""
    score: float | None = None
    kind: Literal["earcon"] = "earcon"


@frozen
class Wake(ObservationBase):
    """A device reports that it heard its wake phrase.

    - score: 0–1; None if it gives none.
    - inferred: what the wake was inferred from, such as network traffic: weak evidence. "": the device reports or shows
      it.
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
    """A device reports the words that it heard: evidence of recognition when `final`."""

    text: str
    final: bool = True
    audio_s: float | None = None
    kind: Literal["transcript"] = "transcript"


@frozen
class Intent(ObservationBase):
    """A device reports what it understood.

    - name: one intent, or several with `#` between them; "" if it reports that it understood nothing.
    - slots: (name, value), in its order.
    - score: 0–1; None if it gives none.
    """

    name: str
    slots: tuple[tuple[str, str], ...] = ()
    score: float | None = None
    audio_s: float | None = None
    kind: Literal["intent"] = "intent"


@frozen
class ResponseText(ObservationBase):
    """A device reports the text of its answer."""

    text: str
    kind: Literal["response_text"] = "response_text"


@frozen
class Status(ObservationBase):
    """A device reports its state. detail: its own words for it."""

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
    """A device reports a part of its state, such as a running timer or a changed list. value "": it has ended."""

    name: str
    value: str = ""
    kind: Literal["state_told"] = "state_told"


@frozen
class LogLine(ObservationBase):
    """A message of a device that no mapping of its profile matches; kept as evidence."""

    text: str
    kind: Literal["log_line"] = "log_line"


@frozen
class Unread(ObservationBase):
    """Messages of a device were lost, by the harness (a line that is too long) or before they reached it.

    count: lines or messages that were lost since the last such observation.
    """

    what: str
    count: int = 1
    kind: Literal["unread"] = "unread"


class Proof(StrEnum):
    """How a device has shown that it listens: it acknowledged audio, sent a heartbeat or status, or woke to a probe."""

    ACKNOWLEDGED = "acknowledged"
    HEARTBEAT = "heartbeat"
    STATUS = "status"
    PROBE = "probe"


@frozen
class ListeningProved(ObservationBase):
    """A device was listening at this moment. Drivers report it at most every 5 s, and at the end of each injection.

    audio_s: position up to which it has heard the audio that was sent to it.
    """

    proof: Proof
    audio_s: float | None = None
    kind: Literal["listening_proved"] = "listening_proved"


@frozen
class ClockFitted(ObservationBase):
    """The device's clock against the host's: host = device_s0 … see wire/device_clock.py; skew in parts per million.

    - boot: identifies the boot of the device.
    - offset_s: host time at the device's time 0 of that boot.
    - error_s: bound on the error of a converted time.
    """

    boot: str
    offset_s: float
    skew_ppm: float
    error_s: float
    kind: Literal["clock_fitted"] = "clock_fitted"


@frozen
class DeviceDescribed(ObservationBase):
    """A device describes itself; what it does not say is empty. Sent when it is first reached, and on a change."""

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
    """A driver lost its connection (to a sound server, a broker, a port); the attempt under way is interrupted."""

    what: str
    kind: Literal["link_lost"] = "link_lost"


@frozen
class LinkBack(ObservationBase):
    """A driver has its connection again."""

    kind: Literal["link_back"] = "link_back"


@frozen
class Overrun(ObservationBase):
    """Samples were late or lost on a sound stream since the last such message."""

    count: int
    kind: Literal["overrun"] = "overrun"


@frozen
class HostStalled(ObservationBase):
    """The host let no thread of the harness run since `at`, except for moments. Reported when one runs again.

    - load: load average over the last minute.
    - steal: share of processor time, 0–1, that the hypervisor took from this machine since the last check; None if the
      system does not report it.
    """

    lasted_s: float
    load: float
    steal: float | None
    kind: Literal["host_stalled"] = "host_stalled"

    def falls_within(self, from_s: float, until_s: float) -> bool:
        """Whether any part of the stall does, allowing for the error of its time."""
        begins_s = self.at.at_s - self.at.error_s
        return begins_s <= until_s and from_s <= begins_s + self.lasted_s + 2 * self.at.error_s


def stalled_s(stalls: Iterable[HostStalled], from_s: float, until_s: float) -> float:
    """Total length of the stalls in that time: how late something that was seen at its end may have been stamped."""
    return sum(stall.lasted_s for stall in stalls if stall.falls_within(from_s, until_s))


Observation = (
    StimulusStarted | StimulusEnded | StimulusHeard | SpeechStarted | SpeechEnded | Earcon | Wake | Transcript |
    Intent | ListeningProved | ClockFitted | DeviceDescribed | ResponseText | Status | SoundKept | StateTold |
    LogLine | Unread | OperatorAnswer | LinkLost | LinkBack | Overrun | HostStalled
)  # fmt: skip

PRESENCE = ListeningProved | Wake | Transcript | Intent
"""Reports that show that a device is there: its last will, that it is gone, may come after its new start."""
