from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.wire.lines import Unmapped
from harness.devices.wire.mappings import for_device, observations, pointed, topic_matches
from harness.model.bench import MessageMapping, ObservationKind
from harness.model.observation import DeviceState, Intent, LogLine, ResponseText, StateTold, Status, Transcript, Wake
from harness.model.time import Stamp

AT = Stamp(5.0, 0.1)
KIND = ObservationKind


def seen(mapping: MessageMapping, payload: object, topic: str = "t") -> object:
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    (one,) = observations([mapping], topic, raw, AT, "dev")
    return one


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
def test_filters_match_as_mqtt_says(topic_filter: str, topic: str, fits: bool) -> None:
    assert topic_matches(topic_filter, topic) is fits


@given(st.lists(st.text("ab", max_size=2), min_size=1, max_size=4))
def test_a_topic_matches_itself_and_the_rest_sign(levels: list[str]) -> None:
    topic = "/".join(levels)
    assert topic_matches(topic, topic)
    assert topic_matches("#", topic)
    assert topic_matches("/".join("+" * len(levels)), topic)


def test_pointers_are_those_of_the_standard() -> None:
    document: object = {"a": [{"b/c": 1, "d~e": 2}], "": 3}
    assert pointed(document, "/a/0/b~1c") == 1  # type: ignore[arg-type]
    assert pointed(document, "/a/0/d~0e") == 2  # type: ignore[arg-type]
    assert pointed(document, "/") == 3  # type: ignore[arg-type]
    assert pointed(document, "") is document  # type: ignore[arg-type]
    for wrong in ("/a/1", "/a/-1", "/a/x", "/b", "/a/0/b~1c/x", "/a/²"):
        with pytest.raises(Unmapped):
            pointed(document, wrong)  # type: ignore[arg-type]


def test_each_kind() -> None:
    wake = MessageMapping("t", KIND.WAKE, (("phrase", "/p"), ("score", "/s")))
    assert seen(wake, {"p": "alexa", "s": 0.5}) == Wake("dev", AT, "alexa", 0.5)
    assert seen(wake, {"p": "alexa", "s": None}) == Wake("dev", AT, "alexa", None)
    assert seen(MessageMapping("t", KIND.WAKE), b"anything") == Wake("dev", AT)
    text = MessageMapping("t", KIND.TRANSCRIPT, (("text", "/t"), ("final", "/f")))
    assert seen(text, {"t": "hi", "f": False}) == Transcript("dev", AT, "hi", False)
    assert seen(MessageMapping("t", KIND.RESPONSE, (("text", ""),)), b"plain words") == ResponseText(
        "dev", AT, "plain words"
    )
    assert seen(MessageMapping("t", KIND.LOG, (("text", "/a"),)), {"a": {"b": 1}}) == LogLine("dev", AT, '{"b": 1}')
    status = MessageMapping("t", KIND.STATUS, (("state", "/s"), ("detail", "/d")), values=(("busy", "thinking"),))
    assert seen(status, {"s": "busy", "d": "why"}) == Status("dev", AT, DeviceState.THINKING, "why")
    assert seen(status, {"s": "idle"}) == Status("dev", AT, DeviceState.IDLE)


def test_a_piece_of_state_has_a_name_and_may_be_no_more() -> None:
    rule = MessageMapping("t", KIND.STATE, (("name", "/name"), ("value", "/value")), (("t1", "timer"),))
    assert seen(rule, {"name": "t1", "value": "10 minutes"}) == StateTold("dev", AT, "timer", "10 minutes")
    assert seen(rule, {"name": "list", "value": ""}) == StateTold("dev", AT, "list", "")
    assert isinstance(seen(rule, {"name": "list"}), LogLine)
    of_text = MessageMapping("t", KIND.STATE, match="^(?P<name>[a-z]+)=(?P<value>.*)")
    (told,) = observations([of_text], "t", b"timer=5 minutes", AT, "dev")
    assert told == StateTold("dev", AT, "timer", "5 minutes")


