"""Bytes of a console, however they come: bounded, and the same observations."""

from __future__ import annotations

import time
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.foreign import ELLIPSIS, plain_text
from harness.devices.wire.console import PROOF_EVERY_S, Console, HeartbeatThrottle
from harness.devices.wire.mappings import observations
from harness.model.bench import (
    BinaryFrames,
    Checksum,
    ClockKind,
    ConsoleSettings,
    DeviceProfile,
    LineMapping,
    MessageMapping,
    ObservationKind,
)
from harness.model.observation import DeviceState, ListeningProved, LogLine, Observation, Proof, Status, Unread, Wake
from harness.model.time import Stamp

WAKE = LineMapping(r"^wake (?P<phrase>\w+)$", ObservationKind.WAKE)
SLOW = LineMapping(r"^(a|aa)+$", ObservationKind.WAKE)
FRAMES = BinaryFrames(b"\xf4\xf5", 2, 2, 10, 4, b"\xfb", Checksum.SUM16, 4, 64)


def profile(*lines: LineMapping, frames: BinaryFrames | None = None, **settings: object) -> DeviceProfile:
    console = ConsoleSettings(**settings)  # type: ignore[arg-type]
    return DeviceProfile("d", "d", "d.yaml", "0", ("x",), lines=lines, console=console, frames=frames)


def texts(observations: tuple[Observation, ...]) -> list[str]:
    return [observation.text for observation in observations if isinstance(observation, LogLine)]


def test_colours_are_no_part_of_the_match_and_stay_in_the_log() -> None:
    console = Console(profile(WAKE), "dev")
    assert console.feed(b"\x1b[0;32mwake alexa\x1b[0m\r\n", Stamp(1.0)) == (Wake("dev", Stamp(1.0), "alexa"),)
    assert texts(console.feed(b"\x1b[31mred\x1b[0m\n", Stamp(2.0))) == ["\x1b[31mred\x1b[0m"]
    assert texts(console.feed(b"\x1b]0;owned\x07\xff\n", Stamp(3.0))) == ["\x1b]0;owned\x07\\xff"]
    assert (console.lines, console.garbage) == (3, 1)


def test_inferred_wake_event_names_its_source() -> None:
    weak = LineMapping("^upload", ObservationKind.WAKE, fields=(("inferred", "network traffic"),))
    assert Console(profile(weak), "dev").feed(b"upload\n", Stamp(1.0)) == (
        Wake("dev", Stamp(1.0), inferred="network traffic"),
    )


@given(st.lists(st.integers(1, 60), max_size=12))
def test_splitting_the_bytes_does_not_change_the_result(cuts: list[int]) -> None:
    data = b"wake one\r\nnoise\x00\xfe\n\n\rwake two\nwake three\n" + "wake vier ü\nhalf".encode()
    console, stamp = Console(profile(WAKE), "dev"), Stamp(1.0)
    observations: list[Observation] = []
    position = 0
    for cut in cuts:
        observations += console.feed(data[position : position + cut], stamp)
        position += cut
    observations += console.feed(data[position:], stamp)
    observations += console.flush(stamp)
    whole = Console(profile(WAKE), "dev")
    assert observations == [*whole.feed(data, stamp), *whole.flush(stamp)]
    assert [observation.phrase for observation in observations if isinstance(observation, Wake)] == [
        "one",
        "two",
        "three",
    ]


def test_a_line_without_end_is_cut_and_told_when_it_ends() -> None:
    console = Console(profile(WAKE, max_line_bytes=100), "dev")
    for _ in range(1000):
        assert console.feed(b"wake x" * 100, Stamp(1.0)) == ()
    (line,) = texts(console.feed(b"\nwake x\n", Stamp(1.0))[:1])
    assert line.endswith("(the line is too long: 600000 bytes)")
    assert len(line) < 200
    assert console.lines == 2


def test_a_flood_of_lines_is_counted_and_loses_no_wake_event() -> None:
    console = Console(profile(WAKE, log_lines_per_s=10.0), "dev")
    flood = (b"nothing at all\n" * 500 + b"wake alexa\n") * 20
    observations = console.feed(flood, Stamp(1.0))
    assert sum(isinstance(observation, Wake) for observation in observations) == 20
    assert len(texts(observations)) == 20
    assert texts(console.feed(b"", Stamp(3.0))) == ["9980 lines were left out: more than 10 per second"]
    assert texts(console.feed(b"more\n", Stamp(4.0))) == ["more"]


