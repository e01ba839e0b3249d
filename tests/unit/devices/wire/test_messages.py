"""Messages: every one there and back, the bytes of docs/framing.md, and payloads that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.wire.adpcm import Encoding
from harness.devices.wire.frames import FrameKind, WireFrame
from harness.devices.wire.messages import (
    STATES,
    Audio,
    AudioAck,
    BoardHello,
    CommandAck,
    ErrorEvent,
    EventAck,
    HelloRequest,
    IntentEvent,
    Log,
    Message,
    PayloadError,
    Ping,
    Pong,
    Reset,
    ResponseEvent,
    Set,
    SetKey,
    StatusEvent,
    TextCommand,
    TranscriptEvent,
    WakeMessage,
    decode,
    encode,
)
from harness.model.observation import DeviceState

U8, U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))
SCORES = U16.map(lambda number: number / 65535)
WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)

MESSAGES = st.one_of(
    st.builds(Ping, U32),
    st.builds(TextCommand, WORDS),
    st.builds(Audio, st.sampled_from(Encoding), U64, st.binary(max_size=1000)),
    st.builds(Set, st.sampled_from(SetKey), st.integers(-(2**31), 2**31 - 1)),
    st.just(Reset()),
    st.just(HelloRequest()),
    st.builds(EventAck, U32),
    st.builds(BoardHello, U16, U32.map("{:08x}".format), U64, U32, U32, WORDS, st.lists(WORDS, max_size=3).map(tuple)),
    st.builds(Pong, U32, U64, U64, st.booleans()),
    st.builds(AudioAck, U64, U32),
    st.builds(WakeMessage, U64, U64, SCORES, WORDS),
    st.builds(CommandAck, U32),
    st.builds(TranscriptEvent, U64, U64, st.booleans(), WORDS),
    st.builds(IntentEvent, U64, U64, SCORES, WORDS, st.lists(st.tuples(WORDS, WORDS), max_size=3).map(tuple)),
    st.builds(ResponseEvent, U64, WORDS),
    st.builds(StatusEvent, U64, st.sampled_from(STATES), WORDS),
    st.builds(Log, U64, U8, WORDS),
    st.builds(ErrorEvent, U64, U16, WORDS),
)


@given(MESSAGES)
def test_there_and_back(message: Message) -> None:
    kind, payload = encode(message)
    assert decode(WireFrame(kind, 0, payload)) == message


@given(st.sampled_from(list(FrameKind)), st.binary(max_size=64))
def test_any_payload_is_a_message_or_a_payload_error(kind: FrameKind, payload: bytes) -> None:
    try:
        again = encode(decode(WireFrame(kind, 0, payload)))
    except PayloadError:
        return
    assert again[0] is kind


def test_the_bytes_are_those_of_the_page() -> None:
    hello = BoardHello(1, "0000cafe", 5_000_000, 16000, 4096, "vh 1", ("alexa",))
    assert encode(hello) == (
        FrameKind.HELLO,
        bytes.fromhex("0100 feca0000 404b4c0000000000 803e0000 00100000 04") + b"vh 1\x01\x05alexa",
    )
    assert (
        encode(WakeMessage(1, 2, 1.0, "alexa"))[1] == bytes.fromhex("0100000000000000 0200000000000000 ffff") + b"alexa"
    )
    assert encode(Audio(Encoding.ULAW, 258, b"xy"))[1] == bytes.fromhex("01 00 0201000000000000") + b"xy"
    assert encode(Set(SetKey.OPERATING_POINT, 40))[1] == bytes.fromhex("01 28000000")
    assert encode(Pong(7, 8, 9, True))[1] == bytes.fromhex("07000000 0800000000000000 0900000000000000 01")
    assert encode(AudioAck(480, 3))[1] == bytes.fromhex("e001000000000000 03000000")
    assert encode(StatusEvent(1, DeviceState.STARTED, "up"))[1] == bytes.fromhex("0100000000000000 05") + b"up"


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (FrameKind.PING, b"\0\0\0"),
        (FrameKind.PING, b"\0\0\0\0\0"),
        (FrameKind.AUDIO, b"\x09" + bytes(9)),
        (FrameKind.SET, b"\x07" + bytes(4)),
        (FrameKind.STATUS, bytes(8) + b"\x06"),
        (FrameKind.HELLO, bytes(22) + b"\x05abc"),
        (FrameKind.INTENT, bytes(18) + b"\x01a\x02\x01b"),
    ],
)
def test_what_is_no_payload_is_refused(kind: FrameKind, payload: bytes) -> None:
    with pytest.raises(PayloadError):
        decode(WireFrame(kind, 0, payload))


def test_foreign_bytes_in_text_are_kept_as_escapes() -> None:
    assert decode(WireFrame(FrameKind.TEXT, 0, b"a\xffb")) == TextCommand("a\\xffb")


@pytest.mark.parametrize("message", [Ping(2**32), WakeMessage(0, 0, 1.5, ""), WakeMessage(-1, 0, 0.5, "")])
def test_numbers_that_do_not_fit_are_refused(message: Message) -> None:
    with pytest.raises(ValueError):
        encode(message)
