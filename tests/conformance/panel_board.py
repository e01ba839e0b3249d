"""A board of nobody's: a process with a pty, log lines that no profile of ours knows, and TFLM's dialogue for sound.

    python panel_board.py LINK

Its ear is crude and real: it calls any burst of 0.25 to 1.2 s of sound its name, 0.3 s after the burst is over.
"""

from __future__ import annotations

import base64
import os
import select
import sys
import time
import tty
from array import array
from collections.abc import Iterator

FRAME = 320
LOUD = 250  # mean absolute sample; about -40 dBFS
LINE_BYTES = 512


class Ear:
    """Finds bursts in 16 kHz PCM16; `heard` counts samples since the board's start."""

    def __init__(self) -> None:
        self.heard = 0
        self._rest = array("h")
        self._loud = self._still = 0

    def take(self, pcm: bytes) -> Iterator[tuple[int, int]]:
        """Where a burst was found (sample), and how long it was (frames of 20 ms)."""
        self._rest.frombytes(pcm)
        while len(self._rest) >= FRAME:
            frame, self._rest = self._rest[:FRAME], self._rest[FRAME:]
            self.heard += FRAME
            if sum(map(abs, frame)) / FRAME > LOUD:
                self._loud, self._still = self._loud + 1 + (self._still if self._loud else 0), 0
            elif self._loud:
                self._still += 1
                if self._still == 15:
                    if 12 <= self._loud <= 60:
                        yield self.heard, self._loud
                    self._loud = self._still = 0


class Panel:
    def __init__(self, port: int) -> None:
        self._port = port
        self._begun_s = time.monotonic()
        self._ear = Ear()
        self._awaited = self._taken = 0
        self._command = ""

    def say(self, line: str) -> None:
        os.write(self._port, f"{line}\r\n".encode())

    def log(self, text: str) -> None:
        self.say(f"<{time.monotonic() - self._begun_s:.3f}s> {text}")

    def take(self, line: str) -> None:
        if line == "!TEST":
            self.say(f"!OK TEST {LINE_BYTES}")
        elif line.startswith("!DATA "):
            self._command, self._taken = line[1:], 0
            self._awaited = int(line.rpartition(" ")[2])
        elif self._awaited:
            pcm = base64.b64decode(line)
            self._taken += len(pcm)
            for sample, frames in self._ear.take(pcm):
                self.log(f"panel: * named * len={frames * 20}ms sure={min(100, 60 + frames)}/100 pos={sample / 16:.0f}")
            self.say(f"!DATA_ACK {len(pcm)}")
            if self._taken >= self._awaited:
                self._awaited = 0
                self.say(f"!OK {self._command}")


def main(link: str) -> None:
    near, far = os.openpty()  # the far end stays open here, so that the port outlives whoever reads it
    tty.setraw(near)
    tty.setraw(far)
    os.symlink(os.ttyname(far), link)
    panel, rest, beat_s = Panel(near), b"", 0.0
    panel.log("panel: power on, fw 0.3")
    while True:
        ready, _, _ = select.select([near], [], [], 0.2)
        if ready:
            *lines, rest = (rest + os.read(near, 4096)).split(b"\n")
            for line in lines:
                panel.take(line.decode("ascii", "replace").strip())
        if time.monotonic() - beat_s > 1.0:
            beat_s = time.monotonic()
            panel.log(f"panel: temp {20 + int(beat_s) % 5} C, door shut")


if __name__ == "__main__":
    main(sys.argv[1])
