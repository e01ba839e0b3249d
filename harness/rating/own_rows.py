"""A rater's own rows of judgment: what stands on each item, what was last, and how the exercises went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from harness.model.judgment import Judgment, JudgmentStatus, in_force
from harness.model.rating_round import RatingRound
from harness.rating.items import Item

Subject = tuple[str, str, str]


class OwnRows:
    """The rows of one rater among all; a row is added when it is on the disk.

    A row of an older session names no session: it belongs to the item with its trial and clip. Adjudications stand
    apart from judgments: who judged an item may adjudicate it as well.
    """

    def __init__(self, rater: str, round_: RatingRound, rows: Iterable[Judgment]) -> None:
        self._round = round_
        self._rows: dict[Subject, list[Judgment]] = defaultdict(list)
        self._order: list[Judgment] = []
        self._seen: set[str] = set()
        for row in rows:
            if row.rater == rater:
                self.add(row)

    def add(self, row: Judgment) -> None:
        """Takes the rater's next row."""
        if row.id in self._seen:
            return
        self._seen.add(row.id)
        self._rows[row.session_id, row.trial_id, row.clip_sha256].append(row)
        self._order.append(row)

    def standing(self, item: Item) -> Judgment | None:
        """The row in force on an item."""
        rows = [row for row in in_force(self._all(item)) if bool(row.adjudicates) == bool(item.inputs)]
        return rows[-1] if rows else None

    def status(self, item: Item) -> JudgmentStatus | None:
        """Of that row."""
        row = self.standing(item)
        return None if row is None else row.status

    @property
    def last(self) -> Judgment | None:
        """The latest row of this round that is in force: what an undo takes back."""
        standing = in_force(self._order)
        mine = [row for row in standing if row.round == self._round.id]
        return mine[-1] if mine else None

    @property
    def times_s(self) -> tuple[float, ...]:
        """Times to the answers of this round that stand, exercises left out, in the order of giving."""
        return tuple(
            row.time_to_answer_s
            for row in in_force(self._order)
            if row.round == self._round.id
            and row.status is JudgmentStatus.SUBMITTED
            and row.time_to_answer_s is not None
            and not row.trial_id.startswith("exercise:")
        )

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
        return row is not None and exercise is not None and row.category in (exercise.category, *exercise.accept)

    def _answers(self, item: Item) -> int:
        """How often it was answered, what was taken back left out."""
        withdrawn = {row.replaces for row in self._all(item) if row.status is JudgmentStatus.WITHDRAWN}
        return sum(row.status is JudgmentStatus.SUBMITTED and row.id not in withdrawn for row in self._all(item))

    def _all(self, item: Item) -> list[Judgment]:
        subject = item.subject
        named = self._rows.get((subject.session_id, subject.trial_id, subject.clip_sha256), [])
        if not subject.session_id:
            return named
        return [*self._rows.get(("", subject.trial_id, subject.clip_sha256), []), *named]
