"""Where a rater stands in a round: what is done, what can be judged now and in which order, what waits."""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.model.judgment import EXERCISE, ItemFilter, Judgment, JudgmentStatus, RatingRound, in_force
from harness.rating.guide import LABELS
from harness.rating.items import Item


def drawn(items: Iterable[Item], wanted: ItemFilter, seed: int) -> tuple[Item, ...]:
    """The items that a round is about, in their order; at most `wanted.limit`, drawn by the seed, gold items first.

    Each is drawn by a hash of its own, so that responses that come later push few of the others out.
    """
    fitting = [item for item in items if _fits(item, wanted)]
    if wanted.limit is None or len(fitting) <= wanted.limit:
        return tuple(fitting)
    ranked = sorted(fitting, key=lambda item: (item.hidden.gold is None, _hash(seed, "draw", _place(item))))
    chosen = {item.id for item in ranked[: wanted.limit]}
    return tuple(item for item in fitting if item.id in chosen)


def assigned(items: Sequence[Item], round_: RatingRound, rater: str) -> tuple[Item, ...]:
    """The rater's share, shuffled for them: the same rater sees the same order again, another one another order.

    With `raters_per_item`, each item goes to so many of the round's raters, and the shares differ by one at most; gold
    items go to everybody. What comes later finds its place between the others, whose order stays.
    """
    mine: Iterable[Item] = items
    if is_shared_out(round_):
        shares = shares_of(items, round_)
        mine = (item for item in items if rater in shares[item.id])
    return tuple(sorted(mine, key=lambda item: _hash(round_.seed, rater, item.id)))


def is_shared_out(round_: RatingRound) -> bool:
    """Whether each response goes to some of the raters only."""
    return round_.raters_per_item is not None and round_.raters_per_item < len(round_.raters)


def shares_of(items: Sequence[Item], round_: RatingRound) -> dict[str, frozenset[str]]:
    """Item → its raters, of a round that is shared out: those with the fewest items so far, ties by a hash.

    Items are shared out in the order of playing: the shares of what a running session has already given stay. Then
    each is moved as a coordinator has said.
    """
    load: Counter[str] = Counter(dict.fromkeys(round_.raters, 0))
    shares: dict[str, frozenset[str]] = {}
    for item in items:
        if item.hidden.gold is not None:
            shares[item.id] = frozenset(round_.raters)
            continue
        place = _place(item)
        ties = {rater: _hash(round_.seed, place, rater) for rater in round_.raters}
        chosen = sorted(round_.raters, key=lambda rater: (load[rater], ties[rater]))[: round_.raters_per_item]
        load.update(chosen)
        shares[item.id] = _moved(frozenset(chosen), item)
    return shares


def _moved(raters: frozenset[str], item: Item) -> frozenset[str]:
    for before, after in item.hidden.moves:
        if before in raters:
            raters = (raters - {before}) | ({after} if after else set())
    return raters


