"""Sound sent by the dialogue of TensorFlow Lite Micro's test over serial. No I/O: lines and times in, bytes out."""

from __future__ import annotations

import base64
import re
from enum import Enum, auto

from harness.devices.wire.adpcm import Pcm
from harness.model.numbers import exact

DATA_TYPE = "audio-pcm-16khz-mono-s16"
RATE_HZ = 16000
ANSWER_LIMIT_S = 5.0
_ANSWER = re.compile(r"!(OK TEST (\d{1,5})|FAIL TEST|DATA_ACK (\d{1,6})|OK DATA .*|FAIL DATA .*)")
_MAX_LINE_BYTES = 65536  # Limits what a broken device may ask for.


class TflmStep(Enum):
    """What the dialogue waits for."""

    NOTHING = auto()
    TEST = auto()
    ACKNOWLEDGEMENT = auto()
    END = auto()


class TflmDialogue:
    """Sends one sound at a time; positions are samples of it.

        harness                              device
        !TEST                                !OK TEST <bytes per line>       only before the first sound
        !DATA <type> <bytes of the sound>
        <a line of sound, in base64>         !DATA_ACK <bytes of the line>   once per line
                                             !OK DATA <type> <bytes>         after the last line

    An answer that fails, or none for ANSWER_LIMIT_S, ends the sound, and the next one begins with !TEST again.
    """

    def __init__(self) -> None:
        self.acknowledged = 0
        """Number of samples that the device has acknowledged."""
        self.failed = ""
        """Why the sound has ended early; "" if it has not."""
        self.complete = False
        """Whether the device has acknowledged the whole sound."""
        self._line_bytes = 0  # length of the device's data lines; 0 until it is in test mode
        self._data = b""
        self._command = ""
        self._sent_bytes = 0
        self._step = TflmStep.NOTHING
        self._waiting_since_s = 0.0
        self._unsent: list[str] = []

    @property
    def is_active(self) -> bool:
        return self._step is not TflmStep.NOTHING

    @property
    def sent(self) -> int:
        """Number of samples that were sent."""
        return self._sent_bytes // 2

    def begin(self, samples: Pcm, now_s: float) -> None:
        """Begins to send a sound, instead of any earlier one."""
        self._data, self._sent_bytes, self.acknowledged = samples.astype("<i2", copy=False).tobytes(), 0, 0
        self._command = f"DATA {DATA_TYPE} {len(self._data)}"
        self.failed, self.complete = "", False
        self._waiting_since_s = now_s
        if self._line_bytes:
            self._unsent = [f"!{self._command}"]
            self._queue_line()
        else:
            self._unsent, self._step = ["!TEST"], TflmStep.TEST

    def abandon(self) -> None:
        """Ends the sound without sending the rest. The device still waits, so the next one requests test mode again."""
        self._step, self._line_bytes, self._data = TflmStep.NOTHING, 0, b""
        self._unsent.clear()

    def receive(self, line: str, now_s: float) -> None:
        """Handles a line from the device that begins with an exclamation mark. Others than answers are ignored."""
        match = _ANSWER.fullmatch(line)
        if match is None or not self.is_active:
            return
        self._waiting_since_s = now_s
        answer, size, acknowledged = match.group(1), match.group(2), match.group(3)
        if answer.startswith("FAIL"):
            self._fail(f"the device refused a command: {line}")
        elif size is not None and self._step is TflmStep.TEST:
            self._line_bytes = max(2, min(int(size), _MAX_LINE_BYTES) // 2 * 2)  # whole samples of 2 bytes
            self._unsent.append(f"!{self._command}")
            self._queue_line()
        elif acknowledged is not None and self._step is TflmStep.ACKNOWLEDGEMENT:
            expected = self._sent_bytes - self.acknowledged * 2
            if int(acknowledged) != expected:
                self._fail(f"the device accepted only {acknowledged} of the {expected} bytes of a line")
                return
            self.acknowledged = self._sent_bytes // 2
            self._queue_line()
        elif answer == f"OK {self._command}" and self._step is TflmStep.END:
            self._step, self.complete = TflmStep.NOTHING, True

    def tick(self, now_s: float) -> None:
        """Lets time pass: a device that has not answered for ANSWER_LIMIT_S ends the sound."""
        if self.is_active and not self._unsent and now_s - self._waiting_since_s > ANSWER_LIMIT_S:
            self._fail(f"no answer for {exact(ANSWER_LIMIT_S)} s to !{self._command}")

    def output(self, sample_limit: int, now_s: float) -> bytes:
        """The bytes to write now. sample_limit: data lines that end beyond this sample wait."""
        if not self._unsent:
            return b""
        if self._step is TflmStep.ACKNOWLEDGEMENT and self._sent_bytes // 2 > sample_limit:
            return b""
        text = "".join(f"{line}\n" for line in self._unsent)
        self._unsent.clear()
        self._waiting_since_s = now_s
        return text.encode()

    def _queue_line(self) -> None:
        """Queues the next line of sound; after the last one, the device's own end is awaited."""
        piece = self._data[self._sent_bytes : self._sent_bytes + self._line_bytes]
        if not piece:
            self._step = TflmStep.END
            return
        self._sent_bytes += len(piece)
        self._unsent.append(base64.b64encode(piece).decode())
        self._step = TflmStep.ACKNOWLEDGEMENT

    def _fail(self, why: str) -> None:
        self.abandon()
        self.failed = why
