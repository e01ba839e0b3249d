"""A shopping list."""

from __future__ import annotations

import re

from harness.lab.assistant.frame import frame
from harness.lab.assistant.memory import Memory, Moment, SkillAnswer
from harness.lab.assistant.words import say_list

_LIST = r"(?:my |the |our )?(?:shopping )?list"


class Shopping:
    """ "Add milk to my shopping list", "what's on my shopping list", "clear my shopping list"."""

    def __init__(self) -> None:
        self.things: list[str] = []

    def answer(self, said: str, memory: Memory, moment: Moment) -> SkillAnswer | None:
        if not re.search(r"\blist\b", said):
            return None
        if found := re.search(rf"\b(?:add|put|and) (.+?) (?:to|on|onto|in) {_LIST}\b", said):
            things = [re.sub(r"^(?:some|a|an|the) ", "", thing) for thing in found[1].split(" and ")]
            self.things.extend(things)
            wanted = frame("add_to_list", *(("item", thing) for thing in things))
            return SkillAnswer(f"I added {say_list(things)} to your shopping list.", wanted)
        if re.search(r"\b(clear|empty|delete)\b", said):
            self.things.clear()
            return SkillAnswer("Your shopping list is empty now.", frame("clear_list"))
        if re.search(rf"\b(what|read|tell|show|say)\b.*\b{_LIST}\b", said):
            if not self.things:
                return SkillAnswer("Your shopping list is empty.", frame("read_list"))
            return SkillAnswer(f"On your shopping list: {say_list(self.things)}.", frame("read_list"))
        return None
