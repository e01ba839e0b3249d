"""A rater's own rows of judgment: what stands on each item, what was last, and how the exercises went."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from harness.model.judgment import EXERCISE, Judgment, JudgmentStatus, RatingRound, in_force
from harness.rating.items import Item

Subject = tuple[str, str, str]
PACE_ITEMS = 30
"""Of how many of the last answers the pace is the median."""


def subject_of(row: Judgment) -> Subject:
    """Session, trial and clip that a row is about."""
    return row.session_id, row.trial_id, row.clip_sha256


class OwnRows:
    """The rows of one rater among all, in the order of giving; a row is added when it is on the disk.

    rows: of several sessions, in any order. A row of an older session names no session: it belongs to the item with its
    trial and clip. Adjudications stand apart from judgments: who judged an item may adjudicate it as well.
    """

    def __init__(self, rater: str, round_: RatingRound, rows: Iterable[Judgment]) -> None:
        self._rater, self._round = rater, round_
        self._rows: dict[Subject, list[Judgment]] = defaultdict(list)
        self._number: dict[str, int] = {}
        self._order: list[Judgment] = []
        self._standing: dict[tuple[Subject, bool], Judgment | None] = {}
        for row in _in_order(row for row in rows if row.rater == rater):
            self.add(row)

    def with_rows(self, rows: Iterable[Judgment]) -> OwnRows:
        """These and those: rows are only ever added, so that what was read a moment ago takes none away."""
        return OwnRows(self._rater, self._round, (*self._order, *rows))

    def __contains__(self, row_id: object) -> bool:
        """Whether the rater has given a row of that id, in force or not."""
        return row_id in self._number

    def add(self, row: Judgment) -> None:
        """Takes the rater's next row."""
        if row.id in self._number:
            return
        self._number[row.id] = len(self._order)
        self._rows[subject_of(row)].append(row)
        self._order.append(row)
        if not row.session_id and not row.trial_id.startswith(EXERCISE):
            self._standing.clear()
        for adjudicating in (False, True):
            self._standing.pop((subject_of(row), adjudicating), None)

    def standing(self, item: Item) -> Judgment | None:
        """The row in force on an item."""
        key = (item.subject.key, bool(item.inputs))
        if key not in self._standing:
            rows = [row for row in in_force(self._all(item)) if bool(row.adjudicates) == bool(item.inputs)]
            self._standing[key] = max(rows, key=lambda row: self._number[row.id], default=None)
        return self._standing[key]

    def all_of(self, item: Item) -> tuple[Judgment, ...]:
        """All rows on an item, what was taken back included, oldest first."""
        return tuple(self._all(item))

    def status(self, item: Item) -> JudgmentStatus | None:
        """Of that row."""
        row = self.standing(item)
        return None if row is None else row.status

    def given_as(self, item: Item) -> int:
        """Which of the rater's rows that one was, counted from 0; −1 when there is none."""
        row = self.standing(item)
        return -1 if row is None else self._number[row.id]

    @property
    def undoable(self) -> tuple[Judgment, ...]:
        """The rows of this round that are in force, the latest first."""
        return tuple(row for row in reversed(in_force(self._order)) if row.round == self._round.id)

    @property
    def times_s(self) -> tuple[float, ...]:
        """Times to the answers of this round that stand, exercises left out, in the order of giving."""
        return tuple(
            row.time_to_answer_s
            for row in reversed(self.undoable)
            if row.status is JudgmentStatus.SUBMITTED
            and row.time_to_answer_s is not None
            and not row.trial_id.startswith(EXERCISE)
        )

    @property
    def pace_s(self) -> float | None:
        """The median time to one of the last answers."""
        times = self.times_s[-PACE_ITEMS:]
        return statistics.median(times) if times else None

    @property
    def last_wall_s(self) -> float | None:
        """When the rater has given the last row of this round that stands, as a Unix time."""
        return next((row.given_wall_s for row in self.undoable), None)

    def exercises_left(self, exercises: Sequence[Item]) -> tuple[Item, ...]:
        """Exercises to do: those not done yet; and once more those that went wrong, when too many did."""
        new = tuple(item for item in exercises if self.standing(item) is None)
        if new or not exercises:
            return new
        wrong = [item for item in exercises if not self._right(item)]
        if len(exercises) - len(wrong) >= self._round.pass_share * len(exercises):
            return ()
        return tuple(item for item in wrong if self._answers(item) < 2)

    def _right(self, item: Item) -> bool:
        row, exercise = self.standing(item), item.exercise
        return row is not None and exercise is not None and exercise.is_right(row.category)

    def _answers(self, item: Item) -> int:
        """How often it was answered, what was taken back left out."""
        withdrawn = {row.replaces for row in self._all(item) if row.status is JudgmentStatus.WITHDRAWN}
        return sum(row.status is JudgmentStatus.SUBMITTED and row.id not in withdrawn for row in self._all(item))

    def _all(self, item: Item) -> list[Judgment]:
        subject = item.subject
        named = self._rows.get(subject.key, [])
        if not subject.session_id:
            return named
        return [*self._rows.get(("", subject.trial_id, subject.clip_sha256), []), *named]


def _in_order(rows: Iterable[Judgment]) -> list[Judgment]:
    """Rows of several sessions as they were given; within a session also over a clock set back."""
    latest_s: dict[str, float] = defaultdict(float)
    timed = []
    for row in rows:
        given_s = row.given_wall_s or 0.0
        if not row.imported_from:
            given_s = latest_s[row.session_id] = max(latest_s[row.session_id], given_s)
        timed.append((given_s, row))
    return [row for _, row in sorted(timed, key=lambda pair: pair[0])]
