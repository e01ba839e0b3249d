"""How far the raters of one or many sessions agree, what they say together, and where they differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from harness.model.judgment import SUB_FLAGS_OF, Category, Exercise, GoldItem, Judgment, SubFlag
from harness.rating.figures.consensus import Consensus, consensus, majority, without_each
from harness.rating.figures.judged import JudgedResponse
from harness.rating.figures.raters import RatedSession, RaterFigures, gold_items, rater_figures
from harness.statistics.agreement import MISSING, Agreement, PairAgreement, agreement, pairs
from harness.statistics.intervals import Share

CATEGORIES = tuple(Category)
NUMBER = {category: number for number, category in enumerate(CATEGORIES)}
RATERS_OF_CONSENSUS = 3
"""With fewer labels on an item its consensus says no more than they do."""


@dataclass(frozen=True, slots=True)
class AgreedItem:
    """A response and what its raters said. labels: by rater. majority: None for a tie.

    consensus: of three raters or more; probability: that it is so, as the model has it. settled: by adjudication.
    """

    session_id: str
    trial_id: str
    labels: tuple[tuple[str, Category], ...]
    majority: Category | None
    consensus: Category | None
    probability: float | None
    settled: Category | None
    gold: Category | None = None

    @property
    def differing(self) -> bool:
        return len({category for _, category in self.labels}) > 1

    @property
    def disputed(self) -> bool:
        """Raters differ, and nobody has settled it."""
        return self.differing and self.settled is None

    @property
    def spread(self) -> float:
        """The share of its pairs of labels that differ."""
        of = list(combinations([category for _, category in self.labels], 2))
        return sum(a is not b for a, b in of) / len(of) if of else 0.0


@dataclass(frozen=True, slots=True)
class SubFlagAgreement:
    """Pairs of labels of the same category, which may carry the sub-flag: both set it, one did, neither did."""

    both: int = 0
    one: int = 0
    neither: int = 0

    @property
    def set_again(self) -> Share:
        """When one rater sets it, how often the other does, too."""
        return Share(2 * self.both, 2 * self.both + self.one)


@dataclass(frozen=True, slots=True)
class AgreementFigures:
    """Of all sessions together.

    raters: everybody of whom there is a row. names: of the raters with labels, in the order of the tables' rows, which
    `pairs` and `consensus` mean. responses: all that could be judged. items: those with a label, in the order of the
    sessions. agreement, pairs, consensus, sub_flags: without gold items, which are chosen and not drawn.
    disputed: raters differ and nobody settled it, the widest apart first, gold items among them.
    """

    sessions: tuple[str, ...]
    raters: tuple[RaterFigures, ...]
    names: tuple[str, ...]
    responses: int
    items: tuple[AgreedItem, ...]
    agreement: Agreement
    pairs: tuple[PairAgreement, ...]
    consensus: Consensus
    sub_flags: tuple[tuple[SubFlag, SubFlagAgreement], ...]
    gold_items: int

    @property
    def disputed(self) -> tuple[AgreedItem, ...]:
        return tuple(sorted((one for one in self.items if one.disputed), key=lambda one: -one.spread))

    @property
    def settled(self) -> int:
        """Items that an adjudication settled."""
        return sum(one.settled is not None for one in self.items)


def agreement_figures(
    sessions: Sequence[RatedSession], gold: Sequence[GoldItem] = (), exercises: Sequence[Exercise] = ()
) -> AgreementFigures:
    """All figures of the raters of these sessions.

    gold, exercises: what is known to be right, of a round. A rater is compared with the consensus of the *others*
    (leave-one-out), where two of them or more labelled the item.
    """
    known = gold_items(gold)
    judged = [one for session in sessions for one in session.responses if one.submitted]
    names = sorted({judgment.rater for one in judged for judgment in one.submitted})
    labels = _table(judged, names)
    drawn = np.array([_key(one) not in known for one in judged], np.bool_)
    together = consensus(labels[:, drawn], len(CATEGORIES))
    of_others = np.full(labels.shape, MISSING, np.int64)
    of_others[:, drawn] = without_each(labels[:, drawn], len(CATEGORIES), together)
    return AgreementFigures(
        tuple(session.session_id for session in sessions),
        rater_figures(sessions, known, exercises, _agreed(judged, names, labels, of_others)),
        tuple(names),
        sum(len(session.responses) for session in sessions),
        _items(judged, labels, drawn, together, known),
        agreement(labels[:, drawn], len(CATEGORIES)),
        pairs(labels[:, drawn], len(CATEGORIES)),
        together,
        _sub_flags([one for one, of_table in zip(judged, drawn, strict=True) if of_table]),
        int((~drawn).sum()),
    )


def _key(one: JudgedResponse) -> tuple[str, str]:
    return one.session_id, one.trial.trial.id


def _table(judged: Sequence[JudgedResponse], names: Sequence[str]) -> NDArray[np.int64]:
    row = {name: number for number, name in enumerate(names)}
    labels = np.full((len(names), len(judged)), MISSING, np.int64)
    for column, one in enumerate(judged):
        for judgment in one.submitted:
            if (category := judgment.independent) is not None:
                labels[row[judgment.rater], column] = NUMBER[category]
    return labels


def _agreed(
    judged: Sequence[JudgedResponse], names: Sequence[str], labels: NDArray[np.int64], of_others: NDArray[np.int64]
) -> dict[str, list[bool]]:
    """For each rater, in the order of giving, whether a label is what the others agree on."""
    found: dict[str, list[bool]] = {}
    for row, name in enumerate(names):
        given = {column: one for column, item in enumerate(judged) for one in item.submitted if one.rater == name}
        order = sorted(np.flatnonzero(of_others[row] != MISSING).tolist(), key=lambda column: _moment(given[column]))
        found[name] = [bool(labels[row, column] == of_others[row, column]) for column in order]
    return found


def _moment(judgment: Judgment) -> float:
    return judgment.given_wall_s if judgment.given_wall_s is not None else 0.0


def _items(
    judged: Sequence[JudgedResponse],
    labels: NDArray[np.int64],
    drawn: NDArray[np.bool_],
    together: Consensus,
    gold: Mapping[tuple[str, str], GoldItem],
) -> tuple[AgreedItem, ...]:
    by_majority = majority(labels, len(CATEGORIES))
    place = np.cumsum(drawn) - 1
    items = []
    for column, one in enumerate(judged):
        agreed = MISSING
        if drawn[column] and len(one.submitted) >= RATERS_OF_CONSENSUS:
            agreed = int(together.labels[place[column]])
        known = gold.get(_key(one))
        items.append(
            AgreedItem(
                one.session_id,
                one.trial.trial.id,
                tuple((judgment.rater, judgment.category) for judgment in one.submitted if judgment.category),
                _category(int(by_majority[column])),
                _category(agreed),
                None if agreed == MISSING else float(together.posteriors[place[column], agreed]),
                None if one.settled is None else one.settled.category,
                None if known is None else known.category,
            )
        )
    return tuple(items)


def _category(number: int) -> Category | None:
    return None if number == MISSING else CATEGORIES[number]


def _sub_flags(judged: Sequence[JudgedResponse]) -> tuple[tuple[SubFlag, SubFlagAgreement], ...]:
    counts: dict[SubFlag, list[int]] = defaultdict(lambda: [0, 0, 0])
    for item in judged:
        for first, second in combinations(item.submitted, 2):
            if first.category is not second.category or first.category is None:
                continue
            for flag in SUB_FLAGS_OF.get(first.category, ()):
                counts[flag][2 - (flag in first.sub_flags) - (flag in second.sub_flags)] += 1
    return tuple((flag, SubFlagAgreement(*counts[flag])) for flag in SubFlag if flag in counts)
