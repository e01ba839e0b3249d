"""What the assistant understands of a query, and how faults spoil it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from harness.lab.assistant.dialogue import UNKNOWN, Dialogue, Reply
from harness.lab.assistant.faults import Faults
from harness.lab.assistant.frame import NOTHING, Moment, ToldFrame, acted_out, misunderstood
from harness.lab.assistant.settings import AssistantSettings, Deed, FaultRule
from harness.model.understanding import Slot

NOON = datetime(2024, 2, 28, 13, 5, tzinfo=UTC)


def at(seconds: float) -> Moment:
    return Moment(100.0 + seconds, NOON + timedelta(seconds=seconds))


def heard(text: str) -> Reply:
    return Dialogue(AssistantSettings()).hear(text, at(0))


def words(frame: ToldFrame) -> str:
    """As "intent#intent concept=value concept=value"."""
    told = "#".join(frame.intents)
    return " ".join([told, *(f"{slot.concept}={slot.value}" for slot in frame.slots)])


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("What time is it?", "get_time"),
        ("What's the date today?", "get_date day=today"),
        ("What is the date?", "get_date"),
        ("7 times 8", "calculate number=7 operator=times number=8"),
        ("15% of 80", "calculate number=15 operator=percent of number=80"),
        ("five divided by zero", "calculate number=5 operator=divided by number=0"),
        ("the square root of eighty one", "calculate operator=square root of number=81"),
        ("how many hours are in 3 days", "convert_time duration=3 days unit=hour"),
        ("What are the names of the moons of Mars?", "ask_fact topic=moons of mars"),
        ("What color is my shirt?", "ask_unknowable"),
        ("Set a timer for ten minutes.", "set_timer duration=10 minutes"),
        ("Set a timer", "set_timer"),
        ("Set a timer for 40 hours", "set_timer duration=40 hours"),
        ("Set an alarm for 7:30 a.m.", "set_alarm time=7:30 am"),
        ("Set an alarm for one", "set_alarm time=1"),
        ("cancel the timer", "cancel_timer"),
        ("how much time is left", "check_timer"),
        ("what alarms do I have", "check_alarms"),
        ("Add some milk to my shopping list.", "add_to_list item=milk"),
        ("add milk and bread to my shopping list", "add_to_list item=milk item=bread"),
        ("what's on my list", "read_list"),
        ("clear my shopping list", "clear_list"),
        ("What's the weather in Lincoln tomorrow?", "get_weather place=lincoln day=tomorrow"),
        ("What's the weather in Paris?", "get_weather place=paris"),
        ("cancel", "cancel"),
        ("thank you", "thank"),
        ("When is the next full moon?", ""),
        ("", ""),
    ],
)
def test_what_is_meant_is_told_with_its_values(text: str, frame: str) -> None:
    assert words(heard(text).frame) == frame


@pytest.mark.parametrize(
    ("text", "frame", "said"),
    [
        (
            "Set a timer for five minutes, and add milk to my shopping list.",
            "add_to_list#set_timer duration=5 minutes item=milk",
            "Timer set for 5 minutes. I added milk to your shopping list.",
        ),
        (
            "what is 5 plus 3 and what time is it and add eggs to the list",
            "add_to_list#calculate#get_time number=5 operator=plus number=3 item=eggs",
            "5 plus 3 is 8. It is 1 oh 5 p.m. I added eggs to your shopping list.",
        ),
        ("set a timer for an hour and 30 seconds", "set_timer duration=1 hour and 30 seconds", None),
    ],
)
def test_two_wishes_in_one_query_are_two_intents(text: str, frame: str, said: str | None) -> None:
    reply = heard(text)
    assert words(reply.frame) == frame
    if said is not None:
        assert reply.text == said


def test_two_wishes_of_which_one_makes_no_sense_do_nothing_twice() -> None:
    talk = Dialogue(AssistantSettings())
    reply = talk.hear("add milk to my list and tell me a gobbledygook", at(0))
    assert words(reply.frame) == "add_to_list item=milk"
    assert talk.shopping.things == ["milk"]


def test_the_answer_to_a_question_back_is_understood_by_the_question() -> None:
    talk = Dialogue(AssistantSettings())
    talk.hear("Set an alarm for one", at(0))
    assert words(talk.hear("p.m.", at(2)).frame) == "set_alarm time=1 pm"
    talk.hear("what's the weather in Lincoln", at(10))
    assert words(talk.hear("Nebraska", at(12)).frame) == "get_weather place=lincoln nebraska"
    assert words(talk.hear("and tomorrow", at(14)).frame) == "get_weather day=tomorrow"


def test_what_is_told_has_intents_in_one_name_and_slots_in_a_list() -> None:
    frame = heard("set a timer for 2 minutes and add milk and milk to my list").frame
    assert frame.told() == {
        "name": "add_to_list#set_timer",
        "slots": [
            {"name": "duration", "value": "2 minutes"},
            {"name": "item", "value": "milk"},
            {"name": "item", "value": "milk"},
        ],
    }
    assert heard("gobbledygook").text == UNKNOWN
    assert heard("gobbledygook").frame.told() == {"name": "", "slots": []}


def slip(deed: Deed, as_: str = "", slot: str = "") -> FaultRule:
    return FaultRule(deed, heard_as=as_, slot=slot)


TIMER = ToldFrame(("set_timer",), (Slot("duration", "10 minutes"), Slot("name", "tea")))


@pytest.mark.parametrize(
    ("slips", "frame"),
    [
        ([slip(Deed.OTHER_INTENT, "read_list")], "read_list duration=10 minutes name=tea"),
        ([slip(Deed.LOSE_SLOT)], "set_timer name=tea"),
        ([slip(Deed.LOSE_SLOT, slot="name")], "set_timer duration=10 minutes"),
        ([slip(Deed.LOSE_SLOT, slot="room")], "set_timer duration=10 minutes name=tea"),
        ([slip(Deed.WRONG_VALUE, "2 minutes")], "set_timer duration=2 minutes name=tea"),
        ([slip(Deed.WRONG_VALUE, "egg", "name"), slip(Deed.LOSE_SLOT)], "set_timer name=egg"),
        ([slip(Deed.LOSE_SLOT), slip(Deed.LOSE_SLOT), slip(Deed.LOSE_SLOT)], "set_timer"),
    ],
)
def test_a_fault_spoils_what_it_names(slips: list[FaultRule], frame: str) -> None:
    assert words(misunderstood(TIMER, slips)) == frame


def test_where_nothing_was_understood_there_is_nothing_to_spoil() -> None:
    assert misunderstood(NOTHING, [slip(Deed.OTHER_INTENT, "read_list"), slip(Deed.LOSE_SLOT)]) == NOTHING


def test_it_says_what_it_believes_to_have_been_asked() -> None:
    assert acted_out(ToldFrame(("set_timer",), (Slot("duration", "2 minutes"),))) == "Okay, set timer, 2 minutes."
    assert acted_out(ToldFrame(("read_list",))) == "Okay, read list."


def test_faults_of_understanding_strike_by_the_words_and_leave_them_alone() -> None:
    rule = FaultRule(Deed.LOSE_SLOT, when=re.compile("timer", re.I), times=1)
    faults = Faults((rule,), 0)
    assert faults.worsen(1, "what time is it").slips == ()
    struck = faults.worsen(2, "Set a timer for ten minutes")
    assert (struck.text, struck.slips) == ("Set a timer for ten minutes", (rule,))
    assert faults.worsen(3, "Set a timer for ten minutes").slips == ()
