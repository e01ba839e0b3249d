"""Queries with their ends and their judgments, as category figures are given them, without a disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.record import SessionStarted
from harness.model.trial import Outcome, Recognition, Trial
from harness.rating.figures.judged_responses import RatedTrial, judged_responses_of, rated_trials_of, select_rows
from harness.session.figures.progress import Progress, SessionFigures
from tests.unit.session.figures.rows import Rows, clip_of, planned

Said = Mapping[str, Category | JudgmentStatus]


@dataclass(frozen=True)
class Case:
    """A query and what came of it. said: rater → category, or why there is none. outcome None: not played."""

    id: str
    said: Said = field(default_factory=dict)
    settled: Category | None = None
    device: str = "kitchen"
    query: str = ""
    text: str = "what time is it"
    query_class: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    outcome: Outcome | None = Outcome.RESPONDED
    recognition: Recognition = Recognition.YES
    attempts: int = 1
    core: bool = False
    sub_flags: tuple[str, ...] = ()
    recorded: bool = True
    round: str = ""

    def trial(self, number: int) -> Trial:
        return replace(
            planned(number, self.text, self.id, self.device),
            query_id=self.query or self.id,
            query_class=self.query_class,
            conditions=self.conditions,
            core_capability=self.core,
        )

    def judgments(self) -> list[Judgment]:
        rows = [self._row(f"{rater}:{self.id}", rater, verdict) for rater, verdict in self.said.items()]
        if self.settled is None:
            return rows
        ids = tuple(row.id for row in rows)
        return [*rows, replace(self._row(f"settled:{self.id}", "chair", self.settled), adjudicates=ids)]

    def _row(self, id_: str, rater: str, verdict: Category | JudgmentStatus) -> Judgment:
        category = verdict if isinstance(verdict, Category) else None
        status = JudgmentStatus.SUBMITTED if isinstance(verdict, Category) else verdict
        return Judgment(
            id_, self.id, self.attempts, rater, status, category, clip_of(self.id).sha256, round=self.round,
            sub_flags=self.sub_flags if category is not None else ()
        )  # fmt: skip


def progress_of(cases: Sequence[Case], session_id: str = "s1") -> Progress:
    rows = Rows.of(*(case.trial(number) for number, case in enumerate(cases, 1)))
    for case in cases:
        if case.outcome is not None:
            clip = clip_of(case.id) if case.outcome.answered and case.recorded else None
            rows.trial(case.id, case.outcome, case.recognition, attempts=case.attempts, clip=clip, text="an answer")
    figures = SessionFigures()
    for entry in rows.entries:
        record = entry.record
        is_first = isinstance(record, SessionStarted)
        figures.add(replace(entry, record=replace(record, session_id=session_id)) if is_first else entry)
    return figures.snapshot()


def rated(
    *cases: Case, session_id: str = "s1", raters: tuple[str, ...] = (), round_id: str | None = None
) -> tuple[RatedTrial, ...]:
    """The queries with all that was said of them."""
    progress = progress_of(cases, session_id)
    rows = select_rows([row for case in cases for row in case.judgments()], raters, round_id)
    judged = judged_responses_of(session_id, progress.trials, rows)
    return rated_trials_of(session_id, progress.trials, judged)


@dataclass(frozen=True)
class Fleet:
    """first, second: shares of correct responses over all queries. spread: of a query's own share, in 0 to 1.

    own: of the spread, the part that each device has for itself; the rest a query has for both alike.
    """

    queries: int = 40
    repeats: int = 2
    first: float = 0.7
    second: float = 0.7
    spread: float = 0.6
    own: float = 0.5

    def __str__(self) -> str:
        return f"{self.queries}x{self.repeats},{self.first}/{self.second},{self.spread},{self.own}"


def chances(rng: np.random.Generator, fleet: Fleet) -> np.ndarray:
    """Of each query for each device; on average the shares of the fleet."""
    which = rng.random((fleet.queries, 2))
    which = np.where(rng.random((fleet.queries, 1)) < fleet.own, which, which[:, :1])
    shares = np.array([fleet.first, fleet.second])
    # A query is all right or all wrong by `spread`, else as good as the device is.
    return fleet.spread * (which < shares) + (1 - fleet.spread) * shares


def simulated(rng: np.random.Generator, fleet: Fleet) -> tuple[RatedTrial, ...]:
    """A session in which each query was asked of both devices, and one rater judged all."""
    right = (rng.random((fleet.queries, 2, fleet.repeats)) < chances(rng, fleet)[:, :, None]).ravel().tolist()
    return tuple(
        replace(trial, category=Category.CORRECT if good else Category.WRONG)
        for trial, good in zip(_asked(fleet.queries, fleet.repeats), right, strict=True)
    )


@cache
def _asked(queries: int, repeats: int) -> tuple[RatedTrial, ...]:
    return rated(
        *(
            Case(f"q{query}-{device}.r{repeat}", {"ann": Category.CORRECT}, device=device, query=f"q{query}")
            for query in range(queries)
            for device in "ab"
            for repeat in range(repeats)
        )
    )
