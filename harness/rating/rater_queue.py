"""A rater's progress in a round: which items are done, which can be judged now and in which order, and which wait."""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from harness.base.user_text import to_nfc
from harness.model.frozen import frozen
from harness.model.judgment import EXERCISE, Category, ItemFilter, Judgment, JudgmentStatus, RatingRound, in_force
from harness.rating.guide import LABELS
from harness.rating.items import Item


def sampled_items(items: Iterable[Item], item_filter: ItemFilter, seed: int) -> tuple[Item, ...]:
    """The items of a round, in order; at most `item_filter.limit`, drawn by the seed, known answers first.

    Each item is drawn by its own hash, so that later responses displace few earlier ones.
    """
    matching = [item for item in items if _matches(item, item_filter)]
    if item_filter.limit is None or len(matching) <= item_filter.limit:
        return tuple(matching)
    ranked = sorted(matching, key=lambda item: (item.hidden.gold is None, _hash(seed, "draw", _trial_key(item))))
    drawn = {item.id for item in ranked[: item_filter.limit]}
    return tuple(item for item in matching if item.id in drawn)


def assigned_items(items: Sequence[Item], round_: RatingRound, rater: str) -> tuple[Item, ...]:
    """The rater's share, in an order that depends on rater and seed.

    With `raters_per_item`, each item goes to that number of raters, and shares differ by at most one item. Known
    answers go to all raters. Later items are inserted without changing the order of the others.
    """
    own_items: Iterable[Item] = items
    if has_partial_assignment(round_):
        shares = raters_by_item(items, round_)
        own_items = (item for item in items if rater in shares[item.id])
    return tuple(sorted(own_items, key=lambda item: _hash(round_.seed, rater, item.id)))


def has_partial_assignment(round_: RatingRound) -> bool:
    """Whether each response goes to only some of the raters."""
    return round_.raters_per_item is not None and round_.raters_per_item < len(round_.raters)


def raters_by_item(items: Sequence[Item], round_: RatingRound) -> dict[str, frozenset[str]]:
    """The raters of each item, if each goes only to some: those with the fewest items so far, ties broken by a hash.

    The order is that of answering, so that shares stay while a session runs. Moves of a coordinator apply afterwards.
    """
    load: Counter[str] = Counter(dict.fromkeys(round_.raters, 0))
    shares: dict[str, frozenset[str]] = {}
    for item in items:
        if item.hidden.gold is not None:
            shares[item.id] = frozenset(round_.raters)
            continue
        tie_breaks = {rater: _hash(round_.seed, _trial_key(item), rater) for rater in round_.raters}
        ranked = sorted(round_.raters, key=lambda rater: (load[rater], tie_breaks[rater]))
        chosen = ranked[: round_.raters_per_item]
        load.update(chosen)
        shares[item.id] = _raters_after_moves(frozenset(chosen), item)
    return shares


def _raters_after_moves(raters: frozenset[str], item: Item) -> frozenset[str]:
    for old_rater, new_rater in item.hidden.moves:
        if old_rater in raters:
            raters -= {old_rater}
            if new_rater:
                raters |= {new_rater}
    return raters


