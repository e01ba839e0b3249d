"""What the assistant understands of a query, and how faults spoil it."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.lab.assistant.dialogue import UNKNOWN, Dialogue, Reply
from harness.lab.assistant.faults import Faults
from harness.lab.assistant.frame import NOTHING, Moment, ReportedFrame, misunderstood, wrong_reply
from harness.lab.assistant.settings import AssistantSettings, FaultAction, FaultRule, ReportKind, read_settings
from harness.model.errors import InputError
from harness.model.understanding import Slot
from tests.files import file_with

QUESTIONS = [*csv.DictReader((Path(__file__).parents[2] / "data" / "assistant_questions.csv").read_text().splitlines())]
NOON = datetime(2024, 2, 28, 13, 5, tzinfo=UTC)
BEYOND_FLOATS = "9" * 309


def at(seconds: float) -> Moment:
    return Moment(100.0 + seconds, NOON + timedelta(seconds=seconds))


def dialogue(memory_s: float = 8.0) -> Dialogue:
    return Dialogue(replace(AssistantSettings(), memory_s=memory_s))


@pytest.mark.parametrize("row", QUESTIONS, ids=lambda row: row["heard"])
def test_each_query_gets_its_answer_and_intents(row: dict[str, str]) -> None:
    reply = dialogue().reply_to(row["heard"], at(0))
    assert (reply.text, words(reply.frame)) == (row["said"], row["meant"])
    assert reply.open is row["said"].endswith("?")


def test_an_ambiguous_alarm_time_is_asked_back() -> None:
    talk = dialogue()
    reply = talk.reply_to("Set an alarm for one.", at(0))
    assert (reply.text, reply.open) == ("Is that a.m. or p.m.?", True)
    assert talk.is_open(at(1))
    assert talk.reply_to("p.m.", at(3)).text == "Alarm set for 1 p.m."
    assert not talk.is_open(at(3))
    assert talk.timers.alarms[0].at == datetime(2024, 2, 29, 13, 0, tzinfo=UTC)


def test_a_question_back_is_forgotten_after_a_while() -> None:
    talk = dialogue(memory_s=2)
    talk.reply_to("Set an alarm for one.", at(0))
    talk.note_reply_spoken(at(2))
    assert talk.reply_to("p.m.", at(9.9)).text == "Alarm set for 1 p.m."
    talk.reply_to("Set an alarm for one.", at(20))
    talk.note_reply_spoken(at(22))
    assert talk.reply_to("p.m.", at(30.1)).text == UNKNOWN


def test_cancelling_an_open_dialogue_is_silent_and_final() -> None:
    for word in ("Cancel.", "Never mind.", "stop", "Nevermind"):
        talk = dialogue()
        talk.reply_to("Set an alarm for one.", at(0))
        assert talk.reply_to(word, at(2)).text == ""
        assert talk.reply_to("p.m.", at(3)).text == UNKNOWN
        assert talk.timers.alarms == []


@pytest.mark.parametrize(
    ("memory_s", "turns"),
    [
        pytest.param(
            5,
            [
                (0, "what is seven times eight", "7 times 8 is 56."),
                (4, "add five to that", "56 plus 5 is 61."),
                (8, "and divide it by two", "61 divided by 2 is 30.5."),
                (14, "add five to that", UNKNOWN),
                (20, "what is the date today", "Today is Wednesday, February 28, 2024."),
                (22, "What about tomorrow?", "Tomorrow is Thursday, February 29, 2024."),
                (24, "and the day after tomorrow", "That is Friday, March 1, 2024."),
            ],
            id="follow-ups-within-the-memory-and-not-after",
        ),
        pytest.param(
            0,
            [(0, "what is seven times eight", "7 times 8 is 56."), (0.5, "add five to that", UNKNOWN)],
            id="no-follow-up-without-memory",
        ),
        pytest.param(
            8,
            [
                (0, "Add milk to my shopping list.", "I added milk to your shopping list."),
                (1, "Put some bread on the list", "I added bread to your shopping list."),
                (2, "What's on my shopping list?", "On your shopping list: milk and bread."),
                (3, "Clear my shopping list", "Your shopping list is empty now."),
                (4, "Read my shopping list", "Your shopping list is empty."),
            ],
            id="the-list-is-kept",
        ),
        pytest.param(
            8,
            [
                (0, "Set a timer", "For how long?"),
                (1, "five minutes", "Timer set for 5 minutes."),
                (2, "Set a timer", "For how long?"),
                (3, "What is seven times eight?", "7 times 8 is 56."),
                (4, "Set a timer", "For how long?"),
                (5, "gobbledygook", UNKNOWN),
                (6, "five minutes", UNKNOWN),
                (7, "Set an alarm for one", "Is that a.m. or p.m.?"),
                (9, "Can't cancel.", ""),
            ],
            id="it-asks-back-once-and-a-new-question-is-a-new-question",
        ),
        pytest.param(
            8,
            [
                (0, "Set a timer for five minutes and set an alarm", "Timer set for 5 minutes. For what time?"),
                (2, "seven a.m.", "Alarm set for 7 a.m."),
                (3, "How much time is left?", "There are 4 minutes and 57 seconds left."),
            ],
            id="the-second-of-two-requests-is-asked-back",
        ),
        pytest.param(
            8,
            [
                (0, "What's the weather in Lincoln?", "Do you mean Lincoln, Nebraska, or Lincoln, England?"),
                (4, "Nebraska", "Sorry, I have no weather for Lincoln, Nebraska."),
                (9, "What's the weather in St. George?", "Do you mean Saint George, Utah, or Saint George, Bermuda?"),
                (14, "the second", "Sorry, I have no weather for Saint George, Bermuda."),
            ],
            id="which-place-is-meant",
        ),
        pytest.param(
            8,
            [
                (0, f"what is {BEYOND_FLOATS} plus one", "That number is too large for me."),
                (1, f"what is {BEYOND_FLOATS} percent of 80", "That number is too large for me."),
                (2, f"what is 7 divided by {BEYOND_FLOATS}", "That number is too large for me."),
            ],
            id="an-operand-beyond-all-floats",
        ),
    ],
)
def test_a_conversation_gives_the_expected_replies(memory_s: float, turns: list[tuple[float, str, str]]) -> None:
    """turns: seconds, what is said to it, what it says; it is open after a question and only then."""
    talk = dialogue(memory_s)
    for seconds, heard, answer in turns:
        reply = talk.reply_to(heard, at(seconds))
        assert (reply.text, reply.open) == (answer, answer.endswith("?"))


def test_timers_and_alarms_go_off_once_and_on_time() -> None:
    talk = dialogue()
    talk.reply_to("Set a timer for 10 seconds", at(0))
    talk.reply_to("Set an alarm for 1:06 pm", at(0))
    assert talk.pop_due(at(9.9)) == ()
    assert talk.reply_to("How much time is left?", at(7)).text == "There are 3 seconds left."
    assert talk.pop_due(at(10)) == ("Your timer for 10 seconds is done.",)
    assert talk.pop_due(at(59)) == ()
    assert talk.pop_due(at(60)) == ("It is 1 oh 6 p.m. This is your alarm.",)
    assert talk.pop_due(at(61)) == ()
    talk.reply_to("Set a timer for 10 seconds", at(70))
    assert talk.reply_to("Cancel the timer", at(71)).text == "Timer cancelled."
    assert talk.pop_due(at(90)) == ()


@pytest.mark.parametrize(
    ("query", "answer", "state"),
    [
        ("cancel timer", "Timer cancelled.", ("", "01:00")),
        ("Please stop timers", "Timer cancelled.", ("", "01:00")),
        ("stop alarm", "Alarm cancelled.", ("10 minutes", "")),
        ("cancel alarms", "Alarm cancelled.", ("10 minutes", "")),
        ("cancel that", "Okay.", ("10 minutes", "01:00")),
        ("never mind timer", "Okay.", ("10 minutes", "01:00")),
    ],
)
def test_timers_and_alarms_are_cancelled_without_an_article(query: str, answer: str, state: tuple[str, str]) -> None:
    talk = dialogue()
    talk.reply_to("set a timer for ten minutes", at(0))
    talk.reply_to("set an alarm for 1 a.m.", at(20))
    assert talk.reply_to(query, at(40)).text == answer
    assert (talk.state["timer"], talk.state["alarm"]) == state
    assert talk.ends_ringing(query)


def test_expired_context_is_not_revived_by_a_later_answer() -> None:
    talk = dialogue(memory_s=8)
    talk.reply_to("what is 12 plus 30", at(0))
    talk.note_reply_spoken(at(2))
    assert "47" not in talk.reply_to("add five to that", at(20)).text
    talk.note_reply_spoken(at(22))
    assert "47" not in talk.reply_to("add five to that", at(24)).text


def test_memory_time_ends_at_the_next_wake_phrase() -> None:
    talk = dialogue(memory_s=8)
    talk.reply_to("what is 12 plus 30", at(0))
    talk.note_reply_spoken(at(2))
    called = replace(at(16), called_s=at(9.9).now_s)
    assert talk.reply_to("add five to that", called).text == "42 plus 5 is 47."


@pytest.mark.parametrize(
    ("heard", "ends"),
    [("Stop.", True), ("Alexa, stop!", True), ("thank you", True), ("never mind", True), ("nice weather", False)],
)
def test_some_words_end_the_ringing(heard: str, ends: bool) -> None:
    assert dialogue().ends_ringing(heard) is ends


def test_assistant_state_follows_actions_and_not_replies() -> None:
    mind = dialogue()
    assert mind.state == {"timer": "", "alarm": "", "shopping_list": ""}
    mind.reply_to("set a timer for ten minutes", at(0))
    mind.reply_to("add milk to my shopping list", at(20))
    mind.reply_to("set an alarm for 1 a.m.", at(40))
    state = {"timer": "10 minutes", "alarm": "01:00", "shopping_list": "milk"}
    assert mind.state == state
    before = mind.user_state
    assert mind.reply_to("set a timer for five minutes", at(60)).text == "Timer set for 5 minutes."
    assert mind.reply_to("clear my shopping list", at(80)).text == "Your shopping list is empty now."
    assert mind.reply_to("cancel my alarm", at(100)).text == "Alarm cancelled."
    assert mind.state == {"timer": "10 minutes, 5 minutes", "alarm": "", "shopping_list": ""}
    mind.restore_state(before)
    assert mind.state == state
    mind.reply_to("cancel the timer", at(120))
    assert mind.state == {**state, "timer": ""}
    mind.pop_due(at(86_400))
    assert mind.state["alarm"] == ""


def heard(text: str) -> Reply:
    return Dialogue(AssistantSettings()).reply_to(text, at(0))


def words(frame: ReportedFrame) -> str:
    """As "intent#intent concept=value concept=value"."""
    intents = "#".join(frame.intents)
    return " ".join([intents, *(f"{slot.concept}={slot.value}" for slot in frame.slots)])


@pytest.mark.parametrize(
    ("text", "frame", "expected"),
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
def test_two_wishes_in_one_query_are_two_intents(text: str, frame: str, expected: str | None) -> None:
    reply = heard(text)
    assert words(reply.frame) == frame
    if expected is not None:
        assert reply.text == expected


def test_valid_request_beside_nonsense_is_carried_out_once() -> None:
    talk = Dialogue(AssistantSettings())
    reply = talk.reply_to("add milk to my list and tell me a gobbledygook", at(0))
    assert words(reply.frame) == "add_to_list item=milk"
    assert talk.shopping.things == ["milk"]


def test_the_answer_to_a_question_back_is_understood_by_the_question() -> None:
    talk = Dialogue(AssistantSettings())
    talk.reply_to("Set an alarm for one", at(0))
    assert words(talk.reply_to("p.m.", at(2)).frame) == "set_alarm time=1 pm"
    talk.reply_to("what's the weather in Lincoln", at(10))
    assert words(talk.reply_to("Nebraska", at(12)).frame) == "get_weather place=lincoln nebraska"
    assert words(talk.reply_to("and tomorrow", at(14)).frame) == "get_weather day=tomorrow"


def test_intents_share_one_name_and_slots_form_a_list() -> None:
    frame = heard("set a timer for 2 minutes and add milk and milk to my list").frame
    assert frame.as_sent() == {
        "name": "add_to_list#set_timer",
        "slots": [
            {"name": "duration", "value": "2 minutes"},
            {"name": "item", "value": "milk"},
            {"name": "item", "value": "milk"},
        ],
    }
    assert heard("gobbledygook").text == UNKNOWN
    assert heard("gobbledygook").frame.as_sent() == {"name": "", "slots": []}


def slip(action: FaultAction, as_: str = "", slot: str = "") -> FaultRule:
    return FaultRule(action, heard_as=as_, slot=slot)


TIMER = ReportedFrame(("set_timer",), (Slot("duration", "10 minutes"), Slot("name", "tea")))


@pytest.mark.parametrize(
    ("slips", "frame"),
    [
        ([slip(FaultAction.OTHER_INTENT, "read_list")], "read_list duration=10 minutes name=tea"),
        ([slip(FaultAction.LOSE_SLOT)], "set_timer name=tea"),
        ([slip(FaultAction.LOSE_SLOT, slot="name")], "set_timer duration=10 minutes"),
        ([slip(FaultAction.LOSE_SLOT, slot="room")], "set_timer duration=10 minutes name=tea"),
        ([slip(FaultAction.WRONG_VALUE, "2 minutes")], "set_timer duration=2 minutes name=tea"),
        ([slip(FaultAction.WRONG_VALUE, "egg", "name"), slip(FaultAction.LOSE_SLOT)], "set_timer name=egg"),
        ([slip(FaultAction.LOSE_SLOT), slip(FaultAction.LOSE_SLOT), slip(FaultAction.LOSE_SLOT)], "set_timer"),
    ],
)
def test_a_fault_spoils_the_step_that_it_names(slips: list[FaultRule], frame: str) -> None:
    assert words(misunderstood(TIMER, slips)) == frame


def test_faults_do_not_change_queries_that_were_not_understood() -> None:
    assert misunderstood(NOTHING, [slip(FaultAction.OTHER_INTENT, "read_list"), slip(FaultAction.LOSE_SLOT)]) == NOTHING


def test_wrong_reply_repeats_the_misunderstood_request() -> None:
    assert wrong_reply(ReportedFrame(("set_timer",), (Slot("duration", "2 minutes"),))) == "Okay, set timer, 2 minutes."
    assert wrong_reply(ReportedFrame(("read_list",))) == "Okay, read list."


def test_faults_of_understanding_strike_by_the_words_and_leave_them_alone() -> None:
    rule = FaultRule(FaultAction.LOSE_SLOT, when=re.compile("timer", re.I), times=1)
    faults = Faults((rule,), 0)
    assert faults.degrade(1, "what time is it").slips == ()
    struck = faults.degrade(2, "Set a timer for ten minutes")
    assert (struck.text, struck.slips) == ("Set a timer for ten minutes", (rule,))
    assert faults.degrade(3, "Set a timer for ten minutes").slips == ()


GOOD = """
assistant: kitchen
voice: {engine: flite, name: slt}
memory_s: 4
reports: []
seed: 7
faults:
  - {do: mishear, when: moons, times: 1, as: what are the names of the movies of Mars}
  - {do: late, late_s: 3.5, probability: 0.25}
  - {do: miss_wake, wakes: [2, 5]}
  - {do: wrong_value, slot: duration, as: 15 minutes}
