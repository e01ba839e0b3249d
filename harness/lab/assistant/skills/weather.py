"""Weather: asks which place is meant where there are several, then admits that it has no weather."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.lab.assistant.frame import ToldFrame, frame
from harness.lab.assistant.memory import Memory, Moment, SkillAnswer

_NAMESAKES = {
    "lincoln": ("Lincoln, Nebraska", "Lincoln, England"),
    "saint george": ("Saint George, Utah", "Saint George, Bermuda"),
    "springfield": ("Springfield, Illinois", "Springfield, Missouri"),
    "cambridge": ("Cambridge, Massachusetts", "Cambridge, England"),
}
_DAYS = ("today", "tomorrow")
_PLACE = re.compile(r"\b(?:in|at|for|of) (?!the )([a-z' ]+?)(?: (?:today|tomorrow|now|like|right now))*$")


@dataclass(frozen=True, slots=True)
class PlaceAsked:
    """It was asked which of these places is meant."""

    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlaceSpokenOf:
    """The weather of that place was asked for."""

    place: str


class Weather:
    """ "What's the weather in Lincoln?" — "Do you mean …?" — "I have no weather for …"."""

    def answer(self, said: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        asked = memory.recall(PlaceAsked, moment.now_s)
        if asked is not None:
            for number, place in enumerate(asked.places):
                region = place.partition(", ")[2].lower()
                if region in said or re.search(("first|former", "second|latter|last")[number], said):
                    return _none(place, _asked_for(place, ""))
        if re.search(r"\b(weather|forecast|temperature|rain|whether)\b", said):
            found = _PLACE.search(said)
            if found is None:
                return _none("here", _asked_for("", said))
            return self._about(found[1].strip(), said)
        spoken_of = memory.recall(PlaceSpokenOf, moment.now_s)
        found = re.match(r"^(?:and |what about |how about )+(?:in )?([a-z' ]+)$", said)
        if spoken_of is not None and found:
            if found[1] in _DAYS:
                return _none(spoken_of.place, _asked_for("", said))
            return self._about(found[1], said)
        return None

    def _about(self, place: str, said: str) -> SkillAnswer:
        name = re.sub(r"^st ", "saint ", place)
        places = _NAMESAKES.get(name)
        if places is None:
            return _none(name.title(), _asked_for(name, said))
        question = f"Do you mean {places[0]}, or {places[1]}?"
        return SkillAnswer(question, _asked_for(name, said), PlaceAsked(places), asks=True)


def _none(place: str, asked: ToldFrame) -> SkillAnswer:
    where = "here" if place == "here" else f"for {place}"
    return SkillAnswer(f"Sorry, I have no weather {where}.", asked, PlaceSpokenOf(place))


def _asked_for(place: str, said: str) -> ToldFrame:
    """The place in lower case, without commas; the day that was named."""
    day = re.search(rf"\b({'|'.join(_DAYS)})\b", said)
    named = [("place", place.lower().replace(",", ""))] if place else []
    return frame("get_weather", *named, *([("day", day[1])] if day else []))
