"""Effects of a session's first responses, with the answers of people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.model.effect import EffectCheck, EffectEvidence
from harness.model.judgment import JudgmentStatus
from harness.model.record import EffectAnswered, Entry, ResponseFrozen, chronological
from harness.model.trial import Trial
from harness.session.figures.effects import Key
from harness.session.figures.progress import SessionFigures
from harness.session.log.reader import LogReader, later_rows

HELD_QUESTION = "What did it do?"
"""Question on a held response for which the scenario names no effect."""


@dataclass(frozen=True, slots=True)
class EffectItem:
    """A first response with its effect.

    said: our transcript. held_by: raters who hold it. waited_for: a rater held it with the present evidence. answers:
    people's answers with Unix times, oldest first.
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
        """Whether the effect is unknown, or a rater holds the response despite an answer."""
        return self.evidence.is_open or self.waited_for

    def is_due(self, now_wall_s: float) -> bool:
        """Whether it is open, and a person can already observe it."""
        due_s = self.evidence.due_wall_s
        return self.is_open and (due_s is None or due_s <= now_wall_s)


@dataclass(frozen=True, slots=True)
class SessionEffects:
    """All effects of a session. ended: no more responses will come, unless the session is resumed."""

    items: tuple[EffectItem, ...]
    ended: bool


def effects_of(folder: Path) -> SessionEffects:
    """First responses with an effect check, a hold or an answer, in the order of playing; LogError.

    Works while the session runs and while raters work.
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
                case EffectAnswered():
                    at_bench.append(entry)
                case _:
                    pass
    later = later_rows(folder)
    for entry in later:
        figures.add_later(entry)
    progress = figures.snapshot()
    answers = _answers(chronological(at_bench, later))
    items = []
    for response in filter(None, (one.response for one in progress.trials)):
        key = (response.trial.id, response.take, response.attempt)
        latest = {one.rater: one for one in response.judgments if not one.adjudicates}
        given = [one for one in response.judgments if latest.get(one.rater) is one]
        holds = [one for one in given if one.status is JudgmentStatus.HELD]
        held_by = tuple(one.rater for one in holds)
        evidence = progress.effects.get(key)
        if evidence is None and held_by:
            evidence = EffectEvidence(EffectCheck("", question=HELD_QUESTION), due_wall_s=responses_wall_s.get(key))
        if evidence is not None:
            items.append(
                EffectItem(
                    folder=folder,
                    session_id=progress.session.session_id if progress.session else "",
                    trial=response.trial,
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
