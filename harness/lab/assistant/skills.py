"""The assistant's skills. A skill takes plain words and returns an answer, or None if it does not apply."""

from __future__ import annotations

import re
import tomllib
from datetime import datetime, timedelta
from importlib import resources
from typing import Protocol

from harness.lab.assistant.arithmetic import say_list, say_number
from harness.lab.assistant.frame import Memory, Moment, ReportedFrame, SkillAnswer, frame
from harness.model.frozen import frozen


class Skill(Protocol):
    """A skill. It has no side effects except on the data that it keeps for its user (timers, a list)."""

    def answer(self, query: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        """The answer to a query; None if the skill does not apply. query: a text from `normalised_query`."""


@frozen
class DateContext:
    """The last subject was a date."""

    days_ahead: int


PLAY_MUSIC = "play_music"
_FOLLOW_UP = re.compile(r"^(and |what about |how about )+(the day after )?(today|tomorrow|yesterday|that)$")
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}


class ClockSkill:
    """ "What time is it", "what's the date today", "what day is tomorrow"; "and tomorrow?" after it."""

    def answer(self, query: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        if re.search(r"\bwhat('s| is)? (the )?time\b|\btime is it\b|\btell me the time\b", query):
            return SkillAnswer(f"It is {spoken_time(moment.wall)}", frame("get_time"))
        if re.search(
            r"\b(what|which)('s| is)? (the |today's |tomorrow's )?(date|day)\b|\bwhat day\b|\bthe date\b", query
        ):
            day = re.search(r"\b(the day after )?(yesterday|today|tomorrow)", query)
            if day is None:
                return self._date(0, "", moment)
            return self._date(_DAYS[day[2]] + (1 if day[1] else 0), day[0], moment)
        follow_up = _FOLLOW_UP.match(query)
        last_date = memory.recall(DateContext, moment.now_s)
        if follow_up and last_date is not None:
            word = follow_up[3]
            days = last_date.days_ahead if word == "that" else _DAYS[word]
            return self._date(days + (1 if follow_up[2] else 0), f"{follow_up[2] or ''}{word}", moment)
        return None

    def _date(self, days_ahead: int, said_day: str, moment: Moment) -> SkillAnswer:
        """The answer with a date. said_day: the words of the query for it; "" if there were none."""
        day = moment.wall + timedelta(days=days_ahead)
        word = {-1: "Yesterday was", 0: "Today is", 1: "Tomorrow is"}.get(days_ahead, "That is")
        slots = [("day", said_day)] if said_day else []
        request = frame("get_date", *slots)
        return SkillAnswer(f"{word} {day:%A}, {day:%B} {day.day}, {day.year}.", request, DateContext(days_ahead))


def spoken_time(time: datetime) -> str:
    """A time on the 12-hour clock, as spoken, such as "1 05 p.m."."""
    hour = time.hour % 12 or 12
    half = "a.m." if time.hour < 12 else "p.m."
    minutes = f" oh {time.minute}" if time.minute < 10 else f" {time.minute}"
    return f"{hour}{minutes if time.minute else ''} {half}"


class MusicSkill:
    """ "Play some music". The device plays a tune after the answer."""

    def answer(self, query: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        return SkillAnswer("Okay.", frame(PLAY_MUSIC)) if re.search(r"\bplay\b.*\b(music|song|tune)\b", query) else None


_FACTS = tomllib.loads(resources.files(__package__).joinpath("facts.toml").read_text("utf-8"))
"""Facts, questions that nobody can answer, and cities that share a name."""


class FactsSkill:
    """ "What are the names of the moons of Mars", "what color is my shirt"."""

    def answer(self, query: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        for pattern, topic, text in _FACTS["facts"]:
            if re.search(pattern, query):
                return SkillAnswer(text, frame("ask_fact", ("topic", topic)))
        for pattern, text in _FACTS["unknowable"]:
            if re.search(pattern, query):
                return SkillAnswer(text, frame("ask_unknowable"))
        return None


_LIST = r"(?:my |the |our )?(?:shopping )?list"


class ShoppingSkill:
    """ "Add milk to my shopping list", "what's on my shopping list", "clear my shopping list"."""

    def __init__(self) -> None:
        self.things: list[str] = []

    def answer(self, query: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        if not re.search(r"\blist\b", query):
            return None
        if match := re.search(rf"\b(?:add|put|and) (.+?) (?:to|on|onto|in) {_LIST}\b", query):
            things = [re.sub(r"^(?:some|a|an|the) ", "", thing) for thing in match[1].split(" and ")]
            self.things.extend(things)
            request = frame("add_to_list", *(("item", thing) for thing in things))
            return SkillAnswer(f"I added {say_list(things)} to your shopping list.", request)
        if re.search(r"\b(clear|empty|delete)\b", query):
            self.things.clear()
            return SkillAnswer("Your shopping list is empty now.", frame("clear_list"))
        if re.search(rf"\b(what|read|tell|show|say)\b.*\b{_LIST}\b", query):
            if not self.things:
                return SkillAnswer("Your shopping list is empty.", frame("read_list"))
            return SkillAnswer(f"On your shopping list: {say_list(self.things)}.", frame("read_list"))
        return None


_UNIT_S = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_AMOUNT = re.compile(r"\b(half )?(an?|\d+(?:\.\d+)?) (second|minute|hour)s?\b( and a half)?")
_TIME = re.compile(r"\b(\d{1,2})(?:[:. ](\d{2}))?(?: o'clock)?(?: (am|pm)| in the (morning|afternoon|evening))?\b")


@frozen
class Timer:
    words: str
    ends_s: float


@frozen
class Alarm:
    at: datetime


@frozen
class PendingAlarm:
    """An alarm was requested at a time without a.m. or p.m."""

    hour: int
    minute: int


class TimerSkill:
    """Counts down and rings. `pop_due` returns what has ended since its last call."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self.alarms: list[Alarm] = []

    def answer(self, query: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        question = memory.recall(PendingAlarm, moment.now_s)
        if question is not None and (half := _half_of_day(query)):
            return self._set_alarm(question.hour, question.minute, half, moment)
        if re.search(r"\b(cancel|delete|stop|clear)\b.*\b(timer|alarm)s?\b", query):
            return self._cancel(alarms="alarm" in query)
        if re.search(r"\b(how (much|long)|what).*\b(left|remaining)\b|\b(list|what|any)\b.*\btimers?\b", query):
            return self._remaining_time_answer(moment)
        if re.search(r"\b(what|any|list|which)\b.*\balarms?\b", query):
            if not self.alarms:
                return SkillAnswer("You have no alarms.", frame("check_alarms"))
            times = say_list([spoken_time(alarm.at) for alarm in self.alarms])
            return SkillAnswer(f"You have an alarm for {times}", frame("check_alarms"))
        if re.search(r"\btimer\b", query) and ("alarm" not in query or _AMOUNT.search(query)):
            return self._set_timer(query, moment)
        if re.search(r"\balarm\b|\bwake me\b", query):
            return self._alarm_answer(query, moment)
        return None

    def pop_due(self, moment: Moment) -> tuple[str, ...]:
        """Removes the timers and alarms that have ended. Returns an announcement for each."""
        due_timers = [timer for timer in self.timers if timer.ends_s <= moment.now_s]
        due_alarms = [alarm for alarm in self.alarms if alarm.at <= moment.wall]
        self.timers = [timer for timer in self.timers if timer not in due_timers]
        self.alarms = [alarm for alarm in self.alarms if alarm not in due_alarms]
        return (
            *(f"Your timer for {timer.words} is done." for timer in due_timers),
            *(f"It is {spoken_time(alarm.at)} This is your alarm." for alarm in due_alarms),
        )

    def _set_timer(self, query: str, moment: Moment) -> SkillAnswer:
        duration_s, parts = 0.0, []
        for half, amount, unit, and_a_half in _AMOUNT.findall(query):
            count = 1.0 if amount in ("a", "an") else float(amount)
            if half:
                count /= 2
            elif and_a_half:
                count += 0.5
            duration_s += count * _UNIT_S[unit]
            parts.append(f"{say_number(count)} {unit}{'' if count == 1 else 's'}")
        if not parts:
            return SkillAnswer("For how long?", frame("set_timer"), asks=True)
        words = say_list(parts)
        request = frame("set_timer", ("duration", words))
        if not 0 < duration_s <= 24 * 3600:
            return SkillAnswer("I can only set timers of up to a day.", request)
        self.timers.append(Timer(words, moment.now_s + duration_s))
        return SkillAnswer(f"Timer set for {words}.", request)

    def _alarm_answer(self, query: str, moment: Moment) -> SkillAnswer:
        """Sets an alarm, or asks for what its time lacks."""
        match = _TIME.search(query)
        if match is None:
            return SkillAnswer("For what time?", frame("set_alarm"), asks=True)
        hour, minute = int(match[1]), int(match[2] or 0)
        half = _half_of_day(query)
        request = frame("set_alarm", ("time", _time_slot(hour, minute, half)))
        if hour > 23 or minute > 59:
            return SkillAnswer("There is no such time.", request)
        if half is None and 1 <= hour <= 12:
            return SkillAnswer("Is that a.m. or p.m.?", request, PendingAlarm(hour, minute), asks=True)
        return self._set_alarm(hour, minute, half, moment)

    def _set_alarm(self, hour: int, minute: int, half: str | None, moment: Moment) -> SkillAnswer:
        """Sets an alarm at the next such time. half: "am" or "pm"; None for a time on the 24-hour clock."""
        request = frame("set_alarm", ("time", _time_slot(hour, minute, half)))
        if half is not None and hour <= 12:
            hour = hour % 12 + (12 if half == "pm" else 0)
        alarm_time = moment.wall.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if alarm_time <= moment.wall:
            alarm_time += timedelta(days=1)
        self.alarms.append(Alarm(alarm_time))
        return SkillAnswer(f"Alarm set for {spoken_time(alarm_time)}", request)

    def _remaining_time_answer(self, moment: Moment) -> SkillAnswer:
        if not self.timers:
            return SkillAnswer("No timer is running.", frame("check_timer"))
        first = min(self.timers, key=lambda timer: timer.ends_s)
        minutes, seconds = divmod(max(0, round(first.ends_s - moment.now_s)), 60)
        amounts = ((minutes, "minute"), (seconds, "second"))
        parts = [f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in amounts if count]
        words = say_list(parts or ["0 seconds"])
        return SkillAnswer(f"There are {words} left.", frame("check_timer"))

    def _cancel(self, *, alarms: bool) -> SkillAnswer:
        """Cancels all alarms, or all timers."""
        name = "alarm" if alarms else "timer"
        pending: list[Alarm] | list[Timer] = self.alarms if alarms else self.timers
        count = len(pending)
        pending.clear()
        if not count:
            return SkillAnswer(f"There is no {name} to cancel.", frame(f"cancel_{name}"))
        text = f"{name.capitalize()} cancelled." if count == 1 else f"{count} {name}s cancelled."
        return SkillAnswer(text, frame(f"cancel_{name}"))


def _time_slot(hour: int, minute: int, half: str | None) -> str:
    """The value of a time slot, such as "7:30 am", "1" or "14"."""
    return f"{hour}{f':{minute:02}' if minute else ''}{f' {half}' if half else ''}"


def _half_of_day(query: str) -> str | None:
    """ "am" or "pm"; None if the query does not say which."""
    if re.search(r"\b(am|a m|morning)\b", query):
        return "am"
    return "pm" if re.search(r"\b(pm|p m|afternoon|evening|noon)\b", query) else None


_FORECAST_DAYS = ("today", "tomorrow")
_PLACE = re.compile(r"\b(?:in|at|for|of) (?!the )([a-z' ]+?)(?: (?:today|tomorrow|now|like|right now))*$")


@frozen
class PlaceChoice:
    """The assistant asked which of these places is meant."""

    places: tuple[str, ...]


@frozen
class PlaceContext:
    """The last subject was the weather of that place."""

    place: str


class WeatherSkill:
    """ "What's the weather in Lincoln?" — "Do you mean …?" — "I have no weather for …"."""

    def answer(self, query: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        question = memory.recall(PlaceChoice, moment.now_s)
        if question is not None:
            for number, place in enumerate(question.places):
                region = place.partition(", ")[2].lower()
                ordinals = "first|former" if number == 0 else "second|latter|last"
                if region in query or re.search(ordinals, query):
                    return _no_forecast_answer(place, _weather_frame(place, ""))
        if re.search(r"\b(weather|forecast|temperature|rain|whether)\b", query):
            match = _PLACE.search(query)
            if match is None:
                return _no_forecast_answer("here", _weather_frame("", query))
            return self._weather_answer(match[1].strip(), query)
        last_place = memory.recall(PlaceContext, moment.now_s)
        match = re.match(r"^(?:and |what about |how about )+(?:in )?([a-z' ]+)$", query)
        if last_place is not None and match:
            if match[1] in _FORECAST_DAYS:
                return _no_forecast_answer(last_place.place, _weather_frame("", query))
            return self._weather_answer(match[1], query)
        return None

    def _weather_answer(self, place: str, query: str) -> SkillAnswer:
        name = re.sub(r"^st ", "saint ", place)
        places = tuple(_FACTS["namesakes"].get(name, ()))
        if not places:
            return _no_forecast_answer(name.title(), _weather_frame(name, query))
        question = f"Do you mean {places[0]}, or {places[1]}?"
        return SkillAnswer(question, _weather_frame(name, query), PlaceChoice(places), asks=True)


def _no_forecast_answer(place: str, request: ReportedFrame) -> SkillAnswer:
    place_words = "here" if place == "here" else f"for {place}"
    return SkillAnswer(f"Sorry, I have no weather {place_words}.", request, PlaceContext(place))


def _weather_frame(place: str, query: str) -> ReportedFrame:
    """The place in lower case, without commas, and the day if one was named."""
    slots = [("place", place.lower().replace(",", ""))] if place else []
    if day := re.search(rf"\b({'|'.join(_FORECAST_DAYS)})\b", query):
        slots.append(("day", day[1]))
    return frame("get_weather", *slots)
