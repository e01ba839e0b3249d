"""Time of day and dates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from harness.lab.assistant.frame import frame
from harness.lab.assistant.memory import Memory, Moment, SkillAnswer


@dataclass(frozen=True, slots=True)
class DateAsked:
    """A date was spoken of."""

    days_ahead: int


_FOLLOW_UP = re.compile(r"^(and |what about |how about )+(the day after )?(today|tomorrow|yesterday|that)$")
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}


class ClockSkill:
    """ "What time is it", "what's the date today", "what day is tomorrow"; "and tomorrow?" after it."""

    def answer(self, said: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        if re.search(r"\bwhat('s| is)? (the )?time\b|\btime is it\b|\btell me the time\b", said):
            return SkillAnswer(f"It is {spoken_time(moment.wall)}", frame("get_time"))
        if re.search(
            r"\b(what|which)('s| is)? (the |today's |tomorrow's )?(date|day)\b|\bwhat day\b|\bthe date\b", said
        ):
            day = re.search(r"\b(yesterday|today|tomorrow)", said)
            return self._date(_DAYS[day[1]] if day else 0, day[1] if day else "", moment)
        follow_up = _FOLLOW_UP.match(said)
        asked = memory.recall(DateAsked, moment.now_s)
        if follow_up and asked is not None:
            word = follow_up[3]
            days = asked.days_ahead if word == "that" else _DAYS[word]
            return self._date(days + (1 if follow_up[2] else 0), f"{follow_up[2] or ''}{word}", moment)
        return None

    def _date(self, days_ahead: int, said_day: str, moment: Moment) -> SkillAnswer:
        day = moment.wall + timedelta(days=days_ahead)
        word = {-1: "Yesterday was", 0: "Today is", 1: "Tomorrow is"}.get(days_ahead, "That is")
        asked = frame("get_date", *([("day", said_day)] if said_day else []))
        return SkillAnswer(f"{word} {day:%A}, {day:%B} {day.day}, {day.year}.", asked, DateAsked(days_ahead))


def spoken_time(at: datetime) -> str:
    """12-hour clock, e.g. "1 05 p.m."."""
    hour = at.hour % 12 or 12
    half = "a.m." if at.hour < 12 else "p.m."
    minutes = "" if at.minute == 0 else f" oh {at.minute}" if at.minute < 10 else f" {at.minute}"
    return f"{hour}{minutes} {half}"
