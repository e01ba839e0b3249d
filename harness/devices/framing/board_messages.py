"""Messages between a board's session and its wire, how wires differ, and how events become observations."""

from __future__ import annotations

from harness.devices.wire import messages
from harness.devices.wire.audio_sender import AudioSender
from harness.model.frozen import frozen
from harness.model.observation import Intent, LogLine, Observation, ResponseText, Status, Transcript, Unread, Wake
from harness.model.time import Stamp

Outgoing = tuple[messages.ToBoard, int]
"""A message to the board, and its number (0 if it has none)."""


@frozen
class ReceivedMessage:
    """A decoded message from the board.

    - message: None for an event with an invalid payload.
    - boot: id of the board's boot; "" if messages do not name it.
    - seq: number of the event; None if it has none. Messages that are not for a host are ignored.
    """

    message: messages.Message | None
    boot: str = ""
    seq: int | None = None


@frozen
class WireProperties:
    """Properties of a wire.

    - is_lossy: whether frames may be lost. If so, there is one board, which resends events until they are acknowledged,
      and which names its boot only in its hello. Otherwise every message arrives, perhaps twice, and names its boot.
    - hello_resend_s, command_resend_s: time after which an unanswered request for a hello, or a command, is sent again.
    - min_pongs: number of answers to pings that are needed before the board is ready.
    - audio_batch: number of audio messages that are sent together.
    - last_events_s: time limit for the last events of a sound.
    """

    is_lossy: bool
    hello_resend_s: float
    command_resend_s: float
    min_pongs: int
    audio_batch: int
    last_events_s: float


LINE = WireProperties(
    is_lossy=True,
    hello_resend_s=0.5,
    command_resend_s=0.2,  # by docs/reference/framing.md
    min_pongs=8,
    audio_batch=4,
    last_events_s=10.0,
)
BROKER = WireProperties(
    is_lossy=False,
    hello_resend_s=1.0,
    command_resend_s=1.0,  # QoS 1 repeats what was lost, so the harness need not soon
    min_pongs=0,
    audio_batch=32,
    last_events_s=3.0,
)


def observation(
    event: messages.Event | messages.Log | None, source: str, stamp: Stamp, sender: AudioSender
) -> Observation:
    """The observation for a board's event, with the position in the sent audio that the event names.

    event: None if its payload is not valid.
    """

    def audio_s(sample: int | None) -> float | None:
        return None if sample is None else sender.sample_s(sample)

    match event:
        case messages.WakeMessage(_, sample, score, phrase):
            return Wake(source, stamp, phrase, score, audio_s(sample))
        case messages.TranscriptEvent(_, sample, final, text):
            return Transcript(source, stamp, text, final, audio_s(sample))
        case messages.IntentEvent(_, sample, score, name, slots):
            return Intent(source, stamp, name, slots, score, audio_s(sample))
        case messages.ResponseEvent(_, text):
            return ResponseText(source, stamp, text)
        case messages.StatusEvent(_, state, detail):
            return Status(source, stamp, state, detail)
        case messages.ErrorEvent(_, messages.ErrorCode.NOT_UNDERSTOOD, _):
            return Intent(source, stamp, "")
        case messages.ErrorEvent(_, code, text):
            return LogLine(source, stamp, f"error {code}: {text}")
        case messages.Log(_, _, text):
            return LogLine(source, stamp, text)
        case None:
            return Unread(source, stamp, "the payload of an event is not valid")
