"""The host's side of the test-over-serial dialogue of TFLM's Arduino examples. No I/O.

    !TEST                                       !OK TEST <bytes a line>, or !FAIL TEST
    !DATA audio-pcm-16khz-mono-s16 <bytes>      (no answer of its own)
    base64 of so many bytes, on a line          !DATA_ACK <bytes>, or !FAIL DATA …
    … after the last one also                   !OK DATA audio-pcm-16khz-mono-s16 <bytes>

It has neither numbers nor checksums: a line that a fault has hit cannot be sent again, so the injection ends there.
"""

from __future__ import annotations

import base64
import re
from enum import Enum, auto

from harness.devices.wire.adpcm import Pcm

DATA_TYPE = "audio-pcm-16khz-mono-s16"
RATE_HZ = 16000
ANSWER_LIMIT_S = 5.0
_ANSWER = re.compile(r"!(OK TEST (\d{1,5})|FAIL TEST|DATA_ACK (\d{1,6})|OK DATA .*|FAIL DATA .*)")
_MOST_LINE_BYTES = 65536


class Step(Enum):
    """What the dialogue waits for."""

    NOTHING = auto()
    TEST = auto()
    ACKNOWLEDGEMENT = auto()
    END = auto()


class TflmDialogue:
    """One sound at a time; positions are samples of it."""

    def __init__(self) -> None:
        self.heard = 0
        self.failed = ""
        self.complete = False
        self._line_bytes = 0  # of the device; 0 until it is in test mode
        self._data = b""
        self._command = ""
        self._at = 0
        self._step = Step.NOTHING
        self._since_s = 0.0
        self._out: list[str] = []

    @property
    def active(self) -> bool:
        return self._step is not Step.NOTHING

    @property
    def sent(self) -> int:
        return self._at // 2

    def begin(self, samples: Pcm, now_s: float) -> None:
        self._data, self._at, self.heard = samples.astype("<i2", copy=False).tobytes(), 0, 0
        self._command = f"DATA {DATA_TYPE} {len(self._data)}"
        self.failed, self.complete = "", False
        self._since_s = now_s
        if self._line_bytes:
            self._out = [f"!{self._command}"]
            self._send_line()
        else:
            self._out, self._step = ["!TEST"], Step.TEST

    def abandon(self) -> None:
        """Ends without the rest. The device still waits for data: test mode is asked for anew next time."""
        self._step, self._line_bytes, self._data = Step.NOTHING, 0, b""
        self._out.clear()

    def take(self, line: str, now_s: float) -> None:
        """A line from the device that begins with an exclamation mark."""
        found = _ANSWER.fullmatch(line)
        if found is None or not self.active:
            return
        self._since_s = now_s
        what, size, acknowledged = found.group(1), found.group(2), found.group(3)
        if what.startswith("FAIL"):
            self._fail(f"it refuses: {line}")
        elif size is not None and self._step is Step.TEST:
            self._line_bytes = max(2, min(int(size), _MOST_LINE_BYTES) // 2 * 2)
            self._out.append(f"!{self._command}")
            self._send_line()
        elif acknowledged is not None and self._step is Step.ACKNOWLEDGEMENT:
            expected = self._at - self.heard * 2
            if int(acknowledged) != expected:
                self._fail(f"it took {acknowledged} bytes of a line of {expected}")
                return
            self.heard = self._at // 2
            self._send_line()
        elif what == f"OK {self._command}" and self._step is Step.END:
            self._step, self.complete = Step.NOTHING, True

    def tick(self, now_s: float) -> None:
        if self.active and not self._out and now_s - self._since_s > ANSWER_LIMIT_S:
            self._fail(f"no answer for {ANSWER_LIMIT_S:g} s to !{self._command}")

    def output(self, sample_limit: int, now_s: float) -> bytes:
        """What to write now; sample_limit: data lines wait until they end below it."""
        if not self._out:
            return b""
        if self._step is Step.ACKNOWLEDGEMENT and self._at // 2 > sample_limit:
            return b""
        text = "".join(f"{line}\n" for line in self._out)
        self._out.clear()
        self._since_s = now_s
        return text.encode()

    def _send_line(self) -> None:
        piece = self._data[self._at : self._at + self._line_bytes]
        if not piece:
            self._step = Step.END
            return
        self._at += len(piece)
        self._out.append(base64.b64encode(piece).decode())
        self._step = Step.ACKNOWLEDGEMENT

    def _fail(self, why: str) -> None:
        self.abandon()
        self.failed = why