def test_conditions_choose_among_mappings() -> None:
    rules = [
        MessageMapping("t", KIND.WAKE, when=(("/type", "wake"),)),
        MessageMapping("t", KIND.TRANSCRIPT, (("text", "/text"),), when=(("/type", "heard"), ("/ok", "true"))),
    ]
    payload = json.dumps({"type": "heard", "ok": True, "text": "hi"}).encode()
    assert observations(rules, "t", payload, AT, "dev") == (Transcript("dev", AT, "hi"),)
    (line,) = observations(rules, "t", b'{"type": "other"}', AT, "dev")
    assert isinstance(line, LogLine)


def test_one_message_may_be_several_observations() -> None:
    rules = [
        MessageMapping("t", KIND.TRANSCRIPT, (("text", "/q"),)),
        MessageMapping("t", KIND.RESPONSE, (("text", "/a"),)),
    ]
    found = observations(rules, "t", b'{"q": "hi", "a": "ho"}', AT, "dev")
    assert found == (Transcript("dev", AT, "hi"), ResponseText("dev", AT, "ho"))


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
def test_what_does_not_fit_is_a_log_line_that_says_why(payload: bytes, reason: str) -> None:
    one = seen(MessageMapping("t", KIND.STATUS, (("state", "/s"),)), payload)
    assert isinstance(one, LogLine)
    assert reason in one.text
    assert len(one.text) < 1500


@given(st.binary(max_size=300))
def test_no_payload_raises(payload: bytes) -> None:
    rules = [MessageMapping("t", kind, (("text", "/text"),)) for kind in (KIND.TRANSCRIPT, KIND.LOG)]
    assert observations(rules, "t", payload, AT, "dev")


@pytest.mark.parametrize(
    ("slots", "wanted"),
    [
        ({"room": "hall", "level": 3}, (("room", "hall"), ("level", "3"))),
        ([{"slotName": "room", "value": {"kind": "Unknown", "value": "hall"}}], (("room", "hall"),)),
        ([{"entity": "room", "value": "hall"}], (("room", "hall"),)),
        (None, ()),
    ],
)
def test_an_intent_with_its_slots(slots: object, wanted: tuple[tuple[str, str], ...]) -> None:
    rule = MessageMapping(
        "t", KIND.INTENT, (("name", "/n"), ("slots", "/s"), ("score", "/c")), (("ON", "turn on"),), score_scale=100
    )
    assert seen(rule, {"n": "ON", "s": slots, "c": 50}) == Intent("dev", AT, "turn on", wanted, 0.5)


@pytest.mark.parametrize("slots", [7, "text", [1], [{"value": "x"}]])
def test_slots_of_another_shape_are_a_log_line(slots: object) -> None:
    rule = MessageMapping("t", KIND.INTENT, (("name", "/n"), ("slots", "/s")))
    one = seen(rule, {"n": "ON", "s": slots})
    assert isinstance(one, LogLine)
    assert "slot" in one.text


def test_a_text_payload_is_searched_like_a_console_line() -> None:
    rules = [
        MessageMapping("t", KIND.WAKE, match="Detected '(?P<phrase>[^']+)'.* is (?P<score>[0-9.]+)"),
        MessageMapping("t", KIND.TRANSCRIPT, (("text", "{who}: {said}"),), match='(?P<who>I) heard "(?P<said>.*)"'),
    ]
    found = observations(rules, "t", b"\x1b[36m[D] Detected 'Okay Nabu' with average is 0.97\x1b[0m", AT, "dev")
    assert found == (Wake("dev", AT, "Okay Nabu", 0.97),)
    assert observations(rules, "t", b'I heard "yes"', AT, "dev") == (Transcript("dev", AT, "I: yes"),)
    (line,) = observations(rules, "t", b"nothing", AT, "dev")
    assert isinstance(line, LogLine)


def test_topics_are_those_of_the_device_on_the_bench() -> None:
    (rule,) = for_device([MessageMapping("a/{device}/b", KIND.INTENT, (("name", "/n"),), score_scale=7)], "one")
    assert (rule.topic, rule.score_scale) == ("a/one/b", 7)
