"""How far the annotators of a project agree: every two who share utterances."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

from harness.metrics.set_agreement import SetAgreement, set_agreement
from harness.model.label_set import LabelSet
from harness.model.understanding import Utterance
from harness.understanding.annotation.ledger import Ledger


@dataclass(frozen=True, slots=True)
class PairOfAnnotators:
    """Two annotators; differing: ids of the utterances that they gave different labels."""

    first: str
    second: str
    figures: SetAgreement
    differing: tuple[str, ...]


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
