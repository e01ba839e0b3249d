"""How far the annotators of a project agree: every two who share utterances, and all at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from harness.annotation.ledger import Ledger
from harness.annotation.set_agreement import SetAgreement, set_agreement, set_alpha
from harness.model.annotation import LabelSet
from harness.model.understanding import Utterance
from harness.statistics.agreement import MISSING, Figure, agreement


@dataclass(frozen=True, slots=True)
class PairOfAnnotators:
    """Two annotators; differing: ids of the utterances that they gave different labels."""

    first: str
    second: str
    figures: SetAgreement
    differing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllAnnotators:
    """Three or more at once. shared: utterances that two or more of them labelled; alphas as of `SetAgreement`."""

    annotators: tuple[str, ...]
    shared: int
    masi: Figure
    nominal: Figure


def all_annotators(utterances: Sequence[Utterance], ledger: Ledger, only: Collection[str] = ()) -> AllAnnotators | None:
    """Krippendorff's alpha of all, or of these; None when there are no three. Labels count as for pairs."""
    names = [name for name in ledger.annotators if not only or name in only]
    if len(names) < 3:
        return None
    given = [{name: frozenset(row.intents) for name, row in ledger.independent(one.id).items()} for one in utterances]
    sets = sorted({one for by_name in given for one in by_name.values()}, key=sorted)
    number = {one: at for at, one in enumerate(sets)}
    table = np.array(
        [[number[by_name[name]] if name in by_name else MISSING for by_name in given] for name in names], np.int64
    )
    shared = int(((table != MISSING).sum(axis=0) >= 2).sum())
    nominal = agreement(table, max(2, len(sets))).alpha
    return AllAnnotators(tuple(names), shared, set_alpha(table, sets), nominal)


def pairs_of_annotators(
    utterances: Sequence[Utterance], label_set: LabelSet, ledger: Ledger, only: Collection[str] = ()
) -> tuple[PairOfAnnotators, ...]:
    """Every two who labelled an utterance both, those with the most of them first. only: these annotators.

    Labels count as they were given before their annotator saw what is proposed (`Ledger.independent`).
    """
    given = {one.id: ledger.independent(one.id) for one in utterances}
    names = [name for name in ledger.annotators if not only or name in only]
    found = []
    for first, second in combinations(names, 2):
        shared = [id_ for id_, choices in given.items() if first in choices and second in choices]
        if not shared:
            continue
        left = [frozenset(given[id_][first].intents) for id_ in shared]
        right = [frozenset(given[id_][second].intents) for id_ in shared]
        differing = tuple(id_ for id_, one, other in zip(shared, left, right, strict=True) if one != other)
        found.append(PairOfAnnotators(first, second, set_agreement(left, right, label_set.ids), differing))
    return tuple(sorted(found, key=lambda one: -one.figures.shared))
