"""Where a rater stands in a round: what is done, what can be judged now and in which order, what waits."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.judgment import Judgment, JudgmentStatus, RatingRound
from harness.rating.items import Item
from harness.rating.own_rows import OwnRows, Subject, subject_of
from harness.rating.queue import assigned
from harness.rating.sitting_view import Count, Given

DONE = (JudgmentStatus.SUBMITTED, JudgmentStatus.FLAGGED)


class Standing:
    """The rater's share of the items, in their order, against the rows that they have given.

    What raters agree on is none of an adjudicator's, until they have given a row on it. with_held: held items are given
    out although nobody has said what the device did. Worked out once after each change.
    """

    def __init__(
        self,
        rater: str,
        round_: RatingRound,
        items: Sequence[Item],
        exercises: Sequence[Item],
        rows: OwnRows,
        *,
        with_held: bool = False,
    ) -> None:
        self.rows = rows
        self.with_held = with_held
        self._exercises = tuple(exercises)
        mine = assigned(items, round_, rater)
        self._mine = mine
        self._stop = round_.stop
        self._any_agreed = any(item.agreed for item in mine)
        every = (*self._exercises, *mine)
        self._by_id = {item.id: item for item in every}
        self._by_subject: dict[Subject, Item] = {item.subject.key: item for item in every}
        self._positions = {item.id: number for queue in (self._exercises, mine) for number, item in enumerate(queue, 1)}
        self._known: tuple[tuple[Item, ...], Count] | None = None

    def item(self, item_id: str) -> Item | None:
        """By its blind id."""
        return self._by_id.get(item_id)

    def position(self, item: Item) -> int | None:
        """In the rater's order, from 1; exercises are counted for themselves."""
        return self._positions.get(item.id)

    def add(self, row: Judgment) -> None:
        """Takes the rater's next row."""
        self.rows.add(row)
        self._known = None

    def release_held(self) -> None:
        """From now on held items are given out all the same."""
        self.with_held, self._known = True, None

    @property
    def exercises(self) -> tuple[int, int]:
        """Done, and all."""
        return len(self._exercises) - len(self.exercises_left), len(self._exercises)

    @property
    def exercises_left(self) -> tuple[Item, ...]:
        return self.rows.exercises_left(self._exercises)

    @property
    def left(self) -> tuple[Item, ...]:
        """What can be judged now: what is new, what was held and is known now, then what was skipped, oldest first."""
        return self._counted[0]

    @property
    def next(self) -> Item | None:
        """What comes next: exercises first; nothing for who was stopped."""
        if self.stopped:
            return None
        return next(iter((*self.exercises_left, *self.left)), None)

    def open(self, item: Item) -> bool:
        """Whether it may be in sight: still to be judged."""
        return not self.stopped and item in (self.exercises_left if item.exercise is not None else self.left)

    @property
    def not_done(self) -> tuple[Item, ...]:
        """What others could do for the rater: all that is neither judged nor put aside, known answers left out."""
        rows = ((item, self.rows.status(item)) for item in self._mine if item.hidden.gold is None)
        return tuple(item for item, status in rows if status not in DONE)

    @property
    def known_answers(self) -> tuple[int, int]:
        """Right, and all that were given to responses whose category is known."""
        right = answered = 0
        for item in self._mine:
            gold, row = item.hidden.gold, self.rows.standing(item)
            if gold is not None and row is not None and row.category is not None:
                answered += 1
                right += gold.is_right(row.category)
        return right, answered

    @property
    def stopped(self) -> bool:
        """Whether the round's rule has stopped the rater, who then can change nothing, either."""
        return self._stop is not None and self._stop.stops(*self.known_answers)

    @property
    def last(self) -> tuple[Judgment, Item] | None:
        """The latest row in force whose item is still in the round: what an undo takes back."""
        if self.stopped:
            return None
        for row in self.rows.undoable:
            if (item := self._by_subject.get(subject_of(row))) is not None:
                return row, item
        return None

    @property
    def can_go_back(self) -> bool:
        """Whether `given` may have any."""
        return self._any_agreed or self.last is not None

    def given(self, words: str = "") -> tuple[Given, ...]:
        """What has all the words and may be opened again: the rater's rows of this round, the latest first.

        To an adjudicator also what raters agree on. Exercises have been explained and stay as they are.
        """
        own: dict[str, Given] = {}
        for row in () if self.stopped else self.rows.undoable:
            item = self._by_subject.get(subject_of(row))
            if item is not None and item.exercise is None:
                own.setdefault(item.id, Given(item, row))
        agreed = (Given(item, None) for item in self._mine if item.agreed and item.id not in own)
        return tuple(one for one in (*own.values(), *agreed) if one.has(words))

    @property
    def count(self) -> Count:
        return self._counted[1]

    @property
    def _counted(self) -> tuple[tuple[Item, ...], Count]:
        """What is left and the counts, from one look at every item."""
        if self._known is None:
            self._known = self._count()
        return self._known

    def _count(self) -> tuple[tuple[Item, ...], Count]:
        fresh: list[Item] = []
        freed: list[Item] = []
        later: list[Item] = []
        done = flagged = 0
        total = len(self._mine)
        for item in self._mine:
            row = self.rows.standing(item)
            if row is None and item.agreed:
                total -= 1
            elif row is not None and row.status in DONE:
                done += 1
                flagged += row.status is JudgmentStatus.FLAGGED
            elif row is not None and row.status is JudgmentStatus.HELD:
                if self.with_held or _known_since(item, row):
                    freed.append(item)
            elif self.with_held or not item.waits_for_effect:
                (fresh if row is None else later).append(item)
        # Who leaves one for the end twice has seen the others in between.
        left = (*fresh, *freed, *sorted(later, key=self.rows.given_as))
        held = total - done - len(left)
        return left, Count(total, done, len(left), len(later), held, flagged)


def _known_since(item: Item, hold: Judgment) -> bool:
    """Whether more is known of the effect than when it was held."""
    return item.effect is not None and not item.effect.is_open and hold.effect is not item.effect.word
