"""The child side of a recogniser process: waveforms come in on stdin, texts go out on stdout.

A frame is a head (network byte order: rate in Hz as u32, length in bytes as u32) and its bytes. To the child: float32
samples. From the child: UTF-8 text; a "rate" of OK or FAILED says what the text is.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import BinaryIO

import numpy as np

from harness.base.plugins import Group, load
from harness.base.ports import Recogniser
from harness.model.errors import HarnessError
from harness.model.stimulus import Waveform

HEAD = struct.Struct("!II")
OK, FAILED = 0, 1


def read_exactly(stream: BinaryIO, size: int) -> bytes | None:
    """That many bytes; None at the end of the stream."""
    found = stream.read(size)
    return found if len(found) == size else None


def serve(recogniser: Recogniser, source: BinaryIO, sink: BinaryIO) -> None:
    """Answers until the source ends."""
    while (head := read_exactly(source, HEAD.size)) is not None:
        rate_hz, size = HEAD.unpack(head)
        content = read_exactly(source, size)
        if content is None:
            return
        samples = np.frombuffer(content, dtype=np.float32)
        try:
            _say(sink, OK, recogniser.transcribe(Waveform(samples, rate_hz)))
        except (HarnessError, RuntimeError, ValueError) as error:
            _say(sink, FAILED, str(error))


def _say(sink: BinaryIO, outcome: int, text: str) -> None:
    content = text.encode("utf-8", errors="replace")
    sink.write(HEAD.pack(outcome, len(content)) + content)
    sink.flush()


def main(name: str, nice: int) -> None:
    """Loads the recogniser of that name, says its own name (or why not), and serves."""
    os.nice(nice)
    # What a library prints must not end up between the frames.
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        recogniser: Recogniser = load(Group.RECOGNISERS, name)()
    except HarnessError as error:
        _say(sink, FAILED, str(error))
        return
    _say(sink, OK, recogniser.name)
    serve(recogniser, sys.stdin.buffer, sink)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
