"""Frames: round trips, corruption, text between them, memory, speed."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.devices.wire.frames import (
    MAX_PAYLOAD_BYTES,
    MAX_SEGMENT_BYTES,
    Decoder,
    FrameKind,
    WireFrame,
    decode,
    encode,
)

KINDS = st.sampled_from(list(FrameKind))
PAYLOADS = st.one_of(
    st.binary(max_size=MAX_PAYLOAD_BYTES),
    st.integers(0, MAX_PAYLOAD_BYTES).map(lambda n: b"\xaa" * n),
    st.integers(0, MAX_PAYLOAD_BYTES).map(bytes),
)
FRAMES = st.builds(WireFrame, KINDS, st.integers(0, 2**32 - 1), PAYLOADS)


def coded(frame: WireFrame) -> bytes:
    return encode(frame.kind, frame.payload, frame.seq)


@given(FRAMES)
@example(WireFrame(FrameKind.LOG, 1, b"\x01" * 249))
@example(WireFrame(FrameKind.LOG, 0x01010101, b"\x01" * 249))
def test_what_is_encoded_is_decoded(frame: WireFrame) -> None:
    sent = coded(frame)
    assert sent.count(0) == 2
    assert sent[0] == sent[-1] == 0
    assert len(sent) <= MAX_SEGMENT_BYTES + 2
    assert decode(sent[1:-1]) == frame


LINES = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=2, max_size=60).map(
    lambda text: text.encode() + b"\n"
)


@given(st.lists(st.one_of(FRAMES, LINES), max_size=12), st.data())
def test_frames_and_lines_come_in_their_order_however_the_stream_is_cut(
    said: list[WireFrame | bytes], data: st.DataObject
) -> None:
    stream = b"".join(coded(one) if isinstance(one, WireFrame) else one for one in said)
    decoder = Decoder()
    got: list[WireFrame | bytes] = []
    at = 0
    while at < len(stream):
        size = data.draw(st.integers(1, 700))
        got += decoder.feed(stream[at : at + size])
        at += size
    got += decoder.release()
    assert _joined(got) == _joined(said)


def _joined(items: list[WireFrame | bytes]) -> list[WireFrame | bytes]:
    joined: list[WireFrame | bytes] = []
    for one in items:
        if isinstance(one, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += one
        else:
            joined.append(one)
    return joined


def test_at_a_byte_error_rate_of_1e_3_no_wrong_frame_is_taken() -> None:
    chance = random.Random(7)
    sent, stream = {}, bytearray()
    for number in range(1, 40_001):
        payload = chance.randbytes(chance.randrange(0, 48))
        sent[number] = payload
        stream += encode(FrameKind.WAKE, payload, number)
        if number % 10 == 0:
            stream += b"I (%d) main: all is well\n" % number
    clean = len(stream)
    at = 0
    while (at := at + 1 + int(chance.expovariate(1e-3))) < clean:
        stream[at] = chance.randrange(256)
    decoder = Decoder()
    taken = [
        one
        for start in range(0, clean, 333)
        for one in decoder.feed(bytes(stream[start : start + 333]))
        if isinstance(one, WireFrame)
    ]
    assert all(sent.get(frame.seq) == frame.payload and frame.kind is FrameKind.WAKE for frame in taken)
    assert 0.9 < len(taken) / len(sent) < 1
    assert [frame.seq for frame in taken] == sorted({frame.seq for frame in taken})
    assert decoder.garbage > 0


@given(st.binary(max_size=4000))
def test_garbage_is_let_through_whole_and_the_next_frame_is_found(garbage: bytes) -> None:
    decoder = Decoder()
    out = decoder.feed(garbage)
    out += decoder.feed(b"\0" + encode(FrameKind.PONG, b"abc"))
    assert out[-1] == WireFrame(FrameKind.PONG, 0, b"abc")
    console = b"".join(one for one in out if isinstance(one, bytes))
    assert console == garbage.replace(b"\0", b"")


def test_a_log_line_does_not_wait_for_the_next_frame() -> None:
    decoder = Decoder()
    assert decoder.feed(encode(FrameKind.PONG, b"")) == [WireFrame(FrameKind.PONG, 0, b"")]
    assert decoder.feed(b"I (3") == [b"I (3"]
    assert decoder.feed(b"12) wake\n") == [b"12) wake\n"]
    assert decoder.feed(b"half" + encode(FrameKind.PONG, b"x")) == [b"half", WireFrame(FrameKind.PONG, 0, b"x")]


def test_what_looks_like_the_start_of_a_frame_is_held_but_not_for_ever() -> None:
    decoder = Decoder()
    assert decoder.feed(b"\x20\x84") == []
    assert decoder.release() == [b"\x20\x84"]
    assert decoder.feed(b"more" + encode(FrameKind.PONG, b"")) == [b"more", WireFrame(FrameKind.PONG, 0, b"")]


def test_memory_is_bounded() -> None:
    decoder = Decoder()
    flood = b"\x20\x84" + b"\x7f" * 100_000
    let_through = sum(
        len(one)
        for start in range(0, len(flood), 50)
        for one in decoder.feed(flood[start : start + 50])
        if isinstance(one, bytes)
    )
    assert decoder.holds <= MAX_SEGMENT_BYTES
    assert let_through + decoder.holds == len(flood)


@pytest.mark.parametrize("kind", [0, 0x08, 0x80, 0x8C, 0xFF])
def test_an_unknown_type_is_console_text(kind: int) -> None:
    (only,) = Decoder().feed(encode(kind, b"payload"))
    assert isinstance(only, bytes)


def test_a_payload_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="1024"):
        encode(FrameKind.LOG, bytes(1025))


def test_it_keeps_up_with_a_fast_port() -> None:
    stream = b"".join(encode(FrameKind.LOG, random.Random(n).randbytes(600)) for n in range(2000))
    best_s = 1e9
    for _ in range(5):
        decoder, began_s = Decoder(), time.perf_counter()
        for start in range(0, len(stream), 4096):
            decoder.feed(stream[start : start + 4096])
        best_s = min(best_s, time.perf_counter() - began_s)
        assert decoder.frames == 2000
    # Measured 60 MB/s on a quiet machine; the limit leaves room for a busy one.
    assert len(stream) / best_s > 5e6