def test_endless_expression_is_stopped_and_disabled() -> None:
    console = Console(profile(SLOW, WAKE), "dev")
    start_s = time.monotonic()
    for number in range(20):
        console.feed(b"a" * 60 + b"b\n", Stamp(float(number)))
    assert time.monotonic() - start_s < 20
    assert texts(console.feed(b"aa\n", Stamp(29.0))) == ["aa"]
    assert console.feed(b"wake alexa\n", Stamp(30.0)) == (Wake("dev", Stamp(30.0), "alexa"),)


def test_a_real_line_delays_by_its_own_length() -> None:
    (wake,) = Console(profile(WAKE), "dev", baud=9600).feed(b"wake alexa\n", Stamp(1.0, 0.001))
    assert isinstance(wake, Wake)
    # Ten bytes at 9600 took 10.4 ms: it was written before, or while, they left.
    assert wake.at.at_s + wake.at.error_s == pytest.approx(1.0)
    assert wake.at.at_s - wake.at.error_s == pytest.approx(1.0 - 0.002 - 10 * 10 / 9600 - 0.004)


def test_a_json_line_has_the_time_that_is_written_in_front_of_it() -> None:
    wake = MessageMapping("", ObservationKind.WAKE, (("phrase", "/phrase"),), type="wake")
    line_rule = LineMapping(r"wake (?P<phrase>\w+)$", ObservationKind.WAKE)
    rules = replace(profile(line_rule, time=r"^(?P<time>[\d.]+) ", clock=ClockKind.S), messages=(wake,))
    times: list[Stamp] = []
    for line in ("wake hey", '{"type": "wake", "phrase": "hey"}'):
        console = Console(rules, "d", hold_back_s=0.02)
        for second in range(60):
            console.feed(b"%d.0 idle\n" % (100 + second), Stamp(second + 0.001))
        (event,) = console.feed(f"160.0 {line}\n".encode(), Stamp(60.4))
        times.append(event.at)
    assert times[0] == times[1]
    assert times[1].at_s < 60.1 < 60.4 < times[1].at_s + times[1].error_s + 0.001


def test_binary_frames_are_lines_of_their_own() -> None:
    rule = LineMapping(r"^frame: a3 9a .. b1", ObservationKind.WAKE)
    console = Console(profile(rule, frames=FRAMES), "dev")
    frame = bytes.fromhex("F4F50100A39A01B1EF01FB")
    assert console.feed(b"boot\n" + frame[:5], Stamp(1.0))[0] == LogLine("dev", Stamp(1.0), "boot")
    assert console.feed(frame[5:] + frame, Stamp(1.1)) == (Wake("dev", Stamp(1.1)), Wake("dev", Stamp(1.1)))


def test_pieces_with_times_out_of_order_form_one_line() -> None:
    console = Console(profile(WAKE), "dev")
    assert not console.feed(b"wake ", Stamp(5.03, 0.001))
    (wake,) = console.feed(b"alexa\n", Stamp(5.0, 0.001))
    assert isinstance(wake, Wake)
    assert wake.at.at_s - wake.at.error_s <= 5.0
    assert wake.at.at_s + wake.at.error_s >= 5.03 - 1e-9


@pytest.mark.parametrize("baud", [115200, None])
def test_lines_behind_one_that_came_in_pieces_may_have_waited_for_it(baud: int | None) -> None:
    console = Console(None, "wired", baud=baud)
    console.read(b"half", Stamp(10.0))
    (half,) = console.read(b" and half\n", Stamp(10.4))
    (behind,) = console.read(b"behind\n", Stamp(10.42))
    (also,) = console.read(b"also behind\n", Stamp(10.44))
    (later,) = console.read(b"later\n", Stamp(11.0))
    for line in (half, behind, also):
        assert line.at.at_s - line.at.error_s <= 10.0
    assert later.at.at_s - later.at.error_s > 10.9


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_no_input_bytes_raise_an_error(pieces: list[bytes]) -> None:
    console = Console(profile(WAKE, frames=FRAMES), "dev")
    for number, piece in enumerate(pieces):
        console.feed(piece, Stamp(number * 0.3))
    console.flush(Stamp(9.0))


