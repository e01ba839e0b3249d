from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.devices.wire.segments import FrameFinder, StreamSegment, checksum
from harness.model.bench import BinaryFrames, Checksum

SHAPE = BinaryFrames(b"\xaa\x55", 2, 1, 5, 3, b"\x0d", Checksum.XOR8, 2, 40)


def frame(body: bytes) -> bytes:
    summed = bytes([len(body)]) + body
    return b"\xaa\x55" + summed + bytes([checksum(Checksum.XOR8, summed)]) + b"\x0d"


@pytest.mark.parametrize(
    ("kind", "value"), [(Checksum.NONE, 0), (Checksum.SUM8, 0x2C), (Checksum.SUM16, 0x12C), (Checksum.XOR8, 0xD2)]
)
def test_checksums(kind: Checksum, value: int) -> None:
    assert checksum(kind, bytes([0xFF, 0x2D])) == value


FRAME = st.binary(max_size=30).map(lambda body: (True, body))
TEXT = st.text("ab\n", min_size=1, max_size=20).map(lambda text: (False, text.encode()))


@given(st.lists(st.one_of(FRAME, TEXT), max_size=8), st.lists(st.integers(1, 30), max_size=20))
@settings(deadline=None)
def test_frames_and_text_come_out_in_their_order(parts: list[tuple[bool, bytes]], cuts: list[int]) -> None:
    stream = b"".join(frame(data) if is_frame else data for is_frame, data in parts)
    finder = FrameFinder(SHAPE)
    found: list[StreamSegment] = []
    position = 0
    for cut in [*cuts, len(stream)]:
        found += finder.feed(stream[position : position + cut], 0.0)
        position += cut
    assert [one.data for one in found if one.is_frame] == [data for is_frame, data in parts if is_frame]
    assert b"".join(one.data for one in found if not one.is_frame) == b"".join(
        data for is_frame, data in parts if not is_frame
    )
    assert finder.broken == 0


def test_a_frame_with_a_wrong_byte_is_text_and_the_next_one_is_found() -> None:
    finder = FrameFinder(SHAPE)
    broken = bytearray(frame(b"hello"))
    broken[5] ^= 1
    found = finder.feed(bytes(broken) + frame(b"next"), 0.0)
    assert [one.data for one in found if one.is_frame] == [b"next"]
    assert finder.broken == 1


def test_half_a_frame_does_not_hold_back_what_follows_for_ever() -> None:
    finder = FrameFinder(SHAPE)
    assert finder.feed(b"\xaa\x55\x20half", 0.0) == []
    found = finder.feed(b"text\n", 1.0)
    assert b"".join(one.data for one in found) == b"\xaa\x55\x20halftext\n"
    assert finder.broken == 1
