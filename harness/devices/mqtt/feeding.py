"""What others give a board: what its inward topics carry that is not ours. Pure; the broker echoes ours."""

from __future__ import annotations

import struct
import zlib

from harness.devices.wire.audio_link import PROBE_SAMPLE
from harness.devices.wire.mappings import Unmapped, parse

_REMEMBERED = 4096
_FIRST_SAMPLE = struct.Struct("<xxQ")
GIVEN = {"in/audio": "sound", "in/text": "words", "in/set": "a setting", "in/reset": "a reset"}
"""The topics that change something, and what they carry."""


class Feeding:
    """owner: how our commands are marked (`by`); sound is known by its bytes, each as often as it was given."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._given: dict[int, int] = {}
        self.echoed = False
        """Whether we see what reaches the board: our own sound has come back."""

    def gives(self, topic: str, payload: bytes) -> None:
        """We publish this; to be called before it is published."""
        if topic in ("in/audio", "in/reset"):
            mark = _mark(topic, payload)
            self._given[mark] = self._given.pop(mark, 0) + 1
            while len(self._given) > _REMEMBERED:
                del self._given[next(iter(self._given))]

    def stranger(self, topic: str, payload: bytes) -> str:
        """What somebody else has given it; "" for our own, and for questions, which change nothing."""
        what = GIVEN.get(topic, "")
        if not what:
            return ""
        if topic in ("in/text", "in/set"):
            try:
                document = parse(payload)
            except Unmapped:
                return ""  # the board does not take it either
            ours = isinstance(document, dict) and document.get("by") == self._owner
            return "" if ours else what
        if topic == "in/audio" and len(payload) >= _FIRST_SAMPLE.size:
            (first,) = _FIRST_SAMPLE.unpack_from(payload)
            if first == PROBE_SAMPLE:
                return ""
        mark = _mark(topic, payload)
        if mark not in self._given:
            return what
        self._given[mark] -= 1
        if not self._given[mark]:
            del self._given[mark]
        self.echoed = self.echoed or topic == "in/audio"
        return ""


def _mark(topic: str, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(topic.encode()))
