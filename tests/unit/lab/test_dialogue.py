"""What the assistant understands of a query, and how faults spoil it."""

from __future__ import annotations

import re
from dataclasses import replace
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


def dialogue(memory_s: float = 8.0) -> Dialogue:
    return Dialogue(replace(AssistantSettings(), memory_s=memory_s))


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        ("What time is it?", "It is 1 oh 5 p.m."),
        ("Alexa, what time is it?", "It is 1 oh 5 p.m."),
        ("What's the date today?", "Today is Wednesday, February 28, 2024."),
        ("What day is tomorrow?", "Tomorrow is Thursday, February 29, 2024."),
        ("7 times 8", "7 times 8 is 56."),
        ("What is seven times eight?", "7 times 8 is 56."),
        ("what is 7 x 8", "7 times 8 is 56."),
        ("What is 12 plus 30?", "12 plus 30 is 42."),
        ("What is 12+30?", "12 plus 30 is 42."),
        ("what's fifteen per cent of eighty", "15 percent of 80 is 12."),
        ("15% of 80", "15 percent of 80 is 12."),
        ("one hundred and two minus twenty-five", "102 minus 25 is 77."),
        ("what is ten divided by four", "10 divided by 4 is 2.5."),
        ("five divided by zero", "Nothing can be divided by zero."),
        ("the square root of eighty one", "The square root of 81 is 9."),
        ("What are the names of the moons of Mars?", "The moons of Mars are Phobos and Deimos."),
        ("What are the two largest planets in the solar system?", "The two largest planets are Jupiter and Saturn."),
        ("What color is my shirt?", "I can't know that, because I can't see you."),
        ("When is the next full moon?", UNKNOWN),
        ("What are the names of the movies of Mars?", UNKNOWN),
        ("Set a timer for ten minutes.", "Timer set for 10 minutes."),
        ("set a timer for an hour and 30 seconds", "Timer set for 1 hour and 30 seconds."),
        ("Set an alarm for 7:30 a.m.", "Alarm set for 7 30 a.m."),
        ("Set an alarm for 14:00", "Alarm set for 2 p.m."),
        ("Add milk to my shopping list.", "I added milk to your shopping list."),
        ("What's on my shopping list?", "Your shopping list is empty."),
        ("What's the weather in Paris?", "Sorry, I have no weather for Paris."),
        ("What's the weather?", "Sorry, I have no weather here."),
        ("Cancel.", "Okay."),
        ("", ""),
        ("Alexa.", ""),
    ],
)
def test_one_question_one_answer(heard: str, said: str) -> None:
    reply = dialogue().hear(heard, at(0))
    assert (reply.text, reply.open) == (said, False)


def test_an_alarm_without_its_half_is_asked_back() -> None:
    talk = dialogue()
    reply = talk.hear("Set an alarm for one.", at(0))
    assert (reply.text, reply.open) == ("Is that a.m. or p.m.?", True)
    assert talk.is_open(at(1))
    assert talk.hear("p.m.", at(3)).text == "Alarm set for 1 p.m."
    assert not talk.is_open(at(3))
    assert talk.timers.alarms[0].at == datetime(2024, 2, 29, 13, 0, tzinfo=UTC)


def test_a_question_back_is_forgotten_after_a_while() -> None:
    talk = dialogue(memory_s=2)
    talk.hear("Set an alarm for one.", at(0))
    talk.spoken(at(2))
    assert talk.hear("p.m.", at(9.9)).text == "Alarm set for 1 p.m."
    talk.hear("Set an alarm for one.", at(20))
    talk.spoken(at(22))
    assert talk.hear("p.m.", at(30.1)).text == UNKNOWN


def test_cancelling_an_open_dialogue_is_silent_and_final() -> None:
    for word in ("Cancel.", "Never mind.", "stop", "Nevermind"):
        talk = dialogue()
        talk.hear("Set an alarm for one.", at(0))
        assert talk.hear(word, at(2)).text == ""
        assert talk.hear("p.m.", at(3)).text == UNKNOWN
        assert talk.timers.alarms == []


@pytest.mark.parametrize(
    ("city", "question", "answer", "end"),
    [
        ("Lincoln", "Do you mean Lincoln, Nebraska, or Lincoln, England?", "Nebraska", "Lincoln, Nebraska"),
        (
            "St. George",
            "Do you mean Saint George, Utah, or Saint George, Bermuda?",
            "the second",
            "Saint George, Bermuda",
        ),
    ],
)
def test_which_place_is_meant(city: str, question: str, answer: str, end: str) -> None:
    talk = dialogue()
    reply = talk.hear(f"What's the weather in {city}?", at(0))
    assert (reply.text, reply.open) == (question, True)
    assert talk.hear(answer, at(4)).text == f"Sorry, I have no weather for {end}."