def reassignments(
    items: Sequence[Item], round_: RatingRound, moved_items: Iterable[Item], raters: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """(item id, new rater) for each of the moved items.

    The new rater is the one of `raters` with the fewest items among those who do not have the item; "" if all have it.
    """
    shares = raters_by_item(items, round_)
    load = Counter(rater for item in items for rater in shares[item.id])
    moves: list[tuple[str, str]] = []
    for item in moved_items:
        candidates = [rater for rater in raters if rater not in shares[item.id]]
        tie_breaks = {rater: _hash(round_.seed, _trial_key(item), rater) for rater in candidates}
        new_rater = min(candidates, key=lambda rater: (load[rater], tie_breaks[rater]), default="")
        load[new_rater] += 1
        moves.append((item.id, new_rater))
    return tuple(moves)


def _trial_key(item: Item) -> str:
    """A key of the trial, by which raters are assigned, so that the response of a re-run goes to the same raters."""
    return f"{item.subject.session_id}\n{item.subject.trial_id}"


def _hash(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def _matches(item: Item, item_filter: ItemFilter) -> bool:
    """Whether an item passes each criterion of a filter; for conditions, one of the labels of each axis."""
    hidden = item.hidden
    axes: dict[str, set[str]] = {}
    for axis, label in item_filter.conditions:
        axes.setdefault(axis, set()).add(label)
    conditions = dict(hidden.conditions)
    return (
        (not item_filter.devices or hidden.device in item_filter.devices)
        and (not item_filter.query_classes or hidden.query_class in item_filter.query_classes)
        and (not item_filter.queries or hidden.query_id in item_filter.queries)
        and (not item_filter.trials or item.subject.trial_id in item_filter.trials)
        and all(conditions.get(axis) in labels for axis, labels in axes.items())
    )


SubjectKey = tuple[str, str, str]
"""Session, trial and clip, as in `Subject.key`."""
MAX_PACE_ITEMS = 30
"""The pace is the median over at most this many of the last answers."""


def subject_of(row: Judgment) -> SubjectKey:
    return row.session_id, row.trial_id, row.clip_sha256


class OwnRows:
    """The rows of one rater that are on the disk, in the order in which they were given.

    rows: rows of several sessions, in any order. Judgments and adjudications are separate: a rater may adjudicate an
    item that they judged.
    """

    def __init__(self, rater: str, round_: RatingRound, rows: Iterable[Judgment]) -> None:
        self._rater, self._round = rater, round_
        self._rows_by_subject: dict[SubjectKey, list[Judgment]] = defaultdict(list)
        self._rows: list[Judgment] = []
        self._numbers: dict[str, int] = {}
        """Position in `_rows` by id of the row."""
        self._cached_in_force: dict[tuple[SubjectKey, bool], Judgment | None] = {}
        """The row in force by item, and whether it is an adjudication."""
        for row in _chronological(row for row in rows if row.rater == rater):
            self.add(row)

    def with_rows(self, rows: Iterable[Judgment]) -> OwnRows:
        """The same with these rows added. None is removed, even if `rows` lacks some of the latest."""
        # Those come first, so that an older row of another window stays before the rater's latest ones.
        return OwnRows(self._rater, self._round, (*rows, *self._rows))

    def __contains__(self, row_id: object) -> bool:
        """Whether the rater gave a row with this id, in force or not."""
        return row_id in self._numbers

    def add(self, row: Judgment) -> None:
        """Adds the rater's next row. Ignores one that was already added."""
        if row.id in self._numbers:
            return
        self._numbers[row.id] = len(self._rows)
        self._rows_by_subject[subject_of(row)].append(row)
        self._rows.append(row)
        for is_adjudication in (False, True):
            self._cached_in_force.pop((subject_of(row), is_adjudication), None)

    def in_force_on(self, item: Item) -> Judgment | None:
        """The row in force on an item; None without one."""
        is_adjudication = bool(item.inputs)
        key = (item.subject.key, is_adjudication)
        if key not in self._cached_in_force:
            rows = [row for row in in_force(self.all_on(item)) if bool(row.adjudicates) == is_adjudication]
            self._cached_in_force[key] = max(rows, key=lambda row: self._numbers[row.id], default=None)
        return self._cached_in_force[key]

    def row_number(self, item: Item) -> int:
        """Number of the row in force among the rater's rows, from 0; −1 for none."""
        row = self.in_force_on(item)
        return -1 if row is None else self._numbers[row.id]

    @property
    def undoable(self) -> tuple[Judgment, ...]:
        """The rows of this round that are in force, the latest first."""
        return tuple(row for row in reversed(in_force(self._rows)) if row.round == self._round.id)

    @property
    def pace_s(self) -> float | None:
        """The median time of the last answers in force in this round, without exercises."""
        times = [
            row.time_to_answer_s
            for row in self.undoable
            if row.status is JudgmentStatus.SUBMITTED
            and row.time_to_answer_s is not None
            and not row.trial_id.startswith(EXERCISE)
        ]
        return statistics.median(times[:MAX_PACE_ITEMS]) if times else None

    @property
    def last_wall_s(self) -> float | None:
        """Unix time of the rater's last row in force in this round."""
        return next((row.given_wall_s for row in self.undoable), None)

    def exercises_left(self, exercises: Sequence[Item]) -> tuple[Item, ...]:
        """Exercises to do: new ones, and wrong ones once more if too many first answers were wrong."""
        new = tuple(item for item in exercises if self.in_force_on(item) is None)
        if new or not exercises:
            return new
        answers = {item.id: self._answers(item) for item in exercises}
        # The first answer counts.
        wrong = [item for item in exercises if item.exercise and not item.exercise.is_right(answers[item.id][0])]
        if len(exercises) - len(wrong) >= self._round.pass_share * len(exercises):
            return ()
        return tuple(item for item in wrong if len(answers[item.id]) < 2)

    def _answers(self, item: Item) -> list[Category | None]:
        """The rater's answers to an exercise, oldest first, without those taken back."""
        rows = self.all_on(item)
        withdrawn = {row.replaces for row in rows if row.status is JudgmentStatus.WITHDRAWN}
        return [row.category for row in rows if row.status is JudgmentStatus.SUBMITTED and row.id not in withdrawn]

    def all_on(self, item: Item) -> list[Judgment]:
        """All rows on an item, in force or not, oldest first."""
        return self._rows_by_subject.get(item.subject.key, [])


def _chronological(rows: Iterable[Judgment]) -> list[Judgment]:
    """Rows of several sessions, sorted by time. Rows of one session keep their order, even if the clock was set
    back."""
    latest_s: dict[str, float] = defaultdict(float)
    dated_rows = []
    for row in rows:
        given_s = row.given_wall_s or 0.0
        if not row.imported_from:  # an imported row may be older than those before it
            given_s = max(latest_s[row.session_id], given_s)
            latest_s[row.session_id] = given_s
        dated_rows.append((given_s, row))
    return [row for _, row in sorted(dated_rows, key=lambda dated_row: dated_row[0])]


DONE = (JudgmentStatus.SUBMITTED, JudgmentStatus.FLAGGED)


@frozen
class QueueCounts:
    """Numbers of a rater's items.

    - total: all in the queue.
    - done: those with a category, or put aside.
    - left: those that can be judged now.
    - skipped: those left for the end, included in left.
    - held: those that wait for evidence of the effect, not included in left.
    - flagged: those put aside, included in done.
    """

    total: int = 0
    done: int = 0
    left: int = 0
    skipped: int = 0
    held: int = 0
    flagged: int = 0


@frozen
class ReopenableItem:
    """An item that can be reopened. row: the rater's row in force; None for an agreed item of an adjudicator."""

    item: Item
    row: Judgment | None

    def contains(self, words: str) -> bool:
        """Whether query, category and comment contain all of these words."""
        row = self.row
        label = LABELS[row.category] if row is not None and row.category is not None else ""
        text = to_nfc(f"{self.item.query} {label} {row.comment if row is not None else ''}").casefold()
        return all(word in text for word in to_nfc(words).casefold().split())


class RaterQueue:
    """The rater's share of the items, in order, with the rater's rows. Computed once after each change.

    For an adjudicator, an item on which raters agree belongs to the share once the adjudicator has a row on it.
    gives_held: whether held items are given out without evidence of their effect.
    """

    def __init__(
        self,
        rater: str,
        round_: RatingRound,
        items: Sequence[Item],
        exercises: Sequence[Item],
        rows: OwnRows,
        *,
        gives_held: bool = False,
    ) -> None:
        self.rater = rater
        self.rows = rows
        self.gives_held = gives_held
        self._exercises = tuple(exercises)
        own_items = assigned_items(items, round_, rater)
        self._own_items = own_items
        self._stop = round_.stop
        self._has_agreed_items = any(item.agreed for item in own_items)
        all_items = (*self._exercises, *own_items)
        self._by_id = {item.id: item for item in all_items}
        self._by_subject: dict[SubjectKey, Item] = {item.subject.key: item for item in all_items}
        disputed_first = sorted(own_items, key=lambda item: item.agreed)  # agreed ones are not in the count
        self._positions = {item.id: number for number, item in enumerate(disputed_first, start=1)}
        self._positions.update({item.id: number for number, item in enumerate(self._exercises, start=1)})
        self._cached_counts: tuple[tuple[Item, ...], QueueCounts] | None = None
        self._postponed_ids: set[str] = set()

    def item(self, item_id: str) -> Item | None:
        """The item with that blind id."""
        return self._by_id.get(item_id)

    def position(self, item: Item) -> int | None:
        """Position in the rater's order, from 1; exercises are counted separately."""
        return self._positions.get(item.id)

    def add(self, row: Judgment) -> None:
        """Adds the rater's next row."""
        self.rows.add(row)
        self._cached_counts = None

    def release_held(self) -> None:
        """Gives out held items from now on."""
        self.gives_held = True
        self._cached_counts = None

    def postpone(self, item: Item) -> None:
        """Does not give out the item any more; it stays open."""
        self._postponed_ids.add(item.id)

    @property
    def exercises(self) -> tuple[int, int]:
        """The number of exercises that are done, and that of all."""
        return len(self._exercises) - len(self.exercises_left), len(self._exercises)

    @property
    def exercises_left(self) -> tuple[Item, ...]:
        return self.rows.exercises_left(self._exercises)

    @property
    def left(self) -> tuple[Item, ...]:
        """Items to judge now: new ones, held ones with a known effect, then skipped ones, oldest first."""
        return self._items_and_counts[0]

    @property
    def next(self) -> Item | None:
        """The next item, exercises first; None for a stopped rater."""
        if self.stopped:
            return None
        return next((item for item in (*self.exercises_left, *self.left) if item.id not in self._postponed_ids), None)

    def is_open(self, item: Item) -> bool:
        """Whether an item is still to be judged."""
        return not self.stopped and item in (self.exercises_left if item.exercise is not None else self.left)

    @property
    def not_done(self) -> tuple[Item, ...]:
        """Items that others could judge instead: those neither judged nor put aside, without known answers."""
        not_done = []
        for item in self._own_items:
            row = self.rows.in_force_on(item)
            if item.hidden.gold is None and (row is None or row.status not in DONE):
                not_done.append(item)
        return tuple(not_done)

    @property
    def known_answers(self) -> tuple[int, int]:
        """Number of right judgments, and of all judgments, of responses with a known answer."""
        right = answered = 0
        for item in self._own_items:
            gold, row = item.hidden.gold, self.rows.in_force_on(item)
            if gold is not None and row is not None and row.category is not None:
                answered += 1
                if gold.is_right(row.category):
                    right += 1
        return right, answered

    @property
    def known_share(self) -> float | None:
        """Share of known answers that were right; None before the first."""
        right, answered = self.known_answers
        return right / answered if answered else None

    @property
    def left_s(self) -> float | None:
        """Time left at the rater's pace, seconds."""
        pace_s = self.rows.pace_s
        return None if pace_s is None else pace_s * self.count.left

    @property
    def stopped(self) -> bool:
        """Whether the round's rule stopped the rater, who then cannot change judgments either."""
        return self._stop is not None and self._stop.stops(*self.known_answers)

    @property
    def last(self) -> tuple[Judgment, Item] | None:
        """The row that an undo takes back: the latest in force whose item is still in the round."""
        if self.stopped:
            return None
        for row in self.rows.undoable:
            item = self._by_subject.get(subject_of(row))
            if item is not None:
                return row, item
        return None

    @property
    def can_go_back(self) -> bool:
        """Whether `reopenable_items` may return any."""
        return self._has_agreed_items or self.last is not None

    def reopenable_items(self, words: str = "") -> tuple[ReopenableItem, ...]:
        """Items that can be reopened and contain all the words: the rater's rows of this round, latest first.

        For an adjudicator, also items on which raters agree. Exercises cannot be reopened, since they were explained.
        """
        judged: dict[str, ReopenableItem] = {}
        own_rows = () if self.stopped else self.rows.undoable
        for row in own_rows:
            item = self._by_subject.get(subject_of(row))
            if item is not None and item.exercise is None:
                judged.setdefault(item.id, ReopenableItem(item, row))
        agreed = (ReopenableItem(item, None) for item in self._own_items if item.agreed and item.id not in judged)
        return tuple(reopenable for reopenable in (*judged.values(), *agreed) if reopenable.contains(words))

    @property
    def count(self) -> QueueCounts:
        return self._items_and_counts[1]

    @property
    def _items_and_counts(self) -> tuple[tuple[Item, ...], QueueCounts]:
        """The items that are left, and the counts."""
        if self._cached_counts is None:
            self._cached_counts = self._count()
        return self._cached_counts

    def _count(self) -> tuple[tuple[Item, ...], QueueCounts]:
        new: list[Item] = []
        released: list[Item] = []
        skipped: list[Item] = []
        done_count = flagged_count = 0
        total = len(self._own_items)
        for item in self._own_items:
            row = self.rows.in_force_on(item)
            if row is None and item.agreed:
                total -= 1
            elif row is not None and row.status in DONE:
                done_count += 1
                if row.status is JudgmentStatus.FLAGGED:
                    flagged_count += 1
            elif row is not None and row.status is JudgmentStatus.HELD:
                if self.gives_held or _has_new_evidence(item, row):
                    released.append(item)
            elif self.gives_held or not item.waits_for_effect:
                (new if row is None else skipped).append(item)
        # An item that is skipped twice comes after all others.
        left = (*new, *released, *sorted(skipped, key=self.rows.row_number))
        return left, QueueCounts(
            total=total,
            done=done_count,
            left=len(left),
            skipped=len(skipped),
            held=total - done_count - len(left),
            flagged=flagged_count,
        )


def _has_new_evidence(item: Item, hold: Judgment) -> bool:
    """Whether more is known about the effect than at the time of the hold."""
    return item.effect is not None and not item.effect.is_open and hold.effect is not item.effect.word
