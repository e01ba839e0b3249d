"""Which items a rater is given, and in which order."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from harness.model.judgment import ItemFilter, RatingRound
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
