"""First responses with all that raters said of them, at the bench and later, for agreement and for category figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from harness.model.judgment import Category, Judgment, JudgmentStatus, in_force
from harness.session.figures.progress import Progress
from harness.session.figures.trials import FirstResponse, TrialProgress


@dataclass(frozen=True, slots=True)
class JudgedResponse:
    """A first response and the judgments in force on it, oldest first; each rater has one at most.

    judgments: of raters, whatever their status. settled: the adjudication in force, which is none of them.
    """

    session_id: str
    trial: TrialProgress
    response: FirstResponse
    judgments: tuple[Judgment, ...] = ()
    settled: Judgment | None = None

    @property
    def submitted(self) -> tuple[Judgment, ...]:
        """Those with a category."""
        return tuple(one for one in self.judgments if one.status is JudgmentStatus.SUBMITTED)

    @property
    def agreed(self) -> Category | None:
        """The category of the adjudication, else the one that all raters gave; None when there is neither."""
        if self.settled is not None:
            return self.settled.category
        given = {one.category for one in self.submitted}
        return given.pop() if len(given) == 1 else None

    @property
    def disputed(self) -> bool:
        """Raters differ, and nobody has settled it."""
        return self.settled is None and len({one.category for one in self.submitted}) > 1


def judged_in(progress: Progress, rows: Iterable[Judgment]) -> tuple[JudgedResponse, ...]:
    """A session's first responses in the order of playing, judged or not.

    rows: every judgment row of the session, oldest first (`log.judgment_log.rating_rows`), those in the log included.
    A judgment belongs to the clip that it was given on, so that a trial that was run again is to be judged anew.
    """
    by_clip: dict[tuple[str, str], list[Judgment]] = defaultdict(list)
    seen: set[str] = set()
    for row in rows:
        if row.id not in seen:
            seen.add(row.id)
            by_clip[row.trial_id, row.clip_sha256].append(row)
    session_id = progress.session.session_id if progress.session else ""
    found = []
    for trial in progress.trials:
        response = trial.response
        if response is None:
            continue
        standing = in_force(by_clip.get((trial.trial.id, response.clip.sha256), []))
        latest = {one.rater: one for one in standing if not one.adjudicates}
        settled = [one for one in standing if one.adjudicates and one.status is JudgmentStatus.SUBMITTED]
        raters = tuple(one for one in standing if latest.get(one.rater) is one)
        found.append(JudgedResponse(session_id, trial, response, raters, settled[-1] if settled else None))
    return tuple(found)