def hand_over(
    items: Sequence[Item], round_: RatingRound, given: Iterable[Item], raters: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Item id and who gets it of these raters, for each of `given`: who has the fewest of those that have it not yet.

    "" where all of them have it.
    """
    shares = shares_of(items, round_)
    load = Counter(rater for item in items for rater in shares[item.id])
    found: list[tuple[str, str]] = []
    for item in given:
        free = [one for one in raters if one not in shares[item.id]]
        chosen = min(free, key=lambda one: (load[one], _hash(round_.seed, _place(item), one)), default="")
        load[chosen] += 1
        found.append((item.id, chosen))
    return tuple(found)


def _place(item: Item) -> str:
    """The trial: a re-run, whose response is another item, stays in the same hands."""
    return f"{item.subject.session_id}\n{item.subject.trial_id}"


def _hash(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def _fits(item: Item, wanted: ItemFilter) -> bool:
    hidden = item.hidden
    axes: dict[str, set[str]] = {}
    for axis, label in wanted.conditions:
        axes.setdefault(axis, set()).add(label)
    conditions = dict(hidden.conditions)
    return (
        (not wanted.devices or hidden.device in wanted.devices)
        and (not wanted.query_classes or hidden.query_class in wanted.query_classes)
        and (not wanted.queries or hidden.query_id in wanted.queries)
        and (not wanted.trials or hidden.trial_id in wanted.trials)
        and all(conditions.get(axis) in labels for axis, labels in axes.items())
    )


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
            rows = [row for row in in_force(self.all_of(item)) if bool(row.adjudicates) == bool(item.inputs)]
            self._standing[key] = max(rows, key=lambda row: self._number[row.id], default=None)
        return self._standing[key]

    def given_as(self, item: Item) -> int:
        """Which of the rater's rows that one was, counted from 0; −1 when there is none."""
        row = self.standing(item)
        return -1 if row is None else self._number[row.id]

    @property
    def undoable(self) -> tuple[Judgment, ...]:
        """The rows of this round that are in force, the latest first."""
        return tuple(row for row in reversed(in_force(self._order)) if row.round == self._round.id)

    @property
    def pace_s(self) -> float | None:
        """The median time to one of the last answers of this round that stand, exercises left out."""
        times = [
            row.time_to_answer_s
            for row in self.undoable
            if row.status is JudgmentStatus.SUBMITTED
            and row.time_to_answer_s is not None
            and not row.trial_id.startswith(EXERCISE)
        ]
        return statistics.median(times[:PACE_ITEMS]) if times else None

    @property
    def last_wall_s(self) -> float | None:
        """When the rater has given the last row of this round that stands, as a Unix time."""
        return next((row.given_wall_s for row in self.undoable), None)

    def exercises_left(self, exercises: Sequence[Item]) -> tuple[Item, ...]:
        """Exercises to do: those not done yet; and once more those that went wrong, when too many did."""
        new = tuple(item for item in exercises if self.standing(item) is None)
        if new or not exercises:
            return new
        given = [(item, item.exercise, self.standing(item)) for item in exercises]
        wrong = [item for item, one, row in given if not (one and row and one.is_right(row.category))]
        if len(exercises) - len(wrong) >= self._round.pass_share * len(exercises):
            return ()
        return tuple(item for item in wrong if self._answers(item) < 2)

    def _answers(self, item: Item) -> int:
        """How often it was answered, what was taken back left out."""
        rows = self.all_of(item)
        withdrawn = {row.replaces for row in rows if row.status is JudgmentStatus.WITHDRAWN}
        return sum(row.status is JudgmentStatus.SUBMITTED and row.id not in withdrawn for row in rows)

    def all_of(self, item: Item) -> list[Judgment]:
        """All rows on an item, what was taken back included, oldest first."""
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


DONE = (JudgmentStatus.SUBMITTED, JudgmentStatus.FLAGGED)


@dataclass(frozen=True, slots=True)
class Count:
    """Where a rater stands. total: items of their queue; done: with a category or put aside; left: can be judged now.

    skipped: left for the end, and among those left. held: wait for what the device did, and not among those left.
    """

    total: int = 0
    done: int = 0
    left: int = 0
    skipped: int = 0
    held: int = 0
    flagged: int = 0


@dataclass(frozen=True, slots=True)
class Given:
    """An item that may be opened again. row: the rater's own in force; None where an adjudicator has given none yet."""

    item: Item
    row: Judgment | None

    def has(self, words: str) -> bool:
        """Whether its query, its category or the comment holds all of these words."""
        row = self.row
        label = LABELS[row.category] if row is not None and row.category is not None else ""
        text = f"{self.item.query} {label} {row.comment if row is not None else ''}".casefold()
        return all(word in text for word in words.casefold().split())


class RaterStanding:
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
        rows = ((item, self.rows.standing(item)) for item in self._mine if item.hidden.gold is None)
        return tuple(item for item, row in rows if row is None or row.status not in DONE)

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
