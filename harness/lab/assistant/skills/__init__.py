"""What the assistant can do. A skill is given plain words and answers, or None when they are not for it."""

from __future__ import annotations

from typing import Protocol

from harness.lab.assistant.memory import Memory, Moment, SkillAnswer


class Skill(Protocol):
    """Pure but for what it keeps for its user (timers, a list); `said` is as `words.plain` makes it."""

    def answer(self, said: str, memory: Memory, moment: Moment) -> SkillAnswer | None: ...
