"""The assistant's dialogue: words in, words out. No sound, no clock."""

from __future__ import annotations

import re
from dataclasses import replace

from harness.lab.assistant.arithmetic import ArithmeticSkill, normalised_query
from harness.lab.assistant.frame import NOTHING, Memory, Moment, ReportedFrame, SkillAnswer, frame
from harness.lab.assistant.settings import AssistantSettings
from harness.lab.assistant.skills import (
    Alarm,
    ClockSkill,
    FactsSkill,
    MusicSkill,
    ShoppingSkill,
    Skill,
    Timer,
    TimerSkill,
    WeatherSkill,
)
from harness.model.frozen import frozen

UNKNOWN = "Sorry, I don't know that one."
_CLOSING = re.compile(
    # "Cancel timer" is a request to `TimerSkill`.
    r"(?!.*\b(?:cancel|stop) (?:timer|alarm)s?$)"
    r"(?:please |ok |okay |no |oh |just )*(?:cancel(?:l?ed)?|never ?mind|stop|forget it|be quiet|no thanks?)(?: \w+)?"
)
"""A whole query that ends a dialogue."""
_CLOSING_WORD = re.compile(r"\b(cancel(?:l?ed)?|never ?mind|stop|forget it)\b")
"""The same within a query that answers a question."""
_THANKS = re.compile(r"(?:thanks|thank you)(?: \w+){0,2}")
_SLOT_QUESTION = re.compile(r"^For (?:how long|what time)\?$")
_SECOND_REQUEST = re.compile(
    r" and (?:then )?(?=(?:set|start|cancel|add|put|clear|empty|delete|what(?:'s)?|which|tell|read|wake|how)\b)"
)


@frozen
class Reply:
    """The assistant's reply to a query.

    - text: the words to say; "" says nothing.
    - open: whether it then listens without its wake phrase.
    - frame: the intents and slots that it understood.
    """

    text: str
    open: bool = False
    frame: ReportedFrame = NOTHING


@frozen
class UserState:
    """The user's timers, alarms and list, as the dialogue keeps them."""

    timers: tuple[Timer, ...]
    alarms: tuple[Alarm, ...]
    things: tuple[str, ...]


