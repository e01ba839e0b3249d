"""What each rater did: how much, how fast, how carefully, how often right where it is known what is right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.model.judgment import EXERCISE, Exercise, GoldItem, Judgment, JudgmentStatus, in_force
from harness.rating.figures.judged import JudgedResponse
from harness.statistics.intervals import Share

WHOLE_SHARE = 0.95
"""Of a clip's length: a rater who heard so much heard it whole; players round, and cut silence."""


@dataclass(frozen=True, slots=True)
class Quartiles:
    """Of durations, seconds."""

    low_s: float
    median_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class Pace:
    """times: judgments whose time to answer is known. per_hour: of pure answering, pauses between items left out."""

    times: int = 0
    quartiles: Quartiles | None = None
    per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class RaterFigures:
    """Counts of one rater over all sessions.

    submitted, skipped, flagged, held: judgments in force on responses that count. withdrawn: rows that took one back.
    outdated: judgments in force on responses that no longer count, as their trial was run again.
    too_fast: answers given in less time than the response lasts, of those with a time. heard_whole: of those where it
    is known how much was heard. transcript_shown: of all submitted. gold, exercises: right ones; exercises counts
    first answers. others: submitted labels that are the consensus of the others, where there is one (see `agreement`);
    first_half, second_half: the same by the order in which the rater gave them.
    """

    rater: str
    submitted: int = 0
    skipped: int = 0
    flagged: int = 0
    held: int = 0
    withdrawn: int = 0
    outdated: int = 0
    pace: Pace = field(default_factory=Pace)
    too_fast: Share = field(default_factory=Share)
    heard_whole: Share = field(default_factory=Share)
    transcript_shown: Share = field(default_factory=Share)
    gold: Share = field(default_factory=Share)
    exercises: Share = field(default_factory=Share)
    others: Share = field(default_factory=Share)
    first_half: Share = field(default_factory=Share)
    second_half: Share = field(default_factory=Share)


@dataclass(frozen=True, slots=True)
class RatedSession:
    """A session's responses (`judged_in`) and all its judgment rows, oldest first."""

    session_id: str
    responses: tuple[JudgedResponse, ...]
    rows: tuple[Judgment, ...]


def rater_figures(
    sessions: Sequence[RatedSession],
    gold: Mapping[tuple[str, str], GoldItem],
    exercises: Iterable[Exercise],
    agreed: Mapping[str, Sequence[bool]],
) -> tuple[RaterFigures, ...]:
    """Of every rater, in the order of their names; the same name in several sessions is one rater.

    gold: by session and trial. agreed: for each rater, oldest first, whether a label is what the others agree on.
    """
    standing: dict[str, list[tuple[JudgedResponse, Judgment]]] = defaultdict(list)
    rows: dict[str, list[Judgment]] = defaultdict(list)
    for session in sessions:
        for response in session.responses:
            for judgment in response.judgments:
                standing[judgment.rater].append((response, judgment))
        for row in {row.id: row for row in session.rows}.values():
            if not row.adjudicates:
                rows[row.rater].append(row)
    known = {one.trial_id: one for one in exercises}
    return tuple(
        _of(rater, standing.get(rater, []), rows[rater], gold, known, agreed.get(rater, ())) for rater in sorted(rows)
    )


def gold_items(gold: Iterable[GoldItem]) -> dict[tuple[str, str], GoldItem]:
    """By session and trial."""
    return {(one.session, one.trial): one for one in gold}


def _of(
    rater: str,
    standing: Sequence[tuple[JudgedResponse, Judgment]],
    rows: Sequence[Judgment],
    gold: Mapping[tuple[str, str], GoldItem],
    exercises: Mapping[str, Exercise],
    agreed: Sequence[bool],
) -> RaterFigures:
    of_exercises = {row.id for row in rows if row.trial_id.startswith(EXERCISE)}
    on_responses = [row for row in rows if row.id not in of_exercises]
    statuses = Counter(judgment.status for _, judgment in standing)
    submitted = [(response, one) for response, one in standing if one.status is JudgmentStatus.SUBMITTED]
    counting = {one.id for _, one in standing}
    half = len(agreed) // 2
    return RaterFigures(
        rater,
        statuses[JudgmentStatus.SUBMITTED],
        statuses[JudgmentStatus.SKIPPED],
        statuses[JudgmentStatus.FLAGGED],
        statuses[JudgmentStatus.HELD],
        sum(row.status is JudgmentStatus.WITHDRAWN for row in on_responses),
        sum(row.id not in counting for row in in_force(on_responses)),
        _pace([one for _, one in submitted]),
        _share(
            one.time_to_answer_s < response.response.clip.duration_s
            for response, one in submitted
            if one.time_to_answer_s is not None
        ),
        _share(
            one.heard_ms >= 1000 * WHOLE_SHARE * response.response.clip.duration_s
            for response, one in submitted
            if one.heard_ms is not None
        ),
        _share(one.transcript_shown for _, one in submitted),
        _share(
            known.is_right(one.category)
            for response, one in submitted
            if (known := gold.get((response.session_id, response.trial.trial.id))) is not None
        ),
        _first_answers(rows, exercises),
        _share(agreed),
        _share(agreed[:half]),
        _share(agreed[half:]) if half else Share(),
    )


def _first_answers(rows: Sequence[Judgment], exercises: Mapping[str, Exercise]) -> Share:
    """Later ones are given with the explanation at hand."""
    first: dict[str, Judgment] = {}
    for row in rows:
        if row.trial_id in exercises and row.status is JudgmentStatus.SUBMITTED:
            first.setdefault(row.trial_id, row)
    return _share(exercises[row.trial_id].is_right(row.category) for row in first.values())


def _pace(judgments: Sequence[Judgment]) -> Pace:
    times = np.array([one.time_to_answer_s for one in judgments if one.time_to_answer_s is not None], np.float64)
    if not len(times):
        return Pace()
    low, median, high = map(float, np.quantile(times, (0.25, 0.5, 0.75)))
    spent = float(times.sum())
    return Pace(len(times), Quartiles(low, median, high), 3600 * len(times) / spent if spent > 0 else None)


def _share(right: Iterable[bool]) -> Share:
    answers = list(right)
    return Share(sum(answers), len(answers))
