"""Binary frames and lines of JSON, and Wyoming's events in whatever pieces they come."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.profiles.profile import load_profile
from harness.devices.wire.console import Console
from harness.devices.wire.mappings import observation_by_type
from harness.devices.wire.segments import EVENT_TIMEOUT_S, FrameFinder, StreamSegment, WyomingEvents, checksum
from harness.model.bench import BinaryFrames, Checksum, DeviceProfile, LineMapping, MessageMapping, ObservationKind
from harness.model.errors import InputProblems
from harness.model.observation import Intent, LogLine, Observation, ResponseText, Transcript, Unread, Wake
from harness.model.time import Stamp

SHAPE = BinaryFrames(b"\xaa\x55", 2, 1, 5, 3, b"\x0d", Checksum.XOR8, 2, 40)


def frame(body: bytes) -> bytes:
    summed = bytes([len(body)]) + body
    return b"\xaa\x55" + summed + bytes([checksum(Checksum.XOR8, summed)]) + b"\x0d"


@pytest.mark.parametrize(
    ("kind", "value"), [(Checksum.NONE, 0), (Checksum.SUM8, 0x2C), (Checksum.SUM16, 0x12C), (Checksum.XOR8, 0xD2)]
)
def test_checksums_match_published_values(kind: Checksum, value: int) -> None:
    assert checksum(kind, bytes([0xFF, 0x2D])) == value


FRAME = st.binary(max_size=30).map(lambda body: (True, body))
TEXT = st.text("ab\n", min_size=1, max_size=20).map(lambda text: (False, text.encode()))


@given(st.lists(st.one_of(FRAME, TEXT), max_size=8), st.lists(st.integers(1, 30), max_size=20))
def test_frames_and_text_keep_their_order(parts: list[tuple[bool, bytes]], cuts: list[int]) -> None:
    stream = b"".join(frame(data) if is_frame else data for is_frame, data in parts)
    finder = FrameFinder(SHAPE)
    segments: list[StreamSegment] = []
    position = 0
    for cut in [*cuts, len(stream)]:
        segments += finder.feed(stream[position : position + cut], 0.0)
        position += cut
    assert [segment.content for segment in segments if segment.is_frame] == [
        data for is_frame, data in parts if is_frame
    ]
    assert b"".join(segment.content for segment in segments if not segment.is_frame) == b"".join(
        data for is_frame, data in parts if not is_frame
    )


def test_a_frame_with_a_wrong_byte_is_text_and_the_next_one_is_found() -> None:
    finder = FrameFinder(SHAPE)
    broken = bytearray(frame(b"hello"))
    broken[5] ^= 1
    segments = finder.feed(bytes(broken) + frame(b"next"), 0.0)
    assert [segment.content for segment in segments if segment.is_frame] == [b"next"]
    assert b"".join(segment.content for segment in segments if not segment.is_frame) == bytes(broken)


def test_incomplete_frame_is_released_as_text_after_a_while() -> None:
    finder = FrameFinder(SHAPE)
    assert finder.feed(b"\xaa\x55\x20half", 0.0) == []
    segments = finder.feed(b"text\n", 1.0)
    assert b"".join(segment.content for segment in segments) == b"\xaa\x55\x20halftext\n"


AT = Stamp(1.0)


def read(profile: DeviceProfile, *lines: str | bytes) -> list[Observation]:
    console = Console(profile, "dev")
    data = b"".join(line if isinstance(line, bytes) else line.encode() + b"\n" for line in lines)
    return [*console.feed(data, AT), *console.flush(AT)]


def message(kind: str, data: object, context: object = None) -> str:
    return json.dumps({"type": kind, "data": data, "context": context or {}})


def shipped(name: str) -> DeviceProfile:
    return load_profile(name, beside=Path())


def test_a_real_message_of_the_ovos_bus_is_a_wake_however_long_its_context() -> None:
    context = {"session": {"pipeline": ["ovos-stop-pipeline-plugin-high"] * 60}}
    line = message("recognizer_loop:wakeword", {"utterance": "hey mycroft"}, context)
    assert 1024 < len(line) < 2400
    assert read(shipped("ovos_bus"), line) == [Wake("dev", AT, "hey mycroft")]


def test_quoted_message_type_is_not_a_wake_event() -> None:
    quoted = message("speak", {"utterance": 'type {"type": "recognizer_loop:wakeword"} to wake me'})
    assert [type(observation) for observation in read(shipped("ovos_bus"), quoted)] == [ResponseText]


@pytest.mark.parametrize("before", ["I (123) {tag} ", "{} ", "{ 'a' } "])
def test_braces_in_the_text_before_a_message_are_skipped(before: str) -> None:
    line = before + message("recognizer_loop:wakeword", {"utterance": "hey mycroft"})
    assert read(shipped("ovos_bus"), line) == [Wake("dev", AT, "hey mycroft")]


def test_unknown_speech_is_reported_as_an_empty_intent() -> None:
    assert read(shipped("ovos_bus"), message("recognizer_loop:speech.recognition.unknown", {})) == [
        Intent("dev", AT, "")
    ]


def test_types_with_holes_give_fields_and_slots_are_pointed_at_one_by_one() -> None:
    mapping = MessageMapping(
        "", ObservationKind.INTENT, (("slot_room", "/data/room"), ("slot_level", "/data/level")), type="*:{name}.intent"
    )
    profile = DeviceProfile("d", "d", "d.yaml", "0", (), messages=(mapping,))
    assert read(profile, message("skill.author:light.on.intent", {"room": "hall"})) == [
        Intent("dev", AT, "light.on", (("room", "hall"),))
    ]
    (line,) = read(profile, message("skill.author:light.on", {}))
    assert isinstance(line, LogLine)


def test_an_endless_type_fits_no_pattern() -> None:
    rule = MessageMapping("", ObservationKind.INTENT, type="*:{name}*")
    assert observation_by_type([rule], {"type": ":a" * 500}, AT, "dev")
    assert observation_by_type([rule], {"type": ":a" * 30_000}, AT, "dev") == ""


def test_a_mapping_has_a_topic_or_a_type(tmp_path: Path) -> None:
    text = "device: d\nwake_phrases: []\nmappings:\n  - {topic: a/b, type: c, kind: wake}\n  - {kind: wake}\n"
    (tmp_path / "d.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputProblems) as caught:
        load_profile("d.yaml", beside=tmp_path)
    assert str(caught.value).count("a mapping needs either a `topic` or a `type`") == 2


WAKE_PROFILE = DeviceProfile(
    "p", "p", "p.yaml", "0", ("alexa",), lines=(LineMapping("^wake", ObservationKind.WAKE),), frames=SHAPE
)
CUT_OFF = b"\xaa\x55\x1e\x01\n"


def test_a_line_after_a_frame_that_was_cut_off_is_reported_with_its_time() -> None:
    console = Console(WAKE_PROFILE, "dev")
    assert not console.feed(CUT_OFF, Stamp(1.0)) + console.feed(b"wake\n", Stamp(1.2))
    observations = [
        observation for tick in range(100) for observation in console.feed(b"", Stamp(1.25 + tick * 0.05, 0.002))
    ]
    (wake,) = (observation for observation in observations if isinstance(observation, Wake))
    assert wake.at.at_s - wake.at.error_s <= 1.0
    assert 1.2 <= wake.at.at_s + wake.at.error_s <= 2.0


def test_a_line_held_with_a_frame_that_was_cut_off_is_reported_at_the_end() -> None:
    console = Console(WAKE_PROFILE, "dev")
    console.feed(CUT_OFF + b"wake\nwake again", Stamp(1.0))
    assert [type(observation) for observation in console.flush(Stamp(1.1))] == [LogLine, Wake, Wake]


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("mappings: [{type: '{name}.{name}', kind: intent}]", "2:19: the type captures 'name' twice"),
        ("audio: {dialogue: hermes_audio_frame, topic: 'a/{site}'}", "2:46: 'a/{site}' contains {site}"),
        ("audio: {dialogue: vh, topic: a}", "2:23: vh has no `topic`"),
        ("audio: {dialogue: hermes_play_bytes, topic: a}", "2:45: a topic of hermes_play_bytes needs {id}"),
        ("audio: {dialogue: hermes_audio_frame, topic: 'a/{id}'}", "2:46: a topic of hermes_audio_frame has no {id}"),
        (
            "audio: {dialogue: tflm_test_over_serial, rate_hz: 8000}",
            "2:51: tflm_test_over_serial supports 16000 Hz only",
        ),
        (
            "console: {topic: a}\nthresholds: [{name: lamp, states: {on: {when: {A0: {from: 1}}}}}]",
            "3:1: thresholds read lines",
        ),
        ("heartbeat: {topic: 'a#', within_s: 5}", "2:20: 'a#' is not an MQTT filter"),
        ("heartbeat: {topic: a, within_s: 5, ask: a/#}", "2:41: 'a/#' is not a single topic"),
    ],
)
def test_wrong_topics_types_and_audio_are_refused(tmp_path: Path, section: str, problem: str) -> None:
    (tmp_path / "d.yaml").write_text(f"device: d\n{section}\nwake_phrases: []\n", encoding="utf-8")
    with pytest.raises(InputProblems, match=re.escape(problem)):
        load_profile("d.yaml", beside=tmp_path)


def event(kind: str, data: dict[str, object] | None = None, payload: bytes = b"") -> bytes:
    """As wyoming 1.10.2 writes it."""
    header: dict[str, object] = {"type": kind, "version": "1.10.2"}
    body = json.dumps(data, ensure_ascii=False).encode() if data else b""
    header |= {"data_length": len(body)} if body else {}
    header |= {"payload_length": len(payload)} if payload else {}
    return json.dumps(header).encode() + b"\n" + body + payload


HOSTILE = b'\n{"type": "detection", "data_length": 3}\n{}\n\x00'
STREAM = b"".join(
    [
        b"INFO:root:Ready\n",
        event("audio-chunk", {"rate": 16000}, HOSTILE * 3),
        event("detection", {"name": "okay_nabu", "timestamp": 1320, "speaker": None}),
        event("audio-chunk", {"rate": 16000}, HOSTILE),
        event("transcript", {"text": "wie spät ist es {"}),
        event("streaming-stopped"),
        b"DEBUG:root:Detection(name='alexa', timestamp=None, speaker=None)\n",
    ]
)


@given(st.lists(st.integers(1, 40), max_size=40))
def test_wyoming_is_read_in_whatever_pieces_it_comes(cuts: list[int]) -> None:
    console, observations, position = Console(shipped("wyoming_events"), "dev"), list[Observation](), 0
    for cut in [*cuts, len(STREAM)]:
        observations += console.feed(STREAM[position : position + cut], AT)
        position += cut
    events = [observation for observation in observations if isinstance(observation, Wake | Transcript)]
    assert events == [
        Wake("dev", AT, "okay_nabu"),
        Transcript("dev", AT, "wie spät ist es {"),
        Wake("dev", AT, "alexa"),
    ]


def test_an_event_that_is_cut_off_takes_nothing_of_the_next_connection() -> None:
    events = WyomingEvents(65536)
    events.feed(event("audio-chunk", {"rate": 16000}, bytes(1000))[:200], 1.0)
    assert events.feed(b"", 1.0 + EVENT_TIMEOUT_S / 2) == []
    (segment,) = events.feed(event("detection", {"name": "x"}), 2.0 + EVENT_TIMEOUT_S)
    assert json.loads(segment.content) == {"type": "detection", "data": {"name": "x"}}


def test_an_excessive_data_length_is_refused_and_reported() -> None:
    header = b'{"type": "info", "data_length": 99999999999999}\n'
    observations = read(shipped("wyoming_events"), header)
    assert [type(observation) for observation in observations] == [LogLine, Unread]


def test_arbitrary_bytes_come_out_unchanged() -> None:
    data = b"{no json}\n[1]\n{}\n\xff\xfe\n"
    assert WyomingEvents(100).feed(data, 1.0) == [
        StreamSegment(line + b"\n", is_frame=False) for line in data.split(b"\n")[:-1]
    ]
