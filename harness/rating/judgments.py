"""New judgment rows. Nothing is changed: an undo is a row too, and names the one that it takes back."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from harness import __version__
from harness.model.judgment import Category, Flag, Judgment, JudgmentStatus
from harness.rating.categories import GUIDELINE_VERSION


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged: the frozen response of an attempt."""

    trial_id: str
    attempt: int
    clip_sha256: str


@dataclass(frozen=True, slots=True)
class Sitting:
    """A rater's look at one item. replaces: id of their own row in force on it, when there is one."""

    rater: str
    subject: Subject
    replaces: str | None = None
    comment: str = ""
    plays: int = 0
    time_to_answer_s: float | None = None

    def submit(self, category: Category) -> Judgment:
        return self._row(JudgmentStatus.SUBMITTED, category=category)

    def skip(self) -> Judgment:
        """Left for later."""
        return self._row(JudgmentStatus.SKIPPED)

    def flag(self, flags: tuple[Flag, ...]) -> Judgment:
        """Put aside, with the reasons."""
        return self._row(JudgmentStatus.FLAGGED, flags=flags)

    def _row(self, status: JudgmentStatus, category: Category | None = None, flags: tuple[Flag, ...] = ()) -> Judgment:
        return Judgment(
            id=str(uuid.uuid4()),
            trial_id=self.subject.trial_id,
            attempt=self.subject.attempt,
            rater=self.rater,
            status=status,
            category=category,
            clip_sha256=self.subject.clip_sha256,
            replaces=self.replaces,
            comment=self.comment,
            flags=tuple(flag.value for flag in flags),
            plays=self.plays,
            time_to_answer_s=self.time_to_answer_s,
            guideline_version=GUIDELINE_VERSION,
            tool_version=__version__,
        )


def withdrawal(judgment: Judgment) -> Judgment:
    """The row that takes a judgment back; its item is then to be judged again."""
    return Judgment(
        id=str(uuid.uuid4()),
        trial_id=judgment.trial_id,
        attempt=judgment.attempt,
        rater=judgment.rater,
        status=JudgmentStatus.WITHDRAWN,
        category=None,
        clip_sha256=judgment.clip_sha256,
        replaces=judgment.id,
        guideline_version=GUIDELINE_VERSION,
        tool_version=__version__,
    )
