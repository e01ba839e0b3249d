"""Rows of a session that a test writes out: the entries get their numbers and times here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Clip,
    EngineStarted,
    Entry,
    Record,
    ResponseFrozen,
    ResponseTranscribed,
    SessionStarted,
    TrialFinished,
    TrialStarted,
    UnderstandingResult,
)
from harness.model.scenario import Evidence, RecognitionRule, RepromptRule
from harness.model.stimulus import SpokenText, StimulusRecipe, VoiceSpec
from harness.model.time import MeasuredDuration, Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial


def planned(number: int, text: str = "what time is it", trial_id: str = "", device: str = "kitchen") -> Trial:
    return Trial(
        id=trial_id or f"time-{number}",
        number=number,
        template="time",
        query_id="time",
        device=device,
        loudspeaker="front",
        recipe=StimulusRecipe(SpokenText(text), SpokenText("okay nabu"), VoiceSpec()),
        reference=text,
        alternatives=(),
        recognised=RecognitionRule(),
        evidence=Evidence.AUTO,
        reprompt=RepromptRule(),
        close_dialogue=None,
    )


def clip_of(name: str, seconds: float = 1.0, sha256: str = "") -> Clip:
    return Clip(name, sha256 or f"sha of {name}", 16000, int(seconds * 16000), 0.0)


@dataclass
class Rows:
    """Entries in their order; `at_s` is where the two clocks stand (wall time starts at 1000 s)."""

    entries: list[Entry] = field(default_factory=list)
    at_s: float = 0.0
    run: int = 1

    @classmethod
    def of(cls, *trials: Trial, title: str = "Kitchen") -> Rows:
        """A session that begins with this plan."""
        rows = cls()
        rows.start(*trials, title=title)
        return rows

    def add(self, record: Record, after_s: float = 0.0) -> Entry:
        self.at_s += after_s
        entry = Entry(len(self.entries) + 1, self.run, self.at_s, 1000.0 + self.at_s, record)
        self.entries.append(entry)
        return entry

    def start(self, *trials: Trial, title: str = "Kitchen") -> None:
        self.add(SessionStarted("s1", "kitchen", title, "a", "lab", "b", 1, "in_process", (("numpy", "2"),), trials))
        self.add(EngineStarted(1, 10, "boot", 1.0))

    def attempt(
        self,
        trial_id: str,
        attempt: int = 1,
        outcome: Outcome = Outcome.RESPONDED,
        recognition: Recognition = Recognition.YES,
        *,
        take: int = 1,
        latency_s: float | None = 0.8,
        error_s: float = 0.01,
        clip: Clip | None = None,
        text: str | None = None,
        heard: str | None = None,
        evidence: EvidenceSource = EvidenceSource.DEVICE,
        understood: UnderstandingResult | None = None,
        disturbed: str = "",
        cause: str = "",
    ) -> None:
        self.add(AttemptStarted(trial_id, take, attempt, f"p{len(self.entries)}", "c", 0.5, 1.5, 1.6, None), 1.0)
        if clip is not None:
            self.add(
                ResponseFrozen(trial_id, take, attempt, clip, Stamp(self.at_s), Stamp(self.at_s + clip.duration_s)), 1.0
            )
        if text is not None:
            self.add(ResponseTranscribed(trial_id, take, attempt, text, "test"))
        self.add(
            AttemptFinished(
                trial_id,
                take,
                attempt,
                outcome,
                recognition,
                evidence,
                heard=heard,
                latency=None if latency_s is None else MeasuredDuration(latency_s, error_s),
                length=None if clip is None else MeasuredDuration(clip.duration_s, error_s),
                understood=understood,
                disturbed=disturbed,
                cause=cause,
            ),
            1.0,
        )

    def trial(
        self,
        trial_id: str,
        outcome: Outcome = Outcome.RESPONDED,
        recognition: Recognition = Recognition.YES,
        *,
        take: int = 1,
        attempts: int = 1,
        **last: Any,
    ) -> None:
        """A whole take: misheard until its last attempt, which is as given. last: as for `attempt`."""
        self.add(TrialStarted(trial_id, take))
        for number in range(1, attempts):
            self.attempt(trial_id, number, Outcome.MISHEARD, Recognition.NO, take=take, latency_s=None)
        self.attempt(trial_id, attempts, outcome, recognition, take=take, **last)
        self.add(TrialFinished(trial_id, take, outcome, attempts, attempts), 1.0)


def judgment_on(
    trial_id: str,
    clip: Clip,
    judgment_id: str,
    status: JudgmentStatus = JudgmentStatus.SUBMITTED,
    replaces: str | None = None,
    category: Category = Category.CORRECT,
    rater: str = "ann",
) -> Judgment:
    return Judgment(
        judgment_id,
        trial_id,
        1,
        rater,
        status,
        category if status is JudgmentStatus.SUBMITTED else None,
        clip.sha256,
        replaces=replaces,
    )
