"""How far a project is, and what it comes to: the state of every utterance, and its final labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.annotation.ledger import Ledger, Standing, State
from harness.annotation.shares import Shares
from harness.model.annotation import Labelled
from harness.model.understanding import Utterance


@dataclass(frozen=True, slots=True)
class AnnotatorCount:
    """What stands of one annotator: accepted and by hand are utterances with labels of theirs."""

    annotator: str
    accepted: int
    by_hand: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """standing: of every utterance, in the order of the data. double: how many are wanted from two annotators.

    changed: settled ones whose annotators' labels are not those any more that were settled; what was settled holds.
    """

    standing: Mapping[str, Standing]
    states: Mapping[State, int]
    annotators: tuple[AnnotatorCount, ...]
    batches: int
    double: int
    changed: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return len(self.standing)

    @property
    def final(self) -> int:
        """Utterances with final labels."""
        return sum(many for state, many in self.states.items() if state.is_final)


def outcome(utterances: Sequence[Utterance], shares: Shares, ledger: Ledger) -> Outcome:
    """Of a project as it stands."""
    standing = {one.id: ledger.standing(one.id, shares.wanted(one.id)) for one in utterances}
    counted = Counter(one.state for one in standing.values())
    accepted: Counter[str] = Counter()
    by_hand: Counter[str] = Counter()
    for utterance in standing:
        for annotator, row in ledger.choices(utterance).items():
            (by_hand if isinstance(row, Labelled) else accepted)[annotator] += 1
    names = ledger.annotators
    return Outcome(
        standing,
        {state: counted[state] for state in State},
        tuple(AnnotatorCount(name, accepted[name], by_hand[name]) for name in names),
        len(ledger.batches),
        sum(shares.wanted(one.id) > 1 for one in utterances),
        tuple(one for one in standing if ledger.is_changed_since_settled(one)),
    )


def with_labels(utterances: Sequence[Utterance], found: Outcome, *, marked: bool) -> tuple[Utterance, ...]:
    """Utterances with their final labels; those without are left out.

    marked: all of them, with a group `state`: what is not final has the labels of the one who has chosen so far, or
    none.
    """
    if marked:
        return tuple(
            replace(
                one,
                intents=found.standing[one.id].intents,
                groups=(*(group for group in one.groups if group[0] != STATE), (STATE, found.standing[one.id].state)),
            )
            for one in utterances
        )
    return tuple(
        replace(one, intents=found.standing[one.id].intents)
        for one in utterances
        if found.standing[one.id].state.is_final
    )


STATE = "state"
