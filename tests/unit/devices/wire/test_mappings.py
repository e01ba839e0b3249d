"""Messages and lines of a device become observations, also state over several lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.profiles.profile import load_profile
from harness.devices.wire.console import Console
from harness.devices.wire.lines import LineRules, MappingError
from harness.devices.wire.mappings import (
    for_device,
    message_of,
    observations,
    resolve_pointer,
    topic_matches,
    without_covered,
)
from harness.model.bench import ConsoleSettings, LineMapping, MessageMapping, ObservationKind
from harness.model.observation import (
    DeviceDescribed,
    DeviceState,
    Intent,
    LogLine,
    Observation,
    ResponseText,
    StateTold,
    Status,
    Transcript,
    Wake,
)
from harness.model.time import Stamp

AT = Stamp(5.0, 0.1)
KIND = ObservationKind


def seen(mapping: MessageMapping, payload: object, topic: str = "t") -> object:
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    (observation,) = observations([mapping], topic, raw, AT, "dev")
    return observation


@pytest.mark.parametrize(
    ("topic_filter", "topic", "fits"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/c", False),
        ("a/+", "a/b", True),
        ("a/+", "a/b/c", False),
        ("a/+/c", "a/b/c", True),
        ("+", "a", True),
        ("+/+", "/a", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("#", "a/b", True),
        ("#", "$SYS/x", False),
        ("+/x", "$SYS/x", False),
        ("$SYS/#", "$SYS/x", True),
        ("a", "a/b", False),
        ("a/b", "a", False),
    ],
)
def test_topic_filters_match_as_mqtt_defines(topic_filter: str, topic: str, fits: bool) -> None:
    assert topic_matches(topic_filter, topic) is fits


@given(st.lists(st.text("ab", max_size=2), min_size=1, max_size=4))
def test_a_topic_matches_itself_and_the_hash_wildcard(levels: list[str]) -> None:
    topic = "/".join(levels)
    assert topic_matches(topic, topic)
    assert topic_matches("#", topic)
    assert topic_matches("/".join("+" * len(levels)), topic)


@pytest.mark.parametrize(
    ("filters", "needed"),
    [
        ("a/# a/b a", "a/#"),
        ("a/+ a/# +/b", "+/b a/#"),
        ("# +/#", "#"),
        ("# $SYS/x", "# $SYS/x"),
        ("a/+ +/b", "+/b a/+"),
        ("vh/x/+ vh/x/wake vh/x/state/+", "vh/x/+ vh/x/state/+"),
    ],
)
def test_no_filter_is_subscribed_to_whose_messages_another_one_brings(filters: str, needed: str) -> None:
    assert " ".join(without_covered(filters.split())) == needed


def test_json_pointers_follow_the_standard() -> None:
    document: Any = {"a": [{"b/c": 1, "d~e": 2}], "": 3}
    assert resolve_pointer(document, "/a/0/b~1c") == 1
    assert resolve_pointer(document, "/a/0/d~0e") == 2
    assert resolve_pointer(document, "/") == 3
    assert resolve_pointer(document, "") is document
    for wrong in ("/a/1", "/a/-1", "/a/x", "/b", "/a/0/b~1c/x", "/a/²"):
        with pytest.raises(MappingError):
            resolve_pointer(document, wrong)


WAKE = MessageMapping("t", KIND.WAKE, (("phrase", "/p"), ("score", "/s")))
TEXT = MessageMapping("t", KIND.TRANSCRIPT, (("text", "/t"), ("final", "/f")))
STATUS = MessageMapping("t", KIND.STATUS, (("state", "/s"), ("detail", "/d")), values=(("busy", "thinking"),))
STATE = MessageMapping("t", KIND.STATE, (("name", "/name"), ("value", "/value")), (("t1", "timer"),))
ABOUT = DeviceDescribed("dev", AT, "1.2")
STATE_OF_TEXT = MessageMapping("t", KIND.STATE, match="^(?P<name>[a-z]+)=(?P<value>.*)")


@pytest.mark.parametrize(
    ("mapping", "payload", "expected"),
    [
        (WAKE, {"p": "alexa", "s": 0.5}, Wake("dev", AT, "alexa", 0.5)),
        (WAKE, {"p": "alexa", "s": None}, Wake("dev", AT, "alexa", None)),
        (WAKE, {"p": "alexa"}, Wake("dev", AT, "alexa", None)),
        (WAKE, {"p": None, "s": "0.5"}, Wake("dev", AT, "", 0.5)),
        (WAKE, {"p": "alexa", "s": 87}, Wake("dev", AT, "alexa", None)),
        (WAKE, {"s": 10**400}, Wake("dev", AT, "", None)),
        (TEXT, {"t": "hi"}, Transcript("dev", AT, "hi", True)),
        (TEXT, {"t": None, "f": 0}, Transcript("dev", AT, "", False)),
        (MessageMapping("t", KIND.ABOUT, (("firmware", "/f"), ("serial", "/s"))), {"f": "1.2"}, ABOUT),
        (MessageMapping("t", KIND.WAKE), b"anything", Wake("dev", AT)),
        (TEXT, {"t": "hi", "f": False}, Transcript("dev", AT, "hi", False)),
        (MessageMapping("t", KIND.RESPONSE, (("text", ""),)), b"plain words", ResponseText("dev", AT, "plain words")),
        (MessageMapping("t", KIND.LOG, (("text", "/a"),)), {"a": {"b": 1}}, LogLine("dev", AT, '{"b": 1}')),
        (STATUS, {"s": "busy", "d": "why"}, Status("dev", AT, DeviceState.THINKING, "why")),
        (STATUS, {"s": "idle"}, Status("dev", AT, DeviceState.IDLE)),
        (STATE, {"name": "t1", "value": "10 minutes"}, StateTold("dev", AT, "timer", "10 minutes")),
        (STATE, {"name": "list", "value": ""}, StateTold("dev", AT, "list", "")),
        (STATE_OF_TEXT, b"timer=5 minutes", StateTold("dev", AT, "timer", "5 minutes")),
    ],
)
def test_each_kind_of_observation_can_be_mapped(mapping: MessageMapping, payload: object, expected: object) -> None:
    assert seen(mapping, payload) == expected


def test_a_piece_of_state_without_a_value_is_a_log_line() -> None:
    assert isinstance(seen(STATE, {"name": "list"}), LogLine)


def test_conditions_choose_among_mappings() -> None:
    rules = [
        MessageMapping("t", KIND.WAKE, when=(("/type", "wake"),)),
        MessageMapping("t", KIND.TRANSCRIPT, (("text", "/text"),), when=(("/type", "heard"), ("/ok", "true"))),
    ]
    payload = json.dumps({"type": "heard", "ok": True, "text": "hi"}).encode()
    assert observations(rules, "t", payload, AT, "dev") == (Transcript("dev", AT, "hi"),)
    (line,) = observations(rules, "t", b'{"type": "other"}', AT, "dev")
    assert isinstance(line, LogLine)


@pytest.mark.parametrize(
    ("condition", "payload", "holds"),
    [
        ("1", b'{"x": 1.0}', True),
        ("1.0", b'{"x": 1}', True),
        ("100", b'{"x": 1e2}', True),
        ("0.1", b'{"x": 0.1}', True),
        ("1", b'{"x": "1"}', True),
        ("1", b'{"x": true}', False),
        ("true", b'{"x": 1}', False),
        ("1", b'{"x": "1.0"}', False),
        ("9007199254740993", b'{"x": 9007199254740992}', False),
        ("nan", b'{"x": 1}', False),
    ],
)
def test_numbers_of_a_condition_are_compared_by_value(condition: str, payload: bytes, holds: bool) -> None:
    rule = MessageMapping("t", KIND.WAKE, when=(("/x", condition),))
    assert isinstance(seen(rule, payload), Wake) is holds


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b'{"s": "dancing"}', "is not mapped"),
        (b'{"t": 1}', "nothing at /s"),
        (b'{"s": NaN}', "not JSON"),
        (b"[" * 60000, "not JSON"),
        (b" " * 70000, "are more than"),
    ],
)
def test_unmappable_message_becomes_a_log_line_with_the_reason(payload: bytes, reason: str) -> None:
    line = seen(MessageMapping("t", KIND.STATUS, (("state", "/s"),)), payload)
    assert isinstance(line, LogLine)
    assert reason in line.text
    assert len(line.text) < 1500


@given(st.binary(max_size=300))
def test_no_payload_raises_an_error(payload: bytes) -> None:
    rules = [MessageMapping("t", kind, (("text", "/text"),)) for kind in (KIND.TRANSCRIPT, KIND.LOG)]
    assert observations(rules, "t", payload, AT, "dev")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [(r"ok \ud83d", "ok ?"), (r"ok \uD83D\uDE00", "ok \U0001f600"), (r"\\ud83d", r"\ud83d"), (r"\u00fcd", "üd")],
)
def test_half_a_character_is_replaced_since_no_log_can_store_it(sent: str, expected: str) -> None:
    rule = MessageMapping("t", KIND.TRANSCRIPT, (("text", "/text"),))
    assert seen(rule, b'{"text": "%b"}' % sent.encode()) == Transcript("dev", AT, expected)
    printed = f"DEBUG:root:Event(type='transcript', data={{'text': '{sent}'}}, payload=None)"
    message = message_of(printed)
    assert message is not None
    if "DE00" not in sent:  # Python prints a whole character as it is
        assert message["data"] == {"text": expected}


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ({"room": "hall", "level": 3}, (("room", "hall"), ("level", "3"))),
        ({"room": None}, (("room", ""),)),
        ([{"slotName": "room", "value": {"kind": "Unknown", "value": "hall"}}], (("room", "hall"),)),
        ([{"entity": "room", "value": "hall"}], (("room", "hall"),)),
        (None, ()),
    ],
)
def test_an_intent_is_mapped_with_its_slots(slots: object, expected: tuple[tuple[str, str], ...]) -> None:
    rule = MessageMapping(
        "t", KIND.INTENT, (("name", "/n"), ("slots", "/s"), ("score", "/c")), (("ON", "turn on"),), score_scale=100
    )
    assert seen(rule, {"n": "ON", "s": slots, "c": 50}) == Intent("dev", AT, "turn on", expected, 0.5)


def test_an_intent_without_its_slots_and_score_still_counts() -> None:
    rule = MessageMapping("t", KIND.INTENT, (("name", "/n"), ("slots", "/s"), ("score", "/c")))
    assert seen(rule, {"n": "stop"}) == Intent("dev", AT, "stop")
    assert seen(rule, {"n": None}) == Intent("dev", AT, "")


def test_values_nested_too_deeply_to_show_are_a_log_line() -> None:
    rule = MessageMapping("t", KIND.TRANSCRIPT, (("text", "/t"),))
    for depth in range(900, 1000):
        assert observations([rule], "t", b'{"t":' + b"[" * depth + b"]" * depth + b"}", AT, "dev")


def test_messages_that_are_lines_give_what_the_lines_give(tmp_path: Path) -> None:
    (tmp_path / "box.yaml").write_text(
        """