def test_follow_ups_work_within_the_memory_and_not_after() -> None:
    talk = dialogue(memory_s=5)
    talk.hear("what is seven times eight", at(0))
    assert talk.hear("add five to that", at(4)).text == "56 plus 5 is 61."
    assert talk.hear("and divide it by two", at(8)).text == "61 divided by 2 is 30.5."
    assert talk.hear("add five to that", at(14)).text == UNKNOWN
    talk.hear("what is the date today", at(20))
    assert talk.hear("What about tomorrow?", at(22)).text == "Tomorrow is Thursday, February 29, 2024."
    assert talk.hear("and the day after tomorrow", at(24)).text == "That is Friday, March 1, 2024."
    talk.hear("how many hours are in 3 days", at(30))
    assert talk.hear("And in minutes?", at(33)).text == "3 days is 4320 minutes."


def test_without_memory_no_follow_up_works() -> None:
    talk = dialogue(memory_s=0)
    talk.hear("what is seven times eight", at(0))
    assert talk.hear("add five to that", at(0.5)).text == UNKNOWN


def test_timers_and_alarms_go_off_once_and_on_time() -> None:
    talk = dialogue()
    talk.hear("Set a timer for 10 seconds", at(0))
    talk.hear("Set an alarm for 1:06 pm", at(0))
    assert talk.due(at(9.9)) == ()
    assert talk.hear("How much time is left?", at(7)).text == "There are 3 seconds left."
    assert talk.due(at(10)) == ("Your timer for 10 seconds is done.",)
    assert talk.due(at(59)) == ()
    assert talk.due(at(60)) == ("It is 1 oh 6 p.m. This is your alarm.",)
    assert talk.due(at(61)) == ()
    talk.hear("Set a timer for 10 seconds", at(70))
    assert talk.hear("Cancel the timer", at(71)).text == "Timer cancelled."
    assert talk.due(at(90)) == ()


def test_a_missing_length_is_asked_for() -> None:
    talk = dialogue()
    assert talk.hear("Set a timer", at(0)).open
    assert talk.hear("five minutes", at(3)).text == "Timer set for 5 minutes."


def test_the_list_is_kept() -> None:
    talk = dialogue()
    talk.hear("Add milk to my shopping list.", at(0))
    talk.hear("Put some bread on the list", at(1))
    assert talk.hear("What's on my shopping list?", at(2)).text == "On your shopping list: milk and bread."
    talk.hear("Clear my shopping list", at(3))
    assert talk.hear("Read my shopping list", at(4)).text == "Your shopping list is empty."


def test_it_asks_back_once_and_a_new_question_is_a_new_question() -> None:
    talk = dialogue()
    assert talk.hear("Set a timer", at(0)).open
    assert talk.hear("What is seven times eight?", at(2)).text == "7 times 8 is 56."
    assert talk.hear("Set a timer", at(3)).open
    assert talk.hear("gobbledygook", at(5)).text == UNKNOWN
    assert talk.hear("five minutes", at(6)).text == UNKNOWN
    assert talk.hear("Set an alarm for one", at(7)).open
    assert talk.hear("Can't cancel.", at(9)).text == ""


def test_what_was_forgotten_is_not_brought_back_by_a_later_answer() -> None:
    one = dialogue(memory_s=8)
    one.hear("what is 12 plus 30", at(0))
    one.spoken(at(2))
    assert "47" not in one.hear("add five to that", at(20)).text
    one.spoken(at(22))
    assert "47" not in one.hear("add five to that", at(24)).text


def test_it_counts_until_it_was_called_however_long_it_takes_to_understand() -> None:
    one = dialogue(memory_s=8)
    one.hear("what is 12 plus 30", at(0))
    one.spoken(at(2))
    called = replace(at(16), called_s=at(9.9).now_s)
    assert one.hear("add five to that", called).text == "42 plus 5 is 47."


@pytest.mark.parametrize(
    ("heard", "ends"),
    [("Stop.", True), ("Alexa, stop!", True), ("thank you", True), ("never mind", True), ("nice weather", False)],
)
def test_some_words_end_the_ringing(heard: str, ends: bool) -> None:
    assert dialogue().ends_ringing(heard) is ends


def test_its_state_follows_what_it_does_and_not_what_it_says() -> None:
    mind = dialogue()
    assert mind.state == {"timer": "", "alarm": "", "shopping_list": ""}
    mind.hear("set a timer for ten minutes", at(0))
    mind.hear("add milk to my shopping list", at(20))
    mind.hear("set an alarm for 1 a.m.", at(40))
    kept = {"timer": "10 minutes", "alarm": "01:00", "shopping_list": "milk"}
    assert mind.state == kept
    before = mind.kept
    assert mind.hear("set a timer for five minutes", at(60)).text == "Timer set for 5 minutes."
    assert mind.hear("clear my shopping list", at(80)).text == "Your shopping list is empty now."
    assert mind.hear("cancel my alarm", at(100)).text == "Alarm cancelled."
    assert mind.state == {"timer": "10 minutes, 5 minutes", "alarm": "", "shopping_list": ""}
    mind.put_back(before)
    assert mind.state == kept
    mind.hear("cancel the timer", at(120))
    assert mind.state == {**kept, "timer": ""}
    mind.due(at(86_400))
    assert mind.state["alarm"] == ""


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