def test_overlong_lines_are_reported_at_a_limited_rate() -> None:
    console = Console(profile(WAKE, max_line_bytes=100), "dev")
    observations = [
        observation for n in range(100) for observation in console.feed(b"x" * 1500 + b"\n", Stamp(1.0 + n / 100))
    ]
    observations += console.flush(Stamp(2.0))
    lost = [observation for observation in observations if isinstance(observation, Unread)]
    assert sum(observation.count for observation in lost) == 100
    assert len(lost) <= 7
    assert lost[0].what == "the line is too long: 1500 bytes"
    console = Console(None, "dev")  # the messages of today are within the default
    observations = console.feed(b"x" * 60_000 + b"\n" + b"x" * 70_000 + b"\n", Stamp(1.0))
    assert [type(observation) for observation in observations] == [LogLine, LogLine, Unread]


AT = Stamp(5.0, 0.1)
BEAT = MessageMapping("vh/lamp/heartbeat", ObservationKind.LISTENING)


def test_any_payload_of_a_heartbeat_topic_is_a_heartbeat() -> None:
    for payload in (b"", b"{}", b'{"boot": "a", "time": 3.5}', b"alive"):
        beats = observations([BEAT], "vh/lamp/heartbeat", payload, AT, "lamp")
        assert beats == (ListeningProved("lamp", AT, Proof.HEARTBEAT),) or payload == b""


@given(st.lists(st.floats(0.01, 20.0), max_size=60))
def test_heartbeats_are_reported_about_every_five_seconds(gaps: list[float]) -> None:
    pace, at_s, passes_s = HeartbeatThrottle(), 0.0, [0.0]
    assert pace.passes(ListeningProved("lamp", Stamp(0.0), Proof.HEARTBEAT))
    for gap in gaps:
        at_s += gap
        if pace.passes(ListeningProved("lamp", Stamp(at_s), Proof.HEARTBEAT)):
            assert at_s - passes_s[-1] >= PROOF_EVERY_S - 0.5 - 1e-9
            passes_s.append(at_s)
        else:
            assert at_s - passes_s[-1] < PROOF_EVERY_S - 0.5 + 1e-9


def test_first_heartbeat_after_start_or_loss_passes_the_throttle() -> None:
    pace, beat = HeartbeatThrottle(), ListeningProved("lamp", Stamp(1.0), Proof.HEARTBEAT)
    assert [pace.passes(beat), pace.passes(beat)] == [True, False]
    assert pace.passes(Status("lamp", Stamp(1.0), DeviceState.STARTED))
    assert [pace.passes(beat), pace.passes(beat)] == [True, False]
    pace.link_lost()
    assert [pace.passes(beat), pace.passes(beat)] == [True, False]
    assert all(pace.passes(ListeningProved("lamp", Stamp(1.0), Proof.ACKNOWLEDGED, 3.0)) for _ in range(3))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("what time is it?", "what time is it?"),
        ("Zürich, 北京 ☕", "Zürich, 北京 ☕"),
        ("[/red] [bold]", "[/red] [bold]"),
        ("\x1b]0;owned\x07", "\\e]0;owned\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb\u200bc\u2066", "a\\u202eb\\u200bc\\u2066"),
        ("two\r\nlines\there", "two\\r\\nlines\\there"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\u2028\u2029\x7f\x00", "\\u2028\\u2029\\x7f\\x00"),
        ("\u3164", "\\u3164"),
    ],
)
def test_terminal_control_codes_are_shown_as_escapes(text: str, shown: str) -> None:
    assert plain_text(text) == shown


def test_long_text_is_cut_with_an_ellipsis_outside_escapes() -> None:
    assert plain_text("abcdef", 6) == "abcdef"
    assert plain_text("abcdefg", 6) == "abcde" + ELLIPSIS
    assert plain_text("abc\x9bdef", 6) == "abc" + ELLIPSIS
    assert plain_text("x" * 10_000, 500) == "x" * 499 + ELLIPSIS


def test_floods_of_combining_marks_are_thinned() -> None:
    assert plain_text("e" + "\u0301" * 300) == "e" + "\u0301" * 4


def test_a_length_limit_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError):
        plain_text("x", 0)


@given(st.text(alphabet=st.characters()), st.integers(1, 40))
def test_sanitised_text_fits_its_limit_and_is_printable(text: str, limit: int) -> None:
    shown = plain_text(text, limit)
    assert len(shown) <= limit
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in shown)
    shown.encode("utf-8")
