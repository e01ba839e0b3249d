"""Items, rounds and desks without a disk, for tests of what a rater's keys do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.model.effect import EffectCheck, EffectEvidence, EffectOutcome, EffectSource
from harness.model.errors import LogFull
from harness.model.judgment import Category, Exercise, GoldItem, Judgment, RatingRound
from harness.rating.desk import Desk
from harness.rating.items import CategoryProposal, HiddenDetails, Item, Subject, blind_id, exercise_item

CHECK = EffectCheck("the lamp is on", question="Is it on?")
WAITS = EffectEvidence(CHECK)
SEEN = EffectEvidence(CHECK, EffectOutcome.RIGHT, EffectSource.OPERATOR)
CANNOT_TELL = EffectEvidence(CHECK, EffectOutcome.UNKNOWN, EffectSource.OPERATOR)


def item(
    number: int,
    *,
    session: str = "s1",
    device: str = "kitchen",
    effect: EffectEvidence | None = None,
    clip: str = "",
    gold: bool = False,
) -> Item:
    trial = f"t{number}"
    sha = clip or f"sha of {session} {trial}"
    answer = GoldItem(session, trial, Category.CORRECT) if gold else None
    return Item(
        id=blind_id(0, session, trial, sha),
        query=f"question {number}",
        subject=Subject(trial, 1, sha, session),
        effect=effect,
        hidden=HiddenDetails(device, f"q{number % 4}", ("time", "lists")[number % 2], (), answer),
    )


def items(count: int) -> tuple[Item, ...]:
    return tuple(item(number) for number in range(1, count + 1))


def exercises(*categories: Category, accept: tuple[Category, ...] = ()) -> tuple[Item, ...]:
    return tuple(
        exercise_item(Exercise(f"e{number}", f"ask {number}", f"say {number}", category, "because", accept), 0)
        for number, category in enumerate(categories, 1)
    )


@dataclass
class Clock:
    """A monotonic and a wall clock that only a test moves."""

    now_s: float = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def wall(self) -> float:
        return 1_700_000_000.0 + self.now_s


@dataclass
class Disk:
    """Where rows are kept; `full` makes it refuse."""

    rows: list[Judgment] = field(default_factory=list)
    full: bool = False

    def keep(self, item: Item, row: Judgment) -> None:
        if self.full:
            raise LogFull("no room")
        self.rows.append(row)


@dataclass
class Bench:
    """A round with its disk and clock; `desk` seats a rater anew, as after a restart."""

    items: Sequence[Item]
    round: RatingRound = field(default_factory=RatingRound)
    exercises: Sequence[Item] = ()
    disk: Disk = field(default_factory=Disk)
    clock: Clock = field(default_factory=Clock)
    proposal: CategoryProposal | None = None

    def desk(self, rater: str = "ann", **changes: object) -> Desk:
        round_ = replace(self.round, **changes) if changes else self.round  # type: ignore[arg-type]
        return Desk(
            rater,
            round_,
            self.items,
            self.exercises,
            tuple(self.disk.rows),
            self._keep,
            propose=lambda _: self.proposal,
            now_s=self.clock.monotonic,
            wall_s=self.clock.wall,
        )

    def _keep(self, item: Item, row: Judgment) -> None:
        self.clock.now_s += 1.0
        self.disk.keep(item, row)


def seated(items: Sequence[Item], round: RatingRound | None = None, **more: Any) -> tuple[Bench, Desk]:
    """A bench, and ann's desk at it. more: other fields of `Bench`."""
    bench = Bench(items, round or RatingRound(), **more)
    return bench, bench.desk()


def in_sight(desk: Desk) -> str:
    """The query in sight; "" when there is none."""
    item = desk.view.item
    return item.query if item is not None else ""