"""


def written(folder: Path, text: str) -> Path:
    return file_with(folder / "settings.yaml", text)


def test_settings_file_is_read_as_written(tmp_path: Path) -> None:
    settings = read_settings(written(tmp_path, GOOD))
    assert (settings.device, settings.memory_s, settings.reports) == ("kitchen", 4, frozenset())
    assert settings.voice.name == "slt"
    mishear, late, miss, wrong = settings.faults
    assert (mishear.action, mishear.times, mishear.heard_as) == (
        FaultAction.MISHEAR,
        1,
        "what are the names of the movies of Mars",
    )
    assert (late.late_s, late.probability) == (3.5, 0.25)
    assert miss.wakes == {2, 5}
    assert (wrong.action, wrong.slot, wrong.heard_as) == (FaultAction.WRONG_VALUE, "duration", "15 minutes")
    assert read_settings(written(tmp_path, "assistant: a")).reports == frozenset(ReportKind)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("assistant: a\nmemori_s: 3", "memory_s"),
        ("memory_s: 3", "assistant"),
        ("assistant: a/b", "assistant"),
        ("assistant: a\nmemory_s: yes", "a number"),
        ("assistant: a\nreports: [wakes]", "wake"),
        ("assistant: a\nfaults: [{do: dance}]", "mishear"),
        ("assistant: a\nfaults: [{do: mishear}]", "as"),
        ("assistant: a\nfaults: [{do: silent, as: x}]", "mishear"),
        ("assistant: a\nfaults: [{do: other_intent}]", "other_intent"),
        ("assistant: a\nfaults: [{do: lose_slot, as: x}]", "wrong_value"),
        ("assistant: a\nfaults: [{do: silent, slot: x}]", "lose_slot"),
        ("assistant: a\nfaults: [{do: silent, when: '('}]", "regular expression"),
        ("assistant: a\nfaults: [{do: silent, late_s: 3}]", "late"),
        ("assistant: a\nfaults: [{do: miss_wake, when: x}]", "no text"),
        ("assistant: a\nfaults: [{do: silent, probability: 2}]", "at most 1"),
        ("assistant: a\nvoice: {engine: flit, name: rms}", "'flite'"),
        ("assistant: a\nwake_engine: microwakewrd", "'microwakeword'"),
        ("assistant: a\nrecogniser: whisper", "faster_whisper"),
        ("assistant: a\nrings: 0", "1"),
        ("assistant: a\nassistant: b", "twice"),
        ("", "empty"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, word: str) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(written(tmp_path, text))
    assert word in str(caught.value)
    assert "settings.yaml:" in str(caught.value)


def test_a_one_time_mishearing_happens_once_even_across_a_restart() -> None:
    import re

    rules = (FaultRule(FaultAction.MISHEAR, when=re.compile("moons", re.I), times=1, heard_as="movies"),)
    faults = Faults(rules, 0)
    assert faults.degrade(1, "what time is it").text == "what time is it"
    assert faults.degrade(2, "Moons of Mars").text == "movies"
    assert faults.degrade(3, "Moons of Mars").text == "Moons of Mars"
    assert Faults(rules, 0, faults.use_counts).degrade(1, "moons").text == "moons"


def test_random_faults_follow_the_seed_and_the_configured_rate() -> None:
    rules = (FaultRule(FaultAction.SILENT, probability=0.3),)
    runs = [[Faults(rules, seed).degrade(1, "x").actions for seed in range(400)] for _ in range(2)]
    assert runs[0] == runs[1]
    assert 80 < sum(map(len, runs[0])) < 160


def test_random_faults_keep_their_rate_across_restarts() -> None:
    rules = (FaultRule(FaultAction.SILENT, probability=0.3), FaultRule(FaultAction.RESTART))
    effects: list[bool] = []
    counts: tuple[int, ...] = ()
    for _ in range(400):
        faults = Faults(rules, 0, counts)
        effects.append(FaultAction.SILENT in faults.degrade(1, "x").actions)
        counts = faults.use_counts
    assert 80 < sum(effects) < 160


def test_missed_wakes_are_chosen_by_number_and_faults_combine() -> None:
    faults = Faults(
        (
            FaultRule(FaultAction.MISS_WAKE, wakes=frozenset({2})),
            FaultRule(FaultAction.LATE, late_s=2),
            FaultRule(FaultAction.LATE, late_s=5, wakes=frozenset({3})),
            FaultRule(FaultAction.TWO_PART_ANSWER, wakes=frozenset({3})),
        ),
        0,
    )
    assert [faults.misses(wake) for wake in (1, 2, 3)] == [False, True, False]
    assert faults.degrade(1, "x").late_s == 2
    worse = faults.degrade(3, "x")
    assert (worse.late_s, worse.actions) == (5, {FaultAction.LATE, FaultAction.TWO_PART_ANSWER})


def test_the_default_settings_have_no_faults() -> None:
    settings = AssistantSettings()
    assert settings.faults == ()
    assert settings.reports == frozenset(ReportKind)