class Dialogue:
    """The skills, and what they share: the last subject, and the question to which the assistant awaits an answer."""

    def __init__(self, settings: AssistantSettings) -> None:
        self._settings = settings
        self._memory = Memory(max(settings.memory_s, 0.0))
        self._awaits_answer_until_s: float | None = None
        self._incomplete_request = ""
        """The request about which the assistant has asked for a missing slot; "" if it has not."""
        self.timers = TimerSkill()
        self.shopping = ShoppingSkill()
        self._skills: tuple[Skill, ...] = (
            self.timers,
            self.shopping,
            WeatherSkill(),
            ClockSkill(),
            FactsSkill(),
            MusicSkill(),
            ArithmeticSkill(),
        )

    def reply_to(self, text: str, moment: Moment) -> Reply:
        """Carries out a recognised text, and returns the reply.

        text: "" means that nothing was understood, which closes an open dialogue.
        """
        query = normalised_query(text, self._settings.wake_phrase)
        self._memory.begin_query(moment)
        was_open = self.is_open(moment)
        incomplete_request = self._incomplete_request
        self._incomplete_request, self._awaits_answer_until_s = "", None
        if not query:
            self._memory.forget()
            return Reply("")
        if _CLOSING.fullmatch(query) or _THANKS.fullmatch(query):
            self._memory.forget()
            intent, text = ("thank", "You're welcome.") if _THANKS.fullmatch(query) else ("cancel", "Okay.")
            return Reply("" if was_open else text, frame=frame(intent))
        if was_open and _CLOSING_WORD.search(query):
            self._memory.forget()
            return Reply("", frame=frame("cancel"))
        reply = self._answer_in_dialogue(query, moment)
        if reply is None and was_open and incomplete_request:
            reply = self._answer_in_dialogue(f"{incomplete_request} {query}", moment)
            if reply is not None and reply.open:
                # It asks back only once: otherwise it would loop on words that it does not understand.
                self.close()
                reply = None
        return reply or Reply(UNKNOWN)

    @property
    def user_state(self) -> UserState:
        """Timers, alarms and list as they are now."""
        return UserState((*self.timers.timers,), (*self.timers.alarms,), (*self.shopping.things,))

    def restore_state(self, snapshot: UserState) -> None:
        """Undoes what was done since `snapshot`."""
        self.timers.timers, self.timers.alarms = [*snapshot.timers], [*snapshot.alarms]
        self.shopping.things = [*snapshot.things]

    @property
    def state(self) -> dict[str, str]:
        """State by name: durations of timers, times of alarms (HH:MM), the list; "" if there is none."""
        return {
            "timer": ", ".join(timer.words for timer in self.timers.timers),
            "alarm": ", ".join(f"{alarm.at:%H:%M}" for alarm in self.timers.alarms),
            "shopping_list": ", ".join(self.shopping.things),
        }

    def is_open(self, moment: Moment) -> bool:
        """Whether it waits for the answer to its own question."""
        return self._awaits_answer_until_s is not None and moment.began_s <= self._awaits_answer_until_s

    def ends_ringing(self, text: str) -> bool:
        """Whether the words silence a timer that rings."""
        query = normalised_query(text, self._settings.wake_phrase)
        return bool(_CLOSING.fullmatch(query) or _CLOSING_WORD.search(query) or _THANKS.fullmatch(query))

    def note_reply_spoken(self, moment: Moment) -> None:
        """Records that its reply has ended: the times of memory and of the wait for an answer start now."""
        if self._awaits_answer_until_s is not None:
            self._awaits_answer_until_s = moment.now_s + self._settings.dialogue_s
        self._memory.renew(moment.now_s)

    def close(self) -> None:
        """Drops the question that nobody answered, and forgets its subject."""
        self._awaits_answer_until_s = None
        self._incomplete_request = ""
        self._memory.forget()

    def pop_due(self, moment: Moment) -> tuple[str, ...]:
        """The announcements of timers and alarms that are due. Each is returned once."""
        return self.timers.pop_due(moment)

    def _answer_in_dialogue(self, query: str, moment: Moment) -> Reply | None:
        """The reply, whose subject and question are remembered; None if no skill applies."""
        answer = self._two_requests(query, moment) or self._answer_request(query, moment)
        if answer is None:
            return None
        wait_s = self._settings.dialogue_s if answer.asks else self._settings.memory_s
        self._memory.keep(answer.subject, moment.now_s, wait_s)
        if answer.asks:
            self._awaits_answer_until_s = moment.now_s + self._settings.dialogue_s
        return Reply(answer.text, open=answer.asks, frame=answer.frame)

    def _answer_request(self, query: str, moment: Moment) -> SkillAnswer | None:
        for skill in self._skills:
            answer = skill.answer(query, self._memory, moment)
            if answer is not None:
                # "For how long?": the answer makes sense only together with this request.
                self._incomplete_request = query if _SLOT_QUESTION.match(answer.text) else ""
                return answer
        return None

    def _two_requests(self, query: str, moment: Moment) -> SkillAnswer | None:
        """The answer to requests joined by "and", if each has one, and no answer but the last is a question.

        Otherwise None, and changes by the first request are undone.
        """
        match = _SECOND_REQUEST.search(query)
        if match is None:
            return None
        saved_state = self.user_state
        first = self._answer_request(query[: match.start()], moment)
        if first is not None and not first.asks:
            second_query = query[match.end() :]
            second = self._two_requests(second_query, moment) or self._answer_request(second_query, moment)
            if second is not None:
                return replace(second, text=f"{first.text} {second.text}", frame=first.frame + second.frame)
        self.restore_state(saved_state)
        return None
