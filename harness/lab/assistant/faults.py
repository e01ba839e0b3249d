"""Scripted and random faults of the assistant, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.lab.assistant.settings import SLIPS, FaultAction, FaultRule
from harness.model.frozen import frozen


@frozen
class FaultEffect:
    """The effect of the faults on one query: the words it understands, and how it answers.

    - text: the words that it understands.
    - late_s: how much later it answers.
    - actions: actions of all faults that apply.
    - slips: faults of understanding that apply, for `frame.misunderstood`.
    """

    text: str
    late_s: float = 0.0
    actions: frozenset[FaultAction] = frozenset()
    slips: tuple[FaultRule, ...] = ()


class Faults:
    """Applies the rules of the settings in order, and counts how often each was used.

    use_counts: the counts from before a restart, so that a rule with `times: 1` applies only once.
    """

    def __init__(self, rules: Sequence[FaultRule], seed: int, use_counts: Sequence[int] = ()) -> None:
        self._rules = tuple(rules)
        self._use_counts = [*use_counts][: len(self._rules)] + [0] * (len(self._rules) - len(use_counts))
        # Else the random numbers of the first start would come again after every restart.
        self._random = random.Random(f"{seed} {use_counts}" if use_counts else seed)

    @property
    def use_counts(self) -> tuple[int, ...]:
        """How often each rule was used."""
        return tuple(self._use_counts)

    def misses(self, wake: int) -> bool:
        """Whether the wake event with that number (from 1) is to be ignored. Counts each rule that applies."""
        applies = [self._applies(number, wake, None) for number in self._rule_numbers(missing_wake=True)]
        return any(applies)  # of a list, so that every rule is counted, and draws its random number

    def degrade(self, wake: int, text: str) -> FaultEffect:
        """The effect of the faults on the text recognised after that wake event. Counts each rule that applies.

        Conditions match the recognised text, also after a fault that replaces it.
        """
        heard_text, late_s, actions = text, 0.0, set()
        slips: list[FaultRule] = []
        for number in self._rule_numbers(missing_wake=False):
            rule = self._rules[number]
            if not self._applies(number, wake, text):
                continue
            actions.add(rule.action)
            if rule.action is FaultAction.MISHEAR:
                heard_text = rule.heard_as
            elif rule.action is FaultAction.LATE:
                late_s = max(late_s, rule.late_s)
            elif rule.action in SLIPS:
                slips.append(rule)
        return FaultEffect(heard_text, late_s, frozenset(actions), tuple(slips))

    def _rule_numbers(self, *, missing_wake: bool) -> list[int]:
        return [
            number for number, rule in enumerate(self._rules) if (rule.action is FaultAction.MISS_WAKE) == missing_wake
        ]

    def _applies(self, number: int, wake: int, text: str | None) -> bool:
        """Whether that rule applies now. If so, it is counted. text: the recognised text; None for a wake event."""
        rule = self._rules[number]
        if rule.times is not None and self._use_counts[number] >= rule.times:
            return False
        if rule.wakes is not None and wake not in rule.wakes:
            return False
        if rule.when is not None and (text is None or rule.when.search(text) is None):
            return False
        # Drawn only if all else holds, so that a rule's random numbers do not depend on the texts of other rules.
        if rule.probability < 1 and self._random.random() >= rule.probability:
            return False
        self._use_counts[number] += 1
        return True