device: box
wake_phrases: [alexa]
console: {topic: "{device}/log"}
lines:
  - {match: almost WAKE, kind: log, fields: {text: near miss}}
  - {match: WAKE, kind: wake}
  - {match: '^do (?P<name>\\w+)(?: (?P<slot>\\w+)=(?P<value>\\w*))*$', kind: intent}
""",
        encoding="utf-8",
    )
    profile = load_profile("box.yaml", beside=tmp_path)
    for text in ("almost WAKE", "WAKE", "do heat room=bath degrees=21", "do heat\r\n", "WAKE\r\n\ndo heat\nWAKE"):
        message = observations(for_device(profile.mappings, "box"), "box/log", text.encode(), AT, "dev")
        assert message == Console(profile, "dev").feed(text.encode() + b"\n", AT)


@pytest.mark.parametrize("slots", [7, "text", [1], [{"value": "x"}]])
def test_slots_of_another_shape_are_a_log_line(slots: object) -> None:
    rule = MessageMapping("t", KIND.INTENT, (("name", "/n"), ("slots", "/s")))
    line = seen(rule, {"n": "ON", "s": slots})
    assert isinstance(line, LogLine)
    assert "slot" in line.text


def test_topics_use_the_device_name_from_the_bench() -> None:
    (rule,) = for_device([MessageMapping("a/{device}/b", KIND.INTENT, (("name", "/n"),), score_scale=7)], "one")
    assert (rule.topic, rule.score_scale) == ("a/one/b", 7)


ARRIVED = Stamp(1.0)
TWO = LineMapping(
    "wakeword detected",
    KIND.WAKE,
    more=(r"model index:(?P<model>\d+), word index:(?P<word>\d+)",),
    fields=(("phrase", "{model}.{word}"),),
    values=(("1.2", "hi esp"),),
    within_lines=3,
    within_s=0.5,
)
BRACES = LineMapping(
    r"^\{$",
    KIND.INTENT,
    more=("understood : '(?P<understood>\\w+)'", "intent : '(?P<name>\\w+)'", "'(?P<slot>\\w+)' : '(?P<value>\\w*)'"),
    until=r"^\}$",
    when=(("understood", "true"),),
    within_lines=20,
)


def said(lines: LineRules, *texts: str, stamp: Stamp = ARRIVED) -> list[Observation]:
    return [
        observation
        for text in texts
        for reading in lines.apply(text, text, stamp)
        for observation in reading.observations
    ]


def lines(*mappings: LineMapping, takes_audio: bool = False) -> LineRules:
    return LineRules(mappings, ConsoleSettings(), "dev", takes_audio=takes_audio)


def test_wake_event_is_reported_without_details_that_come_too_late() -> None:
    reader = lines(TWO)
    said(reader, "wakeword detected")
    assert reader.expire(1.4) == []
    (late,) = reader.expire(1.6)
    assert late.observations == (Wake("dev", ARRIVED),)
    said(reader, "wakeword detected", "x", "y")
    assert said(reader, "z") == [Wake("dev", ARRIVED)]
    said(reader, "wakeword detected")
    assert said(reader, "wakeword detected") == [Wake("dev", ARRIVED)]
    assert [reading.observations for reading in reader.flush()] == [(Wake("dev", ARRIVED),)]


def test_an_object_over_several_lines_is_one_intent() -> None:
    reader = lines(BRACES)
    text = ("{", "  understood : 'true',", "  intent : 'order',", "  'size' : 'large',", "  'what' : 'tea',", "}")
    assert said(reader, *text) == [Intent("dev", ARRIVED, "order", (("size", "large"), ("what", "tea")))]
    assert said(reader, "{", "  understood : 'false',", "}") == []
    (unclear,) = said(reader, "{", "  understood : 'true',", "}")
    assert isinstance(unclear, LogLine)
    assert "no name" in unclear.text


def test_the_last_line_of_an_observation_fills_in_fields() -> None:
    last_line = LineMapping(
        "^do", KIND.INTENT, more=("^room",), until=r"^(?P<name>\w+) (?P<score>\S+) (?P<slot_at>\w+)$"
    )
    assert said(lines(last_line), "do", "room", "heat 0.5 bath") == [
        Intent("dev", ARRIVED, "heat", (("at", "bath"),), 0.5)
    ]


def test_the_first_rule_that_fits_takes_the_line() -> None:
    first = LineMapping("wake (?P<phrase>one)", KIND.WAKE)
    status = LineMapping("(?P<state>\\w+)$", KIND.STATUS, values=(("one", "idle"), ("go", "listening")))
    reader = lines(first, status)
    assert said(reader, "wake one", "go") == [
        Wake("dev", ARRIVED, "one"),
        Status("dev", ARRIVED, DeviceState.LISTENING),
    ]
    (unmapped,) = said(reader, "dancing")
    assert isinstance(unmapped, LogLine)
    assert "'dancing' is not mapped" in unmapped.text


def test_a_condition_leaves_the_line_to_later_rules() -> None:
    rule = LineMapping(r"(?P<what>\w+) (?P<text>.*)", KIND.TRANSCRIPT, when=(("what", "heard"),))
    other = LineMapping(r"(?P<what>\w+) (?P<text>.*)", KIND.RESPONSE)
    reader = lines(rule, other)
    assert said(reader, "heard a word") == [Transcript("dev", ARRIVED, "a word")]
    assert [observation.kind for observation in said(reader, "said a word")] == ["response_text"]


def test_all_pairs_of_one_line_are_slots_in_their_order() -> None:
    reader = lines(LineMapping(r"^do (?P<name>\w+)(?: (?P<slot>\w+)=(?P<value>\w*))*$", KIND.INTENT))
    assert said(reader, "do heat room=bath degrees=21 room=hall") == [
        Intent("dev", ARRIVED, "heat", (("room", "bath"), ("degrees", "21"), ("room", "hall")))
    ]
    assert said(reader, "do heat room=bath") == [Intent("dev", ARRIVED, "heat", (("room", "bath"),))]
    assert said(reader, "do heat") == [Intent("dev", ARRIVED, "heat")]
