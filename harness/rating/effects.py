"""What became of the effects of a session's first responses, and what people have said of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.model.effect import EffectCheck, EffectEvidence
from harness.model.judgment import JudgmentStatus
from harness.model.record import EffectAnswered, Entry, JudgmentGiven, ResponseFrozen, chronological
from harness.model.trial import Trial
from harness.rating.figures.judged import judged_in
from harness.session.figures.effects import Key
from harness.session.figures.progress import SessionFigures
from harness.session.log.reader import LogReader, later_rows

HELD_QUESTION = "What did it do?"
"""Asked of a response that a rater holds, where the scenario says nothing of an effect."""


@dataclass(frozen=True, slots=True)
class EffectItem:
    """A first response with its effect. said: what it answered, by our transcription.

    held_by: raters who hold it. waited_for: one of them held it when all that is known now was known. answers: of
    people, with their Unix times, oldest first.
    """

    folder: Path
    session_id: str
    trial: Trial
    take: int
    attempt: int
    evidence: EffectEvidence
    said: str = ""
    held_by: tuple[str, ...] = ()
    waited_for: bool = False
    answers: tuple[tuple[float, EffectAnswered], ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether nobody has said what became of it, or a rater knows what was said and waits all the same."""
        return self.evidence.is_open or self.waited_for

    def is_due(self, now_wall_s: float) -> bool:
        """Whether it is open, and a person can look by now."""
        due_s = self.evidence.due_wall_s
        return self.is_open and (due_s is None or due_s <= now_wall_s)


@dataclass(frozen=True, slots=True)
class SessionEffects:
    """ended: no more responses will come, unless it is resumed."""

    items: tuple[EffectItem, ...]
    ended: bool


def effects_of(folder: Path) -> SessionEffects:
    """Every first response that has an effect check, that a rater holds or that somebody looked at; LogError.

    In the order of playing. Works while the session runs and while raters are at it.
    """
    figures = SessionFigures()
    responses_wall_s: dict[Key, float] = {}
    at_bench: list[Entry] = []
    with LogReader(folder) as reader:
        for entry in reader.entries():
            figures.add(entry)
            match entry.record:
                case ResponseFrozen() as frozen:
                    responses_wall_s[frozen.trial_id, frozen.take, frozen.attempt] = entry.wall_s
                case JudgmentGiven() | EffectAnswered():
                    at_bench.append(entry)
                case _:
                    pass
    later = later_rows(folder)
    for entry in later:
        figures.add_later(entry)
    progress = figures.snapshot()
    given = chronological(at_bench, later)
    answers = _answers(given)
    items = []
    judgments = [entry.record.judgment for entry in given if isinstance(entry.record, JudgmentGiven)]
    for judged in judged_in(progress.session.session_id if progress.session else "", progress.trials, judgments):
        response, trial = judged.response, judged.response.trial
        key = (trial.id, response.take, response.attempt)
        holds = [one for one in judged.judgments if one.status is JudgmentStatus.HELD]
        held_by = tuple(one.rater for one in holds)
        evidence = progress.effects.get(key)
        if evidence is None and held_by:
            evidence = EffectEvidence(EffectCheck("", question=HELD_QUESTION), due_wall_s=responses_wall_s.get(key))
        if evidence is not None:
            items.append(
                EffectItem(
                    folder=folder,
                    session_id=judged.session_id,
                    trial=trial,
                    take=response.take,
                    attempt=response.attempt,
                    evidence=evidence,
                    said=response.transcript or "",
                    held_by=held_by,
                    waited_for=any(one.effect is evidence.word for one in holds),
                    answers=answers.get(key, ()),
                )
            )
    return SessionEffects(tuple(items), progress.finished is not None and progress.left == 0)


def _answers(given: Iterable[Entry]) -> dict[Key, tuple[tuple[float, EffectAnswered], ...]]:
    found: dict[Key, tuple[tuple[float, EffectAnswered], ...]] = {}
    for entry in given:
        if isinstance(row := entry.record, EffectAnswered):
            key = (row.trial_id, row.take, row.attempt)
            found[key] = (*found.get(key, ()), (entry.wall_s, row))
    return found
