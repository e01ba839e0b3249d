"""What the engine and its sound child processes say to each other over pipes. Standard library only.

Both directions: a fixed head, then `length` bytes. Samples are mono int16, little-endian, at 48 kHz.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

HEAD: Final = struct.Struct("<BIIQddI")
"""kind, number, frames, first sample, moment, reported, length."""


class Word(IntEnum):
    """What a packet is about. The first two go to the child, the others come from it."""

    PLAY = 1
    """number: of the play. Payload: its samples."""
    STOP = 2
    OPENED = 3
    """The stream runs. reported: the latency that PortAudio states, in seconds."""
    BLOCK = 4
    """One capture callback. number: PortAudio's status flags. Payload: the samples."""
    TICK = 5
    """One playback callback, as BLOCK without samples."""
    STARTED = 6
    """A play's first sample is stream sample `first_sample`. number: of the play."""
    ENDED = 7
    """… and `first_sample` the first after its last one; frames 1: complete, 0: stopped."""
    FAILED = 8
    """The child gives up. Payload: JSON object with `what` and `remedy`."""
    LOST = 9
    """frames: samples that were dropped because the reader of the pipe was too slow."""


@dataclass(frozen=True, slots=True)
class Packet:
    """One message.

    moment_s: CLOCK_MONOTONIC on entry of the callback. reported_s: converter time of the block's first sample less
    the moment, as PortAudio says.
    """

    word: Word
    number: int = 0
    frames: int = 0
    first_sample: int = 0
    moment_s: float = 0.0
    reported_s: float = 0.0
    payload: bytes = b""

    def encode(self) -> bytes:
        head = HEAD.pack(
            self.word,
            self.number,
            self.frames,
            self.first_sample,
            self.moment_s,
            self.reported_s,
            len(self.payload),
        )
        return head + self.payload


class PacketReader:
    """Bytes in, whole packets out; knows nothing of where they come from."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, chunk: bytes) -> list[Packet]:
        """The packets that are complete now; ValueError when the bytes are not ours."""
        self._held += chunk
        packets = []
        while len(self._held) >= HEAD.size:
            word, number, frames, first_sample, moment_s, reported_s, length = HEAD.unpack_from(self._held)
            known = Word(word)
            end = HEAD.size + length
            if len(self._held) < end:
                break
            payload = bytes(self._held[HEAD.size : end])
            packets.append(Packet(known, number, frames, first_sample, moment_s, reported_s, payload))
            del self._held[:end]
        return packets
