"""Which items a rater is given, and in which order."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Sequence

from harness.model.rating_round import ItemFilter, RatingRound
from harness.rating.items import Item


def drawn(items: Iterable[Item], wanted: ItemFilter, seed: int) -> tuple[Item, ...]:
    """The items that a round is about, in a fixed order; at most `wanted.limit`, drawn by the seed."""
    fitting = [item for item in items if _fits(item, wanted)]
    if wanted.limit is None or len(fitting) <= wanted.limit:
        return tuple(fitting)
    chosen = set(random.Random(f"{seed}:draw").sample(range(len(fitting)), wanted.limit))
    return tuple(item for number, item in enumerate(fitting) if number in chosen)


def assigned(items: Sequence[Item], round_: RatingRound, rater: str) -> tuple[Item, ...]:
    """The rater's share, shuffled for them: the same rater sees the same order again, another one another order.

    With `raters_per_item`, each item goes to so many of the round's raters, and the shares differ by one at most.
    """
    mine = list(items)
    if round_.raters_per_item is not None and round_.raters_per_item < len(round_.raters):
        shares = _shares(items, round_)
        mine = [item for item in items if rater in shares[item.id]]
    random.Random(f"{round_.seed}:{rater}").shuffle(mine)
    return tuple(mine)


def _shares(items: Sequence[Item], round_: RatingRound) -> dict[str, frozenset[str]]:
    """Item → its raters: always those with the fewest items so far, ties by a hash, so that pairs vary."""
    load: Counter[str] = Counter(dict.fromkeys(round_.raters, 0))
    shares: dict[str, frozenset[str]] = {}
    for item in sorted(items, key=lambda one: _hash(round_.seed, one.id, "")):
        ranked = sorted(round_.raters, key=lambda rater: (load[rater], _hash(round_.seed, item.id, rater)))
        chosen = ranked[: round_.raters_per_item]
        load.update(chosen)
        shares[item.id] = frozenset(chosen)
    return shares


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
