"""How far the raters of a round are, for whoever coordinates them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.model.judgment import Judgment, RatingRound
from harness.rating.items import Item
from harness.rating.own_rows import OwnRows
from harness.rating.sitting_view import Count
from harness.rating.standing import Standing


@dataclass(frozen=True, slots=True)
class RaterProgress:
    """exercises: (done, all). pace_s: median time to an answer. known: (right, answered) of the known answers.

    stopped: by the round's rule. open: what others could do for them. last_wall_s: of their last row, a Unix time.
    """

    rater: str
    count: Count
    exercises: tuple[int, int]
    pace_s: float | None
    known: tuple[int, int]
    stopped: bool
    open: int
    last_wall_s: float | None

    @property
    def left_s(self) -> float | None:
        """What is left at that pace."""
        return None if self.pace_s is None else self.pace_s * self.count.left

    @property
    def known_share(self) -> float | None:
        """Right ones of the known answers; None before the first."""
        right, answered = self.known
        return right / answered if answered else None


def raters_of(round_: RatingRound, rows: Iterable[Judgment]) -> tuple[str, ...]:
    """Those that the round names, and whoever else has judged in it."""
    others = {row.rater for row in rows if row.round == round_.id} - set(round_.raters)
    return (*round_.raters, *sorted(others))


def standing_of(
    rater: str, round_: RatingRound, items: Sequence[Item], exercises: Sequence[Item], rows: Iterable[Judgment]
) -> Standing:
    """Where a rater stands, by what is on the disk."""
    return Standing(rater, round_, items, exercises, OwnRows(rater, round_, rows))


def progress_of(rater: str, standing: Standing) -> RaterProgress:
    """The same in figures."""
    return RaterProgress(
        rater=rater,
        count=standing.count,
        exercises=standing.exercises,
        pace_s=standing.rows.pace_s,
        known=standing.known_answers,
        stopped=standing.stopped,
        open=len(standing.not_done),
        last_wall_s=standing.rows.last_wall_s,
    )
