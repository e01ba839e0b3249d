"""Timers and alarms that really go off."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from harness.lab.assistant.frame import frame
from harness.lab.assistant.memory import Memory, Moment, SkillAnswer
from harness.lab.assistant.skills.arithmetic import Length
from harness.lab.assistant.skills.clock import spoken_time
from harness.lab.assistant.words import say_list, say_number

_UNIT_S = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_AMOUNT = re.compile(r"\b(an?|\d+(?:\.\d+)?) (second|minute|hour)s?\b( and a half)?")
_TIME = re.compile(r"\b(\d{1,2})(?:[:. ](\d{2}))?(?: o'clock)?(?: (am|pm)| in the (morning|afternoon|evening))?\b")


@dataclass(frozen=True, slots=True)
class Timer:
    words: str
    ends_s: float


@dataclass(frozen=True, slots=True)
class Alarm:
    at: datetime


@dataclass(frozen=True, slots=True)
class HalfAsked:
    """An alarm was wanted for that time, and it was not said whether before or after noon."""

    hour: int
    minute: int


class Timers:
    """Counts down and rings; `due` says what has ended since it was last asked."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self.alarms: list[Alarm] = []

    def answer(self, said: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        asked = memory.recall(HalfAsked, moment.now_s)
        if asked is not None and (half := _half(said)):
            return self._set_alarm(asked.hour, asked.minute, half, moment)
        if re.search(r"\b(cancel|delete|stop|clear)\b.*\b(timer|alarm)s?\b", said):
            return self._cancel("alarm" in said)
        if re.search(r"\b(how (much|long)|what).*\b(left|remaining)\b|\b(list|what|any)\b.*\btimers?\b", said):
            return self._left(moment)
        if re.search(r"\b(what|any|list|which)\b.*\balarms?\b", said):
            if not self.alarms:
                return SkillAnswer("You have no alarms.", frame("check_alarms"))
            times = say_list([spoken_time(alarm.at) for alarm in self.alarms])
            return SkillAnswer(f"You have an alarm for {times}", frame("check_alarms"))
        if re.search(r"\btimer\b", said) and ("alarm" not in said or _AMOUNT.search(said)):
            return self._set_timer(said, moment)
        if re.search(r"\balarm\b|\bwake me\b", said):
            return self._ask_alarm(said, moment)
        return None

    def due(self, moment: Moment) -> tuple[str, ...]:
        """What is to be said about timers and alarms that have ended; each once."""
        ended = [timer for timer in self.timers if timer.ends_s <= moment.now_s]
        rung = [alarm for alarm in self.alarms if alarm.at <= moment.wall]
        self.timers = [timer for timer in self.timers if timer not in ended]
        self.alarms = [alarm for alarm in self.alarms if alarm not in rung]
        return (
            *(f"Your timer for {timer.words} is done." for timer in ended),
            *(f"It is {spoken_time(alarm.at)} This is your alarm." for alarm in rung),
        )

    def _set_timer(self, said: str, moment: Moment) -> SkillAnswer:
        seconds, parts = 0.0, []
        for amount, unit, half in _AMOUNT.findall(said):
            count = (1.0 if amount in ("a", "an") else float(amount)) + (0.5 if half else 0.0)
            seconds += count * _UNIT_S[unit]
            parts.append(f"{say_number(count)} {unit}{'' if count == 1 else 's'}")
        if not parts:
            return SkillAnswer("For how long?", frame("set_timer"), asks=True)
        words = say_list(parts)
        wanted = frame("set_timer", ("duration", words))
        if not 0 < seconds <= 24 * 3600:
            return SkillAnswer("I can only set timers of up to a day.", wanted)
        self.timers.append(Timer(words, moment.now_s + seconds))
        return SkillAnswer(f"Timer set for {words}.", wanted, Length(seconds, words))

    def _ask_alarm(self, said: str, moment: Moment) -> SkillAnswer:
        found = _TIME.search(said)
        if found is None:
            return SkillAnswer("For what time?", frame("set_alarm"), asks=True)
        hour, minute = int(found[1]), int(found[2] or 0)
        half = _half(said)
        wanted = frame("set_alarm", ("time", _said_time(hour, minute, half)))
        if hour > 23 or minute > 59:
            return SkillAnswer("There is no such time.", wanted)
        if half is None and 1 <= hour <= 12:
            return SkillAnswer("Is that a.m. or p.m.?", wanted, HalfAsked(hour, minute), asks=True)
        return self._set_alarm(hour, minute, half, moment)

    def _set_alarm(self, hour: int, minute: int, half: str | None, moment: Moment) -> SkillAnswer:
        wanted = frame("set_alarm", ("time", _said_time(hour, minute, half)))
        if half is not None and hour <= 12:
            hour = hour % 12 + (12 if half == "pm" else 0)
        at = moment.wall.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if at <= moment.wall:
            at += timedelta(days=1)
        self.alarms.append(Alarm(at))
        return SkillAnswer(f"Alarm set for {spoken_time(at)}", wanted)

    def _left(self, moment: Moment) -> SkillAnswer:
        if not self.timers:
            return SkillAnswer("No timer is running.", frame("check_timer"))
        first = min(self.timers, key=lambda timer: timer.ends_s)
        seconds = max(0, round(first.ends_s - moment.now_s))
        minutes, rest = divmod(seconds, 60)
        parts = [f"{n} {unit}{'' if n == 1 else 's'}" for n, unit in ((minutes, "minute"), (rest, "second")) if n]
        words = say_list(parts or ["0 seconds"])
        return SkillAnswer(f"There are {words} left.", frame("check_timer"), Length(float(seconds), words))

    def _cancel(self, alarms: bool) -> SkillAnswer:
        name, count = ("alarm", len(self.alarms)) if alarms else ("timer", len(self.timers))
        (self.alarms if alarms else self.timers).clear()
        if not count:
            return SkillAnswer(f"There is no {name} to cancel.", frame(f"cancel_{name}"))
        text = f"{name.capitalize()} cancelled." if count == 1 else f"{count} {name}s cancelled."
        return SkillAnswer(text, frame(f"cancel_{name}"))


def _said_time(hour: int, minute: int, half: str | None) -> str:
    """As "7:30 am", "1", "14"."""
    return f"{hour}{f':{minute:02}' if minute else ''}{f' {half}' if half else ''}"


def _half(said: str) -> str | None:
    if re.search(r"\b(am|a m|morning)\b", said):
        return "am"
    return "pm" if re.search(r"\b(pm|p m|afternoon|evening|noon)\b", said) else None
